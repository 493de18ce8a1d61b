"""The results of an experiment: save them, keep the steps of a long run, read published results."""

import json
import math
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from mobpriv.base import sharing
from mobpriv.base.estimates import Estimate
from mobpriv.base.folders import PROJECT
from mobpriv.book import provenance

ROOT = PROJECT
RESULTS = "MOBPRIV_RESULTS"  # file for the results of a notebook, set by the runner
PARAMETERS = "MOBPRIV_PARAMETERS"  # names of the notebook's parameters, whose final values the runner records
STEPS_FOLDER = "MOBPRIV_STEPS"  # folder for the finished steps of a long notebook, set by the runner


def save(results: dict[str, Any], data: Any = None, selection: str = "") -> None:
    """Save the results of an experiment; call it once at the end of a notebook.

    ``results``: name of a quantity -> value. A value is one of

    - a number or a truth value,
    - an :class:`mobpriv.base.estimates.Estimate`, or a dict with its keys (interval and number of cases optional),
    - the rows of a table: a list of dicts or a DataFrame.

    A name is dotted, ``"rate.AP-Attack.Promesse"``; claims read it as ``rate['AP-Attack', 'Promesse']``.
    ``data``: returned by ``mobpriv.datasets.load`` or ``load_calls``; None for an experiment without data.
    ``selection``: the part of the data used and how it was split into halves, in words.
    """
    described = None
    if data is not None:
        left_out = getattr(data, "left_out", None)
        records = getattr(data, "calls", getattr(data, "traces", None))
        described = {
            "name": data.name,
            "sha256": data.sha256,
            "synthetic": bool(data.synthetic),
            **({"size": _size(records)} if records is not None else {}),
            "left_out": {p.rule: int(p.records) for p in left_out.itertuples()} if left_out is not None else {},
        }
    content = {
        "data": described,
        "selection": selection,
        "parameters": _used_parameters(),
        "results": {str(k): plain(k, v) for k, v in results.items()},
        "spared": sharing.saved_seconds(),
    }
    default = ROOT / "book" / "_generated" / "results" / "by-hand" / f"{_session()}.json"
    path = Path(os.environ.get(RESULTS, default))
    provenance.write_atomically(path, json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def _size(records) -> dict[str, float]:
    """The size of the data: records, users, days from the first record to the last."""
    days = (records["t"].max() - records["t"].min()).total_seconds() / 86_400 if len(records) else 0.0
    return {"records": len(records), "users": int(records["user"].nunique()), "days": round(days, 1)}


def _used_parameters() -> dict[str, Any]:
    """The current values of the notebook's parameters; a quick run changes some of them."""
    import __main__

    names = [name for name in os.environ.get(PARAMETERS, "").split(",") if hasattr(__main__, name)]
    return {name: plain(name, getattr(__main__, name)) for name in names}


def _session() -> str:
    return Path(os.environ.get("JPY_SESSION_NAME", "notebook")).stem


def plain(name: str, value: Any) -> Any:
    """``value`` for JSON: infinite numbers become text, which the claims read as numbers; NaN becomes null."""
    if isinstance(value, Estimate):
        value = value.stored()
    if hasattr(value, "to_dict") and hasattr(value, "columns"):
        value = value.to_dict("records")
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(k): plain(name, v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(name, v) for v in value]
    if isinstance(value, float):
        return (
            None
            if math.isnan(value)
            else value
            if math.isfinite(value)
            else {1: "infinite", -1: "-infinite"}[int(math.copysign(1, value))]
        )
    if value is None or isinstance(value, bool | int | str):
        return value
    raise ValueError(f"result {name!r}: a result is a number, a truth value, text or a table (got {type(value).__name__})")


def step(name: str, compute: Callable, *arguments) -> Any:
    """Return ``compute(*arguments)``, kept on disk until the whole notebook has succeeded.

    An interrupted run continues after its last finished step. ``compute`` must return plain values (numbers, text, lists, dicts).
    They are always converted to JSON and back, whether computed or read. Outside the runner nothing is kept.
    """
    folder = os.environ.get(STEPS_FOLDER)
    path = Path(folder) / (re.sub(r"[^\w.-]+", "_", name) + ".json") if folder else None
    if path and path.is_file():
        return json.loads(path.read_text(encoding="utf-8"))
    text = json.dumps(compute(*arguments), default=lambda value: value.stored() if isinstance(value, Estimate) else dict(value))
    if path:
        provenance.write_atomically(path, text)
    return json.loads(text)


def saved(notebook: str, root: Path = ROOT) -> dict[str, dict]:
    """The results of a notebook on real data as they are saved: run -> name of a quantity -> value."""
    folders = sorted((root / "book" / "results").glob("*/"))
    records = {folder.name: provenance.read_record(folder / f"{notebook}.json") for folder in folders}
    return {dataset: record["results"] for dataset, record in records.items() if record}
