"""The table of call records: what it is, every rule it can break, and the tables of cells."""

import numpy as np
import pandas as pd
import pytest
from conftest import refusals, refuses
from hypothesis import given, settings
from hypothesis import strategies as st

from mobpriv.calls.table import CALL_COLUMNS, OPTIONAL, InvalidCalls, as_calls, as_cells, problems, without
from mobpriv.traces.table import by_user, milliseconds, rows, within_days

CELLS = as_cells(
    pd.DataFrame({"cell": list("bac"), "lat": [45.1, 45.0, None], "lng": [1.1, 1.0, None], "municipality": ["B", "A", None]})
)
NOON = pd.Timestamp("2024-10-07 12:00", tz="UTC")
PERIOD = (NOON, NOON + pd.Timedelta(hours=1))


def calls(**columns) -> pd.DataFrame:
    """Two calls, valid but for what is given."""
    t = pd.Series([NOON, NOON + pd.Timedelta(minutes=1)])
    return pd.DataFrame({"user": ["u", "v"], "t": t, "cell": ["a", "b"], **columns})


def test_columns_types_and_order():
    table = pd.DataFrame({"duration": [1, 2, None], "user": [10, 9, 10], "cell": list("bab"), "end_cell": ["a", None, ""]})
    table = table.assign(t=[NOON, NOON, NOON - pd.Timedelta(days=1)], kind=list("xyz"))
    before = table.copy()
    validated = as_calls(table, CELLS)
    pd.testing.assert_frame_equal(table, before)
    assert list(validated) == [*CALL_COLUMNS, *OPTIONAL, "kind"]
    assert validated["user"].cat.categories.tolist() == ["10", "9"]  # text, sorted as text
    assert str(validated["t"].dtype) == "datetime64[ms, UTC]"
    # where nobody says, the end cell is that of the beginning
    assert validated[["user", "cell", "end_cell", "kind"]].agg("".join, axis=1).tolist() == ["10bbz", "10bax", "9aay"]
    np.testing.assert_array_equal(validated["duration"], [np.nan, 1.0, 2.0])
    assert validated["cell"].cat.categories.tolist() == validated["end_cell"].cat.categories.tolist() == CELLS["cell"].tolist()
    assert as_calls(validated, CELLS).equals(validated)
    assert CELLS["lat"].to_numpy()[validated["cell"].cat.codes][0] == 45.1  # a code is a row of Cells


def test_what_need_not_be_there_is_filled_in_and_what_serves_traces_serves_calls():
    validated = as_calls(calls())
    assert validated["end_cell"].tolist() == validated["cell"].cat.categories.tolist() == ["a", "b"]
    assert validated["duration"].isna().all()
    assert len(as_calls(calls()[:0], CELLS)) == 0
    users, offsets = by_user(validated)
    assert (users.tolist(), offsets.tolist()) == (["u", "v"], [0, 1, 2])
    assert within_days(validated, NOON, 30 / 86_400)["user"].tolist() == ["u"]
    assert rows(validated, np.array([False, True]))["cell"].tolist() == ["b"]
    assert milliseconds(validated)[1] - milliseconds(validated)[0] == 60_000


LATE = pd.Series([NOON, pd.Timestamp("2100-01-01", tz="UTC")])


@pytest.mark.parametrize(
    ("columns", "rule", "row"),
    [
        ({"user": [None, "v"]}, "user missing", 0),
        ({"t": pd.Series([NOON, pd.NaT], dtype="datetime64[ms, UTC]")}, "time missing", 1),
        ({"t": LATE - pd.Timedelta(days=365.25 * 121)}, "time before 1980", 0),
        ({"t": LATE}, "time after 2099", 1),
        ({"cell": ["a", None]}, "cell missing", 1),
        ({"cell": ["a", ""]}, "cell missing", 1),
        ({"cell": ["x", "a"]}, "cell unknown", 0),
        ({"cell": ["a", "c"]}, "cell without coordinates", 1),
        ({"end_cell": ["x", "a"]}, "end cell unknown", 0),
        ({"end_cell": [None, "c"]}, "end cell without coordinates", 1),
        ({"duration": [3.0, -0.5]}, "duration negative", 1),
        ({"duration": ["3", "long"]}, "duration not a number", 1),
        ({"duration": [np.inf, 1]}, "duration not a number", 0),
    ],
)
def test_every_rule_is_told_with_its_first_record(columns, rule, row):
    table = calls(**columns)
    problem = problems(table, CELLS).set_index("rule").loc[rule]
    assert (problem["row"], problem["records"] >= 1, bool(problem["remedy"])) == (row, True, True)
    with pytest.raises(InvalidCalls, match=f"{rule}: .* records?, first at row {row}"):
        as_calls(table, CELLS)
    kept, left_out = without(table, CELLS)
    assert len(kept) + left_out["records"].sum() == 2
    assert rule in left_out["rule"].tolist()


