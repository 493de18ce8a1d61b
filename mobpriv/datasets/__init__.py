"""Data sets: readers for their formats, fetching, the embedded synthetic city, and one ``load`` for all of them."""

import os
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from mobpriv.datasets.catalogue import CITY_FILE, DATASETS, Description
from mobpriv.datasets.fetch import NeedsRegistration, cache_folder, cached, fetch, sha256_of
from mobpriv.datasets.readers import read_cabspotting, read_geolife, read_mdc, read_privamov
from mobpriv.datasets.tables import parquet_table, read_table
from mobpriv.traces import Traces

__all__ = [
    "DATASETS",
    "Dataset",
    "Description",
    "NeedsRegistration",
    "cache_folder",
    "city_truth",
    "data_folder",
    "fetch",
    "load",
    "read_cabspotting",
    "read_geolife",
    "read_mdc",
    "read_privamov",
    "read_table",
]

READERS = {
    "cabspotting": read_cabspotting,
    "geolife": read_geolife,
    "mdc": read_mdc,
    "privamov": read_privamov,
    "table": read_table,
}


class Dataset(NamedTuple):
    traces: Traces
    left_out: pd.DataFrame  # what the reader left out and why: see mobpriv.datasets.tables
    name: str
    sha256: str  # of the file, or of the folder's files
    synthetic: bool
    source: str  # title of a known set, else the name of the file or folder
    persons: str = ""  # what the names of its persons begin with, where it holds others too


def data_folder() -> Path:
    """The folder of the embedded data: ``MOBPRIV_DATA`` if set, else ``data/`` of the project."""
    return Path(os.environ.get("MOBPRIV_DATA") or Path(__file__).parents[2] / "data")


def city_truth() -> tuple[pd.DataFrame, pd.DataFrame]:
    """What is true of the embedded city: stays (user, start, end, lat, lng, role) and users (indexed by user).

    See ``data/README.md`` for what they hold.
    """
    stays = parquet_table(data_folder() / "city_stays.parquet")
    for c in ("start", "end"):
        stays[c] = pd.to_datetime(stays[c], unit="s", utc=True).dt.as_unit("ms")
    return stays, parquet_table(data_folder() / "city_users.parquet").set_index("user")


def load(name_or_path, form: str | None = None, **reading) -> Dataset:
    """A data set by its name ("city", "cabspotting", …: see ``DATASETS``), or a file or folder by its path.

    A file is a table (``reading`` goes to :func:`read_table`); a folder's format is recognised by what it holds. ``form`` names
    the format ("cabspotting", "geolife", "mdc", "privamov", "table") where that is not enough.
    """
    if form is not None and form not in READERS:
        raise ValueError(f"form must be one of {', '.join(READERS)} (got {form!r})")
    text = str(name_or_path)
    if text in DATASETS:
        return _known(text, reading)
    path = Path(name_or_path)
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file or folder, and no data set of that name (known: {', '.join(DATASETS)})")
    traces, left_out = READERS[form or _form(path)](path, **reading)
    name = path.resolve().name.split(".")[0]
    return Dataset(traces, left_out, name, sha256_of(path), _marked_synthetic(path), path.resolve().name)


def _known(name: str, reading: dict) -> Dataset:
    known = DATASETS[name]
    if known.place:
        path = cached(name)
        traces, left_out = READERS[name](path, **reading)
    else:
        path = data_folder() / CITY_FILE
        if not path.is_file():
            raise FileNotFoundError(
                f"{path}: the embedded city is not there. "
                "python -m mobpriv.datasets.city FOLDER makes it, MOBPRIV_DATA=FOLDER finds it"
            )
        if not _marked_synthetic(path):
            raise ValueError(f"{path} is not marked as synthetic: read real data by its path, or make the city anew")
        traces, left_out = read_table(path, **reading)
    return Dataset(traces, left_out, name, sha256_of(path), known.synthetic, known.title, known.persons)


def _form(path: Path) -> str:
    """The format of a path, by what it holds."""
    if path.is_file():
        return "privamov" if path.name == "privamov-gps" else "table"
    for form, pattern in (
        ("cabspotting", "new_*.txt"),
        ("geolife", "**/Trajectory/*.plt"),
        ("mdc", "gps.csv"),
        ("privamov", "privamov-gps*"),
    ):
        if next(path.glob(pattern), None) is not None:
            return form
    raise ValueError(
        f"{path}: the folder holds no files of a known format (known: {', '.join(f for f in READERS if f != 'table')})"
    )


def _marked_synthetic(path: Path) -> bool:
    if path.suffix != ".parquet":
        return False
    try:
        return (pq.read_schema(path).metadata or {}).get(b"synthetic") == b"true"
    except pa.ArrowException:
        return False
