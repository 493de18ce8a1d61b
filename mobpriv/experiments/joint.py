"""The experiments of "Privacy games" (Shokri, PETS 2015, §9): the area, the users and their priors; the scenarios 1, 2 and 3
of §9.1 and the prior study of §9.2.

A scenario takes one user: her prior π (S,), the distances between the cells' centres (S, S) in metres, which serve as d and as
d_ε, and the thresholds, ε in 1/m and d_m in m. The cost is the paper's: 0 for the true cell, 1 for any other. It gives back rows,
plain dicts, one for every solved channel. :func:`of_all` runs it for all users.

Inside are metres and 1/m; pages speak of kilometres: :func:`readable`, :func:`per_km`, :func:`worth` turn the one into the other.

(22) has many optimal channels, with different distortion privacy AP. The paper sets d_m to "the" AP of p_ε and has no rule;
here p_ε is the optimal channel of largest AP.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from mobpriv import processes
from mobpriv.channels import checks, optimal
from mobpriv.channels.distances import hamming
from mobpriv.channels.guarantees import effective_epsilon
from mobpriv.channels.inference import bayes, distortion_privacy, optimal_attack, prior_error
from mobpriv.channels.optimal import Optimum
from mobpriv.channels.rivals import planar_laplace
from mobpriv.datasets import DATASETS, Dataset
from mobpriv.experiments.days import choose, chosen_users, in_halves
from mobpriv.grid import AreaGrid
from mobpriv.numbers import counted, shown
from mobpriv.priors import Priors, better_informed, densest_area, entropy, most_active, priors
from mobpriv.traces import Traces
from mobpriv.traces import rows as records

ROUNDING = 1e-9
"""An AP is known up to rounding. As the d_m of another channel it is lowered by this share, or (24) might have no solution."""
SOLVERS = 1e-12
"""A probability below this is a solver's rounding of 0."""
THRESHOLDS = 1000
"""Values of d_m in scenario 3; each is a linear program by itself and one for every ε."""
KM = 1000.0  # m
# columns of the scenarios' rows, in m
LENGTHS = ("d_m", "privacy", "privacy_bound", "middle", "floor", "as_written", "bayes", "promised", "under_prior")


class Setting(NamedTuple):
    data: Dataset
    traces: Traces  # of everybody
    grid: AreaGrid
    users: list[str]  # the most active first; pages call them 1, 2, …
    priors: Priors  # by maximum likelihood, rows in the order of users
    selection: str  # all of this in words


class Halves(NamedTuple):
    data: Dataset
    grid: AreaGrid
    known: Traces  # records of the users inside the area, in the half that the adversary knows
    secret: Traces  # in the half that is published
    users: list[str]  # those with the most known records, the most active first
    attacked: pd.Index  # users with secret records
    person: dict[str, str]  # a second name of one person -> her first name
    selection: str  # all of this in words


def per_km(epsilon: float) -> str:
    """ε in 1/km as results and pages write it: "0.6" for 0.0006 per metre."""
    return f"{KM * epsilon:g}"


def readable(rows: list[dict]) -> pd.DataFrame:
    """The rows of a scenario as a table in the reader's units: ε in 1/km, lengths in km."""
    table = pd.DataFrame(rows)
    table["epsilon"] = (KM * table["epsilon"]).round(9)
    return table.assign(**{name: table[name] / KM for name in LENGTHS if name in table})


def worth(prior, channel, cost, distances) -> dict[str, float]:
    """What a channel is worth, whoever made it: its cost, its AP in km, and the ε that it keeps, in 1/m."""
    expected = float(prior @ (channel * cost).sum(axis=1))
    return {"cost": expected, "AP": _privacy(prior, channel, distances) / KM, "epsilon": effective_epsilon(channel, distances)}


def laplace(grid: AreaGrid, epsilon: float) -> np.ndarray:
    """Planar Laplace noise, ε in 1/m, between the cells of an area."""
    return planar_laplace(np.linspace(0, grid.width, grid.columns + 1), np.linspace(0, grid.height, grid.rows + 1), epsilon)


