"""The claims ledger and the errata: what a paper says, tested against the results that the notebooks wrote.

A ledger file (``book/claims/*.yml``)::

    paper: thesis
    claims:
      - id: T2.3
        place: "§3.4.6, Figure 3.4"
        claim: "Promesse brings AP-Attack on Cabspotting down to 6 %."     # in our words
        notebook: thesis_3_mechanisms              # whose results are read
        figure: fig-3-4                              # label that the verdict links to (optional)
        quantity: "rate['AP-Attack', 'Promesse']"    # an expression over that notebook's results
        printed: {cabspotting: 0.06, geolife: 0.68, mdc: 0.46}
        unit: "%"                                    # how numbers are shown (optional)
        tolerance: 0.05
        why: "two points of grid origin, three of the unknown split"
        direction: "rate['AP-Attack', 'Promesse'] < rate['AP-Attack', 'none']"
        explanations: {geolife: "…"}                 # one for every disagreement, none elsewhere; {expression} gives a number

``printed`` holds the paper's value per data set: a number, or a bound such as ``"< 0.1"``; a single number instead of a
mapping is one that no data set enters (a worked example). A run of :mod:`mobpriv.book.runs` is held against the numbers printed for
its data set. By default a claim is tested on every run of its notebook. A claim that is purely a relation has ``relation`` in place of
``quantity``, ``printed``, ``tolerance`` and ``direction``. ``stated_for`` names further data sets the paper states a claim
for; ``datasets`` narrows where a claim is tested. Both may stand at the top of a file, for every claim that does not say
otherwise. An errata file (``book/errata/*.yml``) lists ``errata`` with ``id``,
``place``, ``wrong``, ``decision``, ``notebook`` and ``demonstration``, an expression that must come out true.

A value agrees within the tolerance only (and never against a ``direction`` that fails). Beyond it, it agrees in direction
where ``direction`` holds or, if there is none, where our interval covers the printed number.

Expressions know numbers, dotted names (``rate['AP-Attack', 'none']`` is the result "rate.AP-Attack.none"), comparisons,
``and``, ``or``, ``not``, arithmetic, ``abs``, ``min`` and ``max``.
"""

import ast
import difflib
import math
import operator
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from mobpriv.book.runs import Registry

FILE_DEFAULTS = ("datasets", "stated_for")  # may stand at the top of a ledger file
AGREES, DIRECTION, DISAGREES = "agrees", "agrees in direction", "disagrees"
ACROSS = "across"  # the "run" of a claim that compares runs with each other
QUICK = "not judged: a quick run"
NO_DATA = "no data set"  # the row of a claim that no data set enters


class LedgerError(ValueError):
    """A ledger that cannot be evaluated; one line for every fault."""

    def __init__(self, faults: list[str]):
        self.faults = faults
        super().__init__("\n".join(faults))


class Claim(NamedTuple):
    id: str
    paper: str
    place: str
    claim: str
    notebook: str
    figure: str = ""
    quantity: str = ""
    printed: Any = None  # {data set: value or bound}, or one value
    unit: str = ""
    tolerance: float | None = None
    why: str = ""
    direction: str = ""
    relation: str = ""
    stated_for: tuple = ()
    datasets: tuple | None = None  # runs; None: all that have its notebook
    explanations: dict = {}  # noqa: RUF012  (a default that nothing changes)


class Verdict(NamedTuple):
    claim: Claim
    dataset: str
    verdict: str  # one of the three, "not testable without …", or "" where nothing is stated
    printed: Any
    value: float | None
    low: float | None
    high: float | None
    n: int | None
    explanation: str
    parts: tuple = ()  # of a relation: (name, value) of every result it compares


class Erratum(NamedTuple):
    id: str
    paper: str
    place: str
    wrong: str
    decision: str
    notebook: str
    demonstration: str
    figure: str = ""


