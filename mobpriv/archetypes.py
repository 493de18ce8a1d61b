"""What a resident, a commuter or a visitor looks like as an individual call profile: the archetypes of the Sociometer, Pratesi,
Gabrielli, Cintia, Monreale and Giannotti, *PRIMULE: Privacy Risk Mitigation for User Profiles*, §3.2.

A profile has a value for each of weeks × {weekdays, weekend} × 3 daily slots, cell (week · 2 + part) · 3 + slot: the share of the days
of that week part with a call in the slot. P1, P2, P3 are the slots; P2 holds the working hours.

The paper prints no archetype, only words. What the Sociometer's own papers (Furletti, Gabrielli, Renso and Rinzivillo 2012 and 2013;
Furletti, Trasarti, Cintia and Gabrielli, Information 8, 2017) leave open as well, its program answers: the ASAP project's
telecom-analytics, ``clustering.py`` and ``stereo_type_classification.py`` (Apache licence, 2015 to 2017). It is ``reading="program"``.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from mobpriv.ranges import between, one_of, whole

CATEGORIES = ("resident", "dynamic resident", "commuter", "visitor", "passing by")
RESIDENT, DYNAMIC, COMMUTER, VISITOR, PASSING = range(5)
READINGS = ("words", "program")
PARTS, SLOTS = 2, 3  # weekdays and weekend; P1, P2, P3
PER_WEEK = PARTS * SLOTS
WEEKDAYS, WEEKEND, WORKING = 0, 1, 1  # the parts; the slot P2
DAYS_OF_PART = np.array([5, 2])
INTENSITIES = (1.0, 0.5, 0.1)
VISIT_DAYS = (2,)
AS_PRINTED = (1.0, 1.0, 1.0)


class Archetypes(NamedTuple):
    category: np.ndarray  # (a,): each one's place in CATEGORIES, ascending
    values: np.ndarray  # (a, 6 · weeks)

    def __repr__(self) -> str:
        numbers = ", ".join(f"{n} {name}" for name, n in zip(CATEGORIES, np.bincount(self.category, minlength=5), strict=True))
        return f"<Archetypes: {numbers}>"


def archetypes(
    reading: str = "words",
    intensities: Sequence[float] = INTENSITIES,  # shares of the days, in (0, 1]
    visit_days: Sequence[int] = VISIT_DAYS,  # days in one part of a week, 2 … 5
    curve: Sequence[float] = AS_PRINTED,  # P1, P2, P3: how present who is there is in a slot, relative, in [0, 1]
    weeks: int = 4,
) -> Archetypes:
    """The archetypes of the five classes; a class has several, and a centroid has the label of the nearest one.

    As the words of §3.2 have it (``reading="words"``), each of the first three classes once for each intensity, for how often somebody
    calls is no matter of the class:

    * resident, "significant across all days and all time slots": every cell;
    * dynamic resident, "significant always, except during working days and working hours": every cell but the weekdays' P2;
    * commuter, "almost exclusively concentrated during working days and working hours": the weekdays' P2;
    * visitor, "only a few times in the period": ``visit_days`` days (as many as there are, if fewer) in one part of one week, in one of its
      slots or in all three; an archetype for each week, part and choice of slots, for a visit in the third week is no less a visit;
    * passing by, "merely traveled by": one day in a single cell, an archetype for each cell.

    "Significant" may be meant relative to how much people call at that time of the day: ``curve`` multiplies the first three classes. It is
    the largest of the moved choices: at night few people call, so that with a flat curve next to no centroid is a dynamic resident's.

    ``reading="program"``: resident, every cell, and two who are there less from week to week; dynamic resident, the *weekends*; commuter,
    the *weekdays*, at all hours; visitor, one part of the *first* week, at each intensity. Nobody is passing by: there the program has a rule
    (:class:`mobpriv.sociometer.Sociometer`). ``visit_days`` has no part in it.

    Departures from the paper: it has no numbers. The intensities are the program's. The lowest has a price: to Euclid's distance a commuter's 0.1 is
    as near to nothing as one weekday in one cell, so that a prototype of many who came once, on different days, is a commuter's. Of its list the program loses the last line (the visitor
    who is there on one weekend at 0.1), and so does this reading; it also puts the first week behind the others, which only changes in which
    week its visitors come.
    """
    one_of("reading", reading, READINGS)
    weeks = whole("weeks", weeks, 1, 4, "must be a whole number in 1 … 4")
    if reading == "program" and weeks == 1:
        raise ValueError(
            'of one week the program cannot tell a visitor from a commuter: reading="words", or weeks in 2 … 4 (got 1)'
        )
    levels = [
        between("intensities", i, 1e-6, 1, "must be shares of the days, above 0 and at most 1")
        for i in _several("intensities", intensities)
    ]
    curve = _curve(curve)
    made = _words(levels, visit_days, weeks) if reading == "words" else _program(levels, weeks)
    category = np.array([c for c, _ in made], np.int8)
    values = np.array([v.ravel() for _, v in made], float)
    values[category <= COMMUTER] *= np.tile(curve, PARTS * weeks)
    # of equal ones the first stays; in the order of the categories, so that the order says who wins a tie
    first = np.sort(np.unique(np.column_stack([category, values]), axis=0, return_index=True)[1])
    order = first[np.argsort(category[first], kind="stable")]
    return Archetypes(category[order], values[order])


def _words(levels, visit_days, weeks):
    everywhere, working = np.ones((weeks, PARTS, SLOTS)), np.zeros((weeks, PARTS, SLOTS))
    working[:, WEEKDAYS, WORKING] = 1
    made = [(c, i * v) for i in levels for c, v in ((RESIDENT, everywhere), (DYNAMIC, 1 - working), (COMMUTER, working))]
    for days in _several("visit_days", visit_days):
        whole(
            "visit_days", days, 2, 5, "must be whole numbers in 2 … 5: one day is who passes by, and a week has five weekdays"
        )
        made += [
            (VISITOR, _days(days, weeks, w, p, s))
            for w in range(weeks)
            for p in range(PARTS)
            for s in (*range(SLOTS), slice(None))
        ]
    return made + [(PASSING, _days(1, weeks, w, p, s)) for w in range(weeks) for p in range(PARTS) for s in range(SLOTS)]


def _days(days, weeks, week, part, slots):
    """So many days, or all there are, in some slots of one part of one week."""
    values = np.zeros((weeks, PARTS, SLOTS))
    values[week, part, slots] = min(days, DAYS_OF_PART[part]) / DAYS_OF_PART[part]
    return values


def _program(levels, weeks):
    part = np.zeros((weeks, PARTS, SLOTS))
    part[:, WEEKEND] = 1
    first = np.zeros((weeks, PARTS, SLOTS))
    first[0] = 1
    made = []
    for i in levels:
        made += [
            (RESIDENT, np.full(part.shape, i)),
            (DYNAMIC, i * part),
            (COMMUTER, i * (1 - part)),
            (VISITOR, i * (1 - part) * first),
        ]
    made += [(VISITOR, i * part * first) for i in levels[:-1]]  # its last line is lost
    fading = np.array([*levels, *[0.0] * (weeks + 1)])
    return made + [(RESIDENT, np.broadcast_to(fading[s : s + weeks, None, None], part.shape)) for s in (0, 1)]


def _several(name: str, values) -> list:
    listed = list(np.atleast_1d(np.asarray(values, object)))
    if not listed:
        raise ValueError(f"{name} must be one number or more (got none)")
    return listed


def _curve(curve) -> list[float]:
    shares = [
        between("curve", c, 0, 1, "must be a number in [0, 1] for each of P1, P2 and P3") for c in _several("curve", curve)
    ]
    if len(shares) != SLOTS or not shares[WORKING] > 0 or not max(shares[0], shares[2]) > 0:
        raise ValueError(
            f"curve must be a number for each of P1, P2 and P3, above 0 in P2 and in one more, where a dynamic resident calls (got {curve!r})"
        )
    return shares


def categories_of(codes: np.ndarray) -> pd.Categorical:
    """Places in CATEGORIES as a pandas Categorical, in the paper's order."""
    return pd.Categorical.from_codes(codes, list(CATEGORIES))
