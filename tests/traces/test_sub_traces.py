"""Sub-traces of fixed length (thesis §5.4.1) and the past that an adversary knows (§5.5.3)."""

from fractions import Fraction

import naive_ill as naive
import numpy as np
import pandas as pd
import pytest
from conftest import refuses
from hypothesis import given
from hypothesis import strategies as st
from trace_making import records, traces_of, walks

from mobpriv.traces.sub_traces import slices, split_in_time
from mobpriv.traces.table import as_traces


def at(*seconds):
    """One user's traces with records at these seconds."""
    return traces_of([[(s, 0, 0) for s in seconds]])


@given(st.lists(walks, min_size=1, max_size=12), st.sampled_from([30, 60, 899, 900, 1800.001, 86_400]))
def test_slices_equal_their_definition(user_walks, seconds):
    traces = traces_of(user_walks)
    sub_traces, owner = slices(traces, seconds)
    expected = {
        f"{user}-{k}": (user, slice_records)
        for user, user_records in records(traces).items()
        for k, slice_records in naive.slices(user_records, Fraction(str(seconds)))
    }
    assert records(sub_traces) == {name: slice_records for name, (_, slice_records) in expected.items()}
    assert owner.to_dict() == {name: user for name, (user, _) in expected.items()}
    assert owner.index.tolist() == sub_traces["user"].cat.categories.tolist()
    pd.testing.assert_frame_equal(as_traces(sub_traces), sub_traces)


def test_further_columns_ride_along_and_the_traces_stay_as_they_are():
    traces = traces_of([[(600 * i, 0, 0) for i in range(40)], [(0, 5, 5)]]).assign(speed=np.arange(41.0))
    before = traces.copy(deep=True)
    sub_traces, owner = slices(traces, 600)
    assert sub_traces["user"].tolist()[:3] == ["u0-0", "u0-1", "u0-10"]  # sorted as texts
    rejoined = sub_traces.assign(user=sub_traces["user"].astype(str).map(owner))
    pd.testing.assert_frame_equal(as_traces(rejoined), traces)
    pd.testing.assert_frame_equal(traces, before)


def test_nothing_gives_nothing():
    known, secret = split_in_time(at(0).iloc[:0], 1800)
    assert [len(of) for of in (*slices(at(0).iloc[:0], 1800), known, *secret)] == [0] * 5


@given(
    st.lists(st.integers(1, 60), min_size=1, max_size=4),
    st.sampled_from(["4/5", "1/2", "7/10", "1/3", "999/1000"]),
    st.sampled_from(["ceiling", "program"]),
)
def test_the_past_is_the_first_share_of_the_sub_traces(numbers, share, border):
    """Each of n sub-traces has two records; the floats nearest to 4/5, 7/10 and 1/3 must not tip a whole product."""
    share = Fraction(share)
    traces = traces_of([[(900 * i, 0, 0) for i in range(2 * n)] for n in numbers])
    known, (secret, owner) = split_in_time(traces, 1800, float(share), border)
    expected = [naive.known(n, share, border) for n in numbers]
    assert known.groupby("user", observed=True).size().tolist() == [2 * n for n in expected]
    parts = owner.value_counts()
    assert [int(parts.get(f"u{i}", 0)) for i in range(len(numbers))] == [n - k for n, k in zip(numbers, expected, strict=True)]
    sub_traces = records(slices(traces, 1800).traces)
    assert records(secret) == {name: sub_traces[name] for name in owner.index}  # numbered from the user's first record
    assert len(known) + len(secret) == len(traces)


def test_a_user_who_is_called_like_a_sub_trace_is_refused():
    traces = traces_of([[(600 * i, 0, 0) for i in range(10)], [(0, 5, 5)]])
    clash = as_traces(traces.assign(user=traces["user"].astype(str).replace("u1", "u0-9")))
    refuses(r"^user u0-9 has the name of a sub-trace of user u0: rename one of them$", split_in_time, clash, 600)
    assert slices(clash, 600).owner["u0-9-0"] == "u0-9"  # alone, sub-traces have names of their own


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), np.inf, "1800", True, 0.0001])
def test_no_length(seconds):
    refuses(r"^seconds, the length of a sub-trace, must be positive, in s, at least 0.001 \(got ", slices, at(0), seconds)


@pytest.mark.parametrize("share", [0, 1, float("nan"), "0.8"])
def test_no_share_and_no_border(share):
    refuses(r"^share must lie between 0 and 1, both excluded \(got ", split_in_time, at(0), 1800, share)
    refuses('border must be "ceiling" or "program"', split_in_time, at(0), 1800, border="floor")
