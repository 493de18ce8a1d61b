"""Compare every claim with the results: a verdict for each run; all faults of the ledger are reported at once.

Verdicts on a printed number:

- It **agrees** if our number is within the tolerance and the ``direction``, if any, does not fail.
- It **agrees in direction** if ``direction`` holds for all values of the results inside their 95 % intervals.
- It is **inconclusive** if the ``direction``, if any, is uncertain and the printed number lies in our interval, or the cases are too few for one.
- It **disagrees** otherwise; a disagreement needs an explanation.

Verdicts on a relation: it agrees if it holds for all values inside the intervals, disagrees if it fails for all, else it is inconclusive.
A relation about each of the cases at hand (``of_cases``) is decided by the values alone.

Claims that **hold by construction** or **cannot hold** are tested as well; another outcome is a fault.
A theorem is tested once. A number that depends on the machine is **not comparable**.
The words on the pages depend on the kind of claim (:func:`wording`): *reproduced* on the paper's own data, *holds* on others, *correct* for a theorem.
"""

import re
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

from mobpriv.base.numbers import FIXED, beside, constant, extent, in_prose, shown
from mobpriv.book.claims import (
    AGREES,
    BY_DEFINITION,
    DIRECTION,
    DISAGREES,
    IMPOSSIBLE,
    NOT_COMPARABLE,
    STOPWATCH,
    THEOREM,
    UNDECIDED,
    Claim,
    Erratum,
    Finding,
    LedgerError,
)
from mobpriv.book.expressions import (
    Unknown,
    conjuncts,
    interval,
    is_family,
    member_names,
    named_in,
    names_in,
    number_of,
    of_mean,
    plain_name,
    throughout,
    too_few,
    truth_value_of,
    undecided_by,
    value_of,
)
from mobpriv.book.quantities import Names, Quantity, expression_in_words, unit_of
from mobpriv.book.runs import Registry, named

ACROSS = "across"  # the "run" of a claim that compares runs with each other
QUICK = "not judged: a quick run"
OLDER = "not judged: the results are older than the test"
UNJUDGED = (QUICK, OLDER)
_IN_SAMPLE = f"This finding holds in our sample, but not for all values inside the 95{FIXED}% intervals."
_EXPLANATION, FINDING, ANSWER, BRIEF = "explanation", "finding", "answer", "brief"  # kinds of texts with numbers
NO_DATA = "no data set"  # the row of a claim that uses no data set


class UsedResult(NamedTuple):
    """A result used by a test: its label and its numbers."""

    words: str
    values: tuple[str, ...]  # one value, or the values of a family
    between: str = ""  # interval
    n: int | None = None


class Verdict(NamedTuple):
    claim: Claim
    dataset: str
    verdict: str  # one of those in claims, "not testable without …", or "" if the paper prints no number
    quantity: str = ""  # of a table: that of the cell
    printed: Any = None
    value: float | None = None
    low: float | None = None
    high: float | None = None
    n: int | None = None
    unit: str = ""
    words: str = ""  # label of the quantity
    test: str = ""  # relation or direction in words
    read: tuple[UsedResult, ...] = ()  # the results used by the test
    explanation: str = ""


