"""The setting of "Privacy games", its scenarios, and their numbers by full programs solved by HiGHS, plain NumPy, by hand."""

import itertools

import naive_channels as naive
import numpy as np
import pytest
from conftest import refuses
from pulp_making import StepStore
from scipy.optimize import linprog

from mobpriv.attacks.policies import reidentified
from mobpriv.base.numbers import shown
from mobpriv.book import notebooks, runs
from mobpriv.book.results import ROOT
from mobpriv.channels import games, inference, nearby, optimal
from mobpriv.channels.area import Area
from mobpriv.channels.distances import euclidean, hamming
from mobpriv.channels.inference import prior_error
from mobpriv.channels.rivals import planar_laplace
from mobpriv.datasets import load
from mobpriv.experiments import joint, thesis_3

# two towns of two cells each, 1 km between neighbours, 3 km between the towns; nobody is ever in the cell between them
LINE = euclidean(np.column_stack([[0.0, 1000.0, 2500.0, 4000.0, 5000.0], np.zeros(5)]))
PRIOR = np.array([0.4, 0.1, 0.0, 0.2, 0.3])


def test_the_city_takes_persons():
    setting = joint.prepare(users=3)
    assert len(setting.users) == 3
    assert all(name.startswith("p") for name in setting.users)
    assert setting.priors.shares.index.tolist() == setting.users
    assert setting.priors.shares.shape == (3, 300)
    assert (setting.grid.width, setting.grid.height) == (15_000, 8_000)
    assert setting.priors.shares.sum(axis=1).tolist() == pytest.approx([1, 1, 1])
    first = setting.users[0]
    assert f"{shown(setting.priors.records['inside'].sum())} records inside" in setting.selection
    without = joint.prepare(users=2.0, leave_out=first)  # as a parameter file may say
    assert without.users == setting.users[1:]  # the area stays: one user's records do not move it here
    assert all(name.startswith("c") for name in joint.prepare(users=2, begins="c").users)


def test_everybody_where_a_data_set_does_not_say_who_the_persons_are(tmp_path):
    traces = load("city").traces
    some = traces[traces["user"].isin(["c001", "c002", "p001"]).to_numpy()]
    some.to_parquet(tmp_path / "own.parquet")
    assert set(joint.prepare(str(tmp_path / "own.parquet"), users=3).users) == set(some["user"].astype(str))


def test_both_halves_of_the_area():
    result = joint.prepare_halves(columns=8, rows=6, users=12)
    full = thesis_3.prepare()
    for half, all_traces in ((result.known, full.known), (result.secret, full.secret)):
        there = result.grid.cells(all_traces["lat"].to_numpy(), all_traces["lng"].to_numpy()) >= 0
        expected = all_traces[there & all_traces["user"].isin(result.users).to_numpy()]
        assert half[["t", "lat", "lng"]].to_numpy().tolist() == expected[["t", "lat", "lng"]].to_numpy().tolist()
    counts = result.known["user"].value_counts()
    assert result.users == sorted(result.users, key=lambda user: (-counts[user], user))
    assert all(user.startswith("p") for user in result.users)
    assert sorted(result.attacked) == sorted(set(result.secret["user"]))
    assert f"{shown(len(result.known))} training and {shown(len(result.secret))} test records inside" in result.selection
    attack = thesis_3.attacks()[0].fit(result.known)
    assert len(reidentified(attack.rank(result.secret), result.attacked)) == len(result.attacked)


def test_halves_take_no_more_users_than_there_are():
    cabs = joint.prepare_halves(columns=2, rows=2, users=100_000, begins="c")
    assert set(cabs.users) == set(cabs.known["user"])
    refuses("records of 0 whose name begins with 'x'", joint.prepare_halves, columns=2, rows=2, begins="x")
    refuses(r"columns must be a whole number, at least 1 \(got 0\)", joint.prepare_halves, "no such data set", columns=0)


def test_kilometres_for_the_reader():
    """Rows in metres and 1/m become a table in km and 1/km; what is no length and no ε stays."""
    rows = joint.scenario_1(Area(PRIOR, LINE), [0.3e-3])
    table = joint.readable(rows)
    assert table["epsilon"].tolist() == [0.3] * 3
    for name in ("privacy", "d_m", "bayes"):
        assert (1000 * table[name]).tolist() == pytest.approx([row[name] for row in rows], rel=1e-12)
    for name in ("middle", "privacy_bound"):
        assert 1000 * table[name].iloc[0] == pytest.approx(rows[0][name], rel=1e-12)
    assert table["cost"].tolist() == [row["cost"] for row in rows]
    assert rows == joint.scenario_1(Area(PRIOR, LINE), [0.3e-3])  # nothing was changed in place
    assert [joint.per_km(e) for e in (0.00015, 0.0006, 0.001, 0.0003)] == ["0.15", "0.6", "1", "0.3"]


