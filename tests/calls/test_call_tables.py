"""Files of call records and of their cells: round trips, what is recognised, what is refused, and the command line on them."""

import json
import re

import geopandas
import numpy as np
import pandas as pd
import pytest
import shapely
from conftest import refuses
from typer.testing import CliRunner

from mobpriv import datasets
from mobpriv.book import durations, results, running
from mobpriv.calls.table import as_calls, as_cells
from mobpriv.cli import app

CELLS = as_cells(
    pd.DataFrame({"cell": ["7", "8", "9"], "lat": [45, 45.1, 45.2], "lng": [1.0, 1.1, 1.2], "municipality": ["A", "B", None]})
)
NOON = pd.Timestamp("2024-07-01 12:00:00.250", tz="UTC")
CALLS = as_calls(
    pd.DataFrame({"user": ["0042", "0042", "x"], "cell": ["7", "8", "9"], "end_cell": ["8", "8", "9"]}).assign(
        t=[NOON, NOON + pd.Timedelta(hours=1), NOON], duration=[30.0, np.nan, 1.5]
    ),
    CELLS,
)
NAMED = CALLS.astype({"cell": str, "end_cell": str, "user": str})
WRITE = {
    ".parquet": lambda table, path: table.to_parquet(path),
    ".csv": lambda table, path: table.to_csv(path, index=False),
    ".tsv": lambda table, path: table.to_csv(path, index=False, sep="\t"),
    ".csv.gz": lambda table, path: table.to_csv(path, index=False),
}


def points(cells: pd.DataFrame) -> geopandas.GeoDataFrame:
    at = shapely.points(cells["lng"], cells["lat"])
    return geopandas.GeoDataFrame(cells[["cell", "municipality"]], geometry=at, crs=4326)


def files(folder, ending: str = ".csv", of_cells: str = ".csv", calls=CALLS):
    path = folder / f"july{ending}"
    WRITE[ending](calls, path)
    if of_cells == ".geojson":
        points(CELLS).to_file(folder / "july_cells.geojson")
    elif of_cells:
        WRITE[of_cells](CELLS, folder / f"july_cells{of_cells}")
    return path


@pytest.fixture
def one_call(tmp_path):
    """A file of a call at a time without a zone, next to no cells."""
    path = tmp_path / "july.csv"
    path.write_text("user,t,cell\nu,2024-07-01T10:00:00,7\n")
    return path


@pytest.mark.parametrize("ending", WRITE)
@pytest.mark.parametrize("of_cells", [*WRITE, ".geojson"])
def test_what_is_written_is_read_again(tmp_path, ending, of_cells):
    loaded = datasets.load_calls(files(tmp_path, ending, of_cells))
    pd.testing.assert_frame_equal(loaded.calls, CALLS)
    pd.testing.assert_frame_equal(loaded.cells[CELLS.columns], CELLS, check_dtype=False)
    assert not len(loaded.left_out)
    assert (loaded.name, loaded.synthetic, loaded.source) == ("july", False, f"july{ending}")
    assert datasets.kind_of(tmp_path / f"july{ending}") == "calls"


def test_areas_of_cells_are_taken_at_a_point_inside(tmp_path):
    path = files(tmp_path, of_cells="")
    areas = points(CELLS).assign(geometry=lambda t: t.geometry.to_crs(3857).buffer(500))
    areas = areas.set_geometry("geometry").set_crs(3857, allow_override=True)
    areas.to_crs(4326).to_file(tmp_path / "july_cells.geojson")
    cells = datasets.load_calls(path).cells
    np.testing.assert_allclose(cells[["lat", "lng"]], CELLS[["lat", "lng"]], atol=0.003)


