"""Parts of pages that the build writes: provenance of every executed page, score, status."""

import re
import shlex
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from html import escape
from itertools import pairwise
from typing import Any
from urllib.parse import quote

from mobpriv.base.numbers import NARROW, counted, shown
from mobpriv.book import quantities, sums
from mobpriv.book.claims import SCORED_VERDICTS
from mobpriv.book.ledger import CLASSES, SYMBOLS, badge, grouped_by, worst_verdict
from mobpriv.book.quantities import Names
from mobpriv.book.runs import Registry
from mobpriv.book.verdicts import ACROSS, NO_DATA, QUICK, Verdict, data_set_title


def footer(notebook: str, records: dict[str, dict], registry: Registry, stale: Sequence[str] = (), title: str = "") -> str:
    """Provenance (folded) and downloads in MyST; paths are relative to ``book/notebooks/``; ``title``: on a page with several notebooks."""
    facts = {
        registry.title(run): {
            **provenance_row(record["provenance"], registry.title(run)),
            "code": "The code has changed since this run (stale)." if run in stale else _code(record["provenance"]),
        }
        for run, record in records.items()
    }
    filled = [run for run, record in records.items() if record["results"]]  # in the student edition a lesson has no results
    links = [
        f"{{download}}`source notebook <../_generated/downloads/source/{notebook}.ipynb>`",
        f"{{download}}`executed notebook <../_generated/downloads/executed/{notebook}.ipynb>`",
        *([f"{{download}}`all numbers (CSV) <../_generated/downloads/numbers/{notebook}.csv>`"] if filled else []),
        *(f"{{download}}`results on {registry.title(run)} <../_generated/downloads/{run}/{notebook}.json>`" for run in filled),
    ]
    return "\n".join(
        [
            *(_stale_note(stale, registry) if stale else []),
            f"::::{{dropdown}} Where the numbers {f'of “{title}”' if title else 'on this page'} come from",
            ":class-container: provenance",
            "",
            _origins(facts),
            "",
            "::::",
            "",
            "Download: " + " · ".join(links),
        ]
    )


OLDER_CODE = "*Some numbers on this page are from older code ([status of the results](../status.md)).*"


def numbers(notebook: str, records: Mapping[str, dict], names: Names, registry: Registry) -> str:
    """All numbers of a notebook's runs as CSV: :func:`mobpriv.book.quantities.tidy` with the title of each run."""
    table = quantities.tidy(notebook, {run: record["results"] for run, record in records.items()}, names)
    table.insert(1, "data set", table["run"].map(registry.title))
    return table.to_csv(index=False)


def _origins(facts: Mapping[str, Mapping[str, str]]) -> str:
    """The records run by run; below them, once, what several runs share."""
    rows = list(facts.values())
    shared = {name: text for name, text in rows[0].items() if all(row[name] == text for row in rows)} if len(rows) > 1 else {}
    blocks = {run: {name: text for name, text in row.items() if name not in shared} for run, row in facts.items()}
    blocks |= {"all runs": shared} if shared else {}
    return f'<div class="origins">{"".join(_origin(run, row) for run, row in blocks.items())}</div>'


def _origin(run: str, row: Mapping[str, str]) -> str:
    coded = {name: re.sub("`([^`]*)`", r"<code>\1</code>", escape(text)) for name, text in row.items()}
    facts = "".join(f"<dt>{name}</dt><dd>{text}</dd>" for name, text in coded.items())
    return f"<div><p><strong>{escape(run)}</strong></p><dl>{facts}</dl></div>"


def _code(record: dict) -> str:
    """The sentence on the code of a result, which may have been carried over."""
    if "carried" not in record:
        return "The code has not changed since this run."
    return (
        "The code was reorganised after this run. On the data that come with the book, the new code computes the same numbers as "
        f"the old code (checked at commit {record['carried']})."
    )


