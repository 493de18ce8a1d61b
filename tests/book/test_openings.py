"""A page opens with its answer and the paper's claims; what else the book found, its errata and the command stand below."""

import re
from collections import Counter
from contextlib import nullcontext

import pytest

from mobpriv.base.numbers import in_prose, shown
from mobpriv.book import openings, results, runs
from mobpriv.book.claims import (
    AGREES,
    BY_DEFINITION,
    DIRECTION,
    DISAGREES,
    IMPOSSIBLE,
    Claim,
    Erratum,
    Finding,
    LedgerError,
    findings,
    read,
)
from mobpriv.book.openings import Answer
from mobpriv.book.quantities import names
from mobpriv.book.verdicts import ACROSS, ANSWER, BRIEF, FINDING, NO_DATA, Verdict, finding_texts

REGISTRY = runs.read(results.ROOT)
SHORT = "AP-Attack finds most"
RECORD = {"provenance": {"seconds": 12.4, "command": "mobpriv run nb", "data": {"name": "city"}}}


def claim(name="T1", short=SHORT, **fields) -> Claim:
    return Claim(**{"id": name, "paper": "thesis", "place": "§1", "claim": "c", "notebook": "nb", "short": short} | fields)


def opened(*verdicts, answer=None) -> str:
    return openings.opening(verdicts, answer, REGISTRY).replace("\u00a0", " ").replace("&#x27;", "'")


def row(short: str, *phrases: str) -> str:
    return f'<tr><td>{short}</td><td data-label="we find">{"<br>".join(phrases)}</td></tr>'


def test_a_page_opens_with_its_answer_the_claims_and_why_it_matters():
    text = opened(Verdict(claim(), "geolife", AGREES), answer=Answer("Half are found.", "Do not publish."))
    assert ":description: Half are found.\n" in text
    answer, table, why = (text.index(part) for part in ("**Half are found.**", "<table", "Do not publish."))
    assert answer < table < why
    assert row(SHORT, "reproduced on GeoLife") in text


def test_an_opening_has_as_many_claims_as_leave_the_figure_near():
    verdicts = [Verdict(claim(f"T{i}", f"Claim {i} {'word ' * 10}end"), "geolife", AGREES) for i in range(4)]
    texts = [opened(*verdicts, answer=Answer("word " * n)) for n in (10, 26, 60, 120)]
    assert [text.count("<tr><td>") for text in texts] == [4, 3, 1, 1]
    captions = [re.findall('<caption><a href="#the-paper-s-claims-on-this-page">(.*?)</a>', text) for text in texts]
    assert captions == [[], ["3 of 4 claims"], ["1 of 4 claims"], ["1 of 4 claims"]]


def test_a_page_without_an_answer_or_claims_opens_with_nothing():
    assert opened() == ""


@pytest.mark.parametrize(
    "kept_back", [Verdict(claim(short=""), "city", AGREES), Verdict(claim(), "mdc", "not testable without MDC")]
)
def test_a_page_whose_claims_do_not_open_it_says_how_many_it_has(kept_back):
    text = opened(kept_back, answer=Answer("Half are found.", "Do not publish."))
    assert '<a href="#the-paper-s-claims-on-this-page">1 claim of the paper</a>' in text
    assert "<table" not in text


CALLERS = "Cabspotting with simulated calls and Tuscany's boundaries with synthetic people"


@pytest.mark.parametrize(
    ("fields", "judged", "phrases"),
    [
        # one phrase for all data sets that share it, real data first, people who are made up on real boundaries behind them
        (
            {},
            dict.fromkeys(("city", "cabspotting", "geolife"), AGREES),
            ["reproduced on Cabspotting and GeoLife", "holds on the synthetic city"],
        ),
        ({}, dict.fromkeys(("boundaries", "callers"), AGREES), [f"holds on {CALLERS}"]),
        ({}, {ACROSS: AGREES}, ["reproduced across data sets"]),
        ({}, {NO_DATA: AGREES}, ["reproduced on the worked example"]),
        # the city is not the paper's
        ({"relation": "cabspotting.rate < city.rate"}, {ACROSS: AGREES}, ["holds across data sets"]),
        ({"kind": "theorem"}, {NO_DATA: AGREES}, ["correct"]),
        ({"kind": "theorem"}, {NO_DATA: DISAGREES}, ["incorrect"]),
        ({"paper": "joint"}, {"cabspotting": AGREES}, ["holds on Cabspotting"]),  # a paper's own data are named in the registry
        ({"paper": "joint"}, {"cabspotting": DISAGREES}, ["does not hold on Cabspotting"]),
    ],
)
def test_what_came_of_a_claim_in_a_phrase(fields, judged, phrases):
    assert row(SHORT, *phrases) in opened(*(Verdict(claim(**fields), run, outcome) for run, outcome in judged.items()))


