"""The claims on the pages: a card for each claim with its data sets in columns and each explanation once.

The ledger shows the cards in the order of the chapters; the page of a claim shows them at its end. Cards are Markdown with tables
in HTML. ``book/_static/ledger.css`` styles them, ``book/_static/ledger.js`` filters them.
"""

import json
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from html import escape
from itertools import groupby
from typing import Any, NamedTuple

from mobpriv.base.numbers import FIXED, beside, constant, extent, shown
from mobpriv.book.claims import (
    AGREES,
    BY_DEFINITION,
    DIRECTION,
    DISAGREES,
    EFFECTS,
    IMPOSSIBLE,
    NOT_COMPARABLE,
    SCORED_VERDICTS,
    STOPWATCH,
    UNDECIDED,
    Claim,
    Erratum,
)
from mobpriv.book.expressions import plain_name
from mobpriv.book.quantities import AND
from mobpriv.book.runs import Paper, Registry
from mobpriv.book.verdicts import (
    ACROSS,
    NO_DATA,
    OLDER,
    QUICK,
    UNJUDGED,
    Verdict,
    data_set_title,
    enumerated,
    reason_of,
    wording,
)

SYMBOLS = {
    AGREES: "✓",
    DIRECTION: "↗",
    UNDECIDED: "?",
    DISAGREES: "✗",
    BY_DEFINITION: "≡",
    IMPOSSIBLE: "≢",
    NOT_COMPARABLE: "–",
    "": "–",
}
CLASSES = {
    AGREES: "agrees",
    DIRECTION: "direction",
    UNDECIDED: "undecided",
    DISAGREES: "disagrees",
    BY_DEFINITION: "definition",
    IMPOSSIBLE: "impossible",
    NOT_COMPARABLE: "incomparable",
    QUICK: "quick",
    OLDER: "older",
    "": "open",
}
_UNTESTABLE = "untestable"
_CLASS_LABELS = {
    _UNTESTABLE: "not testable",
    CLASSES[""]: "no number in the paper",
}  # for classes without a verdict of one wording
_TESTED = "How it is tested"  # the title of a fold
# the result and the condition of a statement
_CONDITION = re.compile(r"(?s)((?!.*; or ).*?”\)?) ((?:is|never|rises|falls|differs)\b.*)")
_ERRATUM, _CLAIM = r"\bE(?:-[A-Z])?\d+(?:\.\d+)?\b", r"\b[A-Z]\d+\.\d+\b"  # ids in a text


# ------------------------------------------------------------------------------------------------------------ small pieces
def badge(verdict: str, words: str = "") -> str:
    """A verdict as symbol and text (``words``, if given); the colour adds no information."""
    text = f"{SYMBOLS.get(verdict, '○')} {words or verdict or _CLASS_LABELS[CLASSES['']]}"
    return f'<span class="verdict {_class(verdict)}">{text}</span>'


def _class(verdict: str) -> str:
    return CLASSES.get(verdict, _UNTESTABLE)


def link(notebook: str, figure: str, text: str) -> str:
    """A link to the figure, or to the notebook's page if the entry names no figure."""
    return f"[{text}](#{figure})" if figure else f"[{text}](notebooks/{notebook}.ipynb)"


def anchor(entry: Claim | Erratum) -> str:
    """The stable anchor of a claim or an erratum: ``claim-t2-3``."""
    return _anchor("claim" if isinstance(entry, Claim) else "erratum", entry.id)


def _anchor(kind: str, name: str) -> str:
    return f"{kind}-{re.sub('[^a-z0-9]+', '-', name.lower())}"


def linked(text: str) -> str:
    """A Markdown text in which every id of a claim or an erratum is a link."""
    both = rf"(?P<erratum>{_ERRATUM})|(?P<claim>{_CLAIM})"
    return re.sub(both, lambda m: f"[{m[0]}](#{_anchor(m.lastgroup, m[0])})", text)


def permalink(entry: Claim | Erratum, page: str = "") -> str:
    """The id of an entry as a link to it; ``page``: its page, if not this one."""
    return (
        f'<a class="permalink" href="{page}#{anchor(entry)}" title="Link to {entry.id}">{entry.id}'
        f'{FIXED}<span aria-hidden="true">#</span></a>'
    )


