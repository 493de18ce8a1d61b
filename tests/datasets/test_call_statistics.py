"""The numbers of a card of call records, against twins that count row by row."""

import naive_calls as naive
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mobpriv.calls.table import as_calls, as_cells
from mobpriv.datasets.call_statistics import GAPS, PUBLISHED, beside_published, burstiness, describe_calls

ZONE = "Europe/Lisbon"
CELLS = as_cells(
    pd.DataFrame({"cell": list("abcdefg"), "lat": 45 + np.arange(7) / 100, "lng": 1.0, "municipality": list("AAABBBB")})
)
START = pd.Timestamp("2024-10-25", tz=ZONE)  # two days before the clocks change


def table(records) -> pd.DataFrame:
    frame = pd.DataFrame(records, columns=["user", "minute", "cell", "end_cell"])
    return as_calls(frame.assign(t=START + pd.to_timedelta(frame["minute"], unit="min")).drop(columns="minute"), CELLS)


def value(statistics: pd.DataFrame, quantity: str, at: float | None = None) -> float:
    rows = statistics[
        (statistics["quantity"] == quantity) & (statistics["at"].isna() if at is None else statistics["at"] == at)
    ]
    assert len(rows) == 1
    return rows["value"].iloc[0]


@settings(deadline=None, max_examples=30)
@given(
    st.lists(
        st.tuples(st.sampled_from("uvw"), st.integers(0, 5 * 1440), st.sampled_from("abcdefg"), st.sampled_from("abc")),
        min_size=1,
        max_size=60,
    )
)
def test_it_equals_the_twin(records):
    calls = table(records)
    found = describe_calls(calls, CELLS, ZONE)
    days = naive.user_days(calls, ZONE)
    many = [(n, cells) for n, cells in days if cells >= 6]
    assert value(found, "calls per user-day", 0.5) == np.median([n for n, _ in days])
    assert value(found, "distinct cells per user-day", 0.9) == pytest.approx(np.quantile([c for _, c in days], 0.9))
    assert value(found, "share of user-days with at least 6 cells") == pytest.approx(len(many) / len(days))
    means = [np.mean(column) for column in zip(*many, strict=True)] or [np.nan] * 2
    assert value(found, "calls of a user-day with at least 6 cells, mean") == pytest.approx(means[0], nan_ok=True)
    assert value(found, "cells of a user-day with at least 6 cells, mean") == pytest.approx(means[1], nan_ok=True)
    local = calls["t"].dt.tz_convert(ZONE)
    assert value(found, "days") == (local.dt.date.max() - local.dt.date.min()).days + 1
    assert value(found, "share of night calls") == pytest.approx((local.dt.hour < 8).mean())
    assert value(found, "share of calls on weekends") == pytest.approx((local.dt.day_of_week >= 5).mean())
    assert value(found, "share of calls that end in another cell") == pytest.approx(
        np.mean([c.cell != c.end_cell for c in calls.itertuples()])
    )
    shares = [naive.top_share(cells.tolist()) for _, cells in calls.groupby("user", observed=True)["cell"]]
    assert value(found, "share of the most used cell", 0.5) == pytest.approx(np.median(shares))
    bursts = burstiness(calls)
    for user, t in calls.groupby("user", observed=True)["t"]:
        gaps = t.diff().dt.total_seconds().dropna().tolist()
        assert (user in bursts.index) == (len(gaps) >= GAPS)
        if user in bursts.index:
            assert bursts[user] == pytest.approx(naive.burstiness(gaps), nan_ok=True)


def test_burstiness_of_a_clock_of_chance_and_of_bursts():
    """−1, 0, and above: the three cases of Goh & Barabási's Figure 1."""
    rng = np.random.default_rng(1)
    gaps = {"clock": np.full(2_000, 60.0), "chance": rng.exponential(60, 2_000), "bursts": 60 * rng.pareto(1.5, 2_000)}
    parts = [
        pd.DataFrame({"user": user, "t": START + pd.to_timedelta(np.cumsum(np.ceil(1000 * gap)), unit="ms"), "cell": "a"})
        for user, gap in gaps.items()
    ]
    b = burstiness(as_calls(pd.concat(parts, ignore_index=True), CELLS))
    assert b["clock"] == -1
    assert b["chance"] == pytest.approx(0, abs=0.03)
    assert b["bursts"] > 0.2


def test_no_calls_and_cells_of_no_municipality():
    nothing = describe_calls(table([("u", 0, "a", "a")])[:0], CELLS)
    assert value(nothing, "records") == 0
    assert np.isnan(value(nothing, "calls per user and day, mean"))
    nowhere = describe_calls(table([("u", 0, "a", "a")]), CELLS.assign(municipality=None))
    assert value(nowhere, "municipalities with calls") == 0


def test_published_numbers_stand_beside():
    found = describe_calls(table([("u", minute, cell, cell) for minute, cell in enumerate("abcdefg")]), CELLS, ZONE)
    beside = beside_published(found)
    assert beside["quantity"].tolist() == [quantity for quantity, *_ in PUBLISHED]
    assert beside["value"].tolist() == [7, 7, 7, 7]
    assert beside["published"].round(2).tolist() == [3.8, 1.01, 28.42, 7.25]
    assert beside["source"].str.len().min() > 20
