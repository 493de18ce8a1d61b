"""Read what other programs write as tables in memory: GeoJSON, JSON, GPX, KML, GeoPackage, GeoParquet, Feather, data frames.

:data:`READERS` has the reader for each ending of a name. Geometries, and degrees times ten million (E7), become columns ``lat`` and
``lng``. A column ``file``, and for GPX and KML ``track``, can name the user. All else is read by the rules for every table, see
:mod:`mobpriv.datasets.tables`. Every element of a file is a row or counts in ``left_out``.
"""

import json
import warnings
from collections.abc import Callable, Iterator
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
FRAME = Path("<data frame>")  # in place of a file
_NO_RECORD = "element that is no record"


class Table(NamedTuple):
    """A table in memory."""

    path: Path  # where it comes from
    table: pa.Table
    left_out: tuple[TableProblem, ...] = ()
    line: np.ndarray | None = None  # of each row, in a file with a row a line

    def place(self, row: int) -> str:
        return f"{self.path.name} row {row}" if self.line is None else f"{self.path.name} line {self.line[row]}"


def opened(source) -> Table | Path:
    """A data frame, or a file of one of these formats, as a table in memory; the path of any other file.

    ``source`` can be the result of an earlier call. The points of a GeoDataFrame are its positions, in any coordinate reference
    system.
    """
    if isinstance(source, Table):
        return source
    if isinstance(source, pd.DataFrame):
        return _of_frame(FRAME, source)
    path = Path(source)
    read = READERS.get(path.suffix.lower()) if path.is_file() else None
    return (read(path) if read else None) or path


def _of_frame(path: Path, frame: pd.DataFrame, left_out=(), line: np.ndarray | None = None) -> Table:
    """The rows of a data frame; an index of times, or of several columns, is kept as columns."""
    if isinstance(frame.index, pd.DatetimeIndex | pd.MultiIndex):
        frame = frame.reset_index(names=None if any(frame.index.names) else "t")
    if geometry := getattr(frame, "active_geometry_name", None):
        points = frame.geometry if frame.crs is None else frame.geometry.to_crs("EPSG:4326")
        _only_points(path, set(points.geom_type.dropna()))
        others = [name for name in frame if name != geometry and str(name).lower() not in _POSITIONS]
        frame = pd.DataFrame(frame[others]).assign(lat=points.y.to_numpy(), lng=points.x.to_numpy())
    columns = [_column(frame.iloc[:, k]) for k in range(frame.shape[1])]
    return Table(path, pa.Table.from_arrays(columns, [str(name) for name in frame.columns]), tuple(left_out), line)


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
    """GeoJSON, a location history, a list of records, or a record a line."""
    text, document = path.read_bytes(), None
    try:
        document = _parsed(text) if path.suffix.lower() not in _BY_LINE else None
    except ValueError as reason:
        if getattr(reason, "msg", "") != "Extra data":  # a second record, in another line
            raise _broken(path, reason) from None
    if document is None:
        elements, line, left_out = _by_line(path, text)
    else:
        elements, line, left_out = _listed(path, document), None, []
    rows = [_row(path, element) for element in elements]
    kept = np.array([row is not None for row in rows], bool)
    if not kept.all():
        first = int(kept.argmin())
        place = f"{path.name} {f'element {first}' if line is None else f'line {line[first]}'}"
        left_out.append(TableProblem(_NO_RECORD, int((~kept).sum()), 0, -1, place, "", "a record is an object with names"))
    # as objects: pandas would round large whole numbers where others are missing
    frame = pd.DataFrame([row for row in rows if row is not None], dtype=object)
    if {*_E7[:2]} <= {*frame}:
        lat, lng = (pd.to_numeric(frame[c], errors="coerce") / 1e7 for c in _E7[:2])
        time = frame.reindex(columns=_E7[2:]).astype(object).bfill(axis=1)["timestamp"]
        frame = pd.DataFrame({"file": path.stem, "time": time, "lat": lat, "lng": lng})
    return _of_frame(path, frame, left_out, None if line is None else line[kept])


def _parsed(text: bytes):
    """A JSON document; of the records of a location history only what is needed, which saves most of the memory."""
    try:
        return json.loads(text, object_hook=lambda d: {k: d[k] for k in _E7 if k in d} if _E7[0] in d else d)
    except RecursionError:
        raise ValueError("too deeply nested") from None


def _by_line(path: Path, text: bytes) -> tuple[list, np.ndarray, list[TableProblem]]:
    """The elements of a file with one a line, their lines, and the lines that hold none."""
    elements, failed = {}, {BLANK: [], UNREADABLE: []}
    for k, line in enumerate(text.removeprefix(b"\xef\xbb\xbf").splitlines(), 1):
        try:
            elements[k] = _parsed(line)
        except ValueError:
            failed[UNREADABLE if line.strip() else BLANK].append(k)
    problems = [
        TableProblem(rule, len(numbers), 0, -1, f"{path.name} line {numbers[0]}", "", REMEDIES[rule])
        for rule, numbers in failed.items()
        if numbers
    ]
    return [*elements.values()], np.array([*elements], int), problems


def _listed(path: Path, document) -> list:
    """The records of a JSON document."""
    if isinstance(document, dict):
        crs = document.get("crs")
        name = str((crs.get("properties") or {}).get("name", "")) if isinstance(crs, dict) else ""
        if name and not name.endswith(("CRS84", "4326")):
            raise ValueError(f"{path}: its coordinates are of {name[:60]}: reproject them to degrees of WGS 84 (EPSG:4326)")
        document = document.get("features", document.get("locations"))
    if not isinstance(document, list):
        words = "GeoJSON (features), a location history (locations), a list of records, or a record a line"
        raise ValueError(f"{path}: a JSON document that is none of these: {words}")
    return document


