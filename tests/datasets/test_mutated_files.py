"""Files of every format with bytes dropped, inserted and replaced: each line is a header, is read, or counts as left out."""

import gzip
import re
import tempfile
from decimal import Decimal
from pathlib import Path
from unittest import mock

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mobpriv.datasets import (
    BLANK,
    lines,
    read_cabspotting,
    read_calls,
    read_geolife,
    read_mdc,
    read_privamov,
    read_table,
    recognised,
)
from mobpriv.datasets.tables import NO_USER
from mobpriv.icp.files import icps_of_files
from mobpriv.icp.profiles import Window, icps

T = 1_211_033_530
N = 14  # lines of records
CELLS = pd.DataFrame({"cell": ["1", "2"], "lat": [45.0, 46.0], "lng": [6.0, 7.0], "municipality": ["A", "B"]})
WEEK = Window("2008-05-12", "Europe/Paris", 1)
PLT_HEADER = b"Geolife trajectory\r\nWGS 84\r\nAltitude is in Feet\r\nReserved 3\r\n0,2,255,My Track,0,0,2,8421376\r\n0\r\n"


def lines_of(*, form: str, end: str = "\n") -> bytes:
    """Records k = 0, 1, … of two users; each has its own second."""
    return "".join(form.format(k=k, t=T + k, s=10 + k, user="ab"[k % 2], lat=45 + k / 100) + end for k in range(N)).encode()


def of_folder(read, name: str, **others: bytes):
    """Reads a folder with the content in a file of this name, next to others."""

    def reads(folder: Path, content: bytes):
        for file, text in {name: content, **{f"{other}.csv": text for other, text in others.items()}}.items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_bytes(text)
        return read(folder)

    return reads


