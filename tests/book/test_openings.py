"""A page opens with its answer and the paper's claims; what else the book found, its errata and the command stand below."""

import re
from collections import Counter

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
)
from mobpriv.book.openings import Answer
from mobpriv.book.quantities import names
from mobpriv.book.verdicts import ACROSS, ANSWER, BRIEF, FINDING, NO_DATA, Verdict, told

REGISTRY = runs.read(results.ROOT)
RECORD = {"provenance": {"seconds": 12.4, "command": "mobpriv run nb", "data": {"name": "city"}}}


def claim(name="T1", short="AP-Attack finds most", **fields) -> Claim:
    return Claim(**{"id": name, "paper": "thesis", "place": "§1", "claim": "c", "notebook": "nb", "short": short} | fields)


def opened(*verdicts, answer=None) -> str:
    return openings.opening(verdicts, answer, REGISTRY).replace("\u00a0", " ")


def row(short: str, *phrases: str) -> str:
    return f'<tr><td>{short}</td><td data-label="we find">{"<br>".join(phrases)}</td></tr>'


def test_a_page_opens_with_its_answer_the_claims_and_why_it_matters():
    text = opened(Verdict(claim(), "geolife", AGREES), answer=Answer("Half are found.", "Do not publish."))
    assert ":description: Half are found.\n" in text
    answer, table, why = (text.index(part) for part in ("**Half are found.**", "<table", "Do not publish."))
    assert answer < table < why
    assert row("AP-Attack finds most", "reproduced on GeoLife") in text


def test_a_page_without_an_answer_or_claims_opens_with_nothing():
    assert opened() == ""
    assert opened(Verdict(claim(), "mdc", "not testable without MDC"), Verdict(claim(), "city", "")) == ""
    assert opened(Verdict(claim(short=""), "city", AGREES)) == ""


def test_one_phrase_for_all_data_sets_that_share_it_real_data_first():
    text = opened(*(Verdict(claim(), run, AGREES) for run in ("city", "cabspotting", "geolife")))
    assert row("AP-Attack finds most", "reproduced on Cabspotting and GeoLife", "holds on the synthetic city") in text


def test_people_who_are_made_up_on_real_boundaries_stand_behind_real_ones():
    text = opened(*(Verdict(claim(), run, AGREES) for run in ("boundaries", "callers")))
    assert "holds on Cabspotting with simulated calls and Tuscany's boundaries with synthetic people" in text.replace(
        "&#x27;", "'"
    )


@pytest.mark.parametrize(
    ("text", "program", "phrase"),
    [
        (AGREES, AGREES, "reproduced on GeoLife (46 %; printed 50 %)"),
        (
            DISAGREES,
            AGREES,
            "reproduced on GeoLife only with the author's code (as described (46 %; printed 50 %): not reproduced)",
        ),
        (
            AGREES,
            DISAGREES,
            "reproduced on GeoLife as described (46 %; printed 50 %); with the author's code (46 %; printed 50 %): not reproduced",
        ),
        (DISAGREES, DISAGREES, "not reproduced on GeoLife (46 %; printed 50 %)"),
        (DIRECTION, DIRECTION, "only its direction is reproduced on GeoLife (46 %; printed 50 %)"),
        (
            DIRECTION,
            DISAGREES,
            "only its direction is reproduced on GeoLife as described (46 %; printed 50 %), "
            "not reproduced with the author's code (46 %; printed 50 %)",
        ),
        (BY_DEFINITION, BY_DEFINITION, "holds by construction"),
        (IMPOSSIBLE, IMPOSSIBLE, "cannot hold on GeoLife (46 %; printed 50 %)"),
    ],
)
def test_two_readings_of_one_data_set_in_one_phrase(text, program, phrase):
    number = {"value": 0.457, "printed": 0.5, "unit": "share"}
    verdicts = [Verdict(claim(), "geolife", text, **number), Verdict(claim(), "geolife-program", program, **number)]
    assert row("AP-Attack finds most", phrase) in opened(*verdicts).replace("&#x27;", "'")


def test_the_worst_cell_of_a_table_stands_for_it():
    tabled = claim(table={"a": {}, "b": {}})
    text = opened(Verdict(tabled, "city", AGREES, value=1), Verdict(tabled, "city", DISAGREES, value=2, explanation="Why."))
    assert row("AP-Attack finds most", "does not hold on the synthetic city") in text


def test_comparisons_and_worked_examples():
    assert "reproduced across data sets<" in opened(Verdict(claim(), ACROSS, AGREES))
    assert "reproduced on the worked example<" in opened(Verdict(claim(), NO_DATA, AGREES))
    tests = {"relation": "cabspotting.rate < city.rate"}
    assert "holds across data sets<" in opened(Verdict(claim(**tests), ACROSS, AGREES))  # the city is not the paper's


def test_a_theorem_is_correct_without_a_data_set():
    assert row("AP-Attack finds most", "correct") in opened(Verdict(claim(kind="theorem"), NO_DATA, AGREES))
    assert row("AP-Attack finds most", "incorrect") in opened(Verdict(claim(kind="theorem"), NO_DATA, DISAGREES))


