"""Groups of profiles by PRIMULE, by a distance for the Sociometer and by MDAV, municipality by municipality."""

import numpy as np
import pandas as pd
import pytest
from call_making import crowd

from mobpriv.experiments.primule_merging import by_mdav, by_primule, cut, for_service, single, squared, whole_profiles
from mobpriv.experiments.primule_scale import over_municipalities, published
from mobpriv.icp.profiles import keys as keys_of
from mobpriv.icp.profiles import known
from mobpriv.mechanisms.icp import Mdav, Primule
from mobpriv.metrics.information_loss import mse, one_group, same_time

X = crowd(300).to_numpy()
TOWN = np.repeat(["A", "B", "C"], [150, 145, 5])
ALL = np.arange(24)


def same(one, other):
    parts = [{frozenset(np.flatnonzero(of == g)) for g in np.unique(of)} for of in (one, other)]
    return parts[0] == parts[1]


@pytest.mark.parametrize("distance", ["euclidean", "manhattan", "cosine"])
@pytest.mark.parametrize("weeks", [2, 4])
def test_by_primule_is_primule(distance, weeks):
    days = np.rint(X * np.tile([5, 5, 5, 2, 2, 2], 4)).astype(int)
    table = pd.DataFrame({"user": range(300), "municipality": TOWN, "key": keys_of(days)})
    over = over_municipalities(table, 10, known(weeks), distance)
    found = by_primule(X, TOWN, 10, known(weeks), distance)
    assert same(found.group, over.group)
    np.testing.assert_allclose(whole_profiles(X, found, known(weeks)), published(table, over), atol=1e-12)
    assert (found.members[:295] >= 10).all()


def test_a_municipality_of_fewer_than_k_stays():
    for found in (by_primule(X, TOWN, 10, ALL), by_mdav(X, TOWN, 10, ALL), for_service(X, TOWN, 10, ALL)):
        np.testing.assert_allclose(found.means[TOWN == "C"], X[TOWN == "C"])


def test_by_mdav_loses_what_mdav_loses():
    found, theirs = by_mdav(X, TOWN, 10, ALL), np.array(X)
    for one in "AB":
        table = pd.DataFrame(X[one == TOWN])
        theirs[one == TOWN] = Mdav(10).protect(table, np.random.default_rng(1)).values
    assert squared(X, found, ALL).mean() == pytest.approx(mse(X, theirs))
    assert (found.members[:295] >= 10).all()
    assert (found.members[:295] < 20).all()


def test_for_service_is_primule_by_that_distance():
    def tailored(mean, means):
        apart = means - mean
        sums = apart.reshape(len(means), -1, 6).sum(axis=1)
        return np.sqrt((apart**2).sum(axis=1) + 9 * (sums**2).sum(axis=1))

    rows = TOWN == "A"
    found = for_service(X[rows], TOWN[rows], 7, ALL)
    slow = Primule(7, distance=tailored).protect(pd.DataFrame(X[rows]), np.random.default_rng(1))
    assert same(found.group, slow.group)


@pytest.mark.parametrize("h", [range(5), range(1, 7), [0, 1, 2, 3, 4, 4], [*range(6), *range(6)], range(3, 15)])
def test_for_service_knows_whole_weeks_from_as_many_cells(h):
    with pytest.raises(ValueError, match=r"h must hold whole weeks, each of its 6 cells once.*got \d"):
        for_service(X, TOWN, 7, list(h))


def test_for_service_takes_the_cells_of_its_weeks_in_any_order():
    weeks, mixed = [0, 1, 2, 3, 4, 5, 12, 13, 14, 15, 16, 17], [17, 3, 12, 0, 5, 14, 1, 4, 13, 2, 16, 15]
    one, other = (for_service(X, TOWN, 7, h) for h in (weeks, mixed))
    assert same(one.group, other.group)
    np.testing.assert_allclose(whole_profiles(X, one, weeks), whole_profiles(X, other, mixed))


def test_cut_groups_are_parts_and_lose_no_more():
    found = by_primule(X, TOWN, 5, ALL)
    less = cut(X, found, 5, ALL)
    assert (less.members[TOWN != "C"] < 10).all()
    assert all(len(np.unique(found.group[less.group == g])) == 1 for g in np.unique(less.group))
    assert squared(X, less, ALL).sum() < squared(X, found, ALL).sum()


def test_single_is_the_bound():
    rows = TOWN == "B"
    assert squared(X, single(X, TOWN, ALL), ALL)[rows].mean() == pytest.approx(one_group(X[rows]))
    for k in (5, 60, 145):
        assert squared(X, by_primule(X, TOWN, k, ALL), ALL)[rows].mean() <= one_group(X[rows]) + 1e-12
    assert squared(X, by_primule(X, TOWN, 145, ALL), ALL)[rows].mean() == pytest.approx(one_group(X[rows]))


def test_the_fullest_part_of_the_week_stays():
    """Weekdays from 8 to 19 in the first week; published a little less there, then more in the evening; then both alike."""
    x = np.zeros((1, 12))
    x[0, 1] = x[0, 7] = 0.4
    less, evening = x * 0.9, x.copy()
    evening[0, 2] = 1
    both = x.copy()
    both[0, 2], both[0, 8] = 0.6, 0.2
    assert [same_time(x, said).tolist() for said in (x, less, evening, both)] == [[1], [1], [0], [0.5]]
    assert same_time(np.zeros((1, 6)), x[:, :6]).tolist() == [1]  # who calls at no time calls at all of them alike
    with pytest.raises(ValueError, match=r"whole weeks of 6 cells \(got 5 cells\)"):
        same_time(np.zeros((1, 5)), np.zeros((1, 5)))
