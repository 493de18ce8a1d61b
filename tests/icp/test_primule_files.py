"""Individual call profiles out of files, by DuckDB and on a Dask cluster: the same as those of a table; resumed; and bad files."""

import gzip
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from call_making import CELLS, ROME, calls_of
from conftest import refuses

from mobpriv.calls.table import as_cells
from mobpriv.datasets import Unclear, load_calls, read_calls
from mobpriv.datasets.region import write_region
from mobpriv.datasets.times import DOUBTFUL, ZONELESS
from mobpriv.icp import files as icp_files
from mobpriv.icp.cluster import icps_on_cluster
from mobpriv.icp.files import assemble_profiles, icps_of_files, make_job, merge_tables
from mobpriv.icp.profiles import Window, icps

NOVEMBER = Window("2016-10-29", ROME)  # a Saturday; clocks are put back on its second day


def crowd(n=2000, seed=1):
    """Calls by (user, t) at full seconds in and about the window, some at cells that are not known or nowhere."""
    rng = np.random.default_rng(seed)
    start, end = (int(t.timestamp()) for t in NOVEMBER.period)
    t = rng.integers(start - 90_000, end + 90_000, n) * 1000
    cell = rng.choice(["c1", "c2", "c3", "nowhere", "mars"], (2, n), p=[0.4, 0.2, 0.3, 0.05, 0.05])
    user = [f"u{k:02}" for k in rng.integers(0, 40, n)]
    seconds = rng.integers(0, 90_000, n) * (rng.random(n) < 0.2)
    return calls_of(list(zip(user, t.tolist(), *cell.tolist(), seconds.astype(float).tolist(), strict=True)))


CALLS = crowd()
NAMES = ("user", "cell", "end_cell")


def ways(calls):
    """One table as files write it: name -> (table, what must be said)."""
    seconds = calls["t"].astype("int64") // 1000
    local = calls["t"].dt.tz_convert(ROME).dt.tz_localize(None)
    text = calls.astype({"user": str, "cell": str, "end_cell": str})
    return {
        "zoned": (calls, {}),
        "seconds": (text.assign(t=seconds), {}),
        "milliseconds": (text.assign(t=seconds * 1000), {}),
        "fractions": (text.assign(t=seconds.astype(float)), {}),
        "local": (text.assign(t=local), {"zone": ROME}),
        "utc": (text.assign(t=calls["t"].dt.tz_localize(None)), {"zone": "UTC"}),
        "iso": (text.assign(t=calls["t"].dt.strftime("%Y-%m-%dT%H:%M:%SZ")), {}),
        "offset": (text.assign(t=calls["t"].dt.tz_convert(ROME).map(lambda t: t.isoformat())), {}),
        "named": (
            text.assign(t=seconds).rename(columns={"user": "caller id", "cell": "tower", "end_cell": "last"}),
            {"columns": {"end_cell": "last"}},
        ),
        "plain": (text.assign(t=local.dt.strftime("%Y-%m-%d %H:%M:%S")), {"zone": ROME}),
        "nanoseconds": (text.assign(t=calls["t"].dt.as_unit("ns")), {}),
        "blanks": (text.assign(t=seconds, **{c: text[c].where(seconds % 3 > 0, " " + text[c] + "\t") for c in NAMES}), {}),
    }


WAYS = list(ways(CALLS[:0]))
SECONDS = ways(CALLS)["seconds"][0]


def written(table, path):
    if path.suffix == ".parquet":
        table.to_parquet(path, index=False, row_group_size=700)
    else:
        table.to_csv(path, index=False, sep="\t" if ".tsv" in path.name else ",")
    CELLS.to_csv(path.with_name(path.name.split(".")[0] + "_cells.csv"), index=False)
    return path


@pytest.fixture
def parquet(tmp_path):
    return written(SECONDS, tmp_path / "calls.parquet")


def same(one, other):
    pd.testing.assert_frame_equal(one.profiles, other.profiles)
    pd.testing.assert_frame_equal(one.left_out, other.left_out, check_dtype=False)


