"""Tables of the book: numbers in a common format, and a label for each cell, so that narrow pages show rows as cards."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

import pandas as pd

from mobpriv.base.numbers import FIXED, beside, extent, shown

_NOTHING = ' class="none"'


class Cell(NamedTuple):
    """A number, and small print below it: interval, n, number of the other variant, printed number."""

    number: str
    small: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.number + (f" ({'; '.join(self.small)})" if self.small else "")


class Table:
    """Rows of cells in groups. ``groups``: title of a group ("" for none) -> label of a row -> its cells, one per column.

    On a narrow page each row becomes a card with labelled cells.
    """

    def __init__(self, columns: Sequence[str], groups: Mapping[str, Mapping[str, Sequence[Cell]]], corner: str = ""):
        self.columns, self.groups, self.corner = list(columns), groups, corner

    def _repr_html_(self) -> str:
        head = "".join(f'<th scope="col" role="columnheader">{escape(name)}</th>' for name in self.columns)
        # cards have no head; the corner is then shown above them
        above = f'<div class="corner" aria-hidden="true">{escape(self.corner)}</div>' if self.corner else ""
        corner = f'<th scope="col" role="columnheader">{escape(self.corner)}</th>' if self.corner else '<td role="cell"></td>'
        bodies = "".join(self._body(title, rows) for title, rows in self.groups.items())
        return (
            f'<div class="numbers-box">{above}<table class="numbers columns-{min(len(self.columns), 7)}" role="table">'
            f'<thead role="rowgroup"><tr role="row">{corner}{head}</tr></thead>{bodies}</table></div>'
        )

    def _body(self, title: str, rows: Mapping[str, Sequence[Cell]]) -> str:
        span = len(self.columns) + 1
        head = f'<tr class="group" role="row"><th scope="rowgroup" role="rowheader" colspan="{span}">{escape(title)}</th></tr>'
        lines = "".join(
            f'<tr role="row"><th scope="row" role="rowheader">{escape(name)}</th>{self._cells(row)}</tr>'
            for name, row in rows.items()
        )
        return f'<tbody role="rowgroup">{head if title else ""}{lines}</tbody>'

    def _cells(self, row: Sequence[Cell]) -> str:
        return "".join(
            f'<td role="cell"{"" if cell.number else _NOTHING} data-label="{escape(column)}"><span>{escape(cell.number)}</span>'
            # an interval breaks only before its "to"
            + "".join(f"<small>{escape(text).replace(' to ', f' to{FIXED}')}</small>" for text in cell.small)
            + "</td>"
            for column, cell in zip(self.columns, row, strict=True)
        )

    def __repr__(self) -> str:
        rows = {(title, name): [str(cell) for cell in row] for title, rows in self.groups.items() for name, row in rows.items()}
        return pd.DataFrame.from_dict(rows, orient="index", columns=self.columns).to_string()


def table(values, units: Mapping[str, str] | str = "", corner: str = "") -> Table:
    """A table of the book from a DataFrame, or from several (title of a group -> DataFrame).

    ``units``: column -> unit, or one unit for all. Estimates are shown with their intervals, texts unchanged.
    """
    frames = values if isinstance(values, Mapping) else {"": values}
    columns = [str(name) for name in next(iter(frames.values())).columns]
    column_units = {name: units if isinstance(units, str) else units.get(name, "") for name in columns}
    groups = {
        str(title): {
            _words(name): [cell(value, column_units[column]) for column, value in zip(columns, row, strict=True)]
            for name, row in zip(frame.index, frame.itertuples(index=False, name=None), strict=True)
        }
        for title, frame in frames.items()
    }
    return Table(columns, groups, corner)


def _words(name: Any) -> str:
    if isinstance(name, tuple):
        return ", ".join(map(_words, name))
    return name if isinstance(name, str) else shown(name)


def cell(value: Any, unit: str = "", n: bool = True) -> Cell:
    """A result, a number or a text as a cell; ``n``: whether to show the number of cases."""
    if isinstance(value, str) and value not in ("infinite", "-infinite"):
        return Cell(value)
    if not hasattr(value, "keys"):
        return Cell(shown(value.item() if hasattr(value, "item") else value, unit))
    result = {key: value[key] for key in value.keys()}  # noqa: SIM118  (an Estimate is not a dict)
    between = extent(result.get("low"), result.get("high"), unit)
    return Cell(shown(result["value"], unit), beside(between, result.get("n"), n))
