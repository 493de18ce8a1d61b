"""The numbers of a card of call records, against twins that count row by row."""

import naive_calls as naive
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mobpriv.calls.table import as_calls, as_cells
from mobpriv.datasets.call_statistics import GAPS, burstiness, describe_calls

ZONE = "Europe/Lisbon"
CELLS = as_cells(
    pd.DataFrame({"cell": list("abcdefg"), "lat": 45 + np.arange(7) / 100, "lng": 1.0, "municipality": list("AAABBBB")})
)
START = pd.Timestamp("2024-10-25", tz=ZONE)  # two days before the clocks change


def table(records) -> pd.DataFrame:
    frame = pd.DataFrame(records, columns=["user", "minute", "cell", "end_cell"])
    return as_calls(frame.assign(t=START + pd.to_timedelta(frame["minute"], unit="min")).drop(columns="minute"), CELLS)


def value(statistics: pd.DataFrame, quantity: str, at: float | None = None) -> float:
    rows = statistics[statistics["quantity"] == quantity]
    return rows[rows["at"].isna() if at is None else rows["at"] == at]["value"].item()


USER, CELL = st.sampled_from("uvw"), st.sampled_from("abcdefg")


@settings(max_examples=30)
@given(st.lists(st.tuples(USER, st.integers(0, 5 * 1440), CELL, st.sampled_from("abc")), min_size=1, max_size=60))
def test_it_equals_the_twin(records):
    calls = table(records)
    statistics, days, local = describe_calls(calls, CELLS, ZONE), naive.user_days(calls, ZONE), calls["t"].dt.tz_convert(ZONE)
    many = [(n, cells) for n, cells in days if cells >= 6]
    means = [np.mean(column) for column in zip(*many, strict=True)] or [np.nan] * 2
    shares = [naive.top_share(cells.tolist()) for _, cells in calls.groupby("user", observed=True)["cell"]]
    for quantity, at, twin in (
        ("calls per user-day", 0.5, np.median([n for n, _ in days])),
        ("distinct cells per user-day", 0.9, np.quantile([c for _, c in days], 0.9)),
        ("share of user-days with at least 6 cells", None, len(many) / len(days)),
        ("calls of a user-day with at least 6 cells, mean", None, means[0]),
        ("cells of a user-day with at least 6 cells, mean", None, means[1]),
        ("days", None, (local.dt.date.max() - local.dt.date.min()).days + 1),
        ("share of night calls", None, (local.dt.hour < 8).mean()),
        ("share of calls on weekends", None, (local.dt.day_of_week >= 5).mean()),
        ("share of calls that end in another cell", None, np.mean([c.cell != c.end_cell for c in calls.itertuples()])),
        ("share of the most used cell", 0.5, np.median(shares)),
    ):
        assert value(statistics, quantity, at) == pytest.approx(twin, nan_ok=True), quantity
    bursts = burstiness(calls)
    for user, t in calls.groupby("user", observed=True)["t"]:
        gaps = t.diff().dt.total_seconds().dropna().tolist()
        assert (user in bursts.index) == (len(gaps) >= GAPS)
        if user in bursts.index:
            assert bursts[user] == pytest.approx(naive.burstiness(gaps), nan_ok=True)


def test_no_calls_and_cells_of_no_municipality():
    nothing = describe_calls(table([("u", 0, "a", "a")])[:0], CELLS)
    assert value(nothing, "records") == 0
    assert np.isnan(value(nothing, "calls per user and day, mean"))
    nowhere = describe_calls(table([("u", 0, "a", "a")]), CELLS.assign(municipality=None))
    assert value(nowhere, "municipalities with calls") == 0
