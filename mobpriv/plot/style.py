"""The one style of all figures, and the panels that they are drawn on."""

import matplotlib as mpl
import matplotlib.pyplot as plt

from mobpriv.palette import FAINT, INK

WIDEST = 4.2  # inches: no panel is drawn wider, for a phone makes it as narrow as itself, and its print as much smaller
SIDE_BY_SIDE = 3.65  # inches: nor one of several, which stand two in a row where the text is narrow
CRISP = "crisp"  # the id of what is drawn in steps that touch, without a seam
SINGLE = (WIDEST, 2.9)  # a figure of one panel
PANEL = (3.5, 2.8)  # one of several

STYLE = {
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
    """``count`` axes in the book's style, each in a figure of its own, ``size`` inches wide (at most ``WIDEST``, several at most ``SIDE_BY_SIDE``) and high.

    The style stays in force for what is drawn into them. Axes that are to be alike: ``same`` of :func:`mobpriv.plot.show`.
    """
    mpl.rcParams.update(STYLE)
    wide, high = size or (SINGLE if count == 1 else PANEL)
    axes = []
    for _ in range(count):
        figure, axis = plt.subplots(figsize=(min(wide, WIDEST if count == 1 else SIDE_BY_SIDE), high))
        plt.close(figure)  # shown by show(), not by the end of a cell
        axes.append(axis)
    return axes