def _stale_note(stale: Sequence[str], registry: Registry) -> list[str]:
    names = "; ".join(registry.title(run) for run in stale)  # a title may hold a comma
    return [
        ":::{admonition} Stale results",
        ":class: stale",
        f"The code behind these results has changed since they were computed: {names}. "
        "The page shows the old numbers until the notebook has run again ([status of the results](../status.md)).",
        ":::",
        "",
    ]


def provenance_row(record: dict, title: str = "", shortened: Collection[str] = ()) -> dict[str, str]:
    """A record in words.

    ``title``: of the run in the registry; "" if the data are the reader's own.
    ``shortened``: the parameters that a quick run of its notebook changes.
    """
    data = record["data"]
    described, digest, left_out = "none", "–", "–"
    if data:
        kind = "synthetic" if data["synthetic"] else "real" if title else "supplied by the user"
        described = f"{title or data['name']} ({kind})"
        digest = f"`{data['sha256']}`"
        left_out = "; ".join(f"{rule}: {shown(count)}" for rule, count in data["left_out"].items()) or "none"
    return {
        "data set": described,
        "SHA-256 of the data": digest,
        "records left out": left_out,
        "selected data": re.sub(r"(?<=\d),(?=\d{3}\b)", NARROW, record["selection"]) or "–",
        "parameters": _chosen(record, shortened),
        "command": f"`{record['command']}`",
        "version of mobpriv": f"{record['mobpriv']}, commit {record['commit']}",
        "versions of packages": ", ".join(f"{name} {version}" for name, version in record["packages"].items()),
        "running time": shown(round(record["seconds"]), "s"),
    }


def _chosen(record: dict, shortened: Collection[str]) -> str:
    """The parameters given in the command and those that a quick run ``shortened``."""
    words = shlex.split(record["command"])
    named = {word.partition("=")[0] for flag, word in pairwise(words) if flag == "-p"} | {"quick"} & {w[2:] for w in words}
    named |= set(shortened) if record["parameters"].get("quick") else set()
    given = [f"{name}: {_value(value)}" for name, value in record["parameters"].items() if name in named]
    return (
        f"{'; '.join(given)}. All other parameters have their default values."
        if given
        else "All parameters have their default values."
    )


def _value(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_value, value)) or "none"
    return "none" if value == "" else shown(value)


# ------------------------------------------------------------------------------------------------------------ score, status
def score_page(verdicts: list[Verdict], registry: Registry, quick_runs: Collection[str] = ()) -> str:
    """The number of a paper's claims with each verdict, per data set; ``quick_runs``: quick runs.

    Claims that hold by construction or cannot hold are counted separately, because they do not depend on the data.
    """
    claims = grouped_by(lambda verdict: (verdict.dataset, verdict.claim.id), verdicts)
    by_verdict = Counter((dataset, worst_verdict(cells).verdict) for (dataset, _), cells in claims.items())
    datasets = {dataset for dataset, kind in by_verdict if kind in SCORED_VERDICTS}
    order = [name for name in (*registry.runs, ACROSS, NO_DATA) if name in datasets]
    rows = []
    for dataset in order:
        counts = [by_verdict[dataset, kind] for kind in SCORED_VERDICTS]
        quick = " (quick run: not a result)" if dataset in quick_runs else ""
        cells = "".join(_counted_cell(dataset, kind, count) for kind, count in zip(SCORED_VERDICTS, counts, strict=True))
        rows.append(
            f'<tr role="row"><th role="rowheader" scope="row">{escape(data_set_title(registry, dataset))}{quick}</th>{cells}</tr>'
        )
    head = "".join(f'<th role="columnheader" scope="col">{badge(kind)}</th>' for kind in SCORED_VERDICTS)
    head = f'<tr role="row"><th role="columnheader" scope="col">data set</th>{head}</tr>'
    outcomes = sums.counts(verdicts)
    skipped = sum(v.verdict == QUICK for v in verdicts)
    lines = [
        f'<table class="score" role="table"><thead role="rowgroup">{head}</thead>'
        f'<tbody role="rowgroup">{"".join(rows)}</tbody></table>',
        "",
        counted(outcomes.total() - outcomes[sums.UNTESTED], "claim is tested", "claims are tested")
        + (
            f", and {counted(outcomes[sums.CONSTRUCTED], 'of them is', 'of them are')} true or false by construction"
            if outcomes[sums.CONSTRUCTED]
            else ""
        )
        + (f"; {counted(outcomes[sums.UNTESTED], 'is', 'are')} not tested" if outcomes[sums.UNTESTED] else "")
        + (f"; {skipped} not judged in this quick build" if skipped else "")
        + ".",
    ]
    return "\n".join(lines) + "\n"


