"""Compiled Extremely Randomized Trees beside scikit-learn's, node by node and to the last bit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csc_array
from sklearn.ensemble import ExtraTreesClassifier

from mobpriv.attacks.extra_trees import ExtraTrees


def both(examples, classes, trees=5, max_features=0.6, min_leaf=2, min_split=8, seed=0):
    """Our trained forest and scikit-learn's, of full columns."""
    names = ("n_estimators", "max_features", "min_samples_leaf", "min_samples_split", "random_state")
    parameters = trees, max_features, min_leaf, min_split, seed
    theirs = ExtraTreesClassifier(**dict(zip(names, parameters, strict=True))).fit(examples, classes)
    return ExtraTrees(*parameters).fit(csc_array(examples), classes), theirs


def assert_equal(ours, theirs, examples):
    for i, tree in enumerate(tree.tree_ for tree in theirs.estimators_):
        feature, threshold, first, last = (array[i, : tree.node_count] for array in ours.trees_[:4])
        inner = tree.children_left >= 0
        np.testing.assert_array_equal(feature >= 0, inner)
        for array, expected in (
            (feature, tree.feature),
            (threshold, tree.threshold),
            (first, tree.children_left),
            (last, tree.children_right),
        ):
            np.testing.assert_array_equal(array[inner], expected[inner])
    np.testing.assert_array_equal(ours.predict_proba(csc_array(examples)), theirs.predict_proba(examples))
    np.testing.assert_array_equal(ours.feature_importances_, theirs.feature_importances_)


@settings(max_examples=60)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 120),
    st.integers(1, 12),
    st.integers(1, 9),
    st.sampled_from([1e-6, 0.1, 0.6, 1.0]),
    st.integers(1, 3),
    st.sampled_from([2, 8]),
)
def test_the_forest_is_that_of_scikit_learn(seed, rows, features, users, max_features, min_leaf, min_split):
    """Sparse and full columns, constant ones, negative numbers, ties, and ranges about the least that counts."""
    rng = np.random.default_rng(seed)
    scale = rng.choice([1.0, 40.0, 1e-7], features)
    examples = (rng.integers(-3, 4, (rows, features)) * scale + rng.choice([0.0, 0.5], features)).astype(np.float32)
    examples[:, rng.random(features) < 0.5] *= rng.random((rows, 1)) < 0.3
    classes = np.unique(rng.integers(0, users, rows), return_inverse=True)[1]
    ours, theirs = both(examples, classes, 3, max_features, min_leaf, min_split, seed)
    new = rng.permuted(examples, axis=0)
    assert_equal(ours, theirs, new)


@pytest.mark.parametrize("seed", range(3))
def test_a_large_forest_is_that_of_scikit_learn(seed):
    """Many rows and users, shares of few cells and a full column, as ILL-Attack's."""
    rng = np.random.default_rng(seed)
    classes = np.sort(rng.integers(0, 60, 2000))
    cells = rng.poisson(0.05 + 3 * (rng.integers(0, 60, 80) == classes[:, None]))
    shares = cells / np.maximum(cells.sum(axis=1, keepdims=True), 1)
    examples = np.hstack([rng.normal(-122, 0.1, (2000, 1)), shares]).astype(np.float32)
    assert_equal(*both(examples, classes, seed=seed), examples)
