"""The chart types of the figures. A form without an axis draws on a new panel."""

from collections.abc import Iterable

import numpy as np
import pandas as pd
import shapely
from matplotlib.cm import ScalarMappable
from matplotlib.collections import PolyCollection
from matplotlib.colors import LinearSegmentedColormap, LogNorm, Normalize, PowerNorm, TwoSlopeNorm, to_rgba
from matplotlib.patches import Rectangle
from matplotlib.ticker import LogLocator

from mobpriv.base.numbers import shown
from mobpriv.plot.palette import BLUE, FAINT, INK, ORANGE, PRINTED, Mark, mark, ordered
from mobpriv.plot.style import CRISP, PANEL, WIDEST_PANEL, panels

_MARKERS = "osD^v<>Pp*hX"
_BAR_STEPS = 40  # steps of a colour bar; from 50 on matplotlib rasterises it, and its colours would not follow a dark page
_MAPS_ACROSS = 2  # small maps per row of a panel
_COARSE = 1 / 200  # smallest visible part, as a share of a small map's side
_NO_NUMBER_HATCH = "/////"  # hatching of an area without a number, which differs from an area with 0
_LOG_MARGIN = 1.15  # factor by which a logarithmic axis extends beyond its ends
_LEAST_PROBABILITY = 1e-4  # that the map of a channel shows
_SEAM = 0.4  # gap between two parts of a stacked bar, in per cent of the axis


def _axis(axis, height: float | None = None):
    return axis if axis is not None else panels(1, (WIDEST_PANEL, height) if height else None)[0]


def _in_groups(axis, groups: list):
    """Name the rows of a figure from top to bottom."""
    axis.set_yticks(range(len(groups)), groups)
    axis.set_ylim(len(groups) - 0.5, -0.5)
    axis.grid(axis="y", visible=False)
    return axis


def _numbers(table: pd.DataFrame) -> pd.DataFrame:
    """The table with its numbers as floats; a missing end of an interval becomes NaN and is not drawn."""
    return table.astype(dict.fromkeys(table.columns.intersection(["value", "low", "high", "least", "largest"]), float))


def levels(values, text: str = "{:g}") -> dict[str, Mark]:
    """Marks for the levels of an ordered scale, by label: one colour and one marker each."""
    colours = ordered(values)
    return {text.format(v): Mark(colour, _MARKERS[i % len(_MARKERS)]) for i, (v, colour) in enumerate(colours.items())}


def parts(names) -> dict[str, Mark]:
    """Marks for the parts of a stacked bar from left to right: one colour each, a square in the legend."""
    names = list(names)
    return {name: Mark(colour, "s") for name, colour in zip(names, ordered(range(len(names))).values(), strict=True)}


def reference(axis, x: float | None = None, y: float | None = None, text: str = ""):
    """Draw a faint reference line across the figure at ``x`` or ``y``, labelled with ``text``."""
    if x is not None:
        axis.axvline(x, color=FAINT, linewidth=0.8)
        axis.annotate(text, (x, 1), (4, -10), ("data", "axes fraction"), "offset points", fontsize=8)
    if y is not None:
        axis.axhline(y, color=FAINT, linewidth=0.8)
        axis.annotate(text, (1, y), (-3, 3), ("axes fraction", "data"), "offset points", fontsize=8, ha="right")
    return axis


