"""Figures for the book's pages: SVG panels with number, caption and legend. Ink and colours follow the light or dark theme.

CSS variables replace the colours of the style (:mod:`mobpriv.plot.palette`).
"""

import base64
import io
import re
import textwrap
import zlib
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.markers import MarkerStyle
from matplotlib.text import Text
from matplotlib.ticker import LogFormatter, LogLocator, ScalarFormatter
from PIL import Image
from scipy.optimize import isotonic_regression

from mobpriv.base.numbers import shown
from mobpriv.plot.palette import DARK, Mark
from mobpriv.plot.style import CRISP, SIDE_BY_SIDE

_PAPER = (7.2, 8.3)  # inches available on a printed sheet for the panels, within the margins and above a caption
_SMALLEST_SCALE = 0.75  # smallest scale in print: lettering of 8 points becomes 6
_PLAIN = (1e-4, 1e6)  # range of axes without powers of ten
_LARGEST_SHIFT = 12  # points: largest shift of a name from the end of its line at which it is still recognisable
_DPI = 150  # resolution of a PNG
_COLOURS = 64  # of the PNGs of a figure
_LINES = ("-", "--", ":")  # markers that are lines
_NAMESPACES = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'


class Picture:
    """Panels in a row, legend above and caption below, as SVG in HTML; where there is no HTML, in words.

    ``alt`` describes the figure in a sentence. ``number`` is that of the paper's figure ("3.4"); the build numbers the others.
    """

    def __init__(self, figures: Sequence, caption: str, alt: str, number: str = "", legend: dict[str, Mark] | None = None):
        self.caption, self.alt, self.number, self.legend = caption, alt, number, legend or {}
        self.svgs = [_saved(figure) for figure in figures]
        self._figures = figures

    @property
    def html(self) -> str:
        parts = legend_html(self.legend) + self.panels_html() + caption_html(self.caption, self.number)
        return f"{_opening(len(self.svgs), self.wide, self.on_paper)}{parts}</figure>"

    @property
    def on_paper(self) -> "OnPaper":
        """The layout of the panels on a sheet."""
        wide, high = np.max([figure.get_size_inches() for figure in self._figures], axis=0)
        return OnPaper.of(len(self._figures), wide, high)

    @property
    def wide(self) -> bool:
        """Whether a panel is so wide that two in a row would be too small to read in a narrow text column."""
        return any(figure.get_size_inches()[0] > SIDE_BY_SIDE for figure in self._figures)

    def panels_html(self, key: str = "") -> str:
        """The panels alone. ``key`` is a prefix of their ids that must be unique on the page."""
        key = key or f"p{zlib.crc32(''.join(self.svgs).encode()):08x}"
        panels = "".join(f"<div>{_unique_ids(themed(svg), f'{key}-{i}')}</div>" for i, svg in enumerate(self.svgs))
        widest = max(figure.get_size_inches()[0] for figure in self._figures)
        return _panels(panels, self.alt, f"--widest: {72 * widest:.0f}px; --rows: {self.on_paper.rows}")

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/html": self.html, "text/plain": f"{self.caption} {self.alt}"}


