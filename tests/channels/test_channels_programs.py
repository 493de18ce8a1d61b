"""The programs behind optimal channels: their reductions, blocks, points, solvers and rounds, by their public names."""

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import naive_channels as naive
import numpy as np
import pytest
from naive_channels import cells

from mobpriv.channels import guarantees, inference, optimal
from mobpriv.channels.distances import euclidean, hamming
from mobpriv.channels.programs import certificate, reductions, relaxations
from mobpriv.channels.programs.problem import ChannelProblem
from mobpriv.channels.programs.solvers import blocks, highs, interior, points


@pytest.mark.parametrize("solver", [interior, highs])
def test_both_solvers_close_the_gap(solver):
    """(24) on 8 × 6 cells of 500 m with 20 likely cells, in metres."""
    d, rng = cells(8, 6, 4000.0, 3000.0), np.random.default_rng(5)
    prior = np.zeros(48)
    prior[rng.choice(48, 20, replace=False)] = rng.dirichlet(np.ones(20))
    d_m = 0.85 * inference.prior_error(prior, d)
    problem = ChannelProblem(prior, hamming(48), 0.6e-3 * d, d, d_m)
    channel, bound, solved = relaxations.solve(problem, solver)
    result = guarantees.certificate(problem, d, channel, bound, solved.facts())
    assert result.exact, str(result)
    assert result.solver == solver.__name__.rpartition(".")[2]
    assert result.cost == pytest.approx(optimal.joint(prior, hamming(48), d, d_m, d, 0.6e-3).certificate.cost, rel=1e-8)


def test_a_new_secret_needs_room_for_every_observable():
    """Between two secrets that break an unlisted pair, L of the first observable lies above U, though the sums leave room."""
    P = np.array([[0.3, 0.03, 0.0], [0.35, 0.485, 0.0], [0.35, 0.485, 0.0]])
    source, target = np.array([0, 2, 1, 2]), np.array([2, 0, 2, 1])
    pairs = [np.tile(column, 3) for column in (source, target, np.full(4, np.exp(-0.9)))]
    const = P[:, :2].mean(axis=1)
    assert not points.fill_strictly(P.copy(), 2, const, np.arange(4) * 4, *pairs)
    P[:, :2] = 0.5 * P[:, :2] + 0.5 * const[:, None]  # drawn together there is room
    assert points.fill_strictly(P, 2, const, np.arange(4) * 4, *pairs)
    assert P[:, 2].sum() == pytest.approx(1)
    for s, t in zip(source, target, strict=True):
        assert (P[:, t] > np.exp(-0.9) * P[:, s]).all()


@pytest.mark.parametrize("order", [1, 31, 32, 33, 77])
def test_lapack_inside_compiled_code(order):
    """NumPy's own solutions are the truth; only upper triangles are read and written."""
    A, lower = np.random.default_rng(order).random((3 * order, order)), np.tril_indices(order, -1)
    block = np.eye(order)
    block[lower] = np.nan
    blocks.add_gram(A, block)
    matrix = np.eye(order) + A.T @ A
    assert np.triu(block) == pytest.approx(np.triu(matrix))
    assert blocks.cholesky(block)
    vector = np.arange(1.0, order + 1)
    blocks.solve_factored(block, right := vector.copy())
    assert right == pytest.approx(np.linalg.solve(matrix, vector))
    for transposed in False, True:
        upper = np.triu(block).T if transposed else np.triu(block)
        blocks.divide(rows := A[:3].copy(), block, transposed)
        assert rows @ upper == pytest.approx(A[:3])
    blocks.add_outer(A[:3], outer := np.eye(3))
    assert np.triu(outer) == pytest.approx(np.triu(np.eye(3) + A[:3] @ A[:3].T))
    blocks.invert(block)
    assert np.triu(block) == pytest.approx(np.triu(np.linalg.inv(matrix)))
    assert np.isnan(block[lower]).all()
    assert not blocks.cholesky(np.diag([*np.ones(order), -1.0]))


