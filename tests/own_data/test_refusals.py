"""Whatever is wrong with a table or an option, assess, protect and judge say so in one line, and leave nothing behind."""

import os
import shlex
import sys

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from mobpriv.cli import app

NAMES = "user,t,lat,lng\n"
TABLES = {  # file -> content, words of the refusal
    "missing.csv": (None, "there is no file missing.csv"),
    "empty.csv": ("", "the file is empty"),
    "blank.csv": ("\n\n", "no column user"),
    "one_column.csv": ("user\na\n", "no column t (time), lat (latitude), lng (longitude)"),
    "no_line_of_names.csv": ("a,2020-01-01T00:00:00Z,45.0,4.8\n" * 3, "put a line of names above it"),
    "no_user.csv": ("t,lat,lng\n2020-01-01T00:00:00Z,45,4.8\n", "no column user"),
    "no_time.csv": ("user,lat,lng\na,45,4.8\n", "no column t (time)"),
    "no_latitude.csv": ("user,t,lng\na,2020-01-01T00:00:00Z,4.8\n", "no column lat (latitude)"),
    "twice.csv": ("user,user,t,lat,lng\na,a,2020-01-01T00:00:00Z,45,4.8\n", "2 columns are called user"),
    "two_users.csv": ("user,uid,t,lat,lng\na,a,2020-01-01T00:00:00Z,45,4.8\n", "the user could be column user or uid"),
    "date_and_time.csv": ("user,date,time,lat,lng\na,2020-01-01,10:00,45,4.8\n", "join them to one"),
    "no_zone.csv": (f"{NAMES}a,2020-01-01 00:00:00,45,4.8\n", "times carry no time zone"),
    "no_times.csv": (f"{NAMES}a,yesterday,45,4.8\n", "neither numbers nor ISO 8601"),
    "day_or_month.csv": (f"{NAMES}a,03/04/2020 10:00,45,4.8\n", "which is not guessed"),
    "dates.csv": (f"{NAMES}a,20200101,45,4.8\n", "neither as seconds nor as milli-"),
    "swapped.csv": (f"{NAMES}a,2020-01-01T00:00:00Z,120,45\n", "lat and lng look swapped"),
    "metres.csv": (f"{NAMES}a,2020-01-01T00:00:00Z,5621521,534321\n", "reproject them"),
    "words.csv": (f"{NAMES}a,2020-01-01T00:00:00Z,here,there\n", "lat is no number"),
    "no_position.csv": (f"{NAMES}a,2020-01-01T00:00:00Z,,\n", "latitude or longitude not a number"),
    "no_name.csv": (f"{NAMES},2020-01-01T00:00:00Z,45,4.8\n", "user missing"),
    "old.csv": (f"{NAMES}a,1899-01-01T00:00:00Z,45,4.8\n", "time before 1980"),
    "future.csv": (f"{NAMES}a,2200-01-01T00:00:00Z,45,4.8\n", "time after 2099"),
    "ragged.csv": (f"{NAMES}a,2020\n", "most lines have 2 values"),
    "decimal_commas.csv": (f"{NAMES}a,2020-01-01T00:00:00Z,45,0,4,8\n", "expected 4 values, found 6"),
    "numbers.csv": (b"\0\1\2\xff" * 50, "is no text"),
    "utf16.csv": ("user,t\n".encode("utf-16"), "save it as UTF-8"),
    "cut.parquet": (b"PAR1nothing", "was it cut while copying?"),
    "cut.geojson": ("{", "was it cut while copying?"),
    "cut.gpx": ("<gpx>", "was it cut while copying?"),
    "cut.kml": ("<kml>", "was it cut while copying?"),
    "cut.gpkg": (b"SQLite format 3\0rest", "was it cut while copying?"),
    "cut.feather": (b"ARROW1xx", "was it cut while copying?"),
    "cut.csv.gz": (b"\x1f\x8bnot", "was it cut while copying?"),
    "numbers.json": ("[1,2]", "no column user"),
    "book.xlsx": (b"PK\3\4zz", "an Excel workbook or another ZIP archive"),
    "picture.csv": (b"\x89PNG\r\n\x1a\n", "is a picture"),
    "page.csv": ("<html><body>no table</body></html>", "is a web page"),
    "letter.csv": (b"%PDF-1.7", "a PDF document"),
    "folder": (None, "the folder holds no files of a known format"),
}
COMMANDS = {
    "assess": "assess {}",
    "protect": "protect {} --with promesse -o out.csv",
    "original": "judge {} good.csv -o out.csv",
    "protected": "judge good.csv {} -o out.csv",
}
OPTIONS = [  # line, words of the refusal
    ("assess good.csv --goal", "requires an argument"),
    *[(f"assess good.csv --goal '{goal}'", "a goal is written as") for goal in (
        "", "5", "re-identified", "re-identified > 5 %", "re-identified < 5", "re-identified < 500 %", "re-identified < 0 %", "coverage < 0.5",
        "coverage > 2", "coverage > 50 %", "distance > 200 m", "distance < 200", "distance < 2 km", "anonymous < 5 %", "re-identified < -5 %",
    )],
    ("assess good.csv -p days", "a parameter is given as name=value"),
    ("assess good.csv -p days=1 -p days=2", "given only once"),
    ("assess good.csv -p nights=1", "nights"),
    *[(f"assess good.csv -p {value}", value.partition("=")[0]) for value in (
        "days=0", "days=-1", "days=many", "days=1.5", "days=", "halves=third", "start=yesterday", "start=2020-13-01", "max_reidentified=0",
        "max_reidentified=2", "max_reidentified=nan", "min_coverage=2", "max_distance=-1", "protections=0", "max_users=-1", "merge_users=perhaps", "seed=-1",
    )],
    ("assess good.csv -p dataset=city", "the data set is given twice"),
    ("assess good.csv -o good.csv", "cannot be written"),
    ("assess good.csv -o /proc/x", "cannot be written"),
    ("assess good.csv more.csv", "unexpected extra argument"),
    ("assess nosuch", "there is no file or data set"),
    ("assess calls.csv", "put calls_cells.csv next to it"),
    ("assess calls.csv --goal 're-identified < 5 %'", "a goal is for traces"),
    ("assess geoloife", "there is no file or data set"),
    *[(f"protect good.csv -o out.csv --with '{text}'", words) for text, words in (
        ("", "a mechanism is one of"), ("noise", "a mechanism is one of"), ("geoi2", "a mechanism is one of"), ("HMC", "needs only numbers and words"),
        ("Hybrid", "needs only numbers and words"), ("Obfuscation", "needs only numbers and words"), ("promesse(", "written as"), ("promesse)", "one of"),
        ("promesse(alpha)", "written as"), ("promesse(200)", "written as"), ("promesse(alpha=)", "written as"), ("promesse(beta=1)", "got beta"),
        ("promesse(alpha=0)", "alpha must be"), ("promesse(alpha=-1)", "alpha must be"), ('promesse(alpha="far")', "alpha must be"),
        ("promesse(alpha=True)", "alpha must be"), ("promesse(alpha=1e999)", "alpha must be"), ("promesse(alpha=100, alpha=200)", "written as"),
        ("promesse(alpha=200, plane='moon')", "plane"), ("promesse(**{})", "written as"), ("promesse(alpha=print(1))", "written as"),
        ("geoi(epsilon=0)", "epsilon must be positive"), ("geoi(epsilon=[1])", "epsilon must be"), ("geoi(epsilon=None)", "epsilon must be"),
        ("geoi(epsilon=0.01)#", "written as"), ("geoi(epsilon=0.01); 1", "written as"), ("w4m(k=1)", "k must"), ("w4m(k=1000)", "k must not exceed"),
        ("w4m(k=2.5)", "k must"), ("w4m(k=2, delta=0)", "delta"), ("w4m(trash_max=1)", "trash_max"), ('w4m(times="wrapper")', "leave it out"),
        ("trilateration(radius=0)", "radius"),
    )],
    *[(f"protect good.csv --with promesse -o {place}", words) for place, words in (
        ("good.csv", "good.csv"), ("./good.csv", "good.csv"), ("out.txt", "out.txt"), ("out", "out"), ("nowhere/out.csv", "nowhere"), ("folder", "folder"),
        ("out.csv.gz", "out.csv.gz"), ("/proc/out.csv", "/proc"),
    )],
    ("protect good.csv --with promesse", "missing option"),
    ("protect good.csv -o out.csv", "or chosen by a goal"),
    ("protect good.csv -o out.csv --with promesse --goal 'coverage > 0.5'", "or chosen by a goal"),
    ("protect good.csv -o out.csv --goal 'coverage > 5'", "a goal is written as"),
    ("protect good.csv -o out.csv --goal 'coverage > 0.5'", "there is no assessment of good.csv"),
    ("protect region -o out.csv --goal 'coverage > 0.5'", "a goal is for traces"),
    ("protect good.csv --with promesse -o out.csv --seed -1", "seed"),
    ("protect good.csv --with promesse -o out.csv --seed x", "seed"),
    ("protect good.csv --with promesse -o out.csv --pairs out.csv", "pairs"),
    ("protect good.csv --with promesse -o out.csv --pairs good.csv", "good.csv"),
    ("protect good.csv --with promesse -o out.csv --pairs nowhere/p.csv", "nowhere"),
    ("protect calls.csv --with promesse -o out.csv", "a mechanism for call records is one of Primule"),
    ("protect calls.csv --with 'primule(k=5)' -o out.csv", "put calls_cells.csv next to it"),
    ("protect region --with 'primule(k=5)' -o out.csv --user who", "is a known data set"),
    ("protect region --with 'primule(k=5)' -o out.csv --keep-names", "leave out --pairs, --keep-names"),
    ("protect good.csv --with promesse -o out.csv --start 2020-01-01", "are for call records"),
    ("protect region --with promesse -o out.csv", "a mechanism for call records"),
    *[(f"{command} {option}", words)
      for command in ("protect good.csv --with promesse -o out.csv", "judge good.csv good.csv -o out.csv")
      for option, words in (
        ("--user nobody", "nobody"), ("--lat lng", "lng"), ("--time-column never", "never"), ("--zone Mars", "Mars"), ("--time days", "must be"),
        ("--bold", "no such option"),
    )],
    ("judge good.csv", "missing argument"),
    ("judge good.csv later.csv", "no time in common"),
    ("judge good.csv strangers.csv", "give a table of pairs"),
    ("judge one.csv one.csv", "at least two users"),
    ("judge good.csv good.csv --seed -1", "seed"),
    *[(f"judge good.csv good.csv -o {place}", words) for place, words in (
        ("good.csv", "a file of their own"), ("out.txt", "ends in .csv or .json"), ("nowhere/n.csv", "there is no folder"), ("folder", "ends in .csv or .json"),
    )],
    *[(f"judge good.csv good.csv --pairs {place}", words) for place, words in (
        ("missing.csv", "missing.csv"), ("empty.csv", "no table of pairs"), ("numbers.csv", "no table of pairs"), ("good.csv", "needs the columns protected and original"),
        ("twice_named.csv", "must have one row for each name"), ("folder", "folder"),
    )],
    *[(f"judge good.csv {mechanism}", words) for mechanism, words in (
        ("nowhere.py:Mine", "nowhere.py"), ("no_module:Mine", "must be importable"), ("json:Mine", "must define the class Mine"), ("broken.py:Mine", "broken.py"),
        ("mine.py:Other", "must define the class Other"), ("mine.py:Empty", "must have a method protect"), ("'mine.py:Mine(1)'", "written as Mine(name=value)"),
        ("'mine.py:Mine(b=1)'", "Mine"), ("mine.py:Mine", "Mine"), ("mine.py:Mine --pairs good.csv", "leave out --pairs"),
    )],
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("refusals")
    for name, (content, _) in TABLES.items():
        if content is not None:
            (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    (folder / "folder").mkdir()
    rng, hours = np.random.default_rng(1), pd.date_range("2020-01-01", periods=40, freq="h", tz="UTC")
    good = pd.DataFrame(
        {"user": np.repeat([f"u{i:02}" for i in range(12)], 40), "t": np.tile(hours.strftime("%Y-%m-%dT%H:%M:%SZ"), 12)}
    )
    good = good.assign(lat=45 + rng.random(480) / 50, lng=4.8 + rng.random(480) / 50)
    good.to_csv(folder / "good.csv", index=False)
    good[good["user"] == "u00"].to_csv(folder / "one.csv", index=False)
    good.assign(user="x" + good["user"]).to_csv(folder / "strangers.csv", index=False)
    good.assign(t=good["t"].str.replace("2020", "2021")).to_csv(folder / "later.csv", index=False)
    pd.DataFrame({"user": ["a"], "t": "2020-01-01T00:00:00Z", "cell": ["1"]}).to_csv(folder / "calls.csv", index=False)
    (folder / "twice_named.csv").write_text("protected,original\na,u00\na,u01\n")
    (folder / "broken.py").write_text("class Mine:\n    def protect(self, traces, rng)\n")
    (folder / "mine.py").write_text(
        "class Empty: pass\nclass Mine:\n    def protect(self, traces, rng):\n        return traces.head(0).drop(columns='t')\n"
    )
    return folder


@pytest.fixture
def refused(folder, monkeypatch):
    """The last line of a refusal. Nothing else is written, to the terminal or to the folder."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)  # as in a user's shell
    before = sorted(os.listdir())

    def refused(line: str) -> str:
        result = CliRunner().invoke(app, shlex.split(line), env={"COLUMNS": "400"})
        assert isinstance(result.exception, SystemExit), result.exc_info
        assert (result.exit_code, result.stdout) == (2, "")
        assert sorted(os.listdir()) == before
        assert "Traceback" not in result.stderr
        return result.stderr

    return refused


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_faulty_table(refused, command, table):
    said = refused(COMMANDS[command].format(table))
    assert TABLES[table][1] in said
    assert said.startswith("mobpriv: ")
    assert said.count("\n") == 1


@pytest.mark.parametrize(("line", "words"), OPTIONS, ids=[line for line, _ in OPTIONS])
def test_a_faulty_option(refused, line, words):
    assert words.lower() in " ".join(refused(line).split()).lower()