def prepare(
    dataset: str = "city",
    width_km: float = 15.0,
    height_km: float = 8.0,
    columns: int = 20,
    rows: int = 15,
    users: int = 10,
    begins: str = "",  # only users whose name begins so; "" takes the persons, where a data set says who they are, else everybody
    leave_out: str = "",  # users to leave out, separated by commas
    most: int = 0,  # look only at so many users, the first by name of those that begin so; 0 looks at everybody
    minutes: float = 0.0,  # above so many, estimated, the cells are made larger; 0 keeps them
    programs: float = 0.0,  # of each user, for that estimate: see :func:`estimated`
) -> Setting:
    """The densest area of a data set and its most active users, who stand for the paper's "10 randomly selected users".

    ValueError, before anything is read, for an area that no optimal channel can be computed for, see `checks.affordable`.
    """
    _check_area(width_km, height_km, columns, rows, users)
    begins = begins or _persons(dataset)
    data, traces, whose = chosen_users(dataset, leave_out, most, begins)
    users = _number_of_users(traces["user"].cat.categories, users, begins, leave_out, most)

    def on(columns: int, rows: int) -> tuple[AreaGrid, list[str], Priors]:
        grid = densest_area(traces, KM * width_km, KM * height_km, columns, rows)
        chosen = most_active(traces, grid, min(users, _there(traces, grid, begins)) if most else users, begins)
        return grid, chosen, priors(traces, grid, chosen)

    (grid, chosen, found), coarser = _in_time(on, columns, rows, minutes, programs)
    checks.affordable(grid.size, int(found.records["cells"].max()))
    words = (
        f"{counted(len(chosen), 'user')} with the most records in the densest {width_km:g} × {height_km:g} km, "
        f"{grid.columns} × {grid.rows} cells{coarser}; "
        f"{shown(found.records['inside'].sum())} records inside, {shown(found.records['outside'].sum())} outside left out"
    )
    words += f"; only users whose name begins with {begins!r}" if begins else ""
    return Setting(data, traces, grid, chosen, found, words + whose)


def estimated(found: Priors, cells: int, programs: float) -> float:
    """Minutes that the optimal channels of all users take on one core: ``programs`` is how many times the hardest program's seconds
    (`checks.OF_ALL`, `checks.OF_VISITED`) a user's channels take together.
    """
    visited = found.records["cells"].to_numpy(float)
    return programs * float((checks.OF_ALL * cells**3 + checks.OF_VISITED * visited**3).sum()) / 60


def _in_time(on: Callable, columns: int, rows: int, minutes: float, programs: float) -> tuple[tuple, str]:
    """What ``on(columns, rows)`` gives for the finest cells, not finer than asked for, whose channels are estimated to take at most
    ``minutes``; and that in words ("" for the cells asked for). The estimate rests on the cells that users visited, on no clock."""
    made = on(columns, rows)
    needed = first = estimated(made[2], columns * rows, programs)
    if not minutes or needed <= minutes:
        return made, ""
    asked, visited = f"{columns} × {rows}", int(made[2].records["cells"].max())
    while needed > minutes and columns * rows > 1:
        share = (minutes / needed) ** (1 / 6)  # a program takes the third power of its cells, they the second of their side
        columns, rows = max(1, int(columns * share)), max(1, int(rows * share))
        made = on(columns, rows)
        needed = estimated(made[2], columns * rows, programs)
    return made, (
        f" instead of {asked}, of which users visited up to {visited}: their channels would take about {first:.0f} min, "
        f"minutes = {minutes:g} are allowed (0 keeps the cells)"
    )


def _persons(dataset: str) -> str:
    """What the names of persons begin with in a known data set that holds others too."""
    return DATASETS[dataset].persons if dataset in DATASETS else ""


