"""The Sociometer's own errors, and how much its labels vary between seeds and between users.

Source: Pratesi, Gabrielli, Cintia, Monreale and Giannotti, *PRIMULE: Privacy Risk Mitigation for User Profiles*, §3.2 and §7.
"""

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from typing import NamedTuple

import numpy as np
import pandas as pd

from mobpriv.base.estimates import Estimate, clustered_ratio, rank_correlation, spread
from mobpriv.base.ranges import whole
from mobpriv.icp.archetypes import CATEGORIES, PASSING, SLOTS, WEEK_PARTS, archetypes
from mobpriv.icp.rows import Distinct, distinct, factorize_places
from mobpriv.icp.sociometer import PROGRAM, Fitted, Sociometer, labelled, passes_by, profile_array
from mobpriv.mechanisms.icp import NoisyProfiles
from mobpriv.metrics.classification import confusion_counts, kappa

# ------------------------------------------------------- Measure the Sociometer's own errors, before any profile is protected
# The paper takes the Sociometer's labels of the original profiles as the truth, "since we do not have any other official
# information", and re-clusters private profiles. So its confusion matrices include the Sociometer's own noise (here: the original
# profiles clustered with other seeds). They do not show the accuracy of its labels (here: against the true roles of a synthetic
# region).
_SEEDS = 5
MERGED_CLASSES = {"visitor or passing by": ("visitor", "passing by")}  # §7.2: "if we would join visitors and passing by users"


class Roles(NamedTuple):
    role: pd.Categorical  # of each profile; missing if it has none
    left_out: pd.DataFrame  # rule, role, pairs, users: what no score includes


class Control(NamedTuple):
    """Labels of the same profiles under several seeds, compared pairwise both ways; intervals are least and largest value."""

    agreement: Estimate  # share of profiles with the same label
    kappa: Estimate
    confusion: pd.DataFrame  # true (the one seed), found (the other), value, low, high, n
    labels: np.ndarray  # (seeds, d): of the distinct profiles, or (seeds, n) with prototypes per municipality
    sizes: np.ndarray  # how many profiles each column represents


def daily_curve(values) -> tuple[float, float, float]:
    """Return the mean presence in P1, P2 and P3 over profiles, weeks and week parts, relative to P2; at most 1."""
    mean = profile_array(values).reshape(len(values), -1, WEEK_PARTS, SLOTS).mean(axis=(0, 1, 2))
    if not mean[1] > 0:
        raise ValueError("a daily curve is relative to P2, where these profiles have no call: check the profiles")
    return tuple(float(min(1.0, m / mean[1])) for m in mean)


def settings(values) -> dict[str, Sociometer]:
    """Return the Sociometer as described in §3.2, variants with one choice changed each, and the authors' program."""
    curved = archetypes(curve=daily_curve(values))
    return {
        "default": Sociometer(),
        "settled k-means": Sociometer(start="k-means++", iterations=300),
        "20 prototypes": Sociometer(prototypes=20),
        "500 prototypes": Sociometer(prototypes=500),
        "visits of 2 to 4 days": Sociometer(archetypes=archetypes(visit_days=(2, 3, 4))),
        "passing by: rule": Sociometer(passing="rule"),
        "Manhattan": Sociometer(distance="manhattan"),
        "cosine": Sociometer(distance="cosine"),
        "daily curve": Sociometer(archetypes=curved),
        "daily curve, cosine": Sociometer(archetypes=curved, distance="cosine"),
        "program": PROGRAM,
    }