NUMBERS = "(46 %; printed 50 %)"


@pytest.mark.parametrize(
    ("text", "program", "phrase"),
    [
        (AGREES, AGREES, f"reproduced on GeoLife {NUMBERS}"),
        (DISAGREES, AGREES, f"reproduced on GeoLife only with the author's code (as described {NUMBERS}: not reproduced)"),
        (AGREES, DISAGREES, f"reproduced on GeoLife as described {NUMBERS}; with the author's code {NUMBERS}: not reproduced"),
        (DISAGREES, DISAGREES, f"not reproduced on GeoLife {NUMBERS}"),
        (DIRECTION, DIRECTION, f"only the direction is reproduced on GeoLife {NUMBERS}"),
        (
            DIRECTION,
            DISAGREES,
            f"only the direction is reproduced on GeoLife as described {NUMBERS}, not reproduced with the author's code {NUMBERS}",
        ),
        (BY_DEFINITION, BY_DEFINITION, "holds by construction"),
        (IMPOSSIBLE, IMPOSSIBLE, f"cannot hold on GeoLife {NUMBERS}"),
    ],
)
def test_two_readings_of_one_data_set_in_one_phrase(text, program, phrase):
    number = {"value": 0.457, "printed": 0.5, "unit": "share"}
    verdicts = [Verdict(claim(), "geolife", text, **number), Verdict(claim(), "geolife-program", program, **number)]
    assert row(SHORT, phrase) in opened(*verdicts)


def test_the_worst_cell_of_a_table_stands_for_it():
    tabled = claim(table={"a": {}, "b": {}})
    text = opened(Verdict(tabled, "city", AGREES, value=1), Verdict(tabled, "city", DISAGREES, value=2, explanation="Why."))
    assert row(SHORT, "does not hold on the synthetic city") in text


def test_what_is_true_by_definition_stands_behind_what_could_have_come_out_otherwise():
    given = [Verdict(claim("T1", "It ends"), run, BY_DEFINITION) for run in ("cabspotting", "city")]
    text = opened(*given, Verdict(claim("T2", "It finds most"), "city", AGREES))
    assert row("It finds most", "holds on the synthetic city") + row("It ends", "holds by construction") in text


def test_below_a_notebook_stand_findings_verdicts_errata_and_the_command():
    erratum = Erratum("E3.7", "thesis", "§1", "w", "d", "nb", "True")
    text = openings.closing({"nb": RECORD}, "CARDS", ["Silence costs 30 %.", "Noise costs more."], [erratum])
    parts = [
        "- Silence costs 30 %.\n- Noise costs more.",
        "CARDS",
        "`mobpriv run nb` (12\u00a0s)",
        "[E3.7](#erratum-e3-7)",
    ]
    assert sorted(parts, key=text.index) == parts
    assert "mobpriv run nb --data FILE" in text
    without = openings.closing({"nb": {"provenance": {**RECORD["provenance"], "data": None}}}, "", [], [])
    assert "--data" not in without
    assert openings.closing({"nb": None}, "", [], []) == ""


def test_below_several_notebooks_stands_the_command_of_each():
    needs_none = {"provenance": {"seconds": 0.2, "command": "mobpriv run other", "data": None}}
    text = openings.closing({"nb": RECORD, "other": needs_none, "never run": None}, "", [], [])
    assert "run `mobpriv run nb` (12\u00a0s) and `mobpriv run other` (1\u00a0s, needs no data). These times" in text
    assert text.endswith("run `mobpriv run nb --data FILE`.")
    assert openings.closing({"nb": RECORD, "two": RECORD}, "", [], []).endswith("or the other notebooks in the same way.")


def test_a_path_gives_each_page_its_answer_and_names_those_of_the_supplement():
    titles, answers = {"nb": "Figure 1", "other": "Ours"}, {"other": Answer("Found.")}
    text = openings.path(titles, [Verdict(claim(), "city", AGREES)], answers, {"more": "Choices"})
    assert text.splitlines() == [
        *(
            "Our [verdicts](how-to-read.md) on 1 claim: 1 agrees.",
            "",
            "- [Figure 1](notebooks/nb.ipynb)",
            "- [Ours](notebooks/other.ipynb): Found.",
            "",
        ),
        *("In the [supplement](supplement.md):", "", "- [Choices](notebooks/more.ipynb)"),
    ]


