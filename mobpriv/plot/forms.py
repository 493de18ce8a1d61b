"""The figures of the book: one style, direct labels, intervals. The only module that draws.

A figure is shown as an SVG whose ink and colours follow the page's theme, light or dark: :func:`show` puts CSS variables in
the place of the style's colours (:mod:`mobpriv.palette`).
"""

import io
import re
from html import escape

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.collections import PolyCollection
from matplotlib.colors import LogNorm

from mobpriv.palette import BLUE, DARK, FAINT, INK, PRINTED, Mark, mark, ordered

_WIDEST_PANEL = 540  # points: the widest figures of one panel are 7.2 inches
_MARKERS = "osD^v<>Pp*hX"

STYLE = {
    "figure.figsize": (6.4, 3.6),
    "figure.dpi": 100,
    "figure.constrained_layout.use": True,
    "savefig.transparent": True,
    "font.size": 10,
    "font.family": "DejaVu Sans",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.titlecolor": INK,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": FAINT,
    "grid.alpha": 0.25,
    "text.color": INK,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "legend.title_fontsize": 8,
    "lines.linewidth": 1.6,
    "svg.fonttype": "none",
    "svg.hashsalt": "mobpriv",
}


def figure(rows: int = 1, columns: int = 1, **keywords):
    """``plt.subplots`` in the book's style, which stays in force for what is drawn into it (legends, notes)."""
    mpl.rcParams.update(STYLE)
    fig, axes = plt.subplots(rows, columns, **keywords)
    plt.close(fig)  # shown by show(), not by the end of a cell
    return fig, axes


class Picture:
    """A figure as the book shows it: SVG for pages, PNG for print. ``alt`` says in words what is to be seen."""

    def __init__(self, fig, alt: str):
        self.alt = alt
        svg, png = io.StringIO(), io.BytesIO()
        fig.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
        fig.savefig(png, format="png", dpi=150, transparent=False, facecolor="white", metadata={"Software": None})
        self.svg, self.png = themed(svg.getvalue(), alt), png.getvalue()

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/html": f'<div class="mobpriv-figure">{self.svg}</div>', "image/png": self.png, "text/plain": self.alt}


def show(fig, alt: str) -> Picture:
    return Picture(fig, alt)


def themed(svg: str, alt: str) -> str:
    """The SVG element alone, with a CSS variable for each colour of the style (its value here is the fallback).

    A figure of several panels says how wide it must be for its small print (8 pt) to be 9 px high: phones keep it so.
    """
    svg = svg[svg.index("<svg") :]
    width = float(re.search(r'viewBox="\S+ \S+ (\S+)', svg)[1])  # in points
    own_width = f' style="--own-width: {9 / 8 * width:.0f}px"' if width > _WIDEST_PANEL else ""
    namespaces = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    element = rf'<svg {namespaces} viewBox="\1" role="img" aria-label="{escape(alt)}"{own_width}>'
    svg = re.sub(r'<svg [^>]*?viewBox="([^"]*)"[^>]*>', element, svg, count=1)
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    for colour in DARK:
        svg = re.sub(colour, f"var(--mp-{colour[1:]}, {colour})", svg, flags=re.IGNORECASE)
    return svg


def stylesheet() -> str:
    """The CSS variables of :func:`themed`, for light pages and dark ones."""
    light = "\n".join(f"  --mp-{c[1:]}: {c};" for c in DARK)
    dark = "\n".join(f"  --mp-{c[1:]}: {d};" for c, d in DARK.items())
    return f":root {{\n{light}\n}}\nhtml[data-theme=dark] {{\n{dark}\n}}\n"


def levels(values, text: str = "{:g}") -> dict[str, Mark]:
    """Marks for the levels of something that has an order, by what the level is called: a colour and a marker each."""
    colours = ordered(values)
    return {text.format(v): Mark(colour, _MARKERS[i % len(_MARKERS)]) for i, (v, colour) in enumerate(colours.items())}


