"""Read what other programs write as tables in memory: GeoJSON, JSON, GPX, KML, GeoPackage, GeoParquet, Feather, data frames.

:data:`READERS` has a reader for each ending of a name. A position that is a geometry, or degrees times ten million (E7), becomes the
columns ``lat`` and ``lng``; a column ``file``, and ``track`` for GPX and KML, may name the user. All else is read by the rules for
every table, see :mod:`mobpriv.datasets.tables`. Every element of a file is a row or counts in ``left_out``.
"""

import json
from collections.abc import Callable
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq

from mobpriv.datasets.lines import BLANK, REMEDIES, UNREADABLE
from mobpriv.traces.table import TableProblem

_POSITIONS = {"lat", "latitude", "lng", "lon", "long", "longitude", "x", "y"}  # columns that a geometry replaces
_E7 = ("latitudeE7", "longitudeE7", "timestamp", "timestampMs")  # of a record of a location history
_CUT = "was it cut while copying?"


class Table(NamedTuple):
    """A table in memory."""

    path: Path  # where it comes from
    table: pa.Table
    left_out: list[TableProblem] = []  # noqa: RUF012  (never changed)
    line: np.ndarray | None = None  # of each row in the file, if it has a line of its own

    def place(self, row: int) -> str:
        return f"{self.path.name} row {row}" if self.line is None else f"{self.path.name} line {self.line[row]}"


def opened(source) -> Table | Path:
    """A data frame, or a file of one of these formats, as a table in memory; the path of any other file.

    ``source`` may be the result of an earlier call. A GeoDataFrame's points are its positions, in any coordinate reference system.
    """
    if isinstance(source, Table):
        return source
    if isinstance(source, pd.DataFrame):
        return _of_frame(Path("table"), source)
    path = Path(source)
    read = READERS.get(path.suffix.lower())
    if read is None or not path.is_file():
        return path
    found = read(path)
    return path if found is None else found


def _of_frame(path: Path, frame: pd.DataFrame, **found) -> Table:
    """The rows of a data frame; an index of times, or of several columns, is kept as columns."""
    if isinstance(frame.index, pd.DatetimeIndex | pd.MultiIndex):
        frame = frame.reset_index(names=None if any(frame.index.names) else "t")
    geometry = getattr(frame, "active_geometry_name", None)
    if geometry:
        points = frame.geometry if frame.crs is None else frame.geometry.to_crs("EPSG:4326")
        _only_points(path, set(points.geom_type.dropna()))
        frame = _at(pd.DataFrame(frame.drop(columns=geometry)), points.y.to_numpy(), points.x.to_numpy())
    columns = [_column(frame.iloc[:, k]) for k in range(frame.shape[1])]
    return Table(path, pa.Table.from_arrays(columns, [str(name) for name in frame.columns]), **found)


def _at(frame: pd.DataFrame, lat, lng) -> pd.DataFrame:
    """The frame with these positions in place of those in its own columns."""
    return frame[[c for c in frame if str(c).lower() not in _POSITIONS]].assign(lat=lat, lng=lng)


def _only_points(path: Path, kinds: set[str]) -> None:
    if kinds - {"Point"}:
        raise ValueError(f"{path}: the geometries are {', '.join(sorted(kinds))}: a record is a Point with a user and a time")


def _column(values: pd.Series) -> pa.Array:
    """A column as Arrow; values of several types become text."""
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowException, OverflowError):
        return pa.array(values.astype(object).where(values.notna(), None).map(str, na_action="ignore"), pa.string())


