"""The crowd's experiment against the attack that it replaces."""

import numpy as np
import pandas as pd
import pytest

from mobpriv.attacks import APAttack
from mobpriv.attacks.policies import reidentified
from mobpriv.base.estimates import paired_difference, rate
from mobpriv.datasets.city.crowd import Crowd
from mobpriv.experiments import thesis_3_crowd as experiment

MECHANISMS = experiment.MECHANISMS


@pytest.fixture(scope="module")
def crowd():
    return Crowd(seed=3)


def maps_in_parts(crowd, monkeypatch, users=90, attacked=60):
    monkeypatch.setattr(experiment, "_AT_A_TIME", 40)  # users 40 … 79 are attacked in part
    return experiment.crowd_maps(crowd, users, attacked, MECHANISMS, 7, MECHANISMS)


def test_it_is_ap_attack(crowd, monkeypatch):
    """APAttack on the same traces, with ties as the policies count them."""
    results = experiment.crowd_results(maps_in_parts(crowd, monkeypatch), [30, 90])
    known, secret = crowd.halves(0, 90)
    users = pd.Index(secret["user"].cat.categories[secret["user"].cat.categories < "u0000060"])
    for name in ("none", "Promesse"):  # deterministic: their noise does not depend on the parts
        trained = {"recorded": known, "protected": MECHANISMS[name].protect(known, None)}
        for prefix in ("recorded",) if name == "none" else trained:
            hits = {}
            for n in (30, 90):
                inside = lambda traces, n=n: traces["user"].astype(str) < f"u{n:07d}"  # noqa: E731
                attack = APAttack().fit(trained[prefix][inside(trained[prefix])])
                among = users[users < f"u{n:07d}"]
                published = MECHANISMS[name].protect(secret[secret["user"].isin(among)].reset_index(drop=True), None)
                hits[n] = reidentified(attack.rank(published), among).to_numpy()
                assert results[f"rate.{prefix}.{name}.{n}"] == rate(hits[n])
            assert results[f"change.{prefix}.{name}.90"] == paired_difference(hits[90][: len(hits[30])], hits[30])
    assert len(results) == 5 * 3


def test_the_maps_of_a_user_do_not_depend_on_the_crowd(crowd, monkeypatch):
    large = maps_in_parts(crowd, monkeypatch)
    small = maps_in_parts(crowd, monkeypatch, 45, 45)
    assert large.users[: len(small.users)].equals(small.users)
    for name in MECHANISMS:
        for one, other in ((large.known, small.known), (large.published, small.published)):
            part = experiment.among_first(one[name], 40)
            again = experiment.among_first(other[name], 40)
            assert part.users.equals(again.users)
            for k in range(len(part.users)):
                (a, b) = (dict(zip(m.cells[m.counts[[k]].indices], m.counts[[k]].data, strict=True)) for m in (part, again))
                assert a == b


def test_more_attacked_than_users_are_refused(crowd):
    with pytest.raises(ValueError, match="attacked must"):
        experiment.crowd_maps(crowd, 3, 4, MECHANISMS, 1)
    assert np.all([mechanism.name == name for name, mechanism in MECHANISMS.items()])