def read(folder: Path, kind: type[Claim] | type[Erratum]) -> list:
    """All entries of the ledger (``Claim``) or errata (``Erratum``) files of a folder, in the order of the file names."""
    key = "claims" if kind is Claim else "errata"
    required = [name for name in kind._fields if name not in kind._field_defaults and name != "paper"]
    entries, faults, seen = [], [], {}
    for path in sorted(folder.glob("*.yml")):
        content = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
        defaults = {
            name: content[name] for name in FILE_DEFAULTS if kind is Claim and isinstance(content, dict) and name in content
        }
        if not isinstance(content, dict) or set(content) != {"paper", key, *defaults}:
            faults.append(f"{path.name}: needs exactly the keys paper and {key}")
            continue
        for entry in content[key] or []:
            name = f"{path.name}: {entry.get('id', 'entry without id')}"
            missing = [field for field in required if not entry.get(field)]
            unknown = sorted(set(entry) - set(kind._fields))
            if missing or unknown:
                faults.append(f"{name}: " + "; ".join(filter(None, [_listed("missing", missing), _listed("unknown", unknown)])))
                continue
            if entry["id"] in seen:
                faults.append(f"{name}: this id stands in {seen[entry['id']]} already")
            seen[entry["id"]] = path.name
            entries.append(kind(**{"paper": content["paper"], **defaults, **entry}))
            faults += [f"{name}: {fault}" for fault in (_malformed(entries[-1]) if kind is Claim else [])]
    if faults:
        raise LedgerError(faults)
    return entries


def _listed(word: str, names: list[str]) -> str:
    return f"{word}: {', '.join(names)}" if names else ""


def _malformed(claim: Claim) -> list[str]:
    faults = []
    if bool(claim.relation) == bool(claim.quantity):
        faults.append("needs either a quantity or a relation")
    if claim.relation and (claim.printed is not None or claim.direction or claim.tolerance is not None):
        faults.append("a relation stands alone: without printed, tolerance and direction")
    if claim.quantity and claim.printed is None:
        faults.append("a quantity needs the printed value")
    values = claim.printed.values() if isinstance(claim.printed, dict) else [claim.printed]
    if any(isinstance(value, int | float) for value in values) and claim.tolerance is None:
        faults.append("a printed number needs a tolerance")
    if claim.tolerance is not None and not claim.why:
        faults.append("a tolerance needs its reason (why)")
    return faults


# ------------------------------------------------------------------------------------------------------------ expressions
_BINARY = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}
_COMPARE = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_FUNCTIONS = {"abs": abs, "min": min, "max": max}


def value_of(expression: str, results: dict[str, Any]) -> float | bool:
    """The value of an expression over results; ValueError, one line, where it cannot be had."""
    try:
        tree = ast.parse(expression, mode="eval").body
    except SyntaxError:
        raise ValueError(f"{expression!r} is not an expression") from None
    try:
        return _evaluate(tree, results)
    except ZeroDivisionError:
        raise ValueError(f"{expression!r} divides by zero") from None


def _evaluate(node: ast.AST, results: dict[str, Any]) -> float | bool:
    match node:
        case ast.Constant(value=bool() | int() | float() as value):
            return value
        case ast.Name() | ast.Attribute() | ast.Subscript():
            return _number(_name(node), results)
        case ast.BinOp(left, op, right) if type(op) in _BINARY:
            return _BINARY[type(op)](_evaluate(left, results), _evaluate(right, results))
        case ast.UnaryOp(ast.USub(), operand):
            return -_evaluate(operand, results)
        case ast.UnaryOp(ast.Not(), operand):
            return not _evaluate(operand, results)
        case ast.BoolOp(op, values):
            truths = [_evaluate(value, results) for value in values]  # all of them: an unknown name is found in any place
            return all(truths) if isinstance(op, ast.And) else any(truths)
        case ast.Compare(left, ops, comparators) if all(type(op) in _COMPARE for op in ops):
            sides = [_evaluate(side, results) for side in (left, *comparators)]
            return all(_COMPARE[type(op)](a, b) for op, a, b in zip(ops, sides, sides[1:], strict=False))
        case ast.Call(ast.Name(id=name), args, []) if name in _FUNCTIONS:
            return _FUNCTIONS[name](*(_evaluate(argument, results) for argument in args))
    raise ValueError(f"{ast.unparse(node)!r} is not allowed in an expression")


def _name(node: ast.AST) -> str:
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value, attr):
            return f"{_name(value)}.{attr}"
        case ast.Subscript(value, ast.Tuple(elts)):
            return ".".join([_name(value), *(str(_constant(entry)) for entry in elts)])
        case ast.Subscript(value, index):
            return f"{_name(value)}.{_constant(index)}"
    raise ValueError(f"{ast.unparse(node)!r} is not the name of a result")


