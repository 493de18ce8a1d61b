"""The readers: formats of the four data sets and any table. Small made-up files everywhere, originals where they are at hand."""

import gzip
import os
import re

import numpy as np
import pandas as pd
import pytest
from conftest import refuses

from mobpriv.datasets import load, read_cabspotting, read_geolife, read_mdc, read_privamov, read_table
from mobpriv.datasets.tables import NO_USER
from mobpriv.datasets.times import DIGITS_CUT
from mobpriv.ground.geo import distance, to_plane
from mobpriv.ground.grid import SquareGrid
from mobpriv.traces.table import as_traces

T = 1_211_033_530  # 2008-05-17 14:12:10 UTC
PLT_HEADER = "Geolife trajectory\r\nWGS 84\r\nAltitude is in Feet\r\nReserved 3\r\n0,2,255,My Track,0,0,2,8421376\r\n0\r\n"


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


def rule(left_out, name):
    return left_out.set_index("rule").loc[name]


# Cabspotting


def test_cabspotting_newest_first_is_sorted(tmp_path):
    write(tmp_path / "new_b.txt", f"37.8 -122.4 1 {T + 60}\n37.7 -122.4 0 {T}\n")
    write(tmp_path / "new_a.txt", f"37.6 -122.4 0 {T}\n")
    traces, left_out = read_cabspotting(tmp_path)
    assert traces["user"].tolist() == ["a", "b", "b"]
    assert traces["lat"].tolist() == [37.6, 37.7, 37.8]
    assert traces["occ"].tolist() == [0, 0, 1]
    assert traces["t"].iloc[1] == pd.Timestamp("2008-05-17 14:12:10", tz="UTC")
    assert not len(left_out)


@pytest.mark.parametrize(
    ("files", "kept", "told"),
    [
        (
            ("A 0\n37.7 -122.4\n\n37.x -122.4 0 1\nA 2\nA 2\n", "A 0\n"),
            3,  # two of a, one of b
            {"line not readable": (2, "new_a.txt line 2 '37.7 -122.4'"), "record repeated": (1, "")},
        ),
        (
            ("A 0\n", "A 0\nnonsense\n37.x 1 0 1\n400.5 -122.4 0 1211033590\n"),
            2,
            {"latitude outside [-90, 90]": (1, "new_b.txt line 4 user b, t 2008-05-17 14:13:10+00:00, lat 400.5")},
        ),
        (
            ("A 0\n37.7 -122", ""),
            1,
            {"file cut in its last line": (1, "new_a.txt line 2"), "file without records": (0, "new_b.txt")},
        ),
        (("A 0\nA 1\n37.7 -122.4 0 12110", "A 0\n"), 3, {"time before 1980": (1, "new_a.txt line 3")}),  # a cut number
        # no format but that of a table has quotation marks
        (('A 0\n"A 1\nA 2\n37.7 -122.4 "0" 1211033533\n', "A 0\n"), 3, {"line not readable": (2, "new_a.txt line 2")}),
    ],
)
def test_bad_lines_are_counted_and_shown(tmp_path, files, kept, told):
    """A 1 is a record one second after T."""
    for name, text in zip("ab", files, strict=True):
        write(tmp_path / f"new_{name}.txt", re.sub(r"A (\d)", lambda m: f"37.7 -122.4 0 {T + int(m[1])}", text))
    traces, left_out = read_cabspotting(tmp_path)
    assert len(traces) == kept
    for name, (records, shown) in told.items():
        problem = rule(left_out, name)
        assert problem.records == records
        assert f"{problem.place} {problem.value}".startswith(shown)


# GeoLife


def plt_line(lat, lng, date, time):
    return f"{lat},{lng},0,100,39744.12,{date},{time}\r\n"


@pytest.fixture
def geolife(tmp_path):
    data = tmp_path / "Geolife" / "Data"
    one = plt_line(45.98, 6.31, "2008-06-07", "08:09:04") + plt_line(45.99, 6.31, "2008-06-07", "08:09:10")
    other = plt_line(400.5, 6.31, "2008-06-08", "10:11:26") + plt_line(45.99, 6.31, "2008-06-08", "10:11:28")
    write(data / "000/Trajectory/20081023025304.plt", PLT_HEADER + one)
    write(data / "020/Trajectory/20110826011926.plt", PLT_HEADER + other)
    write(data / "020/labels.txt", "Start Time\tEnd Time\tTransportation Mode\n")
    write(data / "021/Trajectory/20110826011927.plt", PLT_HEADER)
    return tmp_path


