"""The days that dχ's samples are drawn from: of calls, and of traces whose users are let call."""

import numpy as np
import pandas as pd
import pytest
from dchi_making import halves

from mobpriv import datasets
from mobpriv.experiments import dchi
from mobpriv.experiments.dchi import choose, draw, prepare, together

ZONE = "Europe/Lisbon"


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    """The first 900 callers of the region in its first four days, as a table of their own."""
    of = datasets.load_calls("region")
    users = set(sorted(of.calls["user"].cat.categories)[:900])
    calls = of.calls[of.calls["user"].isin(users) & (of.calls["t"] < pd.Timestamp("2024-10-11", tz="UTC"))]
    folder = tmp_path_factory.mktemp("calls")
    plain = calls.assign(user=calls["user"].astype(str), cell=calls["cell"].astype(str))[["user", "t", "cell"]]
    plain.to_csv(folder / "few.csv", index=False)
    of.cells.assign(cell=of.cells["cell"].astype(str)).to_csv(folder / "few_cells.csv", index=False)
    return folder / "few.csv", plain, of.cells


def counted(plain, pois, start, end):
    """Count profiles by a plain group: who called how often at which POI."""
    of = plain[(plain["t"] >= start) & (plain["t"] < end) & plain["cell"].isin(pois.index)]
    return of.assign(poi=of["cell"].map(pois)).groupby(["user", "poi"]).size().unstack(fill_value=0)


def test_a_days_profiles_are_those_of_a_plain_count(few):
    path, plain, _ = few
    found = choose(path, days=4, n=5, least=3, m=40, zone=ZONE)
    d = found.dates.index("2024-10-08")
    start, noon, end = (pd.Timestamp(f"2024-10-{moment}:00", tz=ZONE) for moment in ("08 00", "08 12", "09 00"))
    whole = counted(plain, found.pois, start, end)
    wanted = whole[(whole > 0).sum(axis="columns") >= 3]
    at = slice(found.setting.offsets[d], found.setting.offsets[d + 1])
    assert list(found.setting.users[at]) == list(wanted.index)
    morning = counted(plain, found.pois, start, noon).reindex(index=wanted.index, columns=found.setting.pois, fill_value=0)
    np.testing.assert_array_equal(found.setting.first[at], morning.to_numpy())
    both = found.setting.first[at] + found.setting.second[at]
    np.testing.assert_array_equal(both, wanted.reindex(columns=found.setting.pois, fill_value=0).to_numpy())
    assert f"{len(found.dates)} days of 4" in found.selection
    assert len(found.dates) == len(found.callers) == len(found.setting.per_day)
    assert found.callers[d] == plain[(plain["t"] >= start) & (plain["t"] < end)]["user"].nunique()


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"days": 4, "n": 900, "zone": ZONE}, r"no day of few has 900 users at .* \(the most on one of 4 days .*: \d+\)"),
        ({"data": "city"}, "city holds traces, and call records are needed: rate=30 simulates 30 calls a day"),
        ({"data": "city", "rate": -1.0}, "rate must be positive"),
        ({"data": "region", "rate": 30.0}, r"rate is for traces, .*: region already holds calls \(got 30.0\)"),
        ({"data": "region", "leave_out": "a"}, r"leave_out is for traces.*got 'a'"),
    ],
)
def test_what_is_refused(few, given, line):
    given = {"data": few[0]} | given
    with pytest.raises(ValueError, match=line):
        choose(given.pop("data"), **given)


