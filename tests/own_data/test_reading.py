"""`mobpriv protect` and `mobpriv judge` read tables as `mobpriv validate` does, with the same options and hints that repeat their own command."""

import shlex

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from mobpriv import __version__, datasets
from mobpriv.cli import app

T = 1_709_539_200  # 2024-03-04 08:00 UTC
OTHER = {"user": "who", "t": "when"}


@pytest.fixture
def call(tmp_path, monkeypatch):
    """Runs a command in a folder with a table, and with the same one under other names and with local times."""
    k = np.arange(240)
    table = pd.DataFrame({"user": np.repeat(["a", "b", "c"], 80), "t": T + 1800 * (k % 80)})
    table = table.assign(lat=45 + 0.01 * (k // 80) + 0.002 * (k % 16 > 8), lng=7.0)
    table.to_csv(tmp_path / "plain.csv", index=False)
    local = pd.to_datetime(table["t"], unit="s", utc=True).dt.tz_convert("Europe/Paris").dt.strftime("%Y-%m-%d %H:%M:%S")
    table.assign(t=local).rename(columns=OTHER).to_csv(tmp_path / "other.csv", index=False)
    table.assign(t=table["t"] + 86_400 * 365).to_csv(tmp_path / "later.csv", index=False)
    table.assign(lat=table["lat"].where(k > 0, 95.0)).to_csv(tmp_path / "faulty.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return lambda line: CliRunner().invoke(app, shlex.split(line), env={"COLUMNS": "300"})


@pytest.mark.parametrize(
    "command", ["protect other.csv --with 'geoi(epsilon=0.01)' -o 'my out.csv' --keep-names", "judge plain.csv other.csv"]
)
def test_a_hint_repeats_the_command_with_the_missing_options(call, command):
    first = call(command)
    assert first.exit_code == 2
    assert f"Say which is which with --user, --time-column of mobpriv {command.split()[0]}" in first.output
    second = call(f"{command} --user who --time-column when")
    assert "carry no time zone" in second.output
    repeated = second.output.split("as in: ")[1].strip()
    third = call(repeated.removeprefix("mobpriv ").replace("America/New_York", "Europe/Paris"))
    assert third.exit_code == 0, third.output


def test_options_of_judge_apply_to_the_table_that_needs_them(call):
    options = "--user who --time-column when --zone Europe/Paris"
    for one, other in (("plain.csv", "other.csv"), ("other.csv", "plain.csv")):
        judged = call(f"judge {one} {other} {options} -o n.csv")
        assert judged.exit_code == 0, judged.output
        numbers = pd.read_csv("n.csv").set_index(["mechanism", "quantity"])["value"]
        assert numbers["given table", "distance at the time"] == 0  # an hour less would be another place
    assert call(f"judge plain.csv other.csv {options} --time s").exit_code == 0  # the other's times are recognised
    missing = call("judge plain.csv plain.csv --user nobody")
    assert (missing.exit_code, missing.output) == (2, "mobpriv: no table has the column nobody that --user names\n")


def test_judge_names_records_left_out_and_refuses_other_times(call):
    judged = call("judge plain.csv faulty.csv")
    assert "1 record of faulty.csv is left out:\n  latitude outside [-90, 90]: 1 record" in judged.output
    later = call("judge plain.csv later.csv")
    assert (later.exit_code, later.output.count("\n")) == (2, 1)
    assert (
        "no time in common: the original is from 2024-03-04 08:00 to 2024-03-05 23:30 UTC, the protected one from 2025-03-04"
        in later.output
    )


@pytest.mark.parametrize("content", [b"", b"protected,original\na,b\na,b,c,d\n", b"protected,original\n\xff\xfe,b\n"])
def test_pairs_that_cannot_be_read_are_refused_in_our_words(call, tmp_path, content):
    (tmp_path / "pairs.csv").write_bytes(content)
    judged = call("judge plain.csv plain.csv --pairs pairs.csv")
    assert judged.exit_code == 2
    assert judged.output.startswith(
        "mobpriv: pairs.csv: no table of pairs: write the names protected,original and a pair on each line"
    )


def test_times_are_published_in_their_unit(call):
    table = pd.read_csv("plain.csv")
    for unit, factor in (("ms", 10**3), ("us", 10**6), ("ns", 10**9)):
        table.assign(t=table["t"] * factor).to_csv("u.csv", index=False)
        assert call("protect u.csv --with nothing -o out.csv --keep-names").exit_code == 0
        assert pd.read_csv("out.csv")["t"].tolist() == (table["t"] * factor).tolist(), unit


def test_a_folder_is_not_searched_to_its_depths(call, tmp_path):
    deep = tmp_path / "a/b/c/d/e/Trajectory"
    deep.mkdir(parents=True)
    (deep / "x.plt").touch()
    assert "holds no files of a known format" in call(f"validate {tmp_path}").output
    assert datasets.load(geolife(tmp_path / "g")).traces["user"].tolist() == ["000"]


def geolife(folder):
    place = folder / "Geolife/Data/000/Trajectory"
    place.mkdir(parents=True)
    (place / "a.plt").write_text("39.9,116.3,0,-777,39744.12,2008-10-23,02:53:00\n")
    return folder


def test_the_version_is_printed(call):
    assert call("--version").output == f"mobpriv {__version__}\n"
