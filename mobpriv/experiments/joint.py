"""Run the experiments of §9: the area, the users and their priors, scenarios 1, 2 and 3 (§9.1) and the prior study (§9.2).

A scenario takes one user's :class:`mobpriv.channels.area.Area` and the thresholds, ε in 1/m and d_m in m. It returns one row, a
plain dict, per solved channel; :func:`for_each_user` runs it for all users. :func:`readable`, :func:`per_km` and
:func:`cost_and_privacy` convert to the kilometres of the pages.

(22) has many optimal channels, with different distortion privacy AP. The paper sets d_m to "the" AP of p_ε without a rule; here
p_ε is the optimal channel of largest AP.

Source: Shokri, "Privacy games", PETS 2015, §9.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd
from tqdm import tqdm

from mobpriv.base import processes
from mobpriv.base.numbers import counted, shown
from mobpriv.base.ranges import positive, whole
from mobpriv.channels import checks
from mobpriv.channels.area import Area
from mobpriv.channels.guarantees import effective_epsilon
from mobpriv.channels.inference import bayes
from mobpriv.channels.optimal import Optimum
from mobpriv.channels.priors import Priors, better_informed, densest_area, entropy, most_active, priors
from mobpriv.channels.rivals import planar_laplace
from mobpriv.datasets import DATASETS, Dataset
from mobpriv.experiments.days import choose, chosen_users, in_halves
from mobpriv.ground.grid import AreaGrid
from mobpriv.traces.table import Traces
from mobpriv.traces.table import rows as records

AP_ROUNDING = 1e-9
"""An AP is known up to rounding. Used as d_m of another channel it is lowered by this share, or (24) might have no solution."""
_SOLVER_ROUNDING = 1e-12
"""A probability below this is 0 up to the solver's rounding."""
_MAX_THRESHOLDS = 1000
"""Largest number of values of d_m in scenario 3; each needs a linear program of its own and one for every ε."""
KM = 1000.0  # m
# columns of the scenarios' rows, in m
_LENGTH_COLUMNS = ("d_m", "privacy", "privacy_bound", "middle", "floor", "as_written", "bayes", "promised", "under_prior")


class Setting(NamedTuple):
    data: Dataset
    traces: Traces  # of everybody
    grid: AreaGrid
    users: list[str]  # the most active first; pages call them 1, 2, …
    priors: Priors  # by maximum likelihood, rows in the order of users
    selection: str  # all of this in words, without a full stop at the end


class SplitSetting(NamedTuple):
    data: Dataset
    grid: AreaGrid
    known: Traces  # records of the users inside the area, in the training half
    secret: Traces  # in the half that is published
    users: list[str]  # the users with the most known records, the most active first
    attacked: pd.Index  # users with secret records
    person: dict[str, str]  # a second name of one person -> her first name
    selection: str  # all of this in words


def per_km(epsilon: float) -> str:
    """Write ε in 1/km as results and pages do, without trailing zeros."""
    return f"{KM * epsilon:g}"


def readable(rows: list[dict]) -> pd.DataFrame:
    """Return the rows of a scenario as a table in the reader's units: ε in 1/km, lengths in km."""
    table = pd.DataFrame(rows)
    table["epsilon"] = (KM * table["epsilon"]).round(9)
    return table.assign(**{name: table[name] / KM for name in _LENGTH_COLUMNS if name in table})


def cost_and_privacy(area: Area, channel) -> dict[str, float]:
    """Return the cost, the AP in km and the effective ε in 1/m of any channel."""
    expected = float(area.prior @ (channel * area.cost).sum(axis=1))
    return {"cost": expected, "AP": area.ap(channel) / KM, "epsilon": effective_epsilon(channel, area.distances)}


def laplace_channel(grid: AreaGrid, epsilon: float) -> np.ndarray:
    """Return planar Laplace noise, ε in 1/m, between the cells of an area."""
    return planar_laplace(np.linspace(0, grid.width, grid.columns + 1), np.linspace(0, grid.height, grid.rows + 1), epsilon)