def _json(path: Path) -> Table:
    """GeoJSON, the records of a location history, a list of records, or a record a line."""
    text, lines, failed = path.read_bytes(), None, []
    try:
        document = None if path.suffix.lower() in _BY_LINE else _parsed(text)
    except ValueError as reason:
        if text.lstrip()[:1] != b"{" or not _is_object(text.split(b"\n", 1)[0]):
            raise ValueError(f"{path}: not a whole JSON document ({reason}); {_CUT}") from None
        document = None
    if document is None:
        document, lines, failed = _by_line(path, text)
    elif isinstance(document, dict):
        _check_crs(path, document)
        document = next((document[key] for key in ("features", "locations") if isinstance(document.get(key), list)), None)
    if not isinstance(document, list):
        raise ValueError(
            f"{path}: a JSON document is read if it is GeoJSON (features), a location history (locations), a list of records, or "
            "has a record a line"
        )
    rows = [_record(path, element) for element in document]
    no_record = np.array([row is None for row in rows], bool)
    if no_record.any():
        first = f"element {int(no_record.argmax())}" if lines is None else f"line {lines[no_record.argmax()]}"
        rule, remedy = "element that is no record", "the element is left out; a record is an object with names"
        failed.append(TableProblem(rule, int(no_record.sum()), 0, -1, f"{path.name} {first}", "", remedy))
    # as objects: pandas would round large whole numbers where others are missing
    frame = pd.DataFrame([row for row in rows if row is not None], dtype=object)
    if _E7[0] in frame and _E7[1] in frame:
        lat, lng = (pd.to_numeric(frame[c], errors="coerce") / 1e7 for c in _E7[:2])
        time = frame.reindex(columns=_E7[2:])
        frame = pd.DataFrame({"file": path.stem, "time": time["timestamp"].fillna(time["timestampMs"]), "lat": lat, "lng": lng})
    number = (np.arange(len(rows)) if lines is None else np.asarray(lines))[~no_record]
    return _of_frame(path, frame, left_out=failed, line=None if lines is None else number)


def _parsed(text: bytes):
    """A JSON document; of the records of a location history only what is needed, which saves most of the memory."""
    try:
        return json.loads(text, object_hook=lambda d: {k: d[k] for k in _E7 if k in d} if _E7[0] in d else d)
    except RecursionError:
        raise ValueError("too deeply nested") from None


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(_parsed(line), dict)
    except ValueError:
        return False


def _by_line(path: Path, text: bytes) -> tuple[list, list[int], list[TableProblem]]:
    """The elements of a file with one a line, their lines, and the lines that hold none."""
    elements, lines, failed = [], [], {BLANK: [], UNREADABLE: []}
    for k, line in enumerate(text.removeprefix(b"\xef\xbb\xbf").removesuffix(b"\n").split(b"\n"), 1):
        try:
            elements.append(_parsed(line))
            lines.append(k)
        except ValueError:
            failed[UNREADABLE if line.strip() else BLANK].append(k)
    problems = [
        TableProblem(rule, len(numbers), 0, -1, f"{path.name} line {numbers[0]}", "", REMEDIES[rule])
        for rule, numbers in failed.items()
        if numbers and text
    ]
    return elements, lines, problems


def _record(path: Path, element) -> dict | None:
    """A feature's properties and position, or an object itself; None for anything else."""
    if not isinstance(element, dict) or element.get("type") != "Feature":
        return element if isinstance(element, dict) else None
    geometry = element.get("geometry")
    geometry = geometry if isinstance(geometry, dict) else {}
    _only_points(path, {str(geometry.get("type", "Point"))})
    at = geometry.get("coordinates")
    lng, lat = at[:2] if isinstance(at, list) and len(at) >= 2 else (None, None)
    properties = element.get("properties")
    properties = properties if isinstance(properties, dict) else {}
    return {k: v for k, v in properties.items() if k.lower() not in _POSITIONS} | {"lat": lat, "lng": lng}


def _check_crs(path: Path, document: dict) -> None:
    crs = document.get("crs")
    name = str(crs["properties"].get("name")) if isinstance(crs, dict) and isinstance(crs.get("properties"), dict) else ""
    if name and not name.endswith(("CRS84", "4326")):
        raise ValueError(f"{path}: its coordinates are of {name[:60]}: reproject them to degrees of WGS 84 (EPSG:4326)")


def _gpx(path: Path) -> Table:
    rows, others = [], 0
    for element in _elements(path, "trk", "wpt", "rtept"):
        if not element.tag.endswith("trk"):
            others += 1
            continue
        name = (element.findtext("{*}name") or "").strip() or path.stem
        rows += [(name, point.findtext("{*}time"), point.get("lat"), point.get("lon")) for point in element.iterfind(".//{*}trkpt")]
    return _of_tracks(path, rows, others, "waypoint or point of a route")


