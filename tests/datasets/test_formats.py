"""What other programs write: the same records in every format, all of a file's records accounted for, and refusals that say what to do."""

import bz2
import json
import lzma
import re
import tempfile
from pathlib import Path

import geopandas
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from conftest import refuses
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from mobpriv import datasets
from mobpriv.cli import app
from mobpriv.datasets import load, read_calls, read_table, recognised
from mobpriv.icp.files import icps_of_files
from mobpriv.icp.profiles import Window, icps

T = 1_709_539_200  # 2024-03-04 08:00 UTC
N = 12
FRAME = pd.DataFrame(
    {
        "user": [f"u{k % 3}" for k in range(N)],
        "t": T + 600 * np.arange(N),
        "lat": 45 + 0.001 * np.arange(N),
        "lng": 7 - 0.002 * np.arange(N),
    }
)
MOMENTS = pd.to_datetime(FRAME["t"], unit="s", utc=True)
ISO = MOMENTS.dt.strftime("%Y-%m-%dT%H:%M:%SZ")
POINTS = geopandas.GeoDataFrame(
    {"user": FRAME["user"], "t": MOMENTS}, geometry=geopandas.points_from_xy(FRAME["lng"], FRAME["lat"]), crs=4326
)
RECORDS = FRAME.to_dict("records")
FEATURES = [
    {"type": "Feature", "properties": {"user": r["user"], "t": r["t"]}, "geometry": {"type": "Point", "coordinates": [r["lng"], r["lat"]]}}
    for r in RECORDS
]  # fmt: skip
BY_USER = [(user, [k for k in range(N) if FRAME["user"][k] == user]) for user in ("u0", "u1", "u2")]


def lines(elements) -> str:
    return "".join(json.dumps(element) + "\n" for element in elements)


def collection(features=FEATURES, **more) -> str:
    return json.dumps({"type": "FeatureCollection", **more, "features": features}, indent=1)


def gpx(declared="", tracks=BY_USER, of="http://www.topografix.com/GPX/1/1") -> str:
    point = '<trkpt lat="{lat}" lon="{lng}"><ele>3</ele><time>{t}</time></trkpt>'
    parts = ("".join(point.format(t=ISO[k], lat=FRAME["lat"][k], lng=FRAME["lng"][k]) for k in own) for _, own in tracks)
    named = (f"<trk><name>{name}</name><trkseg>{part}</trkseg></trk>" for (name, _), part in zip(tracks, parts, strict=True))
    return f'{declared}<gpx xmlns="{of}">{"".join(named)}</gpx>'


def kml() -> str:
    marks = []
    for user, own in BY_USER:
        when = "".join(f"<when>{ISO[k]}</when>" for k in own)
        at = "".join(f"<gx:coord>{FRAME['lng'][k]} {FRAME['lat'][k]} 0</gx:coord>" for k in own)
        marks.append(f"<Placemark><name>{user}</name><gx:Track>{when}{at}</gx:Track></Placemark>")
    of = 'xmlns="http://www.opengis.net/kml/2.2" xmlns:gx="http://www.google.com/kml/ext/2.2"'
    return f"<kml {of}><Document>{''.join(marks)}</Document></kml>"


def text(sep=",", comma=False, names="user,t,lat,lng", **columns) -> str:
    table = FRAME.assign(**columns).to_csv(
        index=False, header=False, sep=sep, decimal="," if comma else ".", lineterminator="\n"
    )
    return names.replace(",", sep) + "\n" + table


WRITE = {  # the same records, by the name of the file
    "t.geojson": collection(),
    "t.json": json.dumps(RECORDS),
    "lines.json": lines(RECORDS),
    "t.jsonl": lines(RECORDS),
    "t.ndjson": lines(FEATURES),
    "t.gpx": gpx(),
    "declared.gpx": gpx('<?xml version="1.0" encoding="UTF-8"?>\n', of="http://www.topografix.com/GPX/1/0"),
    "t.kml": kml(),
    "t.feather": FRAME.to_feather,
    "t.arrow": lambda path: FRAME.to_feather(path, compression="uncompressed"),
    "geo.parquet": POINTS.to_parquet,
    "metres.parquet": POINTS.to_crs(32632).to_parquet,
    "t.gpkg": POINTS.to_file,
    "metres.gpkg": POINTS.to_crs(32632).to_file,
    "t.csv.bz2": bz2.compress(text().encode()),
    "t.csv.xz": lzma.compress(text().encode()),
    "microseconds.csv": text(t=FRAME["t"] * 10**6),
    "nanoseconds.csv": text(t=FRAME["t"] * 10**9),
    "comma.csv": text(";", True),
    "circle.csv": text(lng=FRAME["lng"] + 360 - 14).replace("user", "# 7 degrees are subtracted in the test\nuser"),
    "sep.csv": "sep=;\r\n" + text(";"),
    "comments.csv": "# made by a logger\n# twice\n" + text(),
    "names.csv": "# made by a logger\n#" + text(),
}


