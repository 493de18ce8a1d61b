"""The answer that a page opens with: the verdicts on its headline claims in words, the main disagreement's cause, the command.

All of it is made from verdicts, findings and records; nothing is typed by hand but a claim in few words and the explanations.
"""

import math
import re
from collections.abc import Iterable, Sequence

from mobpriv.book import sums
from mobpriv.book.claims import AGREES, BY_DEFINITION, DISAGREES, IMPOSSIBLE, KINDS, NOT_COMPARABLE, THEOREM
from mobpriv.book.runs import Registry, named
from mobpriv.book.verdicts import Verdict, said, title
from mobpriv.numbers import beside, extent, shown

JUDGED = (*KINDS, BY_DEFINITION, IMPOSSIBLE, NOT_COMPARABLE)


def opening(
    notebook: str, verdicts: Sequence[Verdict], findings: Sequence[str], errata: int, record: dict | None, registry: Registry
) -> str:
    """The lines under a page's title, in MyST; ``verdicts`` and ``errata``: of this notebook; ``record``: of its embedded run."""
    judged = [verdict for verdict in verdicts if verdict.verdict in JUDGED]
    tested, given = (_headlines(judged, registry, by_definition) for by_definition in (False, True))
    findings = list(findings)
    if tested or not findings:
        lines = [f"**The answer.** {' '.join([*tested, *given])}"] if tested or given else []
    else:
        lines = [f"**What we found.** {findings.pop(0)}"]
        findings += [" ".join(given)] if given else []
    lines += findings
    if errata:
        lines.append(
            f"**{errata} {'erratum is' if errata == 1 else 'errata are'} demonstrated here**, {'' if errata == 1 else 'each '}by a test of its own."
        )
    lines += _main_cause([verdict for verdict in judged if verdict.claim.short], registry)
    if record:
        lines.append(_repeat(notebook, record))
    return "\n".join(["::::{div} answer", "", *(f"{line}\n" for line in lines), "::::"]) if lines else ""


def path(titles: dict[str, str], verdicts: Sequence[Verdict], findings: dict[str, Sequence[str]], registry: Registry) -> str:
    """The sum of a chapter's claims, and its pages (name -> title), each with its first answer in a line; seen from ``book/``."""
    claims = sums.counts(verdict for verdict in verdicts if verdict.claim.notebook in titles)
    lines = [f"{sums.in_words(claims)}.\n"] if claims else []
    for notebook, text in titles.items():
        own = [v for v in verdicts if v.claim.notebook == notebook and v.verdict in JUDGED]
        tested, given = (_headlines(own, registry, by_definition) for by_definition in (False, True))
        answer = next(iter([*tested, *findings.get(notebook, ()), *given]), "")
        lines.append(f"- [{text}](notebooks/{notebook}.ipynb)" + (f": {answer}" if answer else ""))
    return "\n".join(lines) + "\n"


def _headlines(verdicts: Iterable[Verdict], registry: Registry, by_definition: bool) -> list[str]:
    """The claims with a few words of their own: those that could come out otherwise, or those that could not, which answer nothing."""
    of = {}
    for verdict in verdicts:
        if verdict.claim.short:
            of.setdefault(verdict.claim.id, []).append(verdict)
    return [_headline(v, registry) for v in of.values() if all(one.verdict == BY_DEFINITION for one in v) == by_definition]


def _headline(verdicts: list[Verdict], registry: Registry) -> str:
    """A claim in few words, and what came of it: one phrase for all data sets that share it."""
    phrases = {}
    for data_set, readings in by_data_set(verdicts, registry).items():
        phrases.setdefault(_phrase(readings, registry), []).append(data_set)
    return f"*{verdicts[0].claim.short.strip()}*: " + "; ".join(p.format(on=_on(names)) for p, names in phrases.items()) + "."


def by_data_set(verdicts: Iterable[Verdict], registry: Registry) -> dict[str, dict[str, Verdict]]:
    """Title of a data set -> reading -> its verdict, real data first; of a table its worst cell stands for all."""
    found = {}
    for verdict in sorted(verdicts, key=lambda v: _is_synthetic(v, registry)):
        run = registry.runs.get(verdict.dataset)
        data_set = registry.title(run.data) if run and run.data else title(registry, verdict.dataset)
        readings, reading = found.setdefault(data_set, {}), run.reading if run else "text"
        if reading not in readings or _order(verdict) > _order(readings[reading]):
            readings[reading] = verdict
    return found