def prepare(
    dataset: str = "city",
    width_km: float = 15.0,
    height_km: float = 8.0,
    columns: int = 20,
    rows: int = 15,
    users: int = 10,
    begins: str = "",  # only users whose name begins so; "" takes the persons if the data set marks them, else everybody
    leave_out: str = "",  # users to leave out, separated by commas
    max_users: int = 0,  # consider only the first so many of these users by name; 0 considers all
    minutes: float = 0.0,  # enlarge the cells if the estimated time is longer; 0 keeps them
    programs: float = 0.0,  # of each user, for that estimate: see :func:`estimated`
) -> Setting:
    """Choose the densest area of a data set and its most active users, in place of the paper's "10 randomly selected users".

    ValueError, before anything is read, if no optimal channel can be computed for the area, see `checks.affordable`.
    """
    columns, rows, users = _checked_area(width_km, height_km, columns, rows, users)
    begins = begins or _person_prefix(dataset)
    data, traces, restriction = chosen_users(dataset, leave_out, max_users, begins)
    users = _number_of_users(traces["user"].cat.categories, users, begins, leave_out, max_users)

    select = _selection(traces, width_km, height_km, users, begins, those_inside=bool(max_users))
    (grid, chosen, user_priors), coarser = _in_time(select, columns, rows, minutes, programs)
    checks.affordable(grid.size, int(user_priors.records["cells"].max()))
    inside, outside = (int(user_priors.records[where].sum()) for where in ("inside", "outside"))
    words = (
        f"We choose the {'user' if len(chosen) == 1 else counted(len(chosen), 'user')} with the most records in the densest "
        f"{width_km:g} × {height_km:g} km, divided into {grid.columns} × {grid.rows} cells{coarser}. "
        f"We use the {shown(inside)} records inside this area"
    )
    words += f", not the {shown(outside)} records outside" if outside else ""
    words += f". We consider only users whose names begin with {begins}" if begins else ""
    return Setting(data, traces, grid, chosen, user_priors, words + restriction)


def estimated(user_priors: Priors, cells: int, programs: float) -> float:
    """Estimate the minutes that the optimal channels of all users take on one core.

    ``programs``: the time of a user's channels in units of the hardest program's time (`checks.OF_ALL`, `checks.OF_VISITED`).
    """
    visited = user_priors.records["cells"].to_numpy(float)
    return programs * float((checks.OF_ALL * cells**3 + checks.OF_VISITED * visited**3).sum()) / 60


def _selection(traces: Traces, width_km: float, height_km: float, users: int, begins: str, those_inside: bool) -> Callable:
    """Return the choice of area, users and priors by columns and rows; ``those_inside``: fewer users if fewer are inside."""

    def select(columns: int, rows: int) -> tuple[AreaGrid, list[str], Priors]:
        grid = densest_area(traces, KM * width_km, KM * height_km, columns, rows)
        chosen = most_active(traces, grid, min(users, _users_inside(traces, grid, begins)) if those_inside else users, begins)
        return grid, chosen, priors(traces, grid, chosen)

    return select


def _in_time(select: Callable, columns: int, rows: int, minutes: float, programs: float) -> tuple[tuple, str]:
    """Compute ``on(columns, rows)`` for the finest cells, not finer than asked, whose channels take at most ``minutes``.

    Returns the result and a description ("" for the cells asked for). The estimate uses the cells that users visited, not a
    clock.
    """
    selected = select(columns, rows)
    needed = first = estimated(selected[2], columns * rows, programs)
    if not minutes or needed <= minutes:
        return selected, ""
    asked, visited = f"{columns} × {rows}", int(selected[2].records["cells"].max())
    while needed > minutes and columns * rows > 1:
        # time grows with the cube of the number of cells, which is the square of the side
        share = (minutes / needed) ** (1 / 6)
        columns, rows = max(1, int(columns * share)), max(1, int(rows * share))
        selected = select(columns, rows)
        needed = estimated(selected[2], columns * rows, programs)
    return selected, (
        f" instead of {asked}. Users visited up to {visited} of the {asked} cells, so the channels would take about {first:.0f} min. "
        f"The parameter minutes = {minutes:g} allows less time (0 keeps the {asked} cells)"
    )


