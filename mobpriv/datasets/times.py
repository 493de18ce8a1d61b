"""Columns of times in the ways files write them: seconds or milliseconds since 1970, or ISO 8601 text."""

import numpy as np
import pandas as pd

from mobpriv.traces import EARLIEST, LATEST

UNITS = ("s", "ms", "iso")
UNREADABLE, DOUBTFUL = "time not readable", "local time doubled or skipped by a clock change"
_ZONED = r"\d{2}:?\d{2}.*(?:[Zz]|UTC|GMT|[+-]\d{2}(?::?\d{2})?)\s*$"
_BLANK = ["", "nan", "NaT", "None"]
_YEAR_1, _YEAR_9999 = -62_135_596_800_000, 253_402_300_799_999  # in ms: what a date can show


def times(values: pd.Series, time: str | None, zone: str | None, source: str) -> tuple[pd.Series, dict[str, np.ndarray]]:
    """A column as times in UTC (datetime64[ms, UTC]), and for each way a time can fail the mask of those that do (NaT).

    ``time`` is ``"s"`` or ``"ms"`` (since 1970-01-01 UTC, whole or not), ``"iso"`` (text), or None: numbers are seconds, text
    is ISO 8601. ``zone`` is the zone of texts and dates that name none; without it they are an error: a guess would shift days.
    Empty values become NaT and are in no mask.
    """
    if time is not None and time not in UNITS:
        raise ValueError(f'time must be "s", "ms" or "iso" (got {time!r})')
    if values.dtype.kind == "M":
        return _in_utc(values, zone, source)
    if time != "iso":
        number = pd.to_numeric(values, errors="coerce").to_numpy(float, na_value=np.nan)
        if time is not None or 2 * np.isfinite(number).sum() >= max(len(number), 1):
            return _from_numbers(values, number, time or "s", source)
    return _from_text(values.astype("str"), zone, source)


def _from_numbers(values: pd.Series, number: np.ndarray, unit: str, source: str):
    ms = np.rint(number * (1000 if unit == "s" else 1))
    known = np.isfinite(ms)
    outside = known & ~((ms >= EARLIEST.timestamp() * 1000) & (ms < LATEST.timestamp() * 1000))
    if 2 * outside.sum() > known.sum():
        row = int(outside.argmax())
        read, other = ("seconds", "ms") if unit == "s" else ("milliseconds", "s")
        raise ValueError(
            f"{source}: times read as {read} lie outside 1980 … 2099 "
            f"({int(outside.sum())} records, first {number[row]:.15g} in row {row}): read with time={other!r}"
        )
    known &= (ms >= _YEAR_1) & (ms <= _YEAR_9999)
    out = np.where(known, ms, 0).astype("int64").astype("datetime64[ms]")
    out[~known] = np.datetime64("NaT")
    bad = ~known
    if bad.any():
        bad &= ~(values.isna() | values.astype("str").str.strip().isin(_BLANK)).to_numpy()
    return pd.Series(out, values.index).dt.tz_localize("UTC"), {UNREADABLE: bad}


def _from_text(text: pd.Series, zone: str | None, source: str):
    blank = text.isna() | text.str.strip().isin(_BLANK)
    zoned = text.str.contains(_ZONED, regex=True, na=False)
    naive = ~zoned & ~blank
    local = pd.to_datetime(text[naive], format="ISO8601", errors="coerce")
    local, failed = _in_utc(local, zone, source)
    out = pd.Series(pd.NaT, text.index, dtype="datetime64[ms, UTC]")
    out[zoned] = pd.to_datetime(text[zoned], format="ISO8601", utc=True, errors="coerce").dt.as_unit("ms")
    out[naive] = local
    doubtful = np.zeros(len(text), bool)
    doubtful[naive.to_numpy()] = failed[DOUBTFUL]
    return out, {UNREADABLE: (out.isna() & ~blank).to_numpy() & ~doubtful, DOUBTFUL: doubtful}


def _in_utc(values: pd.Series, zone: str | None, source: str):
    """Dates in UTC. Those without a zone are local to ``zone``; an hour that the clock shows twice or never is doubtful."""
    known = values.notna()
    if values.dt.tz is not None:
        return values.dt.tz_convert("UTC").dt.as_unit("ms"), {DOUBTFUL: np.zeros(len(values), bool)}
    if zone is None and known.any():
        first = values[known].iloc[0]
        raise ValueError(f"{source}: times carry no time zone (first: {first}): say which, for instance zone='UTC'")
    local = values.dt.as_unit("ms").dt.tz_localize(zone or "UTC", ambiguous="NaT", nonexistent="NaT")
    return local.dt.tz_convert("UTC"), {DOUBTFUL: (local.isna() & known).to_numpy()}