def _counted_cell(dataset: str, kind: str, count: int) -> str:
    """A number of the score as a link to its claims; a narrow page shows its verdict next to it."""
    number = f'<a href="?verdict={CLASSES[kind]}&amp;data={quote(dataset)}">{count}</a>' if count else "0"
    return f'<td role="cell" class="{CLASSES[kind]}" data-label="{SYMBOLS[kind]} {kind}">{number}</td>'


_REAL, _MADE_UP = "real data", "synthetic people on real boundaries"


def _by_people(results: Collection[tuple[str, str]], registry: Registry) -> dict[str, list[tuple[str, str]]]:
    """Kind of data -> (run, notebook) of its results; synthetic people within real boundaries are a kind of their own."""
    by_kind = {}
    for result in sorted(results, key=lambda result: registry.runs[result[0]].made_up):
        by_kind.setdefault(_MADE_UP if registry.runs[result[0]].made_up else _REAL, []).append(result)
    return by_kind


def results_on(results: Collection[tuple[str, str]], registry: Registry) -> str:
    """The number of results (run, notebook) in words: "2 results on real data and 1 result on synthetic people …"."""
    return " and ".join(
        f"{counted(len(kind_results), 'result', 'results')} on {what}"
        for what, kind_results in _by_people(results, registry).items()
    )


def status_page(
    records: dict[str, dict[str, dict]], registry: Registry, stale: Collection[tuple[str, str]], titles: dict[str, str]
) -> str:
    """The list of all results: commit, running time, and whether the code has changed; ``titles``: of the pages."""
    all_results = [(run.name, name) for run in registry.runs.values() if run.file for name in records[run.name]]
    old = {what: len(kind_results) for what, kind_results in _by_people(stale, registry).items()}
    lines = [f"The book has no results on {_REAL}."] if not all_results else []
    lines += [
        f"The book has {counted(len(kind_results), 'result', 'results')} on {what}, {shown(old[what]) if what in old else 'none'} of them stale."
        for what, kind_results in _by_people(all_results, registry).items()
    ]
    lines = [" ".join(lines), ""]
    lines += ["A result that is neither stale nor carried over was computed with today's code."] if all_results else []
    lines += ['"+ changes" after a commit means that the code had uncommitted changes when the result was computed.', ""]
    for run, entries in records.items():
        fold = f'<details class="more"><summary>Show {counted(len(entries), "result", "results")}</summary>'
        head = ["| page | computed |", "|---|---|"]
        lines += ["", f"## {registry.title(run)}", "", fold, "", *head] if entries else []
        for name, record in entries.items():
            run_provenance = record["provenance"]
            quick = "a quick run, not a result" if run_provenance["parameters"].get("quick") else ""
            carried = f"carried over at commit {run_provenance['carried']}" if "carried" in run_provenance else ""
            state = '<span class="verdict undecided">stale</span>' if (run, name) in stale else carried or quick
            page = f"[{titles.get(name, name)}](notebooks/{name}.ipynb)"
            seconds = shown(max(round(run_provenance["seconds"]), 1), "s")
            how = f"in {seconds} at commit {run_provenance['commit']}"
            lines.append(f"| {page} | {'; '.join(filter(None, [how, state]))} |")
        lines += ["", "</details>"] if entries else []
    return "\n".join(lines) + "\n"
