"""A table of one's own: what is read, what is left out and counted, and what is refused in one line that names the fault."""

import json

import numpy as np
import pandas as pd
import pytest
from conftest import refuses
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from mobpriv.book import allowed
from mobpriv.calls.table import as_calls, as_cells
from mobpriv.cli import app
from mobpriv.datasets import Unclear, load, load_calls, read_geolife, read_table
from mobpriv.datasets.call_statistics import describe_calls
from mobpriv.datasets.call_tables import read_cells
from mobpriv.datasets.statistics import describe, jumps, radius_of_gyration
from mobpriv.datasets.tables import NOWHERE
from mobpriv.datasets.times import DIGITS_CUT, _dates
from mobpriv.experiments.days import choose, day_zone, first_day, in_halves
from mobpriv.traces.profiles import stays
from mobpriv.traces.table import as_traces

T = 1_709_539_200  # 2024-03-04 08:00 UTC
STAMPS = pd.to_datetime(T + 600 * np.arange(12), unit="s", utc=True)


def table(path, times=None, users=("u1", "u2", "u3"), names="user,t,lat,lng", lat=45.0, lng=7.0):
    times = [T + 600 * k for k in range(12)] if times is None else times
    rows = [f"{users[k % len(users)]},{t},{lat + 0.001 * (k % 4)},{lng + 0.001 * (k % 5)}" for k, t in enumerate(times)]
    path.write_text("\n".join([names, *rows] if names else rows) + "\n")
    return path


@pytest.mark.parametrize(
    ("form", "named"),
    [("%Y%m%d%H", "YYYYMMDDHH"), ("%y%m%d%H%M", "YYMMDDHHMM"), ("%Y%m%d%H%M", "YYYYMMDDHHMM"), ("%d%m%Y%H", "DDMMYYYYHH"),
     ("%d%m%y%H%M", "DDMMYYHHMM")],
)  # fmt: skip
@pytest.mark.parametrize("odd", [[], ["-1"], ["0"], ["9999999999"]])
def test_dates_that_look_like_numbers_are_no_seconds(tmp_path, form, named, odd):
    stamps = pd.date_range(STAMPS[0], periods=40, freq="7h").strftime(form).str.lstrip("0")
    path = table(tmp_path / "a.csv", [*stamps, *odd])
    for read in (load, read_table):
        with pytest.raises(Unclear, match=f"dates written as {named}"):
            read(path)


@given(st.integers(320_000_000, 4_000_000_000), st.integers(1, 3_600), st.integers(0, 9))
def test_seconds_are_no_dates(begins, step, seed):
    """However short a set is, if its records do not all fall on the first minute of a hundred seconds."""
    seconds = begins + np.cumsum(np.random.default_rng(seed).integers(1, 2 * step, 200))
    assert _dates(seconds.astype(float)) == ""


@pytest.mark.parametrize("written", ["{:.4E}", "{:.4e}", "{:.5g}", "{:.3E}E09"])
def test_numbers_whose_digits_a_spreadsheet_cut_off_are_left_out(tmp_path, written):
    cut = lambda number: written.format(number).replace("E+09E", "E")  # noqa: E731
    path = table(tmp_path / "a.csv", [cut(T + 600 * k) if k < 4 else T + 600 * k for k in range(12)], ("u1", "3.93331E+11"))
    data_set = load(path)
    assert data_set.left_out[["rule", "records"]].values.tolist() == [[DIGITS_CUT, 8]]  # four times; four more of that user
    assert set(data_set.traces["user"]) == {"u1"}
    exact = load(table(tmp_path / "b.csv", [f"{T + 600 * k:.9E}" for k in range(12)]))
    assert len(exact.traces) == 12


@pytest.mark.parametrize(
    ("users", "named"),
    [
        (("u1", "u1 ", " u1"), {"u1"}),
        (("1.0", "1", "2.0"), {"1", "2"}),
        (("007", "7", "1.5"), {"007", "7", "1.5"}),
        (("1e3", "5E7"), {"1e3", "5E7"}),
    ],
)
def test_persons_are_told_apart_by_plain_names(tmp_path, users, named):
    assert set(load(table(tmp_path / "a.csv", users=users)).traces["user"]) == named
    part = load(tmp_path / "a.csv", max_users=9)
    assert (set(part.traces["user"]), set(part.names)) == (named, named)


