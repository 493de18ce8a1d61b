"""Colours and marks by name: what a mechanism, an attack or a channel looks like on every page.

The colours are Okabe and Ito's, which remain apart for colour-blind readers; a marker or a label always says the same as the
colour. A name that does not stand here gets one of them all the same, always the same one.
"""

import zlib
from typing import NamedTuple

import numpy as np

INK, FAINT, PAPER = "#1a1a1b", "#8a8a8b", "#fefeff"  # told apart from data by their odd last digit
BLUE, ORANGE, GREEN, PINK = "#0072b2", "#d55e00", "#009e73", "#cc79a7"


class Mark(NamedTuple):
    colour: str
    marker: str  # of matplotlib; "-", "--", ":" are lines
    hollow: bool = False


MARKS = {
    "none": Mark(INK, "o"),
    "no protection": Mark(INK, "o"),  # what the pages call it
    "Geo-I": Mark(BLUE, "s"),
    "Promesse": Mark(ORANGE, "^"),
    "W4M": Mark(GREEN, "D"),
    "TriLateration": Mark(GREEN, "v"),
    "HMC": Mark(PINK, "P"),
    "Hybrid-LPPM": Mark(INK, "X"),
    "AP-Attack": Mark(BLUE, "o"),
    "POI-Attack": Mark(ORANGE, "s"),
    "PIT-Attack": Mark(GREEN, "^"),
    "ILL-Attack": Mark(PINK, "v"),
    "differential": Mark(BLUE, "o"),
    "distortion": Mark(ORANGE, "s"),
    "joint": Mark(GREEN, "^"),
}
PRINTED = PINK  # what a paper prints
_OTHERS = [Mark(colour, marker) for marker in "PX*" for colour in (BLUE, ORANGE, GREEN, PINK)]

# colours that are too dark on a dark page get a lighter twin there
DARK = {
    INK: "#e6e6e6",
    FAINT: "#8d8d8d",
    PAPER: "#121212",
    BLUE: "#56b4e9",
    ORANGE: "#ff9248",
    GREEN: "#3ddbab",
    PINK: "#e5a4c8",
}
# steps of something that has an order: lighter and yellower from one to the next, on light pages and on dark ones
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
# maps have no dark twin: there one colour must be told from the others on a light map and on a dark one
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
    """A colour for each level of something that has an order, from dark blue to ochre; to go with a marker each.

    Levels that outnumber the steps share them with their neighbours: only the markers tell these apart.
    """
    levels, steps = sorted(levels), list(_ORDERED)
    places = np.linspace(0, len(steps) - 1, len(levels)).round().astype(int)
    return {level: steps[place] for level, place in zip(levels, places, strict=True)}
