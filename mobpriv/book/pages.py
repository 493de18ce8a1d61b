"""What the build writes into the book: provenance on every executed page, the ledger, the errata and the score."""

import math
from collections.abc import Collection, Sequence

import nbformat

from mobpriv.book.claims import ACROSS, AGREES, DIRECTION, DISAGREES, NO_DATA, QUICK, Erratum, Verdict, title
from mobpriv.book.runs import Registry

SYMBOLS = {AGREES: "✓", DIRECTION: "↗", DISAGREES: "✗"}
CLASSES = {AGREES: "agrees", DIRECTION: "direction", DISAGREES: "disagrees"}
SYNTHETIC = """:::{admonition} Synthetic data
:class: synthetic
What was computed on this page comes from a made-up city, not from real people. Numbers of real data sets are named as such.
:::"""


def decorated(
    executed: nbformat.NotebookNode,
    notebook: str,
    records: dict[str, dict],
    verdicts: Sequence[Verdict],
    registry: Registry,
    stale: Sequence[str] = (),
) -> nbformat.NotebookNode:
    """The executed notebook as a page: code folded, a badge where the data are synthetic; at the end the verdicts on its
    claims, provenance and downloads.

    ``records``: run -> record; the first is the one this page was run on. ``verdicts``: those on this notebook's claims.
    ``stale``: runs whose results were made by code that has changed since.
    """
    page = nbformat.from_dict(executed)
    for cell in page.cells:
        if cell.cell_type == "code":
            tags = cell.metadata.setdefault("tags", [])
            if not {"hide-input", "remove-input", "remove-cell"} & set(tags):
                tags.append("hide-input")
            for output in cell.outputs:
                if "text/html" in output.get("data", {}):
                    # the corner of a pandas table is no heading: screen readers stumble over an empty one
                    output.data["text/html"] = "".join(output.data["text/html"]).replace("<th></th>", "<td></td>")
    own = next(iter(records.values()), None)
    if own and own["provenance"]["data"] and own["provenance"]["data"]["synthetic"]:
        page.cells.insert(1, _markdown(SYNTHETIC, "synthetic"))
    if verdicts:
        page.cells.append(_markdown(verdicts_in_words(verdicts, registry), "verdicts"))
    page.cells.append(_markdown(footer(notebook, records, registry, stale), "provenance"))
    return page


def _markdown(text: str, name: str) -> nbformat.NotebookNode:
    return nbformat.v4.new_markdown_cell(text, id=f"mobpriv-{name}")


def footer(notebook: str, records: dict[str, dict], registry: Registry, stale: Sequence[str] = ()) -> str:
    """Provenance (folded) and downloads, in MyST; paths are seen from ``book/notebooks/``."""
    rows = [
        {
            **provenance_row(record["provenance"], registry.title(run)),
            "code": "changed since: stale" if run in stale else "as today",
        }
        for run, record in records.items()
    ]
    names = list(rows[0]) if rows else []
    table = [_row(["what", *(registry.title(run) for run in records)]), _row(["---"] * (len(rows) + 1))]
    table += [_row([name, *(row[name] for row in rows)]) for name in names]
    results = [
        f"{{download}}`results on {registry.title(run)} <../_generated/downloads/{run}/{notebook}.json>`" for run in records
    ]
    links = [
        f"{{download}}`source notebook <../_generated/downloads/source/{notebook}.ipynb>`",
        f"{{download}}`executed notebook <../_generated/downloads/executed/{notebook}.ipynb>`",
        *results,
    ]
    return "\n".join(
        [
            *(_stale_note(stale, registry) if stale else []),
            "::::{dropdown} Where the numbers on this page come from",
            ":class-container: provenance",
            "",
            *table,
            "::::",
            "",
            "Download: " + " · ".join(links),
        ]
    )


def _stale_note(stale: Sequence[str], registry: Registry) -> list[str]:
    names = ", ".join(registry.title(run) for run in stale)
    return [
        ":::{admonition} Stale results",
        ":class: stale",
        f"The code behind these numbers has changed since they were computed: {names}. [Status](../status.md)",
        ":::",
        "",
    ]