def rates(table: pd.DataFrame, by: str, within: str, axis=None, twin: str = "", printed: dict | None = None, title: str = ""):
    """Rates with their intervals as dots: one group per ``by`` on the vertical axis, one dot per ``within``.

    * ``table``: columns ``by``, ``within``, value, low, high (shares), and optionally least and largest over repetitions.
    * ``twin``: a column of two values; dots of the second are hollow, below those of the first.
    * ``printed``: (by, within) -> the paper's value, drawn as a hollow diamond.

    The names in ``within`` determine the marks.
    """
    groups, kinds = list(dict.fromkeys(table[by])), list(dict.fromkeys(table[within]))
    twins = list(dict.fromkeys(table[twin])) if twin else [None]
    axis = _axis(axis, 0.75 + 0.2 * len(groups) * len(kinds) * len(twins))
    slots = [(kind, other) for kind in kinds for other in twins]
    for row in _numbers(table).to_dict("records"):
        other, look = row[twin] if twin else None, mark(row[within])
        y = groups.index(row[by]) + _offset(slots.index((row[within], other)), len(slots))
        face = look.colour if other == twins[0] else "none"
        if not np.isnan(row.get("least", np.nan)):  # a deterministic result has no spread
            spread = [100 * row["least"], 100 * row["largest"]]
            axis.plot(spread, [y, y], color=look.colour, linewidth=6, alpha=0.25, solid_capstyle="butt")
        axis.plot([100 * row["low"], 100 * row["high"]], [y, y], color=look.colour, linewidth=1.2, solid_capstyle="butt")
        axis.plot(100 * row["value"], y, look.marker, color=look.colour, markerfacecolor=face, markersize=4.5)
    for (group, kind), value in (printed or {}).items():
        y = groups.index(group) + np.mean([_offset(slots.index((kind, other)), len(slots)) for other in twins])
        axis.plot(100 * value, y, "D", markersize=7, markerfacecolor="none", markeredgecolor=PRINTED)
    axis.set(xlim=(-3, 103), xticks=range(0, 101, 20), xlabel="users re-identified (%)", title=title)
    return _in_groups(axis, groups)


def intervals(
    values: dict[tuple, dict],
    axis=None,
    marks: dict[str, Mark] | None = None,
    percent: bool = False,
    printed: dict[tuple, float] | None = None,
):
    """Results with their intervals as dots: groups from top to bottom, kinds separate within a group.

    * ``values``: (group, kind) -> value, optionally low and high, and least and largest over repetitions; an end that is None is
      not drawn. A single kind may be "". Kinds are in the order of ``marks``.
    * ``percent``: the values are shares, drawn in per cent.
    * ``printed``: (group, kind) -> the paper's value, drawn as a hollow diamond.
    """
    groups, kinds = (list(dict.fromkeys(keys)) for keys in zip(*values, strict=True))
    kinds = [kind for kind in dict.fromkeys([*(marks or {}), *kinds]) if kind in kinds]
    marks = {kind: mark(kind) if kind else Mark(BLUE, "o") for kind in kinds} | (marks or {})
    axis, scale = _axis(axis, 0.9 + 0.22 * len(groups) * len(kinds)), 100 if percent else 1
    for (group, kind), one in values.items():
        look, y, result = marks[kind], groups.index(group) + _offset(kinds.index(kind), len(kinds)), dict(one)  # or an Estimate
        for (least, largest), width, alpha in ((("least", "largest"), 6, 0.25), (("low", "high"), 1.2, 1)):
            ends = [result.get(least), result.get(largest)]
            if not any(end is None or np.isnan(end) for end in ends):
                line = {"color": look.colour, "linewidth": width, "alpha": alpha, "solid_capstyle": "butt"}
                axis.plot(scale * np.array(ends), [y, y], **line)
        if result["value"] is not None and not np.isnan(result["value"]):  # an undefined number leaves its row empty
            axis.plot(scale * result["value"], y, look.marker, color=look.colour, markersize=4.5)
    for (group, kind), value in (printed or {}).items():
        y = groups.index(group) + _offset(kinds.index(kind), len(kinds))
        axis.plot(scale * value, y, "D", markersize=7, markerfacecolor="none", markeredgecolor=PRINTED)
    return _in_groups(axis, groups)


def stacked(table: pd.DataFrame, by: str, within: str, axis=None, marks: dict[str, Mark] | None = None, title: str = ""):
    """Stacked bars of shares that sum to 1: one bar per ``by``, divided into the ``within`` in their order.

    ``table``: columns ``by``, ``within``, value.
    """
    groups, kinds = list(dict.fromkeys(table[by])), list(dict.fromkeys(table[within]))
    axis = _axis(axis, 0.75 + 0.35 * len(groups))
    share = _numbers(table).pivot(index=by, columns=within, values="value").loc[groups, kinds]
    left = np.zeros(len(groups))
    for kind in kinds:
        look = (marks or {}).get(kind) or mark(kind)
        width = 100 * share[kind].to_numpy()
        axis.barh(range(len(groups)), np.maximum(width - _SEAM, width / 2), left=left, color=look.colour, height=0.7)
        left += width
    axis.set(yticks=range(len(groups)), yticklabels=groups, xlim=(0, 100), xlabel="users (%)", title=title)
    axis.invert_yaxis()
    return axis


