"""How a table is written is found out where nothing is in doubt, and asked for where something is."""

import pandas as pd
import pytest

from mobpriv import datasets
from mobpriv.datasets import Unclear, recognised

T = 1_211_033_530  # 2008-05-17 14:12:10 UTC


def write(tmp_path, header: str, *values: str, name: str = "t.csv"):
    file = tmp_path / name
    file.write_text("\n".join([header, *values]) + "\n")
    return file


@pytest.mark.parametrize(
    "header",
    ["uid,time,latitude,longitude", "User ID,TimeStamp,Lat,Lon", "id,date_time,y,x", "Device , Date Time , LATITUDE , Long ", "user,t,lat,lng"],
)  # fmt: skip
def test_usual_names_are_found_whatever_their_case_and_spaces(tmp_path, header):
    file = write(tmp_path, header, f"a,{T},46.5,6.6")
    names = [name.strip() for name in header.split(",")]
    reading = recognised(file)
    assert list(reading.columns.values()) == names
    assert bool(reading.guessed) == (names != ["user", "t", "lat", "lng"])
    found = datasets.load(file)
    assert (found.traces["lat"][0], found.traces["lng"][0]) == (46.5, 6.6)
    assert (found.reading == "") == (not reading.guessed)  # never in silence


def test_a_name_of_its_own_is_taken_before_any_guess(tmp_path):
    file = write(tmp_path, "user,id,t,lat,lng", f"a,7,{T},46.5,6.6")
    assert recognised(file).columns["user"] == "user"


@pytest.mark.parametrize(
    ("header", "words", "role"),
    [
        ("id,uid,t,lat,lng", "the user could be column id or uid", "user"),
        ("user,date,time,lat,lng", "the time could be column date or time", "t"),
        ("user,t,latitude,y,lng", "the latitude could be column latitude or y", "lat"),
        ("user,t,lat,lon,x", "the longitude could be column lon or x", "lng"),
    ],
)
def test_nothing_is_guessed_between_two(tmp_path, header, words, role):
    file = write(tmp_path, header, f"a,b,{T},46.5,6.6")
    with pytest.raises(Unclear, match=words) as error:
        datasets.load(file)
    assert list(error.value.asks) == [role]
    candidate = error.value.asks[role]
    assert recognised(file, {role: candidate}, time="s" if role != "t" else "iso").columns[role] == candidate


def test_what_is_given_is_taken_at_its_word(tmp_path):
    file = write(tmp_path, "uid,t,lat,lng", f"a,{T},46.5,6.6")
    with pytest.raises(Unclear, match="no column nobody"):
        recognised(file, {"user": "nobody"})


@pytest.mark.parametrize(
    ("value", "kind"),
    [(str(T), "s"), (f"{T}.25", "s"), (f"{T}123", "ms"), ("2008-05-17T14:12:10Z", "iso"), ("2008-05-17 14:12:10+02:00", "iso")],
)
def test_seconds_milliseconds_and_text_are_told_apart(tmp_path, value, kind):
    file = write(tmp_path, "user,t,lat,lng", f"a,{value},46.5,6.6")
    assert recognised(file).time == kind
    assert datasets.load(file).traces["t"][0].floor("s").date() == pd.Timestamp("2008-05-17").date()


@pytest.mark.parametrize("value", ["5", f"{T}123456", "9999999999"])
def test_numbers_that_are_no_times_are_refused_in_words(tmp_path, value):
    with pytest.raises(Unclear, match="neither as seconds nor as milliseconds since 1970") as error:
        recognised(write(tmp_path, "user,t,lat,lng", f"a,{value},46.5,6.6"))
    assert not error.value.asks


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_a_zone_is_never_guessed(tmp_path, name):
    file = write(tmp_path, "uid,t,lat,lng", "a,2008-05-17 14:12:10,46.5,6.6")
    if name == "t.parquet":
        pd.read_csv(file, parse_dates=["t"]).to_parquet(file := tmp_path / name)
    with pytest.raises(Unclear, match="no time zone") as error:
        recognised(file)
    assert list(error.value.asks) == ["zone"]
    assert recognised(file, zone="Europe/Paris").arguments["zone"] == "Europe/Paris"


def test_a_parquet_file_with_times_of_its_own(tmp_path):
    table = pd.DataFrame({"device": [7, 7], "when": pd.to_datetime([T, T + 60], unit="s", utc=True), "lat": 46.5, "lon": 6.6})
    table.rename(columns={"when": "timestamp"}).to_parquet(tmp_path / "t.parquet")
    reading = recognised(tmp_path / "t.parquet")
    assert (reading.time, reading.guessed) == ("", ("user", "t", "lng"))
    assert datasets.load(tmp_path / "t.parquet").traces["user"].tolist() == ["7", "7"]


@pytest.mark.parametrize("text", ["", "user,t,lat,lng\n", "user,t,lat,lng\n\n"])
def test_a_table_without_records(tmp_path, text):
    (tmp_path / "t.csv").write_text(text)
    if not text:
        with pytest.raises(ValueError, match="the file is empty"):
            recognised(tmp_path / "t.csv")
    else:
        assert recognised(tmp_path / "t.csv").guessed == ()
