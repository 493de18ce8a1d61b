"""The estimated duration of a run comes from recorded runs only."""

import json

import pandas as pd
import pytest
from notebook_making import registry

from mobpriv.book import durations


@pytest.fixture
def root(tmp_path):
    registry(tmp_path)

    def keep(folder, notebook, seconds, quick=False, **results):
        provenance = dict.fromkeys(
            ("notebook", "data", "selection", "command", "mobpriv", "commit", "packages", "content_hash"), ""
        )
        path = tmp_path / "book" / folder / f"{notebook}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        record = {"provenance": {**provenance, "seconds": seconds, "parameters": {"quick": quick}}, "results": results}
        path.write_text(json.dumps(record))

    keep("results/cabspotting", "data_card", 9.0, records={"value": 10_000_000})
    keep("results/cabspotting", "nb", 105.0)
    keep("results/cabspotting-program", "nb", 205.0)
    keep("_generated/results/city", "data_card", 9.0, records={"value": 1_000_000})
    keep("_generated/results/city", "nb", 25.0)
    keep("results/cabspotting", "rare", 3.0, quick=True)
    return tmp_path


def test_the_estimate_is_in_proportion_to_the_records(root):
    # 5 s of start; 10, 20 and 20 s for each million of records
    words = durations.expected("nb", {}, durations.Size(2_000_000, False), root)
    assert words.startswith("about 20 s to 40 s on a computer")
    assert "2 min on Cabspotting with 10\u202f000\u202f000 records, 3 min on Cabspotting, as the program" in words  # not 105 s
    assert "20 s on synthetic city with 1\u202f000\u202f000 records" in words
    assert durations.expected("nb", {}, durations.Size(20_000_000, True), root).startswith("about 3 min to 7 min on")


def test_a_small_table_takes_the_time_that_does_not_grow_with_the_records(root):
    for folder, seconds in (("results/cabspotting", 605.0), ("_generated/results/city", 105.0)):
        path = root / "book" / folder / "nb.json"
        record = json.loads(path.read_text())
        path.write_text(json.dumps(record | {"provenance": record["provenance"] | {"seconds": seconds}}))
    (root / "book" / "results" / "cabspotting-program" / "nb.json").unlink()
    # 600 and 100 s after the start with 10 and 1 million records: 44 s, and 56 s for each million
    words = durations.expected("nb", {}, durations.Size(200_000, True), root)
    assert words.startswith("about 17 s to 60 s on")


def test_runs_of_the_same_reading_that_took_more_than_the_start_count(root):
    def told(variant):
        return durations.expected("nb", {"variant": variant}, durations.Size(2_000_000, True), root)

    for name, (variant, seconds) in {"results/cabspotting": ("text", 105.0), "results/cabspotting-program": ("program", 205.0),
                                     "_generated/results/city": ("text", 6.0)}.items():  # fmt: skip
        path = root / "book" / name / "nb.json"
        record = json.loads(path.read_text())
        record["provenance"] |= {"seconds": seconds, "parameters": {"variant": variant}}
        path.write_text(json.dumps(record))
    assert told("text").startswith("about 20 s on a computer like that of the recorded runs (2 min on Cabspotting with")
    assert told("program").startswith("about 40 s on")
    assert "as the program" not in told("text")
    assert "city" not in told("text")  # 6 s are the start


def test_what_cannot_be_said_is_not_said(root):
    for name, size, cause in (
        ("new", durations.Size(5, True), "no full run of the notebook is on record"),
        ("rare", durations.Size(5, True), "no full run of the notebook is on record"),
        ("nb", None, "the number of records is not known"),
    ):
        assert durations.expected(name, {}, size, root) == f"unknown, because {cause}"
    bounded = durations.expected("new", {"minutes": 5.0}, None, root)
    assert bounded.startswith("about 5 min at most")
    assert durations.expected("nb", {"minutes": 5.0}, None, root) == bounded  # runs without a bound say nothing of it
    assert durations.expected("nb", {"quick": True}, None, root).startswith("some seconds to two minutes after the start")


def test_the_records_of_a_file_are_counted_without_reading_it(tmp_path):
    table = pd.DataFrame({"user": ["ab"] * 200_000, "t": 1_600_000_000, "lat": 45.25, "lng": 4.75})
    table.to_parquet(tmp_path / "t.parquet")
    assert str(durations.size(str(tmp_path / "t.parquet"))) == "200\u202f000 records"
    table.to_csv(tmp_path / "t.csv", index=False)
    assert str(durations.size(str(tmp_path / "t.csv"))) == "about 200\u202f000 records"
    table.head(3).to_csv(tmp_path / "short.csv", index=False)
    assert durations.size(str(tmp_path / "short.csv")) == (3, False)
    table.head(3).to_csv(tmp_path / "t.csv.gz", index=False)
    (tmp_path / "cut.parquet").write_bytes((tmp_path / "t.parquet").read_bytes()[:-9])
    for name in ("t.csv.gz", "cut.parquet", ".", "none.csv"):
        assert durations.size(str(tmp_path / name)) is None
    assert durations.size("city").exact


def test_times_as_people_say_them():
    assert [durations.in_time(seconds) for seconds in (4.2, 37, 150, 7200)] == ["4 s", "40 s", "2 min", "2.0 h"]