# ------------------------------------------------------------------------------------------------------------------ tables
class Line(NamedTuple):
    """A line of a card's table: its label, and its HTML for each data set that has a value."""

    label: str
    cells: Mapping[str, str]
    kind: str = ""  # "verdicts": the line of verdicts; "short": a narrow page puts the cells in one row


def side_by_side(titles: Mapping[str, str], lines: Sequence[Line]) -> str:
    """A table with a column for each data set (name -> title); a narrow page stacks the cells of a line."""
    head = [f'<th role="columnheader" scope="col">{escape(t)}</th>' for t in titles.values()]
    rows = [f'<tr role="row"><td role="cell" class="corner"></td>{"".join(head)}</tr>']
    for line in lines:
        cells = [_cell(line.cells.get(name, ""), title) for name, title in titles.items()]
        kind = f' class="{line.kind}"' if line.kind else ""
        rows.append(f'<tr role="row"{kind}><th role="rowheader" scope="row">{escape(line.label)}</th>{"".join(cells)}</tr>')
    body = f'<thead role="rowgroup">{rows[0]}</thead><tbody role="rowgroup">{"".join(rows[1:])}</tbody>'
    return f'<table class="sets{" single" * (len(titles) == 1)}" role="table">{body}</table>'


def _cell(html: str, title: str) -> str:
    kind = "" if html else ' class="nothing"'
    return f'<td role="cell" data-set="{escape(title)}"{kind}><div>{html or "–"}</div></td>'


def _number(values: Sequence[str], between: str, n: int | None, counted: bool) -> str:
    """A number with its interval in small print, or the values of a family, one per line; ``counted``: whether to show n."""
    small = "".join(f" <small>{escape(text)}</small>" for text in beside(between, n, counted))
    return ";<br>".join(map(escape, values)) + small


