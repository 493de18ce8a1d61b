"""Chapter 3's main numbers on the real data by another way than the package's own: plain pandas and NumPy beside the published results."""

import json

import numpy as np
import pandas as pd
import pytest
from conftest import ROOT

from mobpriv.experiments.thesis_3 import mechanisms, prepare, protected
from mobpriv.geo import meridian_arc, metres_per_degree
from mobpriv.grid import latitude_of_arc

CELL = 800.0  # m


def published(notebook):
    return json.loads((ROOT / "book" / "results" / "cabspotting" / f"{notebook}.json").read_text())["results"]


@pytest.fixture(scope="module")
def cabs(real_data):
    return prepare(str(real_data / "cabspotting.parquet"), leave_out="mfeuer")


def shares(traces) -> pd.Series:
    """(user, row, column) -> share of the user's records in that cell of 800 m, as the definition says."""
    row = np.floor(meridian_arc(traces["lat"].to_numpy()) / CELL)
    east = metres_per_degree(latitude_of_arc((row + 0.5) * CELL))[0]
    column = np.floor(traces["lng"].to_numpy() * east / CELL)
    cells = pd.DataFrame({"user": traces["user"].astype(str).to_numpy(), "row": row, "column": column})
    return (
        cells.value_counts() / cells["user"].value_counts().reindex(cells.value_counts().index.get_level_values(0)).to_numpy()
    )


def distances(secret, known) -> pd.DataFrame:
    """Equation (3.3) of every anonymous map with every known one, from its definition."""
    x, y = (shares(of).unstack(["row", "column"], fill_value=0.0) for of in (secret, known))
    cells = x.columns.union(y.columns)
    x, y = (of.reindex(columns=cells, fill_value=0.0) for of in (x, y))
    return pd.DataFrame(np.array([topsoe(one, y.to_numpy()) for one in x.to_numpy()]), x.index, y.index)


def topsoe(one, others):
    """Term by term; in cells where ``one`` is 0 a term is y ln 2."""
    there = one > 0
    x, y = one[there], others[:, there]
    with np.errstate(divide="ignore", invalid="ignore"):
        of_y = np.where(y > 0, y * np.log(2 * y / (x + y)), 0.0)
    return (x * np.log(2 * x / (x + y)) + of_y).sum(axis=1) + np.log(2) * (1 - y.sum(axis=1))


def found(d) -> pd.Series:
    """Who is nearer to herself than to anybody else."""
    return pd.Series({user: user in d and (d.loc[user] <= d.loc[user, user] + 1e-12).sum() == 1 for user in d.index})


@pytest.fixture(scope="module")
def unprotected(cabs):
    return distances(cabs.secret, cabs.known)


def test_the_best_threshold(cabs, unprotected):
    """Table 3.1's measure at every probability that occurs among the largest of each trace, from its definition."""
    p = 1 - unprotected / (2 * np.log(2))
    p = p.div(p.sum(axis=1), axis=0)
    own = np.array([p.loc[user, user] if user in p else 0.0 for user in p.index])

    def precision(alpha):
        named = (p.to_numpy() >= alpha).sum(axis=1)
        return ((own >= alpha) / np.maximum(named, 1)).sum() / len(cabs.users)

    results = published("thesis_3_threshold")
    at_best = precision(results["best_alpha.none"] * (1 - 1e-9))
    assert at_best == pytest.approx(results["best_precision.none"]["value"], abs=1e-6)
    assert max(map(precision, np.sort(p.to_numpy().max(axis=1)))) <= at_best + 1e-12


def test_the_adversary_who_smooths_his_half_too(cabs, unprotected):
    """27 of 522 cabs under Promesse, 98 when the training half is smoothed as well."""
    promesse, results = mechanisms()["Promesse"], published("thesis_3_causes")
    (secret,), (known,) = (list(protected(promesse, of, [1])) for of in (cabs.secret, cabs.known))
    hits = {side: found(distances(secret, of)).sum() for side, of in (("recorded", cabs.known), ("protected", known))}
    assert hits == {"recorded": 27, "protected": 98}
    for side, count in hits.items():
        assert count / len(cabs.users) == pytest.approx(results[f"trained.{side}.Promesse"]["value"])
    assert found(unprotected).sum() / len(cabs.users) == pytest.approx(results["trained.recorded.none"]["value"])


def test_w4m_s_pivots_are_found_as_if_unprotected_and_moved_users_hardly(cabs, unprotected):
    moved = next(protected(mechanisms()["W4M"], cabs.secret, [1]))
    columns = ["user", "t", "lat", "lng"]
    before, after = (of[columns].assign(user=of["user"].astype(str)).groupby("user") for of in (cabs.secret, moved))
    pivots = [
        user
        for user, trace in after
        if trace[columns[1:]].reset_index(drop=True).equals(before.get_group(user)[columns[1:]].reset_index(drop=True))
    ]
    hits, without = found(distances(moved, cabs.known)), found(unprotected)
    others = hits.index.difference(pivots)
    results = published("thesis_3_causes")
    spread = results["users.pivot"]
    assert spread["low"] <= len(pivots) <= spread["high"]
    assert hits[pivots].sum() == without[pivots].sum() > 50
    assert hits[others].mean() <= results["found.moved"]["high"]
