"""How a table is written is found out where nothing is in doubt, and asked for where something is."""

import bz2
import re

import pandas as pd
import pytest
from conftest import refuses

from mobpriv import datasets
from mobpriv.datasets import Unclear, recognised
from mobpriv.datasets.tables import NO_USER

T = 1_211_033_530  # 2008-05-17 14:12:10 UTC


def write(tmp_path, header: str, *values: str, name: str = "t.csv"):
    file = tmp_path / name
    file.write_text("\n".join([header, *values]) + "\n")
    return file


@pytest.mark.parametrize(
    "header",
    ["msisdn,event_time,cell_lat,cell_lon", "Caller ID,Call Time,GPS Latitude,GPS Longitude", "customer_id,start_time,celllat,celllon",
     "uid,time,latitude,longitude", "User ID,TimeStamp,Lat,Lon", "id,date_time,y,x", "Device , Date Time , LATITUDE , Long ", "user,t,lat,lng"],
)  # fmt: skip
def test_usual_names_are_found_whatever_their_case_and_spaces(tmp_path, header):
    file = write(tmp_path, header, f"a,{T},46.5,6.6")
    reading = recognised(file)
    assert list(reading.columns.values()) == [name.strip() for name in header.split(",")]
    assert bool(reading.guessed) == (header != "user,t,lat,lng")
    data_set = datasets.load(file)
    assert data_set.traces[["lat", "lng"]].values.tolist() == [[46.5, 6.6]]
    assert (data_set.reading == "") == (not reading.guessed)  # never in silence


@pytest.mark.parametrize(
    ("header", "words", "role"),
    [
        ("id,uid,t,lat,lng", "the user could be column id or uid", "user"),
        ("user,id,t,lat,lng", "the user could be column user or id", "user"),
        ("user,t,timestamp,lat,lng", "the time could be column t or timestamp", "t"),
        ("user,date,time,epoch,lat,lng", "the time could be column date or time or epoch", "t"),
        ("user,t,latitude,y,lng", "the latitude could be column latitude or y", "lat"),
        ("user,t,lat,lon,x", "the longitude could be column lon or x", "lng"),
    ],
)
def test_nothing_is_guessed_between_two(tmp_path, header, words, role):
    file = write(tmp_path, header, ",".join([str(T)] * len(header.split(","))))
    with pytest.raises(Unclear, match=words) as error:
        datasets.load(file)
    assert list(error.value.asks) == [role]
    candidate = error.value.asks[role]
    assert recognised(file, {role: candidate}).columns[role] == candidate


def test_what_is_given_is_taken_at_its_word(tmp_path):
    with pytest.raises(Unclear, match="no column nobody") as error:
        recognised(write(tmp_path, "uid,t,lat,lng", f"a,{T},46.5,6.6"), {"user": "nobody"})
    assert error.value.asks == {"user": "uid"}  # the only column that is left