@pytest.mark.parametrize("where", ["", "Geolife", "Geolife/Data"])
def test_geolife_folders(geolife, where):
    traces, left_out = read_geolife(geolife / where)
    assert traces["user"].tolist() == ["000", "000", "020"]
    assert traces["t"].iloc[0] == pd.Timestamp("2008-06-07 08:09:04", tz="UTC")
    problem = rule(left_out, "latitude outside [-90, 90]")
    assert problem.place == "020/Trajectory/20110826011926.plt line 7"
    assert problem.value.startswith("user 020")
    assert rule(left_out, "file without records").place == "021/Trajectory/20110826011927.plt"


def test_geolife_bad_values_are_read_slowly_but_alike(geolife):
    file = geolife / "Geolife/Data/000/Trajectory/20081023025304.plt"
    fast, _ = read_geolife(geolife)
    file.write_bytes(file.read_bytes() + plt_line("45.9x", 6.31, "2008-06-07", "08:09:12").encode() + b"45.9,6.3,0,4")
    slow, left_out = read_geolife(geolife)
    pd.testing.assert_frame_equal(slow, fast)
    for name, line, value in (("line not readable", 9, "'45.9x,6.31"), ("file cut in its last line", 10, "'45.9,6.3,0,4'")):
        assert rule(left_out, name).place.endswith(f" line {line}")
        assert rule(left_out, name).value.startswith(value)


# MDC and PrivaMov: no originals at hand, the published layout


def test_mdc_links_gps_to_users(tmp_path):
    rows = [(7, T, 6.62, 46.51), (8, T + 10, 6.63, 46.52), (9, T + 20, 6.64, 46.53)]
    text = "".join(f"{k}\t{t}\t{lng}\t{lat}\t400\t1\t2\t3\t4\t5\t6\t7\n" for k, t, lng, lat in rows)
    write(tmp_path / "gps.csv", text)
    write(tmp_path / "records.csv", f"7\t5925\t{T}\t-7200\tgps\n8\t0005\t{T}\t-7200\tgps\n1\t5925\t{T}\t-7200\tgsm\n2\t59\n")
    traces, left_out = read_mdc(tmp_path)
    assert traces[["user", "lat", "lng"]].values.tolist() == [["0005", 46.52, 6.63], ["5925", 46.51, 6.62]]
    bad, missing = rule(left_out, "line not readable"), rule(left_out, "user missing")
    assert (bad.place, bad.value) == ("records.csv line 4", repr("2\t59"))
    assert (missing.records, missing.place) == (1, "gps.csv line 3")


def test_mdc_with_names_and_users(tmp_path):
    traces, _ = read_mdc(write(tmp_path / "gps.csv", f"userid\ttz\ttime\tlatitude\tlongitude\n5925\t-7200\t{T}\t46.51\t6.62\n"))
    assert traces[["user", "lat", "lng"]].values.tolist() == [["5925", 46.51, 6.62]]


def test_privamov(tmp_path):
    write(tmp_path / "privamov-gps", '"a\t2014-10-08 13:22:25.123\t4.87\t45.78\n"a"\t2014-10-08 13:22:26\t4.88\t45.79\n')
    traces, left_out = read_privamov(tmp_path)
    assert traces["user"].tolist() == ['"a', '"a"']  # it has no quotation marks
    assert [str(t)[11:23] for t in traces["t"].dt.tz_localize(None)] == ["13:22:25.123", "13:22:26"]
    assert traces["lat"].tolist() == [45.78, 45.79]
    assert not len(left_out)
    local, _ = read_privamov(tmp_path, zone="Europe/Paris")  # two hours ahead of UTC in October
    assert local["t"].iloc[1] == pd.Timestamp("2014-10-08 11:22:26", tz="UTC")


# any table


def csv(tmp_path, text, name="t.csv"):
    return write(tmp_path / name, text)


