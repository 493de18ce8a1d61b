"""Counts of each paper's claims by their outcome over all data sets.

- *agree*: the claim agrees on every data set that decides it.
- *disagree*: it disagrees on every data set that decides it.
- *mixed*: anything in between, or agreement in direction only.
- *inconclusive*: no data set decides it.
- *by construction*: it holds by construction or cannot hold.
- *not tested*: it has no verdict.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from mobpriv.base.numbers import NARROW, counted, shown
from mobpriv.book.claims import AGREES, BY_DEFINITION, DISAGREES, IMPOSSIBLE, SCORED_VERDICTS, UNDECIDED
from mobpriv.book.ledger import anchor, by_claim, grouped_by, page_of, worst_verdict
from mobpriv.book.runs import Registry
from mobpriv.book.verdicts import Verdict

_AGREE, _MIXED, _DISAGREE, INCONCLUSIVE = "agree", "mixed", "disagree", "inconclusive"
CONSTRUCTED, UNTESTED = "by construction", "not tested"
_TESTED = (_AGREE, _MIXED, _DISAGREE, INCONCLUSIVE)
_OUTCOMES = (*_TESTED, CONSTRUCTED, UNTESTED)
_VERBS = {  # of one claim and of several
    _AGREE: ("agrees", "agree"),
    _MIXED: ("is mixed", "are mixed"),
    _DISAGREE: ("disagrees", "disagree"),
    INCONCLUSIVE: ("is inconclusive", "are inconclusive"),
    CONSTRUCTED: ("is true or false by construction", "are true or false by construction"),
    UNTESTED: ("is not tested", "are not tested"),
}


def outcome(verdicts: Iterable[Verdict]) -> str:
    """The outcome of a claim; ``verdicts``: all verdicts on it."""
    kinds = {worst_verdict(cells).verdict for cells in grouped_by(lambda v: v.dataset, verdicts).values()}
    decided = kinds & {*SCORED_VERDICTS} - {UNDECIDED}
    if decided:
        return {AGREES: _AGREE, DISAGREES: _DISAGREE}.get(decided.pop(), _MIXED) if len(decided) == 1 else _MIXED
    if UNDECIDED in kinds:
        return INCONCLUSIVE
    return CONSTRUCTED if kinds & {BY_DEFINITION, IMPOSSIBLE} else UNTESTED


def counts(verdicts: Iterable[Verdict]) -> Counter[str]:
    """The number of claims with each outcome."""
    return Counter(map(outcome, by_claim(verdicts)))


def figures_of(place: str) -> list[str]:
    """The figures and tables that a place in a paper names: "§9.1, Figures 4 and 5" -> Figure 4, Figure 5."""
    number = r"(?:\d+(?:\.\d+)?|[IVX]+)"
    named = re.findall(rf"\b(Figure|Table)s? ({number}(?:(?:, | and ){number})*)", place)
    return [f"{kind} {single}" for kind, numbers in named for single in re.split(", | and ", numbers)]


def by_figure(verdicts: Iterable[Verdict], titles: Mapping[str, str], drawings: Mapping[str, str], prefix: str = "") -> str:
    """A list of a paper's figures and tables: the pages that reproduce each, with its claims and their outcomes.

    ``drawings``: figures without a claim -> what they show. ``prefix``: prefix of the numbers of a chapter's figures.
    """
    claims_by_figure: dict[str, dict[str, list[str]]] = {}
    places: dict[tuple[str, str], str] = {}  # figure of the paper, notebook -> where the first claim is shown
    for cells in by_claim(verdicts):
        claim = cells[0].claim
        words = f'<a href="{page_of(claim.paper)}.html#{anchor(claim)}">{claim.id}</a> ({_VERBS[outcome(cells)][0].removeprefix("is ")})'
        for figure in figures_of(claim.place):
            if figure.split()[1].startswith(prefix):
                claims_by_figure.setdefault(figure, {}).setdefault(claim.notebook, []).append(words)
                places.setdefault((figure, claim.notebook), claim.figure or f"notebooks/{claim.notebook}.ipynb")
    if in_both := {*claims_by_figure} & {*drawings}:
        raise ValueError(f"{', '.join(sorted(in_both))}: listed under drawings (without a claim), but a claim is about it")
    lines = []
    for figure in sorted([*claims_by_figure, *drawings], key=_in_order):
        lines.append(f"- **{figure}.**" + (f" {drawings[figure]} We test no claim about it." if figure in drawings else ""))
        for name, entries in claims_by_figure.get(figure, {}).items():
            claims = f"{'Claims' if entries[1:] else 'Claim'} {', '.join(entries)}"
            lines.append(f"  - [{titles[name]}]({places[figure, name]}) {claims}.")
    return "\n".join(lines) + "\n"


def _in_order(figure: str) -> tuple:
    kind, number = figure.split()
    return kind, [int(part) if part.isdigit() else 0 for part in number.split(".")], number


def _per_paper(verdicts: Sequence[Verdict]) -> dict[str, Counter[str]]:
    """Paper -> number of its claims with each outcome."""
    return {paper: counts(on_paper) for paper, on_paper in grouped_by(lambda v: v.claim.paper, verdicts).items()}


def in_words(tally: Counter[str]) -> str:
    """ "13 claims: 7 agree, 2 are mixed, …"."""
    parts = [counted(tally[kind], *_VERBS[kind]) for kind in _OUTCOMES if tally[kind]]
    return f"{counted(tally.total(), 'claim', 'claims')}: {', '.join(parts)}"


def substitutions(verdicts: Sequence[Verdict]) -> dict[str, str]:
    """The values of ``{{ sum_thesis }}``, ``{{ claims_thesis }}``, ``{{ agree_thesis }}``, …, ``{{ score_thesis }}``; for all papers ``{{ sum_all }}``, …."""
    values = {}
    for paper, tally in {**_per_paper(verdicts), "all": counts(verdicts)}.items():
        values |= {f"sum_{paper}": in_words(tally), f"claims_{paper}": shown(tally.total())}
        values[f"tested_{paper}"] = shown(sum(tally[kind] for kind in _TESTED))
        values[f"score_{paper}"] = f"{NARROW}/{NARROW}".join(shown(tally[kind]) for kind in _TESTED)
        values |= {f"{kind.replace(' ', '_')}_{paper}": shown(tally[kind]) for kind in _OUTCOMES}
    return values


def table(verdicts: Sequence[Verdict], registry: Registry, chapters: Mapping[str, Iterable[str]]) -> str:
    """A table with a row for each paper, and for each chapter if a paper has several; ``chapters``: caption -> notebooks."""
    papers = _per_paper(verdicts)
    rows = []
    for paper in [name for name in registry.papers if name in papers]:
        paper_verdicts = [v for v in verdicts if v.claim.paper == paper]
        parts = {title: [v for v in paper_verdicts if v.claim.notebook in notebooks] for title, notebooks in chapters.items()}
        parts = {title: counts(part_verdicts) for title, part_verdicts in parts.items() if part_verdicts}
        rows.append(_row(f'<a href="{page_of(paper)}.html">{escape(registry.paper(paper).title)}</a>', papers[paper]))
        rows += [_row(f"– {escape(title)}", tally) for title, tally in parts.items()] if len(parts) > 1 else []
    head = "".join(f'<th role="columnheader" scope="col">{kind}</th>' for kind in _OUTCOMES)
    return (
        '<table class="score sums" role="table"><thead role="rowgroup"><tr role="row"><th role="columnheader" scope="col">claims of</th>'
        f'{head}</tr></thead><tbody role="rowgroup">{"".join(rows)}</tbody></table>\n'
    )


def _row(title: str, tally: Counter[str]) -> str:
    cells = "".join(f'<td role="cell" data-label="{kind}">{tally[kind]}</td>' for kind in _OUTCOMES)
    return f'<tr role="row"><th role="rowheader" scope="row">{title}</th>{cells}</tr>'