@pytest.mark.parametrize(
    ("header", "row", "words"),
    [
        ("user,date,time,lat,lng", "a,2024-09-03,17:21,46.5,6.6", "are in two columns, date and time: join them to one"),
        ("user,Call Date,Call Time,lat,lng", "a,2024-09-03,17:21,46.5,6.6", "two columns, Call Date and Call Time: join them"),
        ("user,t,lat,lng", "a,03.09.2024 17:21,46.5,6.6", "03.09.2024 17:21 begin with the day or with the month, which is not guessed"),
        ("user,t,lat,lng", "a,9/30/24 17:21,46.5,6.6", "9/30/24 17:21 begin with the day or with the month"),
        ("user,t,lat,lng", "a,Sep 3 2024 5pm,46.5,6.6", "'Sep 3 2024 5pm' are neither numbers nor ISO 8601: write them as"),
        ("user,t,lat,lng", "a,17:21:00,46.5,6.6", "'17:21:00' are neither numbers nor ISO 8601, because they have no date"),
        ("user,t,lat,lng", "a,17,46.5,6.6", "they may be hours of a day, without its date"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_what_cannot_be_read_one_way_says_what_to_write(tmp_path, name, header, row, words):
    file = write(tmp_path, header, row, row)
    if name == "t.parquet":
        pd.read_csv(file, sep=None, engine="python", dtype={"lat": "str", "lng": "str"}).to_parquet(file := tmp_path / name)
    with pytest.raises(Unclear, match=re.escape(words)) as error:
        recognised(file)
    assert not error.value.asks
    assert len(str(error.value).splitlines()) == 1


def test_decimal_commas_between_commas_are_refused(tmp_path):
    file = write(tmp_path, "user,t,lat,lng", f'a,{T},46.5,"-6,6"')
    with pytest.raises(Unclear, match="the longitudes have a decimal comma, and commas separate the values") as refused:
        recognised(file)
    assert "6,6" not in str(refused.value)


@pytest.mark.parametrize("name", ["T.PARQUET", "t.csv", "t", "bars.csv"])
def test_a_parquet_file_is_known_by_its_bytes_and_bars_as_separators(tmp_path, name):
    if name == "bars.csv":
        write(tmp_path, "user|t|lat|lng", f"a|{T}|46.5|6.6", name=name)
    else:
        pd.DataFrame({"user": ["a"], "t": [T], "lat": [46.5], "lng": [6.6]}).to_parquet(tmp_path / name)
    assert recognised(tmp_path / name).time == "s"
    assert datasets.load(tmp_path / name).traces["lng"].tolist() == [6.6]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"%PDF-1.7\n", "a PDF document: export it as CSV or Parquet"),
        (b"PK\x03\x04\x14\x00", "an Excel workbook or another ZIP archive"),
        (b"\n<!DOCTYPE html>", "a web page"),
        (b"\x1f\x8b\x08", "packed with gzip: let its name end in .gz"),
        (b'{"type": "FeatureCollection"}', r"JSON document: let its name end in \.json"),
        (b"<gpx><trk/></gpx>", r"XML document: GPX and KML are read if the name ends in \.gpx or \.kml"),
        (b"ARROW1\0\0", r"Arrow file \(Feather\): let its name end in \.feather"),
        (b"SQLite format 3\0", r"SQLite database: let its name end in \.gpkg"),
        (bz2.compress(b"user,t,lat,lng"), r"packed with bzip2: let its name end in \.bz2"),
        (b"\x28\xb5\x2f\xfd\x00\x01", "packed with Zstandard: unpack it"),
        (b"\x00\x01\x02,\x03", "no text .its first line has control characters"),
        (b"", "the file is empty"),
    ],
)
def test_what_is_no_table_is_called_what_it_is(tmp_path, content, words):
    (tmp_path / "t.csv").write_bytes(content)
    for read in (recognised, datasets.load):
        refuses(words, read, tmp_path / "t.csv")


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
@pytest.mark.parametrize("max_users", [0, 1])
def test_nobody_is_called_null(tmp_path, name, max_users):
    missing = ["NULL", "nan", "None", r"\N", "NA"]
    rows = [f"{user},{T + k},46.5,6.6" for k, user in enumerate([*missing, "", "", "b", "a"])]
    file = write(tmp_path, "user,t,lat,lng", *rows)
    if name == "t.parquet":
        pd.read_csv(file, keep_default_na=False).to_parquet(file := tmp_path / name)
    data_set = datasets.load(file, max_users=max_users)
    assert data_set.traces["user"].tolist() == (["a"] if max_users else ["a", "b"])
    assert data_set.names == (("a", "b") if max_users else ())
    assert dict(zip(data_set.left_out["rule"], data_set.left_out["records"], strict=True)) == {NO_USER: 5, "user missing": 2}
    assert data_set.left_out["users"].tolist() == [0, 0]