def test_columns_are_mapped_and_names_stay_text(tmp_path):
    file = csv(tmp_path, f"uid,when,latitude,longitude,speed\n000,{T},46.5,6.6,1.5\n7,{T},46.5,6.6,2.5\n")
    traces, _ = read_table(file, columns={"user": "uid", "t": "when", "lat": "latitude", "lng": "longitude"})
    assert traces["user"].tolist() == ["000", "7"]
    assert traces["speed"].tolist() == [1.5, 2.5]
    says = r"no column user, t \(time\), lat \(latitude\), lng \(longitude\); it has: uid, when"
    with pytest.raises(ValueError, match=says) as error:
        read_table(file)
    assert list(error.value.asks) == ["user", "t", "lat", "lng"]


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.tsv", "t.parquet"])
@pytest.mark.parametrize("how", ["s", "ms", "iso", "zone"])
def test_every_file_and_every_time(tmp_path, name, how):
    moment = pd.to_datetime([T, T + 90], unit="s", utc=True)
    written = {
        "s": [T, T + 90],
        "ms": [1000 * T, 1000 * (T + 90)],
        "iso": moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "zone": ["2008-05-17 16:12:10", "2008-05-17 16:13:40"],  # the clock in Paris
    }
    table = pd.DataFrame({"user": ["01", "01"], "t": written[how], "lat": [46.5, 46.6], "lng": [6.5, 6.6]})
    file = tmp_path / name
    table.to_parquet(file) if name == "t.parquet" else table.to_csv(file, index=False, sep="\t" if name == "t.tsv" else ",")
    traces, left_out = read_table(file, **({"zone": "Europe/Paris"} if how == "zone" else {} if how == "s" else {"time": how}))
    assert traces["t"].tolist() == moment.tolist()
    assert traces["user"].tolist() == ["01", "01"]
    assert not len(left_out)
    pd.testing.assert_frame_equal(traces, as_traces(traces))


@pytest.mark.parametrize(
    ("text", "reading", "says"),
    [
        (
            "a,2008-05-17 14:12:10,46.5,6.6",
            {},
            r"t\.csv: times carry no time zone \(first: 2008-05-17 14:12:10\): say which zone",
        ),
        (f"a,{T}123,46.5,6.6", {}, rf"outside 1980 … 2099 \(1 records, first {T}123 in row 0\): are they milliseconds"),
        (f"a,{T},46.5,6.6", {"time": "ms"}, "are they seconds"),
        (f"a,{T},46.5,6.6", {"time": "seconds"}, "time must be"),
        ("a,true,46.5,6.6\na,false,46.5,6.6", {}, "time not readable: 2 records"),
        (
            f"a,{T},-122,37\na,{T},-122,37.1",
            {},
            r"no record can be used. latitude outside.*2 records.*lat and lng look swapped",
        ),
        (f"a,{T},90,0\nb,{T},-90,0", {}, r"no record can be used. latitude at a pole: 2 records"),
        (f"a,{T},46.5,6.6", {"columns": {"lat": "x", "lng": "x"}}, "column x is named for lat and lng"),
        (f"a,{T},46.5,6.6", {"columns": {"lat": "x", "lng": "y"}}, "x is to be the column lat, and there is a column lat"),
    ],
)
def test_what_is_refused(tmp_path, text, reading, says):
    header = "user,t,x,y,lat" if "columns" in reading else "user,t,lat,lng"
    refuses(says, read_table, csv(tmp_path, f"{header}\n{text}{',1' * (header.count(',') - 3)}\n"), **reading)