def _offset(place: int, count: int) -> float:
    return (place - (count - 1) / 2) * 0.8 / count


def dots(values: dict[tuple, np.ndarray], axis=None, marks: dict[str, Mark] | None = None, upright: bool = False):
    """A dot per case (for example per user) and a bar at the median.

    ``values``: (group, kind) -> one number per case. Groups run from top to bottom, or from left to right if ``upright``. Kinds
    are separate within a group, and a case has the same position in each. A single kind may be "".
    """
    groups, kinds = (list(dict.fromkeys(keys)) for keys in zip(*values, strict=True))
    marks = {kind: mark(kind) if kind else Mark(BLUE, "o") for kind in kinds} | (marks or {})
    axis = _axis(axis, None if upright else 0.9 + 0.22 * len(groups) * len(kinds))
    step = 0.75 / len(kinds)
    for (group, kind), cases in values.items():
        cases, (colour, marker, _) = np.asarray(cases, float), marks[kind]
        place = groups.index(group) + (kinds.index(kind) - (len(kinds) - 1) / 2) * step
        spread = place + 0.25 * step * np.linspace(-1, 1, len(cases)) if len(cases) > 1 else np.array([place])
        label = kind if group == groups[0] and kind else None
        median, bar = [np.median(cases)] * 2, [place - 0.42 * step, place + 0.42 * step]
        turn = -1 if upright else 1
        axis.plot(*(cases, spread)[::turn], marker, color=colour, alpha=0.3, markersize=4, label=label)
        # in ink and on top: in the colour of the dots it would be invisible
        axis.plot(*(median, bar)[::turn], color=INK, linewidth=2.5, solid_capstyle="butt", zorder=3)
    if not upright:
        return _in_groups(axis, groups)
    axis.set_xticks(range(len(groups)), groups)
    axis.set_xlim(-0.5, len(groups) - 0.5)
    axis.grid(axis="x", visible=False)
    return axis


def against(
    pairs: dict[str, tuple],
    axis=None,
    marks: dict[str, Mark] | None = None,
    hollow: str = "",
    diagonal: float | bool = True,
    joined: bool = False,
    alpha: float = 0.7,
):
    """Scatter plot: one dot per case, above the diagonal if the second number is larger.

    * ``pairs``: name -> (x, y), columns of equal length; a single name may be "".
    * ``hollow``: the name with large hollow dots around the others.
    * ``diagonal``: end of the diagonal and of the axes, for panels with equal axes. True uses the panel's largest number; False
      draws none, for numbers of different kinds.
    * ``joined``: connect the dots of a name in the given order; ``alpha``: opacity of dots that are not joined.
    """
    marks = {name: mark(name) if name else Mark(INK, "o") for name in pairs} | (marks or {})
    axis = _axis(axis, 4.4 if diagonal else None)
    for name, (x, y) in pairs.items():
        point_mark = marks[name]
        look = {"markerfacecolor": "none", "markersize": 8} if name == hollow and name else {"markersize": 4.5}
        if point_mark.marker == "_":  # a dash has only an edge
            look = {"markersize": 5, "markeredgewidth": 1.8}
        look |= {"linewidth": 1.2} if joined else {"alpha": alpha}
        line = "-" if joined else "none"
        axis.plot(x, y, marker=point_mark.marker, linestyle=line, color=point_mark.colour, label=name or None, **look)
    if diagonal:
        top = 1.05 * max(np.max(column) for columns in pairs.values() for column in columns) if diagonal is True else diagonal
        axis.plot([0, top], [0, top], color=FAINT, linewidth=0.8)
        axis.set(xlim=(0, top), ylim=(0, top), aspect="equal")
    return axis


def lines(table: pd.DataFrame, name: str, axis=None):
    """A line per case (for example per user): the columns of ``table`` over its index, with the mark of ``name``."""
    axis, look = _axis(axis), mark(name)
    axis.plot(table.index, table, look.marker, color=look.colour, linestyle="-", linewidth=1, markersize=3.5, alpha=0.4)
    return axis