def loss(value=0.3, low=0.2, high=0.4) -> dict:
    return {"nb": {"loss": {"value": value, "low": low, "high": high, "n": 9}}}


class TestFindings:
    NAMES = names({"nb": {"loss": ["share", "loss"], "change": ["points", "change"]}}, {}, REGISTRY.runs)

    def text_of(self, says: str, holds: str, results=None, kind=FINDING, quick_runs=(), **fields) -> str:
        """What is said of a finding."""
        judged = [Finding("nb", says, holds, **fields)], results or {"city": loss()}
        texts = finding_texts(*judged, REGISTRY, self.NAMES, kind=kind, quick_runs=quick_runs)
        return " ".join(texts.get("nb", [])).replace("\u00a0", " ")

    @pytest.mark.parametrize(
        ("says", "holds", "kind", "text"),
        [
            ("It costs {city.loss}.", "city.loss > 0.1", FINDING, "It costs 30 % (20 to 40 %, n = 9)."),
            ("It costs {city.loss}.", "city.loss > 0.1", BRIEF, "It costs 30 %."),
            ("It costs {city.loss}, or {city.loss}.", "city.loss > 0.1", ANSWER, "It costs 30 % (20 to 40 %), or 30 %."),
            ("It costs.", "city.loss > 0.25", BRIEF, "It costs. (In this sample only.)"),
        ],
    )
    def test_its_numbers_come_from_the_run(self, says, holds, kind, text):
        assert self.text_of(says, holds, kind=kind, answer=kind == ANSWER) == text

    @pytest.mark.parametrize(
        ("holds", "kind", "line"),
        [
            ("city.loss > 0.4", FINDING, "finding of nb"),
            ("geolife.loss > 0", FINDING, "finding of nb"),
            ("city.loss > 0.25", ANSWER, "an answer must hold for all values inside the intervals"),
        ],
    )
    def test_what_does_not_hold_stops_the_build_and_says_where(self, holds, kind, line):
        with pytest.raises(LedgerError, match=line):
            self.text_of("Silence is dear.", holds, kind=kind, answer=kind == ANSWER)

    @pytest.mark.parametrize(("of", "stops"), [("city.loss > 0.25 and city.loss > 0.35", False), ("city.loss > 0.1", True)])
    def test_what_it_calls_inconclusive_must_be_so(self, of, stops):
        with pytest.raises(LedgerError, match="is not inconclusive") if stops else nullcontext():
            assert self.text_of("It costs.", "city.loss > 0.1", inconclusive=of) == "It costs."

    def test_a_quick_run_finds_nothing(self):
        assert self.text_of("x", "city.loss > 0.4", quick_runs=["city"]) == ""

    def test_a_malformed_one(self, tmp_path):
        (tmp_path / "a.yml").write_text("paper: p\nclaims: []\nfindings: [{notebook: nb, says: x}]")
        with pytest.raises(
            LedgerError, match=r"a\.yml: a finding has notebook, says, holds, and may have inconclusive, answer, matters"
        ):
            findings(tmp_path)

    def test_what_is_so_in_the_sample_only_says_so(self):
        holds, results = "city.loss > 0.2 and city.loss > 0.25 and geolife.loss < 1", {"city": loss(), "geolife": loss()}
        text = self.text_of("It costs.", holds, results)
        assert text == "It costs. This finding holds in our sample, but not for all values inside the 95 % intervals."
        assert (
            self.text_of("It costs.", "city.loss > 0.25", of_cases=True) == "It costs."
        )  # of each case at hand the values decide

    def test_one_about_a_single_run_is_tested_on_the_others_that_have_its_quantities(self):
        results = {"city": loss(0.3, 0.21), "geolife": loss(0.3, 0.1), "cabspotting": loss(0.5, 0.4, 0.6)}
        others = {"callers": loss(0.1, 0.0, 0.15), "geolife-program": {"nb": {"other": 1}}}
        assert self.text_of("It costs.", "city.loss > 0.2", results | others) == (
            "It costs. This finding also holds on Cabspotting, is inconclusive on GeoLife "
            "and does not hold on Cabspotting with simulated calls."
        )
        # first where it holds; "but" only after that
        two = {"city": loss(0.3, 0.21), "cabspotting": loss(0.3, 0.1), "geolife": loss(0.5, 0.4, 0.6)}
        assert self.text_of("It costs.", "city.loss > 0.2", two) == (
            "It costs. This finding also holds on GeoLife, but is inconclusive on Cabspotting."
        )
        assert self.text_of("It costs.", "city.loss > 0.2", two | {"geolife": loss(0.1, 0.0, 0.15)}) == (
            "It costs. This finding is inconclusive on Cabspotting and does not hold on GeoLife."
        )
        # what is tested is the title, in bold, unless it names its own data
        text = self.text_of("**It costs.** A lot.", "city.loss > 0.2", two)
        assert "A lot. The statement in bold also holds on GeoLife, but is inconclusive on Cabspotting." in text
        text = self.text_of("**In the synthetic city it costs.** A lot.", "city.loss > 0.2", two)
        assert "The same statement also holds on GeoLife" in text
        # that it also holds is not said of a run that it names, but any other outcome is
        text = self.text_of("It costs, as on Cabspotting and GeoLife.", "city.loss > 0.2", results)
        assert text == "It costs, as on Cabspotting and GeoLife. This finding is inconclusive on GeoLife."

    def test_the_size_of_a_change_has_no_sign_and_the_interval_of_the_size(self):
        def of(high, kind):
            results = {"city": {"nb": {"change": {"value": -0.3, "low": -0.4, "high": high, "n": 9}}}}
            return self.text_of("It falls by {abs(city.change)}.", "city.change < 0", results, kind, answer=True)

        assert of(-0.2, ANSWER) == "It falls by 30 points (20 to 40 points)."
        with pytest.raises(LedgerError, match="its interval includes 0, so the text cannot state its sign"):
            of(0.1, BRIEF)

    def test_a_change_whose_interval_holds_0_is_inconclusive(self):
        results = {"city": {"nb": {"change": {"value": 0.03, "low": -0.01, "high": 0.07, "n": 9}}}}
        text = self.text_of("It changes {city.change}.", "city.change > -0.02", results, BRIEF)
        assert text == "It changes 3.0 points (inconclusive)."

    def test_every_sentence_of_the_landing_page_is_placed_there(self):
        landing = {f.notebook for f in findings(results.ROOT / "book" / "claims") if f.landing}
        placed = set(re.findall(r"\{\{ landing_(\w+) \}\}", (results.ROOT / "book" / "index.md").read_text("utf-8")))
        assert landing == placed

    @pytest.mark.parametrize(
        ("says", "copies", "line"),
        [("One.", 2, "nb has 2 answers: a page opens with one"), ("word " * 36, 1, "answer of nb: 36 words, at most 35")],
    )
    def test_a_page_has_one_short_answer(self, tmp_path, says, copies, line):
        entry = f"{{notebook: nb, says: '{says}', holds: 'True', answer: true}}"
        (tmp_path / "a.yml").write_text(f"paper: p\nclaims: []\nfindings: [{', '.join([entry] * copies)}]")
        with pytest.raises(LedgerError, match=line):
            findings(tmp_path)


