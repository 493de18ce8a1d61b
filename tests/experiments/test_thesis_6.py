"""The setting of the thesis's chapter 6: §6.4.1 as a table, what the proxy tries and chooses, and knowledge cut in two."""

import pandas as pd
import pytest

from mobpriv.attacks.policies import successful_attacks
from mobpriv.experiments import thesis_6 as hybrid
from mobpriv.traces.table import by_user


@pytest.fixture(scope="module")
def setting():
    return hybrid.prepare("city", active=8)


@pytest.fixture(scope="module")
def fitted(setting):
    return hybrid.attacks(setting.known, seed=3)


@pytest.fixture(scope="module")
def chosen(setting, fitted):
    return hybrid.run_proxy(hybrid.proxy(setting, fitted), setting, 3)


def test_the_settings_are_those_of_the_text(setting, fitted):
    ill, ap, poi = fitted
    assert tuple(a.name for a in fitted) == hybrid.ATTACKS
    assert (ill.delta, ill.level, ill.seed) == (86_400, 13, 3)
    assert (ap.grid.cell, ap.grid.plane, ap.grid.shift) == (800, "ground", (0, 0))
    assert (poi.diameter, poi.duration) == (500, 900)
    geo_i, promesse, trilateration, hmc = hybrid.mechanisms(setting)
    assert tuple(m.name for m in (geo_i, promesse, trilateration, hmc)) == hybrid.MECHANISMS
    assert (geo_i.epsilon, promesse.alpha, trilateration.radius, hmc.cell) == (0.01, 200, 1000, 800)
    assert hmc.known is setting.known
    assert hybrid.proxy(setting, fitted).weights == (1, 1, 1)
    assert hybrid.USEFUL == 0.75


def test_the_settings_are_those_of_the_program(setting):
    ill, ap, poi = hybrid.attacks(setting.known, "program")
    assert (ill.zero_count, ap.grid.plane, poi.plane) == (True, "mercator", "mercator")
    assert {m.plane for m in hybrid.mechanisms(setting, "program")} == {"mercator"}


def test_a_shifted_grid_is_another_one(setting):
    _, ap, _ = hybrid.attacks(setting.known, shift=(0.5, 0.25))
    assert ap.grid.shift == (0.5, 0.25)


def test_the_weights_make_a_risk_the_number_of_successful_attacks(setting, fitted, chosen):
    """§6.4.1: "similar to the number of successful attacks metric", Equation (4.9)."""
    for name, published in chosen.tried.items():
        count = successful_attacks([a.rank(published) for a in fitted], setting.users, setting.person)
        assert chosen.risk[name].tolist() == count.tolist()


def test_what_is_protected_is_what_no_attack_finds(setting, fitted, chosen):
    hits = hybrid.hits(fitted, chosen.tried, setting)
    safe = hybrid.fully_protected(hits)
    pd.testing.assert_frame_equal(safe, chosen.risk == 0, check_names=False)
    published = hybrid.hits(fitted, {"Hybrid-LPPM": chosen.traces}, setting)
    of = hybrid.of_chosen(safe, chosen.mechanism)
    assert of.tolist() == hybrid.fully_protected(published)["Hybrid-LPPM"].tolist()  # each sub-trace is ranked by itself
    assert (of.to_numpy() == safe.any(axis=1).to_numpy()).all()
    assert of.any()
    assert not safe.all(axis=None)


def test_the_useful_ones_are_those_of_any_mechanism(chosen):
    """Of the mechanisms that protect it takes the best: where one of them covers a share of the cells, so does the chosen one."""
    good = (chosen.risk == 0) & (chosen.utility > hybrid.USEFUL)
    of = hybrid.of_chosen(good, chosen.mechanism)
    assert (of == good.any(axis=1)).all()


def test_a_trial_is_its_seed(setting, chosen):
    trial, other_seed = hybrid.trial(setting, seed=3), hybrid.trial(setting, seed=4)
    pd.testing.assert_series_equal(trial.mechanism, chosen.mechanism)
    pd.testing.assert_frame_equal(trial.utility, chosen.utility)
    assert not trial.utility.equals(other_seed.utility)
    assert set(trial.hits) == set(hybrid.ATTACKS)


def test_the_known_days_are_cut_in_two(setting):
    earlier, later = hybrid.knowledge_in_two(setting)
    assert len(earlier) + len(later) == len(setting.known)
    assert by_user(later)[0].isin(by_user(earlier)[0]).all()
    last, first = earlier.groupby("user", observed=True)["t"].max(), later.groupby("user", observed=True)["t"].min()
    assert (last[first.index] < first).all()
    both = pd.concat([earlier, later]).astype({"user": str}).sort_values(["user", "t"], kind="stable").reset_index(drop=True)
    pd.testing.assert_frame_equal(both, setting.known.astype({"user": str}))


def test_the_proxy_may_know_less_than_the_adversary(setting):
    earlier, _ = hybrid.knowledge_in_two(setting)
    hmc = hybrid.mechanisms(setting, known=earlier)[-1]
    assert hmc.known is earlier
    assert hmc.owners == setting.owner.to_dict()


def test_a_publisher_has_each_users_days_in_one(setting, fitted):
    joined = hybrid.full_traces(setting)
    assert len(joined.secret) == len(setting.secret)
    assert sorted(joined.users) == sorted(set(setting.owner)) == sorted(by_user(joined.secret)[0])
    assert (joined.owner == joined.users).all()
    chosen = hybrid.run_proxy(hybrid.proxy(joined, fitted), joined, 3)
    hits = hybrid.hits(fitted, chosen.tried, joined)
    risk = sum(table.astype(float) for table in hits.values())
    assert risk[list(chosen.risk)].equals(chosen.risk)  # the same names count as re-identified
    assert hybrid.of_chosen(risk, chosen.mechanism).eq(risk.min(axis=1)).all()
