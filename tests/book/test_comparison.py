"""This run beside the published ones and the papers' numbers, and the tables that show them."""

from collections import namedtuple
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from notebook_making import publish

from mobpriv import book
from mobpriv.base.estimates import Estimate
from mobpriv.book import comparison, runs
from mobpriv.book.tables import Cell, Table, cell, table

NB, NN = "\u00a0", "\u202f"
REGISTRY = """
data_sets: {cabspotting: Cabspotting, geolife: GeoLife}
runs:
  cabspotting: {title: Cabspotting, kind: traces, data: cabspotting, file: a.parquet, notebooks: [nb]}
  cabspotting-program: {title: "Cabspotting, as the program", kind: traces, data: cabspotting, variant: program, file: a.parquet, notebooks: [nb]}
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
    labels = (
        "{nb: {lead: [points, the lead], q3: ['', third quartile], '{error}.{mechanism}.{epsilon}': ['', error], "
        "'rate.{attack}': [share, 'rate of {attack}']}}"
    )
    rates = {
        run: {"rate.ap": {"value": value, "low": 0.41, "high": 0.5, "n": 1536}}
        for run, value in {"cabspotting-program": 0.46, "cabspotting": 0.453, "a-stranger": 0.1}.items()
    }
    return publish(tmp_path, REGISTRY, CLAIMS, f"parts: {{none: no protection}}\nquantities: {labels}", rates)


Data = namedtuple("Data", ["name", "synthetic"])
CITY = Data("city", True)


class TestCompared:
    def test_real_data_stand_before_the_city_in_the_order_of_the_registry(self, project):
        compared = book.compared("nb", OWN, CITY, project)
        assert [(run.title, run.data_set, run.variant) for run in compared.runs] == [
            ("Cabspotting", "Cabspotting", "text"),
            ("Cabspotting, as the program", "Cabspotting", "program"),
            ("a-stranger", "a-stranger", "text"),
            ("synthetic city", "synthetic city", "text"),
        ]
        assert [run.synthetic for run in compared.runs] == [False, False, False, True]

    @pytest.mark.parametrize(
        "data", [Data("my.csv", False), Data("cabspotting", False), Data("made-up.csv", True), Data("city", False)]
    )
    def test_a_reader_s_own_data_come_first_and_are_called_this_run(self, project, data):
        compared = book.compared("nb", OWN, data, project)
        assert compared.runs[0].title == compared.runs[0].data_set == comparison.THIS_RUN
        assert compared.runs[0].printed == {}

    def test_the_paper_s_numbers_are_those_of_the_data_set_not_of_a_name_like_it(self, project):
        assert comparison.printed("nb", "cabspotting-program", project) == {"rate.ap": 0.45}
        assert comparison.printed("nb", "cabspotting_2008", project) == {}

    def test_a_table_has_a_column_a_data_set_and_the_other_reading_below(self, project):
        labels = {"rate.ap": "AP-Attack", "q3": "third quartile", "lead": "its lead (%)"}
        shown = book.compared("nb", OWN, CITY, project).table(labels)
        titles = {"Cabspotting": f"1{NN}536", "a-stranger": f"1{NN}536", "synthetic city": "20"}
        assert shown.columns == [f"{title}, n{NB}={NB}{n}" for title, n in titles.items()]
        rows, interval = shown.groups[""], f"41.0 to 50.0{NB}%"
        below = (interval, f"author's code: 46.0{NB}% ({interval})", f"paper: 45{NB}%")
        assert rows["AP-Attack"][0] == Cell(f"45.3{NB}%", below)
        assert rows["AP-Attack"][2] == Cell(f"50.0{NB}%", (f"40.0 to 60.0{NB}%",))
        assert [c.number for c in rows["third quartile"]] == ["–", "–", "∞"]
        assert rows["its lead"][2].number == f"5.0{NB}points"  # what the book says of the unit goes before what the row says

    def test_a_reading_with_another_number_of_cases_says_so(self, project):
        path = project / "book" / "results" / "cabspotting-program" / "nb.json"
        path.write_text(path.read_text().replace("1536", "42"))
        shown = book.compared("nb", OWN, CITY, project).table({"rate.ap": "AP-Attack"})
        assert shown.columns[0] == f"Cabspotting, n{NB}={NB}1{NN}536 (author's code: 42)"
        # numbers of cases that differ stand in the cells
        results = OWN | {"rate.poi": Estimate(0.5, 0.4, 0.6, 21)}
        shown = book.compared("nb", results, CITY, project).table({"rate.ap": "AP", "rate.poi": "POI"})
        assert shown.columns[-1] == "synthetic city"
        assert [row[-1].small[-1] for row in shown.groups[""].values()] == [f"n{NB}={NB}20", f"n{NB}={NB}21"]

    def test_a_cell_names_its_number_of_cases_if_most_others_have_another(self, project):
        results = {f"rate.{name}": Estimate(0.5, 0.4, 0.6, n) for name, n in {"a": 20, "b": 20, "c": 19}.items()}
        rows = {name: {"rate": f"rate.{name}"} for name in "abc"}
        shown = book.compared("nb", results, CITY, project).pivot(rows, data_sets=["synthetic city"])
        ((title, body),) = shown.groups.items()
        assert title == f"synthetic city, n{NB}={NB}20"
        assert [f"n{NB}=" in " ".join(row.small) for (row,) in body.values()] == [False, False, True]

    def test_a_pivot_has_a_group_a_data_set(self, project):
        results = {"rate.none.1": 0.1, "rate.none.2": 0.2, "rate.w4m.1": 0.3}
        rows = {"none": {"1": "rate.none.1", "2": "rate.none.2"}, "W4M": {"1": "rate.w4m.1"}}
        shown = book.compared("nb", results, CITY, project).pivot(rows, corner="mechanism", data_sets=["synthetic city"])
        assert (shown.columns, shown.corner, list(shown.groups)) == (["1", "2"], "mechanism", ["synthetic city"])
        assert [[c.number for c in row] for row in shown.groups["synthetic city"].values()] == [["0.1", "0.2"], ["0.3", ""]]

    def test_a_pivot_of_families(self, project):
        results = {f"{q}.{m}.{e}": 0.1 for q in ("AP", "cost") for m in ("none", "w4m") for e in ("0.5", "2")} | {
            "AP.HMC.2": 0.2
        }
        compared = book.compared("nb", results, CITY, project)

        def shown(*arguments, **options):
            table = compared.pivot(*arguments, data_sets=["synthetic city"], **options)
            return table.columns, {row: [c.number for c in cells] for row, cells in table.groups["synthetic city"].items()}

        pair = {"privacy": "AP.{mechanism}.2", "cost": "cost.{mechanism}.2"}
        both, known = ["0.1", "0.1"], {"no protection": ["0.1", "0.1"], "w4m": ["0.1", "0.1"]}
        assert shown(pair, rows="{mechanism}") == (["privacy", "cost"], known | {"HMC": ["0.2", ""]})
        assert shown(pair, rows="with {mechanism}", mechanism=["w4m", "unknown"]) == (["privacy", "cost"], {"with w4m": both})
        assert shown(pair, rows="{mechanism}", mechanism={"w4m": "W4M"}) == (["privacy", "cost"], {"W4M": both})
        first = {"AP": "AP.{mechanism}.2", "cost": "cost.{mechanism}.2"}  # the first row lacks the second column
        metres = shown({"AP": "AP.{mechanism}.{e}"}, rows="{mechanism}, {e} m", mechanism=["HMC"], e=[2.0])
        assert metres == (["AP"], {"HMC, 2 m": ["0.2"]})
        assert shown(first, rows="{mechanism}", mechanism=["HMC", "none"])[0] == ["AP", "cost"]
        columns = shown("AP.{mechanism}.{e}", rows="ε = {e}", columns="{mechanism}", e=(2, 0.5))
        assert columns == (["no protection", "w4m", "HMC"], {"ε = 2": [*both, "0.2"], "ε = 0.5": [*both, ""]})
        file = project / "book" / "quantities" / "p.yml"
        entry = "'{q}.{mechanism}.{e}': {unit: '', words: '', short: '{q}, ε = {e}'}, "
        file.write_text(file.read_text().replace("nb: {", "nb: {" + entry, 1))
        compared = book.compared("nb", results, CITY, project)
        short = shown(["AP.{mechanism}.2", "cost.{mechanism}.0.5"], rows="{mechanism}", mechanism=["none"])
        assert short == (["AP, ε = 2", "cost, ε = 0.5"], {"no protection": both})
        assert list(compared.table(["AP.w4m.2"]).groups[""]) == ["AP, ε = 2"]
        with pytest.raises(ValueError, match=r"^rate of nb has no short label in book/quantities"):
            compared.table(["rate"])
        two_parts = shown({"AP": "AP.{mechanism}.{e}"}, rows="{mechanism}, {e}", mechanism=["w4m"])
        assert two_parts == (["AP"], {"w4m, 0.5": ["0.1"], "w4m, 2": ["0.1"]})

    def test_a_family_of_results_as_a_table(self, project):
        others = {"rate.W4M": 1, "k.W4M.2": 2}
        results = {"rate.none.0.15": Estimate(0.5, 0.4, 0.6, 20), "rate.W4M.2": 3, "rate.Geo-I.3": np.inf} | others
        family = book.compared("nb", results, CITY, project).runs[-1].rows("rate.{mechanism}.{at}")
        expected = [["none", 0.15, 0.5, 20], ["W4M", 2.0, 3, 0], ["Geo-I", 3.0, np.inf, 0]]
        assert family[["mechanism", "at", "value", "n"]].fillna(0).values.tolist() == expected

    def test_a_part_that_has_the_name_of_a_column_is_refused(self, project):
        run = book.compared("nb", {"rate.2": 1}, CITY, project).runs[-1]
        with pytest.raises(
            ValueError, match=r"^rate\.\{n\}: a part of a name .* must not be called value, low, high, n \(got n\)$"
        ):
            run.rows("rate.{n}")

    def test_levels_choose_and_order_the_rows(self, project):
        results = {f"rate.{m}.{k}": 0.1 * k for m in ("A", "B", "C") for k in (1, 2)}
        family = book.compared("nb", results, CITY, project).runs[-1].rows("rate.{m}.{k}", m=["C", "new", "A"], k=[2, 1])
        assert list(zip(family["m"], family["k"], strict=True)) == [("C", 2), ("C", 1), ("A", 2), ("A", 1)]

    def test_a_part_may_be_called_so_for_one_placeholder_alone(self, project):
        file = project / "book" / "quantities" / "p.yml"
        file.write_text(file.read_text().replace("parts: {", 'parts: {"chi=all": all POIs, ', 1))
        called = [
            book.called(*part, root=project)
            for part in (("all", "chi"), ("all", "attack"), ("all",), ("none", "chi"), ("W4M",))
        ]
        assert called == ["all POIs", "all", "all", "no protection", "W4M"]

    def test_the_registry_orders_strangers_behind_its_own(self):
        registry = runs.Registry({"b": None, "a": None}, {})
        assert sorted(["z", "a", "y", "b"], key=registry.place) == ["b", "a", "y", "z"]


class TestTable:
    def test_every_number_in_the_one_form_and_groups_with_one_unit(self):
        columns = {"rate": [1 / 3, np.float64(0.5)], "gap": [3.6e-9, 1e6], "held": [True, np.bool_(False)], "who": ["a", "b"]}
        rows = table(pd.DataFrame(columns, [0.6, "x"]), {"rate": "share"}, corner="ε").groups[""]
        assert {name: [c.number for c in row] for name, row in rows.items()} == {
            "0.6": [f"33.3{NB}%", f"≈{NB}0", "yes", "a"],
            "x": [f"50.0{NB}%", f"1{NN}000{NN}000", "no", "b"],
        }
        shown = table({"one": pd.DataFrame({"a": [1.0]}), "two": pd.DataFrame({"a": [2.0]})}, "km")
        assert {title: rows["0"][0].number for title, rows in shown.groups.items()} == {"one": f"1{NB}km", "two": f"2{NB}km"}

    def test_an_estimate_with_its_interval_and_n(self):
        assert cell(Estimate(0.5, 0.4, 0.6, 20), "share") == Cell(f"50.0{NB}%", (f"40.0 to 60.0{NB}%", f"n{NB}={NB}20"))
        assert cell({"value": 2.0, "low": None, "high": None}) == Cell("2")
        assert cell(Estimate(2, np.nan, np.nan, 3)) == Cell("2", (f"no interval at n{NB}={NB}3",))
        assert cell({"value": 2, "low": None, "high": None, "n": 3}, n=False) == Cell("2", ("no interval",))
        assert str(cell(Estimate(0.5, 0.4, 0.6, 20), n=False)) == "0.5 (0.4 to 0.6)"

    def test_its_html_names_every_cell_and_escapes_what_it_shows(self):
        shown = Table(["<b>", "two"], {"group": {"row": [Cell("1", ("0 to 2",)), Cell("")]}}, "corner")
        html = shown._repr_html_()
        assert "<b>" not in html
        # an interval that does not fit on one line breaks before its "to" only; a phone leaves empty cells out
        parts = (
            'data-label="&lt;b&gt;"',
            f"<small>0 to{NB}2</small>",
            'class="none" data-label="two"',
            'scope="rowgroup"',
            "columns-2",
        )
        assert [part for part in parts if part not in html] == []
        assert "0 to 2" in repr(shown)


def test_runs_that_hold_results_and_the_sentence_on_those_that_do_not(project):
    compared = book.compared("nb", OWN, CITY, project)
    assert compared.this.title == "synthetic city"
    assert [run.title for run in compared.having("q{x}")] == ["synthetic city"]
    assert compared.lacking("q{x}").startswith(" Cabspotting and ")
    assert compared.having("rate.{attack}") == compared.runs
    assert compared.lacking("rate.{attack}") == ""