def test_a_page_of_the_book_opens_with_an_answer_and_at_most_four_claims():
    entries = read(results.ROOT / "book" / "claims", Claim)
    short = [entry for entry in entries if entry.short]
    counted = Counter(entry.notebook for entry in short)
    assert max(counted.values()) <= openings.CLAIMS
    assert [entry.short for entry in short if entry.short[0].islower()] == [], "`short` begins with a capital letter"
    answered = {entry.notebook for entry in findings(results.ROOT / "book" / "claims") if entry.answer}
    notebooks = {path.stem for path in (results.ROOT / "notebooks").glob("*.ipynb")}
    assert notebooks == answered, "every notebook needs a finding with `answer: true` in book/claims"


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.435, "share", "44 %"),
        (0.4349, "share", "43 %"),
        (0.057, "share", "6 %"),
        (0.004, "share", "0.4 %"),
        (0.9934, "share", "99.3 %"),
        (1.284, "share", "128 %"),
        (1.0, "share", "100 %"),
        (0.0333, "points", "3.3 points"),
        (-0.453, "points", "−45 points"),
        (1.639, "", "1.6"),
        (0.09975, "", "0.1"),
        (536, "", "536"),
        (15759.0, "m", "15.8 km"),
    ],
)
def test_a_sentence_has_few_digits(value, unit, text):
    assert in_prose(value, unit).replace("\u00a0", " ") == text
    assert shown(0.6275, "share") == shown(0.6275000000000001, "share")  # one up to rounding
