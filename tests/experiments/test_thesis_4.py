"""Chapter 4: who is accused, one name a trace, HMC with another target, the origins of records; pages that measure the same agree."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from conftest import ROOT, published
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mobpriv.book import running
from mobpriv.experiments import thesis_4 as t4
from mobpriv.experiments.thesis_3 import prepare
from mobpriv.ground.grid import SquareGrid
from mobpriv.mechanisms.alteration import Alteration
from mobpriv.metrics import distances_to_path
from mobpriv.traces.table import as_traces, rows


def ranking(rows, columns="abc"):
    return pd.DataFrame([values for _, values in rows], [user for user, _ in rows], list(columns), dtype=float)


def test_accusations_are_those_of_others_traces():
    rankings = ranking([("a", [0, 1, 2]), ("b", [0, 1, 2]), ("c", [0, 1, 2]), ("z", [2, 0, 1])])
    assert t4.accusations(rankings).to_dict() == {"a": 2, "b": 1, "c": 0}


def test_neither_a_second_name_nor_who_cannot_be_compared_is_a_false_accusation():
    rankings = ranking([("a", [1, 0, 2]), ("c", [1, 0, 2])])
    assert t4.accusations(rankings, {"b": "a"}).to_dict() == {"a": 0, "b": 1, "c": 0}
    rankings = ranking([("a", [np.nan, np.nan, np.nan]), ("b", [np.nan, np.nan, 1])])
    assert t4.accusations(rankings).to_dict() == {"a": 0, "b": 0, "c": 1}


@given(d=st.integers(1, 4).flatmap(lambda n: arrays(float, (n, 4), elements=st.integers(0, 50).map(float))))
def test_one_to_one_is_the_best_of_all_ways(d):
    table = ranking(list(zip("abcd", d, strict=False)), "abcd")
    answers = t4.one_to_one(table)
    assert answers.is_unique
    best = min(sum(row[j] for row, j in zip(d, assignment, strict=False)) for assignment in permutations(range(4), len(d)))
    assert sum(table.loc[trace, user] for trace, user in answers.items()) == best


def test_one_to_one_with_more_traces_than_users_and_with_nobody_to_compare():
    table = ranking([("a", [0, 5]), ("b", [1, 5]), ("c", [9, 9])], "ab")
    assert t4.one_to_one(table).isna().tolist() == [False, False, True]
    table = ranking([("a", [np.nan, 1]), ("b", [np.nan, 50])], "ab")
    assert t4.one_to_one(table).notna().all()


def test_a_user_is_found_among_traces_of_another_kind():
    """bob's protected trace looks like ann: it takes her name where hers does not fit better."""
    recorded = ranking([("ann", [1, 9]), ("bob", [9, 1])], ["ann", "bob"])
    protected = ranking([("ann", [3, 4]), ("bob", [1, 9])], ["ann", "bob"])
    assert t4.reidentified_among(protected, recorded, ["ann"]).tolist() == [True]
    assert t4.reidentified_among(protected, protected, ["ann"]).tolist() == [False]
    assert t4.reidentified_among(protected.drop(index="ann"), recorded, ["ann"]).tolist() == [False]


# ------------------------------------------------------------------------------------------------------ the pages' results
MECHANISMS = ("none", "Geo-I", "Promesse", "W4M", "HMC")


on_both = pytest.mark.parametrize("run", ["cabspotting", "geolife"])