def evaluate(
    claims: list[Claim],
    results: dict[str, dict[str, dict]],
    registry: Registry,
    names: Names,
    quick_runs: Iterable[str] = (),
    stale: Iterable[tuple[str, str]] = (),
) -> list[Verdict]:
    """A verdict for every claim and data set, and for every cell of a table.

    ``results``: run -> notebook -> results.
    ``quick_runs``: runs with results of quick runs; they are judged, but a missing quantity is not a fault.
    ``stale``: (run, notebook) of results older than the code; a quantity that they lack is not a fault.
    Raises :class:`LedgerError` with one line for each claim that cannot be tested, each unexplained disagreement and each
    explanation of a verdict that did not occur.
    """
    verdicts, faults = [], []
    results = {**results, ACROSS: _across(results)}
    for claim in claims:
        unnamed = _unnamed(claim, names)
        if unnamed:
            faults += [f"{claim.id}: {fault}" for fault in unnamed]
            continue
        rows = _rows(claim, results, registry)
        reasons = [run for given in (claim.by_definition, claim.impossible) if isinstance(given, dict) for run in given]
        mentioned = [*(run for entry in claim.explanations for run in entry.runs), *reasons]
        known = {*registry.runs, *registry.data_sets, ACROSS, NO_DATA}
        unknown = sorted({*rows, *mentioned} - known)
        if unknown:
            faults.append(f"{claim.id}: unknown data sets {', '.join(unknown)} (known: {', '.join(sorted(known))})")
            continue
        if not rows:
            faults.append(f"{claim.id}: no run has results of {claim.notebook}")
        for dataset, cells in rows.items():
            try:
                verdicts += _judged(claim, dataset, cells, results, registry, names)
            except ValueError as error:
                of_quick = quick_runs and dataset in (*quick_runs, ACROSS, NO_DATA)
                older = isinstance(error, Unknown) and (dataset, claim.notebook) in stale
                if of_quick or older:
                    kind = QUICK if of_quick else OLDER
                    verdicts += [Verdict(claim, dataset, kind, quantity, printed) for quantity, printed in cells.items()]
                else:
                    faults.append(f"{claim.id}, {data_set_title(registry, dataset)}: {error}")
        faults += [f"{claim.id}: explains {dataset}, where it is not tested" for dataset in sorted({*mentioned} - {*rows})]
    if faults:
        raise LedgerError(faults)
    return verdicts


def data_set_title(registry: Registry, dataset: str) -> str:
    """The name of a verdict's data set on the pages."""
    return {ACROSS: "across data sets", NO_DATA: "worked example"}.get(dataset) or registry.title(dataset)


_WORDINGS = {
    "own": {AGREES: "reproduced", DIRECTION: "only the direction is reproduced", DISAGREES: "not reproduced"},
    "other": {AGREES: "holds", DIRECTION: "only the direction holds", DISAGREES: "does not hold"},
    THEOREM: {AGREES: "correct", DISAGREES: "incorrect"},
}


def wording(verdict: Verdict, registry: Registry) -> str:
    """A verdict in the words of the pages, which depend on the data: the paper's own, other data or none."""
    claim = verdict.claim
    about = claim.kind if claim.kind == THEOREM else "own" if _is_papers_data(verdict, registry) else "other"
    return _WORDINGS[about].get(verdict.verdict, verdict.verdict)


def _is_papers_data(verdict: Verdict, registry: Registry) -> bool:
    """Whether a paper used the data itself (in a comparison: all of them); true for a worked example."""
    used = registry.paper(verdict.claim.paper).data_sets
    named = {name.split(".")[0] for test in verdict.claim.tests for name in named_in(test)}
    data = named if verdict.dataset == ACROSS else {verdict.dataset} - {NO_DATA}
    return all(name in registry.runs and registry.runs[name].data in used for name in data)


def _unnamed(claim: Claim, names: Names) -> list[str]:
    """One line for every quantity without a label in ``book/quantities`` and for every malformed expression."""
    faults = []
    for test in claim.tests:
        try:
            for name in named_in(test):
                names.of(claim.notebook, name)
        except ValueError as error:
            faults.append(str(error))
    return faults


def _rows(claim: Claim, results: dict, registry: Registry) -> dict[str, dict[str, Any]]:
    """Data set on which a claim is tested or stated -> quantity -> printed number; of a table only cells with a number."""
    rows = {}
    for quantity, printed in claim.cells.items():
        for dataset, value in _row(claim, printed, results, registry).items():
            rows.setdefault(dataset, {})[quantity] = value
    if claim.table:
        rows = {dataset: {q: value for q, value in cells.items() if value is not None} for dataset, cells in rows.items()}
    return {dataset: cells for dataset, cells in rows.items() if cells}