@pytest.mark.parametrize(
    ("way", "ending"),
    [*((way, ".parquet") for way in WAYS), *((way, ".csv") for way in WAYS[3:]), ("seconds", ".tsv"), ("iso", ".csv.gz")],
)
def test_files_give_the_profiles_of_the_table(tmp_path, way, ending):
    table, options = ways(CALLS)[way]
    path = written(table, tmp_path / f"calls{ending}")
    extraction, calls = icps_of_files(path, NOVEMBER, **options), CALLS
    assert extraction.read == len(CALLS)
    if options.get("zone") == ROME:  # what the clocks show twice is not known
        shown = CALLS["t"].dt.tz_convert(ROME).dt.tz_localize(None)
        twice = shown.between("2016-10-30T02:00", "2016-10-30T03:00", inclusive="left").to_numpy()
        calls = CALLS[~twice].reset_index(drop=True)
        rule = extraction.left_out["rule"] == DOUBTFUL
        assert extraction.left_out["records"][rule].item() == twice.sum() > 0
        extraction = extraction._replace(left_out=extraction.left_out[~rule].reset_index(drop=True))
    same(extraction, icps(calls, CELLS, NOVEMBER))


@pytest.mark.parametrize("ending", [".parquet", ".csv"])
@pytest.mark.parametrize(("every_slot", "both_cells"), [(True, False), (False, True), (True, True)])
def test_what_a_call_counts_for(tmp_path, ending, every_slot, both_cells):
    path = written(SECONDS, tmp_path / f"calls{ending}")
    options = {"every_slot": every_slot, "both_cells": both_cells}
    expected = icps(CALLS, CELLS, NOVEMBER, **options)
    same(icps_of_files(path, NOVEMBER, **options, chunk=700), expected)
    assert not expected.profiles["key"].equals(icps(CALLS, CELLS, NOVEMBER).profiles["key"])


def test_chunks_threads_and_order_do_not_matter(tmp_path):
    expected = icps(CALLS, CELLS, NOVEMBER)
    path = written(SECONDS.sample(frac=1, random_state=2), tmp_path / "calls.parquet")
    for chunk, threads in ((699, 1), (699, 2), (2000, 2)):
        same(icps_of_files(path, NOVEMBER, chunk=chunk, threads=threads), expected)
    few = written(SECONDS[:5], tmp_path / "few.parquet")
    same(icps_of_files(few, NOVEMBER, CELLS, chunk=1), icps(CALLS[:5], CELLS, NOVEMBER))
    parts = [written(SECONDS[k::3], tmp_path / f"part {k} [ab]*.{kind}") for k, kind in enumerate(("parquet", "csv", "csv.gz"))]
    same(icps_of_files(parts, NOVEMBER, as_cells(CELLS)), expected)


def test_the_region(tmp_path):
    write_region(tmp_path, 200, 6, 20, level=1)
    region = load_calls(tmp_path / "region.parquet")
    window = Window("2024-10-07", "Europe/Lisbon")
    extraction = icps_of_files(tmp_path / "region.parquet", window, chunk=5000)
    same(extraction, icps(region.calls, region.cells, window))
    assert len(extraction.profiles) > 300
    short = Window("2024-10-09", "Europe/Lisbon", 3, (0, 6, 12))
    same(icps_of_files(tmp_path / "region.parquet", short), icps(region.calls, region.cells, short))


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
@pytest.mark.parametrize(("first", "shown"), [("2016-10-24", "2016-10-30T02:30"), ("2017-03-20", "2017-03-26T02:30")])
def test_an_hour_that_is_twice_or_never_is_left_out(tmp_path, ending, first, shown):
    table = pd.DataFrame({"user": ["a", "b"], "t": pd.to_datetime([shown, f"{first}T12:00"]), "cell": ["c1", "c1"]})
    path = written(table, tmp_path / f"calls{ending}")
    extraction = icps_of_files(path, Window(first, ROME, 1), CELLS, zone=ROME)
    assert (extraction.profiles["user"].tolist(), extraction.left_out.values.tolist()) == (["b"], [[DOUBTFUL, 1, 1]])


