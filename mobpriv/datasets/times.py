"""Convert columns of times: seconds, or milli-, micro- or nanoseconds, since 1970, or ISO 8601 text."""

import numpy as np
import pandas as pd

from mobpriv.datasets.wanted import MISSING
from mobpriv.traces.table import EARLIEST, LATEST

END_OF_DAY = "24:00"  # ISO 8601: midnight at the end of a day
IN_WORDS = {  # formats of times
    "s": "seconds since 1970",
    "ms": "milliseconds since 1970",
    "us": "microseconds since 1970",
    "ns": "nanoseconds since 1970",
    "iso": "text as in ISO 8601",
    "": "a column of times",
}
UNREADABLE, DOUBTFUL = "time not readable", "local time doubled or skipped by a clock change"
ZONELESS = "time without a zone among times with one"
DIGITS_CUT = "number whose last digits a spreadsheet cut off"
DIGITS_CUT_REMEDY = "the record is left out; show the column as a number without decimals and export it again"
# ISO 8601: a date, and a time if there is one; only a time can have a zone ("2020-03-01" does not end in an offset of one hour)
_DATE, _CLOCK = r"\d{4}[-/]?\d{2}[-/]?\d{2}", r"[T ]\d{2}(?::?\d{2}(?::?\d{2}(?:[.,]\d{1,9})?)?)?"
_LOCAL = rf"^{_DATE}(?:{_CLOCK})?$"
_ZONED = rf"^{_DATE}{_CLOCK} ?(?:Z|[+-](?:0\d|1\d|2[0-3])(?::?[0-5]\d)?)$"
_DAY_OR_MONTH_FIRST = r"^\d{1,2}[./-]\d{1,2}[./-]\d{2,4}\b.*$"
_BLANK = ["", "NaT", *MISSING]
_ISO = "write them as ISO 8601, 2024-09-03T17:21 (in a spreadsheet the format yyyy-mm-ddThh:mm)"
_EARLIEST, _LATEST = (int(t.timestamp()) * 1000 for t in (EARLIEST, LATEST))
_SINCE_1970 = {"s": 1000, "ms": 1, "us": 1e-3, "ns": 1e-6}  # unit -> milliseconds
_NO_DATE = r"^\d{1,2}(?::\d{2}){0,2}(?: ?[AaPp][Mm])?$"  # a time of day
_LAST_MIDNIGHT = r"^(\d{4}[-/]?\d{2}[-/]?\d{2}[T ])24(:?00(?::?00(?:[.,]0+)?)?)(?= ?(?:Z|[+-]|$))"
_DIGITS = {
    "YYYY": r"(?:19|20)\d\d",
    "YY": r"\d\d",
    "MM": "(?:0[1-9]|1[0-2])",
    "DD": r"(?:0[1-9]|[12]\d|3[01])",
    "D": r"(?:0?[1-9]|[12]\d|3[01])",  # at the start of a number, which has no leading 0
    "HH": r"(?:[01]\d|2[0-3])",
    "mm": r"[0-5]\d",
}
_DATES = {  # formats of dates and times that look like numbers -> their digits
    "YYYYMMDD": "YYYY MM DD",
    "YYMMDDHHMM": "YY MM DD HH mm",
    "YYYYMMDDHH": "YYYY MM DD HH",
    "YYMMDDHHMMSS": "YY MM DD HH mm mm",
    "YYYYMMDDHHMM": "YYYY MM DD HH mm",
    "YYYYMMDDHHMMSS": "YYYY MM DD HH mm mm",
    "DDMMYYYYHH": "D MM YYYY HH",
    "DDMMYYHHMM": "D MM YY HH mm",
}
_DATE_SHARE = 0.9  # seconds since 1970 can look like dates, but over some hours at most a share of 0.6 does
YEAR_1, YEAR_9999 = -62_135_596_800_000, 253_402_300_799_999  # in ms: range of a date


