"""PRIMULE over all municipalities: the same numbers in any order, and by any number of threads."""

import numpy as np
import pandas as pd
import pytest
from conftest import refusals

from mobpriv.experiments.primule_scale import (
    MUNICIPALITY_COLUMNS,
    over_municipalities,
    published_values,
    scale_results,
)
from mobpriv.icp import profiles as icps
from mobpriv.icp.archetypes import CATEGORIES
from mobpriv.icp.sociometer import passes_by
from mobpriv.mechanisms.icp import Primule
from mobpriv.metrics.information_loss import information_loss, similarity

TOWNS = {"Firenze": 260, "Pisa": 120, "Vecchiano": 40, "Capraia": 3, "Gorgona": 1}


def sampled_profiles(seed=1):
    rng = np.random.default_rng(seed)
    parts = []
    for town, n in sorted(TOWNS.items()):
        calls = rng.poisson(rng.gamma(0.3, 1.0, (n, 1)) * rng.random((n, 24)) ** 2)
        keys = icps.keys(np.minimum(calls, icps.DAYS))
        parts.append(pd.DataFrame({"user": np.sort(rng.choice(1000, n, replace=False)), "municipality": town, "key": keys}))
    return pd.concat(parts, ignore_index=True).astype({"municipality": "category"})


PROFILES = sampled_profiles()


def equal(one, other):
    for a, b in zip(one[:3], other[:3], strict=True):
        np.testing.assert_array_equal(a, b)
    pd.testing.assert_frame_equal(one.municipalities, other.municipalities, check_exact=True)


@pytest.mark.parametrize("h", [None, tuple(icps.known_cells(2))])
def test_each_municipality_is_protected_by_itself(h):
    result = over_municipalities(PROFILES, 5, h)
    published = published_values(PROFILES, result)
    for town, row in result.municipalities.set_index("municipality").iterrows():
        in_town = (PROFILES["municipality"] == town).to_numpy()
        x = pd.DataFrame(icps.values(PROFILES["key"].to_numpy()[in_town]))
        expected = Primule(5, h).protect(x, np.random.default_rng(1))
        np.testing.assert_array_equal(published[in_town], expected.values)
        np.testing.assert_array_equal(result.group[in_town] - result.group[in_town].min(), expected.group)
        cells = slice(None) if h is None else list(h)
        loss = information_loss(x.iloc[:, cells], expected.values.iloc[:, cells])
        assert (row.mse, row.bound) == pytest.approx(loss[:2])
        assert (row.profiles, row.groups, row.anonymous) == (in_town.sum(), expected.group.max() + 1, expected.anonymous)
        assert row.distinct == len(np.unique(x.iloc[:, cells], axis=0))
        assert row.rounds < row.distinct
    assert result.municipalities["anonymous"].tolist() == [False, True, False, True, True]
    assert result.municipalities.columns.tolist() == MUNICIPALITY_COLUMNS
    np.testing.assert_array_equal(np.bincount(result.group), result.members)
    np.testing.assert_allclose(published[:, result.h], result.means[result.group], atol=1e-15)
    np.testing.assert_array_equal(published_values(PROFILES, result, slice(3, 9)), published[3:9])


def test_serial_and_parallel_and_other_orders_are_the_same():
    one = over_municipalities(PROFILES, 5)
    equal(one, over_municipalities(PROFILES, 5, workers=2))
    order = np.random.default_rng(2).permutation(len(PROFILES))
    other = over_municipalities(PROFILES.iloc[order], 5, workers=3)
    np.testing.assert_array_equal(one.group[order], other.group)
    pd.testing.assert_frame_equal(one.municipalities, other.municipalities)
    np.testing.assert_array_equal(one.totals, other.totals)


test_refused = refusals(
    ("x", {}, "a table with the columns user, municipality, key"),
    (PROFILES[["user", "key"]], {}, "a table with the columns"),
    (PROFILES.iloc[:0], {}, "one row or more"),
    (PROFILES.assign(municipality=PROFILES["municipality"].where(PROFILES.index != 7)), {}, "in row 7 has none"),
    (PROFILES.assign(key=-1), {}, "a key must be that of a profile"),
    (PROFILES, {"k": 1}, "k must"),
    (PROFILES, {"workers": 0}, "workers must"),
    (PROFILES, {"h": [24]}, "h must"),
    call=lambda wrong, given: over_municipalities(wrong, **{"k": 5} | given),
)


def test_what_comes_out_is_what_the_pages_count():
    over = {k: over_municipalities(PROFILES, k) for k in (2, 20)}
    results = scale_results(PROFILES, over, np.random.default_rng(1))
    original = icps.values(PROFILES["key"].to_numpy())
    almost_identical = {k: similarity(original, published_values(PROFILES, one)) > 0.95 for k, one in over.items()}
    assert 0 < almost_identical[20].mean() < almost_identical[2].mean() < 1
    for k, one in over.items():
        assert results[f"above.{k}"].value == pytest.approx(almost_identical[k].mean())
        rows = pd.DataFrame({"town": PROFILES["municipality"].astype(str), "key": PROFILES["key"], "group": one.group})
        equal = rows.groupby(["town", "key"]).agg(n=("group", "size"), group=("group", "first"))
        safe = equal[equal["n"] >= k]
        assert results[f"safe.{k}"] == len(safe)
        assert results[f"safe_alone.{k}"] == sum(one.members[row.group] == row.n for row in safe.itertuples())
        assert sum(results[f"label.{k}.{c}"].value for c in CATEGORIES) == pytest.approx(1)
        assert results[f"label.{k}.passing by"].value <= passes_by(original).mean()
    assert results["safe.2"] > results["safe_alone.2"] > 0
    assert results["label.original.passing by"].value == pytest.approx(passes_by(original).mean())
    assert results["gain"].value == pytest.approx(almost_identical[2].mean() - almost_identical[20].mean())