def test_a_position_that_is_not_known_is_left_out(tmp_path):
    path = table(tmp_path / "a.csv")
    path.write_text(path.read_text() + f"u1,{T},0,0\nu1,{T},0,7\n")
    data_set = load(path)
    assert (len(data_set.traces), data_set.left_out["rule"].tolist()) == (13, [NOWHERE])
    with pytest.raises(ValueError, match="cells lie elsewhere than at latitude 0, longitude 0: 1 do not, first row 1"):
        as_cells(pd.DataFrame({"cell": ["a", "b"], "lat": [45, 0], "lng": [7, 0]}))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"lat": 450_000_000, "lng": 70_000_000}, "E7"),
        ({"names": ""}, "there is no line of names, it seems, but a record in its place"),
        ({"names": "user,t,lat,lng,"}, "5 names of columns.*most lines have 4 values"),
        ({"names": "user,t,lat,lat"}, "2 columns are called lat"),
        ({"names": "user,t,Lat,lat"}, "the latitude could be column Lat or lat"),
    ],
)
def test_a_table_is_refused_in_words_that_help(tmp_path, given, said):
    refuses(said, load, table(tmp_path / "a.csv", **given))


def test_a_day_is_no_name_of_a_column_and_several_are(tmp_path):
    for row, message in (("u1,2024-03-01,45,7", "there is no line of names"), ("u1,2024-03-01,2024-03-02,7", "no column user")):
        (tmp_path / "a.csv").write_text(f"{row}\n{row}\n")
        refuses(message, load, tmp_path / "a.csv")


def test_what_is_left_out_says_whose_and_where_it_is_only_where_that_is_known(tmp_path):
    """The repetition is in line 5 of the file, not where sorting puts it."""
    (tmp_path / "a.csv").write_text(
        f"user,t,lat,lng\nu2,{T},45,7\nu2,{T},46,7\nu1,{T},45,7\nu2,{T},45,7\nu1,{T},45\nu2,{T + 60},45\n"
    )
    left_out = load(tmp_path / "a.csv").left_out.set_index("rule")
    assert left_out.loc["record repeated", "place"] == "a.csv line 5"
    assert left_out.loc["line not readable", "remedy"] == "expected 4 values, found 3; the line is left out"
    assert left_out.drop(index="record repeated")["users"].tolist() == [0]


def test_municipalities_are_plain_names_and_cells_know_their_lines(tmp_path):
    cells = tmp_path / "c_cells.csv"
    cells.write_text("cell,lat,lng,municipality\na,45,7,1\nb,45,7,1.0\nc,45,7,1 \nd,45,7,NULL\ne,45,7,\n")
    assert read_cells(cells)["municipality"].fillna("").tolist() == ["1", "1", "1", "", ""]
    cells.write_text("cell,lat,lng\na,45,7\n\n\nb,0,0\n")
    refuses(r"line 5 of the file", read_cells, cells)


def test_the_proposed_user_does_not_number_the_rows(tmp_path):
    (tmp_path / "a.csv").write_text(f"id,user_id,t,lat,lng\n1,u1,{T},45,7\n")
    with pytest.raises(Unclear) as refused:
        load(tmp_path / "a.csv")
    assert refused.value.asks == {"user": "user_id"}


@pytest.mark.parametrize(
    ("time", "stamps"), [("s", STAMPS.strftime("%Y-%m-%dT%H:%M:%SZ")), ("ms", STAMPS.strftime("%Y-%m-%dT%HZ"))]
)
def test_text_is_not_read_as_a_number(tmp_path, time, stamps):
    with pytest.raises(Unclear, match=f"time = {time} reads numbers, and the times are text such as 2024-03-04.08"):
        read_table(table(tmp_path / "a.csv", stamps), time=time)


@pytest.mark.parametrize(
    "header",
    ["", "Geolife trajectory\r\nWGS 84\r\nAltitude is in Feet\r\nReserved 3\r\n0,2,255,My Track,0,0,2,8421376\r\n0\r\n"],
)
def test_geolife_loses_no_record_without_its_six_lines(tmp_path, header):
    folder = tmp_path / "Data/000/Trajectory"
    folder.mkdir(parents=True)
    (folder / "a.plt").write_text(header + "".join(f"39.9,116.3,0,-777,39744.12,2008-10-23,02:53:{k:02d}\n" for k in range(20)))
    assert len(read_geolife(tmp_path, False)[0]) == 20