class Unclear(ValueError):
    """A table that can be read in more than one way, or in none so far.

    ``asks`` holds the information that the user must give, each with an example: "user", "t", "lat", "lng" (which column it
    is), "time" (the unit of its numbers), "zone".
    """

    def __init__(self, message: str, asks: dict[str, str]):
        self.asks = asks
        super().__init__(message)
        if asks:
            columns = {role: name or "…" for role, name in asks.items() if role not in ("time", "zone")}
            options = ({"columns": columns} if columns else {}) | {
                name: asks[name] for name in ("time", "zone") if name in asks
            }
            self.add_note("In Python: load(table, " + ", ".join(f"{name}={value!r}" for name, value in options.items()) + ")")


def time_format(values: pd.Series) -> str:
    """The format of a column of times: "s", "ms", "us" or "ns" since 1970, "iso" for text, "" for a column of type time.

    Numbers are of a unit if most of them, in that unit, lie in 1980 … 2099; no number does in two units.
    Raises :class:`Unclear` for numbers that do in none, and for text that is mostly not ISO 8601.
    """
    if values.dtype.kind == "M" or isinstance(values.dtype, pd.DatetimeTZDtype):
        return ""
    number = pd.to_numeric(values, errors="coerce").to_numpy(float, na_value=np.nan)
    number = number[np.isfinite(number)]
    if dates := _dates(number):
        raise Unclear(f"times such as {number[0]:.0f} look like dates written as {dates}: {_ISO}", {})
    if 2 * len(number) < max(len(values), 1):
        text = values.astype("str").str.strip()
        other = text[~_plain(text).str.fullmatch(f"{_LOCAL}|{_ZONED}", na=False).to_numpy()]
        if 2 * len(other) > len(text):
            rule = f"times such as {other.iloc[0]!r} are neither numbers nor ISO 8601: {_ISO}"
            if 2 * other.str.fullmatch(_NO_DATE, na=False).sum() > len(other):
                rule = f"times such as {other.iloc[0]!r} are neither numbers nor ISO 8601, because they have no date: {_ISO}"
            raise Unclear(_mixed(other) or rule, {})
        return "iso"
    for unit, ms in _SINCE_1970.items():
        if _possible(number * ms):
            return unit
    hours = " (they may be hours of a day, without its date)" if ((number >= 0) & (number <= 24)).all() else ""
    raise Unclear(
        f"times are numbers such as {number[0]:.16g}, in 1980 … 2099 neither as seconds nor as milli-, micro- or nanoseconds since "
        f"1970{hours}: write them as one of these, or as text (ISO 8601)",
        {},
    )


def _possible(ms: np.ndarray) -> bool:
    """Whether at least half of the times lie in 1980 … 2099."""
    return bool(2 * ((ms >= _EARLIEST) & (ms < _LATEST)).sum() >= len(ms))


def _dates(number: np.ndarray) -> str:
    """A date format that most of these finite numbers match; "" if there is none, or only one number."""
    number = np.unique(number)
    integers = number[(number > 0) & (number % 1 == 0) & (number < 1e15)]
    if len(integers) < 2:
        return ""
    text = pd.Series(integers.astype(np.int64)).astype("str")
    for written, digits in _DATES.items():
        form = "".join(_DIGITS[part] for part in digits.split())
        if text.str.fullmatch(form).sum() > _DATE_SHARE * len(number):
            return written
    return ""


def digits_cut(text: pd.Series, power: str = r"E\+") -> np.ndarray:
    """Whether digits of a number were cut off, as in a spreadsheet's 1.71E+09, which makes several numbers look alike.

    ``power``: the text before its power of ten. A name may be 1e3, a time may not.
    """
    if isinstance(text.dtype, pd.CategoricalDtype):
        of_category = digits_cut(pd.Series(text.cat.categories, dtype="str"), power)
        return np.append(of_category, False)[text.cat.codes.to_numpy()]
    parts = text.str.extract(rf"^\s*[+-]?\d(?:\.(\d*))?{power}(\d{{1,2}})\s*$")
    digits, power = parts[0].fillna("").str.len().to_numpy(float), pd.to_numeric(parts[1]).to_numpy(float, na_value=np.nan)
    return digits < power


def _mixed(text: pd.Series) -> str:
    """Why texts that begin with the day or with the month cannot be read; "" if most do not."""
    mixed = text[text.str.fullmatch(_DAY_OR_MONTH_FIRST, na=False).to_numpy()]
    if 2 * len(mixed) <= len(text):
        return ""
    return f"times such as {mixed.iloc[0]} begin with the day or with the month, which is not guessed: {_ISO}"