def reference(axis, x: float | None = None, y: float | None = None, text: str = ""):
    """A faint line across the figure at ``x`` or ``y``, what the data are to be held against, with its text beside it."""
    if x is not None:
        axis.axvline(x, color=FAINT, linewidth=0.8)
        axis.annotate(text, (x, 1), (4, -10), ("data", "axes fraction"), "offset points", fontsize=8)
    if y is not None:
        axis.axhline(y, color=FAINT, linewidth=0.8)
        axis.annotate(text, (1, y), (-3, 3), ("axes fraction", "data"), "offset points", fontsize=8, ha="right")
    return axis


def rates(table: pd.DataFrame, by: str, within: str, axis=None, printed: pd.Series | None = None, title: str = ""):
    """Rates with their intervals as dots: one group per ``by`` on the vertical axis, one dot per ``within``.

    ``table``: columns ``by``, ``within``, value, low, high (shares). ``printed``: the paper's values, indexed by (by, within),
    drawn as hollow diamonds.
    """
    groups, kinds = list(dict.fromkeys(table[by])), list(dict.fromkeys(table[within]))
    if axis is None:
        _, axis = figure(figsize=(6.4, 0.75 + 0.24 * len(groups) * len(kinds)))
    offset = {kind: (i - (len(kinds) - 1) / 2) * 0.8 / len(kinds) for i, kind in enumerate(kinds)}
    for row in table.to_dict("records"):
        y, own = groups.index(row[by]) + offset[row[within]], mark(row[within])
        axis.plot([100 * row["low"], 100 * row["high"]], [y, y], color=own.colour, linewidth=1.4, solid_capstyle="butt")
        axis.plot(100 * row["value"], y, own.marker, color=own.colour, markersize=5)
        right = row["high"]
        if printed is not None and (row[by], row[within]) in printed.index:
            paper = printed[row[by], row[within]]
            right = max(right, paper + 0.01)  # the label stands clear of the diamond
            axis.plot(100 * paper, y, "D", markersize=7, markerfacecolor="none", markeredgecolor=PRINTED)
        if len(kinds) > 1:
            label = {"xytext": (4, 0), "textcoords": "offset points", "va": "center", "fontsize": 8, "color": own.colour}
            axis.annotate(row[within], (100 * right, y), **label)
    if printed is not None and len(printed):
        axis.plot([], [], "D", markersize=6, markerfacecolor="none", markeredgecolor=PRINTED, label="printed in the paper")
        axis.legend(loc="lower right", fontsize=8, handletextpad=0.2)
    axis.set_yticks(range(len(groups)), groups)
    axis.set_ylim(len(groups) - 0.5, -0.5)
    axis.set_xlim(-2, 118)
    axis.set_xticks(range(0, 101, 20))
    axis.grid(axis="y", visible=False)
    axis.set_xlabel("users re-identified (%), with 95 % interval")
    axis.set_title(title)
    return axis


def dots(values: dict[tuple, np.ndarray], axis=None, marks: dict[str, Mark] | None = None, upright: bool = False):
    """A dot for each case, a user for instance, and a bar at the median.

    ``values``: (group, kind) -> one number a case. Groups stand one below the other, or side by side if ``upright``; kinds
    stand apart within a group, and a case at the same place in each. A single kind may be called "".
    """
    groups, kinds = (list(dict.fromkeys(keys)) for keys in zip(*values, strict=True))
    marks = {kind: mark(kind) if kind else Mark(BLUE, "o") for kind in kinds} | (marks or {})
    if axis is None:
        _, axis = figure(figsize=(6.4, 3.6) if upright else (6.4, 0.9 + 0.24 * len(groups) * len(kinds)))
    room = 0.75 / len(kinds)
    for (group, kind), cases in values.items():
        cases, (colour, marker) = np.asarray(cases, float), marks[kind]
        place = groups.index(group) + (kinds.index(kind) - (len(kinds) - 1) / 2) * room
        spread = place + 0.25 * room * np.linspace(-1, 1, len(cases)) if len(cases) > 1 else np.array([place])
        label = kind if group == groups[0] and kind else None
        median, bar = [np.median(cases)] * 2, [place - 0.42 * room, place + 0.42 * room]
        axis.plot(*_turned(cases, spread, upright), marker, color=colour, alpha=0.5, markersize=4, label=label)
        axis.plot(*_turned(median, bar, upright), color=colour, linewidth=2, solid_capstyle="butt")
    if upright:
        axis.set_xticks(range(len(groups)), groups)
        axis.set_xlim(-0.5, len(groups) - 0.5)
    else:
        axis.set_yticks(range(len(groups)), groups)
        axis.set_ylim(len(groups) - 0.5, -0.5)
    axis.grid(axis="x" if upright else "y", visible=False)
    return axis


