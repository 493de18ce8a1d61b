"""A page that compares the mechanisms of a class: users re-identified against utility, from results of ``mobpriv judge -o NAME.json``.

All results must be of the same data. A mechanism is on the frontier if no other one has both a lower rate and a larger area coverage.
"""

import html
import json
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from mobpriv import __version__
from mobpriv.base.estimates import Estimate

RATE, UTILITY, ERASED = "any attack", "area coverage", "users left out"  # quantities of mobpriv.own_data.judging


class Result(NamedTuple):
    """A file of results."""

    name: str  # of the file, without its ending
    data: dict[str, str]  # name and sha256 of the original
    version: str  # of mobpriv
    judged: str  # name of the mechanism of this result among the numbers; the others are published
    numbers: list[dict]  # mechanism, quantity, value, low, high, n


def as_json(numbers: pd.DataFrame, judged: str, data, seed: int) -> str:
    """The file of a result; ``numbers``: of :func:`mobpriv.own_data.judging.judge`, ``data``: the original data set."""
    content = {
        "data": {"name": data.name, "sha256": data.sha256},
        "version": __version__,
        "seed": seed,
        "judged": judged,
        "numbers": json.loads(numbers.to_json(orient="records")),  # NaN becomes null
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def read(folder: Path) -> list[Result]:
    """The results in a folder; one-line ValueError if there are none, if a file is no result, or if data or versions differ."""
    results = []
    for path in sorted(folder.glob("*.json")):
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            results.append(Result(path.stem, *(content[field] for field in Result._fields[1:])))
            _values(results[-1].numbers, results[-1].judged)
        except (ValueError, KeyError, TypeError):
            raise ValueError(f"{path}: not a result of mobpriv judge: write it with mobpriv judge … -o {path.name}") from None
    if not results:
        raise ValueError(f"{folder} has no results: write each with mobpriv judge DATA my.py:Class -o {folder / 'NAME.json'}")
    first = results[0]
    for other in results[1:]:
        if other.data["sha256"] != first.data["sha256"]:
            raise ValueError(
                f"the results are of different data and cannot be compared: {first.name}.json of {first.data['name']} "
                f"({first.data['sha256'][:8]}), {other.name}.json of {other.data['name']} ({other.data['sha256'][:8]})"
            )
        if other.version != first.version:
            raise ValueError(
                f"the results are of different versions of mobpriv: {first.name}.json of {first.version}, {other.name}.json of "
                f"{other.version}: judge again with one version"
            )
    return results


def _values(numbers: list[dict], mechanism: str) -> dict[str, Estimate]:
    """Quantity -> estimate of a mechanism."""
    kept = {row["quantity"]: row for row in numbers if row["mechanism"] == mechanism}
    return {
        name: Estimate(
            *(float("nan") if kept[name][field] is None else kept[name][field] for field in ("value", "low", "high", "n"))
        )
        for name in (RATE, UTILITY, ERASED)
    }


def ranked(results: list[Result]) -> pd.DataFrame:
    """A row per mechanism, the frontier first, then by rate; published mechanisms are taken from the first file."""
    first = results[0]
    published = dict.fromkeys(row["mechanism"] for row in first.numbers if row["mechanism"] != first.judged)
    of = {f"{name} (published)": _values(first.numbers, name) for name in published} | {
        r.name: _values(r.numbers, r.judged) for r in results
    }
    table = pd.DataFrame.from_dict(of, orient="index")
    rate, utility = (table[name].map(lambda estimate: estimate.value) for name in (RATE, UTILITY))
    beaten = [
        bool(((rate <= rate[k]) & (utility >= utility[k]) & ((rate < rate[k]) | (utility > utility[k]))).any())
        for k in table.index
    ]
    table["frontier"] = ~pd.Series(beaten, table.index) & utility.notna()
    table["published"] = [name not in {r.name for r in results} for name in table.index]
    return (
        table.assign(rate=rate).sort_values(["frontier", "rate"], ascending=[False, True], kind="stable").drop(columns="rate")
    )


def page(results: list[Result]) -> str:
    """The leaderboard as a self-contained HTML page."""
    from mobpriv.book import tables, webpage  # the packages of the book, which a plain installation lacks

    table = ranked(results)
    table.index = [f"{rank}. {name}" for rank, name in enumerate(table.index, 1)]
    coverage = [Estimate(*(round(part, 2) for part in (of.value, of.low, of.high)), of.n) for of in table[UTILITY]]
    shown = pd.DataFrame(
        {
            "users re-identified": table[RATE],
            "area coverage": pd.Series(coverage, table.index),
            "users left out": table[ERASED],
            "": ["frontier" if on else "" for on in table["frontier"]],
        }
    )
    units = {"users re-identified": "share", "users left out": "share"}
    data = results[0].data
    intro = (
        "<h1>Leaderboard</h1><p>Share of users whom AP-, POI- or PIT-Attack re-identifies (lower is more private) and median area "
        "coverage of the published users (1: the same squares of 800 m as the original). Small numbers: 95 % intervals. "
        "<em>Frontier</em>: no other mechanism is better in both. Two mechanisms whose intervals overlap need not differ. "
        "The attacks do not know the mechanism: a good place is not a guarantee.</p>"
        f"<p>Data: {html.escape(data['name'])}, SHA-256 {html.escape(data['sha256'][:12])}; mobpriv {html.escape(results[0].version)}.</p>"
    )
    body = intro + _figure(table) + tables.table(shown, units)._repr_html_()
    return webpage.document("Leaderboard", body)


def _figure(table: pd.DataFrame) -> str:
    from mobpriv import plot
    from mobpriv.plot import palette

    (axis,) = plot.panels()
    known = table[table[UTILITY].map(lambda estimate: estimate.value == estimate.value)]
    for name, row in known.iterrows():
        x, y = row[RATE], row[UTILITY]
        colour = palette.INK if row["published"] else palette.BLUE
        bars = [[[abs(e.value - e.low)], [abs(e.high - e.value)]] for e in (x, y)]
        axis.errorbar(x.value, y.value, xerr=bars[0], yerr=bars[1], fmt="o" if row["frontier"] else "x", color=colour)
        axis.annotate(name.partition(".")[0], (x.value, y.value), (5, 5), textcoords="offset points", color=colour)
    axis.set(xlabel="share of users re-identified", ylabel="median area coverage")
    picture = plot.show(
        [axis],
        "Median area coverage (y) against the share of users re-identified (x); bars: 95 % intervals. Better mechanisms are further left "
        "and higher. Dots: on the frontier; crosses: not. Black: published mechanisms. Numbers: places in the table.",
        "; ".join(
            f"{name}: {100 * row[RATE].value:.0f} % re-identified, coverage {row[UTILITY].value:.2f}"
            for name, row in known.iterrows()
        )
        + ".",
    )
    return picture._repr_mimebundle_()["text/html"]
