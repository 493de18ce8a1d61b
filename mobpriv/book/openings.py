"""The opening of a page (answer, claims with verdicts, why it matters) and the sections below its notebook.

Authors write the answer and the short form of a claim; the build computes the rest from verdicts, findings and records.
"""

import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

from mobpriv.base.numbers import constant, counted, in_prose, shown
from mobpriv.book import sums
from mobpriv.book.claims import AGREES, BY_DEFINITION, IMPOSSIBLE, NOT_COMPARABLE, SCORED_VERDICTS, THEOREM, Erratum
from mobpriv.book.ledger import anchor, by_claim, worst_verdict
from mobpriv.book.runs import Registry, named
from mobpriv.book.verdicts import Verdict, data_set_title, enumerated, wording

_JUDGED = (*SCORED_VERDICTS, BY_DEFINITION, IMPOSSIBLE, NOT_COMPARABLE)
CLAIMS = 4  # the most that open a page
_ALL = '<a href="#the-paper-s-claims-on-this-page">{words}</a>'  # leads to the section of claims
WORDS, WORDS_OF_PART = (
    97,
    70,
)  # of an opening, whose last claims are left to the section of claims, so that the figure comes early


class Answer(NamedTuple):
    """The answer of a page, with its numbers."""

    says: str
    matters: str = ""  # why the answer matters


def opening(verdicts: Sequence[Verdict], answer: Answer | None, registry: Registry, words: int = WORDS) -> str:
    """The lines below a page's title in MyST, with the page's description; ``verdicts``: those of this notebook."""
    says, matters = (f"**{answer.says}**", answer.matters) if answer else ("", "")
    parts = [says, _claims(verdicts, registry, words - _words(f"{says} {matters}")), matters]
    lines = [part for part in parts if part]
    described = ["```{eval-rst}", ".. meta::", f"   :description: {answer.says}", "```", ""] if answer else []
    return "\n".join([*described, "::::{div} answer", "", *(f"{line}\n" for line in lines), "::::"]) if lines else ""


def closing(records: dict[str, dict | None], verdicts: str, findings: Sequence[str], errata: Sequence[Erratum]) -> str:
    """The sections below the notebooks of a page: further findings, ``verdicts``, the commands that repeat the runs, errata.

    ``records``: notebook -> the record of its embedded run.
    """
    parts = ["## What else we found\n\n" + "\n".join(f"- {text}" for text in findings) if findings else "", verdicts]
    if repeated := {notebook: record["provenance"] for notebook, record in records.items() if record}:
        parts.append(f"## Repeat this page\n\n{_repeat(repeated)}")
    if errata:
        parts.append(f"**Errata shown on this page:** {', '.join(f'[{e.id}](#{anchor(e)})' for e in errata)}.")
    return "\n\n".join(part for part in parts if part)


def path(titles: dict[str, str], verdicts: Sequence[Verdict], answers: dict[str, Answer], more: dict[str, str]) -> str:
    """The count of a chapter's claims and its pages (name -> title) with their answers; ``more``: pages of the supplement."""
    claims = sums.counts(verdict for verdict in verdicts if verdict.claim.notebook in titles | more)
    lines = [f"Our [verdicts](how-to-read.md) on {sums.in_words(claims)}.\n"] if claims else []
    lines.append(listed(titles, answers))
    if more:
        lines.append("In the [supplement](supplement.md):\n")
        lines += [f"- [{text}](notebooks/{notebook}.ipynb)" for notebook, text in more.items()]
    return "\n".join(lines)


def listed(titles: dict[str, str], answers: dict[str, Answer]) -> str:
    """A list of pages (name -> title) with their answers; links are relative to ``book/``."""
    lines = []
    for notebook, text in titles.items():
        answer = answers.get(notebook)
        between = "" if text.endswith("?") else ":"
        lines.append(f"- [{text}](notebooks/{notebook}.ipynb)" + (f"{between} {answer.says}" if answer else ""))
    return "\n".join(lines) + "\n"