def _kml(path: Path) -> Table:
    rows, others = [], 0
    for mark in _elements(path, "Placemark"):
        name, before = (mark.findtext("{*}name") or "").strip() or path.stem, len(rows)
        for track in mark.iterfind(".//{*}Track"):
            whens, at = ([e.text for e in track.iterfind(tag)] for tag in ("{*}when", "{*}coord"))
            rows += [(name, when, *_lat_lng((where or "").split())) for when, where in zip_longest(whens, at)]
        for point in mark.findall("{*}Point"):
            at = (point.findtext("{*}coordinates") or "").split(",")
            rows.append((path.stem, mark.findtext("{*}TimeStamp/{*}when"), *_lat_lng(at)))
        others += len(rows) == before
    return _of_tracks(path, rows, others, "place that is no point or track with times")


def _lat_lng(at: list[str]) -> tuple[str | None, str | None]:
    return (at[1], at[0]) if len(at) >= 2 else (None, None)


def _elements(path: Path, *names: str):
    """The elements of an XML document with these names, one at a time."""
    try:
        for _, element in ElementTree.iterparse(path):
            if element.tag.rpartition("}")[2] in names:
                yield element
                element.clear()
    except (ElementTree.ParseError, LookupError, ValueError) as reason:
        raise ValueError(f"{path}: not a whole XML document ({reason}); {_CUT}") from None


def _of_tracks(path: Path, rows: list[tuple], others: int, rule: str) -> Table:
    frame = pd.DataFrame(rows, columns=["track", "time", "lat", "lng"], dtype=object).assign(file=path.stem)
    remedy = "it is left out: it is no record of a track"
    left_out = [TableProblem(rule, others, 0, -1, path.name, "", remedy)] if others else []
    return _of_frame(path, frame, left_out=left_out)


def _layer(path: Path) -> Table:
    """The only layer of a GeoPackage."""
    import geopandas  # takes a second to import
    from shapely.errors import ShapelyError

    try:
        layers = geopandas.list_layers(path)["name"].tolist()
        if len(layers) != 1:
            raise ValueError(
                f"{path}: {len(layers)} layers ({', '.join(layers[:5])}): write the one with the records to a file"
            )
        return _of_frame(path, geopandas.read_file(path))
    except (RuntimeError, ShapelyError, pa.ArrowException, OSError) as reason:
        raise _broken(path, reason) from None


def _parquet(path: Path) -> Table | None:
    """A GeoParquet file without columns of positions; None for any other, which is read from the disk."""
    try:
        schema = pq.read_schema(path)
        if b"geo" not in (schema.metadata or {}) or {"lat", "lng"} <= set(schema.names):
            return None
        import geopandas

        return _of_frame(path, geopandas.read_parquet(path))
    except (pa.ArrowException, OSError) as reason:
        raise ValueError(f"{path}: not a whole Parquet file ({_line(reason)}); {_CUT}") from None


def _arrow(path: Path) -> Table:
    try:
        with path.open("rb") as file:
            begins = file.read(6)
        if begins == b"ARROW1" or begins.startswith(b"FEA1"):
            return Table(path, pa.feather.read_table(path, memory_map=False))
        with pa.ipc.open_stream(path) as stream:
            return Table(path, stream.read_all())
    except (pa.ArrowException, OSError) as reason:
        raise _broken(path, reason) from None


def _broken(path: Path, reason: Exception) -> ValueError:
    return ValueError(f"{path}: not a whole {path.suffix[1:]} file ({_line(reason)}); {_CUT}")


def _line(reason: Exception) -> str:
    """The first sentence of a library's message, without what cannot be printed."""
    first = str(reason).split("\n")[0].split(". ")[0][:100]
    return "".join(c for c in first if c.isprintable()) or type(reason).__name__


_BY_LINE = (".jsonl", ".ndjson", ".geojsonl")
READERS: dict[str, Callable[[Path], Table | None]] = {
    **dict.fromkeys((".json", ".geojson", *_BY_LINE), _json),
    ".gpx": _gpx,
    ".kml": _kml,
    ".gpkg": _layer,
    ".parquet": _parquet,
    **dict.fromkeys((".feather", ".arrow", ".arrows", ".ipc"), _arrow),
}
"""The ending of a name -> its reader; the reader of Parquet gives None for a file that is read from the disk."""