def prepare_halves(
    dataset: str = "city",
    start: str = "",
    days: int = 30,
    width_km: float = 15.0,
    height_km: float = 8.0,
    columns: int = 20,
    rows: int = 15,
    users: int = 40,
    begins: str = "",
    leave_out: str = "",
    most: int = 0,
    minutes: float = 0.0,
    programs: float = 0.0,
) -> Halves:
    """The setting of :func:`prepare` for traces: the densest area of the known half, and of its most active users both halves.

    Days and halves are those of the re-identification chapter: the first half of the days and the rest. Users are at most those with
    a known record inside.
    """
    _check_area(width_km, height_km, columns, rows, users)
    begins = begins or _persons(dataset)
    setting = in_halves(choose(dataset, start, days, leave_out, most, begins), "calendar", days)

    def on(columns: int, rows: int) -> tuple[AreaGrid, list[str], Priors]:
        grid = densest_area(setting.known, KM * width_km, KM * height_km, columns, rows)
        chosen = most_active(setting.known, grid, min(users, _there(setting.known, grid, begins)), begins)
        return grid, chosen, priors(setting.known, grid, chosen)

    (grid, chosen, _), coarser = _in_time(on, columns, rows, minutes, programs)
    of_them = [records(half, half["user"].isin(chosen).to_numpy()) for half in (setting.known, setting.secret)]
    known, secret = (records(half, _inside(half, grid)) for half in of_them)
    attacked = secret["user"].cat.categories
    words = (
        f"{len(chosen)} users with the most known records in the densest {width_km:g} × {height_km:g} km, "
        f"{grid.columns} × {grid.rows} cells{coarser}; "
        f"{shown(len(known))} training and {shown(len(secret))} test records inside, {shown(len(of_them[0]) - len(known))} and "
        f"{shown(len(of_them[1]) - len(secret))} outside left out; {len(attacked)} users attacked; of the data set: {setting.selection}"
    )
    return Halves(setting.data, grid, known, secret, chosen, attacked, setting.person, words)


def check_costs(setting: Setting) -> None:
    """Refuses a user who was only ever seen in one cell: no channel costs her anything, and costs cannot be set in proportion."""
    alone = np.flatnonzero(setting.priors.records["cells"].to_numpy() == 1)
    if len(alone):
        raise ValueError(
            f"all records of user {alone[0] + 1} of the {len(setting.users)} most active lie in one of the {setting.grid.columns} × "
            f"{setting.grid.rows} cells, where every channel costs nothing: take smaller cells (more columns and rows, a smaller "
            "area) or fewer users"
        )


def check_step(step: float, d_max: float) -> None:
    """Refuses steps of d_m (m) that are none, and so many up to ``d_max`` (m) that scenario 3 would not end."""
    if not 0 < step < np.inf:
        raise ValueError(f"step must be positive, in m (got {step})")
    if d_max / step >= THRESHOLDS + 1:
        raise ValueError(
            f"a step of {step:g} m makes {d_max / step:,.0f} values of d_m up to d_max = {d_max:,.0f} m, each a linear program "
            f"for every epsilon: at most {THRESHOLDS:,} are solved; take a step of at least {d_max / THRESHOLDS:.2g} m"
        )


def everybody(setting: Setting) -> np.ndarray:
    """How many records of all users together lie in each cell of the area."""
    cells = setting.grid.cells(setting.traces["lat"].to_numpy(), setting.traces["lng"].to_numpy())
    return np.bincount(cells[cells >= 0], minlength=setting.grid.size)


def _inside(traces: Traces, grid: AreaGrid) -> np.ndarray:
    return grid.cells(traces["lat"].to_numpy(), traces["lng"].to_numpy()) >= 0


def _there(traces: Traces, grid: AreaGrid, begins: str) -> int:
    """How many users have records inside, at least 1: an area without any is refused where its users are looked for."""
    names = traces["user"].astype(str)[_inside(traces, grid)]
    return max(names[names.str.startswith(begins)].nunique(), 1)


def _check_area(width_km: float, height_km: float, columns: int, rows: int, users: int) -> None:
    """Refuses an area that no optimal channel can be computed for, see `checks.affordable`."""
    for name, km in (("width_km", width_km), ("height_km", height_km)):
        if not 0 < km < np.inf:
            raise ValueError(f"{name} must be positive, in km (got {km})")
    for name, number in (("columns", columns), ("rows", rows), ("users", users)):
        _whole(name, number)
    checks.affordable(columns * rows)