def test_a_papers_own_data_are_named_in_the_registry():
    assert "holds on Cabspotting<" in opened(Verdict(claim(paper="joint"), "cabspotting", AGREES))
    assert "does not hold on Cabspotting<" in opened(Verdict(claim(paper="joint"), "cabspotting", DISAGREES))


def test_what_is_true_by_definition_stands_behind_what_could_have_come_out_otherwise():
    given = [Verdict(claim("T1", "It ends"), run, BY_DEFINITION) for run in ("cabspotting", "city")]
    tested = Verdict(claim("T2", "It finds most"), "city", AGREES)
    assert row("It finds most", "holds on the synthetic city") + row("It ends", "holds by construction") in opened(
        *given, tested
    )


def test_below_a_notebook_stand_findings_verdicts_errata_and_the_command():
    erratum = Erratum("E3.7", "thesis", "§1", "w", "d", "nb", "True")
    text = openings.closing("nb", "CARDS", ["Silence costs 30 %.", "Noise costs more."], [erratum], RECORD)
    parts = [
        "## What else we found\n\n- Silence costs 30 %.\n- Noise costs more.",
        "CARDS",
        "## Repeat this page\n\n**Repeat it:** `mobpriv run nb` (12\u00a0s",
        "[E3.7](#erratum-e3-7)",
    ]
    assert sorted(parts, key=text.index) == parts
    assert "mobpriv run nb --data FILE" in text
    without = openings.closing("nb", "", [], [], {"provenance": {**RECORD["provenance"], "data": None}})
    assert "it needs no data" in without
    assert "--data" not in without
    assert openings.closing("nb", "", [], [], None) == ""


def test_a_path_gives_each_page_its_answer_and_names_those_of_the_supplement():
    text = openings.path(
        {"nb": "Figure 1", "other": "Ours"},
        [Verdict(claim(), "city", AGREES)],
        {"other": Answer("Found.")},
        {"more": "Choices"},
    )
    assert text.splitlines() == [
        "1 claim: 1 agree.",
        "",
        "- [Figure 1](notebooks/nb.ipynb)",
        "- [Ours](notebooks/other.ipynb): Found.",
        "",
        "In the [supplement](supplement.md): [Choices](notebooks/more.ipynb).",
    ]


