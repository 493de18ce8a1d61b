"""A figure with a knob: the reader chooses a setting and sees what it buys and what it costs.

Everything is in the page: a frame for each setting, of which the stylesheet shows the chosen one. No script runs and nothing is fetched. The knob is a
group of radio buttons, so the arrow keys turn it, and each button is described by its frame's sentence. On paper the chosen frame stands
with the sentences of all.
"""

import zlib
from collections.abc import Mapping
from html import escape
from typing import Any

from mobpriv.palette import Mark
from mobpriv.plot.picture import Picture, alike, axes_of, caption_html, legend_html, show


class Instrument:
    """One picture a setting, under one knob. ``marked``: the setting that is shown first, and where there is no HTML."""

    def __init__(self, frames: dict[str, Picture], knob: str, caption: str, marked: str, number: str, legend: dict[str, Mark]):
        self.frames, self.knob, self.caption, self.marked = frames, knob, caption, marked
        self.number, self.legend = number, legend

    @property
    def html(self) -> str:
        said = self.caption + "".join(f"{setting}{frame.alt}" for setting, frame in self.frames.items())
        key = f"k{zlib.crc32(said.encode()):08x}"  # another instrument on the page has another one
        frames = "".join(self._frame(setting, frame, key, i) for i, (setting, frame) in enumerate(self.frames.items()))
        return (
            f'<figure class="mobpriv-figure instrument" data-panels="{len(self.frames[self.marked].svgs)}">'
            f"<fieldset><legend>{escape(self.knob)}</legend>{legend_html(self.legend)}{frames}</fieldset>"
            f"{caption_html(self.caption, self.number)}</figure>"
        )

    def _frame(self, setting: str, frame: Picture, key: str, i: int) -> str:
        chosen, said = " checked" if setting == self.marked else "", f"{key}-{i}-says"
        return (
            f'<label><input type="radio" name="{key}" value="{i}" aria-describedby="{said}"{chosen}>{escape(setting)}</label>'
            # the sentence is the button's description and the picture's name: read aloud there, seen here
            f'<div class="frame"><p id="{said}" aria-hidden="true">{escape(frame.alt)}</p>{frame.panels_html(f"{key}-{i}")}</div>'
        )

    def _repr_mimebundle_(self, include=None, exclude=None):
        frame = self.frames[self.marked]
        words = " ".join([f"{self.caption} {self.knob}.", *(frame.alt for frame in self.frames.values())])
        return {"text/html": self.html, "image/png": frame.png, "text/plain": words}


def turned(
    frames: Mapping[str, tuple[Any, str]],
    knob: str,
    caption: str,
    marked: str = "",
    number: str = "",
    legend: dict[str, Mark] | None = None,
) -> Instrument:
    """The figure with a knob. ``frames``: what a setting is called -> its axes, and a sentence that says the setting and what is seen at it.

    ``knob``: what is turned, with its unit; ``marked``: the setting shown first, by default the first. All frames have as many panels,
    and the same limits: what moves, moves for its value. ``legend``: of all frames.
    """
    drawn = {setting: axes_of(axes) for setting, (axes, _) in frames.items()}
    marked = marked or next(iter(drawn), "")
    if len(drawn) < 2 or marked not in drawn:
        raise ValueError(
            f"a knob has two settings or more, one of them marked (got {', '.join(drawn) or 'none'}; marked {marked!r})"
        )
    if len({len(axes) for axes in drawn.values()}) > 1:
        raise ValueError(f"every frame has as many panels (got {', '.join(str(len(axes)) for axes in drawn.values())})")
    for panels in zip(*drawn.values(), strict=True):
        alike(panels, "xy")
    pictures = {setting: show(axes, caption, frames[setting][1], number, legend) for setting, axes in drawn.items()}
    return Instrument(pictures, knob, caption, marked, number, legend or {})