def _claims(verdicts: Sequence[Verdict], registry: Registry, words: int) -> str:
    """A table of the claims that have a short form, as many as fit into ``words``, but one at least; those by construction last.

    Its caption says how many claims it leaves to the section of claims; without a short form, a line gives their number.
    """
    shown_ones = by_claim(v for v in verdicts if v.claim.short and v.verdict in _JUDGED)
    ordered = sorted(shown_ones, key=lambda claim_verdicts: all(one.verdict == BY_DEFINITION for one in claim_verdicts))
    rows = [
        f'<tr><td>{escape(claim_verdicts[0].claim.short.strip())}</td><td data-label="we find">{"<br>".join(_outcomes(claim_verdicts, registry))}</td></tr>'
        for claim_verdicts in ordered
    ]
    all_claims = len(by_claim(verdicts))
    if not rows:
        of_all = _ALL.format(words=f"{counted(all_claims, 'claim', 'claims')} of the paper")
        return f"See our verdict{'s' if all_claims > 1 else ''} on {of_all}." if all_claims else ""
    head, caption = "<thead><tr><th>the paper says</th><th>we find</th></tr></thead>", "{shown} of {all} claims"
    fitting, left = [], words - _words(head) - _words(caption)
    for row in rows:
        if _words(row) <= left:
            fitting.append(row)
            left -= _words(row)
    fitting = fitting or rows[:1]
    of_all = _ALL.format(words=caption.format(shown=len(fitting), all=all_claims))
    of_all = f"<caption>{of_all}</caption>" if len(fitting) < all_claims else ""
    return f'<table class="in-short">{of_all}{head}<tbody>{"".join(fitting)}</tbody></table>'


def _words(html: str) -> int:
    return len(re.sub("<[^>]+>", " ", html).split())


def _outcomes(verdicts: list[Verdict], registry: Registry) -> list[str]:
    """The verdicts on a claim: one phrase for all data sets that share it."""
    phrases: dict[str, list[str]] = {}
    for data_set, variants in _by_data_set_and_variant(verdicts, registry).items():
        phrases.setdefault(_phrase(variants, registry), []).append(data_set)
    return [escape(phrase.format(on=_on(names))) for phrase, names in phrases.items()]


def _by_data_set_and_variant(verdicts: Iterable[Verdict], registry: Registry) -> dict[str, dict[str, Verdict]]:
    """Title of a data set -> variant -> verdict, real data first; a table has the verdict of its worst cell."""
    by_title: dict[str, dict[str, Verdict]] = {}
    for verdict in sorted(verdicts, key=lambda v: _is_synthetic(v, registry)):
        run = registry.runs.get(verdict.dataset)
        data_set = registry.title(run.data) if run and run.data else data_set_title(registry, verdict.dataset)
        variants, variant = by_title.setdefault(data_set, {}), run.variant if run else "text"
        variants[variant] = worst_verdict([variants.get(variant, verdict), verdict])
    return by_title


def _is_synthetic(verdict: Verdict, registry: Registry) -> bool:
    run = registry.runs.get(verdict.dataset)
    return bool(run and (run.synthetic or run.made_up))


def _phrase(variants: dict[str, Verdict], registry: Registry) -> str:
    """The verdicts on a data set in words; ``{on}`` is filled with its name."""
    text, program = variants.get("text"), variants.get("program")
    if text and program and text.verdict != program.verdict:
        if program.verdict == AGREES:
            return f"{wording(program, registry)} {{on}} only with the author's code (as described{_numbers(text)}: {wording(text, registry)})"
        if text.verdict == AGREES:
            return f"{wording(text, registry)} {{on}} as described{_numbers(text)}; with the author's code{_numbers(program)}: {wording(program, registry)}"
        return f"{wording(text, registry)} {{on}} as described{_numbers(text)}, {wording(program, registry)} with the author's code{_numbers(program)}"
    only = text or program
    if only.verdict == BY_DEFINITION or only.claim.kind == THEOREM:
        return wording(only, registry)  # independent of the data
    return f"{wording(only, registry)} {{on}}{_numbers(only)}"


def _numbers(verdict: Verdict) -> str:
    """Our number and the printed one, if the claim has a single number."""
    if verdict.value is None or verdict.claim.table:
        return ""
    printed = "" if verdict.printed is None else f"; printed {constant(verdict.printed, verdict.unit)}"
    return f" ({in_prose(verdict.value, verdict.unit)}{printed})"


def _on(names: Sequence[str]) -> str:
    """ "on Cabspotting and the synthetic city", or "across data sets"."""
    return names[0] if names == ["across data sets"] else f"on {enumerated([*map(named, names)])}"


def _repeat(provenances: dict[str, dict]) -> str:
    commands = [
        f"`{one['command']}` ({shown(max(round(one['seconds']), 1))}\u00a0s{'' if one['data'] else ', needs no data'})"
        for one in provenances.values()
    ]
    taking = [name for name, one in provenances.items() if one["data"]]
    own = f"For [a table of your own](../own-data.md), run `mobpriv run {taking[0]} --data FILE`" if taking else ""
    own += ", or the other notebooks in the same way" if len(taking) > 1 else ""
    times = "These times are for" if len(commands) > 1 else "The time is for"
    times = f"{times} the book's own synthetic data." if taking else ""
    return " ".join(filter(None, [f"To repeat this page, run {enumerated(commands)}.", times, own and f"{own}."]))
