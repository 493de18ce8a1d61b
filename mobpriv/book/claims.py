"""The claims ledger and the errata: what a paper says, tested against the results that the notebooks wrote.

A ledger file (``book/claims/*.yml``)::

    paper: thesis
    claims:
      - id: T2.3
        place: "§3.4.6, Figure 3.4"
        claim: "Promesse brings AP-Attack on Cabspotting down to 6 %."
        notebook: thesis_3_mechanisms

        figure: fig-3-4
        quantity: "rate['AP-Attack', 'Promesse']"
        printed: {cabspotting: 0.06, geolife: 0.68, mdc: 0.46}
        tolerance: 0.05
        why: "two points of grid origin, three of the unknown split"

        direction: "change['AP-Attack', 'Promesse'] < 0"
        explanations:
          - {runs: [geolife, geolife-program], why: "…"}
          - {runs: [cabspotting], why: "…", of: agrees in direction}

The keys are the fields of :class:`Claim`. A run of :mod:`mobpriv.book.runs` is compared with the numbers printed for its data set.
``datasets`` and ``stated_for`` may also be at the top of a file, as defaults for its claims. The first sentence of an explanation
states the cause, and {expression} in it gives a number.

The book's own results are listed under ``findings``::

    findings:
      - notebook: joint_wrong_prior
        says: "A prior made of half the records costs {city.loss.half} of the privacy."
        holds: "city.loss.half > 0"

``holds`` must be true, else the build stops. If a sentence says that something is inconclusive, ``inconclusive`` has the comparison, and
the build stops if the intervals decide it. The names of the results begin with their run. An errata file (``book/errata/*.yml``) lists ``errata`` with ``id``, ``place``, ``wrong``, ``decision``,
``notebook``, ``effect`` (none, notation, number or conclusion) and ``demonstration``, an expression that must come out true. Expressions: :mod:`mobpriv.book.expressions`; every
quantity in a claim has its label and unit in ``book/quantities``.
"""

import re
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from mobpriv.book import yaml_files
from mobpriv.book.expressions import plain_name

_MAX_ANSWER_WORDS = 35  # words of an answer
_FILE_DEFAULTS = ("datasets", "stated_for", "of_means")  # keys allowed at the top of a ledger file
AGREES, DIRECTION, UNDECIDED, DISAGREES = "agrees", "agrees in direction", "inconclusive", "disagrees"
BY_DEFINITION, IMPOSSIBLE, NOT_COMPARABLE = "holds by construction", "cannot hold", "not comparable"
SCORED_VERDICTS = (AGREES, DIRECTION, UNDECIDED, DISAGREES)  # counted in the score
EFFECTS = {
    "none": "nothing",
    "notation": "the notation",
    "number": "a number",
    "conclusion": "a conclusion",
}  # of an erratum: effect -> words
DATA, THEOREM, STOPWATCH = "data", "theorem", "stopwatch"  # kinds of claims


class LedgerError(ValueError):
    """A ledger that cannot be evaluated; the message has one line per fault."""

    def __init__(self, faults: list[str]):
        self.faults = faults
        super().__init__("\n".join(faults))


class Explanation(NamedTuple):
    """The reason for a verdict, for one or several runs."""

    runs: tuple
    why: str
    of: tuple[str, ...] = (DISAGREES,)


class Claim(NamedTuple):
    id: str
    paper: str
    place: str
    claim: str  # in our words
    notebook: str  # whose results are used
    figure: str = ""  # label that the verdict links to
    quantity: str = ""  # an expression over the results
    printed: Any = None  # {data set: a number, or a bound such as "< 0.1"}; a single number for a worked example without data
    table: dict | None = None  # instead of quantity and printed, {quantity: printed values}: a verdict per cell
    tolerance: float | None = None
    why: str = ""  # the reason for the tolerance
    direction: str = ""
    relation: str = ""  # instead of quantity, printed, tolerance and direction
    by_definition: Any = ""  # why the claim cannot come out otherwise (a theorem, our own rule): the reason, or {run: reason}
    impossible: Any = ""  # why it cannot be true, in the same form
    stated_for: tuple = ()  # further data sets for which the paper states the claim
    datasets: tuple | None = None  # runs on which it is tested; None: all that have its notebook
    explanations: tuple[Explanation, ...] = ()  # one for every disagreement, or for the verdicts ``of``
    short: str = ""  # the claim in ten words, for the top of its page (at most four per page)
    of_cases: bool = False  # a relation about each case at hand (every user, every channel): decided without intervals
    of_means: bool = False  # a relation about means over samples: the band of single samples is narrowed by √n
    # THEOREM: a statement without a data set, tested once, on the embedded results; STOPWATCH: a number that depends on the
    # machine, shown and not compared, for the reason in ``why``
    kind: str = DATA

    @property
    def cells(self) -> dict[str, Any]:
        """Quantity -> printed value; a relation has one cell without either."""
        return self.table or {self.quantity: self.printed}

    @property
    def tests(self) -> list[str]:
        """The expressions that test the claim."""
        return [text for text in (*self.cells, self.relation, self.direction) if text]


