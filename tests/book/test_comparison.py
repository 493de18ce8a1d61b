"""This run beside the published ones and the papers' numbers, and the tables that show them."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mobpriv import book
from mobpriv.base.estimates import Estimate
from mobpriv.book import comparison, provenance, runs
from mobpriv.book.tables import Cell, Table, cell, table

NB, NN = "\u00a0", "\u202f"
REGISTRY = """
data_sets: {cabspotting: Cabspotting, geolife: GeoLife}
runs:
  cabspotting: {title: Cabspotting, kind: traces, data: cabspotting, file: a.parquet, notebooks: [nb]}
  cabspotting-program: {title: "Cabspotting, as the program", kind: traces, data: cabspotting, reading: program, file: a.parquet, notebooks: [nb]}
  city: {title: synthetic city, kind: traces, synthetic: true}
"""
CLAIMS = """
paper: p
claims:
  - {id: A, place: x, claim: y, notebook: nb, quantity: rate.ap, printed: {cabspotting: 0.45}, tolerance: 0.01, why: z}
"""
OWN = {"rate.ap": Estimate(0.5, 0.4, 0.6, 20), "q3": float("inf"), "lead": 0.05}


@pytest.fixture
def project(tmp_path) -> Path:
    folder = tmp_path / "book"
    for name, content in {
        "results/runs.yml": REGISTRY,
        "claims/p.yml": CLAIMS,
        "quantities/p.yml": "parts: {none: no protection}\nquantities: {nb: {lead: [points, the lead], 'rate.{attack}': [share, 'rate of {attack}']}}",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    for run, value in {"cabspotting-program": 0.46, "cabspotting": 0.453, "a-stranger": 0.1}.items():
        (folder / "results" / run).mkdir()
        found = {"rate.ap": {"value": value, "low": 0.41, "high": 0.5, "n": 1536}}
        record = {"provenance": dict.fromkeys(provenance.RECORDED, ""), "results": found}
        (folder / "results" / run / "nb.json").write_text(json.dumps(record))
    return tmp_path


class Data:
    def __init__(self, name: str, synthetic: bool):
        self.name, self.synthetic = name, synthetic


CITY = Data("city", True)


class TestCompared:
    def test_real_data_stand_before_the_city_in_the_order_of_the_registry(self, project):
        found = book.compared("nb", OWN, CITY, project)
        assert [(run.title, run.data_set, run.reading) for run in found.runs] == [
            ("Cabspotting", "Cabspotting", "text"),
            ("Cabspotting, as the program", "Cabspotting", "program"),
            ("a-stranger", "a-stranger", "text"),
            ("synthetic city", "synthetic city", "text"),
        ]
        assert [run.synthetic for run in found.runs] == [False, False, False, True]

    @pytest.mark.parametrize("data", [Data("my.csv", False), Data("cabspotting", False), Data("made-up.csv", True)])
    def test_a_reader_s_own_data_come_first_and_are_called_this_run(self, project, data):
        found = book.compared("nb", OWN, data, project)
        assert found.runs[0].title == found.runs[0].data_set == comparison.OWN
        assert found.runs[0].printed == {}

    def test_the_paper_s_numbers_are_those_of_the_data_set_not_of_a_name_like_it(self, project):
        assert comparison.printed("nb", "cabspotting-program", project) == {"rate.ap": 0.45}
        assert comparison.printed("nb", "cabspotting_2008", project) == {}

    def test_a_table_has_a_column_a_data_set_and_the_other_reading_below(self, project):
        made = book.compared("nb", OWN, CITY, project).table(
            {"rate.ap": "AP-Attack", "q3": "third quartile", "lead": "its lead (%)"}
        )
        assert made.columns == [
            f"Cabspotting, n{NB}={NB}1{NN}536",
            f"a-stranger, n{NB}={NB}1{NN}536",
            f"synthetic city, n{NB}={NB}20",
        ]
        rows = made.groups[""]
        assert rows["AP-Attack"][0] == Cell(
            f"45.3{NB}%", (f"41.0 to 50.0{NB}%", f"author's code: 46.0{NB}% (41.0 to 50.0{NB}%)", f"paper: 45{NB}%")
        )
        assert rows["AP-Attack"][2] == Cell(f"50.0{NB}%", (f"40.0 to 60.0{NB}%",))
        assert [c.number for c in rows["third quartile"]] == ["–", "–", "∞"]
        assert rows["its lead"][2].number == f"5.0{NB}points"  # what the book says of the unit goes before what the row says

    def test_a_reading_with_another_number_of_cases_says_so(self, project):
        path = project / "book" / "results" / "cabspotting-program" / "nb.json"
        path.write_text(path.read_text().replace("1536", "42"))
        made = book.compared("nb", OWN, CITY, project).table({"rate.ap": "AP-Attack"})
        assert made.columns[0] == f"Cabspotting, n{NB}={NB}1{NN}536 (author's code: 42)"

    def test_numbers_of_cases_that_differ_stand_in_the_cells(self, project):
        results = OWN | {"rate.poi": Estimate(0.5, 0.4, 0.6, 21)}
        made = book.compared("nb", results, CITY, project).table({"rate.ap": "AP", "rate.poi": "POI"})
        assert made.columns[-1] == "synthetic city"
        assert [row[-1].small[-1] for row in made.groups[""].values()] == [f"n{NB}={NB}20", f"n{NB}={NB}21"]

    def test_a_pivot_has_a_group_a_data_set(self, project):
        results = {"rate.none.1": 0.1, "rate.none.2": 0.2, "rate.w4m.1": 0.3}
        rows = {"none": {"1": "rate.none.1", "2": "rate.none.2"}, "W4M": {"1": "rate.w4m.1"}}
        made = book.compared("nb", results, CITY, project).pivot(rows, corner="mechanism", data_sets=["synthetic city"])
        assert (made.columns, made.corner, list(made.groups)) == (["1", "2"], "mechanism", ["synthetic city"])
        assert [[c.number for c in row] for row in made.groups["synthetic city"].values()] == [["0.1", "0.2"], ["0.3", ""]]

    def test_a_family_of_results_as_a_table(self, project):
        results = {
            "rate.none.0.15": Estimate(0.5, 0.4, 0.6, 20),
            "rate.W4M.2": 3,
            "rate.W4M": 1,
            "k.W4M.2": 2,
            "rate.Geo-I.3": np.inf,
        }
        found = book.compared("nb", results, CITY, project).runs[-1].rows("rate.{mechanism}.{at}")
        assert found["mechanism"].tolist() == ["none", "W4M", "Geo-I"]
        assert found["at"].tolist() == [0.15, 2.0, 3.0]
        assert found["value"].tolist() == [0.5, 3, np.inf]
        assert found["n"].fillna(0).tolist() == [20, 0, 0]

    def test_what_a_part_is_called(self, project):
        assert book.called("none", root=project) == "no protection"
        assert book.called("W4M", root=project) == "W4M"

    def test_a_part_may_be_called_so_for_one_placeholder_alone(self, project):
        file = next((project / "book" / "quantities").glob("*.yml"))
        text = file.read_text(encoding="utf-8")
        file.write_text(text.replace("parts: {", 'parts: {"chi=all": all POIs, ', 1), encoding="utf-8")
        assert "chi=all" in file.read_text(encoding="utf-8")
        assert book.called("all", "chi", project) == "all POIs"
        assert book.called("all", "attack", project) == book.called("all", root=project) == "all"
        assert book.called("none", "chi", project) == "no protection"

    def test_the_registry_orders_strangers_behind_its_own(self):
        registry = runs.Registry({"b": None, "a": None}, {})
        assert sorted(["z", "a", "y", "b"], key=registry.place) == ["b", "a", "y", "z"]


class TestTable:
    def test_every_number_in_the_one_form(self):
        frame = pd.DataFrame(
            {"rate": [1 / 3, np.float64(0.5)], "gap": [3.6e-9, 1e6], "held": [True, np.bool_(False)], "who": ["a", "b"]},
            [0.6, "x"],
        )
        made = table(frame, {"rate": "share"}, corner="ε")
        assert [[c.number for c in row] for row in made.groups[""].values()] == [
            [f"33.3{NB}%", f"≈{NB}0", "yes", "a"],
            [f"50.0{NB}%", f"1{NN}000{NN}000", "no", "b"],
        ]
        assert list(made.groups[""]) == ["0.6", "x"]

    def test_groups_and_one_unit_for_all(self):
        made = table({"one": pd.DataFrame({"a": [1.0]}), "two": pd.DataFrame({"a": [2.0]})}, "km")
        assert {title: rows["0"][0].number for title, rows in made.groups.items()} == {"one": f"1{NB}km", "two": f"2{NB}km"}

    def test_an_estimate_with_its_interval_and_n(self):
        assert cell(Estimate(0.5, 0.4, 0.6, 20), "share") == Cell(f"50.0{NB}%", (f"40.0 to 60.0{NB}%", f"n{NB}={NB}20"))
        assert cell({"value": 2.0, "low": None, "high": None}) == Cell("2")
        assert cell(Estimate(2, np.nan, np.nan, 3)) == Cell("2", (f"no interval at n{NB}={NB}3",))
        assert cell({"value": 2, "low": None, "high": None, "n": 3}, n=False) == Cell("2", ("no interval",))
        assert str(cell(Estimate(0.5, 0.4, 0.6, 20), n=False)) == "0.5 (0.4 to 0.6)"

    def test_its_html_names_every_cell_and_escapes_what_it_shows(self):
        html = Table(["<b>", "two"], {"group": {"row": [Cell("1", ("0 to 2",)), Cell("")]}}, "corner")._repr_html_()
        assert "<b>" not in html
        assert 'data-label="&lt;b&gt;"' in html
        assert f"<small>0 to{NB}2</small>" in html  # an interval that does not fit on one line breaks before its "to" only
        assert 'class="none" data-label="two"' in html  # a phone leaves empty cells out
        assert 'scope="rowgroup"' in html
        assert "columns-2" in html

    def test_it_prints_without_html_too(self):
        assert "0 to 2" in repr(Table(["x"], {"": {"row": [Cell("1", ("0 to 2",))]}}))


def test_runs_that_hold_results_and_the_sentence_on_those_that_do_not(project):
    found = book.compared("nb", OWN, CITY, project)
    assert found.this.title == "synthetic city"
    assert [run.title for run in found.having("q{x}")] == ["synthetic city"]
    assert found.lacking("q{x}").startswith(" Cabspotting and ")
    assert found.having("rate.{attack}") == found.runs
    assert found.lacking("rate.{attack}") == ""
