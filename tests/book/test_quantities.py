"""What the pages call a quantity, and how they show a number."""

import json
import math
import re

import pytest
from conftest import refuses
from hypothesis import given
from hypothesis import strategies as st

from mobpriv.base.numbers import beside, constant, counted, extent, shown
from mobpriv.book import quantities, results, runs, yaml_files
from mobpriv.book.quantities import Quantity, expression_in_words, names, unit_of

REGISTRY = runs.read(results.ROOT)
NAMES = names(
    {
        "nb": {
            "rate.{attack}.{mechanism}": ["share", "rate of {attack} under {mechanism}"],
            "privacy.full": ["km", "AP of the optimum"],
            "privacy.{epsilon}": ["km", "AP at ε = {epsilon} per km", "AP over the ε"],
            "extra.{epsilon}.{way}": ["share", "extra cost at {epsilon}, {way}"],
            "span": ["days", "span"],
            "cost": ["", "cost"],
            "holds": ["", "the bound holds"],
        }
    },
    {"none": "no protection"},
    REGISTRY.runs,
)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.4348659, "share", "43.5 %"),
        (0.05172, "share", "5.2 %"),
        (12.345, "share", "1_234.5 %"),
        (1.0, "share", "100 %"),
        (0.99996, "share", "≈ 100 %"),
        (0.9994, "share", "99.9 %"),
        (4e-4, "share", "≈ 0 %"),
        (6e-4, "share", "0.1 %"),
        (0, "share", "0 %"),
        (-0.0345, "points", "−3.5 points"),
        (-4e-4, "points", "≈ 0 points"),
        (-0.99996, "points", "≈ −100 points"),
        (math.inf, "share", "∞ %"),
        (14.75, "", "14.75"),
        (318.75, "", "318.8"),
        (1000, "", "1_000"),
        (-1234567.8, "m", "−1_234.6 km"),
        (158.6, "m", "158.6 m"),
        (math.inf, "m", "∞ m"),
        (1234567.8, "", "1_234_568"),
        (0.00012346, "", "0.00012"),
        (1e-4, "", "0.0001"),
        (9.9e-5, "", "≈ 0"),
        (-1e-12, "km", "≈ 0 km"),
        (-0.0, "", "0"),
        (-math.inf, "km", "−∞ km"),
        (True, "", "yes"),
        (False, "share", "no"),
        (None, "share", "–"),
        (math.nan, "", "–"),
        ("infinite", "km", "∞"),
        ("< 0.1", "share", "below 10 %"),
        (">= -0.5", "points", "at least −50 points"),
        ("> 3", "", "above 3"),
        ("<= 3", "km", "at most 3 km"),
        ("text", "km", "text"),
    ],
)
def test_one_form_of_numbers(value, unit, text):
    assert shown(value, unit).replace("\u00a0", " ").replace("\u202f", "_") == text


@given(st.floats(-1e300, 1e300), st.sampled_from(["", "share", "points", "km"]))
def test_every_number_is_shown_within_its_digits(value, unit):
    text = shown(value, unit)
    assert "e" not in text
    assert " " not in text  # only spaces at which no line breaks
    share = unit in ("share", "points")
    if "≈" not in text:
        number, near = float(re.sub(r"[^\d.−]", "", text).replace("−", "-")), (1e-12, 0.0501) if share else (6e-4, 1e-12)
        assert number == pytest.approx(100 * value if share else value, *near)
    elif share:
        assert min(abs(value), abs(1 - abs(value))) < 5.001e-4
    else:
        assert abs(value) < 1.0001e-4


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.45, "share", "45 %"),
        (-0.03, "points", "−3 points"),
        (0.0, "share", "0 %"),
        (14.75, "", "14.75"),
        (11219955, "", "11_219_955"),
        (1e-9, "", "10⁻⁹"),
        (-3e-7, "", "−3 × 10⁻⁷"),
        ("< 0.1", "share", "below 10 %"),
    ],
)
def test_a_number_that_somebody_wrote_down_keeps_its_digits(value, unit, text):
    assert constant(value, unit).replace("\u00a0", " ").replace("\u202f", "_") == text


def test_beside_a_number_stand_its_interval_and_its_n_or_that_it_has_no_interval():
    assert beside("1 to 2", 1035) == ("1 to 2", "n\u00a0=\u00a01\u202f035")
    assert beside("1 to 2", 1035, counted=False) == beside("1 to 2") == ("1 to 2",)
    assert beside("", 3) == ("no interval at n\u00a0=\u00a03",)
    assert beside("", 3, counted=False) == ("no interval",)
    assert beside("") == ()
    assert [counted(n, "record") for n in (0, 1, 12345)] == ["0 records", "1 record", "12\u202f345 records"]
    assert (counted(1, "erratum", "errata"), counted(2, "erratum", "errata")) == ("1 erratum", "2 errata")