def _person_prefix(dataset: str) -> str:
    """Return the prefix of persons' names in a known data set that also has other users."""
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
    max_users: int = 0,
    minutes: float = 0.0,
    programs: float = 0.0,
) -> SplitSetting:
    """Choose the area and the users of :func:`prepare` in the training half of traces, and return both halves.

    Days and halves are those of the re-identification chapter: the first half of the days and the rest. There are at most as
    many users as have a known record inside the area.
    """
    columns, rows, users = _checked_area(width_km, height_km, columns, rows, users)
    begins = begins or _person_prefix(dataset)
    setting = in_halves(choose(dataset, start, days, leave_out, max_users, begins), "calendar", days)

    select = _selection(setting.known, width_km, height_km, users, begins, those_inside=True)
    (grid, chosen, _), coarser = _in_time(select, columns, rows, minutes, programs)
    of_chosen = [records(half, half["user"].isin(chosen).to_numpy()) for half in (setting.known, setting.secret)]
    known, secret = (records(half, _inside(half, grid)) for half in of_chosen)
    attacked = secret["user"].cat.categories
    words = (
        f"We choose the {counted(len(chosen), 'user')} with the most training records in the densest {width_km:g} × {height_km:g} km, "
        f"divided into {grid.columns} × {grid.rows} cells{coarser}. "
        f"We use their {shown(len(known))} training and {shown(len(secret))} test records inside this area, not the "
        f"{shown(len(of_chosen[0]) - len(known))} and {shown(len(of_chosen[1]) - len(secret))} outside. "
        f"We attack {counted(len(attacked), 'user')}. {setting.selection.replace('The data have', 'The whole data set has', 1)}"
    )
    return SplitSetting(setting.data, grid, known, secret, chosen, attacked, setting.person, words)


def check_costs(setting: Setting) -> None:
    """Refuse a user with records in only one cell: every channel costs her nothing, so costs have no ratio."""
    alone = np.flatnonzero(setting.priors.records["cells"].to_numpy() == 1)
    if len(alone):
        raise ValueError(
            f"all records of user {alone[0] + 1} of the {len(setting.users)} most active lie in one of the {setting.grid.columns} × "
            f"{setting.grid.rows} cells, where every channel costs nothing: take smaller cells (more columns and rows, a smaller "
            "area) or fewer users"
        )


def check_step(step: float, d_max: float) -> None:
    """Refuse a step of d_m (m) that is not positive, or so small that scenario 3 up to ``d_max`` (m) would not end."""
    positive("step", step, "m")
    if d_max / step >= _MAX_THRESHOLDS + 1:
        raise ValueError(
            f"a step of {step:g} m makes {d_max / step:,.0f} values of d_m up to d_max = {d_max:,.0f} m, each a linear program "
            f"for every epsilon: at most {_MAX_THRESHOLDS:,} are solved; take a step of at least {d_max / _MAX_THRESHOLDS:.2g} m"
        )


def records_per_cell(setting: Setting) -> np.ndarray:
    """Count the records of all users in each cell of the area."""
    cells = setting.grid.cells(setting.traces["lat"].to_numpy(), setting.traces["lng"].to_numpy())
    return np.bincount(cells[cells >= 0], minlength=setting.grid.size)


def _inside(traces: Traces, grid: AreaGrid) -> np.ndarray:
    return grid.cells(traces["lat"].to_numpy(), traces["lng"].to_numpy()) >= 0


