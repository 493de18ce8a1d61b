"""Archetypes of the Sociometer: typical individual call profiles of a resident, a commuter, a visitor and so on.

Source: Pratesi, Gabrielli, Cintia, Monreale and Giannotti, *PRIMULE: Privacy Risk Mitigation for User Profiles*, §3.2.

A profile has weeks × {weekdays, weekend} × 3 values. Cell (week · 2 + part) · 3 + slot holds the share of the days of that week
part with a call in the slot. P1, P2, P3 are the slots; P2 contains the working hours.

The paper describes the archetypes only in words. ``variant="program"`` follows the Sociometer's program for what its own papers
also leave open:

* papers: Furletti, Gabrielli, Renso and Rinzivillo 2012 and 2013; Furletti, Trasarti, Cintia and Gabrielli, Information 8,
  2017;
* program: telecom-analytics of the project ``ASAP``, ``clustering.py`` and ``stereo_type_classification.py`` (Apache licence,
  2015 to 2017).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from mobpriv.base.ranges import between, one_of, whole

CATEGORIES = ("resident", "dynamic resident", "commuter", "visitor", "passing by")
RESIDENT, _DYNAMIC, _COMMUTER, VISITOR, PASSING = range(5)
_ARCHETYPE_VARIANTS = ("words", "program")
WEEK_PARTS, SLOTS = 2, 3  # weekdays and weekend; P1, P2, P3
CELLS_PER_WEEK = WEEK_PARTS * SLOTS
_WEEKDAYS, WEEKEND, _WORKING = 0, 1, 1  # indices of the week parts and of slot P2
_DAYS_OF_PART = np.array([5, 2])
_INTENSITIES = (1.0, 0.5, 0.1)
_VISIT_DAYS = (2,)
_FLAT_CURVE = (1.0, 1.0, 1.0)


class Archetypes(NamedTuple):
    category: np.ndarray  # (a,): index of each archetype's class in CATEGORIES, ascending
    values: np.ndarray  # (a, 6 · weeks)

    def __repr__(self) -> str:
        numbers = ", ".join(f"{n} {name}" for name, n in zip(CATEGORIES, np.bincount(self.category, minlength=5), strict=True))
        return f"<Archetypes: {numbers}>"


def archetypes(
    variant: str = "words",
    intensities: Sequence[float] = _INTENSITIES,  # shares of the days, in (0, 1]
    visit_days: Sequence[int] = _VISIT_DAYS,  # days in one part of a week, 2 … 5
    curve: Sequence[float] = _FLAT_CURVE,  # P1, P2, P3: relative activity in each slot, in [0, 1]
    weeks: int = 4,
) -> Archetypes:
    """Build the archetypes of the five classes. A class has several; a centroid gets the label of the nearest archetype.

    ``variant="words"`` follows the words of §3.2. The first three classes have one archetype per intensity, because the
    frequency of calls does not define a class:

    * resident, "significant across all days and all time slots": every cell;
    * dynamic resident, "significant always, except during working days and working hours": every cell but the weekdays' P2;
    * commuter, "almost exclusively concentrated during working days and working hours": the weekdays' P2;
    * visitor, "only a few times in the period": ``visit_days`` days (at most the days available) in one part of one week, in
      one slot or in all three. There is one archetype per week, part and choice of slots, because a visit may fall in any week;
    * passing by, "merely traveled by": one day in a single cell, one archetype per cell.

    "Significant" may be relative to the usual activity at that time of day: ``curve`` multiplies the first three classes. It is
    the most influential choice: few people call at night, so with a flat curve hardly any centroid is labelled dynamic
    resident.

    ``variant="program"`` has other archetypes and ignores ``visit_days``:

    * resident: every cell, and two archetypes whose activity decreases from week to week;
    * dynamic resident: the *weekends*; commuter: the *weekdays*, at all hours;
    * visitor: one part of the *first* week, at each intensity;
    * passing by: none; the program has a rule for them instead (:class:`mobpriv.icp.sociometer.Sociometer`).

    Departures from the paper: it has no numbers; the intensities are the program's. The lowest, 0.1, has a drawback: in
    Euclidean distance a commuter at 0.1 is as near to zero as one weekday in one cell. A prototype of many users who came once,
    on different days, therefore becomes a commuter. The program loses the last line of its list (the visitor of one weekend at
    0.1); so does this variant. The program also moves the first week behind the others, which only changes the week of its
    visitors.
    """
    one_of("variant", variant, _ARCHETYPE_VARIANTS)
    weeks = whole("weeks", weeks, 1, 4, "must be a whole number in 1 … 4")
    if variant == "program" and weeks == 1:
        raise ValueError(
            'of one week the program cannot tell a visitor from a commuter: variant="words", or weeks in 2 … 4 (got 1)'
        )
    levels = [
        between("intensities", i, 1e-6, 1, "must be shares of the days, above 0 and at most 1")
        for i in _as_list("intensities", intensities)
    ]
    curve = _curve(curve)
    pairs = _words(levels, visit_days, weeks) if variant == "words" else _program(levels, weeks)
    category = np.array([c for c, _ in pairs], np.int8)
    values = np.array([v.ravel() for _, v in pairs], float)
    values[category <= _COMMUTER] *= np.tile(curve, WEEK_PARTS * weeks)
    # keep the first of equal archetypes, in the order of the categories: this order resolves ties
    first = np.sort(np.unique(np.column_stack([category, values]), axis=0, return_index=True)[1])
    order = first[np.argsort(category[first], kind="stable")]
    return Archetypes(category[order], values[order])


def _words(levels, visit_days, weeks):
    everywhere, working = np.ones((weeks, WEEK_PARTS, SLOTS)), np.zeros((weeks, WEEK_PARTS, SLOTS))
    working[:, _WEEKDAYS, _WORKING] = 1
    pairs = [(c, i * v) for i in levels for c, v in ((RESIDENT, everywhere), (_DYNAMIC, 1 - working), (_COMMUTER, working))]
    for days in _as_list("visit_days", visit_days):
        whole("visit_days", days, 2, 5, "must be whole numbers in 2 … 5: one day is a passer-by, and a week has five weekdays")
        pairs += [
            (VISITOR, _days(days, weeks, w, p, s))
            for w in range(weeks)
            for p in range(WEEK_PARTS)
            for s in (*range(SLOTS), slice(None))
        ]
    return pairs + [(PASSING, _days(1, weeks, w, p, s)) for w in range(weeks) for p in range(WEEK_PARTS) for s in range(SLOTS)]


def _days(days, weeks, week, part, slots):
    """``days`` days, or all there are, in some slots of one part of one week."""
    values = np.zeros((weeks, WEEK_PARTS, SLOTS))
    values[week, part, slots] = min(days, _DAYS_OF_PART[part]) / _DAYS_OF_PART[part]
    return values


def _program(levels, weeks):
    part = np.zeros((weeks, WEEK_PARTS, SLOTS))
    part[:, WEEKEND] = 1
    first = np.zeros((weeks, WEEK_PARTS, SLOTS))
    first[0] = 1
    pairs = []
    for i in levels:
        pairs += [
            (RESIDENT, np.full(part.shape, i)),
            (_DYNAMIC, i * part),
            (_COMMUTER, i * (1 - part)),
            (VISITOR, i * (1 - part) * first),
        ]
    pairs += [(VISITOR, i * part * first) for i in levels[:-1]]  # the program loses the last line of its list
    fading = np.array([*levels, *[0.0] * (weeks + 1)])
    return pairs + [(RESIDENT, np.broadcast_to(fading[s : s + weeks, None, None], part.shape)) for s in (0, 1)]


def _as_list(name: str, values) -> list:
    listed = list(np.atleast_1d(np.asarray(values, object)))
    if not listed:
        raise ValueError(f"{name} must be one number or more (got none)")
    return listed


def _curve(curve) -> list[float]:
    shares = [
        between("curve", c, 0, 1, "must be a number in [0, 1] for each of P1, P2 and P3") for c in _as_list("curve", curve)
    ]
    if len(shares) != SLOTS or not shares[_WORKING] > 0 or not max(shares[0], shares[2]) > 0:
        raise ValueError(
            f"curve must be a number for each of P1, P2 and P3, above 0 in P2 and in one more, where a dynamic resident calls (got {curve!r})"
        )
    return shares


def categories_of(codes: np.ndarray) -> pd.Categorical:
    """Indices into CATEGORIES as a pandas Categorical, in the paper's order."""
    return pd.Categorical.from_codes(codes, list(CATEGORIES))
