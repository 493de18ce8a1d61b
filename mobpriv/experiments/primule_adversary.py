"""Adversaries beyond §5: one whose knowledge is wrong by some days, and one who knows a user's group of k.

Source (extended here): Pratesi, Gabrielli, Cintia, Monreale and Giannotti, *PRIMULE: Privacy Risk Mitigation for User
Profiles*, §5.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd

from mobpriv import datasets
from mobpriv.attacks.icp.nearest import SQUARED_TIE
from mobpriv.base.ranges import whole
from mobpriv.experiments.primule import Setting
from mobpriv.experiments.primule_sociometer import true_roles
from mobpriv.icp.profiles import DAYS
from mobpriv.icp.rows import rows_by_group
from mobpriv.icp.sociometer import PROGRAM, labelled


def days_wrong(counts: np.ndarray, wrong: int, rng: np.random.Generator) -> np.ndarray:
    """Perturb days with a call (n, cells) by one day in ``wrong`` randomly drawn cells of each profile: an adversary's errors.

    A day more and a day less are equally likely; at 0 or at all days only one direction is possible. Rows are drawn in their
    order.
    """
    counts = np.asarray(counts)
    n, cells = counts.shape
    wrong = whole("wrong", wrong, 0, cells, f"must be a whole number of cells, 0 to {cells}")
    seen = counts.astype(np.int64)
    chosen = rng.random((n, cells)).argsort(axis=1, kind="stable")[:, :wrong]
    step = np.where(rng.random((n, wrong)) < 0.5, -1, 1)
    rows = np.arange(n)[:, None]
    days, maximum = seen[rows, chosen], DAYS[:cells][chosen]
    seen[rows, chosen] = days + np.where(days == 0, 1, np.where(days == maximum, -1, step))
    return seen


class Homogeneity(NamedTuple):
    """What a group reveals about a trait of its members, for each profile that has the trait."""

    kinds: np.ndarray  # (m,): number of different traits in its group
    guess: np.ndarray  # (m,): probability that a random member has the group's commonest trait
    right: np.ndarray  # (m,): whether the commonest trait is its own; in case of ties a share


def group_homogeneity(group: np.ndarray, trait: np.ndarray) -> Homogeneity:
    """Measure the homogeneity of groups: ``group`` (n,) and ``trait`` (n,), whole numbers from 0 on, −1 if missing.

    The adversary knows the group of his target and the traits of its members, for example because they are published with the
    profiles.
    """
    has = np.asarray(trait) >= 0
    index = pd.factorize(np.asarray(group)[has])[0]
    traits = np.asarray(trait)[has].astype(np.int64)
    classes = int(traits.max(initial=0)) + 1
    counts = np.bincount(index * classes + traits, minlength=(index.max(initial=-1) + 1) * classes).reshape(-1, classes)
    largest = counts.max(axis=1, initial=0)
    ties = (counts == largest[:, None]).sum(axis=1)
    right = (counts[index, traits] == largest[index]) / ties[index]
    return Homogeneity((counts > 0).sum(axis=1)[index], (largest / counts.sum(axis=1))[index], right)


def shuffled(trait: np.ndarray, where: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Permute the traits within each municipality: the baseline of what small groups alone reveal."""
    trait, permuted = np.asarray(trait), np.empty_like(trait)
    order = np.argsort(where, kind="stable")
    mixed = np.lexsort((rng.random(len(trait)), where))
    permuted[order] = trait[mixed]
    return permuted


class Further(NamedTuple):
    """What remains of a group of profiles equal on h if one call outside h is known as well, for each profile with such a call."""

    rows: np.ndarray  # (m,): its row
    below: np.ndarray  # (m,): share of its cells outside h with a call in which fewer than k of its group have a call
    alone: np.ndarray  # (m,): share in which no other member has one


def one_more_call(group: np.ndarray, counts: np.ndarray, h: np.ndarray, k: int) -> Further:
    """Count the group members with a call in one cell outside h, for an adversary who knows h and this call."""
    outside = np.setdiff1d(np.arange(counts.shape[1]), h)
    calls = np.asarray(counts)[:, outside] > 0
    index = pd.factorize(np.asarray(group))[0]
    group_counts = np.zeros((index.max(initial=-1) + 1, len(outside)), np.int64)
    np.add.at(group_counts, index, calls)
    rows = np.flatnonzero(calls.any(axis=1))
    called, remaining = calls[rows], group_counts[index[rows]]
    below, alone = (((remaining < least) & called).sum(axis=1) / called.sum(axis=1) for least in (k, 2))
    return Further(rows, below, alone)


def same_in_group(group: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return for each profile's cells (n, cells) whether the whole group has the same number of days there."""
    index = pd.factorize(np.asarray(group))[0]
    first = np.unique(index, return_index=True)[1]
    differs = np.zeros((len(first), np.shape(counts)[1]), bool)
    np.logical_or.at(differs, index, np.asarray(counts) != np.asarray(counts)[first][index])
    return ~differs[index]


def infer_cells(seen: np.ndarray, days: np.ndarray, published: np.ndarray, town: np.ndarray, h: np.ndarray) -> np.ndarray:
    """Return an adversary's probability of being right about each cell of each profile, (n, cells), if he knows cells ``h``.

    He takes the profile published in her municipality that is nearest on h, at random in case of ties, and reports its value,
    rounded to days. ``seen``: the shares he knows, used on h only; ``days``: the true days; ``published``: the published
    profiles; all with the same rows.
    """
    n_values = int(DAYS.max()) + 1
    probability = np.empty(np.shape(days))
    for rows in rows_by_group(town, len(probability)):
        known, inverse = np.unique(np.asarray(seen)[np.ix_(rows, h)], axis=0, return_inverse=True)
        profiles, multiplicity = np.unique(np.asarray(published)[rows], axis=0, return_counts=True)
        distance = ((known[:, None] - profiles[:, h]) ** 2).sum(axis=2)
        near = (distance <= distance.min(axis=1, keepdims=True) + SQUARED_TIE) * multiplicity
        read = np.rint(profiles * DAYS[: profiles.shape[1]]).astype(np.int64)[:, :, None] == np.arange(n_values)
        share = (near / near.sum(axis=1, keepdims=True)) @ read.reshape(len(profiles), -1)
        target_share = share.reshape(len(known), -1, n_values)[inverse.ravel()]
        true_days = np.asarray(days)[rows][:, :, None].astype(np.int64)
        probability[rows] = np.take_along_axis(target_share, true_days, axis=2)[:, :, 0]
    return probability


def traits_of(setting: Setting, dataset: str, rng: np.random.Generator) -> tuple[np.ndarray, str]:
    """Return each profile's role as its place in the categories (−1: none), and the role's name.

    It is the true role in the embedded region, else the Sociometer's label.
    """
    if dataset == "region":
        return true_roles(setting.profiles, datasets.region_truth()[0]).role.codes.astype(np.int64), "true role"
    label = labelled(PROGRAM, setting.values, rng).astype(np.int64)
    return label, "label by the Sociometer (true roles are known only in the synthetic region)"