def _plain(text: pd.Series) -> pd.Series:
    return text.str.upper().str.replace(r" ?(?:UTC|GMT)$", "Z", regex=True)


def times(
    values: pd.Series, time: str | None, zone: str | None, source: str, part: bool = False
) -> tuple[pd.Series, dict[str, np.ndarray]]:
    """A column as times in UTC (datetime64[ms, UTC]), and for each way a time can fail the mask of those that do (NaT).

    * ``time`` is ``"s"``, ``"ms"``, ``"us"`` or ``"ns"`` (since 1970-01-01 UTC, whole or not), ``"iso"`` (text), or None: numbers
      are seconds, text is ISO 8601. In text 24:00 is midnight at the end of a day.
    * ``zone`` is the zone of texts and dates that name none. Without it they are an error, because a guess would shift days (a
      few among many that name one are left out).
    * ``part``: ``values`` are a part of a column that was checked before, so no error depends on the majority of the values.

    Empty values become NaT and are in no mask.
    """
    if time is not None and time not in (*_SINCE_1970, "iso"):
        raise ValueError(f'time must be "s", "ms", "us", "ns" or "iso" (got {time!r})')
    known_zone(zone)
    if isinstance(values.dtype, pd.CategoricalDtype):
        values = values.astype(values.cat.categories.dtype)
    if values.dtype.kind == "M":
        if time in _SINCE_1970:
            if not part:
                _refuse_text(values, time, source)
            return pd.Series(pd.NaT, values.index, dtype="datetime64[ms, UTC]"), {UNREADABLE: values.notna().to_numpy()}
        if part and zone is None and values.dt.tz is None:
            return pd.Series(pd.NaT, values.index, dtype="datetime64[ms, UTC]"), {ZONELESS: values.notna().to_numpy()}
        return _in_utc(values, zone, source)
    if time is None and not part and values.dtype.kind in "iuf":
        first = values.iloc[:1000].to_numpy(float, na_value=np.nan)
        first = first[np.isfinite(first)]
        if dates := _dates(first):
            raise Unclear(f"{source}: times such as {first[0]:.0f} look like dates written as {dates}: {_ISO}", {})
    if time != "iso":
        unit = _SINCE_1970[time or "s"]
        fast = unit >= 1 and values.dtype == "int64" and len(values)  # for the common case
        if fast and _EARLIEST // unit <= values.min() and values.max() < _LATEST // unit:
            ms = pd.Series((values.to_numpy() * unit).view("datetime64[ms]"), values.index, copy=False)
            return ms.dt.tz_localize("UTC"), {}
        number = pd.to_numeric(values, errors="coerce").to_numpy(float, na_value=np.nan)
        if time is not None and not part and 2 * np.isfinite(number).sum() < len(number):
            _refuse_text(values, time, source)
        if time is not None or 2 * np.isfinite(number).sum() >= max(len(number), 1):
            return _from_numbers(values, number, time or "s", source, part)
    return _from_text(values.astype("str"), zone, source, part)


def _refuse_text(values: pd.Series, time: str, source: str) -> None:
    """Refuse texts that are to be read as numbers, if most of them are ISO 8601 times."""
    text = values.dropna().astype("str").str.strip()
    written = text if values.dtype.kind == "M" else text[_plain(text).str.fullmatch(f"{_LOCAL}|{_ZONED}", na=False).to_numpy()]
    if 2 * len(written) > len(text):
        words = f"time = {time} reads numbers, and the times are text such as {written.iloc[0]}: say iso, or leave time out"
        raise Unclear(f"{source}: {words}", {})


