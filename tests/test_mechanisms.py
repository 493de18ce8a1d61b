"""What every mechanism promises, whichever it is: a new one in ``mechanisms.__all__`` is tested here at once."""

import numpy as np
import pandas as pd
import pytest

import mobpriv.mechanisms
from mobpriv.grid import AreaGrid
from mobpriv.traces import as_traces, from_blocks

# four cells of 400 m around the traces below; two observables
AREA = AreaGrid.around(45.0, 5.0, 800.0, 800.0, 2, 2)
CHANNEL = np.array([[0.7, 0.3], [0.5, 0.5], [0.2, 0.8], [0.0, 1.0]])
NEEDED = {"Obfuscation": {"channel": CHANNEL, "grid": AREA, "observables": [0, 3]}}  # parameters without a default
EVERY = [getattr(mobpriv.mechanisms, name)(**NEEDED.get(name, {})) for name in mobpriv.mechanisms.__all__]


@pytest.fixture
def traces():
    """Six users who walk about the same square kilometres for an hour, one record every 20 s."""
    rng = np.random.default_rng(5)
    n, users = 180, pd.Index([f"user {i}" for i in range(6)])
    lat = 45.0 + np.cumsum(rng.normal(0, 2e-4, (6, n)), axis=1)
    lng = 5.0 + np.cumsum(rng.normal(0, 3e-4, (6, n)), axis=1)
    time = np.tile(1_400_000_000_000 + 20_000 * np.arange(n), 6)
    return from_blocks(users, [n] * 6, time, lat.ravel(), lng.ravel())


@pytest.mark.parametrize("mechanism", EVERY, ids=repr)
class TestEveryMechanism:
    def test_result_is_valid(self, mechanism, traces):
        published = mechanism.protect(traces, np.random.default_rng(1))
        pd.testing.assert_frame_equal(as_traces(published), published, check_exact=True)
        assert len(published)

    def test_input_is_untouched(self, mechanism, traces):
        before = traces.copy(deep=True)
        published = mechanism.protect(traces, np.random.default_rng(1))
        published["lat"] = 0.0
        pd.testing.assert_frame_equal(traces, before, check_exact=True)

    def test_same_seed_same_result(self, mechanism, traces):
        one, two = (mechanism.protect(traces, np.random.default_rng(9)) for _ in range(2))
        pd.testing.assert_frame_equal(one, two, check_exact=True)

    def test_no_user_and_no_time_span_invented(self, mechanism, traces):
        published = mechanism.protect(traces, np.random.default_rng(1))
        assert set(published["user"].cat.categories) <= set(traces["user"].cat.categories)
        assert traces["t"].min() <= published["t"].min()
        assert published["t"].max() <= traces["t"].max()

    def test_users_without_records_are_left_out(self, mechanism, traces):
        wider = traces.assign(user=traces["user"].cat.set_categories(["nobody", *traces["user"].cat.categories]))
        published = mechanism.protect(wider, np.random.default_rng(1))
        pd.testing.assert_frame_equal(published, mechanism.protect(traces, np.random.default_rng(1)), check_exact=True)

    def test_names_do_not_matter(self, mechanism, traces):
        names = {old: f"x{old}" for old in traces["user"].cat.categories}
        renamed = traces.assign(user=traces["user"].cat.rename_categories(names))
        expected = mechanism.protect(traces, np.random.default_rng(1))
        expected = expected.assign(user=expected["user"].cat.rename_categories(names))
        pd.testing.assert_frame_equal(mechanism.protect(renamed, np.random.default_rng(1)), expected, check_exact=True)

    def test_empty_stays_empty(self, mechanism, traces):
        empty = as_traces(traces.head(0))
        pd.testing.assert_frame_equal(mechanism.protect(empty, np.random.default_rng(1)), empty)

    def test_one_record(self, mechanism, traces):
        one = as_traces(traces.head(1))
        if getattr(mechanism, "k", 1) > 1:
            with pytest.raises(ValueError, match=r"k must not exceed the number of users \(k is 2, there is 1 user\)"):
                mechanism.protect(one, np.random.default_rng(1))
            return
        published = mechanism.protect(one, np.random.default_rng(1))
        pd.testing.assert_frame_equal(as_traces(published), published)

    def test_equal_times(self, mechanism, traces):
        """All records of a user at one time: allowed by ``Traces``."""
        frozen = as_traces(traces.assign(t=traces["t"].min()))
        published = mechanism.protect(frozen, np.random.default_rng(1))
        assert (published["t"] == traces["t"].min()).all()

    def test_parameters_cannot_be_changed(self, mechanism):
        with pytest.raises(AttributeError):
            mechanism.plane = "mercator"


def test_thesis_parameters():
    """§3.4.2: ε = 0.01 1/m, α = 200 m, k = 2, δ = 600 m; §5: radius 1 km."""
    shown = {type(m).__name__: m for m in EVERY}
    assert shown["GeoI"].epsilon == 0.01
    assert shown["Promesse"].alpha == 200
    assert shown["TriLateration"].radius == 1000
    if "W4M" in shown:
        assert (shown["W4M"].k, shown["W4M"].delta) == (2, 600)