def curves(
    table: pd.DataFrame,
    x: str,
    kind: str,
    axis=None,
    xlabel: str = "",
    ylabel: str = "",
    title: str = "",
    percent: bool = True,
    marks: dict[str, Mark] | None = None,
    named: bool = True,
):
    """Lines with intervals, each labelled at its end. ``table``: columns ``x``, ``kind``, value, low, high.

    ``named``: False if a legend shows the names, because labels at the ends narrow the panel.
    """
    axis = _axis(axis)
    scale, ends = (100 if percent else 1), []
    for name, rows in _numbers(table).groupby(kind, sort=False):
        rows, look = rows.sort_values(x), (marks or {}).get(name) or mark(name)
        axis.fill_between(rows[x], scale * rows["low"], scale * rows["high"], color=look.colour, alpha=0.15, linewidth=0)
        axis.plot(rows[x], scale * rows["value"], marker=look.marker, markersize=4, color=look.colour)
        ends.append((rows[x].iloc[-1], scale * rows["value"].iloc[-1], name, look.colour))
    if named:
        label_ends(axis, ends)
    axis.set(xlabel=xlabel, ylabel=ylabel, title=title)
    return axis


def at(axis, table: pd.DataFrame, x: str, kind: str, here: float, percent: bool = True, marks: dict[str, Mark] | None = None):
    """Mark one position on ``curves``: a line at x = ``here``, and the values there as large marks with intervals."""
    reference(axis, x=here)
    for name, rows in _numbers(table[table[x] == here]).groupby(kind, sort=False):
        look, (row,) = (marks or {}).get(name) or mark(name), rows.to_dict("records")
        value, low, high = ((100 if percent else 1) * row[key] for key in ("value", "low", "high"))
        axis.plot([here, here], [low, high], color=look.colour, linewidth=3, solid_capstyle="butt", zorder=3)
        axis.plot(here, value, look.marker, color=look.colour, markersize=9, zorder=3)
    return axis


def label_ends(axis, ends: Iterable[tuple[float, float, str, str]]):
    """Request names at the ends of lines, (x, y, name, colour). They are placed, without overlap, when the figure is shown."""
    axis.ends = [*getattr(axis, "ends", []), *ends]
    return axis


def distributions(steps: dict[str, tuple], axis=None, xlabel: str = "", title: str = "", ylabel: str = "users (%)"):
    """Empirical distribution functions; ``steps``: name -> (x, share of the values at most x), rising."""
    axis, ends = _axis(axis), []
    right = max([2.0, *(np.max(x) for x, _ in steps.values() if len(x))])
    for name, (x, share) in steps.items():
        colour, top = mark(name).colour, 100 * share[-1] if len(share) else 0.0
        axis.step(np.r_[1, x, right], np.r_[0, 100 * np.asarray(share), top], where="post", color=colour)
        ends.append((right, top, name, colour))
    axis.set(xscale="log", xlim=(1, right), ylim=(0, 102), xlabel=xlabel, ylabel=ylabel, title=title)
    axis.xaxis.set_major_formatter(lambda x, _: shown(float(x)))
    return label_ends(axis, ends)


def percentiles(
    table: pd.DataFrame,
    kind: str,
    axis=None,
    xlabel: str = "",
    ends: tuple[float, float] | None = None,
    log: bool = False,
    marks: dict[str, Mark] | None = None,
    ylabel: str = "users (%)",
):
    """Distribution functions from percentiles: the share of the values at most x.

    ``table``: columns ``kind``, q (percent), value (infinite ones are never reached). ``ends``: limits of the x axis. The
    legend names the kinds.
    """
    axis = _axis(axis)
    for name, rows in table.groupby(kind, sort=False):
        look, rows = (marks or {}).get(name) or mark(name), rows[np.isfinite(rows["value"])].sort_values("q")
        axis.plot(rows["value"], rows["q"], color=look.colour, marker=look.marker, markersize=3.5, markevery=4, clip_on=True)
    if log:
        axis.set_xscale("log")
        axis.xaxis.set_major_formatter(lambda x, _: shown(float(x)))
        axis.xaxis.set_minor_formatter(lambda *_: "")
    if ends:
        margin = 0.02 * (ends[1] - ends[0])  # margin, so that a curve along an end is not cut
        axis.set_xlim(*(ends[0] / _LOG_MARGIN, ends[1] * _LOG_MARGIN) if log else (ends[0] - margin, ends[1] + margin))
    axis.set(ylim=(0, 102), xlabel=xlabel, ylabel=ylabel)
    return axis