def true_roles(profiles: pd.DataFrame, roles: pd.DataFrame) -> Roles:
    """Look up the role of each profile (columns user, municipality) in a table of roles (person, municipality, role).

    Profiles without a role and roles without a call are counted, by role: the Sociometer cannot label users without calls.
    """
    known = roles.rename(columns={"person": "user"})[["user", "municipality", "role"]].astype("str")
    keys = ["user", "municipality"]
    for table, name in ((known, "roles"), (profiles, "profiles")):
        twice = table.duplicated(keys)
        if twice.any():
            user, municipality = table[keys].iloc[int(twice.to_numpy().argmax())]
            raise ValueError(f"{name} must have a user in a municipality once ({user} occurs twice in {municipality})")
    unknown = ~known["role"].isin(CATEGORIES)
    if unknown.any():
        raise ValueError(
            f"roles must be among {', '.join(CATEGORIES)} ({int(unknown.sum())} are not, first: {known['role'].iloc[int(unknown.to_numpy().argmax())]})"
        )
    pairs = pd.DataFrame({key: profiles[key].astype("str").to_numpy() for key in keys})
    joined = pairs.merge(known, on=keys, how="outer", indicator=True)
    role = pairs.merge(known, on=keys, how="left")["role"]
    rows = []
    for rule, side in (("a profile, but no role", "left_only"), ("a role, but no call", "right_only")):
        out = joined[joined["_merge"] == side]
        for one in (None,) if side == "left_only" else CATEGORIES:
            missing = out if one is None else out[out["role"] == one]
            rows.append((rule, one or "", len(missing), missing["user"].nunique()))
    return Roles(pd.Categorical(role, list(CATEGORIES)), pd.DataFrame(rows, columns=["rule", "role", "pairs", "users"]))


def control(sociometer: Sociometer, values, rng: np.random.Generator, seeds: int = _SEEDS, where=None) -> Control:
    """Measure the Sociometer's own noise: cluster the same profiles with ``seeds`` seeds; more seeds start with the same ones.

    ``where``: separate prototypes in each municipality, as in :func:`mobpriv.icp.sociometer.labelled`.
    """
    whole("seeds", seeds, 2)
    values = profile_array(values)
    if where is None:
        values, sizes, _ = distinct(values)
        labels = np.array([sociometer.fit(values, sizes, child).codes(values) for child in rng.spawn(seeds)])
    else:
        sizes = np.ones(len(values), np.int64)
        labels = np.array([labelled(sociometer, values, child, where) for child in rng.spawn(seeds)])
    tables = np.array(
        [confusion_counts(labels[a], labels[b], CATEGORIES, sizes=sizes) for a, b in permutations(range(seeds), 2)]
    )
    with np.errstate(invalid="ignore"):
        share = tables / tables.sum(axis=2, keepdims=True)
    rows = []
    for i, true in enumerate(CATEGORIES):
        for j, predicted in enumerate(CATEGORIES):
            known = share[:, i, j][~np.isnan(share[:, i, j])]  # NaN: the class does not occur in that pair
            estimate = spread(known) if len(known) else Estimate(np.nan, np.nan, np.nan, 0)
            rows.append({"true": true, "found": predicted, **estimate})
    same = np.trace(tables, axis1=1, axis2=2) / sizes.sum()
    return Control(spread(same), spread([kappa(t) for t in tables]), pd.DataFrame(rows), labels, sizes)


def ceiling(role, group) -> float:
    """Return the largest accuracy that *any* labels of the groups can have: each group gets its most frequent role.

    ``group`` (n,): for example the prototype of each profile; then the remaining error is not due to the archetypes. With its
    distinct profile, the remaining error is due to the profiles alone. The bound uses the roles themselves, so no classifier
    needs to reach it.
    """
    codes = pd.Categorical(role, list(CATEGORIES)).codes
    has_role = codes >= 0
    if len(codes) != len(group) or not has_role.any():
        raise ValueError(
            f"a ceiling needs a group for each role, and one role or more (got {len(codes)} and {len(group)}, {has_role.sum()} roles)"
        )
    index, names = pd.factorize(np.asarray(group)[has_role])
    counts = np.bincount(index * len(CATEGORIES) + codes[has_role], minlength=len(names) * len(CATEGORIES)).reshape(
        -1, len(CATEGORIES)
    )
    return float(counts.max(axis=1).sum() / has_role.sum())