def provenance_row(record: dict, title: str = "") -> dict[str, str]:
    """What stands in a record, in words; ``title``: of the run in the registry, without one the data are the reader's own."""
    data = record["data"]
    described, digest, left_out = "none", "–", "–"
    if data:
        kind = "synthetic" if data["synthetic"] else "real" if title else "supplied by the user"
        described = f"{title or data['name']} ({kind})"
        digest = f"`{data['sha256']}`"
        left_out = "; ".join(f"{rule}: {count:,}" for rule, count in data["left_out"].items()) or "nothing"
    return {
        "data set": described,
        "SHA-256": digest,
        "left out": left_out,
        "selection": record["selection"] or "–",
        "parameters": ", ".join(f"`{name}={value}`" for name, value in record["parameters"].items()) or "–",
        "repeat it": f"`{record['command']}`",
        "mobpriv": f"{record['mobpriv']}, commit {record['commit']}",
        "packages": ", ".join(f"{name} {version}" for name, version in record["packages"].items()),
        "run took": f"{record['seconds']:.0f} s",
    }


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


# --------------------------------------------------------------------------------------------------------- ledger, score
def badge(verdict: str) -> str:
    """The verdict as text with a symbol; colour only repeats what the text says."""
    if not verdict:
        return '<span class="verdict open">– nothing stated</span>'
    return f'<span class="verdict {CLASSES.get(verdict, "untestable")}">{SYMBOLS.get(verdict, "○")} {verdict}</span>'


def shown(value, unit: str) -> str:
    """A number with four digits at most, in the claim's unit."""
    if value is None:
        return ""
    if isinstance(value, str):
        return f"{value} {unit}".strip() if unit != "%" else value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value in (math.inf, -math.inf):
        return "∞"
    if unit in ("%", "points"):
        return f"{100 * value:.3g} {unit}"
    text = f"{value:,.0f}".replace(",", " ") if abs(value) >= 1000 else f"{value:.4g}"
    return f"{text} {unit}".strip()


def ours(verdict: Verdict) -> str:
    if verdict.value is None:
        return "; ".join(f"`{name}` {shown(value, '')}" for name, value in verdict.parts)
    text = shown(verdict.value, verdict.claim.unit)
    if verdict.low is not None and verdict.high is not None:
        text += f" ({shown(verdict.low, verdict.claim.unit)} to {shown(verdict.high, verdict.claim.unit)})"
    return text + (f", n = {verdict.n}" if verdict.n is not None else "")


def link(notebook: str, figure: str, text: str) -> str:
    """A link to the figure's label, or to the notebook's page where the claim names no figure."""
    return f"[{text}](#{figure})" if figure else f"[{text}](notebooks/{notebook}.ipynb)"


def ledger_page(verdicts: list[Verdict], registry: Registry) -> str:
    """The table of all claims: one row per claim and data set, and below it the reasons of the disagreements."""
    lines = ["::::{div} ledger full-width", "", _row(["claim", "data set", "verdict", "paper", "ours"]), _row(["---"] * 5)]
    last = None
    for verdict in verdicts:
        claim = verdict.claim
        first = claim.id != last
        text = f"**{claim.id}** {claim.claim.strip()} {link(claim.notebook, claim.figure, claim.place)}" if first else ""
        rule = claim.relation if claim.relation else ""
        paper = shown(verdict.printed, claim.unit) if verdict.printed is not None else ("relation" if rule else "–")
        lines.append(_row([text, title(registry, verdict.dataset), badge(verdict.verdict), paper, ours(verdict) or "–"]))
        last = claim.id
    lines += ["::::", ""]
    disagreeing = [v for v in verdicts if v.verdict == DISAGREES]
    if disagreeing:
        lines += ["## Where we disagree, and the likely cause", ""]
        lines += [f"- **{v.claim.id}**, {title(registry, v.dataset)}: {v.explanation.strip()}" for v in disagreeing]
    lines += ["", "## How each claim is tested", ""]
    for claim in {verdict.claim.id: verdict.claim for verdict in verdicts}.values():
        lines.append(f"- **{claim.id}**: {_test_in_words(claim)}")
    return "\n".join(lines) + "\n"


def verdicts_in_words(verdicts: Sequence[Verdict], registry: Registry) -> str:
    """What agrees, what does not and why: one paragraph a claim, one sentence a data set."""
    lines = ["## What agrees, what does not, and why", ""]
    for claim in {verdict.claim.id: verdict.claim for verdict in verdicts}.values():
        lines += [f"**{claim.id}** ({claim.place}). {claim.claim.strip()}", ""]
        lines += [f"- {sentence(v, registry)}" for v in verdicts if v.claim.id == claim.id and v.verdict]
        lines.append("")
    return "\n".join(lines)