def _users_inside(traces: Traces, grid: AreaGrid, begins: str) -> int:
    """Count the users with records inside, at least 1; an area without records is refused where its users are chosen."""
    names = traces["user"].astype(str)[_inside(traces, grid)]
    return max(names[names.str.startswith(begins)].nunique(), 1)


def _checked_area(width_km: float, height_km: float, columns: int, rows: int, users: int) -> list[int]:
    """Return columns, rows and users; refuse an area for which no optimal channel can be computed, see `checks.affordable`."""
    for name, km in (("width_km", width_km), ("height_km", height_km)):
        positive(name, km, "km")
    counts = [whole(name, number, 1) for name, number in (("columns", columns), ("rows", rows), ("users", users))]
    checks.affordable(counts[0] * counts[1])
    return counts


def _number_of_users(names, users: int, begins: str, leave_out: str, max_users: int) -> int:
    """Return the number of users to choose; refuse more than there are.

    For a part of the data set (``max_users``) take those there are, because their number is not known in advance.
    """
    matching = sum(name.startswith(begins) for name in names)
    if not matching:
        raise ValueError(f"no user's name begins with begins = {begins!r}, of {len(names)} users: leave it empty to take all")
    if users > matching and not max_users:
        condition = f" whose name begins with {begins!r}" if begins else ""
        condition += " and that is not left out" if leave_out else ""
        raise ValueError(f"users must be at most {matching}, the number of users of the data set{condition} (got {users})")
    return min(users, matching)


def _check_each(name: str, values, rule: str, holds: Callable[[np.ndarray], np.ndarray]) -> None:
    """Refuse anything but a list of numbers, and a number that breaks the rule."""
    numbers = np.asarray(values)
    if numbers.ndim != 1 or numbers.dtype.kind not in "iuf":
        raise ValueError(f"{name} must be a list of numbers (got {values!r})")
    wrong = np.flatnonzero(~holds(numbers))
    if len(wrong):
        raise ValueError(f"{name} must be {rule} (got {numbers[wrong[0]]:g} at place {wrong[0]})")


def _check_epsilons(epsilons) -> None:
    _check_each("epsilons", epsilons, "positive and finite, in 1/m", lambda e: (e > 0) & np.isfinite(e))
    if not len(epsilons):
        raise ValueError("epsilons must hold at least one privacy level, in 1/m (got none)")


def scenario_1(area: Area, epsilons) -> list[dict]:
    """Solve (22) for p_ε, (21) for p_dm and (24) for p_ε,dm with d_m = AP(p_ε), for every ε; rows of :func:`_result_row`.

    p_ε satisfies (24c) at this d_m and is therefore optimal for (24). By construction the joint cost equals the differential
    cost, and the constraint on the distortion privacy adds nothing. (24) is solved all the same.

    Further fields in the rows of p_ε:

    * ``middle``: the AP of another optimal channel of (22), from the middle of the optimal set (m).
    * ``privacy_bound``: an upper bound of the AP of all optimal channels of (22) (m).
    * ``floor``: a lower bound of the AP of all ε-private channels (m).
    * ``silence``: the cost of the constant report of the likeliest cell.
    * ``named``: how often p_ε reports this cell.

    Further field in the rows of p_dm: ``kept``, its effective ε (1/m; infinite if it is not private for any ε).
    """
    _check_epsilons(epsilons)
    rows, likeliest = [], int(np.argmax(area.prior))
    for epsilon in epsilons:
        optimum = area.differential(epsilon)
        d_m = optimum.certificate.distortion * (1 - AP_ROUNDING)
        middle = area.differential(epsilon, largest_ap=False).channel
        row = _result_row(area, "differential", epsilon, d_m, optimum)
        bound = optimum.certificate.distortion_bound or area.d_max
        row |= {"middle": area.ap(middle), "privacy_bound": bound, "floor": floor(area, epsilon)}
        row |= {"silence": constant_channel_cost(area.prior), "named": float(area.prior @ optimum.channel[:, likeliest])}
        distortion = area.distortion(d_m)
        kept = effective_epsilon(np.where(distortion.channel < _SOLVER_ROUNDING, 0.0, distortion.channel), area.distances)
        rows += [row, _result_row(area, "distortion", epsilon, d_m, distortion) | {"kept": kept}]
        optimum = area.joint(d_m, epsilon)
        rows.append(_result_row(area, "joint", epsilon, d_m, optimum))
    return rows