def test_metres_are_not_taken_for_swapped_degrees(tmp_path):
    metres = "look like metres of a projection: reproject them to degrees of WGS 84"
    for place, words in (("6859790.2,652470.1", metres), ("151.2,-33.9", "lat and lng look swapped")):
        refuses(words, datasets.load, write(tmp_path, "user,t,lat,lng", f"a,{T},{place}"))


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (str(T), "s"),
        (f"{T}.25", "s"),
        (f"{T}123", "ms"),
        (f"{T}123456", "us"),
        (f"{T}123456789", "ns"),
        ("2008-05-17T14:12:10Z", "iso"),
        ("2008-05-17 14:12:10+02:00", "iso"),
    ],
)
def test_seconds_milliseconds_and_text_are_told_apart(tmp_path, value, kind):
    file = write(tmp_path, "user,t,lat,lng", f"a,{value},46.5,6.6")
    assert recognised(file).time == kind
    assert datasets.load(file).traces["t"][0].floor("s").date() == pd.Timestamp("2008-05-17").date()


@pytest.mark.parametrize("value", ["5", "9999999999"])
def test_numbers_that_are_no_times_are_refused_in_words(tmp_path, value):
    with pytest.raises(Unclear, match="neither as seconds nor as milli-, micro- or nanoseconds since 1970") as error:
        recognised(write(tmp_path, "user,t,lat,lng", f"a,{value},46.5,6.6"))
    assert not error.value.asks


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_a_zone_is_never_guessed_nor_which_of_day_and_month_is_first(tmp_path, name):
    file = write(tmp_path, "uid,t,lat,lng", "a,2008-05-17 14:12:10,46.5,6.6")
    if name == "t.parquet":
        pd.read_csv(file, parse_dates=["t"]).to_parquet(file := tmp_path / name)
    with pytest.raises(Unclear, match="no time zone") as error:
        recognised(file)
    assert list(error.value.asks) == ["zone"]
    assert recognised(file, zone="Europe/Paris").arguments["zone"] == "Europe/Paris"
    with pytest.raises(Unclear, match="which is not guessed"):
        recognised(write(tmp_path, "user,t,lat,lng", "a,03/09/2024,46.5,6.6"), time="iso", zone="UTC")


def test_a_parquet_file_with_times_of_its_own(tmp_path):
    times = pd.to_datetime([T, T + 60], unit="s", utc=True)
    table = pd.DataFrame({"device": [7, 7], "timestamp": times, "lat": 46.5, "lon": 6.6})
    table.to_parquet(tmp_path / "t.parquet")
    reading = recognised(tmp_path / "t.parquet")
    assert (reading.time, reading.guessed) == ("", ("user", "t", "lng"))
    assert datasets.load(tmp_path / "t.parquet").traces["user"].tolist() == ["7", "7"]


def test_load_recognises_the_columns_that_it_is_not_told():
    table = pd.DataFrame({"Name": ["a", "b"], "Time": [1_600_000_000_000, 1_600_000_060_000], "y": 45.0, "x": 4.8})
    traces = datasets.load(table, columns={"user": "Name"}).traces
    assert traces["user"].tolist() == ["a", "b"]
    assert traces["t"].dt.year.tolist() == [2020, 2020]  # milliseconds
    with pytest.raises(datasets.Unclear) as refusal:
        datasets.load(table)
    (note,) = refusal.value.__notes__  # shown below the message in Python, not by the command
    assert note == "In Python: load(table, columns={'user': 'Name'})"
    local = pd.DataFrame({"user": ["a"], "t": ["2020-06-01 12:00"], "lat": [45.0], "lng": [4.8]})
    with pytest.raises(datasets.Unclear) as refusal:
        datasets.load(local)
    assert refusal.value.__notes__ == ["In Python: load(table, zone='Europe/Paris')"]
    assert datasets.load(local, zone="Europe/Paris").traces["t"].dt.hour.tolist() == [10]
