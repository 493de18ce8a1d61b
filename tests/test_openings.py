"""A page opens with its answer: verdicts in words, the main disagreement's cause, the command; and what the book itself found."""

import re
from collections import Counter

import pytest

from mobpriv.book import openings, results, runs
from mobpriv.book.claims import AGREES, BY_DEFINITION, DIRECTION, DISAGREES, IMPOSSIBLE, Claim, Finding, LedgerError, findings
from mobpriv.book.quantities import names
from mobpriv.book.verdicts import ACROSS, NO_DATA, Verdict, told

REGISTRY = runs.read(results.ROOT)
RECORD = {"provenance": {"seconds": 12.4, "command": "mobpriv run nb", "data": {"name": "city"}}}


def claim(name="T1", short="AP-Attack finds most", **fields) -> Claim:
    return Claim(**{"id": name, "paper": "thesis", "place": "§1", "claim": "c", "notebook": "nb", "short": short} | fields)


def opened(*verdicts, found=(), errata=0, record=None) -> str:
    return openings.opening("nb", verdicts, found, errata, record, REGISTRY)


def test_one_phrase_for_all_data_sets_that_share_it_real_data_first():
    text = opened(*(Verdict(claim(), run, AGREES) for run in ("city", "cabspotting", "geolife")))
    assert "*AP-Attack finds most*: reproduced on Cabspotting and GeoLife; holds on the synthetic city." in text


def test_people_who_are_made_up_on_real_boundaries_stand_behind_real_ones():
    text = opened(*(Verdict(claim(), run, AGREES) for run in ("boundaries", "callers")))
    assert "holds on Cabspotting's cabs as callers and Tuscany's boundaries with synthetic people." in text


@pytest.mark.parametrize(
    ("text", "program", "phrase"),
    [
        (AGREES, AGREES, "reproduced on GeoLife."),
        (DISAGREES, AGREES, "reproduced on GeoLife only by the author's program (by the paper's text we find 45.7 %)."),
        (AGREES, DISAGREES, "reproduced on GeoLife by the paper's text (by the author's program we find 45.7 %)."),
        (DISAGREES, DISAGREES, "not reproduced on GeoLife (we find 45.7 %)."),
        (DIRECTION, DIRECTION, "only its direction is reproduced on GeoLife (we find 45.7 %)."),
        (
            DIRECTION,
            DISAGREES,
            "only its direction is reproduced on GeoLife by the paper's text (we find 45.7 %), "
            "not reproduced by the author's program (we find 45.7 %).",
        ),
        (BY_DEFINITION, BY_DEFINITION, "holds by construction."),
        (IMPOSSIBLE, IMPOSSIBLE, "cannot hold on GeoLife (we find 45.7 %)."),
    ],
)
def test_two_readings_of_one_data_set_in_one_phrase(text, program, phrase):
    number = {"value": 0.457, "unit": "share"}
    verdicts = [Verdict(claim(), "geolife", text, **number), Verdict(claim(), "geolife-program", program, **number)]
    assert phrase in opened(*verdicts).replace("\u00a0", " ")


def test_a_number_comes_with_its_interval_and_n():
    verdict = Verdict(claim(), "geolife", DISAGREES, value=0.457, low=0.305, high=0.618, n=1035, unit="share")
    assert "(we find 45.7 %, 30.5 to 61.8 %, n = 1 035)" in opened(verdict).replace("\u00a0", " ").replace("\u202f", " ")


def test_the_worst_cell_of_a_table_stands_for_it():
    tabled = claim(table={"a": {}, "b": {}})
    text = opened(Verdict(tabled, "city", AGREES, value=1), Verdict(tabled, "city", DISAGREES, value=2, explanation="Why."))
    assert "does not hold on the synthetic city." in text


def test_comparisons_and_worked_examples():
    assert "reproduced across data sets." in opened(Verdict(claim(), ACROSS, AGREES))
    assert "reproduced on the worked example." in opened(Verdict(claim(), NO_DATA, AGREES))
    tests = {"relation": "cabspotting.rate < city.rate"}
    assert "holds across data sets." in opened(Verdict(claim(**tests), ACROSS, AGREES))  # the city is not the paper's


def test_a_theorem_is_correct_without_a_data_set():
    assert "*AP-Attack finds most*: correct." in opened(Verdict(claim(kind="theorem"), NO_DATA, AGREES))
    assert "*AP-Attack finds most*: incorrect." in opened(Verdict(claim(kind="theorem"), NO_DATA, DISAGREES))