def _number_of_users(there, users: int, begins: str, leave_out: str, most: int) -> int:
    """How many users to look for: refuses more than there are, but takes those there are of a part of the data set, of whom nobody
    knows beforehand how many they are."""
    found = sum(name.startswith(begins) for name in there)
    if not found:
        raise ValueError(f"no user's name begins with begins = {begins!r}, of {len(there)} users: leave it empty to take all")
    if users > found and not most:
        whose = f" whose name begins with {begins!r}" if begins else ""
        whose += " and that is not left out" if leave_out else ""
        raise ValueError(f"users must be at most {found}, the number of users of the data set{whose} (got {users})")
    return min(users, found)


def _whole(name: str, number) -> None:
    if not (isinstance(number, int | np.integer) and number >= 1):
        raise ValueError(f"{name} must be a whole number, at least 1 (got {number!r})")


def _each(name: str, values, rule: str, holds: Callable[[np.ndarray], np.ndarray]) -> None:
    """Refuses what is no list of numbers, and a number that breaks the rule."""
    numbers = np.asarray(values)
    if numbers.ndim != 1 or numbers.dtype.kind not in "iuf":
        raise ValueError(f"{name} must be a list of numbers (got {values!r})")
    wrong = np.flatnonzero(~holds(numbers))
    if len(wrong):
        raise ValueError(f"{name} must be {rule} (got {numbers[wrong[0]]:g} at place {wrong[0]})")


def _check_epsilons(epsilons) -> None:
    _each("epsilons", epsilons, "positive and finite, in 1/m", lambda e: (e > 0) & np.isfinite(e))
    if not len(epsilons):
        raise ValueError("epsilons must hold at least one privacy level, in 1/m (got none)")


def scenario_1(prior, distances, epsilons) -> list[dict]:
    """For every ε: p_ε of (22), p_dm of (21) and p_ε,dm of (24) with d_m = AP(p_ε); rows of :func:`judged`.

    p_ε keeps (24c) at this d_m and is therefore an optimal channel of (24): the joint cost equals the differential cost by
    definition, and the constraint on the distortion privacy cannot add to it. (24) is solved all the same.

    The rows of p_ε also hold ``middle``, the AP of another optimal channel of (22), one from the middle of them (m), and
    ``privacy_bound``, which the AP of no optimal channel of (22) exceeds (m); ``floor``, which no ε-private channel at all falls
    below (m); ``silence``, the cost of always naming the likeliest cell, and ``named``, how often p_ε names it. The rows of p_dm
    hold ``kept``, the ε that it keeps (1/m; infinite where it keeps none).
    """
    _check_epsilons(epsilons)
    cost, rows = hamming(len(prior)), []
    likeliest = int(np.argmax(prior))
    for epsilon in epsilons:
        found = optimal.differential(prior, cost, distances, epsilon, error=distances)
        d_m = found.certificate.distortion * (1 - ROUNDING)
        middle = optimal.differential(prior, cost, distances, epsilon).channel
        row = judged("differential", prior, distances, epsilon, d_m, found)
        bound = found.certificate.distortion_bound or prior_error(prior, distances)
        row |= {"middle": _privacy(prior, middle, distances), "privacy_bound": bound, "floor": floor(prior, distances, epsilon)}
        row |= {"silence": silence(prior), "named": float(prior @ found.channel[:, likeliest])}
        lone = optimal.distortion(prior, cost, distances, d_m)
        kept = effective_epsilon(np.where(lone.channel < SOLVERS, 0.0, lone.channel), distances)
        rows += [row, judged("distortion", prior, distances, epsilon, d_m, lone) | {"kept": kept}]
        found = optimal.joint(prior, cost, distances, d_m, distances, epsilon)
        rows.append(judged("joint", prior, distances, epsilon, d_m, found))
    return rows