def _row(path: Path, element) -> dict | None:
    """The properties and the position of a feature, or an object itself; None for anything else."""
    if not isinstance(element, dict) or element.get("type") != "Feature":
        return element if isinstance(element, dict) else None
    geometry, properties = (part if isinstance(part := element.get(of), dict) else {} for of in ("geometry", "properties"))
    _only_points(path, {str(geometry.get("type", "Point"))})
    at = geometry.get("coordinates")
    lng, lat = at[:2] if isinstance(at, list) and len(at) >= 2 else (None, None)
    return {name: value for name, value in properties.items() if name.lower() not in _POSITIONS} | {"lat": lat, "lng": lng}


def _gpx(path: Path) -> Table:
    rows, others = [], 0
    for element in _elements(path, "trk", "wpt", "rtept"):
        name, points = (element.findtext("{*}name") or "").strip() or path.stem, element.findall(".//{*}trkpt")
        rows += [(name, point.findtext("{*}time"), point.get("lat"), point.get("lon")) for point in points]
        others += not element.tag.endswith("trk")
    return _of_tracks(path, rows, others, "waypoint or point of a route")


def _kml(path: Path) -> Table:
    rows, others = [], 0
    for mark in _elements(path, "Placemark"):
        name, before = (mark.findtext("{*}name") or "").strip() or path.stem, len(rows)
        for track in mark.iterfind(".//{*}Track"):
            moments, places = ([part.text for part in track.iterfind(tag)] for tag in ("{*}when", "{*}coord"))
            rows += [(name, t, *_lat_lng((at or "").split())) for t, at in zip_longest(moments, places)]
        for point in mark.iterfind("{*}Point"):
            at = (point.findtext("{*}coordinates") or "").split(",")
            rows.append((path.stem, mark.findtext("{*}TimeStamp/{*}when"), *_lat_lng(at)))
        others += len(rows) == before
    return _of_tracks(path, rows, others, "place that is no point and no track with times")


def _lat_lng(at: list[str]) -> tuple[str | None, str | None]:
    return (at[1], at[0]) if len(at) >= 2 else (None, None)


def _elements(path: Path, *names: str) -> Iterator[ElementTree.Element]:
    """The elements of an XML document with these names, one at a time."""
    try:
        for _, element in ElementTree.iterparse(path):
            if element.tag.rpartition("}")[2] in names:
                yield element
                element.clear()
    except (ElementTree.ParseError, LookupError, ValueError) as reason:
        raise _broken(path, reason) from None


def _of_tracks(path: Path, rows: list[tuple], others: int, rule: str) -> Table:
    frame = pd.DataFrame(rows, columns=["track", "time", "lat", "lng"], dtype=object).assign(file=path.stem)
    left_out = [TableProblem(rule, others, 0, -1, path.name, "", "it is left out: it is no record of a track")]
    return _of_frame(path, frame, left_out[: others and 1])


def _layer(path: Path) -> Table:
    """The only layer of a GeoPackage."""
    import geopandas  # takes a second to import
    from shapely.errors import ShapelyError

    try:
        with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # GDAL's, of a file that it then refuses
            layers = geopandas.list_layers(path)["name"].tolist()
            frame = geopandas.read_file(path) if len(layers) == 1 else None
    except (RuntimeError, ValueError, OSError, ShapelyError) as reason:  # GDAL's errors are RuntimeErrors
        raise _broken(path, reason) from None
    if frame is None:
        raise ValueError(f"{path}: {len(layers)} layers ({', '.join(layers[:5])}): write the one with the records to a file")
    return _of_frame(path, frame)


def _geoparquet(path: Path) -> Table | None:
    """A GeoParquet file without columns of positions; None for any other, which is read from the disk."""
    try:
        schema = pq.read_schema(path)
        if b"geo" not in (schema.metadata or {}) or {"lat", "lng"} <= {*schema.names}:
            return None
        import geopandas

        return _of_frame(path, geopandas.read_parquet(path))
    except (pa.ArrowException, OSError) as reason:
        raise _broken(path, reason) from None


def _arrow(path: Path) -> Table:
    try:
        with path.open("rb") as file:
            stream = not file.read(6).startswith((b"ARROW1", b"FEA1"))
        return Table(path, pa.ipc.open_stream(path).read_all() if stream else pa.feather.read_table(path, memory_map=False))
    except (pa.ArrowException, OSError) as reason:
        raise _broken(path, reason) from None


def _broken(path: Path, reason: Exception) -> ValueError:
    first = "".join(c for c in str(reason).split("\n")[0].split(". ")[0][:100] if c.isprintable())
    kind = {".parquet": "Parquet", ".feather": "Feather", ".gpkg": "GeoPackage"}.get(path.suffix, path.suffix[1:].upper())
    return ValueError(f"{path}: not a whole {kind} file ({first or type(reason).__name__}); was it cut while copying?")


_BY_LINE = (".jsonl", ".ndjson", ".geojsonl")
READERS: dict[str, Callable[[Path], Table | None]] = {
    **dict.fromkeys((".json", ".geojson", *_BY_LINE), _json),
    ".gpx": _gpx,
    ".kml": _kml,
    ".gpkg": _layer,
    ".parquet": _geoparquet,
    **dict.fromkeys((".feather", ".arrow", ".arrows", ".ipc"), _arrow),
}
"""The ending of a name -> its reader, which gives None for a file that is read from the disk."""
