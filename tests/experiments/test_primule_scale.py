"""PRIMULE over all municipalities: the same numbers in any order, by any number of threads, and after an interruption."""

import errno
from functools import partial

import numpy as np
import pandas as pd
import pytest

from mobpriv.experiments import primule_scale
from mobpriv.experiments.primule_scale import (
    MUNICIPALITY_COLUMNS,
    over_municipalities,
    published_values,
    scale_results,
    stored_in,
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


def test_the_largest_is_first():
    seen = []

    def keep(name, compute):
        result = compute()
        seen.append(len(result.group))
        return result

    over_municipalities(PROFILES, 5, keep=keep)
    assert seen == sorted(TOWNS.values(), reverse=True)


def test_an_interrupted_run_goes_on(tmp_path):
    complete = over_municipalities(PROFILES, 5)
    kept, computed = stored_in(tmp_path), []

    def until(last):
        def keep(name, compute):
            def counted():
                computed.append(name)
                if len(computed) == last:
                    raise KeyboardInterrupt
                return compute()

            return kept(name, counted)

        return keep

    with pytest.raises(KeyboardInterrupt):
        over_municipalities(PROFILES, 5, keep=until(3))
    assert len(list(tmp_path.iterdir())) == 2
    equal(over_municipalities(PROFILES, 5, keep=until(None)), complete)
    assert len(computed) == 3 + 3  # the third one again, and those after it
    equal(over_municipalities(PROFILES, 5, keep=until(None)), complete)
    assert len(computed) == 6
    for other in ({"k": 6}, {"h": [1, 2]}, {"distance": "manhattan"}, {"unsafe": "printed"}):
        computed.clear()
        over_municipalities(PROFILES, **{"k": 5, **other}, keep=until(None))
        assert len(computed) == 5


def test_files_that_cannot_be_read_are_made_again(tmp_path):
    complete = over_municipalities(PROFILES, 5, keep=stored_in(tmp_path))
    files = sorted(tmp_path.iterdir())
    files[0].write_bytes(files[0].read_bytes()[:200])
    files[1].write_bytes(b"")
    files[2].write_text("no archive")
    equal(over_municipalities(PROFILES, 5, keep=stored_in(tmp_path)), complete)
    assert [len(file.read_bytes()) > 300 for file in sorted(tmp_path.iterdir())] == [True] * 5


def along(mean, means, power=1):
    return (np.abs(means - mean) ** power).sum(axis=1)


def test_only_functions_with_a_name_are_kept(tmp_path, monkeypatch):
    """Two lambdas have one name: the second would get the groups of the first."""

    def local(mean, means):
        return along(mean, means)

    class Own:
        def __call__(self, mean, means):
            return along(mean, means)

        method = __call__

    for nameless in (lambda mean, means: along(mean, means), local, partial(along, power=3), Own(), Own().method):
        with pytest.raises(ValueError, match=r"^distance must be a function of a module if results are stored"):
            over_municipalities(PROFILES, 5, distance=nameless, keep=stored_in(tmp_path))
        equal(*(over_municipalities(PROFILES, 5, distance=nameless, workers=workers) for workers in (1, 2)))
    assert list(tmp_path.iterdir()) == []
    named = over_municipalities(PROFILES, 5, distance=along, keep=stored_in(tmp_path))
    equal(named, over_municipalities(PROFILES, 5, distance="manhattan"))
    assert len(list(tmp_path.iterdir())) == len(TOWNS)
    monkeypatch.setattr(along, "__module__", "__main__")  # every notebook's functions are of this one
    with pytest.raises(ValueError, match="a function of a module"):
        over_municipalities(PROFILES, 5, distance=along, keep=stored_in(tmp_path))


def test_another_version_takes_up_no_old_file(tmp_path, monkeypatch):
    files = []
    for version in (1, 2, 2):
        monkeypatch.setattr(primule_scale, "_VERSION", version)
        over_municipalities(PROFILES, 5, keep=stored_in(tmp_path))
        files.append(len(list(tmp_path.iterdir())))
    assert files == [5, 10, 10]


def test_a_full_disk_leaves_nothing_behind(tmp_path, monkeypatch):
    def full(file, **arrays):
        file.write(b"a part")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(primule_scale.np, "savez", full)
    with pytest.raises(OSError, match="No space left"):
        over_municipalities(PROFILES, 5, keep=stored_in(tmp_path))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("wrong", "given", "words"),
    [
        ("x", {}, "a table with the columns user, municipality, key"),
        (PROFILES[["user", "key"]], {}, "a table with the columns"),
        (PROFILES.iloc[:0], {}, "one row or more"),
        (PROFILES.assign(municipality=PROFILES["municipality"].where(PROFILES.index != 7)), {}, "in row 7 has none"),
        (PROFILES.assign(key=-1), {}, "a key must be that of a profile"),
        (PROFILES, {"k": 1}, "k must"),
        (PROFILES, {"workers": 0}, "workers must"),
        (PROFILES, {"h": [24]}, "h must"),
    ],
)
def test_refused(wrong, given, words):
    with pytest.raises(ValueError, match=words):
        over_municipalities(wrong, **{"k": 5} | given)


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
