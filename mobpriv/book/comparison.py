"""The numbers of this run, the published runs and the papers, for the figures and tables of a notebook."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from mobpriv.base.numbers import FIXED, constant, shown
from mobpriv.book import claims, quantities, runs
from mobpriv.book.quantities import filled, number_or_text, parts_of
from mobpriv.book.results import ROOT, plain, saved
from mobpriv.book.tables import Cell, Table, cell

THIS_RUN = "this run"


class Shown(NamedTuple):
    """A run as a figure shows it."""

    title: str  # "GeoLife (author's code)"
    data_set: str  # "GeoLife"
    variant: str  # text | program
    results: dict[str, Any]
    printed: dict[str, float]  # the paper's numbers for them
    synthetic: bool
    here: bool = False  # the current run; figures may also draw data that are not in its results

    @property
    def variant_in_words(self) -> str:
        return {"text": "as described", "program": "author's code"}[self.variant]

    def value(self, name: str) -> float:
        """The value of a result."""
        result = self.results[name]
        return result["value"] if isinstance(result, dict) else result

    def rows(self, names: str, **levels: Iterable) -> pd.DataFrame:
        """The results of a family, ``"rate.{mechanism}.{users}"``, as a table with a column per part, then value, low, high, n.

        ``levels``: the values of a part to show, in this order; values that the run does not have are left out.
        """
        pattern, numbers = quantities.pattern(names), ["value", "low", "high", "n"]
        taken = sorted({*pattern.groupindex} & {*numbers})
        if taken:
            raise ValueError(
                f"{names}: a part of a name that is drawn or tabulated must not be called {', '.join(numbers)} (got {taken[0]})"
            )
        matches = [(pattern.fullmatch(name), value) for name, value in self.results.items()]
        rows = [
            {key: number_or_text(part) for key, part in match.groupdict().items()}
            | (value if isinstance(value, dict) else {"value": value})
            for match, value in matches
            if match
        ]
        table = pd.DataFrame(rows, columns=[*pattern.groupindex, *numbers])
        table[numbers] = table[numbers].replace({"infinite": np.inf, "-infinite": -np.inf}).astype(float)
        for part, values in reversed(levels.items()):
            order = {value: i for i, value in enumerate(values)}
            table = table[table[part].isin(order)].sort_values(
                part, key=lambda column, order=order: column.map(order), kind="stable"
            )
        return table.reset_index(drop=True)


def _each(template: str, labels: Mapping[str, Mapping[str, str]]) -> Iterator[tuple[str, dict[str, str]]]:
    """The label for each combination of levels of the template's parts, with the levels."""
    parts = parts_of(template)
    for combination in product(*(labels[part].items() for part in parts)):
        words, texts = ({part: level[i] for part, level in zip(parts, combination, strict=True)} for i in (1, 0))
        yield filled(template, words), texts


def _with_count(title: str, runs: list[Shown], counts: list[int | None]) -> str:
    """ "GeoLife, n = 35 (author's code: 42)"."""
    first, *others = counts
    also = [f"{run.variant_in_words}: {shown(n)}" for run, n in zip(runs[1:], others, strict=True) if n and n != first]
    return title + (f", n{FIXED}={FIXED}{shown(first)}" + (f" ({', '.join(also)})" if also else "") if first else "")