def _constant(node: ast.AST) -> str | int | float:
    if isinstance(node, ast.Constant) and isinstance(node.value, str | int | float):
        return node.value
    raise ValueError(f"{ast.unparse(node)!r} cannot stand in the name of a result")


def _number(name: str, results: dict[str, Any]) -> float | bool:
    if name not in results:
        near = difflib.get_close_matches(name, results, 3, 0.4) or sorted(results)[:5]
        raise ValueError(f"unknown quantity {name} (near it: {', '.join(near) or 'the notebook saved nothing'})")
    value = results[name]
    value = value.get("value") if isinstance(value, dict) else value
    if value in ("infinite", "-infinite"):
        return math.inf if value == "infinite" else -math.inf
    if value is None:
        raise ValueError(f"quantity {name} has no value")
    if not isinstance(value, int | float):
        raise ValueError(f"quantity {name} is not a number")
    return value


def _interval(expression: str, results: dict[str, Any]) -> tuple:
    """(low, high, n) of a quantity that is a single result; none for a computed one."""
    entry = results.get(plain_name(expression))
    if not isinstance(entry, dict):
        return None, None, None
    number = {"infinite": math.inf, "-infinite": -math.inf}
    return tuple(number.get(entry.get(k), entry.get(k)) for k in ("low", "high", "n"))


def plain_name(expression: str) -> str:
    """The name of the result that an expression is, if it is a single one; else the empty text."""
    node = ast.parse(expression, mode="eval").body
    return _name(node) if isinstance(node, ast.Name | ast.Attribute | ast.Subscript) else ""


def names_in(expression: str) -> list[str]:
    """The results that an expression reads, in the order of its text."""
    found = []

    def visit(node):
        if isinstance(node, ast.Attribute | ast.Subscript) or (isinstance(node, ast.Name) and node.id not in _FUNCTIONS):
            found.append(_name(node))
        else:
            for child in ast.iter_child_nodes(node):
                visit(child)

    visit(ast.parse(expression, mode="eval").body)
    return list(dict.fromkeys(found))


def printed(claims: list[Claim], notebook: str, data_set: str) -> dict[str, float]:
    """The numbers that the papers print for a notebook's quantities on a data set."""
    values = {
        plain_name(c.quantity): c.printed.get(data_set)
        for c in claims
        if c.notebook == notebook and c.quantity and isinstance(c.printed, dict)
    }
    return {name: value for name, value in values.items() if isinstance(value, int | float)}


# --------------------------------------------------------------------------------------------------------------- verdicts
def evaluate(
    claims: list[Claim], results: dict[str, dict[str, dict]], registry: Registry, rough: Iterable[str] = ()
) -> list[Verdict]:
    """A verdict for every claim and data set; ``results``: run -> notebook -> results.

    ``rough``: runs whose results come from quick runs. They are judged too, but what they lack is no fault.
    Raises :class:`LedgerError` with a line for each claim that cannot be tested, each disagreement that nobody explained
    and each explanation of a disagreement that does not exist.
    """
    verdicts, faults = [], []
    results = {**results, ACROSS: _across(results)}
    for claim in claims:
        rows = _rows(claim, results, registry)
        known = {*registry.runs, *registry.data_sets, ACROSS, NO_DATA}
        stray = sorted({*rows, *claim.explanations} - known)
        if stray:
            faults.append(f"{claim.id}: unknown data sets {', '.join(stray)} (known: {', '.join(sorted(known))})")
            continue
        if not rows:
            faults.append(f"{claim.id}: no run has results of {claim.notebook}")
        for dataset, value in rows.items():
            try:
                verdicts.append(_verdict(claim, dataset, value, results, registry))
            except ValueError as error:
                if rough and dataset in (*rough, ACROSS, NO_DATA):
                    verdicts.append(Verdict(claim, dataset, QUICK, value, None, None, None, None, ""))
                else:
                    faults.append(f"{claim.id}, {title(registry, dataset)}: {error}")
        stray = sorted(set(claim.explanations) - set(rows))
        faults += [f"{claim.id}: explains {dataset}, where it is not tested" for dataset in stray]
    if faults:
        raise LedgerError(faults)
    return verdicts


