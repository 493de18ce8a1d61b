"""Colours and marks by name: the look of each mechanism, attack or channel on every page.

The colours are those of Okabe and Ito, which colour-blind readers can distinguish. A marker or a label always repeats the
information of the colour. An unlisted name gets one of the marks, always the same one.
"""

import zlib
from typing import NamedTuple

import numpy as np

INK, FAINT, _PAPER = "#1a1a1b", "#8a8a8b", "#fefeff"  # their odd last digit distinguishes them from colours of data
BLUE, ORANGE, GREEN, PINK = "#0072b2", "#d55e00", "#009e73", "#cc79a7"


class Mark(NamedTuple):
    colour: str
    marker: str  # a marker of matplotlib; "-", "--", ":" are lines
    hollow: bool = False


MARKS = {
    "none": Mark(INK, "o"),
    "no protection": Mark(INK, "o"),  # its name on the pages
    "Geo-I": Mark(BLUE, "s"),
    "Promesse": Mark(ORANGE, "^"),
    "W4M": Mark(GREEN, "D"),
    "TriLateration": Mark(GREEN, "v"),
    "HMC": Mark(PINK, "P"),
    "Hybrid-LPPM": Mark(INK, "X"),
    "PULP": Mark(INK, "*"),  # its choices are those of Geo-I and Promesse, whose colours it would be taken for
    "Optimal channel": Mark(BLUE, "o"),
    "AP-Attack": Mark(BLUE, "o"),
    "POI-Attack": Mark(ORANGE, "s"),
    "PIT-Attack": Mark(GREEN, "^"),
    "ILL-Attack": Mark(PINK, "v"),
    "differential": Mark(BLUE, "o"),
    "distortion": Mark(ORANGE, "s"),
    "joint": Mark(GREEN, "^"),
    "χ = all POIs": Mark(INK, "o"),
    "χ = N(b, 5)": Mark(BLUE, "s"),
    "χ = visited POIs and five unvisited": Mark(ORANGE, "^"),
    "χ = N(b, 3)": Mark(GREEN, "D"),
    "χ = visited POIs and three unvisited": Mark(PINK, "v"),
}
PRINTED = PINK  # values printed in a paper
_OTHERS = [Mark(colour, marker) for marker in "PX*" for colour in (BLUE, ORANGE, GREEN, PINK)]

# replacements on dark pages for colours that are too dark there
DARK = {
    INK: "#e6e6e6",
    FAINT: "#8d8d8d",
    _PAPER: "#121212",
    BLUE: "#56b4e9",
    ORANGE: "#ff9248",
    GREEN: "#3ddbab",
    PINK: "#e5a4c8",
}
# steps of an ordered scale, each lighter and yellower than the one before, on light and on dark pages
_ORDERED = {
    "#00106e": "#4e7de6",
    "#542981": "#9485de",
    "#723373": "#bd8ed2",
    "#853a5f": "#d29bbf",
    "#95424b": "#e5a8ad",
    "#9e533a": "#f3baa0",
    "#a16224": "#f9d7a0",
    "#a17100": "#fff4a0",
}
DARK |= _ORDERED
# maps have no dark version: a colour must be distinguishable on light and on dark maps
_ON_MAPS = {INK: "#767676", BLUE: "#1f8fd6", ORANGE: "#e66100"}


def mark(name: str) -> Mark:
    return MARKS.get(name) or _OTHERS[zlib.crc32(name.encode()) % len(_OTHERS)]


def colour(name: str) -> str:
    return mark(name).colour


def marker(name: str) -> str:
    return mark(name).marker


def on_map(name: str) -> str:
    """The colour of a name on a map."""
    return _ON_MAPS.get(colour(name), colour(name))


def ordered(levels) -> dict:
    """A colour for each level of an ordered scale, from dark blue to ochre; use it with a marker per level.

    If there are more levels than steps, neighbouring levels share a colour and only the markers distinguish them.
    """
    levels, steps = sorted(levels), list(_ORDERED)
    places = np.linspace(0, len(steps) - 1, len(levels)).round().astype(int)
    return {level: steps[place] for level, place in zip(levels, places, strict=True)}