class OnPaper(NamedTuple):
    """Layout of panels on a sheet: rows of equal height, or several sheets if the panels would be too small to read."""

    across: int
    rows: int
    broken: bool = False

    @classmethod
    def of(cls, panels: int, wide: float, high: float) -> "OnPaper":
        """The layout for ``panels`` of ``wide`` × ``high`` inches."""
        if panels == 1:
            return cls(1, 1)

        def scale(across: int) -> float:
            return min(_PAPER[0] / across / wide, _PAPER[1] / -(-panels // across) / high)

        best = max((2, 3) if panels > 4 else (2,), key=scale)
        if panels > 2 and scale(best) < _SMALLEST_SCALE:
            return cls(2, 1, True)
        return cls(best, -(-panels // best))


def _opening(panels: int, wide: bool, paper: OnPaper) -> str:
    kind = " wide" * wide + " many" * (paper.across > 2) + " broken" * paper.broken
    return f'<figure class="mobpriv-figure{kind}" data-panels="{panels}">'


def _panels(html: str, alt: str, style: str) -> str:
    return f'<div class="panels" role="img" aria-label="{escape(alt)}" style="{style}">{html}</div>'


def show(panels, caption: str, alt: str, number: str = "", legend: dict[str, Mark] | None = None, same: str = "") -> Picture:
    """Build a figure from one or several axes.

    ``same``: "x", "y" or "xy", the limits that the panels share; ``legend``: name -> mark, above the panels, never on data.
    Raises ValueError if caption or alt is not a full sentence; readers and screen readers need one.
    """
    panels = axes_of(panels)
    for what, text in {"caption": caption, "alt": alt}.items():
        if not text.strip().endswith((".", "?", ")")):
            raise ValueError(f"the {what} of a figure is a sentence that ends with a full stop (got {text!r})")
    share_limits(panels, same)
    for axis in panels:
        _plain_powers(axis)
        _thousands(axis)
        _fitted_label(axis)
        _fitted_title(axis)
    labels = [_end_labels(axis) for axis in panels]
    # where lines end at the same point their names would overlap: the legend names them
    if not any(name in (legend or {}) and abs(moved) > _LARGEST_SHIFT for ends in labels for *_, name, _, moved in ends):
        for axis, ends in zip(panels, labels, strict=True):
            _label_ends(axis, ends)
    return Picture([axis.figure for axis in panels], caption, alt, number, legend)


class Kept:
    """A figure stored with a run's numbers as one PNG per panel, because its data are not part of the book."""

    def __init__(self, pngs: Sequence[bytes], caption: str, alt: str, number: str = ""):
        self.pngs, self.caption, self.alt, self.number = pngs, caption, alt, number

    @classmethod
    def of(cls, text: str, caption: str, alt: str, number: str = "") -> "Kept":
        """Restore a figure from the text of :func:`as_text`."""
        return cls([base64.b64decode(panel) for panel in text.split()], caption, alt, number)

    @property
    def html(self) -> str:
        panels = "".join(
            f'<div class="kept"><img src="data:image/png;base64,{base64.b64encode(png).decode()}" alt=""></div>'
            for png in self.pngs
        )
        sizes = [np.array(Image.open(io.BytesIO(png)).size) / _DPI for png in self.pngs]
        paper = OnPaper.of(len(self.pngs), *np.max(sizes, axis=0))
        panels = _panels(panels, self.alt, f"--rows: {paper.rows}")
        return f"{_opening(len(self.pngs), False, paper)}{panels}{caption_html(self.caption, self.number)}</figure>"

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/html": self.html, "text/plain": f"{self.caption} {self.alt}"}


def as_text(panels) -> str:
    """The panels as small base64 PNGs, separated by spaces, for storage with a run's numbers.

    All panels have the same few colours: a shade of a map means the same number in each.
    """
    drawn, kept = [], []
    for axis in axes_of(panels):
        png = io.BytesIO()
        axis.figure.savefig(png, format="png", dpi=_DPI, transparent=False, facecolor="white")
        drawn.append(Image.open(png).convert("RGB"))
    pixels = np.concatenate([np.asarray(image).reshape(1, -1, 3) for image in drawn], axis=1)
    colours = Image.fromarray(pixels).quantize(_COLOURS)
    for image in drawn:
        png = io.BytesIO()
        image.quantize(palette=colours, dither=Image.Dither.NONE).save(png, format="png", optimize=True)
        kept.append(base64.b64encode(png.getvalue()).decode())
    return " ".join(kept)


def axes_of(panels) -> list[Axes]:
    """One axis, or several in any container, as a list."""
    return [panels] if isinstance(panels, Axes) else list(np.ravel(panels))


def share_limits(panels: Sequence[Axes], same: str) -> None:
    """Set common limits for all panels in the directions ``same``, from the smallest to the largest of all."""
    for direction in same:
        limits = [getattr(axis, f"get_{direction}lim")() for axis in panels]
        turned = limits[0][0] > limits[0][1]
        ends = min(min(pair) for pair in limits), max(max(pair) for pair in limits)
        for axis in panels:
            getattr(axis, f"set_{direction}lim")(*(reversed(ends) if turned else ends))


def _plain_powers(axis) -> None:
    """Label logarithmic axes with the book's numbers: 0.6, not six times ten to a power.

    With few powers of ten the ticks are at 1, 2 and 5.
    """
    for x_or_y, limits in ((axis.xaxis, axis.get_xlim()), (axis.yaxis, axis.get_ylim())):
        if x_or_y.get_scale() != "log" or not isinstance(x_or_y.get_major_formatter(), LogFormatter):
            continue
        if min(limits) < _PLAIN[0] or max(limits) > _PLAIN[1]:
            continue
        if max(limits) < 100 * min(limits):
            x_or_y.set_major_locator(LogLocator(subs=(1, 2, 5)))
        x_or_y.set_major_formatter(lambda x, _: shown(float(f"{x:.6g}")))
        x_or_y.set_minor_formatter(lambda *_: "")


def _thousands(axis) -> None:
    """Label linear axes that reach a thousand with the book's numbers: spaces between thousands."""
    for x_or_y, limits in ((axis.xaxis, axis.get_xlim()), (axis.yaxis, axis.get_ylim())):
        if isinstance(x_or_y.get_major_formatter(), ScalarFormatter) and max(map(abs, limits)) >= 1000:
            x_or_y.set_major_formatter(lambda x, _: shown(float(f"{x:.12g}")))


def _fitted_label(axis) -> None:
    """Break the label of an x axis into two lines if it would exceed the picture, for example next to long names."""
    label, picture_box = axis.xaxis.label, axis.figure.bbox
    text = label.get_text()
    if "\n" in text or 5 * len(text) < 36 * axis.figure.get_size_inches()[0]:  # certainly less than half as wide as the picture
        return
    axis.figure.draw_without_rendering()
    box = label.get_window_extent()
    if box.x0 < picture_box.x0 or box.x1 > picture_box.x1:
        label.set_text("\n".join(textwrap.wrap(text, 6 * len(text) // 10)))


def _fitted_title(axis) -> None:
    """Shift a title to the left, above the names of the y axis, so that it stays inside the picture."""
    title, picture_box = axis.get_title("left"), axis.figure.bbox
    if 5 * len(title) < 18 * axis.figure.get_size_inches()[0]:  # certainly less than a quarter as wide as the picture
        return
    axis.figure.draw_without_rendering()
    shown_at = next(text for text in axis.get_children() if isinstance(text, Text) and text.get_text() == title)
    box, beside = shown_at.get_window_extent(), axis.get_window_extent()
    beyond = min(box.x1 - picture_box.x1 + 2, box.x0 - picture_box.x0)
    if beyond > 0:
        shown_at.set_x(shown_at.get_position()[0] - beyond / beside.width)


def legend_html(legend: dict[str, Mark]) -> str:
    entries = "".join(f"<li>{_swatch(mark)}{escape(name)}</li>" for name, mark in legend.items())
    return f'<ul class="legend">{entries}</ul>' if entries else ""


def caption_html(caption: str, number: str) -> str:
    """The caption as HTML; without a ``number`` of the paper, the build numbers the figure."""
    number = f"Figure {number}." if number else ""
    return f'<figcaption><span class="figure-number">{escape(number)}</span> {escape(caption)}</figcaption>'


def _end_labels(axis) -> list[tuple[float, float, str, str, float]]:
    """The names that :func:`mobpriv.plot.label_ends` requested, each with its shift in points from the end of its line.

    The limits of the axis must be final. The shifts prevent overlaps.
    """
    ends = sorted(getattr(axis, "ends", []), key=lambda end: end[1])
    places = [axis.transLimits.transform(axis.transScale.transform((x, y)))[1] for x, y, *_ in ends]
    axis_height = 72 * 0.78 * axis.figure.get_size_inches()[1]  # height of the axis in points, approximately
    moved = np.subtract(spaced(places, 10 / axis_height), places) * axis_height
    return [(*end, shift) for end, shift in zip(ends, moved, strict=True)]


def _label_ends(axis, ends) -> None:
    for x, y, name, colour, moved in ends:
        # ends at the beginning of the name, not in its middle
        leader = {"arrowstyle": "-", "color": colour, "linewidth": 0.6, "shrinkA": 1, "shrinkB": 2, "relpos": (0, 0.5)}
        look = {"color": colour, "va": "center", "fontsize": 8, "arrowprops": leader if abs(moved) > 4 else None}
        axis.annotate(name, (x, y), (10, moved), textcoords="offset points", **look)


def spaced(places: Sequence[float], gap: float) -> list[float]:
    """Rising ``places``, moved as little as possible (least squares) so that neighbours are at least ``gap`` apart."""
    steps = gap * np.arange(len(places))
    return list(isotonic_regression(np.asarray(places, float) - steps).x + steps) if len(places) else []


def _saved(figure) -> str:
    svg = io.StringIO()
    figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
    return svg.getvalue()


def _swatch(mark: Mark) -> str:
    """A mark as a small picture in the page's colours."""
    colour = f"var(--mp-{mark.colour[1:]}, {mark.colour})"
    if mark.marker in _LINES:
        dashes = {"--": ' stroke-dasharray="5 3"', ":": ' stroke-dasharray="1.5 2.5"'}.get(mark.marker, "")
        shape = f'<path d="M0 7H18" stroke="{colour}" stroke-width="2"{dashes}/>'
    else:
        style = MarkerStyle(mark.marker)
        outlines = style.get_path().transformed(style.get_transform()).to_polygons(closed_only=style.is_filled())
        size = 9 / max(np.ptp(np.vstack(outlines), axis=0).max(), 1e-9)
        path = "".join("M" + "L".join(f"{9 + size * x:.1f} {7 - size * y:.1f}" for x, y in outline) for outline in outlines)
        filled = style.is_filled() and not mark.hollow
        shape = f'<path d="{path}" fill="{colour if filled else "none"}" stroke="{colour}" stroke-width="1.6"/>'
    return f'<svg class="swatch" viewBox="0 0 18 14" width="18" height="14" aria-hidden="true">{shape}</svg>'


def themed(svg: str) -> str:
    """The SVG element alone, with a CSS variable for each colour of the style (the colour is the fallback).

    It states its drawn width, so that pages do not enlarge it.
    """
    svg = svg[svg.index("<svg") :]
    width = float(re.search(r'viewBox="\S+ \S+ (\S+)', svg)[1])  # in points
    element = rf'<svg {_NAMESPACES} viewBox="\1" aria-hidden="true" style="--drawn: {width:.0f}px">'
    svg = re.sub(r'<svg [^>]*?viewBox="([^"]*)"[^>]*>', element, svg, count=1)
    svg = svg.replace(f'id="{CRISP}"', 'shape-rendering="crispEdges"')
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    for colour in DARK:
        svg = re.sub(colour, f"var(--mp-{colour[1:]}, {colour})", svg, flags=re.IGNORECASE)
    return svg.strip()


def _unique_ids(svg: str, key: str) -> str:
    """Prefix the SVG's ids with ``key`` and drop unused ones, because a page has several drawings."""
    used = set(re.findall(r'(?:url\(#|href="#)([^)"]+)', svg))
    svg = re.sub(r' id="([^"]*)"', lambda match: f' id="{key}-{match[1]}"' if match[1] in used else "", svg)
    return re.sub(r'url\(#|href="#', lambda match: f"{match[0]}{key}-", svg)


def stylesheet() -> str:
    """The CSS variables of :func:`themed`, for light and dark pages."""
    light = "\n".join(f"  --mp-{c[1:]}: {c};" for c in DARK)
    dark = "\n".join(f"  --mp-{c[1:]}: {d};" for c, d in DARK.items())
    return f":root {{\n{light}\n}}\nhtml[data-theme=dark] {{\n{dark}\n}}\n"