def table(name: str, **reading):
    def read(folder: Path, content: bytes):
        (folder / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
        return read_table(folder / name, **reading)

    return read


CSV = "{user},{t},{lat},6.5"
HEAD, OWNERS, FIXES = b"user,t,lat,lng\n", lines_of(form="{k}\t{user}"), lines_of(form="{k}\t{t}\t6.5\t{lat}\t400\t1")
PLT = lines_of(form="{lat},6.3,0,100,39744.1,2008-05-17,14:12:{s}", end="\r\n")
FORMATS = {  # how it is read, header lines, content
    "cabspotting": (of_folder(read_cabspotting, "new_a.txt"), 0, lines_of(form="{lat} -122.4 0 {t}")),
    "geolife": (of_folder(read_geolife, "000/Trajectory/20080517000000.plt"), 6, PLT_HEADER + PLT),
    "mdc": (of_folder(read_mdc, "gps.csv", records=OWNERS), 0, FIXES),
    "privamov": (of_folder(read_privamov, "privamov-gps"), 0, lines_of(form="{user}\t2008-05-17 14:12:{s}.5\t6.5\t{lat}")),
    "csv": (table("t.csv"), 1, HEAD + lines_of(form=CSV)),
    "csv, CR LF": (table("t.csv"), 1, b"user,t,lat,lng\r\n" + lines_of(form=CSV, end="\r\n")),
    "csv, quoted": (table("t.csv"), 1, b'"user","t","lat","lng"\n' + lines_of(form='"{user}","{t}","{lat}","6.5"')),
    "csv, times as text": (table("t.csv", zone="UTC"), 1, HEAD + lines_of(form="{user},2008-05-17T14:12:{s},{lat},6.5")),
    "csv, times with offsets": (table("t.csv"), 1, HEAD + lines_of(form="{user},2008-05-17 14:12:{s}+02:00,{lat},6.5")),
    "csv, no names": (table("t.csv", names=["user", "t", "lat", "lng"]), 0, lines_of(form=CSV)),
    "tsv": (table("t.tsv"), 1, HEAD.replace(b",", b"\t") + lines_of(form="{user}\t{t}\t{lat}\t6.5")),
    "gz": (table("t.csv.gz"), 1, HEAD + lines_of(form=CSV)),
}
FIRST_RECORD = re.compile(rb"-?\d+\.\d+,-?\d+\.\d+,")
PIECES = [
    b'"', b'""', b"\n", b"\r", b"\r\n", b"\0", b"\xff", b"\xe9", "\u2028".encode(), "\u00a0".encode(), b"\xef\xbb\xbf", b",,,", b"\t\t\t",
    b"   ", b"\n\n", b"\n,,,\n", b",", b";", b"\t", b" ", b"x", b"-", b"+", b".", b"e", b"1e400", b"nan", b"inf", b"9" * 25, b"+02:00", b"Z",
    "\u0662".encode(), b"\x85", b"\x0b", b"\x1a", b"0x1", b"true", b"-90", b"'", b"\\",
]  # fmt: skip


def changes_of(pieces, first=0.0, **size):
    hows = st.sampled_from(["drop", "insert", "replace", "cut"])
    return st.lists(st.tuples(hows, st.floats(first, 1), st.sampled_from(pieces), st.integers(1, 4)), max_size=3, **size)


CHANGES = changes_of(PIECES, min_size=1)


def changed(content: bytes, changes) -> bytes:
    for how, share, piece, n in changes:
        at = round(share * len(content))
        before, behind = content[:at], content[at:]
        content = {
            "drop": before + behind[n:],
            "insert": before + piece + behind,
            "replace": before + piece + behind[len(piece) :],
            "cut": content if share < 0.6 else before,
        }[how]
    return content


def split(content: bytes) -> list[bytes]:
    lines = content.split(b"\n")
    return lines[:-1] if lines[-1] == b"" else lines


def outcome(read, content: bytes):
    """What was read, what was left out, and the one line of a refusal, if it was one."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            return *read(Path(folder), content), ""
        except ValueError as error:
            refusal = str(error)
    assert refusal
    assert "\n" not in refusal
    return None, None, refusal


@pytest.mark.parametrize("name", FORMATS)
@given(changes=CHANGES)
@example(changes=[("insert", 0.46875, b"e", 1)])  # an infinite time among numbers
def test_every_line_is_read_or_counted(name, changes):
    read, header, original = FORMATS[name]
    content = changed(original, changes)
    lines, records = split(content), split(original)[header:]
    if name == "geolife":  # a change that joins header lines moves the first record up among the six
        header = next((k for k, line in enumerate(lines[:6]) if FIRST_RECORD.match(line)), 6)
    intact = [line for line in lines[header:] if line in records]
    touched = header == 1 and lines[:1] != split(original)[:1]
    traces, left_out, refusal = outcome(read, content)
    if refusal:
        # one bad line refuses no file: only names that cannot be read, or a rest without records
        assert touched or len(intact) < N / 2
        return
    of_this_file = left_out[~left_out["place"].str.startswith("records.csv")]
    assert len(traces) + of_this_file["records"].sum() == max(len(lines) - header, 0)
    for user in traces["user"].cat.categories:
        assert not set(user) & set("\n\r\0")
    if not touched:  # a faulty line takes no other with it
        assert len(traces) >= len(set(intact))


@given(changes=CHANGES)
def test_every_line_of_the_table_of_owners_is_read_or_counted(changes):
    content = changed(OWNERS, changes)
    traces, left_out, refusal = outcome(of_folder(read_mdc, "records.csv", gps=FIXES), content)
    if refusal:
        assert len(set(split(content)) & set(split(OWNERS))) < N / 2
        return
    assert len(traces) + left_out.loc[left_out["rule"].isin(["user missing", NO_USER]), "records"].sum() == N


@given(changes=CHANGES)
def test_a_damaged_archive_is_refused_in_one_line_or_read(changes):
    packed = of_folder(lambda folder: read_table(folder / "t.csv.gz"), "t.csv.gz")
    traces, left_out, refusal = outcome(packed, changed(gzip.compress(FORMATS["csv"][2]), changes))
    assert refusal or len(traces) + left_out["records"].sum() == N


def by_table(path: Path, zone: str = ""):
    """Profiles of a file of calls, and how many records it holds."""
    arguments = recognised(path, zone=zone, kind="calls").arguments
    if not {"end_cell", "duration"} <= arguments["columns"].keys():
        raise ValueError("in a table these columns would be empty; a file must have them")
    calls, cells, left_out = read_calls(path, CELLS, **arguments)
    records = left_out["records"][left_out["rule"] != BLANK].sum() + len(calls)
    return icps(calls, cells, WEEK, every_slot=True, both_cells=True).profiles, records


def by_file(path: Path, zone: str = ""):
    result = icps_of_files(path, WEEK, CELLS, zone=zone, every_slot=True, both_cells=True, threads=1)
    return result.profiles, result.read


CALL_PIECES = [
    *(b"24:00", b"T08Z", b"20080517T0810Z", b"-inf", b"1.0", b" 1", b"zz", b"2.5E+08", b"NA", b'"a\nb"', b"x" * 2_000_000)
]


@pytest.mark.parametrize(
    "form", ["{user},{t},{cell},1,60", "{user},2008-05-17T{h}:12:00Z,{cell},2,7200", '"{user}",{t},"{cell}",1,60']
)
@given(changes=changes_of(PIECES + CALL_PIECES, 0.1), block=st.integers(1, 400))
@example([("cut", 0.625, b"", 1), ("drop", 0.125, b"", 1)], 1)  # no duration
def test_calls_give_the_same_profiles_by_table_and_by_file(form, changes, block):
    records = [form.format(t=T + 3600 * k, h=10 + k % 9, user="ab"[k % 2], cell=1 + k % 3 // 2) + "\n" for k in range(N)]
    content = changed("".join(["user,t,cell,end_cell,duration\n", *records]).encode(), changes)
    with tempfile.TemporaryDirectory() as folder, mock.patch.object(lines, "BLOCK_BYTES", block):
        path = Path(folder) / "calls.csv"
        path.write_bytes(content)
        results = both_ways(path)
    same_or_refused(results)


def both_ways(path: Path, **reading) -> list[tuple]:
    """Profiles and how many records were read, by table and by file; () and why where it was refused."""
    results = []
    for way in (by_table, by_file):
        try:
            results.append(way(path, **reading))
        except ValueError as refusal:
            results.append(((), str(refusal)))
    return results


def same_or_refused(results: list[tuple]) -> None:
    (one, read), (other, counted) = results
    if isinstance(read, str):  # a table without a record is refused
        assert len(other) == 0, read
        return
    pd.testing.assert_frame_equal(one, other)
    assert read == counted


ODD_TEXTS = ["a", "a\u00a0", "", "NA", "1.7E+09", "\u3000b", "-7", "1e3", "9" * 20]
ODD_FLOATS = [0.5, 1e20, -1e300, float("nan"), float("inf"), 123456789012345.0]
NAMES_HELD = {  # type -> names of the two cells, other names
    pa.string(): (["1", "2", " 1", "2.0", "\u00a01"], ODD_TEXTS),
    pa.large_string(): (["1", "2\t"], ODD_TEXTS),
    pa.dictionary(pa.int32(), pa.string()): (["1", "2\u2003"], ODD_TEXTS),
    pa.binary(): ([b"1", b"2"], [text.encode() for text in ODD_TEXTS]),
    pa.int32(): ([1, 2], [-7, 0, 2**31 - 1]),
    pa.uint64(): ([1, 2], [7, 2**64 - 1]),
    pa.float64(): ([1.0, 2.0], ODD_FLOATS),
    pa.float32(): ([1.0, 2.0], [0.1, 1e20]),
    pa.decimal128(12, 2): ([Decimal("1.00"), Decimal("2")], [Decimal("0.25"), Decimal("-7")]),
}
SECONDS = [T, T + 3600, T + 86_400]
MOMENTS = [pd.Timestamp(t, unit="s") for t in SECONDS]
BEGINS = pd.Timestamp("2008-05-12")
LAST = BEGINS - pd.Timedelta(1, "us")  # before the week
EDGES = [BEGINS + pd.Timedelta(of, "us") for of in (-7.2e9 - 1, -7.2e9, -1, 0, 1, 999)] + [BEGINS.replace(year=1969)]
TIMES_HELD = {  # type -> moments of the week, others
    pa.int64(): (SECONDS, [0, -1, 2**62]),
    pa.uint32(): (SECONDS, [0, 2**32 - 1]),
    pa.float64(): ([float(t) for t in SECONDS], [T + 0.4995, T - 1e-4, *ODD_FLOATS]),
    pa.decimal128(14, 3): ([Decimal(t) for t in SECONDS], [Decimal("1210543199.999")]),
    pa.string(): ([t.isoformat() + "Z" for t in MOMENTS], ["", "x", "20080517T0810Z", "2008-05-17T08:00"]),
    pa.timestamp("us", "UTC"): (MOMENTS, EDGES),
    pa.timestamp("ns", "Europe/Paris"): (MOMENTS, [BEGINS - pd.Timedelta(7.2e12 + 1, "ns"), *EDGES]),
    pa.timestamp("us"): (MOMENTS, EDGES),
    pa.timestamp("ns"): (MOMENTS, [BEGINS - pd.Timedelta(1, "ns"), *EDGES]),
    pa.timestamp("s"): (MOMENTS, [BEGINS, BEGINS.replace(year=1969)]),
    pa.date32(): ([t.date() for t in MOMENTS], [BEGINS.date(), BEGINS.replace(year=1969).date()]),
}
DURATIONS_HELD = {
    pa.int64(): ([60, 7200], [-10, 0, 10**12]),
    pa.float64(): ([60.0, 7200.5], ODD_FLOATS),
    pa.float32(): ([0.1, 3600.0], [-0.5]),
    pa.string(): (["60", " 7200 "], ["1_000", "", "x", "1e3", "inf", "-3", "0x10", "NA"]),
    pa.decimal128(10, 3): ([Decimal("60.125")], [Decimal("-5")]),
}


@st.composite
def typed_tables(draw):
    """Calls in a Parquet table whose columns are of any type that such a file can have: most values as they should be."""
    held = {"user": NAMES_HELD, "t": TIMES_HELD, "cell": NAMES_HELD, "end_cell": NAMES_HELD, "duration": DURATIONS_HELD}
    n, columns = draw(st.integers(2, 8)), {}
    for role, kinds in held.items():
        kind = draw(st.sampled_from(list(kinds)))
        usual, odd = kinds[kind]
        values = st.integers(0, 3).flatmap(lambda i, usual=usual, odd=odd: st.sampled_from(usual if i else [*odd, None]))
        columns[role] = pa.array(draw(st.lists(values, min_size=n, max_size=n)), kind)
    return pa.table(columns)


def one_call(**given):
    return pa.table({"user": ["a"], "t": [T], "cell": ["1"], "end_cell": ["1"], "duration": [60]} | given)


@given(table=typed_tables())
@example(one_call(t=pa.array([LAST], pa.timestamp("us")), duration=[0]))
@example(one_call(duration=[float("nan")]))
@example(one_call(user=[1e20]))
def test_columns_of_any_type_give_the_same_profiles_by_table_and_by_file(table):
    kind = table["t"].type
    reading = {"zone": WEEK.zone} if pa.types.is_date(kind) or (pa.types.is_timestamp(kind) and not kind.tz) else {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "calls.parquet"
        pq.write_table(table, path)
        results = both_ways(path, **reading)
    same_or_refused(results)


@pytest.mark.parametrize("role", ["user", "cell", "end_cell", "duration"])
def test_a_column_of_truth_values_is_refused_by_both(tmp_path, role):
    pq.write_table(one_call(**{role: [True]}), tmp_path / "calls.parquet")
    for way in (by_table, by_file):
        with pytest.raises(ValueError, match=f"column {role} holds bool, which cannot be read as {role}"):
            way(tmp_path / "calls.parquet")