@pytest.mark.parametrize("core", [7, 4, 1])
@pytest.mark.parametrize("estimates", [0, 3])
def test_blocks_are_those_of_the_constraints(core, estimates):
    """Newton's blocks written out with dense matrices, whether or not some secrets are eliminated first."""
    m, n, rng = 5, 7, np.random.default_rng(core)
    source, target = np.nonzero(np.ones((n, n)))
    with_core = (source < core) | (target < core) | (source == target)
    source, target = source[with_core], target[with_core]
    lists = np.tile(source, m), np.tile(target, m), np.tile(np.where(source == target, 0.0, rng.random(len(source))), m)
    F = np.where(np.arange(n) < core, rng.random((estimates, n)), 0.0)
    pairs = certificate.PairConstraints(np.arange(m + 1) * len(source), *lists)
    program = certificate.Program(np.zeros((m, n)), pairs, F, core=core)
    w, v = rng.random(len(pairs.source)), rng.random((m, estimates))
    with ThreadPoolExecutor(2) as threads:
        parts = blocks.Blocks(program, threads.map)
        total = parts.factor(w, v)
        vectors = rng.random((m, n + bool(estimates)))
        parts.solve(result := vectors.copy())
    expected = np.zeros_like(total)
    for o in range(m):
        G = np.zeros((len(source), vectors.shape[1]))
        mine = slice(pairs.first[o], pairs.first[o + 1])
        np.add.at(G, (np.arange(len(G)), target), 1.0)
        np.add.at(G, (np.arange(len(G)), source), -pairs.ratio[mine])
        A = np.column_stack([F, -np.ones(estimates)])[:, : vectors.shape[1]]
        H = G.T @ (w[mine, None] * G) + A.T @ (v[o][:, None] * A)
        assert result[o] == pytest.approx(np.linalg.solve(H, vectors[o]))
        expected += np.linalg.inv(H)
    assert np.triu(total) == pytest.approx(np.triu(expected))


def test_sums_do_not_depend_on_the_number_of_threads(monkeypatch):
    result = []
    monkeypatch.setattr(interior, "_SMALL", 0)
    for threads in 1, 4:
        monkeypatch.setattr(interior.numba, "get_num_threads", lambda threads=threads: threads)
        d = euclidean(np.argwhere(np.ones((4, 3))).astype(float))
        result.append(optimal.differential(np.full(12, 1 / 12), hamming(12), d, 0.9).channel)
    assert np.array_equal(*result)


@pytest.mark.parametrize("share", [1.0, 1 - 1e-12, 1 - 1e-9])
def test_all_the_distortion_there_is_without_the_library_solver(share, monkeypatch):
    """d_m = d_max leaves (21) channels that tell something: those on which silence's best guess stays the best one."""
    d, rng = cells(6, 5, 15.0, 8.0), np.random.default_rng(2)
    prior = rng.dirichlet(np.full(30, 0.5))
    expected = naive.optimum(prior, hamming(30), {}, d, inference.prior_error(prior, d))
    monkeypatch.setattr(highs, "solve", None)
    result = optimal.distortion(prior, hamming(30), d, share * inference.prior_error(prior, d))
    assert result.certificate.solver == "generation"
    assert result.certificate.cost < 1 - prior.max() - 0.01
    assert result.certificate.exact, str(result.certificate)
    assert result.certificate.cost == pytest.approx(expected, rel=1e-6)


def test_secrets_that_do_not_fit_at_the_end_become_core(monkeypatch):
    """With no secret seen to be out of room, and filled in as they are numbered, some fail: the optimum must be the same."""
    rng, d = np.random.default_rng(1), cells(6, 5, 15, 8)
    prior = np.zeros(30)
    prior[rng.choice(30, 8, replace=False)] = rng.dirichlet(np.full(8, 0.5))
    d_m = 0.85 * inference.prior_error(prior, d)
    right = optimal.joint(prior, hamming(30), d, d_m, d, 0.6).certificate
    monkeypatch.setattr(reductions, "room", lambda P, ratio: np.zeros(len(ratio)))
    result = optimal.joint(prior, hamming(30), d, d_m, d, 0.6).certificate
    assert result.core > right.core == 8
    assert result.exact
    assert result.cost == pytest.approx(right.cost, rel=1e-8)


def test_cells_that_nearly_coincide():
    """What the elimination of secrets leaves of a cell 1e-9 from another is a difference of nearly equal numbers."""
    rng, lattice = np.random.default_rng(0), np.argwhere(np.ones((3, 5))).astype(float)
    d = euclidean(np.concatenate([lattice, lattice + 1e-9 * rng.random((15, 2))]))
    prior = np.zeros(30)
    prior[[0, 3, 7, 11, 15, 18, 22, 26]] = rng.dirichlet(np.ones(8))
    result = optimal.joint(prior, hamming(30), d, 0.5 * inference.prior_error(prior, d), d, 1.5).certificate
    assert result.exact
    assert result.solver == "interior"


