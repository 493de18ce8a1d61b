"""A figure of saved results in one statement: panels, titles, axis labels, legend, caption and alternative text.

It is drawn by the forms of :mod:`mobpriv.plot`. Labels come from ``book/quantities``: ``short`` for the axis of the values, ``parts`` for
levels, and ``k=`` among ``parts`` for an axis over the part ``k``.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd
from IPython.display import Markdown

from mobpriv import plot
from mobpriv.base.numbers import FIXED, behind, shown
from mobpriv.book.quantities import filled, number_or_text, parts_of
from mobpriv.plot import palette
from mobpriv.plot.palette import Mark

_RUN = "run"  # an axis over the data sets
_READ_ALL = 12  # numbers of a run that the alternative text gives in full
_TITLE = 42  # characters of a title's line
_PERCENT = ("share", "points")  # units drawn in per cent
_FORMS = ("intervals", "curves", "stacked", "percentiles")
_EACH_TICK = 6  # positions of curves that all get a tick
_ACROSS = 4.2  # inches
_AXES = ("panel", "y", "colour", "x")
_PRINTED = {"printed in the paper": Mark(palette.PRINTED, "D", hollow=True)}
_FREE = (
    Mark(palette.BLUE, "o"),
    Mark(palette.ORANGE, "s"),
    Mark(palette.GREEN, "^"),
    Mark(palette.PINK, "D"),
    Mark(palette.INK, "v"),
)


def figure(
    compared,
    form: str,
    names: str | Iterable[str] | Mapping[str, str],
    caption: str,
    *,
    x: str = "",
    y: str = "",
    colour: str = "",
    panel: str = "",
    say: Mapping[str, Any] | Iterable[str] | str = (),
    words: str | Mapping[Any, str] = "",
    spread: str = "",
    at: float | Mapping[float | str, str] | None = None,
    limits: tuple | Mapping[Any, tuple] | None = None,
    log: bool = False,
    same: str | None = None,
    number: str = "",
    **levels: Iterable,
):
    """A figure with a panel per run that has results of the family ``names``, ``"rate.{attack}.{mechanism}"``.

    * ``form``: "intervals" and "stacked" (groups ``y``), "curves" (over ``x``), "percentiles" (over the part ``q``).
    * ``names``: several families differ in colour, label -> family; in a list the labels are the short ones of ``book/quantities``.
    * ``x``, ``y``, ``colour``, ``panel``: a part of the names, or a label with parts, ``"ε = {epsilon}"``; "run" is the data set. Each
      level of ``panel`` has panels of its own.
    * ``levels``: the levels of a part to show, ``mechanism=("HMC", "W4M")``; a mapping also gives their labels.
    * ``say``: what the alternative text gives: levels, ``{"k": 2}``, or other families. By default all numbers if a run has few,
      else the ends of curves, the middle of percentiles, the first colour.
    * ``words``: the label of the axis of the values, if the short one of the first family does not fit. ``words`` and ``limits`` may
      differ between the levels of ``panel``: level -> words.
    * ``spread``: the family with the range over repetitions, drawn behind the intervals.
    * ``at``: reference lines, as drawn or the name of a result -> text. ``limits``: of the axis of the values, as drawn.
    * ``log``: a logarithmic x axis. ``same``: the limits that the panels share, by default those of the y axis of curves.
    """
    if form not in _FORMS:
        raise ValueError(f"a figure has one of the forms {', '.join(_FORMS)} (got {form!r})")
    families = {"": names} if isinstance(names, str) else names
    families = families if isinstance(families, Mapping) else {compared.short(family): family for family in families}
    axes = dict(zip(_AXES, (panel, y, colour, x), strict=True))
    axis_labels = {axis: compared.names.parts.get(f"{part}=", part) for axis, part in axes.items()}

    def labelled(of: Mapping[str, str], kind: str = "results") -> pd.DataFrame:
        return _labelled(compared, of, axes, levels, kind)

    table = labelled(families)
    if table.empty:
        return Markdown("Not drawn: there are no such results.")
    if words:
        table["words"] = table["_level"].map(words) if isinstance(words, Mapping) else words
    if spread:
        parts = parts_of(families[""])
        ranges = labelled({"": spread}).rename(columns={"low": "least", "high": "largest"})
        table = table.merge(ranges[[_RUN, *parts, "least", "largest"]], "left", [_RUN, *parts])
    printed = labelled(families, "printed") if form == "intervals" else table[:0]
    marks = _marks(form, table)
    drawn = list(dict.fromkeys(table[_RUN]))
    by = ["panel"] if _RUN in (x, y, colour) else ["panel", _RUN]
    panels = list(table.groupby(by, sort=False))
    drawn_axes = plot.panels(len(panels), _size(form, table))
    for axis, (key, rows) in zip(drawn_axes, panels, strict=True):
        title = "\n".join(filter(None, [_with_count(key[1], rows) if len(by) > 1 else "", key[0]]))
        panel_limits = limits.get(rows["_level"].iloc[0]) if isinstance(limits, Mapping) else limits
        of_paper = printed[(printed[by] == list(key)).all(axis=1)]
        value_axis = _draw(form, axis, rows, marks, of_paper, panel_limits, log)
        if form == "curves":
            axis.set_xlabel(axis_labels["x"])
        unit = rows["unit"].iloc[0]
        axis.set(**{f"{value_axis}label": rows["words"].iloc[0] + _in_parentheses(unit)}, title=title)
        if panel_limits and form != "percentiles":  # which draw with a margin
            axis.set(**{f"{value_axis}lim": panel_limits})
        for place, text in (at if isinstance(at, Mapping) else {} if at is None else {at: ""}).items():
            run = next(run for run in compared.runs if run.title == rows[_RUN].iloc[0])
            if place in run.results or not isinstance(place, str):
                value = (100 if unit in _PERCENT else 1) * run.value(place) if isinstance(place, str) else place
                plot.reference(axis, **{value_axis: value}, text=text)
    said = table
    if say and not isinstance(say, Mapping):
        said = labelled({family: family for family in ([say] if isinstance(say, str) else say)})
        said = said if colour else said.assign(colour="")
    return plot.show(
        drawn_axes,
        caption + compared.undrawn([run for run in compared.runs if run.title in drawn]),
        _aloud(form, said, axis_labels, say) or _aloud(form, table, axis_labels, ()) or caption,  # others may lack what is said
        number=number,
        legend=(marks if len(marks) > 1 else {}) | (_PRINTED if len(printed) else {}),
        same=("y" if form == "curves" else "") if same is None else same,
    )


# ------------------------------------------------------------------------------------------------------------------ numbers
def _labelled(compared, families: Mapping[str, str], axes: Mapping[str, str], levels: Mapping, kind: str) -> pd.DataFrame:
    """A row per number: run, parts, value, low, high, n, the labels on each axis, and words and unit of the quantity."""
    tables = []
    for label, family in families.items():
        labels = {
            part: {number_or_text(text): words for text, words in compared.labels(part, families.values(), levels).items()}
            for part in parts_of(family)
        }
        templates = {axis: template if "{" in template else f"{{{template}}}" for axis, template in axes.items() if template}
        templates = {"colour": label} | templates  # without a colour, what tells the families apart
        of_panel, of_colour, of_y = (parts_of(templates.get(axis, "")) for axis in ("panel", "colour", "y"))
        if axes["x"] in labels.keys() - levels.keys():
            labels[axes["x"]] = dict(sorted(labels[axes["x"]].items()))
        chosen = {part: labels[part] for part in dict.fromkeys([*of_y, *levels, *labels]) if part in labels}  # sorted by them
        for run in compared.runs:
            rows = run._replace(results=getattr(run, kind)).rows(family, **chosen)
            if rows.empty:
                continue
            texts = {part: rows[part].map(words) for part, words in labels.items()} | {_RUN: pd.Series(run.title, rows.index)}
            numbers = rows[axes["x"]] if axes["x"] in labels else ""
            rows["_level"], rows["_raw"] = (
                rows[of[0]] if len(of) == 1 and of[0] in labels else other
                for of, other in ((of_panel, ""), (of_colour, templates["colour"]))
            )
            places = list(labels.get(of_colour[0], {})) if len(of_colour) == 1 else []
            rows["_place"] = [places.index(level) if level in places else 0 for level in rows["_raw"]]
            for axis in _AXES:
                rows[axis] = _texts(templates.get(axis, ""), texts, rows.index)
            rows["x"], rows["_family"] = numbers, label
            for _, of in rows.groupby("panel", sort=False):
                in_panel = {part: _text(of[part].iloc[0]) for part in of_panel if part in labels}
                known = compared.names.of(compared.notebook, filled(family, in_panel))
                tables.append(of.assign(**{_RUN: run.title, "words": known.short or family, "unit": known.unit}))
    if not tables:
        return pd.DataFrame(columns=[_RUN, *_AXES, "value"])
    table = pd.concat(tables, ignore_index=True)
    order = {title: place for place, title in enumerate(run.title for run in compared.runs)}
    panels = {name: place for place, name in enumerate(dict.fromkeys(table["panel"]))}
    return table.sort_values(by=["panel", _RUN], key=lambda column: column.map(panels | order), kind="stable")


def _texts(template: str, texts: Mapping[str, pd.Series], index: pd.Index) -> list[str]:
    """The labels on an axis; "" for results that do not have its parts."""
    parts = parts_of(template)
    if not set(parts) <= set(texts):
        return [""] * len(index)
    return [filled(template, {part: texts[part][i] for part in parts}) for i in index]


def _text(level: Any) -> str:
    return f"{level:g}" if isinstance(level, float) else str(level)


def _in_parentheses(unit: str) -> str:
    return f" ({behind(unit).strip(FIXED)})" if unit else ""


def _with_count(title: str, rows: pd.DataFrame) -> str:
    counts = sorted(rows.loc[rows["_family"] == rows["_family"].iloc[0], "n"].dropna().unique())
    ends = [shown(int(count)) for count in (counts if len(counts) < 2 else (counts[0], counts[-1]))]
    count = f"n{FIXED}={FIXED}{' to '.join(ends)}"
    between = ", " if len(title + count) < _TITLE else "\n"
    return f"{title}{between}{count}" if ends else title


# ------------------------------------------------------------------------------------------------------------------ drawing
def _marks(form: str, table: pd.DataFrame) -> dict[str, Mark]:
    """A name's own mark; for numbers the steps of an order; else the next free mark."""
    places = table.sort_values("_place", kind="stable")
    raw = dict(zip(places["colour"], places["_raw"], strict=True))
    own = {label: palette.MARKS.get(label) for label in raw}
    if form == "stacked":
        if list(own.values()).count(None) > 1:
            return plot.parts(raw)
        return {label: Mark(look.colour if look else palette.FAINT, "s") for label, look in own.items()}
    missing = [label for label, look in own.items() if look is None]
    free = [look for look in _FREE if look.colour not in {mark.colour for mark in own.values() if mark}]
    numeric = len(missing) > 1 and all(isinstance(raw[label], float) for label in missing)
    if numeric or len(missing) > len(free):
        missing = sorted(missing, key=raw.get) if numeric else missing
        free = plot.levels(range(len(missing))).values()
    return own | dict(zip(missing, free, strict=False))