def write(folder: Path, name: str, content=None) -> Path:
    path, content = folder / name, WRITE[name] if content is None else content
    if callable(content):
        content(path)
    else:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize("name", WRITE)
def test_the_same_records_in_every_format(tmp_path, name):
    data_set = load(write(tmp_path, name))
    expected = read_table(FRAME)[0]
    assert not len(data_set.left_out)
    assert data_set.traces["user"].tolist() == expected["user"].tolist()
    assert data_set.traces["t"].tolist() == expected["t"].tolist()
    lng = expected["lng"] - 14 if name == "circle.csv" else expected["lng"]
    # a projection and back is exact to a nanodegree
    np.testing.assert_allclose(data_set.traces[["lat", "lng"]], np.c_[expected["lat"], lng], rtol=0, atol=1e-8)
    part = load(tmp_path / name, max_users=1)
    assert (part.traces["user"].unique().tolist(), part.names) == (["u0"], ("u0", "u1", "u2"))
    shown = CliRunner().invoke(app, ["validate", str(tmp_path / name)], env={"COLUMNS": "300"})
    assert shown.exit_code == 0
    assert "12 records of 3 users" in shown.output


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("microseconds.csv", "times are microseconds since 1970"),
        ("nanoseconds.csv", "times are nanoseconds since 1970"),
        ("comma.csv", "12 latitudes with a decimal comma are read; 12 longitudes"),
        ("circle.csv", "longitudes run from 0 to 360: we subtract 360 from those above 180"),
        ("sep.csv", "1 line above the names is no record"),
        ("comments.csv", "2 lines above the names are no record"),
        ("names.csv", "1 line above the names is no record"),
        ("t.gpx", "user = track"),
    ],
)
def test_what_is_read_in_an_unusual_way_is_said(tmp_path, name, said):
    path = write(tmp_path, name)
    assert said in CliRunner().invoke(app, ["validate", str(path)]).output
    assert said.split(";")[0] in load(path).reading


def test_longitudes_are_changed_only_where_most_are_beyond_180(tmp_path):
    for lng, kept in (([200.0] * 5 + [7.0], 6), ([200.0] + [7.0] * 5, 5), ([200.0] * 5 + [-7.0], 1)):
        path = write(tmp_path, "t.csv", "user,t,lat,lng\n" + "".join(f"a,{T + k},45,{x}\n" for k, x in enumerate(lng)))
        data_set = load(path)
        assert len(data_set.traces) == kept
        assert data_set.left_out["records"].sum() == 6 - kept


def test_24_00_is_midnight_at_the_end_of_a_day(tmp_path):
    written = [
        "2024-02-29T24:00Z",
        "20240229T240000Z",
        "2024-02-29 24:00:00.000+01:00",
        "2024-02-29T24:00:01Z",
        "2024-02-29T24:30Z",
    ]
    path = write(tmp_path, "t.csv", "user,t,lat,lng\n" + "".join(f"a,{t},45,{k}\n" for k, t in enumerate(written)))
    data_set = load(path)
    assert data_set.traces["t"].dt.strftime("%m-%d %H:%M").tolist() == ["02-29 23:00", "03-01 00:00", "03-01 00:00"]
    assert data_set.left_out[["rule", "records"]].values.tolist() == [["time not readable", 2]]
    assert "24:00 is the end of its day" in recognised(path).in_words


@pytest.mark.parametrize("stamp", ["timestamp", "timestampMs"])
def test_a_location_history(tmp_path, stamp):
    moments = ISO if stamp == "timestamp" else (FRAME["t"] * 1000).astype(str)
    e7 = [
        {
            "latitudeE7": round(r["lat"] * 1e7),
            "longitudeE7": round(r["lng"] * 1e7),
            stamp: moments[k],
            "activity": [{stamp: moments[0]}],
        }
        for k, r in enumerate(RECORDS)
    ]
    data_set = load(write(tmp_path, "Records.json", json.dumps({"locations": [*e7, {stamp: moments[0]}, None]})))
    assert data_set.traces["user"].unique().tolist() == ["Records"]
    np.testing.assert_allclose(data_set.traces[["lat", "lng"]], FRAME[["lat", "lng"]], rtol=0, atol=1e-9)
    assert data_set.left_out.set_index("rule")["records"].to_dict() == {
        "element that is no record": 1,
        "latitude or longitude not a number": 1,
    }


