"""ILL-Attack with one of its parts exchanged: each variant differs from it in that part alone."""

from dataclasses import fields, replace
from functools import partial
from itertools import combinations

import naive_profiles as naive
import numpy as np
import pandas as pd
import pytest
from conftest import refusals
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from trace_making import strolls, traces_of, walks

from mobpriv.attacks import APAttack, ILLAttack
from mobpriv.attacks.ill import extra_trees
from mobpriv.attacks.policies import reidentified
from mobpriv.experiments import thesis_5 as reasons
from mobpriv.ground.grid import S2Grid, SquareGrid
from mobpriv.traces.profiles import heat_maps
from mobpriv.traces.sub_traces import SubTraces, slices
from mobpriv.traces.table import as_traces


def shares(traces, grid):
    """Trace -> {cell: share}."""
    maps = heat_maps(traces, grid)
    rows = {user: maps.shares[[i]] for i, user in enumerate(maps.users)}
    return {user: dict(zip(maps.cells[row.indices], row.data, strict=True)) for user, row in rows.items()}


@settings(max_examples=30)
@given(st.lists(walks, min_size=1, max_size=4), st.lists(walks, min_size=1, max_size=3), st.integers(1, 4))
def test_the_nearest_past_equals_its_definition(known, anonymous, k):
    """All pairs one by one; names among which the sub-traces of "u" lie on both sides of those of "u-1"."""
    names = {"u0": "u", "u1": "u-1", "u2": "u-10", "u3": "v"}
    past = traces_of(known)
    past = slices(as_traces(past.assign(user=past["user"].astype(str).map(names))), 900)
    grid, now = SquareGrid(100), traces_of(anonymous)
    past_shares, anonymous_shares = shares(past.traces, grid), shares(now, grid)
    nearest = reasons.nearest_past(past, now, grid, k)
    assert nearest.columns.tolist() == sorted(set(past.owner))
    assert nearest.index.tolist() == list(anonymous_shares)
    for trace, x in anonymous_shares.items():
        for user in nearest.columns:
            divergences = sorted(naive.topsoe(x, past_shares[sub]) for sub, owner in past.owner.items() if owner == user)
            assert nearest.loc[trace, user] == pytest.approx(np.mean(divergences[:k]), abs=1e-12)


def test_some_pairs_at_a_time_are_all_pairs(monkeypatch):
    past, now = slices(strolls(3, distance=500.0), 3600), slices(strolls(3, distance=500.0, seed=2), 3600).traces
    expected = reasons.nearest_past(past, now, S2Grid(15), 2)
    for pairs in (1, 7 * len(past.owner), 10**9):
        monkeypatch.setattr(reasons, "AT_ONCE", pairs)
        pd.testing.assert_frame_equal(reasons.nearest_past(past, now, S2Grid(15), 2), expected, check_exact=True)
    with pytest.raises(ValueError, match="k must be a whole number, at least 1"):
        reasons.nearest_past(past, now, S2Grid(15), 0)


def test_of_an_uncut_past_the_nearest_is_ap_attack_s():
    known, now = strolls(3, distance=500.0), slices(strolls(3, distance=500.0, seed=2), 3600).traces
    uncut = SubTraces(known, pd.Series({user: user for user in known["user"].cat.categories}, name="owner"))
    pd.testing.assert_frame_equal(reasons.nearest_past(uncut, now, APAttack().grid), APAttack().fit(known).rank(now))


def test_ties_are_settled_by_lot():
    distances = [[0.0, 0.0, 1.0], [0.2, 0.1, 0.1 + 1e-15], [0.0, 0.0, 0.0], [0.5, 0.1, 0.9]]
    ranking = pd.DataFrame(distances, index=list("wxyz"), columns=list("abc"))
    owner = pd.Series({"z": "b", "w": "a", "x": "a", "y": "c"})  # in another order than the ranking's
    chance, nearest = reasons.random_tie_breaking(ranking, owner)
    assert chance.tolist() == [1.0, 0.5, 0.0, 1 / 3]
    assert nearest.tolist() == [1, 2, 2, 3]


@pytest.mark.parametrize("length", ["sessions", "days"])
def test_every_variant_has_ill_attack_s_settings(length):
    variants = reasons.classifiers(length, 30, 5) | reasons.feature_groups(length, 30, 5)
    ill = variants["ILL-Attack"]
    assert ill == replace(reasons.attacks(length, seed=5)[0], trees=30)
    assert (ill.trees, ill.seed, ill.delta, ill.min_split) == (30, 5, {"sessions": 1800, "days": 86_400}[length], 8)
    for variant in variants.values():
        assert isinstance(variant, ILLAttack)
        assert all(
            getattr(variant, part.name) == getattr(ill, part.name) for part in fields(ILLAttack) if part.name != "classifier"
        )
    assert ("without hourOfDay" in variants) == (length == "sessions")  # which days do not have
    assert reasons.classifiers(length)["ILL-Attack"].trees == 100


def test_all_features_are_ill_attack_s():
    known, secret = strolls(3, distance=800.0), slices(strolls(3, distance=800.0, seed=4), 1800).traces
    ill = ILLAttack(trees=20, seed=3)
    all_groups = reasons.FeatureSubset(trees=20, seed=3)
    pd.testing.assert_frame_equal(all_groups.fit(known).rank(secret), ill.fit(known).rank(secret), check_exact=True)