def title(registry: Registry, dataset: str) -> str:
    """What a verdict's data set is called on the pages."""
    return {ACROSS: "across data sets", NO_DATA: "worked example"}.get(dataset) or registry.title(dataset)


def _rows(claim: Claim, results: dict, registry: Registry) -> dict[str, Any]:
    """Where a claim is tested or stated -> what is printed there."""
    if claim.printed is not None and not isinstance(claim.printed, dict):
        return {NO_DATA: claim.printed}
    values = claim.printed or {}
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
    """notebook -> the results of all runs, each name with its run in front: ``geolife.rate.AP-Attack``."""
    joined = {}
    for run, notebooks in results.items():
        for notebook, found in notebooks.items():
            joined.setdefault(notebook, {}).update({f"{run}.{name}": value for name, value in found.items()})
    return joined


def _verdict(claim: Claim, dataset: str, printed: Any, results: dict, registry: Registry) -> Verdict:
    if dataset not in (*registry.runs, ACROSS, NO_DATA):
        verdict = f"not testable without {registry.title(dataset)}"
        return Verdict(claim, dataset, verdict, printed, None, None, None, None, "")
    of_notebook = (
        _embedded(claim.notebook, results, registry) if dataset == NO_DATA else results.get(dataset, {}).get(claim.notebook)
    )
    if of_notebook is None:
        raise ValueError(f"there are no results of {claim.notebook}")
    value, low, high, n, parts = None, None, None, None, ()
    if claim.relation:
        verdict = AGREES if value_of(claim.relation, of_notebook) else DISAGREES
        parts = tuple((name, _number(name, of_notebook)) for name in names_in(claim.relation))
    else:
        value = value_of(claim.quantity, of_notebook)
        low, high, n = _interval(claim.quantity, of_notebook)
        holds = value_of(claim.direction, of_notebook) if claim.direction else None
        if printed is None:
            verdict = ""  # the paper states no number for this data set
        elif holds is not False and _meets(claim, printed, value, of_notebook):
            verdict = AGREES
        elif holds or (holds is None and _covers(printed, low, high)):
            verdict = DIRECTION
        else:
            verdict = DISAGREES
    explanation = _with_numbers(claim.explanations.get(dataset, ""), of_notebook)
    if verdict == DISAGREES and not explanation:
        shown = f" (printed {printed}, ours {value:.4g})" if value is not None and printed is not None else ""
        raise ValueError(f"disagrees{shown} and nobody has explained why")
    if verdict != DISAGREES and explanation:
        raise ValueError(f"has an explanation of a disagreement, but the verdict is {verdict or 'open'!r}")
    return Verdict(claim, dataset, verdict, printed, value, low, high, n, explanation, parts)


def _embedded(notebook: str, results: dict, registry: Registry) -> dict | None:
    """A notebook's results on its embedded data."""
    return next((results[run][notebook] for run in registry.embedded if notebook in results.get(run, {})), None)


def _with_numbers(text: str, results: dict[str, Any]) -> str:
    """``text`` with every ``{expression}`` replaced by its value: an explanation's numbers come from the run, too."""
    return re.sub(r"\{([^{}]+)\}", lambda m: f"{value_of(m[1], results):.3g}", text)


def _meets(claim: Claim, printed: Any, value: float, results: dict) -> bool:
    if isinstance(printed, str):
        return bool(value_of(f"({claim.quantity}) {printed}", results))
    return abs(value - printed) <= claim.tolerance + 1e-12


def _covers(printed: Any, low, high) -> bool:
    """Whether our interval holds the printed number."""
    return isinstance(printed, int | float) and low is not None and high is not None and low <= printed <= high


def check_errata(
    errata: list[Erratum], results: dict[str, dict[str, dict]], registry: Registry, rough: Iterable[str] = ()
) -> None:
    """Every demonstration must come out true on the embedded data; quick runs (``rough``) demonstrate nothing."""
    faults = []
    if rough:
        return
    for erratum in errata:
        of_notebook = _embedded(erratum.notebook, results, registry)
        try:
            if of_notebook is None:
                raise ValueError(f"there are no results of {erratum.notebook}")
            if value_of(erratum.demonstration, of_notebook) is not True:
                raise ValueError(f"the demonstration {erratum.demonstration} did not come out true")
        except ValueError as error:
            faults.append(f"{erratum.id}: {error}")
    if faults:
        raise LedgerError(faults)