def test_where_everybody_is():
    setting = joint.prepare(columns=4, rows=3, users=1)
    cells = setting.grid.cells(setting.traces["lat"].to_numpy(), setting.traces["lng"].to_numpy())
    assert joint.records_per_cell(setting).tolist() == [(cells == cell).sum() for cell in range(12)]


def test_what_a_channel_is_worth():
    """The truth in half the cases and the first cell else, by hand; 1 km between both."""
    d = euclidean(np.array([[0.0, 0.0], [1000.0, 0.0]]))
    result = joint.cost_and_privacy(Area([0.4, 0.6], d), np.array([[0.8, 0.2], [0.5, 0.5]]))
    assert result["cost"] == pytest.approx(0.4 * 0.2 + 0.6 * 0.5)
    assert result["AP"] == pytest.approx(min(0.32, 0.3) + min(0.08, 0.3))  # km, the likelier of the two cells for each answer
    assert result["epsilon"] == pytest.approx(np.log(0.5 / 0.2) / 1000)


def test_noise_on_the_cells_of_an_area():
    grid = joint.prepare(columns=3, rows=2, users=1).grid
    edges = [1000 * np.array([0.0, 5.0, 10.0, 15.0]), 1000 * np.array([0.0, 4.0, 8.0])]
    assert joint.laplace_channel(grid, 0.0006) == pytest.approx(planar_laplace(*edges, 0.0006), rel=1e-12)


def rows_of(table, mechanism):
    return [row for row in table if row["mechanism"] == mechanism]


def test_scenario_1_takes_d_m_from_the_differential_channel():
    table = joint.scenario_1(Area(PRIOR, LINE), [0.2e-3, 0.8e-3])
    differential, distortion, both = (rows_of(table, name) for name in ("differential", "distortion", "joint"))
    assert [row["epsilon"] for row in differential] == [0.2e-3, 0.8e-3]
    assert all(row["exact"] for row in table)
    for p_e, p_d, p_ed in zip(differential, distortion, both, strict=True):
        assert p_d["privacy"] == pytest.approx(p_e["privacy"], rel=1e-8)
        assert p_ed["cost"] == pytest.approx(p_e["cost"], rel=2e-8)  # p_e itself keeps (24)
        assert p_d["cost"] <= p_e["cost"] * (1 + 1e-8)  # (21) has fewer constraints than (24)
        assert p_e["middle"] <= p_e["privacy"] * (1 + 1e-7)  # the rule: largest AP
        assert p_e["privacy"] * (1 - 1e-9) <= p_e["privacy_bound"] <= p_e["privacy"] * 1.001
        assert p_e["effective_epsilon"] <= p_e["epsilon"] * (1 + 1e-6)
        for row in (p_e, p_d, p_ed):  # the optimal attack is the best; Bayes at most twice as bad in a metric
            assert row["privacy"] <= row["bayes"] * (1 + 1e-9) <= 2 * row["privacy"] * (1 + 1e-8)
    assert differential[1]["privacy"] < differential[0]["privacy"]


def test_scenario_2_more_privacy_costs_more_and_the_price_is_convex():
    table = joint.scenario_2(Area(PRIOR, LINE), [0.8e-3], [0.25, 0.5, 0.75])
    (p_e,), both = rows_of(table, "differential"), rows_of(table, "joint")
    assert [row["privacy"] for row in both] == pytest.approx([row["d_m"] for row in both], rel=1e-7)  # (24c) binds
    d_max = prior_error(PRIOR, LINE)
    assert both[1]["d_m"] == pytest.approx((p_e["privacy"] + d_max) / 2)
    prices = np.diff([p_e["cost"], *(row["cost"] for row in both)])
    assert (prices > 0).all()
    assert (np.diff(prices) > -1e-8).all()
    (row,) = joint.scenario_2(Area(PRIOR, LINE), [1e-9], [0.5])  # the best channel tells nothing: its AP cannot be raised
    assert row["privacy"] == pytest.approx(d_max, rel=1e-6)