class TestFindings:
    NAMES = names({"nb": {"loss": ["share", "loss"]}}, {}, REGISTRY.runs)
    RESULTS = {"city": {"nb": {"loss": 0.3}}}  # noqa: RUF012

    def test_its_numbers_come_from_the_run(self):
        found = [Finding("nb", "Silence costs {city.loss}.", "city.loss > 0.2")]
        assert told(found, self.RESULTS, REGISTRY, self.NAMES) == {"nb": ["Silence costs 30\u00a0%."]}

    @pytest.mark.parametrize("holds", ["city.loss > 0.4", "geolife.loss > 0"])
    def test_what_does_not_hold_stops_the_build_and_says_where(self, holds):
        with pytest.raises(LedgerError, match="finding of nb"):
            told([Finding("nb", "Silence is dear.", holds)], self.RESULTS, REGISTRY, self.NAMES)

    def test_a_quick_run_finds_nothing(self):
        assert told([Finding("nb", "x", "city.loss > 0.4")], self.RESULTS, REGISTRY, self.NAMES, rough=["city"]) == {}

    def test_a_malformed_one(self, tmp_path):
        (tmp_path / "a.yml").write_text("paper: p\nclaims: []\nfindings: [{notebook: nb, says: x}]")
        with pytest.raises(
            LedgerError, match=r"a\.yml: a finding has notebook, says, holds, and may have answer, matters, landing"
        ):
            findings(tmp_path)

    def test_without_their_intervals(self):
        found, results = (
            [Finding("nb", "It costs {city.loss}.", "city.loss > 0.1")],
            {"value": 0.3, "low": 0.2, "high": 0.4, "n": 9},
        )
        with_it, brief = (
            told(found, {"city": {"nb": {"loss": results}}}, REGISTRY, self.NAMES, kind=kind) for kind in (FINDING, BRIEF)
        )
        assert with_it == {"nb": ["It costs 30\u00a0% (20 to 40\u00a0%, n\u00a0=\u00a09)."]}
        assert brief == {"nb": ["It costs 30\u00a0%."]}

    def test_what_is_so_in_the_sample_only_says_so(self):
        found = [Finding("nb", "It costs.", "city.loss > 0.2 and city.loss > 0.25 and geolife.loss < 1")]
        results = {run: {"nb": {"loss": {"value": 0.3, "low": 0.22, "high": 0.4, "n": 9}}} for run in ("city", "geolife")}
        assert told(found, results, REGISTRY, self.NAMES)["nb"] == [
            "It costs. This holds in our sample, but not for all values inside the 95\u00a0% intervals."
        ]
        assert told(found, results, REGISTRY, self.NAMES, kind=BRIEF)["nb"] == ["It costs. (In this sample only.)"]

    def test_one_about_each_case_at_hand_is_decided_by_the_values(self):
        found = Finding("nb", "It costs.", "city.loss > 0.25", of_cases=True)
        results = {"city": {"nb": {"loss": {"value": 0.3, "low": 0.22, "high": 0.4, "n": 9}}}}
        assert told([found], results, REGISTRY, self.NAMES)["nb"] == ["It costs."]

    def test_one_about_a_single_run_is_tested_on_the_others_that_have_its_quantities(self):
        found = [Finding("nb", "It costs.", "city.loss > 0.2")]
        loss = {
            "city": (0.3, 0.21, 0.4),
            "geolife": (0.3, 0.1, 0.4),
            "cabspotting": (0.5, 0.4, 0.6),
            "callers": (0.1, 0.0, 0.15),
        }
        results = {r: {"nb": {"loss": dict(zip(("value", "low", "high"), of, strict=True))}} for r, of in loss.items()}
        results["geolife-program"] = {"nb": {"other": 1}}
        assert told(found, results, REGISTRY, self.NAMES)["nb"] == [
            "It costs. This finding also holds on Cabspotting, is inconclusive on GeoLife and does not hold on Cabspotting with simulated calls."
        ]

    def test_that_it_also_holds_is_not_said_of_a_run_that_it_names_but_any_other_outcome_is(self):
        loss = {"city": (0.3, 0.21, 0.4), "geolife": (0.3, 0.1, 0.4), "cabspotting": (0.5, 0.4, 0.6)}
        results = {r: {"nb": {"loss": dict(zip(("value", "low", "high"), of, strict=True))}} for r, of in loss.items()}
        found = [Finding("nb", "It costs, as on Cabspotting and GeoLife.", "city.loss > 0.2")]
        assert told(found, results, REGISTRY, self.NAMES)["nb"] == [
            "It costs, as on Cabspotting and GeoLife. This finding is inconclusive on GeoLife."
        ]

    def test_the_size_of_a_change_has_no_sign_and_the_interval_of_the_size(self):
        found = [Finding("nb", "It falls by {abs(city.change)}.", "city.change < 0", answer=True)]
        called = names({"nb": {"change": ["points", "change"]}}, {}, REGISTRY.runs)
        results = {"city": {"nb": {"change": {"value": -0.3, "low": -0.4, "high": -0.2, "n": 9}}}}
        assert told(found, results, REGISTRY, called, kind=ANSWER) == {
            "nb": ["It falls by 30\u00a0points (20 to 40\u00a0points)."]
        }
        results = {"city": {"nb": {"change": {"value": -0.3, "low": -0.4, "high": 0.1, "n": 9}}}}
        with pytest.raises(LedgerError, match="its interval includes 0, so the text cannot state its sign"):
            told(found[:1], results, REGISTRY, called, kind=BRIEF)

    def test_a_change_whose_interval_holds_0_is_inconclusive(self):
        found = [Finding("nb", "It changes {city.change}.", "city.change > -0.02")]
        results = {"city": {"nb": {"change": {"value": 0.03, "low": -0.01, "high": 0.07, "n": 9}}}}
        called = names({"nb": {"change": ["points", "change"]}}, {}, REGISTRY.runs)
        assert told(found, results, REGISTRY, called, kind=BRIEF) == {"nb": ["It changes 3.0\u00a0points (inconclusive)."]}

    def test_every_sentence_of_the_landing_page_is_placed_there(self):
        landing = {f.notebook for f in findings(results.ROOT / "book" / "claims") if f.landing}
        placed = set(re.findall(r"\{\{ landing_(\w+) \}\}", (results.ROOT / "book" / "index.md").read_text("utf-8")))
        assert landing == placed

    def test_an_answer_has_the_first_interval_alone_and_must_be_decided(self):
        value = {"value": 0.3, "low": 0.2, "high": 0.4, "n": 9}
        results = {"city": {"nb": {"loss": value}}}
        answer = Finding("nb", "It costs {city.loss}, or {city.loss}.", "city.loss > 0.1", answer=True)
        assert told([answer], results, REGISTRY, self.NAMES, kind=ANSWER) == {
            "nb": ["It costs 30\u00a0% (20 to 40\u00a0%), or 30\u00a0%."]
        }
        with pytest.raises(LedgerError, match="an answer must hold for all values inside the intervals"):
            told([answer._replace(holds="city.loss > 0.25")], results, REGISTRY, self.NAMES, kind=ANSWER)

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
    from mobpriv.book.claims import read

    entries = read(results.ROOT / "book" / "claims", Claim)
    counted = Counter(entry.notebook for entry in entries if entry.short)
    assert max(counted.values()) <= openings.CLAIMS
    assert [entry.short for entry in entries if entry.short and entry.short[0].islower()] == []
    assert not {entry.notebook for entry in entries} - set(counted), "a page with claims opens with one"
    answered = {entry.notebook for entry in findings(results.ROOT / "book" / "claims") if entry.answer}
    assert {path.stem for path in (results.ROOT / "notebooks").glob("*.ipynb")} == answered


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


def test_a_share_that_is_one_up_to_rounding_is_shown_as_one():
    assert shown(0.6275, "share") == shown(0.6275000000000001, "share")