class Finding(NamedTuple):
    """A result of the book itself; names in ``says`` and ``holds`` begin with their run."""

    notebook: str
    says: str  # {expression} gives a number
    holds: str
    inconclusive: str = ""  # what ``says`` or ``matters`` calls inconclusive; parts joined by ``and``
    answer: bool = False  # the answer at the top of its page, one sentence
    matters: str = ""  # of an answer: why it matters, in two sentences
    landing: str = ""  # sentence on the landing page
    of_cases: bool = False  # as in a claim


class Erratum(NamedTuple):
    id: str
    paper: str
    place: str
    wrong: str
    decision: str
    notebook: str
    demonstration: str
    figure: str = ""
    effect: str = "number"  # one of EFFECTS


def read(folder: Path, kind: type[Claim] | type[Erratum]) -> list:
    """The entries of all ledger (``Claim``) or errata (``Erratum``) files of a folder, in the order of the file names."""
    key = "claims" if kind is Claim else "errata"
    required = [name for name in kind._fields if name not in kind._field_defaults and name != "paper"]
    required += ["effect"] if kind is Erratum else []
    entries, faults, seen = [], [], {}
    for path in sorted(folder.glob("*.yml")):
        content = yaml_files.content(path) or {}
        defaults = {
            name: content[name] for name in _FILE_DEFAULTS if kind is Claim and isinstance(content, dict) and name in content
        }
        optional = {*_FILE_DEFAULTS, "findings", "drawings"} if kind is Claim else set()
        if not isinstance(content, dict) or not {"paper", key} <= set(content) <= {"paper", key, *optional}:
            faults.append(
                f"{path.name}: needs the keys paper and {key}"
                + (f", may have {', '.join(sorted(optional))}" if optional else "")
            )
            continue
        for entry in content[key] or []:
            name = f"{path.name}: {entry.get('id', 'entry without id')}"
            missing = [field for field in required if not entry.get(field)]
            unknown = sorted(set(entry) - set(kind._fields))
            if missing or unknown:
                faults.append(f"{name}: " + "; ".join(filter(None, [_listed("missing", missing), _listed("unknown", unknown)])))
                continue
            if entry["id"] in seen:
                faults.append(f"{name}: this id is already in {seen[entry['id']]}")
            seen[entry["id"]] = path.name
            try:
                entries.append(_entry(kind, {"paper": content["paper"], **defaults, **entry}))
            except ValueError as error:
                faults.append(f"{name}: {error}")
                continue
            faults += [f"{name}: {fault}" for fault in _malformed(entries[-1])]
    if faults:
        raise LedgerError(faults)
    return entries


def findings(folder: Path) -> list[Finding]:
    """The findings in the ledger files of a folder."""
    entries, faults = [], []
    for path in sorted(folder.glob("*.yml")):
        for entry in (yaml_files.content(path) or {}).get("findings") or []:
            if not isinstance(entry, dict) or not set(Finding._fields[:3]) <= set(entry) <= set(Finding._fields):
                faults.append(
                    f"{path.name}: a finding has {', '.join(Finding._fields[:3])}, and may have {', '.join(Finding._fields[3:])} (got {entry!r})"
                )
            else:
                entries.append(Finding(**entry))
    answered = Counter(entry.notebook for entry in entries if entry.answer)
    faults += [f"{notebook} has {n} answers: a page opens with one" for notebook, n in answered.items() if n > 1]
    faults += [
        f"answer of {entry.notebook}: {words} words, at most {_MAX_ANSWER_WORDS}"
        for entry in entries
        if entry.answer and (words := len(re.sub(r"\{[^{}]*\}", "1", entry.says).split())) > _MAX_ANSWER_WORDS
    ]
    if faults:
        raise LedgerError(faults)
    return entries