def test_scenario_3_is_the_maximum_where_d_m_does_not_bind():
    table = joint.scenario_3(Area(PRIOR, LINE), [0.2e-3, 0.8e-3], 500.0)
    distortion = {row["d_m"]: row for row in rows_of(table, "distortion")}
    assert list(distortion) == [500.0, 1000.0, 1500.0, 2000.0]  # d_max is 2.2 km, at the second cell
    assert prior_error(PRIOR, LINE) == pytest.approx(1000 * (0.4 + 0.2 * 3 + 0.3 * 4))
    differential = {row["epsilon"]: row for row in rows_of(table, "differential")}
    seen = set()
    for row in rows_of(table, "joint"):
        p_e, p_d = differential[row["epsilon"]], distortion[row["d_m"]]
        assert row["privacy"] == pytest.approx(max(p_e["privacy"], p_d["privacy"]), rel=1e-7)
        assert row["cost"] >= max(p_e["cost"], p_d["cost"]) * (1 - 1e-8)
        assert row["reused"] == (row["d_m"] <= p_e["privacy"]) == (row["cost"] == p_e["cost"])
        seen.add(row["reused"])
    assert seen == {True, False}


def test_an_adversary_who_knows_the_prior_alone_finds_what_was_promised():
    table = joint.prior_knowledge(Area(PRIOR, LINE), [0.8e-3], [0.0, 0.5], [2.0])
    # four channels, π itself, half of it moved to the two likeliest cells or to one, and its square
    assert len(table) == 4 * 4
    for row in table:
        assert row["under_prior"] >= row["promised"] * (1 - 1e-9)  # the best attack on π is the one for π
        if (row["kind"], row["level"]) == ("weight", 0.0):
            assert row["privacy"] == row["under_prior"] == pytest.approx(row["promised"], rel=1e-8)
    bits = [row["bits"] for row in table if row["mechanism"] == "differential" and row["kind"] != "place"]
    # π: four cells; half of it moved to the two likeliest, 0.4 and 0.3; squares 0.16 : 0.01 : 0.04 : 0.09
    shares = [0.4, 0.1, 0.2, 0.3], [0.2 + 2 / 7, 0.05, 0.1, 0.15 + 1.5 / 7], np.array([16, 1, 4, 9]) / 30
    assert bits == pytest.approx([-sum(p * np.log2(p) for p in prior) for prior in shares])


def test_all_users_give_the_same_in_one_process_and_in_two_and_are_kept():
    users, kept = [PRIOR, PRIOR[::-1]], StepStore()
    alone = joint.for_each_user(joint.scenario_2, users, LINE, [0.8e-3], [0.5], workers=1)
    both = joint.for_each_user(joint.scenario_2, users, LINE, [0.8e-3], [0.5], keep=kept, workers=2)
    assert alone == both
    assert [row["user"] for row in alone] == [1, 1, 1, 2, 2, 2]
    assert set(kept) == {"scenario_2-1", "scenario_2-2"}
    kept["scenario_2-2"] = []
    assert {row["user"] for row in joint.for_each_user(joint.scenario_2, users, LINE, [0.8e-3], [0.5], keep=kept)} == {1}


# --------------------------------------------------------------------------------------------------------- the time it takes
def test_cells_are_made_larger_until_the_channels_are_in_time():
    asked = joint.prepare(minutes=1.0, programs=0.0)
    assert "instead of" not in asked.selection
    needed = joint.estimated(asked.priors, asked.grid.size, 100.0)
    fitting = joint.prepare(minutes=needed * 1.001, programs=100.0)
    assert fitting.selection == asked.selection
    larger = joint.prepare(minutes=needed * 0.999, programs=100.0)  # just below what it takes
    assert larger.grid.size < asked.grid.size
    assert joint.estimated(larger.priors, larger.grid.size, 100.0) <= needed * 0.999
    assert f"{larger.grid.columns} × {larger.grid.rows} cells instead of 20 × 15" in larger.selection
    assert f"would take about {needed:.0f} min. The parameter minutes = {needed * 0.999:g}" in larger.selection
    # the same area as who asks for these cells
    assert larger.grid == joint.prepare(columns=larger.grid.columns, rows=larger.grid.rows).grid
    assert joint.prepare(minutes=0.0, programs=1e9).selection == asked.selection


def test_no_budget_is_too_small_for_one_cell():
    assert joint.prepare(minutes=1e-12, programs=1.0).grid.size == 1
    assert joint.prepare_halves(minutes=1e-12, programs=1.0).grid.size == 1


def test_the_books_own_runs_keep_the_cells_of_the_paper():
    """The city never comes near the default budget; the runs on real data are registered without one."""
    for path in sorted((ROOT / "notebooks").glob("joint_*.ipynb")):
        known = notebooks.parameters(path)
        if "minutes" in known:
            assert known["minutes"].default == 5.0
    assert 2 * joint.estimated(joint.prepare().priors, 300, 10.0) < 5.0  # ten programs are the most that a notebook names
    registry = runs.read(ROOT)
    real = [run for run in registry.runs.values() if any(name.startswith("joint_") for name in run.notebooks)]
    assert real
    assert all(run.parameters["minutes"] == 0 for run in real)