def _size(form: str, table: pd.DataFrame) -> tuple[float, float] | None:
    groups, kinds = table["y"].nunique(), table["colour"].nunique()
    if form == "stacked":
        return _ACROSS, 0.9 + 0.3 * groups
    return (_ACROSS, max(2.2, 0.9 + groups * max(0.18, 0.13 * kinds))) if form == "intervals" else None


def _draw(form: str, axis, rows: pd.DataFrame, marks: dict, printed: pd.DataFrame, limits, log: bool) -> str:
    """Draw a panel; returns the axis of the values."""
    unit = rows["unit"].iloc[0]
    if form == "curves":
        plot.curves(
            rows.assign(x=rows["x"].map(float)), "x", "colour", axis, percent=unit in _PERCENT, marks=marks, named=False
        )
        axis.set_xscale("log" if log else "linear")
        places = sorted(rows["x"].unique())
        if len(places) <= _EACH_TICK:
            axis.set_xticks(places, [shown(place) for place in places])
            axis.minorticks_off()
        return "y"
    if form == "stacked":
        plot.stacked(rows, "y", "colour", axis, marks)
    elif form == "percentiles":
        plot.percentiles(rows, "colour", axis, ends=limits, log=log, marks=marks)
    else:
        places = {(row["y"], row["colour"]): row for row in rows.to_dict("records")}
        of_paper = {(row["y"], row["colour"]): row["value"] for row in printed.to_dict("records")}
        of_paper = {place: value for place, value in of_paper.items() if place in places}
        plot.intervals(places, axis, marks, unit in _PERCENT, of_paper)
        if unit == "share" and not limits:
            axis.set(xlim=(-3, 103), xticks=range(0, 101, 20))
        if log:
            axis.set_xscale("log")
    return "x"