def by_size(true, predicted, where, rng: np.random.Generator, draws: int = 200, group=None) -> pd.DataFrame:
    """§7.2: test whether a municipality's confusion matrix differs from the others' more than by chance.

    One row per municipality:

    * ``profiles``; ``left_out``: profiles of classes that the others do not have.
    * ``distance``: total variation between the row shares of its matrix and the others', averaged over its profiles.
    * ``expected``: mean distance of ``draws`` random pairs of matrices; ``excess`` = distance − expected.
    * ``p``: the share of random pairs with at least this distance.

    Small municipalities have large distances by chance alone; only the excess shows a difference. The random pairs redistribute
    the profiles of each class with the common shares. For profiles published in groups, all of a group have one label:
    ``group`` (n,) names the group, and whole groups are redistributed, as many as the municipality has. ValueError for a group
    in several municipalities.
    """
    whole("draws", draws, 1)
    counts = confusion_counts(true, predicted, CATEGORIES, where)
    place, names = factorize_places(where, len(where))
    if len(names) < 2:
        raise ValueError(f"a municipality is compared with the others: there must be two or more (got {len(names)})")
    of_group = None if group is None else _groups(true, predicted, place, group)
    rows, total = [], counts.sum(axis=0)
    for i, (name, matrix, child) in enumerate(zip(names, counts, rng.spawn(len(names)), strict=True)):
        others = total - matrix
        distance, left_out = float(_total_variation(matrix, others)), int(matrix[others.sum(axis=1) == 0].sum())
        expected = p = np.nan
        if not np.isnan(distance):
            if of_group is None:
                pair = _redistributed(matrix, others, child, draws)
            else:
                # as many groups as the municipality has, without replacement, and all the others
                matrices, home = of_group
                n = int((home == i).sum())
                drawn = np.array([matrices[child.permutation(len(matrices))[:n]].sum(axis=0) for _ in range(draws)])
                pair = drawn, total - drawn
            drawn = _total_variation(*pair)
            drawn = drawn[~np.isnan(drawn)]  # NaN: groups that share no class with the others
            expected, p = float(drawn.mean()), float((drawn >= distance - 1e-12).mean())
        rows.append((name, int(matrix.sum()), distance, expected, distance - expected, p, left_out))
    return pd.DataFrame(rows, columns=["municipality", "profiles", "distance", "expected", "excess", "p", "left_out"])


def _redistributed(matrix: np.ndarray, others: np.ndarray, rng: np.random.Generator, draws: int) -> list[np.ndarray]:
    """Draw pairs of matrices with the row sums of these two from their common shares, each (draws, classes, labels)."""
    total = matrix + others
    common = total / np.maximum(total.sum(axis=1, keepdims=True), 1)
    return [
        np.stack([rng.multinomial(m, p, draws) for m, p in zip(counts.sum(axis=1), common, strict=True)], axis=1)
        for counts in (matrix, others)
    ]


def _groups(true, predicted, place: np.ndarray, group) -> tuple[np.ndarray, np.ndarray]:
    """Return the matrix of each group and its municipality."""
    matrices, code = confusion_counts(true, predicted, CATEGORIES, group), factorize_places(group, len(place))[0]
    home = np.zeros(len(matrices), np.int64)
    home[code] = place
    if (home[code] != place).any():
        one = int((home[code] != place).argmax())
        raise ValueError(f"a group lies in one municipality (group {np.asarray(group)[one]} lies in two)")
    return matrices, home