def heat_map(bounds: np.ndarray, shares: np.ndarray, axis=None, title: str = "", label: str = "share of records"):
    """Cells of a grid coloured by the logarithm of their share. ``bounds``: (n, 4) south, west, north, east in degrees."""
    axis = _axis(axis, 4.2)
    south, west, north, east = np.asarray(bounds).T
    corners = np.stack([np.column_stack(c) for c in ((west, south), (east, south), (east, north), (west, north))], axis=1)
    norm = LogNorm(max(shares.min(), 1e-5), shares.max()) if shares.min() < shares.max() else None
    cells = PolyCollection(corners, array=shares, cmap="cividis", norm=norm, linewidths=0.2, edgecolors=FAINT)
    axis.add_collection(cells)
    as_map(axis, south.min(), north.max(), west.min(), east.max())
    _colour_bar(axis, cells, label, 0.8)
    axis.set_title(title)
    return axis


def area_maps(shapes, values: dict[tuple[str, str], np.ndarray], label: str = "share (%)") -> list:
    """Small maps of the same areas, one panel per column; darker means a larger share. Areas without a number are hatched.

    ``values``: (name, column name) -> a share per area; a panel has one map per name, two in a row. ``shapes``: polygons in
    degrees. Borders are simplified to a two-hundredth of the map, and smaller parts are omitted. Colours follow the square root
    of the share, so that small shares are visible.
    """
    names, columns = (list(dict.fromkeys(name[side] for name in values)) for side in (0, 1))
    rings, area_of, wide, high = _outlines(shapes)
    across, down, rows = 1.06 * wide, high + 0.16, -(-len(names) // _MAPS_ACROSS)
    cmap = LinearSegmentedColormap.from_list("areas", [(0, to_rgba(BLUE, 0.02)), (1, to_rgba(BLUE, 1))])
    norm = PowerNorm(0.5, 0, 1)
    missing = not all(np.isfinite(np.asarray(share, float)[area_of]).all() for share in values.values())
    foot = 0.22 if missing else 0.0
    size = (PANEL[0], 0.9 + (PANEL[0] - 0.1) * (rows * down + foot) / (_MAPS_ACROSS * across))
    axes = panels(len(columns), size)
    for axis, column in zip(axes, columns, strict=True):
        for i, name in enumerate(names):
            corner = np.array([i % _MAPS_ACROSS * across, -(i // _MAPS_ACROSS) * down])
            area_shares = np.asarray(values[name, column], float)[area_of]
            known = np.isfinite(area_shares)
            placed = np.array([ring + corner for ring in rings], dtype=object)
            look = {"edgecolors": FAINT, "linewidths": 0.2}
            axis.add_collection(PolyCollection(list(placed[known]), facecolors=cmap(norm(area_shares[known])), **look))
            if not known.all():
                axis.add_collection(PolyCollection(list(placed[~known]), facecolors="none", hatch=_NO_NUMBER_HATCH, **look))
            axis.text(corner[0] + wide / 2, corner[1] + high + 0.02, name, ha="center", va="bottom", fontsize=8)
        bottom = high - rows * down
        if missing:
            look = {"facecolor": "none", "edgecolor": FAINT, "linewidth": 0.4, "hatch": _NO_NUMBER_HATCH}
            axis.add_patch(Rectangle((0, bottom), 0.16, 0.1, **look))
            axis.text(0.2, bottom + 0.05, "no number", va="center", fontsize=8)
        axis.set(xlim=(-0.03, _MAPS_ACROSS * across), ylim=(bottom - 0.04, high + 0.12), aspect="equal", title=column)
        axis.set_axis_off()
        colours = ScalarMappable(norm, cmap.resampled(_BAR_STEPS))
        bar = axis.figure.colorbar(colours, ax=axis, location="bottom", shrink=0.9, aspect=25, pad=0.01)
        bar.solids.set_gid(CRISP)
        bar.set_ticks([0, 0.01, 0.05, 0.2, 0.5, 1], labels=["0", "1", "5", "20", "50", "100"])
        bar.set_label(label)
        bar.outline.set_edgecolor(FAINT)
    return axes


def _outlines(shapes) -> tuple[list[np.ndarray], np.ndarray, float, float]:
    """The outer borders of all polygon parts in a square of side 1, the polygon of each, and the total width and height."""
    west, south, east, north = shapely.total_bounds(np.asarray(shapes, object))
    squeeze = np.cos(np.radians((south + north) / 2))
    side = max((east - west) * squeeze, north - south)
    plane = shapely.transform(np.asarray(shapes, object), lambda xy: (xy - [west, south]) * [squeeze / side, 1 / side])
    parts, area_of = _coarse(plane)
    seen = np.ptp(shapely.bounds(parts).reshape(-1, 2, 2), axis=1).max(axis=1) > _COARSE  # the bounds of empty parts are NaN
    rings = [shapely.get_coordinates(ring) for ring in shapely.get_exterior_ring(parts[seen])]
    return rings, area_of[seen], (east - west) * squeeze / side, (north - south) / side


def _coarse(plane: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The parts of polygons with simplified borders, and the polygon of each part.

    Neighbours are simplified together; separately they would leave gaps between them. Overlapping polygons are simplified
    separately.
    """
    present = np.flatnonzero(~(shapely.is_missing(plane) | shapely.is_empty(plane)))
    if shapely.coverage_is_valid(plane[present]):
        parts, area_of = shapely.get_parts(shapely.coverage_simplify(plane[present], _COARSE), return_index=True)
        return parts, present[area_of]
    parts, area_of = shapely.get_parts(plane, return_index=True)
    return shapely.simplify(parts, _COARSE, preserve_topology=False), area_of


def channel_map(grid, row: np.ndarray, secret: int, axis=None, title: str = ""):
    """The cells of an area coloured by p(o|s), with the secret cell s outlined; axes in km.

    ``row``: the secret's row of a channel. Cells below :data:`_LEAST_PROBABILITY` stay empty.
    """
    axis, p, least = _axis(axis, 3.4), np.asarray(row, float), _LEAST_PROBABILITY
    size = np.array([grid.width / grid.columns, grid.height / grid.rows]) / 1000  # km
    corners = (grid.centres() / 1000)[:, None, :] + size * np.array([(-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5)])
    drawn = p >= least
    axis.add_collection(PolyCollection(corners, facecolors="none", linewidths=0.3, edgecolors=FAINT, alpha=0.5))
    norm = LogNorm(least, 1)
    cells = PolyCollection(corners[drawn], array=p[drawn], cmap="cividis", norm=norm, linewidths=0.3, edgecolors=FAINT)
    axis.add_collection(cells)
    axis.add_collection(PolyCollection(corners[[secret]], facecolors="none", edgecolors=PRINTED, linewidths=2.2, zorder=3))
    axis.set(xlim=(0, grid.width / 1000), ylim=(0, grid.height / 1000), aspect="equal")
    axis.set(xlabel="km east", ylabel="km north", title=title)
    axis.grid(visible=False)
    _colour_bar(axis, cells, f"p(o|s), from {least:g}", 0.65)
    return axis


def tiles(
    table: pd.DataFrame,
    axis=None,
    xlabel: str = "",
    ylabel: str = "",
    title: str = "",
    label: str = "",
    ends: tuple[float, float] | None = None,
    text: str = "{:.0f}",
    framed: dict[str, pd.DataFrame] | None = None,
    size: tuple[float, float] | None = None,
):
    """Heat map: rows and columns of ``table`` as coloured tiles with their numbers.

    ``ends``: limits of the colours; if they have different signs, the middle colour is at 0. ``framed``: colour -> truth
    values, the tiles with a frame of this colour; frames are nested.
    """
    axis = axis if axis is not None else panels(1, size)[0]
    values = table.to_numpy(float)
    low, high = ends or (np.nanmin(values), np.nanmax(values))
    both = low < 0 < high
    norm = TwoSlopeNorm(0, min(low, -1e-9), max(high, 1e-9)) if both else Normalize(low, high)
    # transparent on light and dark pages, so that the numbers keep the page's ink
    steps = [(0, (BLUE, 0.02)), (1, (BLUE, 0.6))]
    if both:  # one pure colour per side: dark pages replace these two colours but not their mixtures
        steps = [(0, (ORANGE, 0.6)), (0.5, (ORANGE, 0.02)), (0.5, (BLUE, 0.02)), (1, (BLUE, 0.6))]
    cmap = LinearSegmentedColormap.from_list("tiles", [(at, to_rgba(*colour)) for at, colour in steps])
    image = axis.pcolormesh(np.ma.masked_invalid(values), cmap=cmap, norm=norm, edgecolors=FAINT, linewidth=0.2)
    for (row, column), value in np.ndenumerate(values):
        if np.isfinite(value):
            axis.text(column + 0.5, row + 0.5, _minus(text.format(value)), ha="center", va="center", fontsize=8, color=INK)
            for place, (colour, which) in enumerate((framed or {}).items()):
                if bool(which.to_numpy()[row, column]):
                    near = 0.05 + 0.09 * place
                    corner, side = (column + near, row + near), 1 - 2 * near
                    axis.add_patch(Rectangle(corner, side, side, fill=False, edgecolor=colour, linewidth=1.6))
    names = [[each if isinstance(each, str) else f"{each:g}" for each in side] for side in (table.columns, table.index)]
    axis.set_xticks(np.arange(len(names[0])) + 0.5, names[0])
    axis.set_yticks(np.arange(len(names[1])) + 0.5, names[1])
    axis.grid(visible=False)
    axis.set(xlabel=xlabel, ylabel=ylabel, title=title)
    if label:
        _colour_bar(axis, image, label, 0.9)
    return axis


def confusion(table: pd.DataFrame, axis=None, title: str = "", xlabel: str = "label", ylabel: str = "true label"):
    """A confusion matrix: one row per true class, the first on top, with the shares (%) of its labels; the diagonal is framed.

    ``table``: columns true, found, value, in the order of the classes. The row of an empty class stays empty.
    """
    axis = axis if axis is not None else panels(1, (4.4, 3.6))[0]
    classes = list(dict.fromkeys(table["true"]))
    shares = _numbers(table).pivot(index="true", columns="found", values="value")
    percent = 100 * shares.reindex(index=classes[::-1], columns=classes)
    diagonal = pd.DataFrame(np.equal.outer(classes[::-1], classes), percent.index, percent.columns)
    tiles(percent, axis, xlabel, ylabel, title, ends=(0.0, 100.0), framed={FAINT: diagonal})
    axis.set_xticks(axis.get_xticks(), [name.replace(" ", "\n") for name in classes])
    axis.set_yticks(axis.get_yticks(), [name.replace(" ", "\n") for name in classes[::-1]])
    return axis


def _minus(text: str) -> str:
    """A number's text with the minus sign of the book; 0 has no sign."""
    return text.lstrip("-") if not text.strip("-0.") else text.replace("-", "−")


def _colour_bar(axis, cells, label: str, shrink: float):
    """A colour bar with numbers in the book's format: 0.001, not a power of ten."""
    cells.autoscale_None()
    steps = ScalarMappable(cells.norm, cells.cmap.resampled(_BAR_STEPS))  # few, so that they are drawn as vectors, not pixels
    bar = axis.figure.colorbar(steps, ax=axis, shrink=shrink, format=lambda x, _: shown(float(x)))
    bar.solids.set_gid(CRISP)
    if isinstance(cells.norm, LogNorm) and cells.norm.vmax < 100 * cells.norm.vmin:  # too few powers of ten
        bar.locator = LogLocator(subs=(1, 2, 5))
    bar.ax.yaxis.set_minor_formatter(lambda *_: "")
    bar.set_label(label)
    bar.outline.set_edgecolor(FAINT)


def as_map(axis, south: float, north: float, west: float, east: float):
    """Axes in degrees with equal kilometres northwards and eastwards."""
    pad = 0.03 * max(north - south, east - west)
    axis.set(xlim=(west - pad, east + pad), ylim=(south - pad, north + pad), xlabel="longitude (°)", ylabel="latitude (°)")
    axis.set_aspect(1 / np.cos(np.radians((south + north) / 2)))
    axis.ticklabel_format(useOffset=False)
    axis.tick_params(axis="x", rotation=30)
    return axis
