"""The figures of the book: one style, labels at the curves, intervals. The only package that draws with matplotlib.

``panels`` gives axes to draw on, each a picture of its own, which pages set side by side and phones one below the other; the forms
(``rates``, ``curves``, ``dots``, …) draw on one of them; ``show`` makes the figure of them, with its number, caption and legend;
``turned`` makes one of several settings, which the reader chooses by a knob.
"""

from mobpriv.plot.forms import (
    against,
    area_maps,
    as_map,
    at,
    channel_map,
    confusion,
    curves,
    distribution,
    distributions,
    dots,
    heat_map,
    intervals,
    label_ends,
    levels,
    lines,
    parts,
    percentiles,
    rates,
    reference,
    stacked,
    tiles,
)
from mobpriv.plot.instrument import Instrument, turned
from mobpriv.plot.picture import Kept, Picture, as_text, show, stylesheet, themed
from mobpriv.plot.style import PANEL, SINGLE, panels

__all__ = [
    "PANEL",
    "SINGLE",
    "Instrument",
    "Kept",
    "Picture",
    "against",
    "area_maps",
    "as_map",
    "as_text",
    "at",
    "channel_map",
    "confusion",
    "curves",
    "distribution",
    "distributions",
    "dots",
    "heat_map",
    "intervals",
    "label_ends",
    "levels",
    "lines",
    "panels",
    "parts",
    "percentiles",
    "rates",
    "reference",
    "show",
    "stacked",
    "stylesheet",
    "themed",
    "tiles",
    "turned",
]