@pytest.mark.parametrize(
    ("text", "zone", "kept", "told"),
    [
        (
            f"a,{T},1,6.6\na,soon,2,6.6\na,,3,6.6\na,1e30,4,6.6\na,{T + 1},5,6.6\na,{T + 2},6,6.6",
            "",
            [1, 5, 6],
            {"time not readable": (1, "3 user a, t soon"), "time missing": (1, "4 "), DIGITS_CUT: (1, "5 ")},
        ),
        (
            "a,2023-10-29 02:30:00,1,6.6\na,2023-10-29 04:30:00,2,6.6",
            "Europe/Paris",
            [2],
            {"local time doubled or skipped by a clock change": (1, "2 ")},
        ),
        (
            f",{T},46.5,6.6\na,{T},nan,6.6\na,{T},46.5,\na,{T},4,6.6\nNA,{T},46.5,6.6",
            "",
            [4],
            {NO_USER: (1, "6 "), "user missing": (1, "2 "), "latitude or longitude not a number": (2, "3 ")},
        ),
        (f"a,{T},true,6.6\na,{T},46.5,false\na,{T},4,6.6", "", [4], {"line not readable": (2, "2 ")}),
    ],
)
def test_what_is_left_out_is_counted_with_its_first_line(tmp_path, text, zone, kept, told):
    traces, left_out = read_table(csv(tmp_path, f"user,t,lat,lng\n{text}\n"), zone=zone or None)
    assert traces["lat"].tolist() == kept
    for name, (records, shown) in told.items():
        problem = rule(left_out, name)
        assert problem.records == records
        assert f"{problem.place} {problem.value}".startswith(f"t.csv line {shown}")


def test_empty_tables(tmp_path):
    traces, left_out = read_table(csv(tmp_path, "user,t,lat,lng\n"))
    assert rule(left_out, "file without records").records == 0
    pd.testing.assert_frame_equal(traces, as_traces(traces[:0]))
    traces.to_parquet(tmp_path / "t.parquet")
    assert not len(read_table(tmp_path / "t.parquet")[0])
    refuses("the file is empty; it needs a line of names", read_table, csv(tmp_path, ""))


def test_large_files_report_the_same_lines(tmp_path, monkeypatch):
    good = "".join(f"u{k % 7},{T + k},46.5,6.6\n" for k in range(500))
    file = csv(tmp_path, f"user,t,lat,lng\n{good}u1,2\n\nu1,{T},400.5,6.6\n{good}")
    traces, left_out = read_table(file)
    assert rule(left_out, "line not readable").place == "t.csv line 502"
    assert rule(left_out, "blank line").place == "t.csv line 503"
    assert rule(left_out, "latitude outside [-90, 90]").place == "t.csv line 504"
    monkeypatch.setattr("mobpriv.datasets.lines.LARGE", 0)
    again, also_left_out = read_table(file)
    assert again.equals(traces)
    assert also_left_out.equals(left_out)


def test_cut_files_are_named(tmp_path):
    table = pd.DataFrame({"user": ["a"] * 500, "t": T + np.arange(500), "lat": 46.5, "lng": 6.6})
    for name, intact, cut, says in (
        ("cut.parquet", table.to_parquet(), 200, r"cut\.parquet: not a whole Parquet file .*cut while copying"),
        ("cut.csv.gz", gzip.compress(table.to_csv(index=False).encode()), 50, r"cut\.csv\.gz: cannot be read"),
    ):
        (tmp_path / name).write_bytes(intact[:-cut])
        refuses(says, read_table, tmp_path / name)
    with pytest.raises(FileNotFoundError, match="there is none"):
        read_table(tmp_path / "none.csv")


def test_text_files_without_names(tmp_path):
    file = csv(tmp_path, f"a {T} 46.5 6.6\n", "t.txt")
    traces, _ = read_table(file, names=["user", "t", "lat", "lng"])
    assert traces.loc[0, "lng"] == 6.6


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_dates_without_a_time_are_midnight_in_their_zone(tmp_path, name):
    file = csv(tmp_path, "user,t,lat,lng\na,2020-03-01,46.5,6.6\na,2020-07-02,46.5,6.6\n")
    if name == "t.parquet":
        pd.read_csv(file).assign(t=pd.to_datetime(["2020-03-01", "2020-07-02"]).date).to_parquet(file := tmp_path / name)
    traces, left_out = read_table(file, zone="Asia/Tokyo")
    assert traces["t"].tolist() == [pd.Timestamp("2020-02-29 15:00", tz="UTC"), pd.Timestamp("2020-07-01 15:00", tz="UTC")]
    assert not len(left_out)
    refuses("no time zone", read_table, file)