class Compared:
    """A notebook's results on all data in the order of the pages: the reader's own data, real data, synthetic data."""

    def __init__(self, notebook: str, shown_runs: list[Shown], names: quantities.Names):
        self.notebook, self.runs, self.names = notebook, shown_runs, names

    @property
    def this(self) -> Shown:
        """The current run."""
        return next(run for run in self.runs if run.here)

    def data_sets(self) -> dict[str, list[Shown]]:
        """Title of a data set -> its runs, one for each variant, the variant as described first."""
        by_title = {}
        for run in self.runs:
            by_title.setdefault(run.data_set, []).append(run)
        return {title: sorted(same_data, key=lambda run: run.variant != "text") for title, same_data in by_title.items()}

    def having(self, names: str) -> list[Shown]:
        """The runs with results of these names, ``"rate.{mechanism}"``; older published runs may lack them."""
        pattern = quantities.pattern(names)
        return [run for run in self.runs if any(map(pattern.fullmatch, run.results))]

    def lacking(self, names: str) -> str:
        """A sentence for the caption that names the runs without such results; "" if there are none."""
        return self.undrawn(self.having(names))

    def undrawn(self, drawn: list[Shown]) -> str:
        """A sentence for the caption that names the runs that are not drawn; "" if all are."""
        titles = [run.title for run in self.runs if run not in drawn]
        verb, whom = ("is", "it") if len(titles) == 1 else ("are", "them")
        return f" {' and '.join(titles)} {verb} not drawn, because the book lacks these results for {whom}." if titles else ""

    def table(self, rows: Mapping[str, str] | Iterable[str]) -> Table:
        """A table with a row per quantity and a column per data set; small print gives the other variant and the paper.

        ``rows``: name of a quantity -> label; or names, whose labels are the short ones of ``book/quantities``. Units come from ``book/quantities``; without an entry there, a label that ends in
        "(%)" means a share.
        """
        rows = rows if isinstance(rows, Mapping) else {name: self.short(name) for name in rows}
        runs = self.data_sets()
        counts = {title: [self._count(run, rows) for run in shown_runs] for title, shown_runs in runs.items()}
        body = {
            text.removesuffix(" (%)"): [self._cell(shown_runs, name, text, counts[title]) for title, shown_runs in runs.items()]
            for name, text in rows.items()
        }
        return Table([_with_count(title, shown_runs, counts[title]) for title, shown_runs in runs.items()], {"": body})

    def pivot(
        self,
        quantities: str | Iterable[str] | Mapping,
        rows: str = "",
        columns: str = "",
        corner: str = "",
        data_sets: Iterable[str] = (),
        **levels: Iterable,
    ) -> Table:
        """A table with a group of rows per data set.

        * ``pivot({"privacy": "AP.{mechanism}", "cost": "cost.{mechanism}"}, rows="{mechanism}")``: a column per label and a row
          per level of the part ``mechanism``. ``rows`` is the label of a row, for example ``"ε = {e}"``.
        * ``pivot(["AP.{mechanism}", "cost.{mechanism}"], rows="{mechanism}")``: the labels are the short ones of
          ``book/quantities``.
        * ``pivot("rate.{attack}.{mechanism}", rows="{mechanism}", columns="{attack}")``: also a column per level; the same as
          ``pivot({"{attack}": "rate.{attack}.{mechanism}"}, rows="{mechanism}")``.
        * ``levels``: the levels of a part to show, ``mechanism=("HMC", "W4M")``, by default all that have results. A mapping
          also gives their labels.
        * Without ``rows``: label of a row -> label of a column -> name of the quantity.

        ``data_sets``: titles of the data sets to show, () for all.
        """
        if not rows:
            labels = dict.fromkeys(label for named in quantities.values() for label in named)
            return self._pivot(quantities, corner, data_sets, list(labels))
        if isinstance(quantities, str):
            quantities = {columns: quantities}
        names_by_label = quantities if isinstance(quantities, Mapping) else {self.short(names): names for names in quantities}
        parts = parts_of(rows + "".join(names_by_label))
        labels = {part: self.labels(part, names_by_label.values(), levels) for part in parts}
        of_columns = [
            (label, names, of_column)
            for template, names in names_by_label.items()
            for label, of_column in _each(template, labels)
        ]
        cells = {
            row: {label: filled(names, of_row | of_column) for label, names, of_column in of_columns}
            for row, of_row in _each(rows, labels)
        }
        known = {name for run in self.runs for name in run.results}
        cells = {row: {label: name for label, name in named.items() if name in known} for row, named in cells.items()}
        shown_labels = [label for label, _, _ in of_columns if any(label in named for named in cells.values())]
        return self._pivot({row: named for row, named in cells.items() if named}, corner, data_sets, shown_labels)

    def figure(self, form: str, names: str | Iterable[str] | Mapping[str, str], caption: str, **options: Any):
        """A figure with a panel per run that has such results; :func:`mobpriv.book.figures.figure` describes the options.

        ``figure("curves", "within.{k}.{mechanism}", "Share of the users …", x="k", colour="mechanism", number="4.7")``
        """
        from mobpriv.book.figures import figure  # loads matplotlib

        return figure(self, form, names, caption, **options)

    def short(self, names: str) -> str:
        """The short label of a quantity or a family."""
        known = self.names.find(self.notebook, names)
        if known is None or not known.short:
            raise ValueError(f"{names} of {self.notebook} has no short label in book/quantities")
        return known.short

    def labels(self, part: str, names: Iterable[str], levels: Mapping[str, Iterable]) -> dict[str, str]:
        """The label of each level of a part, by the level's text in the names of results."""
        patterns = [quantities.pattern(family) for family in names if f"{{{part}}}" in family]
        matches = (pattern.fullmatch(name) for pattern in patterns for run in (self.this, *self.runs) for name in run.results)
        texts = list(dict.fromkeys(match[part] for match in matches if match))
        wanted = levels.get(part, texts)
        labels = wanted if isinstance(wanted, Mapping) else {level: self._words(part, level) for level in wanted}
        return {
            next((text for text in texts if text == level or number_or_text(text) == level), str(level)): label
            for level, label in labels.items()
        }

    def _words(self, part: str, level: Any) -> str:
        text = f"{level:g}" if isinstance(level, float) else str(level)
        return self.names.parts.get(f"{part}={text}") or self.names.parts.get(text, text)

    def _pivot(self, rows: Mapping[str, Mapping[str, str]], corner: str, data_sets: Iterable[str], columns: list[str]) -> Table:
        names = [name for cells_of_row in rows.values() for name in cells_of_row.values()]
        groups = {}
        for title, shown_runs in self.data_sets().items():
            if data_sets and title not in data_sets:
                continue
            counts = [self._count(run, names) for run in shown_runs]
            groups[_with_count(title, shown_runs, counts)] = {
                text: [self._cell(shown_runs, cells_of_row[c], "", counts) if c in cells_of_row else Cell("") for c in columns]
                for text, cells_of_row in rows.items()
            }
        return Table(columns, groups, corner)

    def _count(self, run: Shown, names: Iterable[str]) -> int | None:
        """The n that most of the results share, else None."""
        values = [run.results.get(name) for name in names]
        counted = Counter(value["n"] for value in values if isinstance(value, dict) and value.get("n"))
        return next((n for n, times in counted.items() if 2 * times > counted.total()), None)

    def _cell(self, runs: list[Shown], name: str, text: str, counts: list[int | None]) -> Cell:
        """The result of the first run; the other variants in small print. A number of cases that is not the run's in ``counts`` stands in the cell."""
        unit = self.unit(name, text)

        def of(run: Shown, n: int | None, always: bool) -> Cell:
            result = run.results.get(name)
            own = result.get("n") if isinstance(result, dict) else None
            return cell(result, unit, own != n and (always or n is not None))

        (first, n), *others = zip(runs, counts, strict=True)
        shown_cell = of(first, n, True)
        small = [f"{run.variant_in_words}: {of(run, n, False)}" for run, n in others if name in run.results]
        small += [f"paper: {constant(first.printed[name], unit)}"] if name in first.printed else []
        return shown_cell._replace(small=(*shown_cell.small, *small))

    def unit(self, name: str, text: str = "") -> str:
        """The unit to show in cells: shares, points and metres; labels of rows name other units."""
        known = self.names.find(self.notebook, name)
        if known and known.unit in ("share", "points", "m"):
            return known.unit
        return "share" if text.endswith(" (%)") else ""