def _row(claim: Claim, printed: Any, results: dict, registry: Registry) -> dict[str, Any]:
    if claim.kind == THEOREM or (printed is not None and not isinstance(printed, dict)):
        return {NO_DATA: printed}
    values = printed or {}
    tested = claim.datasets
    if tested is None:
        runs = registry.runs.values()
        tested = [r.name for r in runs if claim.notebook in (results.get(r.name, ()) if r.synthetic else r.notebooks)]
    stated = [name for name in (*values, *claim.stated_for) if name not in registry.runs]
    return {
        name: values.get(name, values.get(registry.runs[name].data) if name in registry.runs else None)
        for name in dict.fromkeys([*tested, *stated])
    }


def _across(results: dict[str, dict[str, dict]]) -> dict[str, dict]:
    """Notebook -> results of all runs, each name prefixed with its run: ``geolife.rate.AP-Attack``."""
    joined = {}
    for run, notebooks in results.items():
        for notebook, values in notebooks.items():
            joined.setdefault(notebook, {}).update({f"{run}.{name}": value for name, value in values.items()})
    return joined


def _judged(
    claim: Claim, dataset: str, cells: dict[str, Any], results: dict, registry: Registry, names: Names
) -> list[Verdict]:
    """The verdicts on a claim for one data set, with explanations; ValueError if one is missing or obsolete."""
    if dataset not in (*registry.runs, ACROSS, NO_DATA):
        without = f"not testable without {registry.title(dataset)}"
        return [Verdict(claim, dataset, without, *cell, **_called(claim, cell[0], names)) for cell in cells.items()]
    notebook_results = results.get(dataset, {}).get(claim.notebook)
    notebook_results = _embedded(claim.notebook, results, registry) if dataset == NO_DATA else notebook_results
    if notebook_results is None:
        raise ValueError(f"there are no results of {claim.notebook}")
    judged = [_defined(_verdict(claim, dataset, quantity, cells[quantity], notebook_results, names)) for quantity in cells]
    wrong = IMPOSSIBLE if reason_of(claim.impossible, dataset) else DISAGREES  # what explanations of a disagreement refer to
    by_verdict, texts = {verdict.verdict: verdict for verdict in judged}, {}
    for entry in claim.explanations:
        kinds = [wrong if kind == DISAGREES else kind for kind in entry.of] if dataset in entry.runs else []
        texts |= dict.fromkeys(kinds, entry.why)
        if kinds and not {*kinds} & {*by_verdict}:
            raise ValueError(
                f"has an explanation of {' or '.join(kinds)!r}, but the verdict is {' and '.join(by_verdict) or 'open'!r}"
            )
    if DISAGREES in by_verdict and DISAGREES not in texts:
        v = by_verdict[DISAGREES]
        numbers = f" (printed {constant(v.printed, v.unit)}, ours {shown(v.value, v.unit)})" if v.value is not None else ""
        raise ValueError(f"disagrees{numbers} without an explanation")
    called = partial(names.of, claim.notebook)
    filled_in = {kind: _with_numbers(text, notebook_results, called) for kind, text in texts.items()}
    return [verdict._replace(explanation=filled_in.get(verdict.verdict, "")) for verdict in judged]


def _verdict(claim: Claim, dataset: str, quantity: str, printed: Any, results: dict[str, Any], names: Names) -> Verdict:
    called, test, fields = partial(names.of, claim.notebook), claim.relation or claim.direction, {}
    if claim.of_means:
        available = [name for name in names_in(test, results) if name in results]  # the test below reports a missing result
        results = {**results, **{name: of_mean(results[name], results.get("layouts")) for name in available}}
    if test:
        fields["test"] = expression_in_words(test, called)
        holds = claim.relation and (truth_value_of if claim.of_cases else throughout)(test, results)
        undecided = undecided_by(test, results) if holds is None else set()
        fields["read"] = tuple(_part(name, results, called(name), names.parts, undecided) for name in named_in(test))
    if claim.relation and claim.kind == STOPWATCH:
        return Verdict(claim, dataset, NOT_COMPARABLE, **fields)
    if claim.relation:
        return Verdict(claim, dataset, {True: AGREES, False: DISAGREES, None: UNDECIDED}[holds], **fields)
    value, single = number_of(quantity, results), plain_name(quantity)
    low, high, n = _extent(single, results)
    fields |= {"low": low, "high": high, "n": n, **_called(claim, quantity, names)}
    if printed is None:
        verdict = ""
    elif claim.kind == STOPWATCH:
        verdict = NOT_COMPARABLE
    else:
        verdict = _kind(claim, quantity, printed, value, (low, high), results)
    return Verdict(claim, dataset, verdict, quantity, printed, value, **fields)


