"""What a reader of the joint chapter may get wrong: one line with the rule, the value and a way out, before anything is computed."""

import numpy as np
import pandas as pd
import pytest
from conftest import refusals, refuses

from mobpriv.channels import checks, inference, nearby, optimal
from mobpriv.channels.area import Area
from mobpriv.channels.distances import euclidean, hamming
from mobpriv.channels.priors import better_informed, densest_area, priors
from mobpriv.channels.rivals import planar_laplace
from mobpriv.experiments import joint
from mobpriv.ground.grid import AreaGrid
from mobpriv.traces.table import as_traces

LINE = euclidean(np.column_stack([[0.0, 1000.0, 2500.0], np.zeros(3)]))
PRIOR = np.array([0.5, 0.2, 0.3])
WITHOUT_NUMBER = np.array([0.5, np.nan, 0.5])


def at(*records):
    """Traces of (user, latitude, longitude), one record a minute."""
    times = pd.date_range("2020-03-01", periods=len(records), freq="min", tz="UTC")
    return as_traces(pd.DataFrame(records, columns=["user", "lat", "lng"]).assign(t=times))


TRACES = at(("a", 45.0, 7.0), ("a", 45.01, 7.0), ("b", 45.0, 7.01))
WORLD = at(("a", 45.0, -170.0), ("a", 45.0, 170.0), ("a", 45.0, 0.0))

test_a_setting_is_refused_before_the_data_is_read = refusals(
    ({"width_km": 0}, r"width_km must be positive, in km \(got 0\)"),
    ({"height_km": np.inf}, r"height_km must be positive, in km \(got inf\)"),
    ({"columns": 0}, r"columns must be a whole number, at least 1 \(got 0\)"),
    ({"rows": -1}, r"rows must be a whole number, at least 1 \(got -1\)"),
    ({"users": 0}, r"users must be a whole number, at least 1 \(got 0\)"),
    ({"columns": 100_000}, r"1,500,000 cells.* takes about .* GB and .* hours, more than the 8 GB .* choose fewer columns"),
    ({"columns": 700, "rows": 15}, r"10,500 cells, .* takes about 10\.6 GB"),
    call=lambda given: joint.prepare("no such data set", **given),
)


def test_of_a_part_of_the_users_those_there_are_taken(tmp_path):
    """A quick run on few users, or on users far from one another, works; a whole run is refused in a line."""
    file = tmp_path / "far.csv"
    records = [f"{user},{1_600_000_000 + 600 * k},{lat},4.8{k}" for user, lat in (("a", 45.0), ("b", 47.0)) for k in range(8)]
    file.write_text("\n".join(["user,t,lat,lng", *records]))
    assert len(joint.prepare(str(file), users=3, max_users=20).users) == 1
    wide = {"height_km": 300.0, "columns": 4, "rows": 4}
    assert joint.prepare(str(file), users=3, max_users=20, **wide).users == ["a", "b"]
    refuses(r"users must be at most 2, the number of users of the data set \(got 3\)", joint.prepare, str(file), users=3)


test_a_setting_that_the_data_cannot_give_is_refused = refusals(
    ({"users": 1000}, r"users must be at most \d+, .* of the data set whose name begins with 'p' \(got 1000\)"),
    ({"begins": "nobody"}, r"no user's name begins with begins = 'nobody', of \d+ users: leave it empty"),
    ({"leave_out": "nobody"}, r"leave_out names users that the data set does not have: nobody"),
    ({"width_km": 50_000.0}, r"the area is wider than its parallel"),
    ({"height_km": 50_000.0}, r"the area reaches beyond the pole"),
    ({"width_km": 0.01, "height_km": 0.01, "users": 60}, r"60 users are requested, the area has records of \d+"),
    call=lambda given: joint.prepare(**given),
)


def test_more_days_than_a_century_are_refused_before_the_data_is_read():
    with pytest.raises(ValueError, match=r"^days must be at most 36,525, a century \(got 1,000,000,000,000\)$"):
        joint.prepare_halves("no such data set", days=10**12)


def test_a_user_of_one_cell_is_refused_where_costs_are_set_in_proportion(tmp_path):
    table = pd.DataFrame({"user": ["a", "a", "b", "b"], "lat": [45.0, 45.0, 45.0, 45.02], "lng": 7.0})
    table.assign(t="2020-03-01T00:00:00Z").to_csv(tmp_path / "four.csv", index=False)
    setting = joint.prepare(str(tmp_path / "four.csv"), columns=8, rows=6, users=2, begins="")
    refuses(r"^all records of user [12] of the 2 most active lie in one of the 8 × 6 cells", joint.check_costs, setting)
    joint.check_costs(joint.prepare(columns=8, rows=6))


def scenarios(prior=PRIOR, distances=LINE, epsilons=(0.5e-3,), shares=(0.5,), step=500.0):
    return [
        lambda: joint.scenario_1(Area(prior, distances), epsilons),
        lambda: joint.scenario_2(Area(prior, distances), epsilons, shares),
        lambda: joint.scenario_3(Area(prior, distances), epsilons, step),
        lambda: joint.prior_knowledge(Area(prior, distances), epsilons, [0.5]),
    ]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"epsilons": []}, r"epsilons must hold at least one privacy level, in 1/m \(got none\)"),
        ({"epsilons": [0.0]}, r"epsilons must be positive and finite, in 1/m \(got 0 at place 0\)"),
        ({"epsilons": [1e-3, -1e-3]}, r"epsilons must be positive .* \(got -0\.001 at place 1\)"),
        ({"epsilons": [np.inf]}, r"epsilons must be positive .* \(got inf at place 0\)"),
        ({"epsilons": 1e-3}, r"epsilons must be a list of numbers \(got 0\.001\)"),
        ({"epsilons": ["high"]}, r"epsilons must be a list of numbers \(got \['high'\]\)"),
        ({"prior": WITHOUT_NUMBER}, r"probabilities of the prior must be finite \(got nan .*of secret 1\)"),
        ({"prior": PRIOR[:2] / 0.7}, r"must have 2 rows|a row and a column a secret, 2"),
        ({"distances": LINE * np.nan}, r"must be finite \(got nan at \[0, 0\]\)"),
    ],
)
def test_every_scenario_refuses(given, message):
    for scenario in scenarios(**given):
        refuses(message, scenario)