def compared(notebook: str, results: dict[str, Any], data=None, root: Path = ROOT) -> Compared:
    """Compare this run's ``results`` with the published ones; ``data``: its data set, None without data."""
    registry = runs.read(root)
    names = quantities.read(root, registry.runs)
    names.check_declared(notebook, results)
    embedded_run = data.name if data is not None and data.synthetic and data.name in registry.embedded else ""
    title = registry.title(embedded_run) if embedded_run else THIS_RUN if data is not None else "worked example"
    this_run = Shown(title, title, "text", {k: plain(k, v) for k, v in results.items()}, {}, bool(embedded_run), True)
    published_results = saved(notebook, root)
    others = [
        _published(name, published_results[name], notebook, registry, root)
        for name in sorted(published_results, key=registry.place)
    ]
    return Compared(notebook, [*others, this_run] if embedded_run else [this_run, *others], names)


def _published(name: str, results: dict[str, Any], notebook: str, registry: runs.Registry, root: Path) -> Shown:
    run = registry.runs.get(name) or runs.Run(name, name, "traces")
    data_set = registry.title(run.data or name)
    return Shown(registry.title(name), data_set, run.variant, results, printed(notebook, name, root), False)


def printed(notebook: str, run: str, root: Path = ROOT) -> dict[str, float]:
    """The numbers that the papers print for a notebook's quantities on the data set of a run, from the claims ledger."""
    known = runs.read(root).runs
    data_set = known[run].data if run in known else run
    return claims.printed(claims.read(root / "book" / "claims", claims.Claim), notebook, data_set)


def called(part: str, kind: str = "", root: Path = ROOT) -> str:
    """The label of a part of a result's name: "none" is "no protection". ``kind``: kind of the part, if needed ("chi")."""
    parts = quantities.read(root, runs.read(root).runs).parts
    return parts.get(f"{kind}={part}") or parts.get(part, part)


def published(notebook: str, root: Path = ROOT) -> pd.DataFrame:
    """The results of a notebook on real data in ``book/results``: a row per number, in the columns of :func:`mobpriv.book.quantities.tidy`.

    >>> rates = published("thesis_4_privacy").query("run == 'cabspotting' and quantity == 'rate' and attack == 'AP-Attack'")
    >>> rates[["mechanism", "value", "low", "high", "n"]].round(3).head(1).to_string(index=False).splitlines()
    ['mechanism  value   low  high   n', '     none  0.435 0.393 0.478 522']
    """
    return quantities.tidy(notebook, saved(notebook, root), quantities.read(root, runs.read(root).runs))
