"""What a protected table of traces still gives away and what it has lost, compared with the published mechanisms.

The adversary knows the first half of the original table under the users' names. He attacks the second half of the protected one. The
halves meet in the middle of the original's time span.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd

from mobpriv.attacks import APAttack, PITAttack, POIAttack
from mobpriv.attacks.policies import reidentified
from mobpriv.base import estimates
from mobpriv.base.numbers import counted
from mobpriv.ground.grid import SquareGrid
from mobpriv.mechanisms import W4M, GeoI, Nothing, Promesse, TriLateration
from mobpriv.metrics import area_coverage, spatial_distortion, spatio_temporal_distortion
from mobpriv.metrics.location_audits import epsilon_bound
from mobpriv.own_data.contract import published_by
from mobpriv.traces.table import Traces, as_traces, by_user, rows, same_person, split_in_half

UNITS = {  # of each quantity
    "AP-Attack": "share",
    "POI-Attack": "share",
    "PIT-Attack": "share",
    "any attack": "share",
    "users left out": "share",
    "area coverage": "",
    "distance to the path": "m",
    "distance at the time": "m",
}
_PUBLISHED = (Nothing(), GeoI(), Promesse(), W4M(), TriLateration())  # with the papers' parameters
_IN_WORDS = {"epsilon": ("ε", "/m"), "alpha": ("α", "m"), "k": ("k", ""), "delta": ("δ", "m"), "radius": ("radius", "m")}


def matched(original: Traces, protected: Traces, pairs: Mapping[str, str] | None = None) -> Traces:
    """The protected traces under the original names.

    ``pairs``: name in the protected table -> name in the original one; without it, equal names are one user. ValueError if a
    protected user has no original: what an attack says of her could not be checked.
    """
    users, known = by_user(protected)[0], by_user(original)[0]
    names = pd.Index([(pairs or {}).get(user, None if pairs else user) for user in users], dtype=object)
    strangers = users[~names.isin(known)]
    if len(strangers):
        given = "the pairs" if pairs else "the names"
        others = f" and {counted(len(strangers) - 1, 'other')} have" if len(strangers) > 1 else " has"
        raise ValueError(
            f"each user of the protected table needs a user of the original one (by {given}, {strangers[0]}{others} none): "
            "give a table of pairs"
        )
    if names.has_duplicates:
        raise ValueError(
            f"two users of the protected table are {names[names.duplicated()][0]} in the original one: give each her own"
        )
    return as_traces(protected.assign(user=protected["user"].astype(str).map(dict(zip(users, names, strict=True)))))


def tested_claim(mechanism, rng: np.random.Generator) -> str:
    """What :func:`mobpriv.metrics.location_audits.epsilon_bound` says of the mechanism's ``epsilon``, in a sentence."""
    claim = f"the claim ε = {mechanism.epsilon} per metre for each record"
    try:
        bound = epsilon_bound(SimpleNamespace(protect=partial(published_by, mechanism)), mechanism.epsilon, rng)
    except ValueError as error:
        return f"{claim} is not tested: {error}"
    shown = f"two places {bound.distance:.3g} m apart, at latitude {bound.latitude:g}, show ε ≥ {bound.epsilon:.3g} with 99 % confidence"
    return (
        f"{claim} is refuted: {shown}"
        if bound.epsilon > mechanism.epsilon
        else f"{claim} is not refuted: {shown}. This is no proof"
    )


def settings_in_words() -> str:
    """The parameters of the published mechanisms, "Geo-I (ε = 0.01 /m), …"."""

    def words(mechanism) -> str:
        values = {name: getattr(mechanism, name, None) for name in _IN_WORDS}
        texts = [f"{_IN_WORDS[name][0]} = {value:g} {_IN_WORDS[name][1]}".strip() for name, value in values.items() if value]
        return f"{mechanism.name} ({', '.join(texts)})"

    return ", ".join(map(words, _PUBLISHED[1:]))


def read_pairs(file: Path) -> dict[str, str]:
    """The pairs in a CSV file with the columns ``protected`` and ``original``; its names stay text."""
    try:
        table = pd.read_csv(file, dtype=str, keep_default_na=False)
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError):
        raise ValueError(
            f"{file}: no table of pairs: write the names protected,original and a pair on each line, as UTF-8"
        ) from None
    missing = [name for name in ("protected", "original") if name not in table]
    if missing:
        raise ValueError(f"{file} needs the columns protected and original (it has {', '.join(table)})")
    twice = table["protected"][table["protected"].duplicated()]
    if len(twice):
        raise ValueError(f"{file} must have one row for each name in protected ({twice.iloc[0]} has several)")
    return dict(zip(table["protected"], table["original"], strict=True))


def judge(
    original: Traces, protected: Traces, rng: np.random.Generator, against=_PUBLISHED, given: str = "given table"
) -> pd.DataFrame:
    """The numbers of the protected table and of each mechanism of ``against``, a row each.

    ``protected``: see :func:`matched`; ``given``: its name in the result. The columns are mechanism, quantity (of
    :data:`UNITS`), value, low, high, n. Rates are over the users attacked; the others are the median over the users that are
    published, in m for distances.
    """
    known, secret = split_in_half(original, "set")
    middle, users = secret["t"].min(), by_user(secret)[0]
    n_known = len(users.intersection(by_user(known)[0]))
    if n_known < 2:
        raise ValueError(f"re-identification needs at least two users with records in both halves of the time (got {n_known})")
    person = same_person(original)
    attacks = [attack.fit(known) for attack in (APAttack(), POIAttack(), PITAttack())]
    tables = {given: protected} | {mechanism.name: mechanism.protect(original, rng) for mechanism in against}
    numbers = []
    for name, table in tables.items():
        # a mechanism may move a user's records into a half in which she had none
        attacked = rows(table, ((table["t"] >= middle) & table["user"].isin(users)).to_numpy())
        for quantity, estimate in _numbers(secret, attacked, users, attacks, person):
            numbers.append({"mechanism": name, "quantity": quantity, **estimate})
    return pd.DataFrame(numbers)


def _numbers(
    secret: Traces, attacked: Traces, users: pd.Index, attacks: list, person: dict
) -> Iterator[tuple[str, estimates.Estimate]]:
    hits = {attack.name: reidentified(attack.rank(attacked), users, person) for attack in attacks}
    yield from ((name, estimates.rate(hit)) for name, hit in hits.items())
    yield "any attack", estimates.rate(np.any(list(hits.values()), axis=0))
    published = by_user(attacked)[0]
    yield "users left out", estimates.rate(~users.isin(published))
    utility = {
        "area coverage": area_coverage(secret, attacked, SquareGrid(800.0))["f_score"],
        "distance to the path": spatial_distortion(secret, attacked),
        "distance at the time": spatio_temporal_distortion(secret, attacked),
    }
    for quantity, values in utility.items():
        values = values.reindex(published).dropna()
        yield quantity, estimates.quantile(values, 0.5) if len(values) else estimates.Estimate(np.nan, np.nan, np.nan, 0)