D = euclidean(np.array([[0.0, 0.0], [1000.0, 0.0], [2500.0, 300.0], [4000.0, 0.0], [2000.0, 1500.0]]))  # m
PI = np.array([0.35, 0.1, 0.15, 0.25, 0.15])
COST = hamming(5)
EPSILON = 0.6e-3  # 1/m
D_MAX = min(PI @ D)


def ap(prior, channel):
    return sum((prior * column) @ D[:, ((prior * column) @ D).argmin()] for column in channel.T)


def program(prior, d_m, epsilon=None):
    """(21), or (24) with an epsilon, row by row: variables p(o|s) by s then o, then x(o). HiGHS's answer, (24c) in the last row."""
    n = len(prior)
    rows, right = [], []
    for s, t, o in itertools.product(range(n), range(n), range(n)) if epsilon else ():
        if s != t:
            row = np.zeros(n * n + n)
            row[s * n + o], row[t * n + o] = 1.0, -np.exp(epsilon * D[s, t])
            rows.append(row), right.append(0.0)
    for o, h in itertools.product(range(n), range(n)):
        row = np.zeros(n * n + n)
        row[n * n + o] = 1.0
        row[[s * n + o for s in range(n)]] = -prior * D[:, h] / 1000
        rows.append(row), right.append(0.0)
    rows.append(np.r_[np.zeros(n * n), -np.ones(n)])
    right.append(-d_m / 1000)
    sums = np.kron(np.eye(n), np.r_[np.ones(n)])
    cost, bounds = np.r_[(prior[:, None] * COST).ravel(), np.zeros(n)], [(0, 1)] * (n * n) + [(None, None)] * n
    result = linprog(cost, rows, right, np.hstack([sums, np.zeros((n, n))]), np.ones(n), bounds=bounds)
    assert result.status == 0
    return result


def test_what_the_joint_channel_costs_more_is_more_than_the_programs_say_of_either():
    alone, lone, both = joint.scenario_2(Area(PI, D), [EPSILON], [0.5])
    assert both["cost"] == pytest.approx(program(PI, both["d_m"], EPSILON).fun, rel=1e-7)
    assert lone["cost"] == pytest.approx(program(PI, both["d_m"]).fun, rel=1e-7)
    assert alone["cost"] == pytest.approx(program(PI, 0.0, EPSILON).fun, rel=1e-7)
    assert both["bound"] <= program(PI, both["d_m"], EPSILON).fun * (1 + 1e-9)
    assert both["bound"] > max(alone["cost"], lone["cost"])
    pairs = naive.differential_pairs(D, EPSILON)
    largest = naive.largest_distortion(PI, COST, pairs, D / 1000, alone["cost"] * (1 + 1e-10))
    assert alone["privacy"] == pytest.approx(1000 * largest, rel=1e-5)


def test_the_curve_of_costs_against_the_programs_and_its_slope_against_their_multiplier():
    shares = [0.2, 0.4, 0.6, 0.8, 0.9]
    rows = joint.frontier(Area(PI, D), [EPSILON], shares)
    distortion = [row for row in rows if row["mechanism"] == "distortion"]
    both = [row for row in rows if row["mechanism"] == "joint"]
    (flat,) = (row for row in rows if row["mechanism"] == "differential")
    assert [row["d_m"] for row in distortion] == pytest.approx([share * D_MAX for share in shares])
    for row, epsilon in [(row, None) for row in distortion] + [(row, EPSILON) for row in both]:
        assert row["cost"] == pytest.approx(program(PI, row["d_m"], epsilon).fun, rel=1e-6)
    assert {row["cost"] for row in both if row["d_m"] <= flat["d_m"]} <= {flat["cost"]}
    assert sum(row["d_m"] <= flat["d_m"] for row in both) in range(1, len(shares))
    for before, after in itertools.pairwise(both):
        slope = 1000 * (after["cost"] - before["cost"]) / (after["d_m"] - before["d_m"])
        nu = [-program(PI, row["d_m"], EPSILON).ineqlin.marginals[-1] for row in (before, after)]
        assert nu[0] - 1e-6 <= slope <= nu[1] + 1e-6