@on_both
@pytest.mark.parametrize("mechanism", MECHANISMS[1:])
def test_the_ranges_of_the_protected_and_the_levels_of_all_tell_of_the_same_users(run, mechanism):
    """Who is protected and within 200 m, counted once among the protected of a draw and once among all users."""
    results = published("thesis_4_utility", run)
    within = sum(results[f"bin.SD.{range_}.{mechanism}"]["value"] for range_ in ("below 1 m", "1 to 10 m", "10 to 200 m"))
    level = sum(results[f"level.{text}.{mechanism}"]["value"] for text in ("AC and SD high", "SD high only"))
    of_a_draw, users = (results[f"{name}.{mechanism}"]["n"] for name in ("bin.SD.below 1 m", "level.both low"))
    # the n of a draw is a whole number, the middle one of the draws
    assert of_a_draw <= users * (1 - results[f"level.not protected.{mechanism}"]["value"]) + 1
    assert within * of_a_draw == pytest.approx(level * users, abs=1)


def assert_same_estimate(one: dict, other: dict):
    """All that both runs saved is equal; only the name of the interval, which older runs did not save, may be in one alone."""
    assert one.keys() ^ other.keys() <= {"interval"}
    assert {key: one[key] for key in one.keys() & other.keys()} == {key: other[key] for key in one.keys() & other.keys()}


@on_both
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_attacks_on_recorded_traces_find_the_same_users_on_both_pages(run, mechanism):
    informed, privacy = published("thesis_4_informed", run), published("thesis_4_privacy", run)
    for attack in ("AP-Attack", "POI-Attack", "PIT-Attack"):
        assert_same_estimate(informed[f"trained.recorded.{attack}.{mechanism}"], privacy[f"rate.{attack}.{mechanism}"])
    assert_same_estimate(informed[f"safe.recorded.{mechanism}"], privacy[f"successes.0.{mechanism}"])


@on_both
def test_who_smooths_his_half_finds_as_many_as_on_the_page_of_the_causes(run):
    """Promesse draws no random numbers: two pages, one rate."""
    informed, causes = published("thesis_4_informed", run), published("thesis_3_causes", run)
    assert_same_estimate(informed["trained.protected.AP-Attack.Promesse"], causes["trained.protected.Promesse"])


def test_a_choice_to_pass_over_must_be_one_of_the_page(tmp_path):
    target = {"output": tmp_path / "out.ipynb", "results": tmp_path / "out.json"}
    with pytest.raises(ValueError, match=r"untried must name choices of this page: .*got 'rounded up'"):
        running.run("thesis_4_choices", {"quick": True, "untried": ["rounded up"]}, **target)


@pytest.fixture(scope="module")
def setting():
    return prepare(max_users=20)


@pytest.fixture(scope="module")
def mechanism(setting):
    return t4.hmc(setting)


@pytest.fixture(scope="module")
def most_similar(setting, mechanism):
    return t4.by_similarity(mechanism, setting.secret)


def assert_equal_alterations(a: Alteration, b: Alteration):
    pd.testing.assert_frame_equal(a.users, b.users)
    pd.testing.assert_frame_equal(a.targets, b.targets)
    np.testing.assert_array_equal(a.cells, b.cells)
    np.testing.assert_array_equal(a.shares.toarray(), b.shares.toarray())


# ---------------------------------------------------------------------------------------------------------------- targets
@pytest.mark.parametrize("how", [{}, {"unlike": "exclusion"}, {"margin": 0.1, "rounded_at": "rule"}, {"patience": 3}])
def test_towards_the_likest_user_it_is_hmc(setting, mechanism, most_similar, how):
    mechanism = replace(mechanism, **how)
    hmc_result = mechanism.alter(setting.secret)
    assert len(hmc_result.targets) > 5
    assert "patience" not in how or (hmc_result.users["outcome"] == "replaced").any()
    assert_equal_alterations(t4.altered_towards(mechanism, setting.secret, most_similar[1]), hmc_result)


def test_the_ranks_are_those_of_an_hmc_that_knows_less_and_less(setting, mechanism, most_similar):
    """Without her likest user among the known ones HMC takes the second, and so on; every rank names another known user."""
    for user, names in most_similar.iterrows():
        assert {*names, user} == set(setting.known["user"].unique())
    user = mechanism.alter(setting.secret).targets["trace"].iloc[0]
    trace = rows(setting.secret, (setting.secret["user"] == user).to_numpy())
    for rank in (1, 2, 5):
        removed = setting.known["user"].isin(most_similar.loc[user, : rank - 1])
        less = replace(mechanism, known=rows(setting.known, ~removed.to_numpy()))
        assert less.alter(trace).users.loc[user, "target"] == most_similar.loc[user, rank]


