"""An interactive figure: the reader turns a knob to choose a setting and sees its benefit and its cost. A switch is optional.

The page contains everything: a frame per setting, and in it a view per position of the switch. The stylesheet shows the chosen
one. No script runs and nothing is loaded. Knob and switch are groups of radio buttons that follow the arrow keys. The sentences
of its frame describe each button of the knob. In print all frames follow each other, small, each with its sentence.
"""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

from mobpriv.plot.palette import Mark
from mobpriv.plot.picture import Picture, axes_of, caption_html, legend_html, share_limits, show

_MOST_POSITIONS = 4  # most positions of a switch that the stylesheet supports


@dataclass(eq=False)
class Instrument:
    """One picture per setting of a knob, or one per setting and position of a ``switch``.

    ``marked``: the setting shown first, and the only one without HTML; the first position of the switch is shown first.
    """

    frames: dict[str, dict[str, Picture]]  # setting -> position -> picture; the position is "" without a switch
    knob: str
    caption: str
    marked: str
    number: str
    legend: dict[str, Mark]
    switch: str = ""

    @property
    def html(self) -> str:
        says = (f"{setting}{view.alt}" for setting, views in self.frames.items() for view in views.values())
        key = f"k{zlib.crc32((self.caption + ''.join(says)).encode()):08x}"  # differs between the instruments of a page
        frames = "".join(self._frame(setting, views, key, i) for i, (setting, views) in enumerate(self.frames.items()))
        panels = len(next(iter(self.frames[self.marked].values())).svgs)
        return (
            f'<figure class="mobpriv-figure instrument" data-panels="{panels}">{self._switch(key)}'
            f'<fieldset class="knob"><legend>{escape(self.knob)}</legend>{legend_html(self.legend)}{frames}</fieldset>'
            f"{caption_html(self.caption, self.number)}</figure>"
        )

    def _switch(self, key: str) -> str:
        if not self.switch:
            return ""
        buttons = "".join(
            f'<label><input type="radio" name="{key}-switch" value="{k}"{" checked" * (k == 0)}>{escape(position)}</label>'
            for k, position in enumerate(self.frames[self.marked])
        )
        return f'<fieldset class="switch"><legend>{escape(self.switch)}</legend>{buttons}</fieldset>'

    def _frame(self, setting: str, views: dict[str, Picture], key: str, i: int) -> str:
        chosen = " checked" * (setting == self.marked)
        ids = [f"{key}-{i}-says" if not self.switch else f"{key}-{i}-{k}-says" for k in range(len(views))]
        # the sentence describes the button and names the picture; it is hidden from screen readers here, which read it there
        inside = "".join(
            f'<div class="view" data-chosen="{escape(self._chosen(setting, position))}">'
            f'<p id="{sentence_id}" aria-hidden="true">{escape(view.alt)}</p>'
            f"{view.panels_html(sentence_id.removesuffix('-says'))}</div>"
            for sentence_id, (position, view) in zip(ids, views.items(), strict=True)
        )
        return (
            f'<label><input type="radio" name="{key}" value="{i}" aria-describedby="{" ".join(ids)}"{chosen}>{escape(setting)}</label>'
            f'<div class="frame">{inside}</div>'
        )

    def _chosen(self, setting: str, position: str) -> str:
        """What is chosen in a view: its heading in print, where no button shows it."""
        return f"{self.knob}: {setting}" + (f"; {self.switch}: {position}" if self.switch else "")

    def _repr_mimebundle_(self, include=None, exclude=None):
        alts = (view.alt for views in self.frames.values() for view in views.values())
        text = " ".join([f"{self.caption} {self.knob}.", *alts])
        return {"text/html": self.html, "text/plain": text}


def turned(
    frames: Mapping[str, Any],
    knob: str,
    caption: str,
    marked: str = "",
    number: str = "",
    legend: dict[str, Mark] | None = None,
    switch: str = "",
) -> Instrument:
    """Build a figure with a knob.

    * ``frames``: name of a setting -> its axes and a sentence that states the setting and what it shows.
    * ``knob``: the quantity and its unit; ``marked``: the setting shown first, by default the first.
    * ``legend``: shared by all frames.
    * ``switch``: the quantity of a second group of buttons; each setting then has axes and a sentence for each position.

    All frames have the same number of panels and the same limits, so visible changes are changes of values.
    """
    drawn = {setting: dict(content) if switch else {"": content} for setting, content in frames.items()}
    marked = marked or next(iter(drawn), "")
    if len(drawn) < 2 or marked not in drawn:
        raise ValueError(
            f"a knob has two settings or more, one of them marked (got {', '.join(drawn) or 'none'}; marked {marked!r})"
        )
    positions = list(drawn[marked])
    if any(list(views) != positions for views in drawn.values()) or (switch and not 2 <= len(positions) <= _MOST_POSITIONS):
        raise ValueError(
            f"a switch has two to {_MOST_POSITIONS} positions, the same at each setting (got {'; '.join(', '.join(v) for v in drawn.values())})"
        )
    axes = [axes_of(view[0]) for views in drawn.values() for view in views.values()]
    if len({len(panels) for panels in axes}) > 1:
        raise ValueError(f"every frame has as many panels (got {', '.join(str(len(panels)) for panels in axes)})")
    for panels in zip(*axes, strict=True):
        share_limits(panels, "xy")
    pictures = {
        setting: {position: show(content, caption, says, number, legend) for position, (content, says) in views.items()}
        for setting, views in drawn.items()
    }
    return Instrument(pictures, knob, caption, marked, number, legend or {}, switch)
