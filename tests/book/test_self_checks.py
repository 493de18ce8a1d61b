"""Exercises that check themselves: a right number is recognised however it is rounded, a wrong one is not, and the key shows neither."""

import json

import nbformat
import pytest

from mobpriv.book import quantities, runs, self_checks
from mobpriv.book.results import ROOT

NOTEBOOK = "thesis_3_lesson"
ASKED = list(self_checks.questions(nbformat.read(ROOT / "notebooks" / f"{NOTEBOOK}.ipynb", as_version=4), NOTEBOOK))
ANSWERS = {question.quantity: 0.0213 * (k + 1) for k, question in enumerate(ASKED)}


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A project whose key holds ANSWERS."""
    monkeypatch.chdir(tmp_path)
    record = {"results": {name: {"value": value, "low": 0.0, "high": 1.0} for name, value in ANSWERS.items()}}
    key = self_checks.key_of({NOTEBOOK: record}, quantities.read(ROOT, runs.read(ROOT).runs), ROOT)
    (tmp_path / self_checks.KEY).write_text(json.dumps(key), encoding="utf-8")
    return tmp_path


def says(number, root, quantity="toy.distance"):
    return self_checks.verdict(NOTEBOOK, quantity, number, root)


@pytest.mark.parametrize("part", [1, 0.9965, 1.0035])
def test_a_right_number_is_right_whatever_its_last_digit(root, part):
    assert says(ANSWERS["toy.distance"] * part, root).startswith("Right: mean divergence")


@pytest.mark.parametrize("part", [0.98, 1.02, 2, 10, 0.1])
def test_a_wrong_number_is_wrong(root, part):
    assert says(ANSWERS["toy.distance"] * part, root).startswith("Not right: ")


@pytest.mark.parametrize(
    ("quantity", "factor", "hint"),
    [
        ("open", 100, "not in %"),
        ("open", 0.01, "not in %"),
        ("toy.distance", 1000, "m or km"),
        ("toy.distance", 0.001, "1/m or 1/km"),
    ],
)
def test_a_wrong_unit_is_named(root, quantity, factor, hint):
    key = json.loads((root / self_checks.KEY).read_text(encoding="utf-8"))
    key[NOTEBOOK]["toy.distance"]["unit"] = "km"
    (root / self_checks.KEY).write_text(json.dumps(key), encoding="utf-8")
    said = says(ANSWERS[quantity] * factor, root, quantity)
    assert said.startswith("Right up to a factor of ")
    assert hint in said


def test_a_number_without_a_length_gets_no_hint_on_lengths_and_digits_are_said(root):
    assert "m or km" not in says(1000 * ANSWERS["toy.distance"], root)
    assert says(0.5, root).endswith("(compared: 3 significant digits).")
    assert says(1 - ANSWERS["open"], root, "open") == "Right for the others: give 1 minus this share."


@pytest.mark.parametrize("number", [float("nan"), float("inf"), "0.0213", None, [0.0213], True])
def test_what_is_no_number_is_said_in_one_line(root, number):
    said = says(number, root)
    assert said.startswith("Give one finite number (got ")
    assert "\n" not in said


def test_dots_a_sign_a_missing_key_and_another_edition_are_named(root, tmp_path):
    assert says(..., root).startswith("Not checked: ")
    assert says(-ANSWERS["toy.distance"], root) == "The size is right, the sign is not."
    assert says(1, root, "other").startswith("No answers.json with other of thesis_3_lesson was found: ")
    (tmp_path / self_checks.KEY).unlink()
    assert says(1, root).startswith("No answers.json with toy.distance")


def test_a_number_next_to_a_power_of_ten_and_zero_are_right(root):
    for value in (0.9996, 0.09999, 0.0, 5, 57_000):
        record = {"results": dict.fromkeys(ANSWERS, value)}
        key = self_checks.key_of({NOTEBOOK: record}, quantities.read(ROOT, runs.read(ROOT).runs), ROOT)
        (root / self_checks.KEY).write_text(json.dumps(key), encoding="utf-8")
        assert says(value, root).startswith("Right: ")
        assert says(1.02 * value + 0.5, root).startswith("Not right")


def test_the_key_holds_no_answer(root):
    text = (root / self_checks.KEY).read_text(encoding="utf-8")
    assert all(f"{value:.3g}" not in text for value in ANSWERS.values())


def test_an_exercise_without_a_result_stops_the_build():
    with pytest.raises(ValueError, match=r"asks for toy\.distance, and its results have no such number"):
        self_checks.key_of({NOTEBOOK: {"results": {}}}, quantities.read(ROOT, runs.read(ROOT).runs), ROOT)


@pytest.mark.parametrize(
    "source",
    [
        'book.check("other", "open", ...)',
        'book.check("thesis_3_lesson", "open", 0.85)',
        'x = 1\nbook.check("thesis_3_lesson", "open", ...)',
    ],
)
def test_a_check_that_holds_more_than_dots_is_refused(source):
    cell = nbformat.v4.new_code_cell(source, metadata={"tags": ["check"]})
    with pytest.raises(ValueError, match="a cell tagged check is a comment and"):
        list(self_checks.questions(nbformat.v4.new_notebook(cells=[cell]), NOTEBOOK))