def test_usual_names_are_found_and_others_said(tmp_path):
    path, cells = tmp_path / "cdr.csv", tmp_path / "antennas.csv"
    header = "caller;call time;antenna id;last_cell_id;call duration"
    path.write_text(f"{header}\n1;2024-07-01T10:00:00;7;;5\n2;2024-07-01T10:00:00;8;NULL;\n")
    cells.write_text("site,latitude,longitude,commune\n7,45,1,A\n8,45,1,\n9,,,B\n")
    how = datasets.recognised(path, zone="Europe/Paris", kind="calls")
    roles = dict(zip(("user", "t", "cell", "end_cell", "duration"), header.split(";"), strict=True))
    assert (how.arguments["columns"], how.arguments["zone"]) == (roles, "Europe/Paris")
    calls, cells_read, left_out = datasets.read_calls(path, cells, **how.arguments)
    assert calls["end_cell"].tolist() == ["7", "8"]  # nothing, NULL: the cell of the beginning
    assert calls["duration"].isna().tolist() == [False, True]
    assert calls["t"].iloc[0] == pd.Timestamp("2024-07-01 08:00", tz="UTC")
    assert cells_read["municipality"].isna().tolist() == [False, True, False]
    assert cells_read["lat"].isna().tolist() == [False, False, True]
    assert not len(left_out)
    reread = datasets.read_calls(
        path, cells_read, {"user": "caller", "t": "call time", "cell": "antenna id"}, zone="Europe/Paris"
    )[0]
    assert reread["call duration"].tolist()[0] == 5  # not said to be the duration: it rides along


def test_what_is_left_out_is_told_with_its_line(tmp_path):
    lines = {  # what is wrong -> the record
        "time not readable": "u,100000000x,7,1",
        "cell unknown": "u,1000000000,5,1",
        "user missing": ",1000000000,7,1",
        "duration negative": "u,1000000000,7,-1",
        "cell missing": "u,1000000000,,1",
        "": "u,1000000000,7,1",
        "time after 2099": "u,9999999999,7,1",
        "blank line": "",
        "line not readable": "u,1000000000,7,long",
        "user written as missing (NULL, nan, NA, \\N, …)": "\\N,1000000000,7,1",
    }
    (tmp_path / "july.csv").write_text("\n".join(["user,t,cell,duration", *lines.values(), lines[""]]))
    WRITE[".csv"](CELLS, tmp_path / "july_cells.csv")
    loaded = datasets.load_calls(tmp_path / "july.csv", columns={}, time="s")
    assert len(loaded.calls) == 1
    assert loaded.left_out["records"].tolist() == [1] * 10
    places = loaded.left_out.set_index("rule")["place"].to_dict()
    assert places.pop("record repeated")
    assert places == {rule: f"july.csv line {k}" for k, rule in enumerate(lines, 2) if rule}


def test_a_period_and_the_rows_of_a_parquet_file(tmp_path):
    path = files(tmp_path, ".parquet")
    loaded = datasets.load_calls(path, period=(NOON, NOON + pd.Timedelta(minutes=1)))
    assert loaded.left_out[["rule", "place"]].to_numpy().tolist() == [["time after the period", "july.parquet row 1"]]
    assert len(loaded.calls) == 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", r"july_cells.csv"),
        ("cell,lat,lng\n", "the file holds no cell"),
        ("cell,lat\n7,45\n", r"no column lng .*it has: cell, lat"),
        ("cell,site,lat,lng\n7,7,45,1\n", "the cell could be column cell or site"),
        ("cell,lat,lng\n7,95,1\n", r"latitudes of cells lie in .*row 0 \(cell 7"),
        ("cell,lat,lng\n7,north,1\n", "line not readable"),
    ],
)
def test_wrong_files_of_cells_are_refused(tmp_path, text, words):
    path = files(tmp_path, of_cells="")
    (tmp_path / "july_cells.csv").write_text(text)
    with pytest.raises(ValueError, match=words) as error:
        datasets.load_calls(path)
    assert "\n" not in str(error.value)
    assert not isinstance(error.value, datasets.Unclear)  # the options of a table of calls would not help


def test_cells_must_be_there_and_once(tmp_path):
    path = files(tmp_path, of_cells="")
    with pytest.raises(FileNotFoundError, match=r"the cells of these calls are not there: put july_cells\.csv next to it"):
        datasets.load_calls(path)
    for ending in (".csv", ".parquet"):
        WRITE[ending](CELLS, tmp_path / f"july_cells{ending}")
    refuses(r"could be those of july_cells.parquet or of july_cells.csv", datasets.load_calls, path)
    (broken := tmp_path / "cells.geojson").write_text('{"type": "FeatureCollection", "features": [')
    points(CELLS).drop(columns="cell").to_file(nameless := tmp_path / "no_names.geojson")
    for file, says in ((broken, "not a GeoJSON file"), (nameless, "a table of cells has the columns cell")):
        refuses(says, datasets.read_cells, file)