def constant_channel_cost(prior) -> float:
    """Return the cost of always reporting the likeliest cell: wrong in every other cell, and without information."""
    return float(1 - np.max(prior))


def floor(area: Area, epsilon: float) -> float:
    """Return the AP that ε alone guarantees, in m: max_a min_ŝ Σ_s π(s) exp(-ε d(a, s)) d(ŝ, s).

    By (15) every secret s gives an observable at least exp(-ε d(a, s)) times as often as a does. Insert this into AP = Σ_o
    min_ŝ Σ_s π(s) p(o|s) d(ŝ, s): the sum over o of p(o|a) is 1. The bound holds for the ε-private channels of any cost and for
    every reference cell a.
    """
    weighted = area.prior * np.exp(-epsilon * area.distances)  # (a, s)
    return float((weighted @ area.distances).min(axis=1).max())


def frontier(area: Area, epsilons, shares) -> list[dict]:
    """Return the least cost at every d_m, given as ``shares`` of d_max: rows of (21), and of (24) for every ε.

    Shares are below 1, where nothing can be varied. Rows: mechanism, epsilon (None for (21)), ``share``, d_m (m; of (22) its
    AP), cost, exact. Up to AP(p_ε) the cost of (24) is that of (22), which satisfies (24c) there. Beyond, the cost is convex in
    d_m, and its slope is ν, the multiplier of (24c). The slope between two rows is between their values of ν.
    """
    _check_epsilons(epsilons)
    _check_each("shares", shares, "at least 0 and below 1", lambda share: (share >= 0) & (share < 1))
    d_max = area.d_max

    def row(mechanism, epsilon, share, optimum):
        of = {"mechanism": mechanism, "epsilon": epsilon, "share": float(share), "d_m": float(share * d_max)}
        return of | {"cost": optimum.certificate.cost, "exact": bool(optimum.certificate.exact)}

    rows = [row("distortion", None, s, area.distortion(s * d_max)) for s in shares]
    for epsilon in epsilons:
        private = area.differential(epsilon)
        rows.append(row("differential", epsilon, private.certificate.distortion / d_max, private))
        for share in shares:
            rows.append(row("joint", epsilon, share, of_largest_ap(area, share * d_max, epsilon, private)))
    return rows


def scenario_2(area: Area, epsilons, shares) -> list[dict]:
    """Solve (22) for every ε, then (21) and (24) for d_m above AP(p_ε); rows of :func:`_result_row`.

    d_m is the given ``shares`` of the way from AP(p_ε) to d_max, the largest AP of any channel. The paper says only "some
    values of d_m that are higher". Rows have the ``share``. If AP(p_ε) = d_max up to 1e-6 there is no such d_m, and only the
    row of p_ε.
    """
    _check_epsilons(epsilons)
    _check_each("shares", shares, "above 0 and at most 1", lambda share: (share > 0) & (share <= 1))
    if not len(shares):
        raise ValueError("shares must hold at least one number, above 0 and at most 1 (got none)")
    d_max = area.d_max
    rows = []
    for epsilon in epsilons:
        optimum = area.differential(epsilon)
        ap = optimum.certificate.distortion
        rows.append(_result_row(area, "differential", epsilon, ap, optimum))
        for share in shares if ap < d_max * (1 - 1e-6) else ():
            d_m = ap + share * (d_max - ap)
            optimum = area.distortion(d_m)
            rows.append(_result_row(area, "distortion", epsilon, d_m, optimum) | {"share": share})
            optimum = area.joint(d_m, epsilon)
            rows.append(_result_row(area, "joint", epsilon, d_m, optimum) | {"share": share})
    return rows