def test_offsets_of_all_kinds_beside_times_without_one(tmp_path):
    ten = pd.Timestamp("2020-03-01 10:00", tz="UTC")
    right = ["2020-03-01T10:00:00Z", "2020-03-01 12:00+02:00", "20200301T110000+01", "2020-03-01 11:00", "2020-03-01 10:00 UTC"]
    moments = dict.fromkeys(right, ten) | {
        "2020-03-01T05:00:00.5-0500": ten + pd.Timedelta("0.5s"),
        "2020/03/01": pd.Timestamp("2020-02-29 23:00", tz="UTC"),
    }
    wrong = ["2020-03-01 10:00+25:00", "2020-02-30", "2020-13-01 10:00Z", "10:00", "2020-03"]
    text = "user,t,lat,lng\n" + "".join(f"a,{t},{k},6.6\n" for k, t in enumerate([*moments, *wrong]))
    traces, left_out = read_table(csv(tmp_path, text), zone="Europe/Paris")
    assert traces.sort_values("lat")["t"].tolist() == list(moments.values())
    assert rule(left_out, "time not readable")[["records", "place"]].tolist() == [5, "t.csv line 9"]


def test_a_few_times_without_a_zone_among_many_with_one(tmp_path):
    text = "user,t,lat,lng\na,2020-03-01T10:00Z,1,6.6\na,2020-03-01 10:00,2,6.6\na,2020-03-01T10:00+01:00,3,6.6\n"
    traces, left_out = read_table(csv(tmp_path, text))
    assert traces["lat"].tolist() == [3, 1]
    assert rule(left_out, "time without a zone among times with one").place == "t.csv line 3"
    assert len(read_table(csv(tmp_path, text), zone="UTC")[0]) == 3
    refuses("no time zone", read_table, csv(tmp_path, text + "a,2020-03-01 11:00,2,6.6\n"))


@pytest.mark.parametrize("zone", ["Mars/Olympus", "Europe", "../etc/passwd", "/etc/passwd", "", "nonsense", "UTC+99:99"])
def test_an_unknown_zone_is_one_clear_line(tmp_path, zone):
    for t in (str(T), "2020-03-01 10:00"):
        refuses("there is no time zone", read_table, csv(tmp_path, f"user,t,lat,lng\na,{t},46.5,6.6\n"), zone=zone)


@pytest.mark.parametrize("column", ["user", "t", "lat", "lng"])
@pytest.mark.parametrize("values", [[True, False], pd.to_timedelta([1, 2], unit="s"), [[1], [2]], [{"a": 1}] * 2])
def test_parquet_columns_of_an_impossible_type_are_refused(tmp_path, column, values):
    table = {"user": ["a", "b"], "t": [T, T], "lat": [46.5, 46.5], "lng": [6.6, 6.6]} | {column: values}
    pd.DataFrame(table).to_parquet(tmp_path / "t.parquet")
    refuses(rf"column {column} holds .*cannot be read as {column}", read_table, tmp_path / "t.parquet")


def test_columns_may_change_their_names(tmp_path):
    swapped, _ = read_table(csv(tmp_path, f"user,t,lat,lng,,\na,{T},6.6,46.5,,\n"), columns={"lat": "lng", "lng": "lat"})
    assert (swapped["lat"].item(), swapped["lng"].item()) == (46.5, 6.6)


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_a_table_of_very_many_columns_is_refused(tmp_path, name):
    table, file = pd.DataFrame(columns=["user", "t", "lat", "lng", *(f"c{k}" for k in range(2_000))]), tmp_path / name
    table.to_csv(file, index=False) if name == "t.csv" else table.astype(float).to_parquet(file)
    refuses("2,004 columns, at most 1,000 can be read", read_table, file)


def test_quoted_values_of_csv(tmp_path):
    good = f'"a,1",{T},46.5,6.6,"said ""hi"""\n'
    text = f'user,t,lat,lng,note\n{good}b,{T},46.5,6.6,"two\r\nlines\n\nand more"\nc,{T},400,6.6,x\n'
    traces, left_out = read_table(csv(tmp_path, text))
    assert traces["user"].tolist() == ["a,1", "b"]
    assert traces["note"].tolist() == ['said "hi"', "two\r\nlines\n\nand more"]
    assert rule(left_out, "further line of a quoted value")[["records", "place"]].tolist() == [3, "t.csv line 4"]
    assert rule(left_out, "latitude outside [-90, 90]").place == "t.csv line 7"  # right behind a value of several lines