def _from_numbers(values: pd.Series, number: np.ndarray, unit: str, source: str, part: bool):
    ms = np.rint(number * _SINCE_1970[unit])
    cut = digits_cut(values.astype("str"), r"[Ee]\+?") if values.dtype.kind not in "iuf" else np.zeros(len(values), bool)
    known = np.isfinite(ms) & ~cut
    outside = known & ~((ms >= _EARLIEST) & (ms < _LATEST))
    if 2 * outside.sum() > known.sum() and not part:
        row = int(outside.argmax())
        other = next(
            (other for other, ms_of in _SINCE_1970.items() if _possible(number[known] * ms_of)), "ms" if unit == "s" else "s"
        )
        read, asked = (IN_WORDS[of].removesuffix(" since 1970") for of in (unit, other))
        raise Unclear(
            f"{source}: times read as {read} lie outside 1980 … 2099 "
            f"({int(outside.sum())} records, first {number[row]:.15g} in row {row}): are they {asked}?",
            {"time": other},
        )
    known &= (ms >= YEAR_1) & (ms <= YEAR_9999)
    out = np.where(known, ms, 0).astype("int64").astype("datetime64[ms]")
    out[~known] = np.datetime64("NaT", "ms")
    bad = ~known & ~cut
    if bad.any():
        bad &= ~(values.isna() | values.astype("str").str.strip().isin(_BLANK)).to_numpy()
    return pd.Series(out, values.index).dt.tz_localize("UTC"), {UNREADABLE: bad, DIGITS_CUT: cut}


def _from_text(text: pd.Series, zone: str | None, source: str, part: bool):
    text = text.str.strip()
    blank = (text.isna() | text.isin(_BLANK)).to_numpy()
    plain = _plain(text)
    zoned = plain.str.fullmatch(_ZONED, na=False).to_numpy() & ~blank
    naive = plain.str.fullmatch(_LOCAL, na=False).to_numpy() & ~blank
    zoneless = naive if zone is None and (part or naive.sum() < zoned.sum()) else np.zeros(len(text), bool)
    naive = naive & ~zoneless
    local, failed = _in_utc(_parsed(plain[naive]), zone, source)
    out = pd.Series(pd.NaT, text.index, dtype="datetime64[ms, UTC]")
    out[zoned] = _parsed(plain[zoned], utc=True)
    out[naive] = local
    doubtful = np.zeros(len(text), bool)
    doubtful[naive] = failed.get(DOUBTFUL, False)
    unreadable = out.isna().to_numpy() & ~blank & ~doubtful & ~zoneless
    if not part and 2 * unreadable.sum() > len(text) and (reason := _mixed(text[unreadable])):
        raise Unclear(f"{source}: {reason}", {})
    return out, {UNREADABLE: unreadable, DOUBTFUL: doubtful, ZONELESS: zoneless}


def _parsed(text: pd.Series, utc: bool = False) -> pd.Series:
    parsed = pd.to_datetime(text, format="ISO8601", errors="coerce", utc=utc).dt.as_unit("ms")
    failed = text[parsed.isna()]
    if len(failed):
        midnight = failed.str.replace(_LAST_MIDNIGHT, r"\g<1>00\2", regex=True)
        midnight = midnight[midnight != failed]
        day = pd.to_datetime(midnight, format="ISO8601", errors="coerce", utc=utc).dt.as_unit("ms")
        parsed[midnight.index] = day + pd.Timedelta(days=1)
    return parsed


def known_zone(zone: str | None) -> None:
    """Refuse an unknown time zone."""
    try:
        pd.Timestamp(0, tz=zone)
    except (KeyError, ValueError, OSError, TypeError, IndexError):
        raise ValueError(
            f"there is no time zone {zone!r}: give one of the tz database, for instance Europe/Paris or UTC"
        ) from None


def _in_utc(values: pd.Series, zone: str | None, source: str):
    """Dates in UTC. Those without a zone are local to ``zone``; an hour that a clock change skips or repeats is doubtful."""
    known = values.notna()
    if values.dt.tz is not None:
        return values.dt.tz_convert("UTC").dt.as_unit("ms"), {}
    if zone is None and known.any():
        words = f"times carry no time zone (first: {values[known].iloc[0]}): say which zone they are of"
        raise Unclear(f"{source}: {words}", {"zone": "Europe/Paris"})
    local = values.dt.as_unit("ms").dt.tz_localize(zone or "UTC", ambiguous="NaT", nonexistent="NaT")
    return local.dt.tz_convert("UTC"), {DOUBTFUL: (local.isna() & known).to_numpy()}