def _kind(claim: Claim, quantity: str, printed: Any, value: float, ends: tuple, results: dict[str, Any]) -> str:
    holds = truth_value_of(claim.direction, results) if claim.direction else None
    decided = throughout(claim.direction, results) if claim.direction else None
    few = any(too_few(results[name]) for name in names_in(quantity, results))
    is_bound = isinstance(printed, str)
    if holds is not False and (
        truth_value_of(f"({quantity}) {printed}", results) if is_bound else abs(value - printed) <= claim.tolerance + 1e-12
    ):
        return AGREES
    if decided:
        return DIRECTION
    covered = not is_bound and None not in ends and ends[0] <= printed <= ends[1]
    return UNDECIDED if decided is None and (few or covered) else DISAGREES


def _defined(verdict: Verdict) -> Verdict:
    """The verdict, replaced by "holds by construction" or "cannot hold" if the claim says so; ValueError if it came out otherwise."""
    for reasons, expected, kind in (
        (verdict.claim.by_definition, AGREES, BY_DEFINITION),
        (verdict.claim.impossible, DISAGREES, IMPOSSIBLE),
    ):
        reason = reason_of(reasons, verdict.dataset)
        if reason and verdict.verdict not in ("", expected):
            raise ValueError(f"is declared {kind!r} ({reason.strip()}), but the verdict is: {verdict.verdict}")
        if reason and verdict.verdict:
            return verdict._replace(verdict=kind)
    return verdict


def reason_of(reasons: str | dict[str, str], dataset: str) -> str:
    """Why a claim holds by construction, or cannot hold, on a data set; "" if both outcomes are possible."""
    return reasons.get(dataset, "") if isinstance(reasons, dict) else reasons


def _called(claim: Claim, quantity: str, names: Names) -> dict[str, str]:
    """Unit and label of a cell; empty for a relation."""
    called = partial(names.of, claim.notebook)
    return {"unit": unit_of(quantity, called), "words": expression_in_words(quantity, called)} if quantity else {}


def _extent(name: str, results: dict[str, Any]) -> tuple:
    """(low, high, n) of a single result; three times None for a computed number."""
    entry = results.get(name)
    if not isinstance(entry, dict):
        return None, None, None
    low, _, high = interval(name, results) if entry.get("low") is not None and entry.get("high") is not None else (None,) * 3
    return low, high, entry.get("n")


def _part(name: str, results: dict[str, Any], called: Quantity, parts: dict[str, str], undecided: set[str]) -> UsedResult:
    """A result with its interval, or a family with its values in order.

    ``parts``: part of a name -> label.
    ``undecided``: results that make the claim inconclusive; a family shows the intervals of these only.
    """
    words, unit = called.words, called.unit
    if is_family(name):
        values = []
        for part, member in member_names(name, results).items():
            low, value, high = interval(member, results)
            between = f" ({extent(low, high, unit)})" if member in undecided else ""
            values.append(f"{parts.get(part, part)}: {shown(value, unit)}{between}")
        return UsedResult(words, tuple(values))
    low, high, n = _extent(name, results)
    return UsedResult(words, (shown(interval(name, results)[1], unit),), extent(low, high, unit), n)


