"""ILL-Attack (thesis §5.4): its features beside their definition, and what a classifier owes."""

import naive_ill as naive
import numpy as np
import pandas as pd
import pytest
from conftest import refuses
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import ExtraTreesClassifier
from trace_making import records, strolls, traces_of, walks

from mobpriv.attacks import ILLAttack
from mobpriv.attacks.policies import probabilities, reidentified
from mobpriv.ground.grid import S2Grid
from mobpriv.traces.sub_traces import slices
from mobpriv.traces.table import as_traces, rows

SINGLE = 2.0**-23  # the relative error of a number in single precision, which the trees read


def table(features, user):
    """feature -> value of one trace, zeros left out."""
    row = features.values.toarray()[features.users.get_loc(user)]
    return {name: value for name, value in zip([*features.names, *features.cells.tolist()], row.tolist(), strict=True) if value}


@given(st.lists(walks, min_size=1, max_size=4), st.sampled_from([10, 13, 17]), st.sampled_from(["mean", "program"]))
def test_features_equal_their_definition(user_walks, level, hour):
    traces = traces_of(user_walks)
    features = ILLAttack(level=level, hour=hour).features(traces)
    assert features.names == [{"mean": "hourOfDay", "program": "programHour"}[hour], "nbRecords", "centerLat", "centerLng"]
    for user, user_records in records(traces).items():
        expected = naive.features(user_records, level)
        expected.pop({"mean": "programHour", "program": "hourOfDay"}[hour])
        expected = {name: value for name, value in expected.items() if value}  # the hour 0
        assert table(features, user) == pytest.approx(expected, rel=SINGLE, abs=0)


def test_the_hour_is_that_of_the_mean_time_or_of_half_a_span_too_early():
    start = pd.Timestamp("2020-01-01T00:20Z")
    t = start + pd.to_timedelta([0, 50, 55, 60], unit="min")
    traces = as_traces(pd.DataFrame({"user": "a", "t": t, "lat": 45.0, "lng": 5.0}))
    assert table(ILLAttack().features(traces), "a")["hourOfDay"] == 1  # 00:20 + 41 min
    assert table(ILLAttack(hour="program").features(traces), "a")["programHour"] == 23  # 00:20 − 30 min


@pytest.mark.parametrize("delta", [86_400.0, 100_000.0])
def test_a_day_has_no_hour_but_in_the_program(delta):
    traces = strolls(1)
    assert ILLAttack(delta).features(traces).names == ["nbRecords", "centerLat", "centerLng"]
    assert ILLAttack(delta, hour="program").features(traces).names[0] == "programHour"
    assert ILLAttack(86_399).features(traces).names[0] == "hourOfDay"


def test_zeros_are_counted_on_request():
    traces = strolls(2, spread=2000.0)
    plain, counted = ILLAttack(86_400).features(traces), ILLAttack(86_400, zero_count=True).features(traces)
    assert counted.names == ["zeros", "nonZeros", *plain.names]
    full = plain.values.toarray()
    expected = np.column_stack([(full == 0).sum(axis=1), (full != 0).sum(axis=1), full])
    np.testing.assert_array_equal(counted.values.toarray(), expected)


def test_the_centre_of_a_trace_across_the_date_line_lies_on_it():
    t = pd.to_datetime([1.45e9, 1.45e9 + 60, 1.45e9 + 120], unit="s", utc=True)
    traces = as_traces(pd.DataFrame({"user": "a", "t": t, "lat": -17.0, "lng": [179.9, -179.9, -179.85]}))
    assert table(ILLAttack().features(traces), "a")["centerLng"] == pytest.approx(-179.95, rel=SINGLE)


def test_cells_that_nobody_known_visits_have_no_feature():
    known, stranger = strolls(1), strolls(2)
    cells = S2Grid(13).cells(known["lat"], known["lng"])
    fitted = ILLAttack(trees=3).fit(known)
    features = ILLAttack().features(stranger, fitted.known_.cells)
    assert features.cells.tolist() == np.unique(cells).tolist()
    shares = features.values.toarray()[:, len(features.names) :].sum(axis=1)
    assert shares.tolist() == pytest.approx([1, 0], abs=SINGLE * len(cells))


@pytest.mark.parametrize("delta", [1800.0, 86_400.0])
def test_sparse_columns_give_the_probabilities_of_full_ones(delta):
    """The attack beside scikit-learn with the settings of §5.5.2 written out, on tables without a sparse matrix."""
    known, anonymous = strolls(3, 4, distance=700.0), strolls(3, 1, distance=700.0, seed=2)
    attack = ILLAttack(delta, trees=20, seed=5)
    fitted = attack.fit(known)
    sub, owner = slices(known, delta)
    full = ExtraTreesClassifier(20, max_features=0.6, min_samples_leaf=2, min_samples_split=8, random_state=5)
    full.fit(attack.features(sub).values.toarray(), owner)
    expected = full.predict_proba(attack.features(anonymous, fitted.known_.cells).values.toarray())
    np.testing.assert_array_equal(fitted.rank(anonymous), 1 - expected)
    assert not ILLAttack(delta, trees=20, seed=6).fit(known).rank(anonymous).equals(fitted.rank(anonymous))