def test_tracks_without_names_are_of_the_file(tmp_path):
    tracks = [("", list(range(6))), ("", list(range(6, N)))]
    assert load(write(tmp_path, "ann.gpx", gpx(tracks=tracks))).traces["user"].unique().tolist() == ["ann"]
    path = write(tmp_path, "bea.gpx", gpx(tracks=[("home", [0, 1]), ("work", [2])]))
    assert load(path).traces["user"].unique().tolist() == ["home", "work"]
    one = CliRunner().invoke(app, ["validate", str(path), "--user", "file"])
    assert "3 records of 1 user" in one.output


def test_places_with_times_are_of_the_file_and_others_are_counted(tmp_path):
    place = "<Placemark><name>{name}</name><TimeStamp><when>{t}</when></TimeStamp><Point><coordinates>7,45,0</coordinates></Point></Placemark>"
    marks = [place.format(name=f"stop {k}", t=ISO[k]) for k in range(3)]
    marks += ["<Placemark><Point><coordinates>7,45</coordinates></Point></Placemark>", "<Placemark><LineString/></Placemark>"]
    data_set = load(write(tmp_path, "ann.kml", f"<kml>{''.join(marks)}</kml>"))
    assert data_set.traces["user"].tolist() == ["ann"] * 3
    rules = {"time missing": 1, "place that is no point and no track with times": 1}
    assert data_set.left_out.set_index("rule")["records"].to_dict() == rules


def test_lines_above_the_names_and_24_00_are_the_same_for_calls_read_in_parts(tmp_path):
    cells = pd.DataFrame({"cell": ["1", "2"], "lat": [45.0, 46.0], "lng": [7.0, 7.0], "municipality": ["A", "B"]})
    calls = [f"u{k % 3},{t},{1 + k % 2}\n" for k, t in enumerate([*ISO, "2024-03-05T24:00Z", "2024-03-06T24:00:00Z"])]
    window = Window("2024-03-04", "UTC", 1)
    results = []
    for above in ("", "# made by a switch\nsep=,\n"):
        path = write(tmp_path, "calls.csv", f"{above}user,t,cell\n{''.join(calls)}")
        results.append(icps_of_files(path, window, cells, threads=1))
        found = read_calls(path, cells, **recognised(path, kind="calls").arguments)[0]
        pd.testing.assert_frame_equal(results[-1].profiles, icps(found, cells, window).profiles)
    assert results[0].read == results[1].read == len(calls)
    pd.testing.assert_frame_equal(results[0].profiles, results[1].profiles)
    refuses("only text and Parquet are read in parts", icps_of_files, write(tmp_path, "t.jsonl"), window, cells)


@pytest.mark.parametrize(
    ("frame", "columns"),
    [
        (FRAME.rename(columns={"user": "uid"}).drop(columns="t").assign(datetime=MOMENTS), {}),  # scikit-mobility
        (
            POINTS.rename(columns={"user": "user_id", "t": "tracked_at"}).rename_geometry("geom").rename_axis("id"),
            {},
        ),  # trackintel
        (POINTS.rename(columns={"user": "traj_id"}).set_index("t").to_crs(3857), {}),  # movingpandas
        (POINTS.assign(x=4e5, y=5e6).to_crs(32632), {}),
        (FRAME.rename(columns={"user": "who"}), {"user": "who"}),
        (FRAME.set_index(["user", "t"]), {}),
    ],
)
def test_data_frames_of_other_libraries(frame, columns):
    before = frame.copy()
    data_set = load(frame, **({"columns": columns} if columns else {}))
    assert frame.equals(before)
    assert (data_set.source, data_set.sha256, data_set.left_out["records"].sum()) == ("<data frame>", "", 0)
    expected = read_table(FRAME)[0]
    assert data_set.traces[["user", "t"]].equals(expected[["user", "t"]])
    np.testing.assert_allclose(data_set.traces[["lat", "lng"]], expected[["lat", "lng"]], rtol=0, atol=1e-8)


def test_calls_in_a_data_frame_and_in_lines_of_json(tmp_path):
    cells = pd.DataFrame({"cell": ["1", "2"], "lat": [45.0, 46.0], "lng": [7.0, 7.0]})
    calls = pd.DataFrame({"caller": ["a", "b", "a"], "call_time": MOMENTS[:3], "cell_id": [1, 2, 3]})
    path = write(tmp_path, "calls.jsonl", lines(calls.assign(call_time=ISO[:3]).to_dict("records")))
    for source in (calls, path):
        found, _, left_out = read_calls(source, cells, **recognised(source, kind="calls").arguments)
        assert found["cell"].tolist() == ["1", "2"]
        assert left_out[["rule", "records"]].values.tolist() == [["cell unknown", 1]]
    assert datasets.kind_of(path) == "calls"
    refuses("holds call records", load, calls)