@pytest.mark.parametrize(
    "text",
    [
        "user,t,cell\r\na,2016-11-01T10:00Z,c1\r\nb,2016-11-01T10:00Z,c3\r\n",
        "user;t;cell\na;2016-11-01T10:00Z;c1\nb;2016-11-01T10:00Z;c3",
        'user,t,cell\n"a",2016-11-01T10:00Z,"c1"\n\n"b",2016-11-01 10:00:00 UTC,c3\n\n',
        "\ufeffuser,t,cell\na,2016-11-01T11:00:00+0100,c1\nb,2016-11-01 11:00:00.5+01,c3\n",
        "id,cell,end_cell,start time\na,c1,,2016-11-01T10:00Z\nb,c3,,2016-11-01T10:00Z\n",
    ],
)
def test_ways_to_write_a_text(tmp_path, text):
    path = tmp_path / "calls.csv"
    path.write_text(text, newline="")
    extraction = icps_of_files(path, Window("2016-10-31", ROME), CELLS)
    assert extraction.profiles.values.tolist() == [["b", "Lucca", 1 << 3], ["a", "Pisa", 1 << 3]]
    assert len(extraction.left_out) == 0


BAD = """user,t,cell,end_cell,duration
a,2016-11-01T10:00Z,c1,c3,60
,2016-11-01T10:00Z,c1,c1,60
null,2016-11-01T10:00Z,c1,c1,60
b,,c1,c1,60
b,soon,c1,c1,60
b,2016-11-01T10:00,c1,c1,60
b,2016-10-01T10:00Z,c1,c1,60
b,2017-10-01T10:00Z,c1,c1,60
b,2016-11-01T10:00Z,NA,c1,60
b,2016-11-01T10:00Z,mars,c1,60
b,2016-11-01T10:00Z,nowhere,c1,60
b,2016-11-01T10:00Z,c1,c1,long
c,2016-11-01T10:00Z,c1,c1,inf
c,2016-11-01T10:00Z,c1,c1,-5
c,2016-11-01T10:00Z,c1,c1,60,and more
c,2016-11-01T10
"""
LEFT_OUT = [
    ("line not readable", 3, 0),
    ("user missing", 2, 0),
    ("time missing", 1, 1),
    ("time not readable", 1, 1),
    (ZONELESS, 1, 1),
    ("before the window", 1, 1),
    ("after the window", 1, 1),
    ("cell missing", 1, 1),
    ("cell unknown", 1, 1),
    ("cell without a municipality", 1, 1),
    ("duration not a number", 1, 1),
    ("duration negative", 1, 1),
]


def test_bad_records_are_left_out_and_told(tmp_path):
    path = tmp_path / "calls.csv"
    path.write_text(BAD)
    for options in ({}, {"every_slot": True}, {"both_cells": True}, {"folder": tmp_path / "parts"}):
        extraction = icps_of_files(path, NOVEMBER, CELLS, **options)
        assert list(extraction.left_out.itertuples(index=False, name=None)) == LEFT_OUT
        assert set(extraction.profiles["user"]) == {"a"}
        assert extraction.read == sum(records for _, records, _ in LEFT_OUT) + 1 == BAD.count("\n") - 1