def silence(prior) -> float:
    """The cost of a user who always names her likeliest cell: she is wrong wherever else she is, and her reports say nothing."""
    return float(1 - np.max(prior))


def floor(prior, distances, epsilon: float) -> float:
    """The AP that ε alone guarantees, in m: max_a min_ŝ Σ_s π(s) exp(-ε d(a, s)) d(ŝ, s).

    By (15) every secret gives an observable at least exp(-ε d(a, s)) times as often as a does. Put that into AP, Σ_o min_ŝ Σ_s π(s)
    p(o|s) d(ŝ, s): the sum over o of p(o|a) is 1. It holds for the ε-private channels of any cost, whatever the reference cell a.
    """
    weighted = prior * np.exp(-epsilon * np.asarray(distances))  # (a, s)
    return float((weighted @ distances).min(axis=1).max())


def frontier(prior, distances, epsilons, shares) -> list[dict]:
    """The least cost at every d_m, ``shares`` of d_max (below 1, where nothing can be varied): rows of (21), and of (24) for every ε.

    Rows: mechanism, epsilon (None for (21)), ``share``, d_m (m; of (22) its AP), cost, exact. Up to AP(p_ε) the cost of (24) is that
    of (22), which keeps (24c) there. Beyond, it is convex in d_m, and its slope is ν, the multiplier of (24c): the slope between two
    rows lies between the ν of both.
    """
    _check_epsilons(epsilons)
    _each("shares", shares, "at least 0 and below 1", lambda share: (share >= 0) & (share < 1))
    cost, d_max = hamming(len(prior)), prior_error(prior, distances)

    def row(mechanism, epsilon, share, found):
        of = {"mechanism": mechanism, "epsilon": epsilon, "share": float(share), "d_m": float(share * d_max)}
        return of | {"cost": found.certificate.cost, "exact": bool(found.certificate.exact)}

    rows = [row("distortion", None, s, optimal.distortion(prior, cost, distances, s * d_max)) for s in shares]
    for epsilon in epsilons:
        private = optimal.differential(prior, cost, distances, epsilon, error=distances)
        rows.append(row("differential", epsilon, private.certificate.distortion / d_max, private))
        for share in shares:
            rows.append(row("joint", epsilon, share, of_largest_ap(prior, cost, distances, share * d_max, epsilon, private)))
    return rows


def scenario_2(prior, distances, epsilons, shares) -> list[dict]:
    """For every ε: p_ε of (22); then p_dm of (21) and p_ε,dm of (24) for d_m above AP(p_ε), rows of :func:`judged`.

    d_m lies the given ``shares`` of the way from AP(p_ε) to d_max, the largest AP that any channel has: the paper says only
    "some values of d_m that are higher". Rows hold the ``share``. Where AP(p_ε) = d_max up to 1e-6 there is no such d_m,
    and only the row of p_ε.
    """
    _check_epsilons(epsilons)
    _each("shares", shares, "above 0 and at most 1", lambda share: (share > 0) & (share <= 1))
    if not len(shares):
        raise ValueError("shares must hold at least one number, above 0 and at most 1 (got none)")
    cost, d_max = hamming(len(prior)), prior_error(prior, distances)
    rows = []
    for epsilon in epsilons:
        found = optimal.differential(prior, cost, distances, epsilon, error=distances)
        ap = found.certificate.distortion
        rows.append(judged("differential", prior, distances, epsilon, ap, found))
        for share in shares if ap < d_max * (1 - 1e-6) else ():
            d_m = ap + share * (d_max - ap)
            found = optimal.distortion(prior, cost, distances, d_m)
            rows.append(judged("distortion", prior, distances, epsilon, d_m, found) | {"share": share})
            found = optimal.joint(prior, cost, distances, d_m, distances, epsilon)
            rows.append(judged("joint", prior, distances, epsilon, d_m, found) | {"share": share})
    return rows


