"""Risk and use on one plane: who beats whom, and MDAV in each municipality."""

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from mobpriv.experiments.primule_plane import beaten_by, frontier, mdav_over_municipalities
from mobpriv.mechanisms.call_profiles import Mdav

POINTS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=8).map(
    lambda rows: {f"s{k}": point for k, point in enumerate(rows)}
)


def test_by_hand():
    points = {"a": (0.1, 0.5), "b": (0.1, 0.6), "c": (0.3, 0.6), "d": (0.4, 0.9)}
    assert frontier(points) == ["b", "d"]
    assert beaten_by({"x": (0.2, 0.6), "y": (0.05, 0.1)}, points) == ["x"]
    assert beaten_by({"same": (0.1, 0.6)}, points) == []


@given(POINTS)
def test_every_setting_is_on_the_frontier_or_beaten_by_one_that_is(points):
    on = frontier(points)
    assert on
    assert beaten_by({name: points[name] for name in on}, points) == []
    rest = {name: point for name, point in points.items() if name not in on}
    assert beaten_by(rest, {name: points[name] for name in on}) == list(rest)


def test_each_municipality_is_aggregated_by_itself():
    rng = np.random.default_rng(1)
    values, town = rng.integers(0, 3, (40, 6)) / 2, np.array(list("PL") * 18 + list("MMPL"))
    said, group = mdav_over_municipalities(values, town, 3)
    for name in "PL":
        rows = np.flatnonzero(town == name)
        alone = Mdav(3).protect(pd.DataFrame(values[rows], rows), rng)
        assert np.array_equal(said[rows], alone.values)
        assert np.bincount(group)[group[rows]].min() >= 3
    assert np.array_equal(said[town == "M"], values[town == "M"])
    assert not set(group[town == "P"]) & set(group[town == "L"])
    order = rng.permutation(40)
    assert np.allclose(
        mdav_over_municipalities(values, town, 3)[0].sum(axis=0),
        mdav_over_municipalities(values[order], town[order], 3)[0].sum(axis=0),
    )