def test_bad_numbers_of_a_parquet_file(tmp_path):
    path = tmp_path / "calls.parquet"
    ten = 1_477_994_400  # 2016-11-01T10:00Z
    t = [float(ten), np.nan, np.inf, -np.inf, 1e300, ten + 0.4, ten]
    pd.DataFrame({"user": [7.0, 7, 7, 7, 7, np.nan, 7], "t": t, "cell": ["c1"] * 7}).to_parquet(path)
    extraction = icps_of_files(path, NOVEMBER, CELLS, time="s")
    assert extraction.profiles["user"].tolist() == ["7"]
    assert list(extraction.left_out.itertuples(index=False, name=None)) == [
        ("user missing", 1, 0),
        ("time missing", 1, 1),  # pandas writes nan so
        ("time not readable", 3, 1),
    ]
    far = pd.DataFrame({"user": ["a"] * 5, "t": [ten, ten, ten, 2**62, -(2**62)], "cell": ["c1"] * 5})
    far.to_parquet(path)
    assert icps_of_files(path, NOVEMBER, CELLS, time="s").left_out["rule"].tolist() == ["time not readable"]
    called = pd.DataFrame({"user": ["a", "nan", ""], "t": [ten] * 3, "cell": ["c1", "c1", "mars"]})
    called.assign(end_cell="nowhere", duration=1.0).to_parquet(path)
    for options in ({}, {"both_cells": True}):
        left_out = icps_of_files(path, NOVEMBER, CELLS, **options).left_out
        assert left_out.values.tolist()[0] == ["user missing", 2, 0]
        assert len(left_out) == 1 + len(options)
    none = far[:0].astype({"t": "int64"})
    none.to_parquet(path)
    empty = icps_of_files(path, NOVEMBER, CELLS, time="s")
    assert (len(empty.profiles), len(empty.left_out)) == (0, 0)


@pytest.mark.parametrize("ending", [".parquet", ".csv"])
@pytest.mark.parametrize("options", [{}, {"every_slot": True, "both_cells": True}], ids=str)
def test_names_and_durations_that_are_none_are_none_in_memory_too(tmp_path, ending, options):
    """What read_calls leaves out of a file, icps_of_files leaves out; a cell called NA is none, though the table of cells has it."""
    users = ["a", "", "NA", "None", "nan", "b", "c", "d", "e"]
    table = pd.DataFrame({"user": users, "t": "2016-11-01T10:00Z", "cell": "c1", "end_cell": "c1", "duration": 60.0})
    table.loc[5, "duration"], table.loc[6, "cell"], table.loc[7, "cell"] = -5.0, "NA", ""
    path, cells = tmp_path / f"calls{ending}", pd.concat([CELLS, CELLS[:1].assign(cell="NA")])
    table.to_parquet(path) if ending == ".parquet" else table.to_csv(path, index=False)
    calls, known, _ = read_calls(path, cells)
    extraction = icps_of_files(path, NOVEMBER, cells, **options)
    pd.testing.assert_frame_equal(extraction.profiles, icps(calls, known, NOVEMBER, **options).profiles)
    assert extraction.profiles["user"].tolist() == ["a", "e"]
    assert extraction.left_out.values.tolist() == [["user missing", 4, 0], ["cell missing", 2, 2], ["duration negative", 1, 1]]


class TestResume:
    def counted(self, monkeypatch, stop=99):
        done, original = [], icp_files.aggregate

        def aggregate(job, chunk, *more):
            if len(done) == stop:
                raise KeyboardInterrupt
            done.append(chunk)
            return original(job, chunk, *more)

        monkeypatch.setattr(icp_files, "aggregate", aggregate)
        return done

    def test_what_is_done_is_not_done_again(self, tmp_path, parquet, monkeypatch):
        folder = tmp_path / "parts"
        expected = icps(CALLS, CELLS, NOVEMBER)
        self.counted(monkeypatch, stop=2)
        with pytest.raises(KeyboardInterrupt):
            icps_of_files(parquet, NOVEMBER, chunk=700, folder=folder)
        monkeypatch.undo()
        done = self.counted(monkeypatch)
        same(icps_of_files(parquet, NOVEMBER, chunk=700, folder=folder), expected)
        assert [chunk.first for chunk in done] == [1400]
        same(icps_of_files(parquet, NOVEMBER, chunk=700, folder=folder), expected)
        assert len(done) == 1
        # a part that was cut is made anew
        part = sorted(folder.glob("*.parquet"))[0]
        part.write_bytes(part.read_bytes()[:-20])
        same(icps_of_files(parquet, NOVEMBER, chunk=700, folder=folder), expected)
        assert len(done) == 2

    def test_other_questions_get_other_answers(self, tmp_path, parquet, monkeypatch):
        folder = tmp_path / "parts"
        done = self.counted(monkeypatch)
        icps_of_files(parquet, NOVEMBER, folder=folder)
        other_cells = CELLS.assign(municipality=["Pisa", "Lucca", "Lucca", None])
        questions = [
            (NOVEMBER, CELLS, {"every_slot": True}),
            (Window("2016-10-30", ROME), CELLS, {}),
            (Window("2016-10-29", ROME, slots=(0, 7, 19)), CELLS, {}),
            (NOVEMBER, other_cells, {}),
        ]
        for window, cells, more in questions:
            same(icps_of_files(parquet, window, cells, folder=folder, **more), icps(CALLS, cells, window, **more))
        assert len(done) == 5
        written(ways(CALLS[:1500])["seconds"][0], parquet)
        os.utime(parquet, ns=(1, 1))
        same(icps_of_files(parquet, NOVEMBER, folder=folder), icps(CALLS[:1500], CELLS, NOVEMBER))
        assert len(done) == 6

    def test_no_file_is_left_behind_without_a_folder(self, tmp_path, parquet, monkeypatch):
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        before = sorted(tmp_path.iterdir())
        icps_of_files(parquet, NOVEMBER, chunk=500)
        icps_of_files(parquet, NOVEMBER)
        assert sorted(tmp_path.iterdir()) == before