@pytest.mark.parametrize(
    "stray", ['"b,{T},46.5,6.6,x', 'b,{T},46.5,6.6,"x', 'b,{T},"46.5,6.6,x', 'b"b,{T},46.5,6.6,x', 'b,{T},46.5,6.6,"x"y']
)
@pytest.mark.parametrize("strays", [1, 2])
def test_a_stray_quotation_mark_costs_its_own_line(tmp_path, stray, strays):
    lines = [f"u{k % 7},{T + k},46.5,6.6,x" for k in range(1000)]
    for k in (10, 500)[:strays]:
        lines[k] = stray.format(T=T)
    traces, left_out = read_table(csv(tmp_path, "user,t,lat,lng,note\n" + "\n".join(lines) + "\n"))
    assert len(traces) == 1000 - strays
    assert rule(left_out, "line not readable")[["records", "place"]].tolist() == [strays, "t.csv line 12"]


def test_bytes_that_are_not_text_cost_their_own_line(tmp_path):
    for name, line in (("new_a.txt", b"37.7 -122.4 0 12110335\xff0\n"), ("new_b.txt", b"\xe9\n")):
        (tmp_path / name).write_bytes(f"37.7 -122.4 0 {T}\n".encode() + line + f"37.7 -122.4 0 {T + 1}\n".encode())
    traces, left_out = read_cabspotting(tmp_path)
    assert len(traces) == 4
    problem = rule(left_out, "bytes that are not UTF-8")
    assert problem[["records", "users", "row", "place"]].tolist() == [2, 2, -1, "new_a.txt line 2"]
    (tmp_path / "t.csv").write_bytes("user,t,lat,lng\n".encode("utf-16"))
    refuses("UTF-16: save it as UTF-8", read_table, tmp_path / "t.csv")


def test_records_at_a_pole_are_left_out(tmp_path):
    text = "".join(f"a,{T + k},{lat},6.6\n" for k, lat in enumerate([90, -90, 89.995, 89.98, -89.98, 90.5]))
    traces, left_out = read_table(csv(tmp_path, "user,t,lat,lng\n" + text))
    lat, lng = traces["lat"], traces["lng"]
    assert lat.tolist() == [89.98, -89.98]
    assert [rule(left_out, name).records for name in ("latitude at a pole", "latitude outside [-90, 90]")] == [3, 1]
    for plane in ("ground", "mercator"):
        assert np.isfinite(to_plane(lat, lng, plane)).all()
        assert np.isfinite(distance(lat[0], lng[0], lat[1], lng[1], plane))
        grid = SquareGrid(800.0, plane)
        south, west, north, east = grid.bounds(grid.cells(lat, lng)).T
        assert ((south <= lat + 1e-9) & (lat <= north + 1e-9)).all()
        assert (west < east).all()


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
@pytest.mark.parametrize("bad", [False, True])
def test_whole_numbers_above_two_to_the_31st(tmp_path, name, bad):
    big, bigger = 3_000_000_001, 2**62 + 1
    table = pd.DataFrame(
        {"user": [big, bigger], "t": [T * 1000, T * 1000 + 1], "lat": 46.5, "lng": 6.6, "cell": [bigger, -big]}
    )
    if name == "t.csv":
        (tmp_path / name).write_text(table.to_csv(index=False) + f"{big},{T},x,6.6,1\n" * bad)
    else:
        table.to_parquet(tmp_path / name)
    traces = read_table(tmp_path / name, time="ms")[0].set_index("user")
    assert traces["cell"].to_dict() == {str(big): bigger, str(bigger): -big}
    assert traces["t"].loc[str(bigger)] == pd.Timestamp(T * 1000 + 1, unit="ms", tz="UTC")


def test_users_of_parquet_that_are_numbers_with_gaps_or_bytes(tmp_path):
    numbers, texts, kinds = [3e9, None, 7.0], [b"\xc3\xa9", None, b"b"], pd.Categorical(["x", None, "b"])
    for users, named in ((numbers, ["3000000000", "7"]), (texts, ["b", "é"]), (kinds, ["b", "x"])):
        pd.DataFrame({"user": users, "t": [T, T, T], "lat": 46.5, "lng": 6.6}).to_parquet(tmp_path / "t.parquet")
        traces, left_out = read_table(tmp_path / "t.parquet")
        assert traces["user"].tolist() == named
        assert rule(left_out, "user missing")[["records", "place"]].tolist() == [1, "t.parquet row 1"]


