"""The leaderboard of a class: who is on the frontier, from results of `mobpriv judge`, all of the same data."""

import json
import re

import pytest
from trace_making import strolls
from typer.testing import CliRunner

from mobpriv.cli import app
from mobpriv.own_data import leaderboard


def result(folder, name, rate, coverage, sha="a" * 64, version="0.1"):
    """A file of results with one published mechanism."""
    rows = [
        {"mechanism": mechanism, "quantity": quantity, "value": value, "low": value, "high": value, "n": 10}
        for mechanism, values in {"given mechanism": (rate, coverage, 0.0), "none": (0.9, 1.0, 0.0)}.items()
        for quantity, value in zip((leaderboard.RATE, leaderboard.UTILITY, leaderboard.ERASED), values, strict=True)
    ]
    content = {
        "data": {"name": f"data {sha[0]}", "sha256": sha},
        "version": version,
        "judged": "given mechanism",
        "numbers": rows,
    }
    (folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")


def test_the_frontier_comes_first_and_then_the_lower_rate(tmp_path):
    result(tmp_path, "ann", 0.5, 0.6)
    result(tmp_path, "bea", 0.2, 0.7)  # better than ann in both
    result(tmp_path, "cleo", 0.1, 0.1)
    result(tmp_path, "dora", 0.0, None)  # erases everybody: no utility
    table = leaderboard.ranked(leaderboard.read(tmp_path))
    assert list(table.index) == ["cleo", "bea", "none (published)", "dora", "ann"]
    assert list(table["frontier"]) == [True, True, True, False, False]
    assert list(table["published"]) == [False, False, True, False, False]


def test_equal_mechanisms_are_both_on_the_frontier(tmp_path):
    result(tmp_path, "ann", 0.5, 0.6)
    result(tmp_path, "bea", 0.5, 0.6)
    table = leaderboard.ranked(leaderboard.read(tmp_path))
    assert table["frontier"][["ann", "bea"]].all()


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"sha": "b" * 64}, "the results are of different data and cannot be compared: ann.json of data a"),
        ({"version": "0.2"}, "the results are of different versions of mobpriv: ann.json of 0.1, bea.json of 0.2"),
    ],
)
def test_results_of_other_data_or_of_another_version_are_refused_in_one_line(tmp_path, change, line):
    result(tmp_path, "ann", 0.5, 0.6)
    result(tmp_path, "bea", 0.5, 0.6, **change)
    called = CliRunner().invoke(app, ["leaderboard", str(tmp_path), "-o", str(tmp_path / "page.html")])
    assert called.exit_code == 2
    assert called.stderr.startswith(f"mobpriv: {line}")
    assert called.stderr.count("\n") == 1
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize("text", ["{", "[]", '{"data": {}}', '{"data": {}, "version": "", "judged": "x", "numbers": []}'])
def test_a_file_that_is_no_result_is_named(tmp_path, text):
    (tmp_path / "ann.json").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"ann\.json: not a result of mobpriv judge: write it with"):
        leaderboard.read(tmp_path)


def test_a_folder_without_results_says_how_to_write_them(tmp_path):
    with pytest.raises(ValueError, match="has no results: write each with mobpriv judge DATA"):
        leaderboard.read(tmp_path)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The page of two students' mechanisms, one with a name that is no HTML, and what judge wrote for the other."""
    folder = tmp_path_factory.mktemp("class")
    strolls(6, days=4).to_parquet(folder / "walks.parquet")
    results = folder / "results"
    results.mkdir()
    for name, call in {"ann": "Promesse(alpha=300)", "<b>": "Nothing"}.items():
        line = ["judge", str(folder / "walks.parquet"), f"mobpriv.mechanisms:{call}", "-o", str(results / f"{name}.json")]
        called = CliRunner().invoke(app, line)
        assert called.exit_code == 0, called.output
    called = CliRunner().invoke(app, ["leaderboard", str(results), "-o", str(folder / "page.html")])
    assert called.exit_code == 0, called.output
    return (folder / "page.html").read_text(encoding="utf-8"), json.loads((results / "ann.json").read_text(encoding="utf-8"))


def test_the_page_shows_each_mechanism_with_the_numbers_of_judge(page):
    html, of_ann = page
    names = re.findall(r'<th scope="row"[^>]*>([^<]*)</th>', html)
    assert [name.partition(".")[0] for name in names] == [str(k + 1) for k in range(7)]
    assert {"ann", "&lt;b&gt;", "none (published)", "Promesse (published)"} <= {name.partition(". ")[2] for name in names}
    rate = next(
        row for row in of_ann["numbers"] if row["mechanism"] == "given mechanism" and row["quantity"] == leaderboard.RATE
    )
    row = re.search(r'<th scope="row"[^>]*>\d\. ann</th><td[^>]*><span>([\d.]+)', html)
    assert float(row[1]) == pytest.approx(100 * rate["value"], abs=0.06)


def test_the_page_is_one_file_without_the_network(page):
    html, _ = page
    assert not re.search(r'(src|href)="(?!data:|#)', html)
    assert "<svg" in html