def sentence(verdict: Verdict, registry: Registry) -> str:
    """One verdict with the numbers it rests on, and its explanation where it has one."""
    found = []
    if verdict.printed is not None and verdict.value is not None:
        found.append(f"the paper has {shown(verdict.printed, verdict.claim.unit)}, we find {ours(verdict)}")
    elif verdict.value is not None:
        found.append(f"we find {ours(verdict)}")
    found += [f"`{name}` = {shown(value, '')}" for name, value in verdict.parts]
    if verdict.verdict.startswith("not testable") or verdict.verdict == QUICK:
        return badge(verdict.verdict)
    numbers = f": {', '.join(found)}" if found else ""
    return f"{badge(verdict.verdict)} {title(registry, verdict.dataset)}{numbers}. {verdict.explanation.strip()}".strip()


def _test_in_words(claim) -> str:
    if claim.relation:
        return f"it agrees where `{claim.relation}` holds."
    parts = [f"`{claim.quantity}`"]
    if claim.tolerance is not None:
        parts.append(
            f"within {shown(claim.tolerance, claim.unit.replace('%', 'points'))} of the printed value ({claim.why.strip()})"
        )
    if claim.direction:
        parts.append(f"the direction is `{claim.direction}`")
    return "; ".join(parts) + "."


def score_page(
    verdicts: list[Verdict], errata: list[Erratum], registry: Registry, rough: Collection[str] = (), stale: int = 0
) -> str:
    """How many verdicts of each kind, per data set; ``rough``: runs that were quick; ``stale``: how many results are."""
    kinds = [AGREES, DIRECTION, DISAGREES]
    datasets = {v.dataset for v in verdicts if v.verdict in kinds}
    order = [name for name in (*registry.runs, ACROSS, NO_DATA) if name in datasets]
    lines = ["::::{div} score", "", _row(["data set", *(badge(kind) for kind in kinds)]), _row(["---", *[":-:"] * 3])]
    for dataset in order:
        counts = [sum(v.dataset == dataset and v.verdict == kind for v in verdicts) for kind in kinds]
        quick = " (quick run: not a result)" if dataset in rough else ""
        lines.append(_row([title(registry, dataset) + quick, *(str(count) for count in counts)]))
    claims = len({v.claim.id for v in verdicts})
    others = sum(v.verdict.startswith("not testable") for v in verdicts)
    skipped = sum(v.verdict == QUICK for v in verdicts)
    lines += [
        "::::",
        "",
        _counted(claims, "claim tested", "claims tested")
        + (f"; {others} of their statements are about data that cannot be had" if others else "")
        + (f"; {skipped} not judged in this quick build" if skipped else "")
        + "; "
        + _counted(len(errata), "erratum", "errata")
        + (" not demonstrated in this quick build" if rough else " demonstrated")
        + (f"; {_counted(stale, 'result', 'results')} on real data older than the code ([status](status.md))" if stale else "")
        + ".",
    ]
    return "\n".join(lines) + "\n"


def status_page(records: dict[str, dict[str, dict]], registry: Registry, stale: Collection[tuple[str, str]]) -> str:
    """Every result at hand: by which code, how long it took, and whether that code is still today's."""
    total = sum(len(records[run.name]) for run in registry.runs.values() if run.file)
    lines = [f"Of {total} results on real data {len(stale)} {'is' if len(stale) == 1 else 'are'} stale.", ""]
    lines += [_row(["data set", "page", "code", "commit", "run took"]), _row(["---"] * 5)]
    for run, entries in records.items():
        for name, record in entries.items():
            made = record["provenance"]
            state = "stale" if (run, name) in stale else "quick run" if made["parameters"].get("quick") else "as today"
            page = f"[{name}](notebooks/{name}.ipynb)"
            lines.append(_row([registry.title(run), page, state, made["commit"], f"{made['seconds']:.0f} s"]))
    return "\n".join(lines) + "\n"


def _counted(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


def errata_page(errata: list[Erratum]) -> str:
    lines = ["::::{div} errata", "", _row(["where", "what is wrong or left out", "what we do", "shown by"]), _row(["---"] * 4)]
    for e in errata:
        shown_by = (
            f"`{e.demonstration}` {badge('agrees').replace('✓ agrees', '✓ true')} {link(e.notebook, e.figure, 'demonstration')}"
        )
        lines.append(_row([f"**{e.id}** {e.paper}, {e.place}", e.wrong.strip(), e.decision.strip(), shown_by]))
    return "\n".join([*lines, "::::", ""])