def with_a_hole(path):
    """A Parquet file whose last users cannot be read, behind the rows that tell how it is written."""
    written(pd.concat([SECONDS] * 6), path)
    column = pq.read_metadata(path).row_group(17).column(0)
    start, end = column.dictionary_page_offset, column.dictionary_page_offset + column.total_compressed_size
    text = path.read_bytes()
    path.write_bytes(text[:start] + b"\xff" * (end - start) + text[end:])
    return path


class TestFilesThatAreNotWhole:
    def refused(self, *given, **more):
        with pytest.raises(ValueError) as refused:  # noqa: PT011
            icps_of_files(*given, NOVEMBER, CELLS, **more)
        assert "\n" not in str(refused.value)
        return str(refused.value)

    def test_a_parquet_file_without_its_end(self, parquet):
        parquet.write_bytes(parquet.read_bytes()[:-100])
        assert "not a whole Parquet file" in self.refused(parquet)

    def test_a_parquet_file_with_a_hole(self, tmp_path):
        assert "cannot be read to its end" in self.refused(with_a_hole(tmp_path / "calls.parquet"), chunk=5000)

    def test_a_gzipped_text_that_was_cut(self, tmp_path):
        path = written(SECONDS, tmp_path / "calls.csv.gz")
        path.write_bytes(path.read_bytes()[:-5000])
        with gzip.open(path) as file, pytest.raises(EOFError):
            file.read()
        assert "cut while copying" in self.refused(path)

    def test_a_text_that_was_cut(self, tmp_path):
        path = written(SECONDS, tmp_path / "calls.csv")
        text = path.read_text()
        path.write_text(text[: text.rindex(",c")])  # in the last line: user and time are there
        extraction = icps_of_files(path, NOVEMBER, CELLS)
        assert extraction.left_out.iloc[0].tolist() == ["file cut in its last line", 1, 0]

    def test_columns_and_options(self, tmp_path):
        text = ways(CALLS)["plain"][0]
        path = written(text, tmp_path / "calls.csv")
        assert "no time zone" in self.refused(path)
        assert "must be of the window's zone, Europe/Rome, or of UTC (got Asia/Tokyo)" in self.refused(path, zone="Asia/Tokyo")
        bare = written(SECONDS[["user", "t", "cell"]], tmp_path / "bare.csv")
        assert "no column duration" in self.refused(bare, every_slot=True)
        with pytest.raises(Unclear, match="no column cell"):
            icps_of_files([written(SECONDS.drop(columns="cell"), tmp_path / "none.csv")], NOVEMBER, CELLS)
        other = written(SECONDS.rename(columns={"cell": "tower"}), tmp_path / "other.csv")
        assert "other.csv: no column cell" in self.refused([bare, other])
        assert "files must name one file or more" in self.refused([])
        assert "memory must be positive, in GB, at least 0.1 (got 0)" in self.refused(bare, memory=0)
        assert "threads must be" in self.refused(bare, threads=-1)
        assert "chunk must be" in self.refused(bare, chunk=0)
        assert "every_slot must be True or False" in self.refused(bare, every_slot=1)
        with pytest.raises(FileNotFoundError, match="a file is needed here"):
            icps_of_files(tmp_path / "nothing.csv", NOVEMBER)
        refuses("window must be a Window", icps_of_files, bare, "2016-11-01")