def _embedded(notebook: str, results: dict, registry: Registry) -> dict | None:
    """A notebook's results on its embedded data."""
    return next((results[run][notebook] for run in registry.embedded if notebook in results.get(run, {})), None)


def _with_numbers(text: str, results: dict[str, Any], called, kind: str = _EXPLANATION) -> str:
    """``text`` with every ``{expression}`` replaced by its value.

    - A result is followed by its interval and n, "45.2 % (43.0 to 47.4 %, n = 522)"; the n of a run occurs once in a text.
    - Numbers are rounded as in prose (:func:`in_prose`). An interval whose ends show as one number is left out.
    - An interval inside parentheses has square brackets.
    - An answer has only its first interval, without n.
    - A brief text has no intervals, but "(inconclusive)" after a change whose interval includes 0.
    - ``{abs(change)}`` is the size of a change whose sign the text states.
    """
    counted, opened = set(), False

    def number(match: re.Match) -> str:
        nonlocal opened
        expression, behind = match.groups()
        unit = unit_of(expression, called)
        if unit and behind and behind in ("%", "points", unit):
            raise ValueError(f"the text repeats the unit of {{{expression}}}, which comes with the number")
        size = re.fullmatch(r"abs\((.*)\)", expression)
        low, high, n = _extent(plain_name(size[1] if size else expression), results)
        if size and low is not None:
            if low < 0 < high:
                raise ValueError(f"{{{expression}}}: its interval includes 0, so the text cannot state its sign")
            low, high = sorted((abs(low), abs(high)))
        sample = (re.match(r"[^.[(]*", size[1] if size else expression)[0], n)
        between = extent(low, high, unit, in_prose)
        small = ", ".join(beside(between, n, sample not in counted))
        counted.add(sample)
        if between and in_prose(low, unit) == in_prose(high, unit):
            small = between = ""
        if kind == BRIEF:
            small = UNDECIDED if unit == "points" and None not in (low, high) and low < 0 < high else ""
        elif kind == ANSWER:
            small, opened = "" if opened else between, opened or bool(between)
        before = text[: match.start()]
        brackets = "[{}]" if before.count("(") > before.count(")") else "({})"
        return in_prose(value_of(expression, results), unit) + (f" {brackets.format(small)}" if small else "")

    return re.sub(r"\{([^{}]+)\}(?=\s*(%|\w+)?)", number, text)


def finding_texts(
    findings: list[Finding],
    results: dict[str, dict[str, dict]],
    registry: Registry,
    names: Names,
    quick_runs: Iterable[str] = (),
    kind: str = FINDING,
) -> dict[str, list[str]]:
    """Notebook -> the texts of its findings with their numbers; ``kind``: finding, answer or brief.

    A finding is tested as a claim. One that does not hold is a fault, as is an inconclusive answer. The text of another inconclusive
    finding says so. A finding about one run also says how other runs with the same quantities come out. Quick runs give no findings.
    """
    texts, faults, across = {}, [], _across(results)
    for finding in findings if not quick_runs else ():
        notebook_results, called = across.get(finding.notebook, {}), partial(names.of, finding.notebook)
        try:
            if not truth_value_of(finding.holds, notebook_results):
                raise ValueError(f"{finding.holds} does not hold")
            for part in conjuncts(finding.inconclusive) if finding.inconclusive else ():
                if throughout(part, notebook_results) is not None:
                    raise ValueError(f"{part} is not inconclusive: the intervals decide it")
            text = _with_numbers(finding.says, notebook_results, called, kind)
            parts = [] if finding.of_cases else conjuncts(finding.holds)
            undecided = [expression_in_words(part, called) for part in parts if throughout(part, notebook_results) is None]
            if undecided and kind == ANSWER:
                raise ValueError(
                    f"an answer must hold for all values inside the intervals, and is inconclusive: {'; '.join(undecided)}"
                )
            if undecided:
                text += " (In this sample only.)" if kind == BRIEF else f" {_IN_SAMPLE}"
            texts.setdefault(finding.notebook, []).append(
                text + (_elsewhere(finding.holds, notebook_results, registry, text) if kind == FINDING else "")
            )
        except ValueError as error:
            faults.append(f"finding of {finding.notebook} ({finding.says[:50]}…): {error}")
    if faults:
        raise LedgerError(faults)
    return texts