# ------------------------------------------------------------------------------------------------------------------- a card
def card(verdicts: Sequence[Verdict], registry: Registry, level: int, ledger: str = "") -> str:
    """The card of a claim: heading of a ``level``, a line with the verdicts, and folded behind it the numbers and reasons.

    ``ledger``: the address of the paper's page in the ledger, if the card is on another page.
    """
    claim, rows = verdicts[0].claim, _by_data_set(verdicts, registry)
    tested = {name: cells for name, cells in rows.items() if _class(cells[0].verdict) != _UNTESTABLE}
    without = [registry.title(name) for name in rows if name not in tested]
    place = f"{registry.paper(claim.paper).title}, {claim.place}"
    code = "<br>".join(f"<code>{escape(line)}</code>" for line in claim.tests)
    test = linked(_test_in_words(claim, verdicts))
    test = f'<details class="test"><summary>{_TESTED}</summary>\n\n{test}\n\n<p>{code}</p></details>'
    body = [_table(claim, tested, registry) if tested else "", *_reasons(claim, tested, registry), test]
    body = [f'<details class="behind"><summary>{_in_short(claim, tested, without, registry)}</summary>', *body, "</details>"]
    # for the filters: each data set with the verdict that the score counts
    found = "|".join(f"{name}:{_class(worst_verdict(cells).verdict)}" for name, cells in rows.items())
    parts = [
        ":::::{div} claim" + ("" if ledger else f"\n:name: {anchor(claim)}"),
        f'<h{level} class="says" data-found="{escape(found)}">'
        f"{permalink(claim, ledger)} {escape(claim.claim.strip())}</h{level}>",
        place if ledger and not claim.figure else link(claim.notebook, claim.figure, place),
        *body,
        ":::::",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _in_short(claim: Claim, rows: Mapping[str, Sequence[Verdict]], without: Sequence[str], registry: Registry) -> str:
    """The summary line of a claim: each verdict once, with its data sets, our number and the printed one."""
    by_badge = {}
    for name, cells in rows.items():
        number = "" if claim.table or cells[0].value is None else f" {shown(cells[0].value, cells[0].unit)}"
        if number and cells[0].printed is not None:
            number += f" (printed {constant(cells[0].printed, cells[0].unit)})"
        by_badge.setdefault(_badge(worst_verdict(cells), registry), []).append(data_set_title(registry, name) + number)
    verdicts = [f"{verdict} {escape(', '.join(names))}" for verdict, names in by_badge.items()]
    if not without:
        return "<br>".join(verdicts)
    missing = escape(enumerated(without))
    untested = f"not tested on {missing}, which we do not have" if verdicts else f"not testable without {missing}"
    return "<br>".join([*verdicts, f'<span class="untested">○ {untested}</span>'])


def _by_data_set(verdicts: Sequence[Verdict], registry: Registry) -> dict[str, list[Verdict]]:
    """The verdicts on a claim by data set (several for a table): real data first, then no data, synthetic data last."""
    grouped = grouped_by(lambda verdict: verdict.dataset, verdicts)
    real = [name for name, run in registry.runs.items() if not (run.synthetic or run.made_up)]
    order = [*real, ACROSS, NO_DATA, *registry.runs]
    return {name: grouped[name] for name in dict.fromkeys([*order, *grouped]) if name in grouped}


def grouped_by(key: Callable[[Verdict], Hashable], verdicts: Iterable[Verdict]) -> dict[Any, list[Verdict]]:
    """The verdicts by a key, in the order of their first ones."""
    groups = {}
    for verdict in verdicts:
        groups.setdefault(key(verdict), []).append(verdict)
    return groups


def by_claim(verdicts: Iterable[Verdict]) -> list[list[Verdict]]:
    return list(grouped_by(lambda verdict: verdict.claim.id, verdicts).values())


def worst_verdict(cells: Sequence[Verdict]) -> Verdict:
    """The verdict of the worst cell."""
    return max(cells, key=lambda cell: SCORED_VERDICTS.index(cell.verdict) if cell.verdict in SCORED_VERDICTS else -1)


def _badge(verdict: Verdict, registry: Registry) -> str:
    return badge(verdict.verdict, wording(verdict, registry))


def _agrees(cell: Verdict) -> bool:
    return cell.verdict in (AGREES, BY_DEFINITION)


def _table(claim: Claim, rows: Mapping[str, Sequence[Verdict]], registry: Registry) -> str:
    titles = {name: data_set_title(registry, name) for name in rows}
    verdict = Line("verdict", {name: _badge(worst_verdict(cells), registry) for name, cells in rows.items()}, "verdicts")
    judged = {name: cells for name, cells in rows.items() if cells[0].verdict not in UNJUDGED}
    n = _shared_n(judged)
    counted = [Line("n", {name: shown(count) for name, count in n.items()}, "short")] if n else []
    if not claim.table:
        return side_by_side(titles, [verdict, *_lines(claim, {name: cells[0] for name, cells in judged.items()}, n), *counted])
    agree = {name: f"{sum(map(_agrees, cells))} of {len(cells)}" for name, cells in judged.items()}
    return side_by_side(titles, [verdict, Line("cells that agree", agree, "short"), *_cells(judged, n, registry), *counted])


def _lines(claim: Claim, rows: Mapping[str, Verdict], n: Mapping[str, int] | None) -> list[Line]:
    """The lines of a claim without a table: printed number, our number, results used by the test."""
    printed = {name: escape(constant(v.printed, v.unit)) for name, v in rows.items() if v.printed is not None}
    ours = {name: _ours(v, n) for name, v in rows.items() if v.value is not None}
    lines = [Line("printed", printed, "short")] if printed else []
    if ours:
        lines.append(Line(f"ours: {next(v.words for v in rows.values() if v.words)}", ours))
    computed = not (claim.quantity and plain_name(claim.quantity))  # a computed number has no interval; its results have
    if computed or any(v.verdict in (DIRECTION, UNDECIDED) for v in rows.values()):
        lines += _read(rows, n)
    return lines


def _read(rows: Mapping[str, Verdict], n: Mapping[str, int] | None) -> list[Line]:
    """The results used by a relation or a direction, except the one shown as ours."""
    by_label = {}
    for name, verdict in rows.items():
        for part in verdict.read:
            if part.words != verdict.words:
                by_label.setdefault(part.words, {})[name] = _number(part.values, part.between, part.n, n is None)
    return [Line(words, cells) for words, cells in by_label.items()]


def _cells(rows: Mapping[str, Sequence[Verdict]], n: Mapping[str, int] | None, registry: Registry) -> list[Line]:
    """A line for each cell of a table: our number and the printed one, with the verdict unless the cell agrees."""
    by_label = {}
    for name, cells in rows.items():
        for cell in cells:
            mark = "" if _agrees(cell) else f"{_badge(cell, registry)}<br>"
            ours = mark + _ours(cell, n) if cell.value is not None else ""
            printed = f" <small>printed {escape(constant(cell.printed, cell.unit))}</small>"
            by_label.setdefault(cell.words, {})[name] = ours + printed
    unprinted = dict.fromkeys(rows, '<small class="unprinted">no printed number</small>')
    return [Line(words, unprinted | cells) for words, cells in by_label.items()]


def _shared_n(rows: Mapping[str, Sequence[Verdict]]) -> dict[str, int] | None:
    """Data set -> number of cases; None if the numbers of a data set have several."""
    parts = {name: [part for cell in cells for part in (cell, *cell.read)] for name, cells in rows.items()}
    counts = {name: {part.n for part in values if part.n is not None} for name, values in parts.items()}
    if any(len(values) > 1 for values in counts.values()):
        return None
    return {name: values.pop() for name, values in counts.items() if values}


def _ours(verdict: Verdict, n: Mapping[str, int] | None) -> str:
    between = extent(verdict.low, verdict.high, verdict.unit)
    return _number([shown(verdict.value, verdict.unit)], between, verdict.n, n is None)


# ---------------------------------------------------------------------------------------------------------------- reasons
def _reasons(claim: Claim, rows: Mapping[str, Sequence[Verdict]], registry: Registry) -> list[str]:
    """Every explanation once in Markdown, after the names of all data sets that share it."""
    shared = {}
    for name, cells in rows.items():
        for cell in {cell.verdict: cell for cell in reversed(cells)}.values():
            text = " ".join(filter(None, [_of_its_kind(cell), cell.explanation.strip()]))
            if text:
                entry = next((e for e in claim.explanations if name in e.runs and cell.verdict in e.of), None)
                shared.setdefault((_badge(cell, registry), entry), {})[data_set_title(registry, name)] = text
    paragraphs = []
    for (mark, _), texts in shared.items():
        merged = _merged(texts)
        paragraphs += [f"{mark} **{'; '.join(texts)}**: {merged[0]}" if merged[0] else mark, *merged[1:]]
    return paragraphs


def _of_its_kind(verdict: Verdict) -> str:
    """The sentences that a kind of verdict always has."""
    if verdict.verdict == DIRECTION:
        return (
            f"Our number differs from the printed number. What the paper concludes from the printed number also follows from every "
            f"value inside our 95{FIXED}% intervals."
        )
    if verdict.verdict == UNDECIDED and verdict.n is not None and verdict.low is None:
        return f"The cases are too few (n{FIXED}={FIXED}{shown(verdict.n)}) for a 95{FIXED}% interval."
    if verdict.verdict == UNDECIDED and not verdict.claim.relation:
        turns = " The direction is also uncertain." if verdict.test else ""
        return f"The printed number lies inside our interval.{turns}"
    if verdict.verdict == NOT_COMPARABLE:
        return f"The number depends on the machine: {verdict.claim.why.strip()}."
    if verdict.verdict in (BY_DEFINITION, IMPOSSIBLE):
        reasons = verdict.claim.by_definition if verdict.verdict == BY_DEFINITION else verdict.claim.impossible
        text = reason_of(reasons, verdict.dataset).strip()
        return f"{text[0].upper()}{text[1:]}."
    return ""


def _merged(texts: Mapping[str, str]) -> list[str]:
    """The texts of several data sets in paragraphs: shared sentences once, sentences that differ as a list."""
    split = [re.split(r"(?<=[.!?])\s+(?=[A-Z\d(])", text) for text in texts.values()]
    if len({len(sentences) for sentences in split}) > 1:
        split = [[text] for text in texts.values()]
    paragraphs = []
    for shared, sentences in groupby(zip(*split, strict=True), lambda versions: len(set(versions)) == 1):
        joined = [" ".join(version) for version in zip(*sentences, strict=True)]
        if shared:
            paragraphs.append(joined[0])
        else:
            paragraphs += [""] * (not paragraphs)  # a list cannot begin on the line of the verdict
            paragraphs.append("\n".join(f"- {name}: {text}" for name, text in zip(texts, joined, strict=True)))
    return [linked(text) for text in paragraphs]


def _test_in_words(claim: Claim, tested: Sequence[Verdict]) -> str:
    test = next((v.test for v in tested if v.test), "")
    if claim.relation and not test:
        return "The claim is not tested on the data that we have."
    if claim.relation:
        return f"The claim holds if every condition is met.\n\n{_conditions(test)}"
    words = list(dict.fromkeys(v.words for v in tested if v.words))
    label = words[0] if words and "“" in words[0] else f"“{''.join(words[:1])}”"
    subject = f"Our value of {label}" if len(words) == 1 else "Each of our numbers"
    parts = []
    if claim.tolerance:
        unit = next((v.unit for v in tested if v.words), "")
        tolerance = constant(claim.tolerance, "points" if unit == "share" else unit)
        parts.append(f"{subject} may differ from the printed one by at most {tolerance}.")
        parts.append(f"The reason for this tolerance: {claim.why.strip().rstrip('.')}.")
    elif claim.tolerance is not None:
        parts.append(f"{subject} must equal the printed one exactly: it is {claim.why.strip().rstrip('.')}.")
    elif claim.kind == STOPWATCH:
        parts.append(f"{subject} is shown, but not compared.")
    elif any(v.printed is not None for v in tested):
        parts.append(f"{subject} must satisfy the printed bound.")
    else:
        parts.append(f"{subject} is shown, but not compared: the paper prints no number for these data.")
    if test:
        parts.append(f"We also test the direction, which holds if every condition is met.\n\n{_conditions(test)}")
    return " ".join(parts)


def _conditions(test: str) -> str:
    """A table with a row per condition: the result and what it must satisfy."""
    rows = []
    for statement in test.split(AND):
        parts = _CONDITION.fullmatch(statement)
        result, condition = parts.groups() if parts else (statement, "is true")
        label = result[1:-1] if result.count("“") == 1 and result[0] == "“" and result[-1] == "”" else result
        rows.append(f'<tr><th scope="row">{escape(label)}</th><td>{escape(condition)}</td></tr>')
    head = '<thead><tr><th scope="col">result</th><th scope="col">condition</th></tr></thead>'
    return f'<table class="conditions">{head}<tbody>{"".join(rows)}</tbody></table>'


# ------------------------------------------------------------------------------------------------------------------- pages
def verdicts_in_words(verdicts: Sequence[Verdict], registry: Registry) -> str:
    """The section with the claims of a notebook's page, as in the ledger."""
    cards = [
        card(claim_verdicts, registry, 3, f"../{page_of(claim_verdicts[0].claim.paper)}.html")
        for claim_verdicts in by_claim(verdicts)
    ]
    return "\n".join(["## The paper's claims on this page", "", *cards])


def page_of(paper: str) -> str:
    """The name of the page with a paper's claims."""
    return f"ledger_{paper}"


def ledger_page(verdicts: Sequence[Verdict], registry: Registry, contents: Mapping[str, Mapping[str, str]]) -> str:
    """A paper's claims in the order of the book; ``contents``: caption of a part -> its notebooks -> their titles."""
    lines = [_filters(verdicts, registry), ""]
    claims = by_claim(verdicts)
    for caption, notebooks in contents.items():
        sections = {name: [c for c in claims if c[0].claim.notebook == name] for name in notebooks}
        if any(sections.values()):
            lines += [f"## {caption}", ""]
        for name, section in sections.items():
            if section:
                lines += [f"### [{notebooks[name]}](notebooks/{name}.ipynb)", "", *(card(c, registry, 4) for c in section)]
    return "\n".join(lines) + "\n"


def _papers(registry: Registry, entries: Iterable[Claim | Erratum]) -> dict[str, Paper]:
    """The papers of claims or errata, in the order of the registry."""
    papers = {entry.paper: registry.paper(entry.paper) for entry in entries}
    return {name: papers[name] for name in registry.papers if name in papers}


def ids_page(registry: Registry, claims: Sequence[Claim]) -> str:
    """The prefixes of the ids of claims and errata, and where old addresses of claims on a common page lead now."""
    papers = _papers(registry, claims)
    named = "\n".join(
        f"- *{p.title}*: its claims are numbered **{p.claims}…**, its errata **{p.errata}…**." for p in papers.values()
    )
    moved = escape(json.dumps({p.claims.lower(): f"{page_of(name)}.html" for name, p in papers.items()}))
    return (
        f'Every claim has an id, which is a link to it:\n\n{named}\n\n<div class="moved" data-pages="{moved}" hidden></div>\n'
    )


def _filters(verdicts: Sequence[Verdict], registry: Registry) -> str:
    """The bar of filters; hidden unless its script runs."""
    kinds = {_class(v.verdict): _CLASS_LABELS.get(_class(v.verdict), v.verdict) for v in verdicts}
    kinds = {name: kinds[name] for name in [*CLASSES.values(), _UNTESTABLE] if name in kinds}
    tested = {v.dataset for v in verdicts}
    sets = {
        name: data_set_title(registry, name)
        for name in (*registry.runs, ACROSS, NO_DATA, *registry.data_sets)
        if name in tested
    }
    chosen = [_select(*entry) for entry in (("verdict", "Verdict", kinds), ("data", "Data set", sets))]
    total = len({v.claim.id for v in verdicts})
    return (
        f'<form class="filters" aria-label="Filter the claims" hidden>{"".join(chosen)}'
        f'<output aria-live="polite">{total} of {total} claims</output><button type="reset">Show all</button></form>'
    )


def _select(name: str, label: str, options: Mapping[str, str]) -> str:
    listed = "".join(f'<option value="{escape(value)}">{escape(text)}</option>' for value, text in options.items())
    # a label around its list would be read aloud with every option
    chosen = f'<select id="filter-{name}" name="{name}"><option value="">all</option>{listed}</select>'
    return f'<div><label for="filter-{name}">{label}</label> {chosen}</div>'


def errata_page(errata: Sequence[Erratum], registry: Registry, elsewhere: Mapping[str, str]) -> str:
    """Counts of errata by effect, then a card for each erratum by paper, the largest effect first.

    ``elsewhere``: id -> sentences on its test on other data.
    """
    papers, order = _papers(registry, errata), [*reversed(EFFECTS)]
    head = "".join(f'<th role="columnheader" scope="col">{EFFECTS[effect]}</th>' for effect in order)
    rows = [
        f'<tr role="row"><th role="rowheader" scope="row">{escape(paper.title)}</th>'
        + "".join(
            f'<td role="cell" data-label="{EFFECTS[effect]}">{sum(e.paper == name and e.effect == effect for e in errata)}</td>'
            for effect in order
        )
        for name, paper in papers.items()
    ]
    lines = [
        '<table class="score sums" role="table"><thead role="rowgroup"><tr role="row"><th role="columnheader" scope="col">errata that change</th>'
        f'{head}</tr></thead><tbody role="rowgroup">{"</tr>".join(rows)}</tr></tbody></table>',
        "",
    ]
    for name, paper in papers.items():
        of_paper = sorted((e for e in errata if e.paper == name), key=lambda e: order.index(e.effect))
        lines += [f"## {paper.title}", "", *(_erratum(e, elsewhere.get(e.id, "")) for e in of_paper)]
    return "\n".join(lines) + "\n"


def _erratum(e: Erratum, elsewhere: str) -> str:
    code = f'<details class="test"><summary>The test</summary><p><code>{escape(e.demonstration)}</code></p></details>'
    changes = f'<span class="effect">Changes {EFFECTS[e.effect]}</span>'
    parts = [
        f":::::{{div}} erratum\n:name: {anchor(e)}",
        f'<h3 class="says">{permalink(e)} {escape(e.place)}</h3>',
        changes,
        f"**The paper.** {linked(e.wrong.strip())}",
        f"**This book.** {linked(e.decision.strip())}",
        f'<span class="verdict agrees">✓ shown</span> {link(e.notebook, e.figure, "by a computation")}.{elsewhere}',
        code,
        ":::::",
    ]
    return "\n\n".join(parts) + "\n"