def test_files_of_mdc_that_are_empty_or_lack_something(tmp_path):
    gps, records = write(tmp_path / "gps.csv", "a,b\n1,2\n"), tmp_path / "records.csv"
    refuses("separated by tabs", read_mdc, gps)
    write(gps, f"1\t{T}\t6.6\t46.5\t400\n")
    with pytest.raises(FileNotFoundError, match=r"records\.csv"):
        read_mdc(tmp_path)
    write(records, "")
    refuses(r"no record can be used. user missing: 1 record,", read_mdc, tmp_path)
    write(gps, "")
    traces, left_out = read_mdc(tmp_path)
    assert (len(traces), left_out["rule"].tolist()) == (0, ["file without records"] * 2)


def test_keys_of_mdc_are_names_not_numbers(tmp_path):
    key = 2**62 + 1  # two keys that are one floating-point number
    write(tmp_path / "gps.csv", f"{key}\t{T}\t6.6\t46.5\t400\n{key + 1}\t{T}\t6.6\t46.5\t400\n9\t{T}\t6.6\t46.5\t400\n")
    write(tmp_path / "records.csv", f"{key}\ta\n{key + 1}\tb\n9\ta\n9\tb\nx\n")
    traces, left_out = read_mdc(tmp_path)
    assert traces["user"].tolist() == ["a", "b"]
    assert rule(left_out, "user missing").place == "gps.csv line 3"  # a key with two users has none
    assert rule(left_out, "line not readable").place == "records.csv line 5"


# load


def test_load_recognises_folders_and_hashes_their_content(geolife, tmp_path):
    data_set = load(geolife / "Geolife")
    assert (data_set.name, data_set.synthetic, len(data_set.traces), len(data_set.left_out)) == ("Geolife", False, 3, 2)
    os.utime(geolife / "Geolife/Data/020/labels.txt", (0, 0))
    assert load(geolife / "Geolife").sha256 == data_set.sha256
    write(geolife / "Geolife/Data/020/labels.txt", "other")
    assert load(geolife / "Geolife").sha256 != data_set.sha256


def test_what_is_not_there_or_not_known(tmp_path):
    for read, path, says in (
        (read_cabspotting, tmp_path, "new_<cab>.txt"),
        (read_geolife, tmp_path, "Trajectory"),
        (read_privamov, tmp_path, "privamov-gps"),
        (read_cabspotting, tmp_path / "nowhere", "folder is needed"),
        (load, "nowhere.csv", "no data set of that name"),
    ):
        with pytest.raises(FileNotFoundError, match=says):
            read(path)
    for given, says in (({}, "known format"), ({"form": "gpx"}, "form must be one of")):
        refuses(says, load, tmp_path, **given)


def test_known_sets_are_read_from_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MOBPRIV_CACHE", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"register at https://ieee-dataport.org.* new_\*\.txt"):
        load("cabspotting")
    write(tmp_path / "cabspotting/new_a.txt", f"37.7 -122.4 0 {T}\n")
    data_set = load("cabspotting")
    assert (data_set.name, len(data_set.traces), data_set.synthetic) == ("cabspotting", 1, False)


def test_original_cabs_equal_the_table(real_data):
    folder = real_data / "raw/cabspotting"
    traces, left_out = read_cabspotting(folder)
    assert traces["user"].cat.categories.tolist() == sorted(f.stem.removeprefix("new_") for f in folder.glob("new_*.txt"))
    assert len(traces) + left_out["records"].sum() == 24_589  # lines of the four files


def test_original_geolife(real_data):
    traces, left_out = read_geolife(real_data / "raw/geolife")
    assert traces["user"].cat.categories.tolist() == ["000", "010", "020"]
    assert len(traces) + left_out["records"].sum() == 7_448 - 7 * 6  # lines of the seven files without their headers
    assert rule(left_out, "record repeated").records == 1
