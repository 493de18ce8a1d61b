"""The setting of the pages on PRIMULE: whose profiles, of which weeks, and what it refuses."""

import numpy as np
import pandas as pd
import pytest
from conftest import refusals, refuses

from mobpriv.calls.table import as_cells
from mobpriv.experiments.days import with_municipalities
from mobpriv.experiments.primule import prepare


def test_the_profiles_of_the_region():
    setting = prepare("region")
    assert setting.values.shape == (len(setting.profiles), 24)
    assert len(setting.town) == len(setting.profiles)
    assert ((setting.values > 0).any(axis=1)).all()  # a profile is of somebody who called
    assert not setting.left_out["records"].sum()
    assert f"{setting.profiles['municipality'].nunique()} municipalities" in setting.selection
    for k in (10, 100):  # of the region nothing is too small
        pd.testing.assert_frame_equal(prepare("region", k=k).profiles, setting.profiles)
    assert prepare("region", weeks=2).values.shape[1] == 12
    later = prepare("region", start="2024-10-14")
    assert later.left_out.set_index("rule")["records"]["before the window"] > 0


def test_the_most_populous_municipalities():
    every, few = prepare("region"), prepare("region", max_municipalities=3)
    names, sizes = np.unique(every.town, return_counts=True)
    assert set(few.town) == set(names[np.argsort(-sizes, kind="stable")[:3]])
    assert len(few.profiles) == np.sort(sizes)[-3:].sum()
    assert "3 municipalities, the most populous of 20" in few.selection
    assert few.profiles.index.equals(few.profiles.reset_index(drop=True).index)


def test_traces_whose_users_call():
    setting = prepare("city", rate=30, antennas=12, towns=3, weeks=2)
    assert set(setting.town) == {"T1", "T2", "T3"}

    again, other = (prepare("city", rate=30, antennas=12, towns=3, weeks=2, seed=seed) for seed in (1, 2))
    pd.testing.assert_frame_equal(setting.profiles, again.profiles)
    assert not other.profiles.equals(setting.profiles)


def test_antennas_that_stand_together_are_a_municipality():
    lat, lng = [38.7, 39.1, 38.7, 38.71, 39.1], [-9.1, -9.1, -9.11, -9.1, -8.0]
    east_of_lisbon = pd.DataFrame({"cell": list("abcde"), "lat": lat, "lng": lng})
    found = with_municipalities(as_cells(east_of_lisbon), 3, np.random.default_rng(1))
    assert found["municipality"].tolist() == ["T1", "T2", "T1", "T1", "T3"]
    with pytest.raises(ValueError, match="towns must be a whole number from 1 to the 5 antennas"):
        with_municipalities(as_cells(east_of_lisbon), 6, np.random.default_rng(1))


test_what_cannot_be_profiled_is_refused_in_one_line = refusals(
    ({"dataset": "city", "rate": -1}, r"rate must be"),
    ({"dataset": "city"}, r"individual call profiles are made of call records.*city holds traces"),
    ({"dataset": "region", "rate": 30.0}, r"rate is for traces, .*: region already holds calls .got 30.0"),
    ({"dataset": "region", "leave_out": "p1"}, r"leave_out is for traces.*got 'p1'"),
    ({"dataset": "region", "start": "2030-01-01"}, r"region has no call at a cell .* in the 4 weeks from 2030-01-01 on"),
    ({"dataset": "region", "start": "soon"}, r"start must be a date.*soon"),
    ({"dataset": "region", "max_municipalities": -1}, r"max_municipalities must be"),
    ({"dataset": "region", "k": 10**6}, r"k = 1000000 needs a municipality of 1000000 .*of region, M\d+, has \d+"),
    ({"dataset": "region", "zone": "Europe/Atlantis"}, r"there is no time zone .Europe/Atlantis"),
    call=lambda given: prepare(**given),
)


@pytest.fixture
def short(tmp_path):
    """A table of calls of three users in two municipalities on two days."""
    rows = [(f"u{i}", f"2024-03-0{4 + day}T1{i}:00:00Z", f"c{i}") for i in range(3) for day in range(2)]
    pd.DataFrame(rows, columns=["user", "t", "cell"]).to_csv(tmp_path / "july.csv", index=False)
    cells = pd.DataFrame({"cell": ["c0", "c1", "c2"], "lat": 45.0, "lng": 9.0, "municipality": ["a", "a", "b"]})
    cells.to_csv(tmp_path / "july_cells.csv", index=False)
    return tmp_path / "july.csv", cells


def test_a_short_table_says_when_its_calls_end_and_how_small_its_municipalities_are(short):
    selection = prepare(str(short[0]), zone="Europe/Lisbon").selection
    assert "A municipality has 1 to 2 profiles" in selection
    assert "The calls end on day 2 of 28" in selection
    assert "The calls end" not in prepare("region").selection


@pytest.mark.parametrize(("day", "said"), [(26, True), (27, False), (28, False)])
def test_a_last_day_without_a_call_is_no_early_end(short, day, said):
    file, _ = short
    late = pd.Timestamp("2024-03-04T12:00Z") + pd.Timedelta(days=day - 1)
    with file.open("a") as table:
        table.write(f"u1,{late.isoformat()},c1\n")
    assert (f"The calls end on day {day} of 28" in prepare(str(file), zone="Europe/Lisbon").selection) == said


def test_municipalities_too_small_for_k_are_left_out_and_counted(short):
    """Two profiles in a, one in b; k = 2 would return b's as it is."""
    every, few = (prepare(str(short[0]), zone="Europe/Lisbon", k=k) for k in (1, 2))
    assert every.town.tolist() == ["a", "a", "b"]
    assert few.town.tolist() == ["a", "a"]
    assert few.profiles["user"].tolist() == ["u0", "u1"]
    assert few.profiles.index.tolist() == [0, 1]
    assert "2 profiles of 2 users in 1 municipality" in few.selection
    assert few.left_out.values.tolist() == [["municipalities of fewer than 2 profiles", 2, 1]]
    assert not len(every.left_out)
    refuses("k = 3 needs a municipality of 3 profiles or more", prepare, str(short[0]), zone="Europe/Lisbon", k=3)


def test_calls_outside_the_window_are_not_among_those_of_small_municipalities(short):
    setting = prepare(str(short[0]), zone="Europe/Lisbon", start="2024-03-05", k=2)
    assert setting.left_out.values.tolist() == [["before the window", 3, 3], ["municipalities of fewer than 2 profiles", 1, 1]]


def test_cells_without_a_municipality_are_called_so(short):
    file, cells = short
    cells.drop(columns="municipality").to_csv(file.with_name("july_cells.csv"), index=False)
    refuses("no cell of july has a municipality: add the column municipality", prepare, str(file), zone="Europe/Lisbon")
    cells.assign(municipality=[None, None, "b"], cell=["c0", "c1", "c9"]).to_csv(file.with_name("july_cells.csv"), index=False)
    refuses("no call at a cell with a municipality in the 4 weeks", prepare, str(file), zone="Europe/Lisbon")