def test_users_of_traces_call_and_who_is_left_out_does_not():
    found = choose("city", days=2, n=20, least=2, rate=20.0, zone="UTC", leave_out="c001, p001")
    assert found.data.synthetic
    assert found.data.name == "city"
    assert not {"c001", "p001"} & set(found.data.calls["user"].cat.categories)
    again = choose("city", days=2, n=20, least=2, rate=20.0, zone="UTC", leave_out="c001, p001")
    np.testing.assert_array_equal(found.setting.first, again.setting.first)
    (row,) = found.data.left_out.itertuples()
    assert row.records > 0
    # each layout has antennas and calls of its own, and the first of them does not depend on how many there are
    places = found.places()
    assert places.shape == (5, 29, 2)
    assert len({row.tobytes() for row in places}) == 5
    assert sorted(set(found.setting.layouts)) == list(range(5))
    one = choose("city", days=2, n=20, least=2, rate=20.0, zone="UTC", leave_out="c001, p001", layouts=1)
    np.testing.assert_array_equal(one.setting.first, found.setting.first[: len(one.setting.first)])
    # the same seed makes other noise than on calls
    assert (found.seed, choose("region", days=1, n=5, seed=1).seed) == ((1, 1), (1,))
    assert (np.random.default_rng(found.seed).random(9) != np.random.default_rng((1,)).random(9)).all()


class TestTogether:
    days = tuple(prepare(*halves(150 + 50 * k, seed=k), least=4) for k in range(3))

    def test_rows_stand_day_by_day(self):
        whole = together(self.days)
        assert list(whole.per_day) == [len(day.users) for day in self.days]
        for d, day in enumerate(self.days):
            at = slice(whole.offsets[d], whole.offsets[d + 1])
            np.testing.assert_array_equal(whole.first[at], day.first)
            assert list(whole.users[at]) == list(day.users)

    def test_a_draw_is_of_one_day_with_enough_users_and_all_such_days_serve(self):
        whole = together(self.days)
        n = int(np.sort(whole.per_day)[1])  # what two of the three days have
        drawn = draw(whole, np.random.default_rng(1), 60, n)
        day = np.searchsorted(whole.offsets, drawn.users, side="right") - 1
        assert (day == day[:, :1]).all()
        assert set(day[:, 0]) == set(np.flatnonzero(whole.per_day >= n))
        with pytest.raises(ValueError, match=f"there are {whole.per_day.max()} of .* on the best day"):
            draw(whole, np.random.default_rng(1), 1, int(whole.per_day.max()) + 1)
        with pytest.raises(ValueError, match="no day to draw from"):
            together([])
        with pytest.raises(ValueError, match="the same POIs and the same least"):
            together([self.days[0], prepare(*halves(150), least=5)])


class TestSmallParts:
    def test_a_protection_by_its_short_name(self):
        assert dchi.protection("all", True) == dchi.COUNTS
        assert dchi.protection("N5") == dchi.NEAR_BOOLEANS
        assert dchi.protection("F3", True, rounding="floor") == dchi.Protection(True, 3, "further", rounding="floor")
        for wrong in ("", "five", "N", "N-1", "M5"):
            with pytest.raises(ValueError, match=r'chi must be "all", or N or F'):
                dchi.protection(wrong)

    def test_who_is_like_no_other(self):
        profiles = np.array([[[1, 0], [1, 0], [0, 1]], [[1, 0], [2, 0], [0, 1]]])
        np.testing.assert_allclose(dchi.unique(profiles), [1 / 3, 1])

    def test_a_family_over_draws(self):
        values = np.arange(200.0).reshape(100, 2)
        of = dchi.over("error.all", (0.1, 2), values)
        assert list(of) == ["error.all.0.1", "error.all.2"]
        assert of["error.all.2"].value == values[:, 1].mean()
        ends = of["error.all.2"].low, of["error.all.2"].high
        assert ends == pytest.approx(tuple(np.quantile(values[:, 1], [0.025, 0.975])))

    def test_a_neighbourhood_of_all_tells_nothing_and_one_of_none_something(self):
        setting = prepare(*halves(150))
        samples = draw(setting, np.random.default_rng(1), 2, 20)
        assert all((of == 0).all() for of in dchi.telling(samples, dchi.protection("N29")).values())
        told = dchi.telling(samples, dchi.protection("N3"))
        of_counts = dchi.telling(samples, dchi.protection("N3", counts=True))
        assert (of_counts["neighbours"] < told["neighbours"]).all()  # where she was twice, one visit less tells nothing
        # a profile's own visits are its χ: without one of them the neighbour's χ is another
        assert (told["users"] > 0).all()
        assert (told["probability"] <= 1).all()
        assert (told["neighbours"] <= told["users"]).all()