def test_each_kind_is_refused_where_the_other_is_needed(tmp_path):
    for load, data, says in (
        (datasets.load, files(tmp_path), r"july.csv holds call records .*, and traces .* are needed here"),
        (datasets.load, "region", "region holds call records"),
        (datasets.load_calls, "city", r"city holds traces .*, and call records .* are needed here"),
        (datasets.load_calls, tmp_path / "august.csv", "no such file"),
    ):
        with pytest.raises((ValueError, FileNotFoundError), match=says):
            load(data)
    both = tmp_path / "both.csv"
    both.write_text("user,t,lat,lng,cell\nu,1000000000,45,1,7\n")
    assert datasets.kind_of(both) == "traces"  # a position says more than a cell; which is meant can be said
    assert len(datasets.load_calls(both, CELLS, columns={"cell": "cell"}, time="s").calls) == 1


def test_the_book_keeps_what_calls_a_result_rests_on(tmp_path, monkeypatch):
    path = files(tmp_path)
    monkeypatch.setenv(results.RESULTS, str(tmp_path / "kept.json"))
    results.save({"n": 1}, datasets.load_calls(path))
    kept = json.loads((tmp_path / "kept.json").read_text())["data"]
    assert (kept["name"], kept["synthetic"], kept["size"]) == ("july", False, {"records": 3, "users": 2, "days": 0.0})
    before = running.data_fingerprints(str(path))
    WRITE[".csv"](CELLS.assign(lat=46.0), tmp_path / "july_cells.csv")
    assert running.data_fingerprints(str(path)) != before  # other cells are other data
    assert str(durations.size("region")) == "1\u202f077\u202f532 records"


def run(*words) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(word) for word in words])
    return result.exit_code, result.output


def test_validate_says_what_calls_are_and_writes_them_with_their_cells(tmp_path):
    path = files(tmp_path, calls=NAMED.assign(duration=[-1, 2.0, 3.0]))
    code, output = run("validate", path, "-o", tmp_path / "ready.parquet")
    assert code == 0, output
    for words in ("2 calls of 2 users", "2 of 3 cells in 2 municipalities", "duration negative: 1 record of 1 user"):
        assert words in output
    assert set(re.findall(r"mobpriv run (\w+) --data", output)) == {"dchi_booleans", "primule_risk"}  # no experiment on traces
    reloaded = datasets.load_calls(tmp_path / "ready.parquet")
    pd.testing.assert_frame_equal(reloaded.calls, datasets.load_calls(path).calls)
    assert run("data", "show", tmp_path / "ready.parquet")[0] == 0


def test_validate_says_of_which_calls_no_profile_can_be_made(tmp_path):
    path, towns = files(tmp_path, calls=NAMED), ["Lisboa", None, None]
    for cells, without in (
        (CELLS.assign(municipality="Lisboa"), 0),
        (CELLS.assign(municipality=towns), 2),
        (CELLS[["cell", "lat", "lng"]], 0),
    ):
        WRITE[".csv"](cells, tmp_path / "july_cells.csv")
        output = " ".join(run("validate", path, "-o", tmp_path / "ready.parquet")[1].split())
        assert (f"{without} calls at cells without a municipality" in output) == bool(without)
        assert ("primule_risk" in output) == ("municipality" in cells)


def test_validate_says_what_is_missing_and_proposes_a_run_by_the_same_clocks(tmp_path, one_call):
    sites, ready = tmp_path / "sites.csv", tmp_path / "ready.parquet"
    WRITE[".csv"](CELLS, sites)
    for arguments, code, words in (
        ([], 2, f"as in: mobpriv validate {one_call} --zone Europe/Paris"),
        (["--zone", "UTC"], 2, "put july_cells.csv next to it"),
        (["--zone", "UTC", "--cells", sites], 0, f"--cells {sites}"),
        (["--zone", "Europe/Rome", "--cells", sites, "-o", ready], 0, "-p zone=Europe/Rome --quick"),
    ):
        exit_code, output = run("validate", one_call, *arguments)
        assert (exit_code, words in output) == (code, True)


@pytest.mark.parametrize("data", ["region", "july.csv"])
def test_a_notebook_on_traces_refuses_calls_in_one_line(tmp_path, data):
    given = data if data == "region" else files(tmp_path)
    code, output = run("run", "thesis_3_mechanisms", "--data", given, "--quick", "-o", tmp_path / "out")
    assert (code, output.count("\n")) == (2, 1)
    assert re.search("thesis_3_mechanisms needs positions, and .* holds call records: run it on city", output)
