"""References for PULP's models: fresh noise, the monotone trend that the paper assumes, and Promesse without its slowness.

Source: Cerf et al., TDSC 2018, §III-C, §VI-B1, §VI-B2.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from mobpriv.base.ranges import positive
from mobpriv.mechanisms import Promesse
from mobpriv.pulp.modeler import METRICS
from mobpriv.traces.table import Traces, by_user, from_blocks, milliseconds

KEYS = ["user", "mechanism", "metric"]


def long(profile: pd.DataFrame) -> pd.DataFrame:
    """Reshape a profile to one row per level: user, mechanism, metric, value, repetition, level; unknown levels are left out."""
    kept = ["user", "mechanism", "value", "repetition"]
    table = profile.melt(kept, list(METRICS), "metric", "level")
    return table.dropna(subset="level", ignore_index=True)


def variance_on(models: pd.DataFrame, profile: pd.DataFrame) -> pd.Series:
    """Return the models' mean square error at the levels of a profile, by user, mechanism and metric.

    ``models``: from :func:`mobpriv.pulp.models`; one without coefficients has no error. A profile other than the fitted one
    gives the error at fresh noise, or at other settings.
    """
    table = long(profile).merge(models[[*KEYS, "a", "b", "c", "d"]], on=KEYS)
    error = table["a"] * np.arctan(table["b"] * (np.log(table["value"]) - table["c"])) + table["d"] - table["level"]
    return (error**2).groupby([table[key] for key in KEYS]).mean().dropna().rename("variance")


def line_variance(profile: pd.DataFrame) -> pd.Series:
    """Return the mean square error of the least-squares line in ln ε, by user, mechanism and metric.

    A curve with a larger error has not modelled anything.
    """

    def of(own: pd.DataFrame) -> float:
        x, y = np.log(own["value"].to_numpy()), own["level"].to_numpy()
        x = x - x.mean()
        slope = x @ y / max(x @ x, 1e-300)
        return float(np.mean((y - y.mean() - slope * x) ** 2))

    return long(profile).groupby(KEYS)[["value", "level"]].apply(of).rename("variance")


def noise_of(profile: pd.DataFrame) -> pd.Series:
    """Return the variance of a level between repetitions of one setting, averaged over settings, by user, mechanism and metric."""
    table = long(profile)
    each = table.groupby([*KEYS, "value"])["level"].var(ddof=1)
    return each.groupby(level=KEYS).mean().rename("noise")


def turns(profile: pd.DataFrame) -> pd.DataFrame:
    """Return how far a level, averaged over its repetitions, moves against its trend, by user, mechanism and metric.

    * ``reversal``: the largest fall of a level that rises overall, or the largest rise of one that falls.
    * ``errors``: the reversal in standard errors of the difference of these two means (infinite without noise, 0 without a
      reversal).
    """
    table = long(profile).groupby([*KEYS, "value"])["level"].agg(["mean", "var", "size"]).reset_index("value")
    found = []
    for key, own in table.groupby(level=KEYS):
        m, error = own["mean"].to_numpy(), (own["var"].fillna(0.0) / own["size"]).to_numpy()
        later = np.triu(m[None, :] - m[:, None], 1)  # [i, j]: the move from setting i to the later j
        against = -later if -later.min() <= later.max() else later  # the smaller of the fall and the rise
        i, j = np.unravel_index(against.argmax(), against.shape)
        reversal = float(max(against[i, j], 0.0))
        with np.errstate(divide="ignore"):
            errors = float(reversal / np.sqrt(error[i] + error[j])) if reversal > 0 else 0.0
        found.append((*key, reversal, errors))
    return pd.DataFrame(found, columns=[*KEYS, "reversal", "errors"]).set_index(KEYS)


@dataclass(frozen=True)
class Hurried:
    """Promesse with its points published as if the user had walked at ``speed``: the same places in fewer days.

    Promesse spreads its points evenly over the time of the trace. The speed is then the length of the walk over the whole time,
    pauses included. A user who moves little is slow throughout: if 200 m take 15 minutes, every place is a stop.
    """

    alpha: float = 200.0  # m
    speed: float = 1.0  # m/s
    name = "Promesse, hurried"
    random = False

    def __post_init__(self):
        positive("alpha", self.alpha, "m")
        positive("speed", self.speed, "m/s")

    def protect(self, traces: Traces, rng: np.random.Generator | None = None) -> Traces:
        published = Promesse(self.alpha).protect(traces, rng)
        users, offsets = by_user(published)
        place = np.arange(len(published)) - np.repeat(offsets[:-1], np.diff(offsets))
        begins = milliseconds(published)[np.repeat(offsets[:-1], np.diff(offsets))]
        time = begins + np.ceil(1000 * self.alpha / self.speed * place).astype(np.int64)
        return from_blocks(users, np.diff(offsets), time, published["lat"].to_numpy(), published["lng"].to_numpy())


def walking_speed(traces: Traces, alpha: float = 200.0) -> pd.Series:
    """Return the speed in m/s between successive points that Promesse publishes for each user; NaN for fewer than two points."""
    published = Promesse(alpha).protect(traces)
    users, offsets = by_user(published)
    time = milliseconds(published)
    n = np.diff(offsets)
    seconds = (time[offsets[1:] - 1] - time[offsets[:-1]]) / 1000
    with np.errstate(divide="ignore", invalid="ignore"):
        speed = np.where(n > 1, alpha * (n - 1) / seconds, np.nan)
    return pd.Series(speed, users).reindex(by_user(traces)[0])