def scenario_3(prior, distances, epsilons, step: float = 500.0) -> list[dict]:
    """(22) for every ε, (21) for every d_m in ``step``, 2 ``step``, … up to d_max (m), (24) for every pair: rows of :func:`judged`.

    Where d_m ≤ AP(p_ε), p_ε is an optimal channel of (24), as in scenario 1: it is taken, and the row says ``reused``. There (24) is
    solved all the same, as the paper did: ``as_written`` is the AP of the optimum that comes out without our rule (m), and in
    the rows of p_ε that of (22).
    """
    _check_epsilons(epsilons)
    d_max = prior_error(prior, distances)
    check_step(step, d_max)
    cost = hamming(len(prior))
    thresholds = step * np.arange(1, 1 + int(d_max / step))
    alone = {d_m: optimal.distortion(prior, cost, distances, d_m) for d_m in thresholds}
    rows = [judged("distortion", prior, distances, None, d_m, found) for d_m, found in alone.items()]
    for epsilon in epsilons:
        private = optimal.differential(prior, cost, distances, epsilon, error=distances)
        plain = optimal.differential(prior, cost, distances, epsilon).channel
        row = judged("differential", prior, distances, epsilon, None, private)
        rows.append(row | {"as_written": _privacy(prior, plain, distances)})
        for d_m in thresholds:
            reused = bool(d_m <= private.certificate.distortion)
            written = optimal.joint(prior, cost, distances, d_m, distances, epsilon)
            found = private if reused else written
            row = judged("joint", prior, distances, epsilon, d_m, found) | {"reused": reused}
            rows.append(row | {"as_written": written.certificate.distortion})
    return rows


def of_largest_ap(prior, cost, distances, d_m: float, epsilon: float, private: Optimum | None = None) -> Optimum:
    """The optimal channel of (24) of largest AP; ``private``: that of (22), where it is known.

    Where d_m is at most its AP, that channel keeps (24c), and (24) has no optimum of larger AP. Above it d_m binds: every
    optimum has the AP d_m (scenario 2).
    """
    private = private or optimal.differential(prior, cost, distances, epsilon, error=distances)
    if d_m <= private.certificate.distortion:
        return private
    return optimal.joint(prior, cost, distances, d_m, distances, epsilon)


def prior_knowledge(prior, distances, epsilons, weights, powers=(), places: int = 2) -> list[dict]:
    """§9.2: p_ε of (22) and p_dm of (21) with d_m = AP(p_ε), made for π, attacked by adversaries who know π̂.

    Beside them p_ε,dm of (24), "joint", with d_m half-way from AP(p_ε) to d_max, and (21) with the same d_m, "distortion above"; where
    AP(p_ε) = d_max there is no such d_m.

    π̂ is :func:`mobpriv.priors.better_informed` for each of the ``weights`` (0 is π itself), once with the likeliest ``places`` cells and
    once with one, and in proportion to a power of π for each of the ``powers`` (1 is π itself): the paper has no formula. Rows: mechanism,
    epsilon, ``kind`` ("weight", "place" for the one cell, or "power"), ``level``, bits (the entropy of π̂), privacy: the expected error (7)
    of the optimal attack (19) for π̂, in m, where the secret is distributed as π̂ says, for the adversary's evidence is taken to be true;
    ``promised``: the AP for π; and ``under_prior``: the error of the same attack where the secret is distributed as π says and the
    adversary is wrong, which is never below the AP for π.
    """
    _check_epsilons(epsilons)
    _each("weights", weights, "in [0, 1]", lambda w: (w >= 0) & (w <= 1))
    _each("powers", powers, "positive and finite", lambda k: (k > 0) & np.isfinite(k))
    if not len(weights) + len(powers):
        raise ValueError("weights and powers are both empty: there is no adversary to attack the channels")
    prior = checks.prior(prior)
    adversaries = [("weight", float(w), better_informed(prior, w, places)) for w in weights]
    if places > 1:  # one cell cannot lie far from another likelier one, though it may from the best guess
        adversaries += [("place", float(w), better_informed(prior, w, 1)) for w in weights if w > 0]
    adversaries += [("power", float(k), prior**k / (prior**k).sum()) for k in powers]
    cost = hamming(len(prior))
    rows = []
    for epsilon in epsilons:
        private = optimal.differential(prior, cost, distances, epsilon, error=distances)
        alone = optimal.distortion(prior, cost, distances, private.certificate.distortion * (1 - ROUNDING))
        channels = {"differential": private, "distortion": alone}
        d_max, ap = prior_error(prior, distances), private.certificate.distortion
        if ap < d_max * (1 - 1e-6):
            d_m = (ap + d_max) / 2
            channels["joint"] = optimal.joint(prior, cost, distances, d_m, distances, epsilon)
            channels["distortion above"] = optimal.distortion(prior, cost, distances, d_m)
        for kind, level, known in adversaries:
            for name, found in channels.items():
                attack = optimal_attack(known, found.channel, distances)
                rows.append(
                    {"mechanism": name, "epsilon": float(epsilon), "kind": kind, "level": level, "bits": entropy(known)}
                    | {"privacy": distortion_privacy(known, found.channel, distances, attack)}
                    | {"promised": found.certificate.distortion}
                    | {"under_prior": distortion_privacy(prior, found.channel, distances, attack)}
                    | _certified(found)
                )
    return rows