def informed(*options):
    return lambda: joint.prior_knowledge(Area(PRIOR, LINE), [1e-3], *options)


def for_each_user(priors, **options):
    return lambda: joint.for_each_user(joint.scenario_1, priors, LINE, [1e-3], **options)


test_a_mistake_is_one_line = refusals(
    (lambda: scenarios(shares=[])[1](), r"shares must hold at least one number, above 0 .* \(got none\)"),
    (lambda: scenarios(shares=[0.5, 0])[1](), r"shares must be above 0 and at most 1 \(got 0 at place 1\)"),
    (lambda: scenarios(shares=[1.5])[1](), r"shares must be above 0 and at most 1 \(got 1\.5 at place 0\)"),
    (lambda: scenarios(step=0)[2](), r"step must be positive, in m \(got 0\)"),
    # d_max = 0.2 · 1000 + 0.3 · 2500 = 950 m at the first cell, 0.5 · 1000 + 0.3 · 1500 = 950 m at the second
    (lambda: scenarios(step=0.5)[2](), r"0\.5 m makes 1,900 values of d_m up to .* 950 m.* at least 0\.95 m"),
    (informed([2]), r"weights must be in \[0, 1\] \(got 2 at place 0\)"),
    (informed([], [0.0]), r"powers must be positive and finite \(got 0"),
    (informed([]), r"weights and powers are both empty"),
    (informed([0.5], (), 4), r"places must lie between 1 and the number of cells, 3, and be whole \(got 4\)"),
    (lambda: better_informed(PRIOR, 0.5, 1.5), r"places must lie between 1 .* and be whole \(got 1\.5\)"),
    (for_each_user([PRIOR], workers=0), r"workers must be a whole number, at l"),
    (for_each_user([PRIOR, WITHOUT_NUMBER]), r"finite \(got nan in row 1, of sec"),
    (for_each_user([]), r"a prior is one probability a secret"),
    (lambda: AreaGrid(np.nan, 7.0), r"south must lie in \[-90, 90\]"),
    (lambda: densest_area(TRACES, 0.0), r"width must be positive, in m \(got 0\.0\)"),
    (lambda: densest_area(TRACES, rows=10**7), r"rows must be fewer: 10,000,000 rows make \d+,000,000 candidates"),
    (lambda: densest_area(WORLD, columns=10**5), r"columns must be fewer: 100,000 columns make \d+,\d+,\d+ "),
    (lambda: priors(TRACES, AreaGrid(44.99, 6.9, columns=10**6, rows=10**4)), r"of 2 × 10,000,000,000 numbers, "),
    (
        lambda: euclidean(np.zeros((50_000, 2))),
        r"distances would be a matrix of 50,000 × 50,000 .*, 20 GB",
    ),
    (lambda: hamming(10**6), r"matrix of 1,000,000 × 1,000,000 numbers, 8e\+03 GB.* fewer cells"),
    (lambda: planar_laplace(np.arange(1e5), [0.0, 1.0], 1.0), r"channel would be a matrix of 99,999 × 99,999"),
)


@pytest.mark.parametrize(
    "call",
    [
        lambda pi, d: optimal.differential(pi, d, d, 1.0),
        lambda pi, d: optimal.distortion(pi, d, d, 0.1),
        lambda pi, d: optimal.within(pi, d, d, 1.0, 1.0),
        lambda pi, d: optimal.joint(pi, d, d, 0.1, d, 1.0),
        lambda pi, d: nearby.joint(pi, d, d, 0.1, d, 1.0, d, 1.0),
    ],
)
def test_an_optimum_that_would_not_end_is_refused_before_its_matrices_are_looked_at(call, monkeypatch):
    """Eleven cells where ten are allowed: the distances break the triangle inequality, which is what would be seen next."""
    bent = np.full((11, 11), 1.0) + 9 * np.eye(11, k=1) + 9 * np.eye(11, k=-1) - np.eye(11)
    monkeypatch.setattr(checks, "MEMORY", 8 * checks.MATRICES * 10**2 + 8 * 10**3)
    refuses("for 11 cells, at least 10 of them visited, takes about", call, np.append(np.full(10, 0.1), 0.0), bent)
    monkeypatch.setattr(checks, "MEMORY", 8 * checks.MATRICES * 11**2 + 8 * 10**3)
    monkeypatch.setattr(checks, "HOURS", 0.0)
    refuses("for 11 cells", call, np.append(np.full(10, 0.1), 0.0), bent)


def test_what_is_allowed():
    """The paper's 300 cells, all of them visited, and 2,700 cells of which 300 are; d_m up to what there is."""
    checks.affordable(300, 300)
    checks.affordable(2700, 300)
    refuses(r"2,700 cells, at least 2,000 of them visited, takes about 64\.7 GB and 5\.8 hours", checks.affordable, 2700, 2000)
    table = joint.scenario_3(Area(PRIOR, LINE), [1e-3], inference.prior_error(PRIOR, LINE))
    assert len(table) == 3