def test_what_scenario_1_says_of_silence_and_of_each_guarantee():
    differential, distortion, _ = joint.scenario_1(Area(PI, D), [EPSILON])
    assert differential["silence"] == pytest.approx(0.1 + 0.15 + 0.25 + 0.15)
    assert differential["cost"] <= differential["silence"]
    weighted = [[sum(PI[s] * np.exp(-EPSILON * D[a, s]) * D[s, h] for s in range(5)) for h in range(5)] for a in range(5)]
    assert differential["floor"] == pytest.approx(max(min(row) for row in weighted))
    assert 0 < differential["floor"] <= differential["privacy"]
    assert distortion["kept"] == np.inf
    channel = optimal.differential(PI, COST, D, EPSILON, error=D).channel
    assert differential["named"] == pytest.approx(sum(PI[s] * channel[s, 0] for s in range(5)), abs=1e-6)


def test_the_floor_is_reached():
    """Two cells and the channel that names either with odds e^(ε d) : 1: on seeing the likelier one the adversary is as sure as can be."""
    prior, d = np.array([0.9, 0.1]), np.array([[0.0, 1.0], [1.0, 0.0]])
    assert max(min(0.9, 0.1 * np.exp(-1)), min(0.9 * np.exp(-1), 0.1)) == 0.1
    assert joint.floor(Area(prior, d), 1.0) == pytest.approx(0.1) == inference.prior_error(prior, d)


@pytest.mark.parametrize("share", [0.3, 0.6, 0.85])
def test_the_mixed_attack_holds_the_user_and_errs_as_little_as_any(share):
    d_m = share * D_MAX
    game = games.equilibrium(PI, COST, D, d_m)
    assert game.cost == pytest.approx(program(PI, d_m).fun, abs=1e-9)
    assert game.price * 1000 == pytest.approx(-program(PI, d_m).ineqlin.marginals[-1], rel=1e-6)
    assert game.attack.sum(axis=1) == pytest.approx(np.ones(5))
    error = np.einsum("s,so,oh,hs", PI, game.channel, game.attack, D)
    assert error == pytest.approx(ap(PI, game.channel)) == pytest.approx(d_m)
    # the cheapest reply by its dual, a concave function of one multiplier, on a fine raster
    gained = PI[:, None] * (D @ game.attack.T)
    multipliers = game.price * np.linspace(0, 2, 2001)
    best = max(nu * d_m + (PI[:, None] * COST - nu * gained).min(axis=1).sum() for nu in multipliers)
    assert games.cheapest_reply(PI, COST, D, game.attack, d_m) == pytest.approx(best) == pytest.approx(game.cost)
    pairs = {(s, t): 99.0 for s, t in itertools.permutations(range(5), 2)}  # (21) binds none
    assert games.most_private(PI, COST, D, game.cost) == pytest.approx(d_m)
    assert 1000 * naive.largest_distortion(PI, COST, pairs, D / 1000, game.cost) == pytest.approx(d_m, rel=1e-6)


def test_games_refuse():
    refuses(r"d_m = 0 costs nothing", games.equilibrium, PI, COST, D, 0.0)
    refuses(r"\(21\) has no optimum", games.equilibrium, PI, COST, D, 1.01 * D_MAX)
    assert games.cheapest_reply(PI, COST, D, np.eye(5), 9 * D_MAX) == np.inf


def test_as_the_paper_did_below_ap_the_optimum_is_another():
    """(24) has the cost of (22) up to its AP, and without the rule a smaller AP than the largest."""
    rows = joint.scenario_3(Area(PI, D), [EPSILON], 300.0)
    (alone,) = (row for row in rows if row["mechanism"] == "differential")
    below = [row for row in rows if row["mechanism"] == "joint" and row["reused"]]
    assert below
    for row in below:
        assert row["cost"] == pytest.approx(program(PI, row["d_m"], EPSILON).fun, rel=1e-6)
        assert row["d_m"] * (1 - 1e-9) <= row["as_written"] <= alone["privacy"] * (1 + 1e-6)


def test_both_sides_of_the_approximation_take_the_largest_ap():
    full = joint.of_largest_ap(Area(PI, D, COST), 0.3 * D_MAX, EPSILON).certificate
    result = nearby.joint(PI, COST, D, 0.3 * D_MAX, D, EPSILON, D, 9000.0).certificate
    assert result.distortion == pytest.approx(full.distortion, rel=1e-6)
    binding = joint.of_largest_ap(Area(PI, D, COST), 0.95 * D_MAX, EPSILON).certificate
    assert binding.distortion == pytest.approx(0.95 * D_MAX, rel=1e-7)
    assert binding.cost == pytest.approx(program(PI, 0.95 * D_MAX, EPSILON).fun, rel=1e-6)
