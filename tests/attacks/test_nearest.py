"""The nearest heat maps by the index must be those of the matrix, to the last digit."""

import numba
import numpy as np
import pandas as pd
import pytest
from conftest import refuses
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import mobpriv
from mobpriv.attacks import large_crowds
from mobpriv.attacks.ap import topsoe
from mobpriv.attacks.crowd import nearest
from mobpriv.attacks.large_crowds import heat_maps_of_files, nearest_on_cluster
from mobpriv.attacks.policies import TIE, min_k
from mobpriv.ground.grid import SquareGrid
from mobpriv.traces.profiles import HeatMaps, heat_maps

LARGEST = 2 * np.log(2)


def maps_of(rows, name="u"):
    """Heat maps of dicts cell -> count."""
    cells = np.unique(np.array([cell for row in rows for cell in row], np.int64))
    at = [np.searchsorted(cells, sorted(row)) for row in rows]
    counts = [row[cell] for row in rows for cell in sorted(row)]
    table = (
        np.array(counts, np.int64),
        np.concatenate([*at, []]).astype(np.int64),
        np.r_[0, np.cumsum([len(r) for r in rows])],
    )
    users = pd.Index([f"{name}{k:05d}" for k in range(len(rows))], name="user")
    return HeatMaps(users, cells, csr_array(table, shape=(len(rows), len(cells))))


def equal_to_the_matrix(a, b):
    d, result = topsoe(a, b), nearest(a, b)
    np.testing.assert_array_equal(result.divergence, d.min(axis=1))
    np.testing.assert_array_equal(result.index, d.argmin(axis=1))
    np.testing.assert_array_equal(result.ties, (d <= d.min(axis=1, keepdims=True) + TIE).sum(axis=1))
    # the single-output policy: ties count against the adversary
    hit = (b.users[result.index] == a.users) & (result.ties == 1)
    np.testing.assert_array_equal(hit, min_k(pd.DataFrame(d, a.users, b.users)) == 1)
    return result


# few cells and small counts: duplicates, equal divergences and strangers are frequent
heat_map = st.dictionaries(st.integers(0, 7), st.integers(1, 3), max_size=5)


@settings(max_examples=100, deadline=None)
@given(st.lists(heat_map, max_size=8), st.lists(heat_map, min_size=1, max_size=8))
def test_any_maps(traces, known):
    equal_to_the_matrix(maps_of(traces), maps_of(known))