def test_a_papers_own_data_are_named_in_the_registry():
    assert "holds on Cabspotting." in opened(Verdict(claim(paper="joint"), "cabspotting", AGREES))
    assert "does not hold on Cabspotting." in opened(Verdict(claim(paper="joint"), "cabspotting", DISAGREES))


def test_the_main_disagreement_is_of_a_headline_on_real_data_in_one_sentence():
    text = opened(
        Verdict(claim("T1"), "city", DISAGREES, explanation="The city is small. More."),
        Verdict(
            claim("T2"), "geolife", DISAGREES, explanation="Seven of 42 users (16.7 %) are unknown. They count as never found."
        ),
        Verdict(claim("T3", short=""), "cabspotting", DISAGREES, explanation="No headline."),
    )
    assert "**The main disagreement**, T2 on GeoLife. Seven of 42 users (16.7 %) are unknown.\n" in text
    assert "The city is small" not in text
    assert "No headline" not in text


def test_the_main_disagreement_is_the_largest_in_tolerances():
    def disagrees(name, run="geolife", **fields):
        given = {"printed": 0.5, "value": 0.6, "tolerance": 0.05} | fields
        return Verdict(
            claim(name, tolerance=given.pop("tolerance")), run, DISAGREES, **given, explanation=f"The cause of {name}. More."
        )

    def main(*verdicts):
        return opened(*verdicts).partition("**The main disagreement**, ")[2].partition(" on ")[0]

    two = disagrees("T1")
    assert main(two, disagrees("T2", value=0.65)) == main(disagrees("T2", value=0.35), two) == "T2"
    assert main(two, disagrees("T2")) == "T1"  # alike: the first
    assert main(two, disagrees("T2", tolerance=0, low=0.59, high=0.61)) == "T2"  # ten times half its interval
    assert main(disagrees("T2", tolerance=0, low=0.5, high=0.7), two) == "T1"  # once
    assert main(two, disagrees("T2", tolerance=0)) == "T2"  # a count
    assert main(two, disagrees("T2", value=float("inf"))) == "T2"
    assert main(disagrees("T2", printed=None, value=None, tolerance=None), two) == "T1"  # a relation has no distance
    assert main(disagrees("T2", run="city", value=0.9), two) == "T1"  # real data first


def test_a_page_without_a_paper_s_claims_opens_with_what_was_found_there():
    text = opened(found=["Silence costs 30 %.", "Noise costs more."], errata=3, record=RECORD)
    assert "**What we found.** Silence costs 30 %.\n\nNoise costs more.\n" in text
    assert "**3 errata are demonstrated here**" in text
    assert "**Repeat it:** `mobpriv run nb` (12\u00a0s" in text
    assert "mobpriv run nb --data FILE" in text
    without = opened(record={"provenance": {**RECORD["provenance"], "data": None}})
    assert "it needs no data" in without
    assert "--data" not in without


def test_what_cannot_be_tested_or_was_not_judged_says_nothing():
    assert opened(Verdict(claim(), "mdc", "not testable without MDC"), Verdict(claim(), "city", "")) == ""


def test_a_path_gives_each_page_its_first_answer():
    text = openings.path(
        {"nb": "Figure 1", "other": "Ours"}, [Verdict(claim(), "city", AGREES)], {"other": ["Found."]}, REGISTRY
    )
    assert text.splitlines() == [
        "1 claim: 1 agree.",
        "",
        "- [Figure 1](notebooks/nb.ipynb): *AP-Attack finds most*: holds on the synthetic city.",
        "- [Ours](notebooks/other.ipynb): Found.",
    ]


def test_what_is_true_by_definition_answers_nothing_and_stands_behind_what_could_have_come_out_otherwise():
    given = [Verdict(claim("T1", "It ends"), run, BY_DEFINITION) for run in ("cabspotting", "city")]
    tested = Verdict(claim("T2", "It finds most"), "city", AGREES)
    assert "**The answer.** *It finds most*: holds on the synthetic city. *It ends*: holds by construction.\n" in opened(
        *given, tested, found=["Ten times as many."]
    )
    text = opened(*given, found=["Ten times as many."])
    assert "**What we found.** Ten times as many.\n\n*It ends*: holds by construction.\n" in text
    assert "**The answer.** *It ends*: holds by construction.\n" in opened(*given)
    first = [openings.path({"nb": "Page"}, given, {"nb": of}, REGISTRY).split(".ipynb): ", 1)[1] for of in ([], ["Found."])]
    assert first == ["*It ends*: holds by construction.\n", "Found.\n"]