def test_intervals_name_their_unit_once():
    assert extent(0.1, 0.25, "share") == "10.0 to 25.0\u00a0%"
    assert extent(math.nan, math.nan, "share") == ""
    assert extent(None, 0.25, "share") == extent(0.1, None, "share") == ""
    assert extent(34, "infinite") == "34 to ∞"
    assert extent(5210.4, 7294.4, "m") == "5.2 to 7.3\u00a0km"
    assert extent(951, 1500, "m") == "951\u00a0m to 1.5\u00a0km"
    assert extent(1e-9, 2, "km") == "≈\u00a00 to 2\u00a0km"
    assert extent("-infinite", 2, "km") == "−∞ to 2\u00a0km"


def test_names_of_results_and_families():
    assert NAMES.of("nb", "rate.AP-Attack.none") == Quantity("share", "rate of AP-Attack under no protection")
    assert NAMES.of("nb", "rate.AP-Attack.*").words == "rate of AP-Attack under each mechanism"
    assert NAMES.of("nb", "privacy.0.15").words == "AP at ε = 0.15 per km"
    assert NAMES.of("nb", "privacy.*").words == "AP over the ε"
    assert NAMES.of("nb", "privacy.0.15:0.9").words == "AP at ε = 0.15 to 0.9 per km"
    assert NAMES.of("nb", "privacy.full").words == "AP of the optimum"
    assert NAMES.of("nb", "extra.0.3.0.25").words == "extra cost at 0.3, 0.25"
    assert NAMES.of("nb", "geolife-program.cost").words == "cost on GeoLife (author's code)"
    assert NAMES.of("nb", "city.cost").words == "cost on the synthetic city"
    assert NAMES.find("nb", "unknown") is None
    for notebook, name in [("nb", "unknown"), ("nb", "rate.AP-Attack"), ("nb", "geolife.unknown"), ("other", "cost")]:
        refuses(f"^{name} of {notebook} has no name in book/quantities$", NAMES.of, notebook, name)


def test_every_result_of_a_notebook_with_entries_must_be_declared():
    NAMES.check_declared("nb", ["rate.AP-Attack.HMC", "geolife-program.cost"])
    NAMES.check_declared("a reader's own", ["anything"])
    with pytest.raises(ValueError, match=r"^book/quantities must declare each result \(got rate of nb\): correct the name"):
        NAMES.check_declared("nb", ["privacy.full", "rate"])


@pytest.mark.parametrize("entry", ["words", ["share"], ["share", "a", "b", "c"], ["share", 3]])
def test_a_malformed_name(entry):
    refuses(r"^nb: rate: needs a unit", names, {"nb": {"rate": entry}}, {}, {})


def test_names_stand_in_one_file_for_each_chapter(tmp_path):
    assert quantities.read(tmp_path, REGISTRY.runs).find("nb", "rate") is None
    (folder := tmp_path / "book" / "quantities").mkdir(parents=True)
    (folder / "a.yml").write_text("parts: {none: nothing}\nquantities: {one: {'rate.{x}': [share, 'rate of {x}']}}")
    (folder / "b.yml").write_text("parts: {none: nothing}\nquantities: {two: {rate: [share, rate]}}")
    names_read = quantities.read(tmp_path, REGISTRY.runs)
    assert [names_read.of("one", "rate.none").words, names_read.of("two", "rate").words] == ["rate of nothing", "rate"]
    for text, says in [
        ("quantities: {one: {cost: ['', cost]}}", "one is already in another file of book/quantities"),
        ("parts: {none: something}", "none is already in another file of book/quantities"),
        ("quantities: {three: {cost: cost}}", "three: cost: needs a unit and a label"),
    ]:
        (folder / "c.yml").write_text(text)
        refuses(rf"^c\.yml: {says}", quantities.read, tmp_path, REGISTRY.runs)