def drawings(folder: Path) -> dict[str, dict[str, str]]:
    """Chapter -> figure of its paper without a claim -> what it shows."""
    return {path.stem: (yaml_files.content(path) or {}).get("drawings") or {} for path in sorted(folder.glob("*.yml"))}


def _entry(kind: type[Claim] | type[Erratum], fields: dict[str, Any]) -> Claim | Erratum:
    if "explanations" in fields:
        if not isinstance(fields["explanations"], list):
            raise ValueError("explanations are a list of entries with runs and why")
        fields["explanations"] = tuple(map(_explanation, fields["explanations"]))
    if not isinstance(fields.get("table") or {}, dict):
        raise ValueError("a table is a mapping of quantities to what is printed of them")
    return kind(**fields)


def _explanation(entry: Any) -> Explanation:
    kinds = (*SCORED_VERDICTS, BY_DEFINITION)
    if not isinstance(entry, dict) or not {"runs", "why"} <= set(entry) <= {"runs", "why", "of"}:
        raise ValueError("an explanation needs runs and why, and may have of")
    if not isinstance(entry["runs"], list) or not entry["runs"] or not str(entry["why"]).strip():
        raise ValueError("an explanation needs a list of runs and a text")
    verdicts = entry.get("of", DISAGREES)
    verdicts = tuple(verdicts) if isinstance(verdicts, list) else (verdicts,)
    if not verdicts or not {*verdicts} <= {*kinds}:
        raise ValueError(f"an explanation is of one of {', '.join(kinds)}, or a list of them (got {entry['of']!r})")
    return Explanation(tuple(entry["runs"]), entry["why"], verdicts)


def _listed(word: str, names: list[str]) -> str:
    return f"{word}: {', '.join(names)}" if names else ""


def _malformed(claim: Claim | Erratum) -> list[str]:
    if isinstance(claim, Erratum):
        effects = ", ".join(EFFECTS)
        return [] if claim.effect in EFFECTS else [f"effect is one of {effects} (got {claim.effect!r})"]
    faults = []
    if sum(map(bool, (claim.relation, claim.quantity, claim.table))) != 1:
        faults.append("needs either a quantity, a table or a relation")
    if claim.relation and (claim.printed is not None or claim.direction or claim.tolerance is not None):
        faults.append("a relation has no printed value, tolerance or direction")
    if claim.kind not in (DATA, THEOREM, STOPWATCH):
        faults.append(f"kind is one of {DATA}, {THEOREM}, {STOPWATCH} (got {claim.kind!r})")
    if claim.kind == STOPWATCH and not claim.why:
        faults.append("a stopwatch's claim needs the reason why it is not compared (why)")
    if claim.table and (claim.printed is not None or claim.direction):
        faults.append("a table holds its printed values itself, and has no direction")
    if claim.quantity and claim.printed is None:
        faults.append("a quantity needs the printed value")
    printed = [value for cell in claim.cells.values() for value in (cell.values() if isinstance(cell, dict) else [cell])]
    if any(isinstance(value, int | float) for value in printed) and claim.tolerance is None:
        faults.append("a printed number needs a tolerance")
    if claim.tolerance is not None and not claim.why:
        faults.append("a tolerance needs its reason (why)")
    explained = [(run, kind) for entry in claim.explanations for run in entry.runs for kind in entry.of]
    faults += [
        f"{run} has two explanations of {verdict!r}"
        for run, verdict in dict.fromkeys(explained)
        if explained.count((run, verdict)) > 1
    ]
    return faults


def printed(claims: list[Claim], notebook: str, data_set: str) -> dict[str, float]:
    """The numbers that papers print for a notebook's quantities on a data set."""
    cells = [cell for claim in claims if claim.notebook == notebook for cell in claim.cells.items()]
    # another claim may use the same quantity without a printed number for this data set
    pairs = [(plain_name(quantity), cell.get(data_set)) for quantity, cell in cells if quantity and isinstance(cell, dict)]
    return {name: value for name, value in pairs if name and isinstance(value, int | float)}
