"""The joint chapter's numbers by another way than the package's own: full programs written out and solved by HiGHS, plain NumPy, by hand."""

import itertools

import naive_channels as naive
import numpy as np
import pytest
from scipy.optimize import linprog

from mobpriv.channels import games, inference, nearby, optimal
from mobpriv.channels.area import Area
from mobpriv.channels.distances import euclidean, hamming
from mobpriv.channels.priors import better_informed, entropy
from mobpriv.experiments import joint

D = euclidean(np.array([[0.0, 0.0], [1000.0, 0.0], [2500.0, 300.0], [4000.0, 0.0], [2000.0, 1500.0]]))  # m
PRIOR = np.array([0.35, 0.1, 0.15, 0.25, 0.15])
COST = hamming(5)
EPSILON = 0.6e-3  # 1/m
D_MAX = min(PRIOR @ D)


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
    found = linprog(cost, rows, right, np.hstack([sums, np.zeros((n, n))]), np.ones(n), bounds=bounds)
    assert found.status == 0
    return found


def test_the_adversary_of_e_j9_by_hand():
    """Three cells in a line; the two likeliest are the ends, and w = 1."""
    line, before = np.abs(np.subtract.outer(np.arange(3.0), np.arange(3.0))), np.array([0.40, 0.25, 0.35])
    after = better_informed(before, 1.0, 2)
    assert after == pytest.approx([8 / 15, 0, 7 / 15])
    assert inference.prior_error(before, line) == pytest.approx(0.40 + 0.35)  # the middle cell
    assert inference.prior_error(after, line) == pytest.approx(2 * 7 / 15)  # the left one; the middle errs by 1
    assert entropy(after) < entropy(before)


def test_what_the_joint_channel_costs_more_is_more_than_the_programs_say_of_either():
    alone, lone, both = joint.scenario_2(Area(PRIOR, D), [EPSILON], [0.5])
    assert both["cost"] == pytest.approx(program(PRIOR, both["d_m"], EPSILON).fun, rel=1e-7)
    assert lone["cost"] == pytest.approx(program(PRIOR, both["d_m"]).fun, rel=1e-7)
    assert alone["cost"] == pytest.approx(program(PRIOR, 0.0, EPSILON).fun, rel=1e-7)
    assert both["bound"] <= program(PRIOR, both["d_m"], EPSILON).fun * (1 + 1e-9)
    assert both["bound"] > max(alone["cost"], lone["cost"])
    pairs = naive.differential_pairs(D, EPSILON)
    largest = naive.largest_distortion(PRIOR, COST, pairs, D / 1000, alone["cost"] * (1 + 1e-10))
    assert alone["privacy"] == pytest.approx(1000 * largest, rel=1e-5)


def test_the_curve_of_costs_against_the_programs_and_its_slope_against_their_multiplier():
    shares = [0.2, 0.4, 0.6, 0.8, 0.9]
    rows = joint.frontier(Area(PRIOR, D), [EPSILON], shares)
    own = [row for row in rows if row["mechanism"] == "distortion"]
    both = [row for row in rows if row["mechanism"] == "joint"]
    (flat,) = (row for row in rows if row["mechanism"] == "differential")
    assert [row["d_m"] for row in own] == pytest.approx([share * D_MAX for share in shares])
    for row, epsilon in [(row, None) for row in own] + [(row, EPSILON) for row in both]:
        assert row["cost"] == pytest.approx(program(PRIOR, row["d_m"], epsilon).fun, rel=1e-6)
    assert {row["cost"] for row in both if row["d_m"] <= flat["d_m"]} <= {flat["cost"]}
    assert sum(row["d_m"] <= flat["d_m"] for row in both) in range(1, len(shares))
    for before, after in itertools.pairwise(both):
        slope = 1000 * (after["cost"] - before["cost"]) / (after["d_m"] - before["d_m"])
        nu = [-program(PRIOR, row["d_m"], EPSILON).ineqlin.marginals[-1] for row in (before, after)]
        assert nu[0] - 1e-6 <= slope <= nu[1] + 1e-6