def scenario_3(area: Area, epsilons, step: float = 500.0) -> list[dict]:
    """Solve (22) for every ε, (21) for every d_m and (24) for every pair; rows of :func:`_result_row`.

    d_m = ``step``, 2 ``step``, … up to d_max (m). If d_m ≤ AP(p_ε), p_ε is optimal for (24), as in scenario 1: it is used, and
    the row has ``reused``. (24) is solved there all the same, as in the paper: ``as_written`` is the AP of that optimum without
    our rule (m). In the rows of p_ε ``as_written`` is the AP of an optimum of (22) without the rule.
    """
    _check_epsilons(epsilons)
    d_max = area.d_max
    check_step(step, d_max)
    thresholds = step * np.arange(1, 1 + int(d_max / step))
    distortion_optima = {d_m: area.distortion(d_m) for d_m in thresholds}
    rows = [_result_row(area, "distortion", None, d_m, optimum) for d_m, optimum in distortion_optima.items()]
    for epsilon in epsilons:
        private = area.differential(epsilon)
        plain = area.differential(epsilon, largest_ap=False).channel
        row = _result_row(area, "differential", epsilon, None, private)
        rows.append(row | {"as_written": area.ap(plain)})
        for d_m in thresholds:
            reused = bool(d_m <= private.certificate.distortion)
            written = area.joint(d_m, epsilon)
            optimum = private if reused else written
            row = _result_row(area, "joint", epsilon, d_m, optimum) | {"reused": reused}
            rows.append(row | {"as_written": written.certificate.distortion})
    return rows


def of_largest_ap(area: Area, d_m: float, epsilon: float, private: Optimum | None = None) -> Optimum:
    """Return the optimal channel of (24) with the largest AP; ``private``: that of (22), if known.

    If d_m is at most the AP of ``private``, this channel satisfies (24c), and no optimum of (24) has a larger AP. Above it d_m
    binds: every optimum has the AP d_m (scenario 2).
    """
    private = private or area.differential(epsilon)
    if d_m <= private.certificate.distortion:
        return private
    return area.joint(d_m, epsilon)


def prior_knowledge(area: Area, epsilons, weights, powers=(), places: int = 2) -> list[dict]:
    """§9.2: make channels for π and attack them with adversaries who know π̂.

    * "differential": p_ε of (22).
    * "distortion": p_dm of (21) with d_m = AP(p_ε).
    * "joint": p_ε,dm of (24) with d_m half-way from AP(p_ε) to d_max, if AP(p_ε) < d_max.
    * "distortion above": (21) with this d_m.

    π̂ is one of the following; the paper has no formula:

    * ``weights`` (0 is π itself): :func:`mobpriv.channels.priors.better_informed` with the likeliest ``places`` cells, and with one
      cell.
    * ``powers`` (1 is π itself): proportional to a power of π.

    Rows: mechanism, epsilon, ``kind`` ("weight", "place" for the one cell, or "power"), ``level``, bits (the entropy of π̂)
    and, in m:

    * privacy: the expected error (7) of the optimal attack (19) for π̂ if the secret is distributed as π̂.
    * ``promised``: the AP for π.
    * ``under_prior``: the error of this attack if the secret is distributed as π; never below the AP for π.
    """
    _check_epsilons(epsilons)
    _check_each("weights", weights, "in [0, 1]", lambda w: (w >= 0) & (w <= 1))
    _check_each("powers", powers, "positive and finite", lambda k: (k > 0) & np.isfinite(k))
    if not len(weights) + len(powers):
        raise ValueError("weights and powers are both empty: there is no adversary to attack the channels")
    prior = area.prior
    adversaries = [("weight", float(w), better_informed(prior, w, places)) for w in weights]
    if places > 1:  # one cell is not far from another likelier one, but perhaps from the best guess
        adversaries += [("place", float(w), better_informed(prior, w, 1)) for w in weights if w > 0]
    adversaries += [("power", float(k), prior**k / (prior**k).sum()) for k in powers]
    rows = []
    for epsilon in epsilons:
        private = area.differential(epsilon)
        distortion = area.distortion(private.certificate.distortion * (1 - AP_ROUNDING))
        channels = {"differential": private, "distortion": distortion}
        d_max, ap = area.d_max, private.certificate.distortion
        if ap < d_max * (1 - 1e-6):
            d_m = (ap + d_max) / 2
            channels["joint"] = area.joint(d_m, epsilon)
            channels["distortion above"] = area.distortion(d_m)
        for kind, level, known in adversaries:
            adversary = replace(area, prior=known)
            for name, optimum in channels.items():
                attack = adversary.attack(optimum.channel)
                rows.append(
                    {"mechanism": name, "epsilon": float(epsilon), "kind": kind, "level": level, "bits": entropy(known)}
                    | {"privacy": adversary.ap(optimum.channel, attack)}
                    | {"promised": optimum.certificate.distortion}
                    | {"under_prior": area.ap(optimum.channel, attack)}
                    | _certified(optimum)
                )
    return rows