def _is_synthetic(verdict: Verdict, registry: Registry) -> bool:
    run = registry.runs.get(verdict.dataset)
    return bool(run and (run.synthetic or run.made_up))


def _order(verdict: Verdict) -> int:
    return KINDS.index(verdict.verdict) if verdict.verdict in KINDS else -1


def _phrase(readings: dict[str, Verdict], registry: Registry) -> str:
    """What came out on a data set; ``{on}`` stands for its name."""
    text, program = readings.get("text"), readings.get("program")
    if text and program and text.verdict != program.verdict:
        if program.verdict == AGREES:
            return f"reproduced {{on}} only by the author's program (by the paper's text {_found(text, registry)})"
        if text.verdict == AGREES:
            return f"reproduced {{on}} by the paper's text (by the author's program {_found(program, registry)})"
        return f"{said(text, registry)} {{on}} by the paper's text{_beside(text, registry)}, {said(program, registry)} by the author's program{_beside(program, registry)}"
    only = text or program
    if only.verdict == BY_DEFINITION or only.claim.kind == THEOREM:
        return said(only, registry)  # no data are needed for that
    return f"{said(only, registry)} {{on}}{_beside(only, registry)}"


def _beside(verdict: Verdict, registry: Registry) -> str:
    """Our number, where it is another one than the paper's."""
    return f" ({_found(verdict, registry)})" if verdict.verdict not in (AGREES, BY_DEFINITION) and _has_number(verdict) else ""


def _found(verdict: Verdict, registry: Registry) -> str:
    """Our number with its interval and n, where there is a single one; else the verdict."""
    if not _has_number(verdict):
        return said(verdict, registry)
    small = beside(extent(verdict.low, verdict.high, verdict.unit), verdict.n)
    return "we find " + ", ".join([shown(verdict.value, verdict.unit), *small])


def _has_number(verdict: Verdict) -> bool:
    return verdict.value is not None and not verdict.claim.table


def _on(names: Sequence[str]) -> str:
    """ "on Cabspotting and the synthetic city"; a comparison of data sets stands across them."""
    *first, last = map(named, names)
    return (
        "across data sets" if names == ["across data sets"] else "on " + (f"{', '.join(first)} and {last}" if first else last)
    )


def _main_cause(headlines: Sequence[Verdict], registry: Registry) -> list[str]:
    """The first sentence of the explanation of the largest disagreement, real data before made-up ones; of two alike the first."""
    disagreeing = [v for v in headlines if v.verdict in (DISAGREES, IMPOSSIBLE) and v.explanation]
    if not disagreeing:
        return []
    main = max(disagreeing, key=lambda v: (not _is_synthetic(v, registry), _distance(v)))
    cause = re.split(r"(?<=[.?!])\s+(?=[A-Z{])", main.explanation.strip())[0]
    return [f"**The main disagreement**, {main.claim.id} {_on([title(registry, main.dataset)])}. {cause}"]


def _distance(verdict: Verdict) -> float:
    """How far our number lies from the printed one, in tolerances.

    Where the tolerance is 0 (a count, a rank), half the width of our interval stands for it, and without an interval any difference
    is infinite. What has no two numbers to compare, a relation or a bound, counts as 0: behind everything measured.
    """
    if not isinstance(verdict.printed, int | float) or verdict.value is None:
        return 0.0
    half = (verdict.high - verdict.low) / 2 if verdict.low is not None and verdict.high is not None else 0.0
    unit, gap = verdict.claim.tolerance or half, abs(verdict.value - verdict.printed)
    return gap / unit if 0 < unit < math.inf else math.inf


def _repeat(notebook: str, record: dict) -> str:
    seconds = shown(max(round(record["provenance"]["seconds"]), 1))
    command = record["provenance"]["command"]
    if not record["provenance"]["data"]:
        return f"**Repeat it:** `{command}` ({seconds}\u00a0s; it needs no data)."
    own = f"or on [a table of your own](../own-data.md): `mobpriv run {notebook} --data FILE`"
    return f"**Repeat it:** `{command}` ({seconds}\u00a0s on the embedded data), {own}."
