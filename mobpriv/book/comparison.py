"""This run's numbers beside the papers' and the published runs: what a notebook shows at its end."""

from html import escape
from pathlib import Path
from typing import Any

from mobpriv.book import claims, quantities, runs
from mobpriv.book.quantities import FIXED, extent, shown
from mobpriv.book.results import ROOT, plain, published


def printed(notebook: str, run: str, root: Path = ROOT) -> dict[str, float]:
    """The numbers that the papers print for a notebook's quantities on the data set of a run, as the claims ledger holds them."""
    known = runs.read(root).runs
    data_set = known[run].data if run in known else run
    return claims.printed(claims.read(root / "book" / "claims", claims.Claim), notebook, data_set)


def label(data, root: Path = ROOT) -> str:
    """What a data set is called on a page that also shows others: only an embedded one goes by its own name."""
    registry = runs.read(root)
    return registry.title(data.name) if data.synthetic and data.name in registry.embedded else "this run"


def title(run: str, root: Path = ROOT) -> str:
    """What a run is called on the pages: "geolife-program" is "GeoLife, as the program"."""
    return runs.read(root).title(run)


class Beside:
    """A table of results: rows of quantities, columns of runs; each cell a number with its interval and its n."""

    def __init__(self, columns: dict[str, dict[str, tuple[str, str]]]):
        self.columns = columns

    def _repr_html_(self) -> str:
        head = "".join(f'<th scope="col">{escape(name)}</th>' for name in self.columns)
        names = list(next(iter(self.columns.values())))
        body = "".join(f'<tr><th scope="row">{escape(name)}</th>{self._cells(name)}</tr>' for name in names)
        return f'<table class="beside"><thead><tr><td></td>{head}</tr></thead><tbody>{body}</tbody></table>'

    def _cells(self, name: str) -> str:
        cells = [column[name] for column in self.columns.values()]
        return "".join(f"<td>{escape(number)}<small>{escape(extent)}</small></td>" for number, extent in cells)

    def __repr__(self) -> str:
        import pandas as pd

        return pd.DataFrame(
            {run: {k: " ".join(v) for k, v in column.items()} for run, column in self.columns.items()}
        ).to_string()


def beside(notebook: str, results: dict[str, Any], rows: dict[str, str], root: Path = ROOT) -> Beside:
    """A table of this run's results beside the papers' numbers and the published runs on real data.

    ``rows``: name of a quantity -> what to call it. Every number comes with its 95 % interval and its n where it has them; shares and
    differences of shares bear their unit, which ``book/quantities`` or a "(%)" at the end of the name says.
    """
    registry, columns = runs.read(root), {}
    names = quantities.read(root, registry.runs)
    units = {name: _unit(names, notebook, name, text) for name, text in rows.items()}
    called = {name: text.removesuffix(" (%)") for name, text in rows.items()}
    found_in = {"this run": {name: plain(name, value) for name, value in results.items()}} | published(notebook, root)
    for run, found in found_in.items():
        paper = printed(notebook, run, root) if run in registry.data_sets else {}  # once for all runs of a data set
        if paper.keys() & rows.keys():
            columns[f"{registry.title(run)}, paper"] = {
                text: _shown(paper[name], units[name]) if name in paper else ("", "") for name, text in called.items()
            }
        columns[registry.title(run)] = {text: _shown(found.get(name), units[name]) for name, text in called.items()}
    return Beside(columns)


def _unit(names: quantities.Names, notebook: str, name: str, text: str) -> str:
    """Where a share or a difference of shares is shown; any other unit stands in the row's own words."""
    known = names.find(notebook, name)
    if known and known.unit in ("share", "points"):
        return known.unit
    return "share" if text.endswith(" (%)") else ""


def _shown(value: Any, unit: str) -> tuple[str, str]:
    if not isinstance(value, dict):
        return shown(value, unit), ""
    number, low, high, n = (value.get(key) for key in ("value", "low", "high", "n"))
    between = [extent(low, high, unit), f"n{FIXED}={FIXED}{n}" if n else ""]
    return shown(number, unit), ", ".join(filter(None, between))