def _turned(values, places, upright: bool):
    return (places, values) if upright else (values, places)


def against(
    pairs: dict[str, tuple],
    axis=None,
    marks: dict[str, Mark] | None = None,
    hollow: str = "",
    diagonal: float | bool = True,
    joined: bool = False,
):
    """This against that: one dot a case, above the diagonal where the second number is the larger.

    ``pairs``: name -> (x, y), columns of equal length; a single name may be "". The dots of the name ``hollow`` lie around the
    others. ``diagonal``: how far it and the axes go, for panels that are to be alike; True takes this one's largest number, False
    is for numbers of two kinds, without it. ``joined``: a line goes through the dots of a name, in the order given.
    """
    marks = {name: mark(name) if name else Mark(INK, "o") for name in pairs} | (marks or {})
    if axis is None:
        _, axis = figure(figsize=(5.0, 4.6) if diagonal else None)
    for name, (x, y) in pairs.items():
        own = marks[name]
        look = {"markerfacecolor": "none", "markersize": 8} if name == hollow and name else {"markersize": 4.5, "alpha": 0.7}
        if own.marker == "_":  # a dash is all edge
            look = {"markersize": 5, "markeredgewidth": 1.8}
        if joined:
            look = {"markersize": 3.5, "linewidth": 1.2}
        line = "-" if joined else "none"
        axis.plot(x, y, marker=own.marker, linestyle=line, color=own.colour, label=name or None, **look)
    if diagonal:
        top = 1.05 * max(np.max(column) for columns in pairs.values() for column in columns) if diagonal is True else diagonal
        axis.plot([0, top], [0, top], color=FAINT, linewidth=0.8)
        axis.set(xlim=(0, top), ylim=(0, top), aspect="equal")
    return axis


def lines(table: pd.DataFrame, name: str, axis=None, median: bool = False):
    """A line for each case, a user for instance: the columns of ``table`` over its index, in the mark of ``name``.

    With ``median`` a strong line, labelled, goes through the medians of the cases.
    """
    if axis is None:
        _, axis = figure()
    own = mark(name)
    axis.plot(table.index, table, own.marker, color=own.colour, linestyle="-", linewidth=1, markersize=3.5, alpha=0.4)
    if median:
        axis.plot(table.index, table.median(axis=1), own.marker, color=own.colour, linestyle="-", label=f"{name}, median")
    return axis


def curves(
    table: pd.DataFrame, x: str, kind: str, axis=None, xlabel: str = "", ylabel: str = "", title: str = "", percent: bool = True
):
    """Lines with intervals, each labelled at its end. ``table``: columns ``x``, ``kind``, value, low, high."""
    if axis is None:
        _, axis = figure()
    scale, ends = (100 if percent else 1), []
    for name, own in table.groupby(kind, sort=False):
        own, (colour, marker) = own.sort_values(x), mark(name)
        axis.fill_between(own[x], scale * own["low"], scale * own["high"], color=colour, alpha=0.15, linewidth=0)
        axis.plot(own[x], scale * own["value"], marker=marker, markersize=4, color=colour)
        ends.append((scale * own["value"].iloc[-1], name, colour))
    low, high = axis.get_ylim()
    _label_ends(axis, ends, 0.055 * (high - low))
    axis.set_xlabel(xlabel)
    axis.set_ylabel(ylabel)
    axis.set_title(title)
    return axis


def _label_ends(axis, ends, apart: float):
    """Names at the right ends of lines, pushed apart where they would overlap."""
    y = -np.inf
    for value, name, colour in sorted(ends):
        y = max(value, y + apart)
        axis.annotate(name, (1, y), (6, 0), ("axes fraction", "data"), "offset points", color=colour, va="center", fontsize=9)


