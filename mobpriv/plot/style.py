"""The common style of all figures, and their panels."""

import matplotlib as mpl
import matplotlib.pyplot as plt

from mobpriv.plot.palette import FAINT, INK

WIDEST_PANEL = 4.2  # inches: the widest panel; a phone shrinks a wider one, and its lettering with it
SIDE_BY_SIDE = 3.65  # inches: the widest of several panels; two of them share a row in a narrow text column
CRISP = "crisp"  # id of drawings in adjoining steps, rendered without seams
SINGLE = (WIDEST_PANEL, 2.9)  # a figure of one panel
PANEL = (3.5, 2.8)  # one of several

_STYLE = {
    "figure.figsize": SINGLE,
    "figure.dpi": 100,
    "figure.constrained_layout.use": True,
    "savefig.transparent": True,
    "font.size": 9,
    "font.family": "DejaVu Sans",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.titlesize": 9,
    "axes.titleweight": "bold",
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
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.linewidth": 1.6,
    "svg.fonttype": "none",
    "svg.hashsalt": "mobpriv",
}


def panels(count: int = 1, size: tuple[float, float] | None = None) -> list:
    """Create ``count`` axes in the book's style, each in a separate figure.

    ``size``: width and height in inches; the width is at most ``WIDEST_PANEL``, for several at most ``SIDE_BY_SIDE``. The style stays
    active for later drawing. For common limits use ``same`` of :func:`mobpriv.plot.show`.
    """
    mpl.rcParams.update(_STYLE)
    wide, high = size or (SINGLE if count == 1 else PANEL)
    axes = []
    for _ in range(count):
        figure, axis = plt.subplots(figsize=(min(wide, WIDEST_PANEL if count == 1 else SIDE_BY_SIDE), high))
        plt.close(figure)  # show() displays it, not the end of a cell
        axes.append(axis)
    return axes