@pytest.mark.parametrize(
    ("called", "known", "words"),
    [
        (["0101", "0102"], ["101", "102"], "cells are 0101, 0102 here, and 101, 102 in the table of cells: write them alike"),
        (["1", "2"], ["c1", "c2", "c3", "c4"], r"cells are 1, 2 here, and c1, c2, c3, … in the table"),
        (["101.0", "zz"], ["101"], "add zz to the table of cells"),
    ],
)
def test_cells_that_nobody_knows_are_named(called, known, words):
    cells = pd.DataFrame({"cell": known, "lat": 45.0, "lng": 7.0})
    calls = pd.DataFrame({"user": "a", "t": MOMENTS[:2], "cell": called})
    try:
        remedy = read_calls(calls, cells)[2]["remedy"].iloc[0]
    except ValueError as refused:
        remedy = str(refused)
    assert re.search(words, remedy)


SHAPE = {"type": "Feature", "properties": {}, "geometry": {"type": "Polygon", "coordinates": []}}


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("t.geojson", collection([SHAPE]), "the geometries are Polygon: a record is a Point"),
        ("t.geojson", collection(crs={"properties": {"name": "EPSG:2154"}}), "coordinates are of EPSG:2154: reproject them"),
        ("t.geojson", collection()[:-40], "not a whole GEOJSON file .*was it cut while copying"),
        ("t.json", "[" * 100_000, "too deeply nested"),
        ("t.json", '{"semanticSegments": []}', "none of these: GeoJSON"),
        ("t.jsonl", "5\n", r"no column user, t \(time\)|no record can be used"),
        ("t.gpx", gpx()[:-9], "not a whole GPX file .*was it cut"),
        ("t.gpx", "<gpx/>", "no record|holds no records"),
        ("t.kml", "no XML", "not a whole KML file"),
        ("t.gpkg", b"SQLite format 3\0" + bytes(200), "not a whole GeoPackage file"),
        ("t.feather", b"ARROW1" + bytes(200), "not a whole Feather file"),
        ("t.arrow", bytes(200), "not a whole ARROW file|no column"),
        ("t.csv.xz", lzma.compress(text().encode())[:-20], "was it cut while copying"),
        ("t.csv.bz2", bz2.compress(text().encode())[:-20], "was it cut while copying"),
        ("t.csv.bz2", bz2.compress(collection().encode()), "is a JSON document"),
        ("t.csv", gpx(), "is an XML document"),
        ("t.csv", text().encode("utf-16"), "UTF-16"),
        ("t.csv", b"\x01\x02\x03,\x04\n", "no text"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused_without_its_content(tmp_path, name, content, words):
    path = write(tmp_path, name, content)
    shown = CliRunner().invoke(app, ["validate", str(path)], env={"COLUMNS": "300"})
    assert shown.exit_code == 2
    assert re.search(words, shown.output), shown.output
    assert len(shown.output.strip().splitlines()) == 1
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\ufffd]|\d\.\d{3}", shown.output.replace(str(path), ""))


def test_a_layer_is_not_guessed(tmp_path):
    for layer in ("one", "other"):
        POINTS.to_file(tmp_path / "t.gpkg", layer=layer)
    refuses(r"2 layers \(one, other\): write the one with the records", load, tmp_path / "t.gpkg")


def test_an_arrow_stream_and_values_of_several_types(tmp_path):
    with pa.ipc.new_stream(tmp_path / "t.arrows", pa.Schema.from_pandas(FRAME)) as stream:
        stream.write(pa.Table.from_pandas(FRAME))
    assert len(load(tmp_path / "t.arrows").traces) == N
    odd = [{"user": user, "t": T, "lat": 45, "lng": 7} for user in (7, "7", "x", None, 2**70, True)]
    data_set = load(write(tmp_path, "odd.json", json.dumps(odd)))
    assert data_set.traces["user"].tolist() == [str(2**70), "7", "True", "x"]
    assert data_set.left_out.set_index("rule")["records"].to_dict() == {"user missing": 1, "record repeated": 1}
    whole = [{"user": 2**53 + 1, "t": T, "lat": 45, "lng": 7}, {"user": None, "t": T, "lat": 45, "lng": 7}]
    assert load(write(tmp_path, "whole.json", json.dumps(whole))).traces["user"].tolist() == [str(2**53 + 1)]


