"""The setting that the pages on PRIMULE share: Pratesi, Gabrielli, Cintia, Monreale and Giannotti, *PRIMULE: Privacy Risk Mitigation for
User Profiles*, §7: the individual call profiles of four weeks in all municipalities.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd

from mobpriv import datasets
from mobpriv.datasets import CallSet
from mobpriv.icps import WEEKS, Found, Icps, Window, icps, values
from mobpriv.numbers import counted, shown
from mobpriv.ranges import whole


class Setting(NamedTuple):
    data: CallSet
    window: Window
    profiles: Icps  # a row a user and municipality
    values: np.ndarray  # (profiles, 6 · weeks), shares of days
    town: np.ndarray  # (profiles,): the municipality of each, as text
    left_out: pd.DataFrame  # rule, records, users
    selection: str


def prepare(
    dataset: str,
    start: str = "",
    zone: str = "Europe/Lisbon",
    weeks: int = WEEKS,
    most: int = 0,
) -> Setting:
    """The profiles of ``weeks`` weeks from the day ``start`` on (empty: from the first day with a call), by the clocks of ``zone``.

    ``most`` > 0: of the most populous municipalities only as many. Raises ValueError where the data are no call records.
    """
    whole("most", most, 0)
    if datasets.kind_of(dataset) != "calls":
        raise ValueError(
            f"individual call profiles are made of call records: a table with user, t and cell ({dataset} holds traces)"
        )
    data = datasets.load_calls(dataset)
    if not len(data.calls):
        raise ValueError(f"{data.name} holds no calls")
    try:
        earliest = data.calls["t"].min().tz_convert(zone)
    except (LookupError, ValueError):  # an unknown zone is a KeyError
        raise ValueError(f"zone must be the name of a time zone, as Europe/Rome (got {zone!r})") from None
    first = pd.Timestamp(start) if start else earliest.tz_localize(None).normalize()
    window = Window(first, zone, weeks)
    found: Found = icps(data.calls, data.cells, window)
    profiles = found.profiles
    if not len(profiles):
        raise ValueError(
            f"{data.name} has no call in the {counted(weeks, 'week')} from {window.first} on: choose another start"
        )
    sizes = profiles["municipality"].value_counts()
    every = int((sizes > 0).sum())
    if most:
        kept = sizes.index[:most]
        profiles = profiles[profiles["municipality"].isin(kept)].reset_index(drop=True)
        sizes = sizes[kept]
    places = int((sizes > 0).sum())
    selection = (
        f"{shown(len(profiles))} profiles of {shown(profiles['user'].nunique())} users in {counted(places, 'municipality', 'municipalities')}{f', the most populous of {every}' if places < every else ''}, "
        f"{counted(weeks, 'week')} from {window.first} on by the clocks of {zone}"
        + "".join(
            f"; left out: {rule}: {counted(int(n), 'record')}"
            for rule, n in zip(found.left_out["rule"], found.left_out["records"], strict=True)
        )
    )
    return Setting(
        data,
        window,
        profiles,
        values(profiles["key"].to_numpy(), weeks),
        profiles["municipality"].astype(str).to_numpy(),
        found.left_out,
        selection,
    )
