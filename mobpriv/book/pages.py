"""What the build writes into the book: provenance on every executed page, the ledger, the errata and the score."""

from collections.abc import Collection, Sequence
from html import escape

from mobpriv.book.claims import AGREES, BY_DEFINITION, DIRECTION, DISAGREES, KINDS, UNDECIDED, Claim, Erratum
from mobpriv.book.runs import Registry
from mobpriv.book.verdicts import ACROSS, NO_DATA, QUICK, Verdict, title
from mobpriv.numbers import extent, shown, with_extent

SYMBOLS = {AGREES: "✓", DIRECTION: "↗", UNDECIDED: "?", DISAGREES: "✗", BY_DEFINITION: "≡"}
CLASSES = {
    AGREES: "agrees",
    DIRECTION: "direction",
    UNDECIDED: "undecided",
    DISAGREES: "disagrees",
    BY_DEFINITION: "definition",
}
SHOWN = '<span class="verdict agrees">✓ true</span>'


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
    names = "; ".join(registry.title(run) for run in stale)  # a title may hold a comma
    return [
        ":::{admonition} Stale results",
        ":class: stale",
        f"The code behind these numbers has changed since they were computed: {names}. "
        "They stand as they were until they are run again ([status of the results](../status.md)).",
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
        left_out = "; ".join(f"{rule}: {shown(count)}" for rule, count in data["left_out"].items()) or "nothing"
    return {
        "data set": described,
        "SHA-256": digest,
        "left out": left_out,
        "selection": record["selection"] or "–",
        "parameters": ", ".join(f"`{name}={value}`" for name, value in record["parameters"].items()) or "–",
        "repeat it": f"`{record['command']}`",
        "mobpriv": f"{record['mobpriv']}, commit {record['commit']}",
        "packages": ", ".join(f"{name} {version}" for name, version in record["packages"].items()),
        "run took": shown(round(record["seconds"]), "s"),
    }


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


# --------------------------------------------------------------------------------------------------------- ledger, score
def badge(verdict: str) -> str:
    """The verdict as text with a symbol; colour only repeats what the text says."""
    if not verdict:
        return '<span class="verdict open">– nothing stated</span>'
    return f'<span class="verdict {CLASSES.get(verdict, "untestable")}">{SYMBOLS.get(verdict, "○")} {verdict}</span>'


def ours(verdict: Verdict) -> str:
    """What came out here: the value, or the results that a relation compares."""
    if verdict.value is None:
        return "; ".join(f"{words}: {number}" for words, number in verdict.parts)
    return with_extent(verdict.value, verdict.low, verdict.high, verdict.n, verdict.unit)


def link(notebook: str, figure: str, text: str) -> str:
    """A link to the figure's label, or to the notebook's page where the claim names no figure."""
    return f"[{text}](#{figure})" if figure else f"[{text}](notebooks/{notebook}.ipynb)"


def fold(summary: str, lines: Sequence[str]) -> str:
    """Programs behind a fold: a block of its own, for a fold cannot stand within a paragraph."""
    code = "<br>".join(f"<code>{escape(line)}</code>" for line in lines)
    return f"<details><summary>{summary}</summary>{code}</details>"


def ledger_page(verdicts: list[Verdict], registry: Registry) -> str:
    """The table of all claims: one row per claim and data set, and below it the reasons of the verdicts that have one."""
    lines = ["::::{div} ledger full-width", "", _row(["claim", "data set", "verdict", "paper", "ours"]), _row(["---"] * 5)]
    last = None
    for cells in _by_row(verdicts):
        claim, dataset = cells[0].claim, title(registry, cells[0].dataset)
        first = claim.id != last
        text = f"**{claim.id}** {claim.claim.strip()} {link(claim.notebook, claim.figure, claim.place)}" if first else ""
        lines.append(_row([text, dataset, badge(_together(cells)), *_paper_and_ours(cells)]))
        last = claim.id
    lines += ["::::", ""]
    reasons = _reasons(verdicts, registry)
    known = [text for kind, text in reasons if kind == BY_DEFINITION]
    causes = [text for kind, text in reasons if kind != BY_DEFINITION]
    lines += ["## Where we disagree, and the likely cause", "", *causes, ""] if causes else []
    lines += ["## What could not come out otherwise", "", *known, ""] if known else []
    lines += ["## How each claim is tested", ""]
    for claim in {verdict.claim.id: verdict.claim for verdict in verdicts}.values():
        tested = [v for v in verdicts if v.claim.id == claim.id]
        lines += [f"- **{claim.id}**: {_test_in_words(claim, tested)}", "", f"  {fold('tested as', claim.tests)}", ""]
    return "\n".join(lines) + "\n"


def _reasons(verdicts: Sequence[Verdict], registry: Registry) -> list[tuple[str, str]]:
    """(verdict, line) of every explanation, once for all data sets that share it."""
    shared = {}
    for cells in _by_row(verdicts):
        for kind, why in _explained(cells):
            shared.setdefault((cells[0].claim.id, kind, why), []).append(title(registry, cells[0].dataset))
    return [
        (kind, f"- **{name}**, {'; '.join(titles)}: " + (f"{badge(kind)} " if kind != DISAGREES else "") + why)
        for (name, kind, why), titles in shared.items()
    ]


def _by_row(verdicts: Sequence[Verdict]) -> list[list[Verdict]]:
    """The verdicts of a claim on a data set together: of a table there are several."""
    rows = {}
    for verdict in verdicts:
        rows.setdefault((verdict.claim.id, verdict.dataset), []).append(verdict)
    return list(rows.values())


def _together(cells: list[Verdict]) -> str:
    """The verdict of a row: the worst of its cells."""
    found = {cell.verdict for cell in cells}
    return next((kind for kind in reversed(KINDS) if kind in found), cells[0].verdict)


def _explained(cells: list[Verdict]) -> list[tuple[str, str]]:
    """(verdict, why) of a row, each once."""
    found = [(cell.verdict, cell.explanation.strip()) for cell in cells if cell.explanation]
    return list(dict.fromkeys(found)) + [
        (BY_DEFINITION, reason) for reason in dict.fromkeys(_reason(cell) for cell in cells if cell.verdict == BY_DEFINITION)
    ]


def _reason(verdict: Verdict) -> str:
    reason = verdict.claim.by_definition
    text = (reason[verdict.dataset] if isinstance(reason, dict) else reason).strip()
    return f"{text[0].upper()}{text[1:]}."


def _paper_and_ours(cells: list[Verdict]) -> tuple[str, str]:
    if not cells[0].claim.table:
        (only,) = cells
        stated = "relation" if only.claim.relation else "–"
        return shown(only.printed, only.unit) if only.printed is not None else stated, ours(only) or "–"
    every = "; ".join(f"{cell.words} {shown(cell.printed, cell.unit)}" for cell in cells)
    if all(cell.value is None for cell in cells):
        return every, "–"
    agreeing = sum(cell.verdict in (AGREES, BY_DEFINITION) for cell in cells)
    counted = f"{agreeing} of {len(cells)} cells agree"
    return every, "; ".join([counted, *(f"{cell.words}: {ours(cell)}{_unless_agreeing(cell)}" for cell in cells)])


def _unless_agreeing(cell: Verdict) -> str:
    return "" if cell.verdict in (AGREES, BY_DEFINITION) else f" ({cell.verdict})"


def verdicts_in_words(verdicts: Sequence[Verdict], registry: Registry) -> str:
    """What agrees, what does not and why: one paragraph a claim, one sentence a data set."""
    lines = ["## What agrees, what does not, and why", ""]
    for claim in {verdict.claim.id: verdict.claim for verdict in verdicts}.values():
        rows = _by_row([v for v in verdicts if v.claim.id == claim.id and v.verdict])
        lines += [f"**{claim.id}** ({claim.place}). {claim.claim.strip()}", ""]
        lines += [f"- {sentence(cells, registry)}" for cells in rows]
        lines.append("")
    return "\n".join(lines)


def sentence(cells: list[Verdict], registry: Registry) -> str:
    """The verdict on one data set with the numbers it rests on, and its explanation where it has one; of a table all cells."""
    verdict = _together(cells)
    if verdict.startswith("not testable") or verdict == QUICK:
        return badge(verdict)
    agreeing = sum(cell.verdict in (AGREES, BY_DEFINITION) for cell in cells)
    counted = f", {agreeing} of {len(cells)} cells agree" if cells[0].claim.table else ""
    found = ["".join(_numbers(cell)) + (_unless_agreeing(cell) if counted else "") for cell in cells]
    why = " ".join(text for _, text in _explained(cells))
    return f"{badge(verdict)} {title(registry, cells[0].dataset)}{counted}: {'; '.join(found)}. {why}".strip()


def _numbers(verdict: Verdict) -> list[str]:
    """The numbers that a verdict rests on; where it rests on a direction, the direction and whether it holds."""
    if verdict.value is None:
        return ["; ".join(f"{words}: {number}" for words, number in verdict.parts)]
    name = f"{verdict.words}: " if verdict.claim.table else ""
    paper = f"the paper has {shown(verdict.printed, verdict.unit)}, " if verdict.printed is not None else ""
    found = [f"{name}{paper}we find {ours(verdict)}"]
    if verdict.verdict == DIRECTION:
        found.append(f". The direction holds, also at the ends of the intervals: {verdict.test_here}")
    if verdict.verdict == UNDECIDED:
        if verdict.test:
            found.append(f". At the ends of the intervals the direction turns: {verdict.test_here}")
        between = extent(verdict.low, verdict.high, verdict.unit)
        found.append(f". The printed number lies in our interval, {between}: the users at hand do not tell the two apart")
    return found


def _test_in_words(claim: Claim, tested: Sequence[Verdict]) -> str:
    test = next((v.test for v in tested if v.test), "")
    if claim.relation:
        return f"it agrees where {test}." if test else "on no data set here."
    words = list(dict.fromkeys(v.words for v in tested if v.words))
    parts = ["; ".join(words)]
    if claim.tolerance is not None:
        unit = next((v.unit for v in tested if v.words), "")
        allowed = f"within {shown(claim.tolerance, 'points' if unit == 'share' else unit)} of" if claim.tolerance else "exactly"
        parts.append(f"{allowed} the printed value ({claim.why.strip()})")
    if test:
        parts.append(f"the direction: {test}")
    return "; ".join(parts) + "."


def score_page(
    verdicts: list[Verdict], errata: list[Erratum], registry: Registry, rough: Collection[str] = (), stale: int = 0
) -> str:
    """How many verdicts of each kind, per data set; ``rough``: runs that were quick; ``stale``: how many results are.

    What is true by definition stands apart: it says nothing of the data.
    """
    datasets = {v.dataset for v in verdicts if v.verdict in KINDS}
    order = [name for name in (*registry.runs, ACROSS, NO_DATA) if name in datasets]
    lines = ["::::{div} score", "", _row(["data set", *(badge(kind) for kind in KINDS)])]
    lines.append(_row(["---", *[":-:"] * len(KINDS)]))
    for dataset in order:
        counts = [sum(v.dataset == dataset and v.verdict == kind for v in verdicts) for kind in KINDS]
        quick = " (quick run: not a result)" if dataset in rough else ""
        lines.append(_row([title(registry, dataset) + quick, *(str(count) for count in counts)]))
    claims = len({v.claim.id for v in verdicts})
    others = sum(v.verdict.startswith("not testable") for v in verdicts)
    skipped = sum(v.verdict == QUICK for v in verdicts)
    known = sum(v.verdict == BY_DEFINITION for v in verdicts)
    lines += [
        "::::",
        "",
        _counted(claims, "claim tested", "claims tested")
        + (f"; {_counted(known, 'verdict', 'verdicts')} true by definition, not in the table" if known else "")
        + (f"; {_counted(others, 'statement needs', 'statements need')} data we could not obtain" if others else "")
        + (f"; {skipped} not judged in this quick build" if skipped else "")
        + "; "
        + _counted(len(errata), "erratum", "errata")
        + (" not demonstrated in this quick build" if rough else " demonstrated")
        + (f"; {_counted(stale, 'result', 'results')} on real data older than the code ([status](status.md))" if stale else "")
        + ".",
    ]
    return "\n".join(lines) + "\n"


def status_page(
    records: dict[str, dict[str, dict]], registry: Registry, stale: Collection[tuple[str, str]], titles: dict[str, str]
) -> str:
    """Every result at hand: by which code, how long it took, and whether that code is still today's; ``titles`` of the pages."""
    total = sum(len(records[run.name]) for run in registry.runs.values() if run.file)
    lines = [f"Of {total} results on real data {len(stale)} {'is' if len(stale) == 1 else 'are'} stale.", ""]
    lines += [_row(["data set", "page", "code", "commit", "run took"]), _row(["---"] * 5)]
    for run, entries in records.items():
        for name, record in entries.items():
            made = record["provenance"]
            quick = "quick run" if made["parameters"].get("quick") else "as today"
            state = '<span class="verdict undecided">stale</span>' if (run, name) in stale else quick
            page = f"[{titles.get(name, name)}](notebooks/{name}.ipynb)"
            lines.append(_row([registry.title(run), page, state, made["commit"], shown(round(made["seconds"]), "s")]))
    return "\n".join(lines) + "\n"


def _counted(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


def errata_page(errata: list[Erratum]) -> str:
    lines = ["::::{div} errata", "", _row(["where", "what is wrong or left out", "what we do", "shown by"]), _row(["---"] * 4)]
    for e in errata:
        shown_by = f"{SHOWN} {link(e.notebook, e.figure, 'demonstration')}"
        lines.append(_row([f"**{e.id}** {e.paper}, {e.place}", e.wrong.strip(), e.decision.strip(), shown_by]))
    tests = fold("tested as", [f"{e.id}: {e.demonstration}" for e in errata])
    return "\n".join([*lines, "::::", "", tests, ""])