def judged(mechanism: str, prior, distances, epsilon, d_m, found: Optimum) -> dict:
    """One row: the thresholds (None where there is none), cost, privacy against the optimal attack (19) and against the Bayes
    attack (25) in m, and the certificate: bound (no channel costs less), gap, violation, effective_epsilon (1/m; None for (21)), exact, solver."""
    return {
        "mechanism": mechanism,
        "epsilon": None if epsilon is None else float(epsilon),
        "d_m": None if d_m is None else float(d_m),
        "cost": found.certificate.cost,
        "privacy": _privacy(prior, found.channel, distances),
        "bayes": distortion_privacy(prior, found.channel, distances, bayes(prior, found.channel)),
    } | _certified(found)


def _privacy(prior, channel, distances) -> float:
    return distortion_privacy(prior, channel, distances, optimal_attack(prior, channel, distances))


def _certified(found: Optimum) -> dict:
    c = found.certificate
    return {
        "bound": float(c.bound),
        "gap": float(c.gap),
        "violation": float(c.violation),
        "effective_epsilon": None if np.isnan(c.epsilon) else float(c.epsilon),  # none was asked for
        "exact": bool(c.exact),
        "solver": c.solver,
    }


def of_all(
    scenario: Callable[..., list[dict]],
    priors: Iterable,
    *arguments,
    keep: Callable[[str, Callable], list[dict]] = lambda name, compute: compute(),
    workers: int = 2,
) -> list[dict]:
    """``scenario(prior, *arguments)`` for every prior, in ``workers`` processes: all rows, each with its ``user`` from 1 on.

    ``keep(name, compute)`` gets the rows of one user: :func:`mobpriv.book.step` keeps them, so that an interrupted run goes on.
    The numbers do not depend on ``workers``: every user is computed with one thread.
    """
    _whole("workers", workers)
    priors = list(checks.prior(np.array(list(priors), float), several=True))
    names = [f"{scenario.__name__}-{user}" for user in range(1, 1 + len(priors))]
    if workers == 1:
        tables = [
            keep(name, lambda prior=prior: _alone(scenario, prior, *arguments))
            for name, prior in zip(tqdm(names, disable=None), priors, strict=True)
        ]
    else:
        # A thread for each process waits for it, so that a user whose rows are kept already is never handed over.
        with ThreadPoolExecutor(workers) as threads, processes.pool(workers) as pool:  # the pool ends first, at once if need be
            waiting = threads.map(
                lambda name, prior: keep(name, lambda: pool.submit(_alone, scenario, prior, *arguments).result()), names, priors
            )
            tables = list(tqdm(waiting, total=len(names), disable=None))
    return [{"user": user} | row for user, table in enumerate(tables, 1) for row in table]


def _alone(scenario, *arguments):
    with threadpool_limits(1):
        return scenario(*arguments)