FULL = """
import resource, sys
from mobpriv.icp.files import icps_of_files
from mobpriv.icp.profiles import Window
resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))
try:
    icps_of_files(sys.argv[1], Window("2016-10-29", "Europe/Rome"), chunk=700, folder=sys.argv[2])
except OSError as error:
    print(error)
"""


def test_nothing_to_put_together(tmp_path):
    CALLS.to_parquet(tmp_path / "calls.parquet")
    job, _ = make_job(tmp_path / "calls.parquet", NOVEMBER, CELLS, None, "", "", False, False)
    for call in (lambda: merge_tables([]), lambda: assemble_profiles([], job)):
        refuses(r"one partial table of profiles or more to put together \(got none\)", call)


@pytest.mark.skipif(sys.platform == "win32", reason="no such limit")
def test_a_full_disk(tmp_path, parquet):
    """Here a file may have 300 bytes: as on a full disk, the system refuses to write more."""
    folder = tmp_path / "parts"
    message = subprocess.run([sys.executable, "-c", FULL, parquet, folder], capture_output=True, text=True, check=True).stdout
    assert message.startswith(
        f"{folder}: no room is left on this disk for the partial profiles: free some, or name another folder"
    )
    assert message.count("\n") == 1
    # what was not written to its end is not taken for a part
    assert list(folder.glob("*.parquet")) == []
    same(icps_of_files(parquet, NOVEMBER, chunk=700, folder=folder), icps(CALLS, CELLS, NOVEMBER))


def test_too_little_memory_is_told(parquet):
    job, chunks = icp_files.make_job(parquet, NOVEMBER, CELLS, None, "", "", False, False)
    with pytest.raises(MemoryError, match=r"calls.parquet: DuckDB needs more memory than it may take: raise memory") as error:
        icp_files.aggregate(job, chunks[0], memory=0.003)
    assert "\n" not in str(error.value)


class TestCluster:
    @pytest.mark.parametrize("way", ["seconds", "iso"])
    def test_profiles_are_identical(self, tmp_path, cluster, way):
        table = ways(CALLS)[way][0].sample(frac=1, random_state=3)
        parts = [written(table[k::2], tmp_path / f"calls{k}.{kind}") for k, kind in enumerate(("parquet", "csv"))]
        expected = icps(CALLS, CELLS, NOVEMBER)
        same(icps_on_cluster(parts, NOVEMBER, cluster.scheduler_address, CELLS, chunk=400), expected)

    def test_options_pieces_and_errors(self, parquet, cluster):
        from distributed import Client

        with Client(cluster, set_as_default=False) as client:
            options = {"every_slot": True, "both_cells": True}
            extraction = icps_on_cluster(parquet, NOVEMBER, client, CELLS, **options, chunk=700, pieces=5)
            same(extraction, icps(CALLS, CELLS, NOVEMBER, **options))
            for _ in range(3):  # what was scattered before must not be forgotten under a second call
                same(icps_on_cluster(parquet, NOVEMBER, client, CELLS, **options, chunk=700, pieces=5), extraction)
            with pytest.raises(
                ValueError, match=r"cluster must be a distributed\.Client or the address of a scheduler .got int"
            ):
                icps_on_cluster(parquet, NOVEMBER, 3)
            refuses("cannot be read to its end", icps_on_cluster, with_a_hole(parquet), NOVEMBER, client, CELLS)