def distributions(values: dict[str, np.ndarray], axis=None, xlabel: str = "", title: str = ""):
    """Empirical distribution functions: for each name the share of values at most x (infinite values never arrive)."""
    if axis is None:
        _, axis = figure()
    ends = []
    for name, column in values.items():
        column = np.sort(np.asarray(column, float))
        finite = column[np.isfinite(column)]
        share = 100 * np.arange(1, len(finite) + 1) / len(column)
        colour = mark(name).colour
        axis.step(np.r_[1, finite], np.r_[0, share], where="post", color=colour)
        ends.append((share[-1] if len(share) else 0.0, name, colour))
    axis.set_xscale("log")
    axis.set_ylim(0, 102)
    _label_ends(axis, ends, 5.5)
    axis.set_xlabel(xlabel)
    axis.set_ylabel("users (%)")
    axis.set_title(title)
    return axis


def heat_map(bounds: np.ndarray, shares: np.ndarray, axis=None, title: str = "", label: str = "share of records"):
    """Cells of a grid coloured by the logarithm of their share. ``bounds``: (n, 4) south, west, north, east in degrees."""
    if axis is None:
        _, axis = figure(figsize=(5.2, 4.6))
    south, west, north, east = np.asarray(bounds).T
    corners = np.stack([np.column_stack(c) for c in ((west, south), (east, south), (east, north), (west, north))], axis=1)
    norm = LogNorm(max(shares.min(), 1e-5), shares.max()) if shares.min() < shares.max() else None
    cells = PolyCollection(corners, array=shares, cmap="cividis", norm=norm, linewidths=0.2, edgecolors=FAINT)
    axis.add_collection(cells)
    as_map(axis, south.min(), north.max(), west.min(), east.max())
    bar = axis.figure.colorbar(cells, ax=axis, shrink=0.8)
    bar.set_label(label)
    bar.outline.set_edgecolor(FAINT)
    axis.set_title(title)
    return axis


def channel_map(grid, row: np.ndarray, secret: int, observables=None, axis=None, title: str = "", least: float = 1e-4):
    """Where does this cell go? The cells of an area coloured by p(o|s), the secret cell s outlined; axes in km.

    ``row``: the secret's row of a channel; ``observables``: the cell of each of its entries (None: all cells in order).
    Cells below ``least`` stay empty.
    """
    if axis is None:
        _, axis = figure(figsize=(6.4, 3.9))
    p = np.zeros(grid.size)
    np.add.at(p, np.arange(grid.size) if observables is None else np.asarray(observables), np.asarray(row, float))
    size = np.array([grid.width / grid.columns, grid.height / grid.rows]) / 1000  # km
    corners = (grid.centres() / 1000)[:, None, :] + size * np.array([(-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5)])
    shown = p >= least
    axis.add_collection(PolyCollection(corners, facecolors="none", linewidths=0.3, edgecolors=FAINT, alpha=0.5))
    norm = LogNorm(least, 1)
    cells = PolyCollection(corners[shown], array=p[shown], cmap="cividis", norm=norm, linewidths=0.3, edgecolors=FAINT)
    axis.add_collection(cells)
    outline = PolyCollection(corners[[secret]], facecolors="none", edgecolors=PRINTED, linewidths=2.2, zorder=3)
    axis.add_collection(outline)
    axis.set_xlim(0, grid.width / 1000)
    axis.set_ylim(0, grid.height / 1000)
    axis.set_aspect("equal")
    axis.grid(visible=False)
    axis.set_xlabel("km east")
    axis.set_ylabel("km north")
    bar = axis.figure.colorbar(cells, ax=axis, shrink=0.65)
    bar.set_label(f"p(o|s), from {least:g}")
    bar.outline.set_edgecolor(FAINT)
    axis.set_title(title)
    return axis


def as_map(axis, south: float, north: float, west: float, east: float):
    """Axes of degrees on which a kilometre is as long northwards as eastwards."""
    pad = 0.03 * max(north - south, east - west)
    axis.set_xlim(west - pad, east + pad)
    axis.set_ylim(south - pad, north + pad)
    axis.set_aspect(1 / np.cos(np.radians((south + north) / 2)))
    axis.set_xlabel("longitude (°)")
    axis.set_ylabel("latitude (°)")
    axis.ticklabel_format(useOffset=False)
    axis.tick_params(axis="x", rotation=30)
    return axis