# ------------------------------------------------------------------------------------------------------------------ aloud
def _aloud(form: str, table: pd.DataFrame, axis_labels: Mapping[str, str], say) -> str:
    """The numbers for a reader who does not see the figure, a sentence per quantity."""
    said, ends = table, ""
    if isinstance(say, Mapping):
        for part, level in say.items():
            said = said[said[part].isin(level if isinstance(level, list | tuple) else [level])]
    elif not say and table.groupby(_RUN).size().max() > _READ_ALL:
        if form == "curves":
            said, ends = _ends(table), f"from the smallest {axis_labels['x']} to the largest"
        elif form == "percentiles":
            said, ends = table[table["q"] == 50], "50th percentile"
        else:
            said = table[table["colour"] == table.sort_values("_place", kind="stable")["colour"].iloc[0]]
    if said.empty:
        return ""
    if "text" not in said:
        said = said.assign(text=[shown(*number) for number in zip(said["value"], said["unit"], strict=True)])
    shared = [axis for axis in _AXES if axis_labels[axis] != _RUN and len(set(said[axis])) == 1 < len(set(table[axis]))]

    def named(row: pd.Series, axes: list[str]) -> str:
        return ", ".join(f"{axis_labels[a]} = {_text(row[a])}" if a == "x" else row[a] for a in axes if row[a] != "")

    sentences = []
    for words, of in said.groupby("words", sort=False):
        head = ", ".join(filter(None, [_capital(words), named(of.iloc[0], shared), ends]))
        differ = [axis for axis in _AXES if axis_labels[axis] != _RUN and len(set(of[axis])) > 1]
        runs = []
        for title, rows in of.groupby(_RUN, sort=False):
            numbers = [row["text"] + (f" ({text})" if (text := named(row, differ)) else "") for row in rows.to_dict("records")]
            runs.append(f"{title}: {', '.join(numbers)}")
        sentences.append(f"{head}. {'; '.join(runs)}.")
    return " ".join(sentences)


def _capital(words: str) -> str:
    return words if words[1:2] == " " else words[:1].upper() + words[1:]  # not "Ε of Geo-I"


def _ends(table: pd.DataFrame) -> pd.DataFrame:
    """A row per curve, with the text of its first and its last value."""
    curves = []
    for _, rows in table.groupby([_RUN, "panel", "colour"], sort=False):
        rows = rows.sort_values("x")
        first, last = (shown(rows["value"].iloc[end], rows["unit"].iloc[0]) for end in (0, -1))
        curves.append(rows.tail(1).assign(x="", text=f"{first} to {last}"))
    return pd.concat(curves)