def test_a_period_is_its_first_moment_up_to_its_end():
    t = [PERIOD[0] - pd.Timedelta("1ms"), PERIOD[0], PERIOD[1] - pd.Timedelta("1ms"), PERIOD[1]]
    table = pd.DataFrame({"user": list("wxyz"), "t": t, "cell": "a"})
    kept, left_out = without(table, CELLS, PERIOD)
    assert kept["user"].tolist() == ["x", "y"]
    assert left_out.set_index("rule")["row"].to_dict() == {"time before the period": 0, "time after the period": 3}
    assert len(as_calls(table, CELLS)) == 4
    for wrong in ((PERIOD[1], PERIOD[0]), (pd.Timestamp("2024-10-07"), pd.Timestamp("2024-10-08"))):
        refuses("a period has two moments with a time zone, the first before the other", problems, table, CELLS, wrong)


test_times_without_a_zone_and_tables_of_another_kind_are_refused = refusals(
    (calls(t=pd.Series([NOON, NOON]).dt.tz_localize(None)), r"times carry no time zone .* say which"),
    (calls(t=[1, 2]), "column t must hold times with a zone"),
    (calls(lat=45.0, lng=1.0).drop(columns="cell"), r"missing: cell .*with lat and lng they look like traces"),
    call=as_calls,
)


def test_repetitions_go_what_differs_anywhere_stays_and_a_record_counts_once():
    table = pd.concat([calls(duration=[1.0, np.nan])] * 2 + [calls(duration=[2.0, np.nan], end_cell=["b", "b"])])
    kept, left_out = without(table.reset_index(drop=True), CELLS)
    assert left_out["records"].tolist() == [3]  # the call without a duration is one call three times
    assert kept["user"].tolist() == ["u", "u", "v"]
    assert kept["duration"].tolist()[:2] == [1.0, 2.0]
    two_rules = calls(cell=["x", "a"], duration=[-1, -2])
    assert problems(two_rules, CELLS)["rule"].tolist() == ["cell unknown", "duration negative"]
    kept, left_out = without(two_rules, CELLS)
    assert (len(kept), left_out["records"].tolist()) == (0, [1, 1])


CELL = st.sampled_from(["a", "b", "c", "x", None])


@settings(max_examples=50)
@given(st.lists(st.tuples(st.sampled_from("uvw"), st.integers(0, 3), CELL, st.integers(-1, 1)), max_size=12))
def test_nothing_is_dropped_in_silence(records):
    """Every record is kept or counted, and what is kept are, one by one, those that break no rule, each once."""
    table = pd.DataFrame(records, columns=["user", "t", "cell", "duration"])
    table["t"] = NOON + pd.to_timedelta(table["t"].astype(int), unit="s")
    kept, left_out = without(table, CELLS)
    assert len(kept) + left_out["records"].sum() == len(records)
    expected = sorted({r for r in records if r[2] in ("a", "b") and r[3] >= 0})
    seconds = (milliseconds(kept) - int(NOON.timestamp()) * 1000) // 1000
    kept_rows = list(zip(kept["user"], seconds.tolist(), kept["cell"], kept["duration"].astype(int), strict=True))
    assert sorted(kept_rows) == expected
    assert [r[:2] for r in kept_rows] == [r[:2] for r in expected]


def test_cells_are_typed_and_sorted_and_keep_what_rides_along():
    given = pd.DataFrame({"cell": [10, 9.0], "lat": ["45", "44"], "lng": [1, 2], "height": [30, 40]})
    validated = as_cells(given)
    assert validated["cell"].tolist() == ["10", "9"]
    assert validated[["lat", "lng"]].dtypes.tolist() == [np.float64, np.float64]
    assert validated["municipality"].isna().all()
    assert validated["height"].tolist() == [30, 40]
    assert as_cells(validated).equals(validated)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"cell": ["a", None]}, "every row of a table of cells names its cell: 1 do not, first row 1"),
        ({"cell": ["a", "a"]}, "a cell occurs once"),
        ({"lat": [45, 91]}, r"latitudes of cells lie in \[-90, 90\]: .*cell b, lat 91"),
        ({"lng": [181, 1]}, r"longitudes of cells lie in"),
        ({"lng": [None, 1]}, "a cell has both coordinates or none"),
        ({"lat": ["45", "north"]}, "coordinates of a cell are numbers"),
        ({"lng": None}, "cells need the columns cell, lat, lng; missing: lng"),
    ],
)
def test_wrong_cells_are_refused(columns, words):
    table = {"cell": ["a", "b"], "lat": [45, 46], "lng": [1, 2]} | columns
    refuses(words, as_cells, pd.DataFrame({name: values for name, values in table.items() if values}))
