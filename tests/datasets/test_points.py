"""Files of points of interest, and the points of the synthetic city."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from conftest import refuses

from mobpriv.datasets import city_truth, points
from mobpriv.datasets.city import city_points
from mobpriv.experiments.thesis_4 import points_of
from mobpriv.ground.geo import distance


@pytest.fixture
def file(tmp_path):
    def write(text):
        (tmp_path / "points.csv").write_text(text, encoding="utf-8")
        return tmp_path / "points.csv"

    return write


def test_csv_and_parquet_give_the_same(file, tmp_path):
    table = pd.DataFrame({"lat": [45.5, 45.5, -3.0], "lng": [5.0, 5.0, -180.0], "kind": ["café", "bar", "a, b"]})
    table.to_parquet(tmp_path / "points.parquet")
    text = points(file(table.to_csv(index=False)))
    pd.testing.assert_frame_equal(text, points(tmp_path / "points.parquet"), check_dtype=False)
    pd.testing.assert_frame_equal(text, table, check_dtype=False)


def test_columns_by_other_names_and_blank_lines(file):
    pois = points(file("name;y;x\nbar;1.5;2\n\ncafé;3;4\n"), {"lat": "y", "lng": "x"})
    assert pois.to_dict("list") == {"name": ["bar", "café"], "lat": [1.5, 3.0], "lng": [2.0, 4.0]}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("lat,lng\n1,2\n91,3\n", r"lat must be a number in \[-90, 90\] degrees \(1 point outside, first in line 3: 91.0\)"),
        ("lat,lng\n1,2\n1,-180.5\n1,999\n", r"lng must be .* \(2 points outside, first in line 3: -180.5\)"),
        ("lat,lng\n1,\n", r"lng must be a number .*first in line 2: nan"),
        ("lat,lng\n1,here\n", r"line not readable: 1 line, first line 2: '1,here': mend the line"),
        ("lat,lng\n1,2,3\n", r"line not readable: 1 line, first line 2"),
        ("latitude,lng\n1,2\n", r"no column lat \(latitude\); it has: latitude, lng. Say which is which"),
        ("lat,lng\n", r"holds no point; it needs a line of names, lat,lng"),
        ("", r"the file is empty; it needs a line of names, lat,lng"),
    ],
)
def test_what_is_no_point_is_refused_in_one_line(file, text, line):
    refuses(line, points, file(text))


def test_parquet_faults(tmp_path):
    outside = r"lat must be .* \(1 point outside, first in row 1: nan\)"
    for table, says in (({"lat": [1.0, np.nan], "lng": [2.0, 3.0]}, outside), ({"lat": [1.0]}, "no column lng")):
        pd.DataFrame(table).to_parquet(tmp_path / "points.parquet")
        refuses(says, points, tmp_path / "points.parquet")
    with pytest.raises(FileNotFoundError, match="a file is needed here, and there is none"):
        points(tmp_path / "nothing.csv")


def test_the_real_points(real_data):
    pois = points(real_data / "poi_san_francisco.parquet")
    assert len(pois) == 7110
    assert pois["source"].value_counts().tolist() == [3779, 3331]


def test_of_a_file_with_the_points_of_several_one_is_taken(tmp_path):
    real, beside = SimpleNamespace(data=SimpleNamespace(synthetic=False)), str(tmp_path / "traces.csv")
    (path := tmp_path / "p.csv").write_text("lat,lng,source\n1,1,osm_2026\n2,2,city\n3,3,osm_2026\n")
    assert len(points_of(real, beside, "p.csv")) == 3
    assert points_of(real, beside, "p.csv", "osm")["lat"].tolist() == [1, 3]
    with pytest.raises(ValueError, match=r"no point has a source that begins with 'here' \(there are: city, osm_2026\)"):
        points_of(real, beside, "p.csv", "here")
    path.write_text("lat,lng\n1,1\n")
    refuses("points_source needs a column source", points_of, real, beside, "p.csv", "osm")
    assert points_of(real, beside, "") is None


def test_points_of_the_city():
    """Where people go there are points; the same seed gives the same; another gives others."""
    pois = city_points()
    pd.testing.assert_frame_equal(pois, city_points())
    assert not pois["lat"].equals(city_points(seed=1)["lat"])
    counts = pois["kind"].value_counts()
    assert counts["public place"] == 900
    # five on average about each of 900 places, a Poisson number: within four standard deviations
    assert abs(counts["shop"] - 4500) < 4 * np.sqrt(4500)
    stays, _ = city_truth()
    out = stays[~stays["role"].isin(["home", "work"])].iloc[::50]
    d = distance(*(out[c].to_numpy()[:, None] for c in ("lat", "lng")), *(pois[c].to_numpy() for c in ("lat", "lng")))
    # a stay at a public place lies at one of the points
    assert np.median(d.min(axis=1)) < 50
