"""The figures of the book: one style, labelled curves, intervals. No other package draws with matplotlib.

* ``panels`` returns axes, each a separate picture; pages place them in a row, phones in a column.
* The forms (``rates``, ``curves``, ``dots``, …) draw on one of the axes.
* ``show`` combines axes into a figure with number, caption and legend.
* ``turned`` combines several settings into one figure; a knob lets the reader choose.
"""

from mobpriv.plot.forms import (
    against,
    area_maps,
    as_map,
    at,
    channel_map,
    confusion,
    curves,
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
from mobpriv.plot.instrument import turned
from mobpriv.plot.picture import Kept, as_text, show, stylesheet
from mobpriv.plot.style import panels

__all__ = [
    "Kept",
    "against",
    "area_maps",
    "as_map",
    "as_text",
    "at",
    "channel_map",
    "confusion",
    "curves",
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
    "tiles",
    "turned",
]