def test_secrets_with_the_least_room_come_first():
    """On a lattice all of them then fit; in the opposite order some do not, and would have to become core."""
    rng, d = np.random.default_rng(3), cells(12, 9, 15, 8)
    prior = np.zeros(108)
    prior[rng.choice(108, 20, replace=False)] = rng.dirichlet(np.ones(20))
    result = optimal.differential(prior, hamming(108), d, 0.6)
    assert result.certificate.exact
    assert result.certificate.core == 20
    core = np.flatnonzero(prior)
    order = np.concatenate([core, np.setdiff1d(np.arange(108), core)])
    columns = np.zeros_like(result.channel.T[result.channel.max(axis=0) > 0])
    columns[:, core] = result.channel[core][:, result.channel.max(axis=0) > 0].T
    short = reductions.fill_in(columns, np.exp(-0.6 * d), order, 20, np.full(len(columns), 1 / len(columns)))
    assert (short > 1e-6).any()


def test_a_pair_of_two_secrets_that_are_not_core_is_refused():
    pairs = certificate.PairConstraints(np.array([0, 1]), np.array([1]), np.array([2]), np.array([0.5]))
    with pytest.raises(ValueError, match="the core"):
        blocks.Blocks(certificate.Program(np.ones((1, 3)), pairs, np.zeros((0, 3)), core=1), map)


@pytest.mark.parametrize("seed", [0, 1, 3])
def test_a_warm_start_lies_inside_and_changes_nothing(seed, monkeypatch):
    """Of 80 cells 10 occur: secrets and pairs are added on the way, and the next program starts from the last one's points."""
    rng, d = np.random.default_rng(seed), cells(10, 8, 15, 8)
    prior = np.zeros(80)
    prior[rng.choice(80, 10, replace=False)] = rng.dirichlet(np.full(10, 0.5))
    d_m = 0.85 * inference.prior_error(prior, d)
    restart, sizes = points.restart, []

    def watched(program, warm):
        at = restart(program, warm)
        if at is not None:
            assert min(at.g.min(), at.f.min(), at.slack, at.pairs.min(), at.attacks.min(), at.nu) > 0
            assert at.P.sum(axis=0) == pytest.approx(np.ones(at.P.shape[1]), abs=1e-12)
            pairs = program.pairs  # the slacks carried along are those of the point itself
            o = np.repeat(np.arange(len(at.P)), np.diff(pairs.first))
            assert at.g == pytest.approx(at.P[o, pairs.target] - pairs.ratio * at.P[o, pairs.source], abs=1e-14)
            sizes.append(at.P.shape[1] - next(iter(warm.points.values())).P.shape[1])
        return at

    monkeypatch.setattr(points, "restart", watched)
    warm = optimal.joint(prior, hamming(80), d, d_m, d, 0.6).certificate
    assert max(sizes) > 0  # secrets were added, not pairs alone
    monkeypatch.setattr(points, "restart", lambda program, warm: None)
    cold = optimal.joint(prior, hamming(80), d, d_m, d, 0.6).certificate
    assert warm.exact
    assert cold.exact
    assert max(warm.bound, cold.bound) <= min(warm.cost, cold.cost) * (1 + 1e-13)


def small():
    d, rng = cells(4, 3, 4.0, 3.0), np.random.default_rng(1)
    return rng.dirichlet(np.ones(12)), hamming(12), d


def test_solvers_that_stop_early_are_not_called_exact(monkeypatch):
    prior, cost, d = small()
    assert optimal.differential(prior, cost, d, 2.0).certificate.exact
    monkeypatch.setattr(highs, "MAX_STEPS", 1)
    monkeypatch.setattr(highs, "PIVOTS", 3)
    assert optimal.differential(prior, cost, d, 2.0).certificate.exact, "the other solver is there still"
    monkeypatch.setattr(interior, "MAX_STEPS", 3)
    for result in (optimal.differential(prior, cost, d, 2.0), optimal.joint(prior, cost, d, 0.8, d, 2.0)):
        assert not result.certificate.exact
        assert str(result.certificate).startswith("NOT exact")
        assert result.channel.sum(1) == pytest.approx(np.ones(12))
        assert result.certificate.violation <= 1e-9, "private all the same: only the cost is not the least"
        assert result.certificate.bound <= 0.6 * result.certificate.cost


def test_the_library_solver_is_next_where_the_first_one_stops_early(monkeypatch):
    monkeypatch.setattr(interior, "MAX_STEPS", 3)
    result = optimal.differential(*small(), 2.0).certificate
    assert result.exact
    assert result.solver == "highs"