@pytest.mark.parametrize("rank", [2, 10])
def test_it_is_an_hmc_that_knows_her_and_the_target_alone(setting, mechanism, most_similar, rank):
    alteration = t4.altered_towards(mechanism, setting.secret, most_similar[rank])
    for user in alteration.targets["trace"][:4]:
        two = setting.known["user"].isin([user, most_similar.loc[user, rank]]).to_numpy()
        trace = rows(setting.secret, (setting.secret["user"] == user).to_numpy())
        alone = replace(mechanism, known=rows(setting.known, two)).alter(trace)
        columns = alteration.users.columns.drop("nearer")  # counted among all known users
        pd.testing.assert_series_equal(alteration.users.loc[user, columns], alone.users.loc[user, columns])
        shares, shares_alone = alteration.shares[[alteration.users.index.get_loc(user)]].tocoo(), alone.shares.tocoo()
        np.testing.assert_array_equal(alteration.cells[shares.coords[1]], alone.cells[shares_alone.coords[1]])
        np.testing.assert_array_equal(shares.data, shares_alone.data)


def test_whoever_needs_no_alteration_stays_whatever_target_is_named(setting, mechanism, most_similar):
    hmc_result, alteration = mechanism.alter(setting.secret), t4.altered_towards(mechanism, setting.secret, most_similar[10])
    unaltered = (hmc_result.users["outcome"] == "not needed").to_numpy()
    assert unaltered.any()
    pd.testing.assert_frame_equal(hmc_result.users[unaltered], alteration.users[unaltered])
    np.testing.assert_array_equal(hmc_result.shares.toarray()[unaltered], alteration.shares.toarray()[unaltered])


@pytest.mark.parametrize("wrong", [{}, "herself", "nobody"])
def test_a_target_is_another_known_user(setting, mechanism, wrong):
    targets = {user: {"herself": user, "nobody": "nobody"}[wrong] for user in setting.users} if wrong else {}
    with pytest.raises(ValueError, match=r"targets must name another known user for each altered trace \(got"):
        t4.altered_towards(mechanism, setting.secret, pd.Series(targets, dtype=object))


@pytest.mark.parametrize("how", [{"k": 2}, {"target": "mean"}, {"target": "population"}])
def test_a_target_is_one_user(setting, mechanism, most_similar, how):
    with pytest.raises(ValueError, match="a target can be named for HMC with k=1"):
        t4.altered_towards(replace(mechanism, **how), setting.secret, most_similar[1])


# ---------------------------------------------------------------------------------------------------------------- origins
GRID = SquareGrid(800.0)
NORTH = 0.0072  # degrees, about 800 m


def track(*records, user="ann"):
    """Records as (minute, cells northwards, cells eastwards)."""
    south, west, north, east = GRID.bounds(GRID.cells([45.0], [5.0]))[0]
    at = [((south + north) / 2 + NORTH * y, (west + east) / 2 + NORTH * x) for _, y, x in records]
    time = pd.Timestamp("2014-05-13T16:00Z") + pd.to_timedelta([r[0] for r in records], unit="min")
    return as_traces(pd.DataFrame(at, columns=["lat", "lng"]).assign(user=user, t=time))