def popular(users, cells, rng):
    """Heat maps of which a few cells are in nearly all; half of the users have a copy."""
    weight = 1 / np.arange(1.0, cells + 1)
    rows = []
    for _ in range(users // 2):
        own = rng.choice(cells, rng.integers(1, min(25, cells)), replace=False, p=weight / weight.sum())
        rows.append(dict(zip(own.tolist(), (1 + rng.geometric(0.05, len(own))).tolist(), strict=True)))
    return rows + rows


@pytest.mark.parametrize("cells", [3, 40, 2_000])
def test_a_crowd(cells):
    rng = np.random.default_rng(cells)
    known = popular(2_000, cells, rng)
    published = [{cell: n + int(rng.integers(0, 20)) for cell, n in row.items() if rng.random() < 0.8} for row in known]
    result = equal_to_the_matrix(maps_of(published), maps_of(known))
    assert (result.ties > 1).all()  # a copy of each known user
    equal_to_the_matrix(maps_of(published), maps_of(known[:1_000]))
    equal_to_the_matrix(maps_of(popular(500, cells, rng), "stranger"), maps_of(known))  # none is known


def test_a_trace_that_is_like_nobody_is_two_ln_two_from_everybody():
    known = maps_of([{1: 2}, {2: 1}, {1: 1, 2: 1}])
    result = equal_to_the_matrix(maps_of([{9: 4}, {}, {9: 10**15, 2: 1}]), known)
    assert result.divergence[:2].tolist() == [LARGEST, LARGEST]
    assert result.ties.tolist() == [3, 3, 3]  # the third has a common cell, but gains less than a tie
    tiny = equal_to_the_matrix(maps_of([{1: 10**16, 2: 1, 3: 1}]), maps_of([{1: 1, 7: 10**16}, {2: 1}, {3: 1}]))
    assert tiny.ties[0] == 3  # shares that vanish when the others are subtracted from 1
    alone = equal_to_the_matrix(maps_of([{1: 1}]), maps_of([{1: 5}]))
    assert (alone.index[0], alone.divergence[0], alone.ties[0]) == (0, 0, 1)


def test_one_thread_and_all_of_them_give_the_same(threads):
    rng = np.random.default_rng(1)
    known = maps_of(popular(400, 40, rng))
    shared = nearest(known, known)
    numba.set_num_threads(1)
    for one, other in zip(nearest(known, known), shared, strict=True):
        np.testing.assert_array_equal(one, other)


def test_nobody_known_is_refused():
    with pytest.raises(ValueError, match=r"nearest needs the heat map of one known user or more \(got none\)"):
        nearest(maps_of([{1: 1}]), maps_of([]))


@pytest.mark.parametrize("pieces", [0, 1, 7])
def test_a_cluster_finds_the_same_to_the_last_digit(cluster, pieces):
    rng = np.random.default_rng(4)
    a, b = (
        maps_of([dict(zip(rng.integers(0, 40, 9).tolist(), rng.integers(1, 9, 9).tolist(), strict=True)) for _ in range(n)])
        for n in (23, 31)
    )
    for found, expected in zip(nearest_on_cluster(a, b, cluster.scheduler_address, pieces), nearest(a, b), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_a_cluster_is_a_client_or_an_address():
    maps = maps_of([{1: 1}])
    refuses("cluster must be a distributed.Client or the address of a scheduler .got int", nearest_on_cluster, maps, maps, 3)


class TestHeatMapsOfFiles:
    GRID = SquareGrid(800.0)

    @pytest.fixture(scope="class")
    @staticmethod
    def table():
        rng = np.random.default_rng(5)
        t = pd.Timestamp("2020-01-01", tz="UTC") + pd.to_timedelta(rng.integers(0, 10**6, 4000), unit="s")
        users = rng.choice(["zoë", "ann", "10", "9"], 4000)
        return pd.DataFrame({"user": users, "t": t, "lat": rng.normal(45, 0.02, 4000), "lng": rng.normal(4.8, 0.02, 4000)})

    @pytest.mark.parametrize("files", [1, 3])
    def test_they_are_those_of_the_table_in_memory(self, tmp_path, table, files, monkeypatch):
        monkeypatch.setattr(large_crowds, "_AT_A_TIME", 700)
        for k in range(files):
            table[k::files].to_parquet(tmp_path / f"part{k}.parquet")
        begin = "2020-01-05T12:00"
        for since, of in (("", table), (begin, table[table["t"] >= pd.Timestamp(begin, tz="UTC")])):
            found = heat_maps_of_files(tmp_path / "part*.parquet", self.GRID, begin=since)
            expected = heat_maps(mobpriv.load(of).traces, self.GRID)
            assert found.users.tolist() == expected.users.tolist()
            np.testing.assert_array_equal(found.cells, expected.cells)
            np.testing.assert_array_equal(found.counts.toarray(), expected.counts.toarray())

    def test_a_record_without_a_place_is_counted_and_refused(self, tmp_path, table):
        table.assign(lat=table["lat"].where(table.index > 2)).to_parquet(tmp_path / "a.parquet")
        refuses("3 of 4000 records have no user or no valid place", heat_maps_of_files, tmp_path / "a.parquet", self.GRID)

    @pytest.mark.parametrize("options", [{"begin": "2030-01-01"}, {"begin": "2020-01-05", "end": "2020-01-05"}])
    def test_no_record_is_refused(self, tmp_path, table, options):
        table.to_parquet(tmp_path / "a.parquet")
        with pytest.raises(ValueError, match="the files hold no record"):
            heat_maps_of_files(tmp_path / "a.parquet", self.GRID, **options)

    def test_files_with_other_types_of_columns_keep_their_values(self, tmp_path, table):
        table[:9].assign(user=range(9), lat=45).to_parquet(tmp_path / "1.parquet")
        rest = table[9:].assign(user=lambda t: "0" + t["user"])
        rest.to_parquet(tmp_path / "2.parquet")
        found = heat_maps_of_files([tmp_path / "1.parquet", tmp_path / "2.parquet"], self.GRID)
        assert found.users.tolist() == sorted([*map(str, range(9)), *rest["user"].unique()])
        expected = heat_maps(mobpriv.load(rest).traces, self.GRID)
        kept = found.counts[found.users.get_indexer(expected.users)].toarray()
        np.testing.assert_array_equal(kept[:, kept.any(axis=0)], expected.counts.toarray())

    @pytest.mark.parametrize("begin", ["now or never", "NaT"])
    def test_a_time_that_is_none_is_refused(self, tmp_path, begin):
        refuses("begin and end are ISO times", heat_maps_of_files, tmp_path / "a.parquet", self.GRID, begin)