def test_too_few_rounds_are_not_called_exact(monkeypatch):
    """The lazy rows and secrets have not all been looked at: the violation over all pairs says so."""
    monkeypatch.setattr(relaxations, "ROUNDS", 1)
    d = np.abs(np.subtract.outer(np.arange(3.0), np.arange(3.0)))
    result = optimal.differential([0.5, 0.0, 0.5], hamming(3), d, 1.0).certificate
    assert not result.exact
    assert result.violation > 0.01


def test_the_library_solver_alone_stops_early(monkeypatch):
    monkeypatch.setattr(highs, "MAX_STEPS", 0)
    prior, cost, d = small()
    assert not optimal.differential(prior, cost, d, 2.0, worst_case=True).certificate.exact


def test_a_library_solver_that_has_nothing_says_so():
    """(24c) asks for 3 where guessing without seeing anything errs by 1/2: the border refuses it, and so does HiGHS."""
    unbound = certificate.PairConstraints(np.array([0, 2, 4]), np.array([0, 1] * 2), np.array([0, 1] * 2), np.zeros(4))
    program = certificate.Program(np.array([[0.0, 0.5], [0.5, 0.0]]), unbound, hamming(2) / 2, d_m=3.0)
    with pytest.raises(RuntimeError, match="HiGHS found no channel"):
        highs.solve(program, 1e-8)


# --- what is said of a program


LINE = np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0)))
EVEN = np.full(4, 0.25)


def test_rows_of_a_program_are_its_bound_pairs():
    """Every ordered pair of neighbours for every observable; p >= 0 is no row, and what is not bound has none."""
    two = optimal.differential([0.5, 0.5], hamming(2), hamming(2), 1.0).certificate
    assert (two.secrets, two.observables, two.pairs) == (2, 2, 2 * 2)
    four = optimal.differential(EVEN, hamming(4), LINE, 1.0)
    assert four.certificate.pairs == 4 * 2 * 3  # 0 - 1 - 2 - 3: what is farther apart follows
    assert four.certificate.pairs == four.program.rows == four.program.facts()["pairs"]
    assert optimal.distortion(EVEN, hamming(4), LINE, 0.5).certificate.pairs == 0
    d = LINE.copy()
    d[3, :3] = d[:3, 3] = 9.0
    alone = optimal.within(EVEN, hamming(4), d, 1.0, 1.5).certificate  # the last cell is bound to none, the others as above
    assert alone.exact
    assert alone.pairs == 4 * 2 * 2


@pytest.mark.parametrize("apart", [1e-8, 1e-9, 1e-12])
def test_what_elimination_leaves_of_a_core_secret_may_be_rounding_alone(apart):
    """One core secret next to 200 others: A - B D^-1 B' is 1e-16 of A, so A is what the addition to it has to be measured by."""
    m, others, rng = 50, np.arange(1, 201), np.random.default_rng(0)
    source, target = np.append(0 * others, others), np.append(others, 0 * others)
    ratio = np.full(m * len(source), np.exp(-apart))
    pairs = certificate.PairConstraints(np.arange(m + 1) * len(source), np.tile(source, m), np.tile(target, m), ratio)
    program = certificate.Program(np.zeros((m, 201)), pairs, np.zeros((0, 201)), core=1)
    with ThreadPoolExecutor(1) as threads:
        total = blocks.Blocks(program, threads.map).factor(rng.random(len(pairs.source)), np.zeros((m, 0)))
    assert total is not None, "no factor, however much is added"
    assert total[0, 0] > 0


def test_promoted_secrets_bring_the_pairs_with_their_new_neighbours(monkeypatch):
    """A secret of the program that becomes core may have pairs with all others: those with its neighbours are in the next program."""
    rng, d = np.random.default_rng(0), cells(10, 8, 15, 8)
    prior = np.zeros(80)
    prior[rng.choice(80, 10, replace=False)] = rng.dirichlet(np.full(10, 0.5))
    programs, solve = [], interior.solve
    monkeypatch.setattr(
        interior, "solve", lambda program, *rest, **more: programs.append(program) or solve(program, *rest, **more)
    )
    monkeypatch.setattr(relaxations, "GAP", 0.0)  # no gap is narrow enough: all of the program become core
    monkeypatch.setattr(relaxations, "SUM_ROUNDING", 0.0)
    optimal.differential(prior, hamming(80), d, 0.6)
    before, after = next((one, other) for one, other in pairwise(programs) if other.core > one.core)
    assert before.core == 10
    assert after.core >= len(before.kappa[0]) > 11
    source, target, _ = after.pairs[1:]
    between = (source != target) & (np.minimum(source, target) >= 10)  # before, no two of these could have a pair
    assert between.any()