def test_origins_of_a_trace_that_comes_back():
    """Three records in the first cell, one in the next, and back: by hand, each kind once and more."""
    trace = track((0, 0, 0), (2, 0.2, 0), (4, 0.2, 0.1), (10, 1, 0), (20, 0, 0.2), (22, 0, 0.3))
    # the second half-way between the first two, the fourth between her third and fifth, across another cell; the last elsewhere
    published = track(
        (0, 0, 0), (1, 0.1, 0), (2, 0.2, 0), (12, 0.1, 0.15), (20, 0, 0.2), (21, 0, 0.25), (22, 0, 0.3), (30, 3, 3)
    )
    expected = ["recorded", "within a visit", "recorded", "between visits", "recorded", "within a visit", "recorded", "copied"]
    assert t4.origins(trace, published, GRID).tolist() == expected


def test_a_repeated_lone_record_and_an_untouched_trace_are_recorded_and_an_erased_user_has_no_origins():
    trace = track((0, 0, 0), (5, 2, 0))
    assert set(t4.origins(trace, trace, GRID)) == {"recorded"}
    assert t4.origins(trace, track((0, 0, 0), (0, 0, 0), (5, 2, 0)), GRID).tolist() == ["recorded"] * 3
    both = as_traces(pd.concat([trace, track((0, 0, 0), (1, 0, 0), user="bob")]))
    bobs = rows(both, (both["user"] == "bob").to_numpy())
    assert t4.origins(both, bobs, GRID).tolist() == ["recorded", "recorded"]


def test_hmc_publishes_what_its_algorithms_say(setting, mechanism):
    """Midpoints within a visit lie on the path, those between visits need not; copied records are in cells that she never passed."""
    alteration = replace(mechanism, patience=20).alter(setting.secret)  # some maps are replaced
    rebuilt = mechanism.rebuild(setting.secret, alteration, np.random.default_rng(1))
    kind = t4.origins(setting.secret, rebuilt.traces, mechanism.grid)
    off = distances_to_path(setting.secret, rebuilt.traces)
    assert set(kind) == set(t4.ORIGINS)
    assert off[np.isin(kind, ["recorded", "within a visit"])].max() < 1e-3
    assert (off[kind == "between visits"] > 1).mean() > 0.1
    copied = pd.Series(kind == "copied").groupby(rebuilt.traces["user"].to_numpy().astype(str)).any()
    assert set(copied.index[copied]) <= set(rebuilt.users.index[rebuilt.users["filled_cells"] > 0])


def test_a_record_moved_off_the_path_is_seen():
    """The harness above would not pass for a midpoint that is put beside the path."""
    trace = track((0, 0, 0), (2, 0.2, 0))
    beside = track((1, 0.1, 0.05))
    assert t4.origins(trace, beside, GRID).tolist() == ["within a visit"]
    assert distances_to_path(trace, beside)[0] > 1


# ------------------------------------------------------------------------------------------------------ the pages' results
def runs_of(notebook):
    return sorted(path.parent.name for path in (ROOT / "book" / "results").glob(f"*/{notebook}.json"))


@pytest.mark.parametrize("run", runs_of("thesis_4_reasons"))
def test_towards_the_likest_user_the_page_of_privacy_finds_as_many(run):
    """The same draws of the same mechanism on two pages."""
    privacy, reasons = published("thesis_4_privacy", run), published("thesis_4_reasons", run)
    for k in range(1, 11):
        assert_same_estimate(reasons[f"within.{k}.1st"], privacy[f"within.{k}.HMC"])


@pytest.mark.parametrize("run", runs_of("thesis_4_rivals"))
def test_mechanisms_as_the_thesis_has_them_protect_as_many_on_both_pages(run):
    privacy, rivals = published("thesis_4_privacy", run), published("thesis_4_rivals", run)
    names = {"none": "none", "HMC": "HMC", "all filled": "Promesse", "Geo-I, 200 m": "Geo-I"}
    for rival, mechanism in names.items():
        assert_same_estimate(rivals[f"found.{rival}"], privacy[f"rate.AP-Attack.{mechanism}"])
        assert_same_estimate(rivals[f"protected.{rival}"], privacy[f"successes.0.{mechanism}"])