def _total_variation(matrix: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the mean over profiles of ``matrix`` (…, classes, labels) of ½ Σ_predicted |share − others' share|.

    Only common classes count.
    """
    n, m = matrix.sum(axis=-1), others.sum(axis=-1)
    both = (n > 0) & (m > 0)
    share, other = (counts / np.where(both, counts.sum(axis=-1), 1)[..., None] for counts in (matrix, others))
    distance = np.abs(share - other).sum(axis=-1) / 2
    n = n * both
    with np.errstate(invalid="ignore"):  # no class that both have
        return (n * distance).sum(axis=-1) / n.sum(axis=-1)


def size_and_structure(table: pd.DataFrame) -> dict[str, Estimate]:
    """Return Spearman's correlation of a municipality's size with its matrix's distance, and with the excess over chance."""
    known = table.dropna(subset="distance")
    return {column: rank_correlation(known["profiles"], known[column]) for column in ("distance", "excess")}


def mean_of_draws(each: Sequence[Estimate]) -> Estimate:
    """Average a number over repetitions, each with an interval over municipalities; the interval has the means of their ends.

    It is as wide as a single repetition's, because more repetitions do not add municipalities. n is the least of theirs.
    """
    if not each:
        raise ValueError("a mean needs one draw or more (got none)")
    value, low, high = np.mean([[one.value, one.low, one.high] for one in each], axis=0)
    return Estimate(float(value), float(low), float(high), min(one.n for one in each), each[0].interval)


# --------------- Run the Sociometer with many seeds, to separate the variation between seeds from the variation between users
# The paper's figures show one run. k-means starts at random profiles, and noise is random. Labels of several repetitions are
# arrays (draws, n) of places in CATEGORIES, all of the same n profiles.
_UNDEFINED = Estimate(np.nan, np.nan, np.nan, 0)


class Relabelled(NamedTuple):
    """Labels of published profiles under several settings of the Sociometer, each (draws, n)."""

    reclustered: dict[str, np.ndarray]  # re-clustered, as in the paper
    fixed: dict[str, np.ndarray]  # with the fixed prototypes of the original profiles


def named_rng(seed: int, *names: str) -> np.random.Generator:
    """Return the random generator of these names: the same on every page, whatever else the page draws."""
    return np.random.default_rng([seed, zlib.crc32("\n".join(names).encode())])


def prototypes(values, rng: np.random.Generator, draws: int, sociometer: Sociometer | None = None) -> list[Fitted]:
    """Run phase 2 with ``draws`` seeds; more seeds start with the same ones.

    ``values``: profiles (n, cells), or one set per seed (draws, n, cells), as noise gives.
    """
    whole("draws", draws, 1)
    sociometer = sociometer or Sociometer()
    return [
        _fitted(sociometer, profiles, child) for profiles, child in zip(_each(values, draws), rng.spawn(draws), strict=True)
    ]


def _fitted(sociometer: Sociometer, profiles: Distinct | np.ndarray, rng: np.random.Generator) -> Fitted:
    if not isinstance(profiles, Distinct):
        return sociometer.fit(profiles, None, rng)
    fitted = sociometer.fit(profiles.values, profiles.sizes, rng)
    return replace(fitted, nearest_in_training=fitted.nearest_in_training[profiles.inverse])


def labels(fits: Sequence[Fitted], values, chosen: Mapping[str, Sociometer]) -> dict[str, np.ndarray]:
    """Run phases 3 and 4 under each setting with the *same* prototypes; ``values`` as in :func:`prototypes`.

    k-means does not depend on the archetypes, so settings are compared seed by seed and differ in nothing else.
    """
    each = _each(values, len(fits))
    return _named(fits, _nearest(fits, each), _passing(each, chosen), chosen)


def _nearest(fits: Sequence[Fitted], each: Sequence) -> Iterator[np.ndarray]:
    for fit, profiles in zip(fits, each, strict=True):
        yield fit.nearest(profiles.values)[profiles.inverse] if isinstance(profiles, Distinct) else fit.nearest(profiles)


def _named(
    fits: Sequence[Fitted], nearest: Iterable[np.ndarray], passing: Iterable, chosen: Mapping[str, Sociometer]
) -> dict[str, np.ndarray]:
    """Return the labels from the nearest prototypes and from the rule for passers-by."""
    by_setting = {name: [] for name in chosen}
    for fit, near, passing_by in zip(fits, nearest, passing, strict=True):
        for name, sociometer in chosen.items():
            codes = sociometer.labels(fit.prototypes)[near]
            by_setting[name].append(np.where(passing_by, np.int8(PASSING), codes) if sociometer.passing == "rule" else codes)
    return {name: np.array(repetitions, np.int8) for name, repetitions in by_setting.items()}


def _passing(each: Sequence, chosen: Mapping[str, Sociometer]) -> list:
    """Return who is passing by under the program's rule, for each repetition; None if no setting uses the rule."""
    if all(sociometer.passing != "rule" for sociometer in chosen.values()):
        return [None] * len(each)
    if isinstance(each[0], Distinct):  # the same profiles in each repetition
        return [passes_by(each[0].values)[each[0].inverse]] * len(each)
    return [passes_by(profiles) for profiles in each]


def relabelled(
    fits: Sequence[Fitted], chosen: Mapping[str, Sociometer], published, rng: np.random.Generator, sociometer=None
) -> Relabelled:
    """Label published profiles re-clustered, with one seed per repetition, and with the fixed prototypes ``fits``."""
    refitted = prototypes(published, rng, len(fits), sociometer)
    each = _each(published, len(fits))
    passing = _passing(each, chosen)
    # a fit already has the nearest prototypes of its own profiles
    return Relabelled(
        _named(refitted, (fit.nearest_in_training for fit in refitted), passing, chosen),
        _named(fits, _nearest(fits, each), passing, chosen),
    )


def noisy(values: np.ndarray, mechanism: NoisyProfiles, rng: np.random.Generator, draws: int) -> np.ndarray:
    """Return the profiles (n, cells) with noise, (draws, n, cells)."""
    table = pd.DataFrame(values)
    return np.array([mechanism.protect(table, child).values.to_numpy() for child in rng.spawn(whole("draws", draws, 1))])


def confused(true, predicted, whose) -> pd.DataFrame:
    """Return the confusion matrix over all repetitions, one row per cell: true, found, ``value, low, high, n``, least, largest.

    The value is the share of profiles with the true label that get the other label; rows of ``true`` are repetitions as well.
    The interval is over users; n profiles have the true label in some repetition. ``least`` and ``largest`` are over single
    repetitions.
    """
    true, predicted, owner = _checked(true, predicted, whose)
    rows = []
    for i, name in enumerate(CATEGORIES):
        is_true = true == i
        totals, present = is_true.sum(axis=0), is_true.any(axis=0)
        for j, other in enumerate(CATEGORIES):
            hits = is_true & (predicted == j)
            estimate = (
                clustered_ratio(hits.sum(axis=0)[present], totals[present], owner[present], bounds=(0, 1))
                if present.any()
                else _UNDEFINED
            )
            occurs = is_true.any(axis=1)
            drawn = spread(hits.sum(axis=1)[occurs] / is_true.sum(axis=1)[occurs]) if occurs.any() else _UNDEFINED
            rows.append({"true": name, "found": other, **estimate, "least": drawn.low, "largest": drawn.high})
    return pd.DataFrame(rows)


def f_score(true, predicted, category: str, whose) -> Estimate:
    """Return the F-score 2 · hits / (true + found) of a class over all repetitions, with an interval over users.

    It has no value if no profile is of the class or has its label.
    """
    true, predicted, owner = _checked(true, predicted, whose)
    code = CATEGORIES.index(category)
    is_true, is_predicted = true == code, predicted == code
    here = (is_true | is_predicted).any(axis=0)
    if not here.any():
        return _UNDEFINED
    hits, totals = 2 * (is_true & is_predicted).sum(axis=0)[here], (is_true.astype(int) + is_predicted).sum(axis=0)[here]
    return clustered_ratio(hits, totals, owner[here], bounds=(0, 1))


def label_share(predicted, category: str, whose) -> Estimate:
    """Return the share of profiles with a label over all repetitions, with an interval over the users."""
    return clustered_ratio((np.asarray(predicted) == CATEGORIES.index(category)).mean(axis=0), 1, whose, bounds=(0, 1))


def _each(values, draws: int) -> Sequence:
    """Return the profiles of each repetition; if all are the same, with equal ones collapsed, computed once."""
    values = np.asarray(values)
    if values.ndim == 3 and len(values) != draws:
        raise ValueError(f"there must be as many sets of profiles as draws, or one for all (got {len(values)} for {draws})")
    return values if values.ndim == 3 else [distinct(profile_array(values))] * draws


def _checked(true, predicted, whose) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    true, predicted = np.asarray(true), np.asarray(predicted)
    owner = pd.factorize(np.asarray(whose))[0]
    if true.shape != predicted.shape or true.ndim != 2 or true.shape[1:] != owner.shape:
        raise ValueError(
            f"labels must be (draws, n) of the same profiles, with an owner for each (got the shapes {true.shape}, {predicted.shape}, and {len(owner)} names)"
        )
    return true, predicted, owner