def test_probabilities_sum_to_one():
    ranking = ILLAttack(trees=20).fit(strolls(4, distance=500.0)).rank(slices(strolls(4, distance=500.0, seed=3), 1800).traces)
    probability = probabilities(ranking, ILLAttack.largest)
    np.testing.assert_allclose(probability, 1 - ranking, atol=1e-15)  # 1 − (1 − p)
    np.testing.assert_allclose(probability.sum(axis=1), 1, atol=1e-12)  # 20 trees, 4 classes
    assert ((probability > 0) & (probability < 1)).to_numpy().any()


def test_who_lives_in_cells_of_her_own_is_found():
    """And no better than by chance where everybody has the same habits."""
    for distance, rate, error in ((30_000.0, 1, 0), (0.0, 1 / 5, 4 * np.sqrt(0.2 * 0.8 / 480))):  # 480 slices
        secret = slices(strolls(5, distance=distance, seed=7), 1800)
        ranking = ILLAttack(trees=30).fit(strolls(5, distance=distance)).rank(secret.traces)
        assert reidentified(ranking, person=secret.owner.to_dict()).mean() == pytest.approx(rate, abs=error)


def test_so_few_sub_traces_that_no_tree_splits():
    """Seven in all, below ``min_split``: one leaf, the classes' shares. One known user is everybody; many are no warning."""
    known = traces_of([[(1800 * i, 0, 0) for i in range(4)], [(1800 * i, 9e4, 0) for i in range(2)], [(0, 0, 9e4)]])
    ranking = ILLAttack(trees=3).fit(known).rank(known)
    np.testing.assert_allclose(1 - ranking, np.tile([4 / 7, 2 / 7, 1 / 7], (3, 1)), rtol=1e-15)
    assert (ILLAttack(trees=3).fit(strolls(1)).rank(strolls(3)) == 0).all(axis=None)
    known = traces_of([[(0, 500 * u, 0)] for u in range(40)])
    assert ILLAttack(trees=2).fit(known).rank(known).notna().sum(axis=None) == 40 * 40


def test_who_has_one_sub_trace_shares_her_leaves():
    """A leaf holds two: she can never be sure of, though she is alone where she lives; with ``min_leaf`` = 1 she can."""
    known = traces_of([[(1800 * i, 0, 0) for i in range(20)], [(1800 * i, 0, 5000) for i in range(20)], [(0, 9e4, 0)]])
    alone = as_traces(known[known["user"] == "u2"])
    shared = 1 - ILLAttack().fit(known).rank(alone).loc["u2"]
    assert 0 < shared["u2"] <= 0.5
    unshared = 1 - ILLAttack(min_leaf=1, min_split=2).fit(known).rank(alone).loc["u2"]
    assert unshared["u2"] > 0.9


def test_bad_parameters():
    for (name, value), line in {
        ("delta", 0): r"delta must be positive, in s, at least 0.001 \(got 0\)",
        ("max_features", 0): r"max_features must be a share of the features, in \]0, 1\] \(got 0\)",
        ("min_split", 1): r"min_split must be a whole number, at least 2 \(got 1\)",
        ("trees", 0): r"trees must be a whole number, at least 1 \(got 0\)",
        ("seed", 2**32): r"seed must be a whole number in 0 … 2³² − 1 \(got 4294967296\)",
        ("hour", "middle"): 'hour must be "mean" or "program"',
    }.items():
        refuses(rf"^{line}", ILLAttack, **{name: value})


def test_sub_traces_that_come_split_are_learned_as_they_are():
    known, secret = strolls(4, distance=500.0), strolls(4, distance=500.0, seed=3)
    attack, split = ILLAttack(trees=10), slices(known, 1800)
    pd.testing.assert_frame_equal(attack.fit_split(split).rank(secret), attack.fit(known).rank(secret))
    without = split.owner[split.traces["user"].astype(str)].to_numpy() != "u2"
    fewer = split._replace(traces=rows(split.traces, without))  # all of u2's are erased
    assert attack.fit_split(fewer).rank(secret).columns.tolist() == ["u0", "u1", "u3"]
    refuses(r"sub-trace u3-.* has no owner", attack.fit_split, split._replace(owner=split.owner[split.owner != "u3"]))