# ------------------------------------------------------------------------ records read = kept + left out, whatever a file holds

ODD = st.sampled_from([None, "", "x", "NA", 0, -1, 91.5, 400, 1e300, T, str(T), ISO[0], "24:00", True, [], {}, [[1]], {"a": 1}])


@st.composite
def mutated(draw, elements):
    """Elements of a JSON document: some lack a value, hold another one, are another thing, or occur twice."""
    elements = json.loads(json.dumps(elements))
    for _ in range(draw(st.integers(0, 4))):
        k, how = draw(st.integers(0, len(elements) - 1)), draw(st.sampled_from(["drop", "set", "replace", "repeat"]))
        if how == "replace":
            elements[k] = draw(ODD)
        elif how == "repeat":
            elements.append(elements[k])
        elif isinstance(elements[k], dict) and elements[k]:
            path = elements[k]
            while (
                isinstance(inner := path.get(key := draw(st.sampled_from(sorted(path)))), dict)
                and inner
                and draw(st.booleans())
            ):
                path = inner
            path.pop(key) if how == "drop" else path.update({key: draw(ODD)})
    return elements


def accounted(name: str, content, n: int) -> None:
    """All of n records are kept or left out; or the file is refused in one line."""
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder), name, content)
        refusal = ""
        try:
            traces, left_out = read_table(path, **recognised(path).arguments)
        except ValueError as refused:
            refusal = str(refused)
        if refusal:
            assert "\n" not in refusal
            return
        assert len(traces) + left_out["records"].sum() == n
        assert (left_out["place"] != "").all()


@given(elements=mutated(FEATURES))
def test_every_feature_is_accounted_for(elements):
    accounted("t.geojson", collection(elements), len(elements))
    accounted("t.geojsonl", lines(elements), len(elements))


@given(elements=mutated(RECORDS), bad=st.lists(st.sampled_from(["", " ", "{", '{"user": 1}}', "\0", "NaN"]), max_size=3))
def test_every_record_and_line_is_accounted_for(elements, bad):
    accounted("t.json", json.dumps(elements), len(elements))
    accounted("t.jsonl", lines(elements) + "".join(f"{line}\n" for line in bad), len(elements) + len(bad))


@given(elements=mutated([{"latitudeE7": 45 * 10**7, "longitudeE7": k, "timestamp": ISO[k]} for k in range(N)]))
def test_every_location_is_accounted_for(elements):
    accounted("Records.json", json.dumps({"locations": elements}), len(elements))


@given(
    drop=st.lists(st.sampled_from(["lat=", "lon=", "<time>", "T08", "45.0", "<name>", "0Z"]), max_size=3), wpt=st.integers(0, 2)
)
def test_every_point_of_a_track_is_accounted_for(drop, wpt):
    content = gpx().replace("<trk>", '<wpt lat="1" lon="2"/>' * wpt + "<trk>", 1)
    for part in drop:  # one attribute or value is renamed or broken
        content = content.replace(
            part, part.replace("=", "X=").replace("<time>", "<time>x").replace("0", "?").replace("Z", ""), 1
        )
    accounted("t.gpx", content, N + wpt)


@given(drop=st.sets(st.integers(0, N - 1), max_size=5))
def test_every_place_of_a_kml_document_is_accounted_for(drop):
    content = kml()
    for k in drop:
        content = content.replace(f"<when>{ISO[k]}</when>", "")
    accounted("t.kml", content, N)


@given(
    users=st.lists(st.sampled_from(["a", None, "NA", " b"]), min_size=4, max_size=4),
    xs=st.lists(st.sampled_from([7.0, 200.0, -400.0, np.nan, np.inf, 0.0]), min_size=4, max_size=4),
    empty=st.sets(st.integers(0, 3), max_size=2),
)
def test_every_row_of_a_table_of_points_is_accounted_for(users, xs, empty):
    points = geopandas.points_from_xy(xs, [0.0, 45.0, 95.0, 45.0])
    frame = geopandas.GeoDataFrame({"user": users, "t": MOMENTS[:4]}, geometry=points, crs=4326)
    frame.loc[sorted(empty), "geometry"] = None
    plain = pd.DataFrame({"user": users, "t": MOMENTS[:4], "lat": 45.0, "lng": xs})
    for name, write_it in (("t.parquet", frame.to_parquet), ("t.gpkg", frame.to_file), ("t.feather", plain.to_feather)):
        accounted(name, write_it, 4)