def test_what_scenario_1_says_of_silence_and_of_each_guarantee():
    differential, distortion, _ = joint.scenario_1(Area(PRIOR, D), [EPSILON])
    assert differential["silence"] == pytest.approx(0.1 + 0.15 + 0.25 + 0.15)
    assert differential["cost"] <= differential["silence"]
    weighted = [[sum(PRIOR[s] * np.exp(-EPSILON * D[a, s]) * D[s, h] for s in range(5)) for h in range(5)] for a in range(5)]
    assert differential["floor"] == pytest.approx(max(min(row) for row in weighted))
    assert 0 < differential["floor"] <= differential["privacy"]
    assert distortion["kept"] == np.inf
    channel = optimal.differential(PRIOR, COST, D, EPSILON, error=D).channel
    assert differential["named"] == pytest.approx(sum(PRIOR[s] * channel[s, 0] for s in range(5)), abs=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_no_private_channel_of_any_cost_falls_below_the_floor(seed):
    rng = np.random.default_rng(seed)
    prior = rng.dirichlet(np.ones(5))
    channel = optimal.differential(prior, rng.random((5, 5)), D, EPSILON).channel
    assert ap(prior, channel) >= joint.floor(Area(prior, D), EPSILON) * (1 - 1e-9)


def test_the_floor_is_reached():
    """Two cells and the channel that names either with odds e^(ε d) : 1: on seeing the likelier one the adversary is as sure as can be."""
    prior, d = np.array([0.9, 0.1]), np.array([[0.0, 1.0], [1.0, 0.0]])
    assert max(min(0.9, 0.1 * np.exp(-1)), min(0.9 * np.exp(-1), 0.1)) == 0.1
    assert joint.floor(Area(prior, d), 1.0) == pytest.approx(0.1) == inference.prior_error(prior, d)


@pytest.mark.parametrize("share", [0.3, 0.6, 0.85])
def test_the_mixed_attack_holds_the_user_and_errs_as_little_as_any(share):
    d_m = share * D_MAX
    game = games.equilibrium(PRIOR, COST, D, d_m)
    assert game.cost == pytest.approx(program(PRIOR, d_m).fun, abs=1e-9)
    assert game.price * 1000 == pytest.approx(-program(PRIOR, d_m).ineqlin.marginals[-1], rel=1e-6)
    assert game.attack.sum(axis=1) == pytest.approx(np.ones(5))
    error = np.einsum("s,so,oh,hs", PRIOR, game.channel, game.attack, D)
    assert error == pytest.approx(ap(PRIOR, game.channel)) == pytest.approx(d_m)
    # the cheapest reply by its dual, a concave function of one multiplier, on a fine raster
    gained = PRIOR[:, None] * (D @ game.attack.T)
    multipliers = game.price * np.linspace(0, 2, 2001)
    best = max(nu * d_m + (PRIOR[:, None] * COST - nu * gained).min(axis=1).sum() for nu in multipliers)
    assert games.cheapest_reply(PRIOR, COST, D, game.attack, d_m) == pytest.approx(best) == pytest.approx(game.cost)
    pairs = {(s, t): 99.0 for s, t in itertools.permutations(range(5), 2)}  # (21) binds none
    assert games.most_private(PRIOR, COST, D, game.cost) == pytest.approx(d_m)
    assert 1000 * naive.largest_distortion(PRIOR, COST, pairs, D / 1000, game.cost) == pytest.approx(d_m, rel=1e-6)


def test_games_refuse():
    with pytest.raises(ValueError, match=r"d_m = 0 costs nothing"):
        games.equilibrium(PRIOR, COST, D, 0.0)
    with pytest.raises(ValueError, match=r"\(21\) has no optimum"):
        games.equilibrium(PRIOR, COST, D, 1.01 * D_MAX)
    assert games.cheapest_reply(PRIOR, COST, D, np.eye(5), 9 * D_MAX) == np.inf


def test_as_the_paper_did_below_ap_the_optimum_is_another():
    """(24) has the cost of (22) up to its AP, and without the rule a smaller AP than the largest."""
    rows = joint.scenario_3(Area(PRIOR, D), [EPSILON], 300.0)
    (alone,) = (row for row in rows if row["mechanism"] == "differential")
    below = [row for row in rows if row["mechanism"] == "joint" and row["reused"]]
    assert below
    for row in below:
        assert row["cost"] == pytest.approx(program(PRIOR, row["d_m"], EPSILON).fun, rel=1e-6)
        assert row["d_m"] * (1 - 1e-9) <= row["as_written"] <= alone["privacy"] * (1 + 1e-6)


def test_both_sides_of_the_approximation_take_the_largest_ap():
    full = joint.of_largest_ap(Area(PRIOR, D, COST), 0.3 * D_MAX, EPSILON).certificate
    found = nearby.joint(PRIOR, COST, D, 0.3 * D_MAX, D, EPSILON, D, 9000.0).certificate
    assert found.distortion == pytest.approx(full.distortion, rel=1e-6)
    binding = joint.of_largest_ap(Area(PRIOR, D, COST), 0.95 * D_MAX, EPSILON).certificate
    assert binding.distortion == pytest.approx(0.95 * D_MAX, rel=1e-7)
    assert binding.cost == pytest.approx(program(PRIOR, 0.95 * D_MAX, EPSILON).fun, rel=1e-6)


def test_the_worst_case_and_the_threshold_against_the_programs():
    worst = optimal.differential(PRIOR, COST, D, EPSILON, worst_case=True).certificate.cost
    assert worst == pytest.approx(naive.optimum(PRIOR, COST, naive.differential_pairs(D, EPSILON), worst_case=True), rel=1e-7)
    within = optimal.within(PRIOR, COST, D, EPSILON * 2000, 2000.0).certificate.cost
    assert within == pytest.approx(naive.optimum(PRIOR, COST, naive.within_pairs(D, EPSILON * 2000, 2000.0)), rel=1e-7)