@pytest.mark.parametrize("shift", [180.0, 179.999, -179.999])
def test_statistics_do_not_depend_on_the_meridian(shift):
    rng = np.random.default_rng(0)
    t = pd.to_datetime(T + 600 * np.arange(100), unit="s", utc=True)
    at_zero = pd.DataFrame({"user": np.repeat(["a", "b"], 50), "t": t})
    at_zero = at_zero.assign(lat=-16.8 + 0.01 * rng.normal(size=100), lng=0.01 * rng.normal(size=100))
    at_meridian = at_zero.assign(lng=(at_zero["lng"] + shift + 180) % 360 - 180)
    assert at_meridian["lng"].abs().min() > 179
    for statistic in (radius_of_gyration, jumps):
        np.testing.assert_allclose(statistic(as_traces(at_zero)), statistic(as_traces(at_meridian)), rtol=1e-6)
    statistics, names = [], [f"c{k % 10}" for k in range(100)]
    for one in (at_zero, at_meridian):
        cells = as_cells(one[["lat", "lng"]][:10].assign(cell=names[:10], municipality="A"))
        statistics.append(describe_calls(as_calls(one[["user", "t"]].assign(cell=names), cells), cells)["value"])
    np.testing.assert_allclose(*statistics, rtol=1e-6)


@pytest.mark.parametrize("shift", [180.0, 179.999, -179.999])
def test_the_card_does_not_depend_on_the_meridian(shift):
    """Two people go to and fro between places on either side of the meridian, each of them well within a cell."""
    place = np.repeat(np.arange(20) % 3, 10)  # half an hour at each in turn
    one = pd.DataFrame({"t": pd.to_datetime(T + 200 * np.arange(200), unit="s", utc=True), "lat": -16.8 + 0.03 * (place == 2)})
    at_zero = pd.concat(
        [one.assign(user=name, lng=np.array([-0.02, 0.02, 0.05 + east])[place]) for name, east in (("a", 0), ("b", 0.1))]
    )
    at_meridian = at_zero.assign(lng=(at_zero["lng"] + shift + 180) % 360 - 180)
    assert (at_meridian["lng"] > 0).any()
    assert (at_meridian["lng"] < 0).any()
    both = [as_traces(at_zero), as_traces(at_meridian)]
    cards = [describe(traces, stays(traces, 200.0, 900.0), np.random.default_rng(1), trials=200) for traces in both]
    assert cards[0].loc[cards[0]["quantity"] == "uniqueness", "value"].between(0, 1, inclusive="neither").any()
    np.testing.assert_allclose(*(table["value"] for table in cards), rtol=1e-6)


def people(days: int, lasting: bool):
    """Six people at places of their own, under one name or a new one every day."""
    day, who, k = (part.ravel() for part in np.meshgrid(range(days), range(6), range(8), indexing="ij"))
    names = [f"p{n}" for n in (who if lasting else 10 * day + who)]
    return pd.DataFrame({"user": names, "t": T + 86_400 * day + 900 * k, "lat": 45 + 0.02 * who, "lng": 7.0})


def test_nobody_can_be_found_where_names_change(tmp_path):
    lasting, changing = tmp_path / "lasting.csv", tmp_path / "changing.csv"
    for file in (lasting, changing):
        people(8, file == lasting).to_csv(file, index=False)
        output = CliRunner().invoke(app, ["validate", str(file)]).output
        assert ("none of 48 users has records in both halves" in output) == (file == changing)
    assert (
        "The training half has records of all 6 attacked users"
        in in_halves(choose(str(lasting), days=8), "calendar", 8).selection
    )
    nobody = "nobody can be re-identified: none of the 24 attacked users has a record in the training half"
    refuses(nobody, in_halves, choose(str(changing), days=8), "calendar", 8)


def test_clocks_and_a_first_day_belong_to_a_data_set():
    assert (day_zone("region"), day_zone("region", "Europe/Rome")) == ("Europe/Lisbon", "Europe/Rome")
    refuses(r"the time zone of own\.csv is unknown, so it is unclear when its days begin", day_zone, "own.csv")
    refuses("there is no time zone", day_zone, "own.csv", "Mars/Base")
    for start in ("xx", "0204-10-07"):
        refuses("start must be a date in 1980", first_day, start, pd.Series(STAMPS), "UTC")
        assert not allowed.within(start, "a date or none")


def test_the_run_that_is_proposed_asks_for_the_callers_zone(tmp_path):
    calls = [f"u{k % 3},{t:%Y-%m-%dT%H:%M:%S}+01:00,{k % 3}.0" for k, t in enumerate(STAMPS)]
    (tmp_path / "a.csv").write_text("\n".join(["user,t,cell", *calls]) + "\n")
    (tmp_path / "a_cells.csv").write_text("cell,lat,lng,municipality\n0,45,7,A\n1,45,7.1,A\n2,45,7.2,B\n")
    assert len(load_calls(tmp_path / "a.csv").calls) == 12
    output = CliRunner().invoke(app, ["validate", str(tmp_path / "a.csv")]).output
    proposed = [line for line in output.splitlines() if "mobpriv run" in line]
    assert len(proposed) == 2
    assert all("-p zone=ZONE" in line for line in proposed)
    assert json.dumps(output).count("Europe/Paris") == 1  # an example, in no command