def _elsewhere(holds: str, results: dict[str, Any], registry: Registry, text: str) -> str:
    """Sentences on how a finding about one run comes out on the other runs that have its quantities.

    That it also holds is not said of a run that its text names; any other outcome is.
    """
    read = names_in(holds, results)
    runs = {name.split(".")[0] for name in read}
    if len(runs) != 1:
        return ""
    (own_run,) = runs
    others = [run for run in registry.runs.values() if run.name != own_run]
    return _outcomes(
        _subject(text, registry.runs[own_run].title),
        {True: "also holds", False: "does not hold", None: "is inconclusive"},
        holds,
        {run.title: {name: results.get(run.name + name.removeprefix(own_run)) for name in read} for run in others},
        text,
    )


def _subject(text: str, own_data: str) -> str:
    """What is tested on other data: the title of a finding, in bold, or its counterpart if the title names its ``own_data``."""
    title = re.match(r"\*\*(.+?)\*\*", text)
    if not title:
        return "This finding"
    names_own = re.search(rf"\bcabs?\b|{re.escape(named(own_data))}", title[1])
    return "The same statement" if names_own else "The statement in bold"


def _outcomes(
    subject: str, outcomes: dict[bool | None, str], holds: str, by_title: dict[str, dict[str, Any]], text: str = ""
) -> str:
    """Sentences on how a relation comes out on the runs (title -> quantities) that have all its quantities.

    Runs named in ``text`` are left out if the relation holds on them.
    """
    by_outcome: dict[str, list[str]] = {}
    for title, results in by_title.items():
        if None not in results.values():
            truth = throughout(holds, results)
            if truth and named(title) in text:
                continue
            outcome = outcomes[truth]
            by_outcome.setdefault(outcome, []).append(named(title))
    ordered = sorted(by_outcome, key=lambda outcome: outcome != outcomes[True])  # first where it holds
    parts = [f"{outcome} on {enumerated(by_outcome[outcome])}" for outcome in ordered]
    contrast = len(parts) == 2 and outcomes[True] in by_outcome
    return f" {subject} {', but '.join(parts) if contrast else enumerated(parts)}." if parts else ""


def enumerated(names: Sequence[str]) -> str:
    """ "A, B and C"."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def check_errata(
    errata: list[Erratum], results: dict[str, dict[str, dict]], registry: Registry, quick_runs: Iterable[str] = ()
) -> dict[str, str]:
    """Test the demonstrations of errata: id -> sentences on how each comes out on other runs with its quantities.

    Every demonstration must be true on the embedded data (else :class:`LedgerError`); with quick runs (``quick_runs``) none is tested.
    """
    faults, elsewhere = [], {}
    for erratum in errata if not quick_runs else ():
        of_notebook = _embedded(erratum.notebook, results, registry)
        try:
            if of_notebook is None:
                raise ValueError(f"there are no results of {erratum.notebook}")
            if not truth_value_of(erratum.demonstration, of_notebook):
                raise ValueError(f"the demonstration {erratum.demonstration} is not true")
            read = names_in(erratum.demonstration, of_notebook)
            others = [run for run in registry.runs.values() if not run.synthetic]
            by_title = {run.title: results.get(run.name, {}).get(erratum.notebook, {}) for run in others}
            elsewhere[erratum.id] = _outcomes(
                "The computation",
                {True: "also shows the erratum", False: "does not show it", None: "is inconclusive"},
                erratum.demonstration,
                {title: {name: values.get(name) for name in read} for title, values in by_title.items()},
            )
        except ValueError as error:
            faults.append(f"{erratum.id}: {error}")
    if faults:
        raise LedgerError(faults)
    return elsewhere