@pytest.mark.parametrize(
    ("groups", "names", "has_cells"),
    [
        (("centre",), ["centerLat", "centerLng"], False),
        (("nbRecords", "hourOfDay"), ["hourOfDay", "nbRecords"], False),
        (("cells",), [], True),
        (("cells", "hourOfDay"), ["hourOfDay"], True),
    ],
)
def test_some_features_are_columns_of_all(groups, names, has_cells):
    traces = slices(strolls(2, distance=2000.0), 1800).traces
    subset, all_of_them = reasons.FeatureSubset(groups=groups).features(traces), ILLAttack().features(traces)
    assert subset.names == names
    assert subset.cells.tolist() == (all_of_them.cells.tolist() if has_cells else [])
    full = pd.DataFrame(all_of_them.values.toarray(), columns=[*all_of_them.names, *all_of_them.cells])
    np.testing.assert_array_equal(subset.values.toarray(), full[[*names, *subset.cells]])
    fitted = reasons.FeatureSubset(groups=groups, trees=5).fit(strolls(2, distance=2000.0))
    assert len(fitted.known_.forest.feature_importances_) == subset.values.shape[1]
    assert fitted.rank(traces).shape == (len(subset.users), 2)


test_bad_groups = refusals(
    ({"groups": ("cells", "weather")}, "groups must be some of hourOfDay, nbRecords, centre, cells .got 'weather'"),
    ({"groups": ()}, "groups must hold a feature"),
    ({"groups": ("hourOfDay",), "delta": 86_400.0}, "groups must hold a feature that sub-traces of 86400 s have"),
    ({"groups": ("cells",), "trees": 0}, "trees must be a whole number"),
    call=lambda given: reasons.FeatureSubset(**given),
)


def test_a_random_forest_differs_in_the_cut_point_alone():
    """And, with ``bootstrap``, in what each tree learns from."""
    known, secret = strolls(3, distance=300.0), slices(strolls(3, distance=300.0, seed=4), 1800).traces
    each = (extra_trees, reasons.random_forest, partial(reasons.random_forest, bootstrap=True))
    ill, forest, drawn = (ILLAttack(trees=10, seed=3, min_leaf=3, classifier=classifier).fit(known) for classifier in each)
    random = ExtraTreesClassifier(10, max_features=0.6, min_samples_leaf=3, min_samples_split=8, random_state=3)
    forest_parameters, bootstrap_parameters = (of.known_.forest.get_params() for of in (forest, drawn))
    assert random.get_params() == forest_parameters
    assert {name for name in forest_parameters if forest_parameters[name] != bootstrap_parameters[name]} == {"bootstrap"}
    rankings = [of.rank(secret) for of in (ill, forest, drawn)]
    assert not any(a.equals(b) for a, b in combinations(rankings, 2))
    pd.testing.assert_frame_equal(replace(forest, known_=None).fit(known).rank(secret), rankings[1], check_exact=True)


@pytest.mark.parametrize("delta", [1800.0, 86_400.0])
def test_logistic_regression_is_that_of_standardised_features(delta):
    """Scikit-learn's scaler centres the cells, too: a shift of a column moves the intercept, and no probability."""
    known, secret = strolls(3, days=6, distance=1500.0), slices(strolls(3, days=2, distance=1500.0, seed=4), delta).traces
    fitted, past = ILLAttack(delta, classifier=reasons.LogisticRegression).fit(known), slices(known, delta)
    learned, examples = fitted.known_.forest, fitted.features(past.traces)
    full = examples.values.toarray().astype(float)
    scaler, order = StandardScaler().fit(full), np.r_[np.flatnonzero(learned.centre), np.flatnonzero(learned.centre == 0)]
    standardised, expected_values = learned.standardised(examples.values).toarray(), scaler.transform(full)[:, order]
    shift = standardised - expected_values
    np.testing.assert_allclose(shift, np.broadcast_to(shift[0], shift.shape), atol=1e-9)
    assert learned.centre[len(examples.names) - 2 : len(examples.names)].all(), "the coordinates are centred"
    tight = lambda values: LogisticRegression(max_iter=9999, tol=1e-9).fit(values, past.owner[examples.users])  # noqa: E731
    now = fitted.features(secret, fitted.known_.cells).values
    expected = tight(expected_values).predict_proba(scaler.transform(now.toarray().astype(float))[:, order])
    np.testing.assert_allclose(tight(standardised).predict_proba(learned.standardised(now)), expected, atol=1e-5)
    np.testing.assert_array_equal(fitted.rank(secret), 1 - learned.model.predict_proba(learned.standardised(now)))
    assert learned.model.n_iter_[0] < learned.model.max_iter


def test_what_learns_finds_who_lives_alone():
    secret = slices(strolls(4, seed=7), 1800)
    for name, variant in reasons.classifiers("sessions", 10, 1).items():
        ranking = variant.fit(strolls(4)).rank(secret.traces)
        assert reidentified(ranking, person=secret.owner.to_dict()).all(), name


def test_many_users_of_one_sub_trace_each_are_no_warning():
    """Warnings are errors here."""
    users = traces_of([[(0, 5000 * i, 0), (60, 5000 * i, 0)] for i in range(12)])
    for variant in reasons.classifiers("sessions", 5, 1).values():
        assert variant.fit(users).rank(users).shape == (12, 12)