@pytest.mark.parametrize(
    ("expression", "words", "unit"),
    [
        ("rate['AP', 'x'] < 0.75 * rate['AP', 'none']", "“rate of AP under x” is below 0.75 × “rate of AP under no protection”", ""),
        ("29 < span <= 30", "“span” is above 29 days and at most 30 days", ""),
        ("span < cost < 30", "“span” is below “cost”, and “cost” is below 30 days", ""),
        ("rate['AP', 'x'] == 1", "“rate of AP under x” is 100 %", ""),
        ("rate['AP', 'x'] != 0", "“rate of AP under x” is not 0 %", ""),
        ("abs(rate['AP', 'x'] - rate['AP', 'y']) <= 0.05", "“rate of AP under x” differs from “rate of AP under y” by at most 5 points", ""),
        ("abs(rate['AP', 'x'] - 0.8) > 0.05", "“rate of AP under x” differs from 80 % by more than 5 points", ""),
        ("abs(span) < 2", "the absolute value of “span” is below 2 days", ""),
        ("rate['AP', 'x'] - rate['AP', 'y']", "“rate of AP under x” − “rate of AP under y”", "points"),
        ("(rate['AP', 'x'] + 0.1) / 2", "(“rate of AP under x” + 10 %) / 2", "share"),
        ("-rate['AP', 'x']", "−“rate of AP under x”", "share"),
        ("rate['AP', 'x']", "rate of AP under x", "share"),
        ("privacy[0.3] / privacy.full", "“AP at ε = 0.3 per km” / “AP of the optimum”", ""),
        ("cost >= 1e-9", "“cost” is at least 10⁻⁹", ""),
        ("max(privacy[*]) > 1.5", "at least one value of “AP over the ε” is above 1.5 km", ""),
        ("max(privacy[*]) <= 1.5", "every value of “AP over the ε” is at most 1.5 km", ""),
        ("max(privacy[*]) == 1.5", "the largest of “AP over the ε” is 1.5 km", ""),
        ("min(span, 2, 3) >= 1", "each of “span”, 2 days and 3 days is at least 1 days", ""),
        ("span > min(2, 3)", "“span” is above at least one of 2 days and 3 days", ""),
        ("min(max(span, 2), 3) > 1", "each of (the larger of “span” and 2 days) and 3 days is above 1 days", ""),
        ("min(cost, 2)", "the smaller of “cost” and 2", ""),
        ("mean(rate['AP', *])", "the mean of “rate of AP under each mechanism”", "share"),
        ("falling(privacy[*]) and not holds", "“AP over the ε” falls from each value to the next; and it is not the case that the bound holds", ""),
        ("never_rising(privacy[*]) or rising(privacy[*])", "“AP over the ε” never rises from one value to the next; or “AP over the ε” rises from each value to the next", ""),
        ("never_falling(privacy[*])", "“AP over the ε” never falls from one value to the next", ""),
        ("count(privacy[*] < 1) == 2", "the number of cases in which “AP over the ε” is below 1 km is 2", ""),
        ("count(privacy[*])", "the number of “AP over the ε”", ""),
    ],
)  # fmt: skip
def test_expressions_in_words(expression, words, unit):
    def called(name):
        return NAMES.of("nb", name)

    assert expression_in_words(expression, called).replace("\u00a0", " ") == words
    assert unit_of(expression, called) == unit


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        (["“the rate at k = 2”", "“the rate at k = 5”"], ["“the rate at k = 2 and 5”"]),
        (["“the rate, N(b, 3)”", "“the rate, N(b, 5)”"], ["“the rate, N(b, 3)”", "“the rate, N(b, 5)”"]),  # within parentheses
        (["“the rate at k = 2” rises here", "“the rate at k = 2” falls here"], None),  # outside a label
        (["“the rate of A at k of 2”", "“the rate of B at k of 5”"], None),  # in more than four words
    ],
)
def test_texts_that_differ_in_one_place_of_a_label_are_one(texts, found):
    assert quantities.merged_texts(texts) == (found or texts)


def test_the_words_of_a_part_may_stand_for_one_placeholder_alone():
    labels = names({"nb": {"error.{chi}.{users}": ["share", "error, {chi}, {users}"]}}, {"chi=all": "all POIs"}, REGISTRY.runs)
    assert labels.of("nb", "error.all.all") == Quantity("share", "error, all POIs, all")


def test_a_word_for_a_part_of_a_name_stays_in_its_chapter():
    """A bare part is called so wherever a name has it; "own" was "the same attacks" on the pages of five chapters, for one meant it so."""
    everywhere = {"none", "calendar", "set", "user", "cells alone", "utility"}
    files = {path.stem: yaml_files.content(path) for path in (results.ROOT / "book" / "quantities").glob("*.yml")}
    strays = set()
    for kept in (results.ROOT / "book" / "results").glob("*/*.json"):
        chapter = next(name for name, of in files.items() if kept.stem in of["quantities"])
        patterns = [quantities.pattern(words) for words in files[chapter]["quantities"][kept.stem]]
        for name in json.loads(kept.read_text())["results"]:
            match = next(filter(None, (of.fullmatch(name) for of in patterns)), None)  # results of older code have other names
            strays |= {
                (chapter, name, other)
                for key, part in (match.groupdict() if match else {}).items()
                for other, of in files.items()
                if part not in everywhere and not {part, f"{key}={part}"} & files[chapter].get("parts", {}).keys()
                if part in of.get("parts", {})
            }
    assert not strays
