"""A table protected in blocks of users: the same as the table protected at once, to the last digit."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from mobpriv import load
from mobpriv.cli import app
from mobpriv.mechanisms import HMC
from mobpriv.own_data import streaming


@pytest.fixture(scope="module")
def records():
    """Twelve users in any order, with a record without a user, a time and a latitude that cannot be, and another column."""
    traces = load("city", max_users=12).traces.iloc[::40]
    table = traces.rename(columns={"lat": "latitude", "lng": "longitude"}).assign(
        user=traces["user"].astype("str"), phone="555"
    )
    table = table.sample(frac=1, random_state=1).reset_index(drop=True)
    table.loc[5, "user"], table.loc[3, "latitude"] = None, 95.0
    return table


def written(records, file, form):
    """The table as a file; of a text, one time in its last block is not readable, and one line is not."""
    if form == "parquet":
        records.to_parquet(file)
    elif form == "turned":  # longitudes from 0 to 360
        records.assign(t=records["t"].dt.strftime("%Y-%m-%dT%H:%M:%SZ"), longitude=records["longitude"] % 360).to_csv(
            file, index=False, sep=";"
        )
    else:
        seconds = (records["t"].dt.as_unit("ms").astype("int64") // 1000).astype("str")
        seconds.iloc[-7] = "soon"
        file.write_text(records.assign(t=seconds).to_csv(index=False) + "broken,1\n")


def protected(file, mechanism, output, *options):
    """The published table, its pairs, its manifest without hashes of the output, and what is printed."""
    pairs = output.with_suffix(".pairs.csv")
    arguments = ["protect", file, "--with", mechanism, "-o", output, "--seed", 3, "--pairs", pairs, *options]
    result = CliRunner().invoke(app, [*map(str, arguments)], env={"COLUMNS": "200"})
    assert result.exit_code == 0, result.output
    table = pd.read_parquet(output) if output.suffix == ".parquet" else pd.read_csv(output)
    manifest = json.loads(output.with_name(f"{output.name}.manifest.json").read_text())
    del manifest["output"]
    return table.assign(user=table["user"].astype("str")), pairs.read_text(), manifest, result.stdout


@pytest.mark.parametrize("form", ["parquet", "csv", "turned"])
@pytest.mark.parametrize(
    ("mechanism", "ending", "options"),
    [
        ("nothing", "parquet", ["--keep-names"]),
        ("geoi", "csv", []),
        ("promesse(alpha=100)", "parquet", []),
        ("trilateration", "csv", ["--keep-names"]),
    ],
)
def test_in_blocks_as_at_once(records, tmp_path, monkeypatch, form, mechanism, ending, options):
    file = tmp_path / ("my.parquet" if form == "parquet" else "my.csv")
    written(records, file, form)
    at_once = protected(file, mechanism, tmp_path / f"once.{ending}", *options)
    monkeypatch.setattr(streaming, "BLOCK", 500)
    monkeypatch.setattr(streaming, "_ROWS", 300)
    monkeypatch.setattr("mobpriv.datasets.lines.BLOCK_BYTES", 1 << 14)
    in_blocks = protected(file, mechanism, tmp_path / f"blocks.{ending}", *options)
    pd.testing.assert_frame_equal(in_blocks[0], at_once[0])
    assert in_blocks[1:3] == at_once[1:3]
    assert (streaming.TURNED in in_blocks[3]) == (streaming.TURNED in at_once[3]) == (form == "turned")
    assert list(tmp_path.glob(".*")) == []


def test_every_record_is_counted_and_has_its_place(records, tmp_path, monkeypatch):
    written(records, tmp_path / "my.csv", "csv")
    monkeypatch.setattr(streaming, "BLOCK", 500)
    _, _, manifest, printed = protected(tmp_path / "my.csv", "nothing", tmp_path / "out.csv")
    left_out = manifest["records"]["left out when read"]
    assert sum(left_out.values()) == 4
    assert manifest["records"]["given"] + sum(left_out.values()) == len(records) + 1
    for place in (
        "my.csv record 6: user nan",
        "my.csv record 4: user",
        "my.csv: 'broken,1'",
        f"record {len(records) - 6}: user",
    ):
        assert place in printed.replace("\u202f", " ")


def test_a_table_without_a_usable_record_is_refused(records, tmp_path, monkeypatch):
    monkeypatch.setattr(streaming, "BLOCK", 500)
    records.assign(user=None).to_parquet(tmp_path / "my.parquet")
    result = CliRunner().invoke(app, ["protect", str(tmp_path / "my.parquet"), "--with", "geoi", "-o", str(tmp_path / "o.csv")])
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1), result.stderr
    assert f"my.parquet: no record can be used. user missing: {len(records):,} records".replace(",", "\u202f") in result.stderr
    assert not (tmp_path / "o.csv").exists()


def test_a_block_without_a_usable_record_is_left_out_and_counted(records, tmp_path, monkeypatch):
    first = records["user"].dropna().astype(str).min()
    records.assign(latitude=records["latitude"].where(records["user"] != first, 95.0)).to_parquet(tmp_path / "my.parquet")
    at_once = protected(tmp_path / "my.parquet", "nothing", tmp_path / "once.csv", "--keep-names")
    monkeypatch.setattr(streaming, "BLOCK", 100)  # a block for each user
    in_blocks = protected(tmp_path / "my.parquet", "nothing", tmp_path / "blocks.csv", "--keep-names")
    pd.testing.assert_frame_equal(in_blocks[0], at_once[0])
    assert in_blocks[2]["records"] == at_once[2]["records"]
    assert first not in set(in_blocks[0].iloc[:, 0].astype(str))


def test_only_mechanisms_that_protect_each_user_alone(records):
    """Each of them publishes the same for a user whoever else is in the table; HMC does not."""
    from mobpriv.traces.table import as_traces

    traces = as_traces(records.dropna().rename(columns={"latitude": "lat", "longitude": "lng"}).query("lat < 90"))
    first = traces["user"].cat.categories[0]
    alone = as_traces(traces[traces["user"] == first].astype({"user": "str"}))
    for kind in streaming.USER_BY_USER:
        published = kind().protect(traces, np.random.default_rng(1))
        of_first = published[published["user"] == first]
        pd.testing.assert_series_equal(of_first["lat"], kind().protect(alone, np.random.default_rng(1))["lat"])
    assert HMC not in streaming.USER_BY_USER


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_mechanism_that_publishes_nothing(records, tmp_path, monkeypatch, ending):
    written(records, tmp_path / "my.parquet", "parquet")
    at_once = protected(tmp_path / "my.parquet", "promesse(alpha=1e9)", tmp_path / f"once.{ending}")
    monkeypatch.setattr(streaming, "BLOCK", 500)
    in_blocks = protected(tmp_path / "my.parquet", "promesse(alpha=1e9)", tmp_path / f"blocks.{ending}")
    assert list(in_blocks[0]) == list(at_once[0])
    assert len(in_blocks[0]) == len(at_once[0]) == 0
    assert in_blocks[1:3] == at_once[1:3]