def _result_row(area: Area, mechanism: str, epsilon, d_m, optimum: Optimum) -> dict:
    """Return one row: the thresholds (None if absent), cost, privacy, bayes and the certificate.

    * privacy, bayes: expected error in m of the optimal attack (19) and of the Bayes attack (25).
    * bound (no channel costs less), gap, violation, effective_epsilon (1/m; None for (21)), exact, solver.
    """
    return {
        "mechanism": mechanism,
        "epsilon": None if epsilon is None else float(epsilon),
        "d_m": None if d_m is None else float(d_m),
        "cost": optimum.certificate.cost,
        "privacy": area.ap(optimum.channel),
        "bayes": area.ap(optimum.channel, bayes(area.prior, optimum.channel)),
    } | _certified(optimum)


def _certified(optimum: Optimum) -> dict:
    certificate = optimum.certificate
    return {
        "bound": float(certificate.bound),
        "gap": float(certificate.gap),
        "violation": float(certificate.violation),
        "effective_epsilon": None if np.isnan(certificate.epsilon) else float(certificate.epsilon),  # no ε was requested
        "exact": bool(certificate.exact),
        "solver": certificate.solver,
    }


def for_each_user(
    scenario: Callable[..., list[dict]],
    priors: Iterable,
    distances,
    *arguments,
    keep: Callable[[str, Callable], list[dict]] = lambda name, compute: compute(),
    workers: int = 2,
) -> list[dict]:
    """Run ``scenario(Area(prior, distances), *arguments)`` for every prior; return all rows, each with its ``user`` from 1 on.

    ``keep(name, compute)`` stores the rows of one user, for example with :func:`mobpriv.book.step`, so that an interrupted run
    continues. The numbers do not depend on the number of processes, ``workers``: every user is computed with one thread.
    """
    workers = whole("workers", workers, 1)
    areas = [Area(prior, distances) for prior in checks.prior(np.array(list(priors), float), several=True)]
    names = [f"{scenario.__name__}-{user}" for user in range(1, 1 + len(areas))]
    if workers == 1:
        tables = [
            keep(name, lambda area=area: processes.in_one_thread(scenario, area, *arguments))
            for name, area in zip(tqdm(names, disable=None), areas, strict=True)
        ]
    else:
        # one waiting thread per process: users whose rows are stored already are never sent to a process
        # the pool ends first, immediately on an error
        with ThreadPoolExecutor(workers) as threads, processes.pool(workers) as pool:
            waiting = threads.map(
                lambda name, area: keep(
                    name, lambda: pool.submit(processes.in_one_thread, scenario, area, *arguments).result()
                ),
                names,
                areas,
            )
            tables = list(tqdm(waiting, total=len(names), disable=None))
    return [{"user": user} | row for user, table in enumerate(tables, 1) for row in table]