class TestFindings:
    NAMES = names({"nb": {"loss": ["share", "loss"]}}, {}, REGISTRY.runs)
    RESULTS = {"city": {"nb": {"loss": 0.3}}}  # noqa: RUF012

    def test_its_numbers_come_from_the_run(self):
        found = [Finding("nb", "Silence costs {city.loss}.", "city.loss > 0.2")]
        assert told(found, self.RESULTS, REGISTRY, self.NAMES) == {"nb": ["Silence costs 30.0\u00a0%."]}

    @pytest.mark.parametrize("holds", ["city.loss > 0.4", "geolife.loss > 0"])
    def test_what_does_not_hold_stops_the_build_and_says_where(self, holds):
        with pytest.raises(LedgerError, match="finding of nb"):
            told([Finding("nb", "Silence is dear.", holds)], self.RESULTS, REGISTRY, self.NAMES)

    def test_a_quick_run_finds_nothing(self):
        assert told([Finding("nb", "x", "city.loss > 0.4")], self.RESULTS, REGISTRY, self.NAMES, rough=["city"]) == {}

    def test_a_malformed_one(self, tmp_path):
        (tmp_path / "a.yml").write_text("paper: p\nclaims: []\nfindings: [{notebook: nb, says: x}]")
        with pytest.raises(LedgerError, match=r"a\.yml: a finding has notebook, says and holds, and may have landing"):
            findings(tmp_path)

    def test_without_their_intervals(self):
        found, results = (
            [Finding("nb", "It costs {city.loss}.", "city.loss > 0.1")],
            {"value": 0.3, "low": 0.2, "high": 0.4, "n": 9},
        )
        with_it, brief = (
            told(found, {"city": {"nb": {"loss": results}}}, REGISTRY, self.NAMES, brief=brief) for brief in (False, True)
        )
        assert with_it == {"nb": ["It costs 30.0\u00a0% (20.0 to 40.0\u00a0%, n\u00a0=\u00a09)."]}
        assert brief == {"nb": ["It costs 30.0\u00a0%."]}

    def test_what_is_so_in_the_sample_only_says_so(self):
        found = [Finding("nb", "It costs.", "city.loss > 0.2 and city.loss > 0.25 and geolife.loss < 1")]
        results = {run: {"nb": {"loss": {"value": 0.3, "low": 0.22, "high": 0.4, "n": 9}}} for run in ("city", "geolife")}
        assert told(found, results, REGISTRY, self.NAMES)["nb"] == [
            "It costs. Only in this sample, as the 95\u00a0% intervals leave it inconclusive: "
            "loss on the synthetic city is above 25\u00a0%."
        ]
        assert told(found, results, REGISTRY, self.NAMES, brief=True)["nb"] == ["It costs. (In this sample only.)"]

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
            "It costs. Elsewhere it holds on Cabspotting; it is inconclusive on GeoLife; it does not hold on Cabspotting's cabs as callers."
        ]

    def test_a_change_whose_interval_holds_0_is_inconclusive(self):
        found = [Finding("nb", "It changes {city.change}.", "city.change > -0.02")]
        results = {"city": {"nb": {"change": {"value": 0.03, "low": -0.01, "high": 0.07, "n": 9}}}}
        called = names({"nb": {"change": ["points", "change"]}}, {}, REGISTRY.runs)
        assert told(found, results, REGISTRY, called, brief=True) == {"nb": ["It changes 3.0\u00a0points (inconclusive)."]}

    def test_every_sentence_of_the_landing_page_is_placed_there(self):
        landing = {f.notebook for f in findings(results.ROOT / "book" / "claims") if f.landing}
        placed = set(re.findall(r"\{\{ landing_(\w+) \}\}", (results.ROOT / "book" / "index.md").read_text("utf-8")))
        assert landing == placed


def test_no_page_of_the_book_has_more_than_three_headlines():
    from mobpriv.book.claims import read

    entries = read(results.ROOT / "book" / "claims", Claim)
    counted = Counter(entry.notebook for entry in entries if entry.short)
    assert max(counted.values()) <= 3
    assert [entry.short for entry in entries if entry.short and not entry.short[0].isupper()] == []
    assert not {entry.notebook for entry in entries} - set(counted), "a page with claims opens with one"
