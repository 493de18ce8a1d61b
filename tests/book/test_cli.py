"""The command line: what it leaves, what it says, and its exit codes."""

import contextlib
import json
import logging
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
import time

import pandas as pd
import pytest
from notebook_making import SAVES, make
from typer.testing import CliRunner

from mobpriv.book import running
from mobpriv.book.notebooks import find
from mobpriv.cli import _plan, app

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:papermill", "ignore::DeprecationWarning:nbclient")


@pytest.fixture
def call(tmp_path, monkeypatch, warm):
    """A call of the command line in an empty folder, whose kernel is a warm one; gives (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def call(*arguments):
        result = CliRunner().invoke(app, [str(a) for a in arguments])
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result.exit_code, result.stdout, result.stderr

    return call


@pytest.fixture
def table(tmp_path):
    t = pd.date_range("2020-01-01", periods=4, freq="h", tz="UTC").astype(str)
    file = tmp_path / "my.csv"
    pd.DataFrame({"user": ["a", "a", "b", "b"], "t": t, "lat": [45.0, 45.1, 400.5, 45.3], "lng": 4.8}).to_csv(file, index=False)
    return file


@pytest.fixture
def refused(call):
    """What a call says that ends in one line and with exit code 2."""

    def refused(*arguments):
        code, out, err = call(*arguments)
        assert (code, out) == (2, "")
        return last_line(err)

    return refused


RECORD = "user,t,lat,lng\na,2020-01-01T00:00:00Z,45,4\n"
LOADS = "from mobpriv import book, datasets\ndata = datasets.load(dataset)\nbook.save({'n': 1}, data)"


def one_line(text: str) -> str:
    assert len(text.strip().splitlines()) == 1
    return text.strip()


def last_line(text: str) -> str:
    """What is said behind the line that announces a run, if it came to that."""
    lines = text.strip().splitlines()
    return one_line("\n".join(lines[1:] if lines[0].startswith("experiment: ") else lines))


def test_run_leaves_a_page_the_executed_notebook_and_the_results(call, tmp_path):
    path = make(tmp_path, "demo", SAVES, "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()")
    code, out, _ = call("run", path, "-p", "cell=400", "--quick", "-o", "there")
    assert (code, out.split()) == (0, ["there/demo.html", "there/demo.ipynb", "there/demo.json"])
    record = json.loads((tmp_path / "there" / "demo.json").read_text())
    assert record["results"]["cell"] == 400
    assert record["provenance"]["command"] == "mobpriv run demo -p cell=400.0 --quick"
    page = (tmp_path / "there" / "demo.html").read_text()
    for part in ("data:image/png;base64,", "Synthetic data", "Quick, not a result."):
        assert part in page
    # one file that asks nobody for anything
    assert not re.findall(r"""(?:src|href)=["'](?!data:|#)[^"']*["']|@import|url\((?!data:)""", page)


def test_run_on_a_file_hands_the_notebook_its_absolute_path(call, tmp_path, table):
    path = make(tmp_path, "demo", "from mobpriv import book\nbook.save({'there': __import__('os').path.isabs(dataset)})")
    assert call("run", path, "--data", "my.csv")[1].split()[0] == "runs/demo/my/demo.html"
    record = json.loads((tmp_path / "runs/demo/my/demo.json").read_text())
    assert record["results"] == {"there": True}
    assert record["provenance"]["parameters"]["dataset"] == "my.csv"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ("run demo -p cel=400", "mobpriv: demo has no parameter 'cel'; its parameters: dataset (str), cell (float)"),
        ("run demo -p cell=wide", "mobpriv: parameter cell of demo must be float (got 'wide')"),
        ("run demo -p cell", "mobpriv: a parameter is given as name=value (got 'cell')"),
        ("run demo -p cell=400 -p cell=500", "mobpriv: a parameter may be given only once (got cell twice)"),
        ("run demo --data city --data my.csv", "mobpriv: one data set is given, not several (got --data city --data my.csv)"),
        ("run demo --data nowhere.csv", "mobpriv: there is no file or data set 'nowhere.csv' (data sets: city"),
        ("run demo --data my.csv -p dataset=city", "the data set is given twice"),
        ("run demo -o my.csv/there", "mobpriv: my.csv/there cannot be written: "),
        ("run demo -o /proc/there", "mobpriv: /proc/there cannot be written: /proc is not writable"),
        ("run nosuch", "mobpriv: there is no notebook 'nosuch'"),
        ("run thesis_3_attacks --data my.csv -o there -p leave_out=zz", "does not have: zz"),
        ("run thesis_3_attacks --data my.csv -o there -p start=someday", "must be a date or empty (got 'someday')"),
        (
            "run thesis_3_attacks --data my.csv -o there",
            "the attacked half is empty: the records span 0.1 days, days is 30: choose fewer days, another start, or halves",
        ),
        ("data fetch mdc", "register"),
        ("data fetch nosuch", "there is no data set 'nosuch'"),
        ("data show city", "is not marked as synthetic"),  # real data do not pass as the city
        ("real .", "cabspotting.parquet"),
        ("validate nowhere.csv", "nowhere.csv"),
        ("validate my.csv --user lat", "column lat is named for user and lat: each needs a column of its own"),
        ("validate my.csv -o folder", "folder"),
        ("validate my.csv -o my.csv", "ends in .parquet"),
        ("validate city.parquet -o city.parquet", "must differ from the table"),
        ("validate . --zone UTC --user uid", "omit --user, --zone"),  # a folder has the format of a data set
    ],
)
def test_what_is_given_wrong_is_one_line_and_exit_code_2(refused, tmp_path, table, monkeypatch, arguments, line):
    if arguments == "data show city":
        monkeypatch.setenv("MOBPRIV_DATA", str(tmp_path))
    pd.read_csv(table).assign(lat=45.0).to_parquet(tmp_path / "city.parquet")
    (tmp_path / "folder").mkdir()
    path = make(tmp_path, "demo", "raise SystemError('it must not run')")
    before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    assert line in refused(*[path if word == "demo" else word for word in arguments.split()])
    assert {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()} == before


def test_a_failed_cell_is_its_traceback_and_exit_code_1(call, tmp_path):
    code, out, err = call("run", make(tmp_path, "demo", "1 / 0"), "-o", "there")
    assert (code, out) == (1, "")
    assert "ZeroDivisionError: division by zero" in err
    assert err.strip().endswith("demo.ipynb, cell 3: ZeroDivisionError: division by zero")
    assert not (tmp_path / "there").exists()


def test_an_interrupted_run_is_one_line_and_exit_code_130(tmp_path):
    path = make(tmp_path, "demo", "import pathlib, time\npathlib.Path(dataset).touch()\ntime.sleep(60)")
    (begun := tmp_path / "my.csv").write_text("user,t,lat,lng\na,1600000000,45,4\n")
    before = begun.stat().st_mtime_ns
    command = [sys.executable, "-m", "mobpriv.cli", "run", str(path), "--data", str(begun), "-o", str(tmp_path / "out")]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while begun.stat().st_mtime_ns == before:
        assert run.poll() is None
        time.sleep(0.1)
    run.send_signal(signal.SIGTERM)
    out, err = run.communicate(timeout=60)
    assert (run.returncode, out) == (130, "")
    assert last_line(err).startswith("mobpriv: interrupted")
    assert not (tmp_path / "out").exists()


def test_a_kernel_that_dies_is_one_line_and_exit_code_1(tmp_path, caplog):
    path = make(tmp_path, "demo", "import os\nos._exit(1)")
    command = [sys.executable, "-m", "mobpriv.cli", "run", str(path), "-o", str(tmp_path / "out")]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (run.returncode, run.stdout) == (1, "")
    assert last_line(run.stderr) == "demo.ipynb: the kernel died, probably because memory ran out"
    # what the loop says of it once an interrupt has ended the run
    with pytest.raises(running.CellFailed, match="the kernel died"):
        running.run(path, output=tmp_path / "out.ipynb", results=tmp_path / "out.json")
    logging.getLogger("asyncio").error("Task exception was never retrieved\nfuture: exception=DeadKernelError('Kernel died')")
    logging.getLogger("asyncio").error("something else")
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == ["something else"]


def test_validate_finds_the_columns_and_prints_the_command_that_reads_them(call, tmp_path):
    table = pd.DataFrame({"Device ID": ["a", "b"], "Time": [1_600_000_000_000, 1_600_000_060_000], "y": 45.0, "x": 4.8})
    table.to_csv(tmp_path / "my own.csv", index=False)
    out = call("validate", "my own.csv")[1]
    printed = (
        "my own.csv: user = Device ID, time = Time, latitude = y, longitude = x; times are milliseconds since 1970 "
        "(guessed: user, time, latitude, longitude, unit of the times)"
    )
    assert printed in out
    command = next(line for line in out.splitlines() if "mobpriv validate" in line)
    assert "'my own.csv' --user 'Device ID' --time-column Time --lat y --lng x --time ms -o 'my own_ready.parquet'" in command
    # as printed, it reads the same, and what it writes can be run as printed
    code, again, _ = call(*shlex.split(command)[1:])
    assert code == 0
    assert "(guessed" not in again
    words = ("2 records of 2 users", "2020-09-13 12:26:40 UTC", "The table has no faults", "written: my own_ready.parquet")
    assert [one for one in words if one not in again] == []  # 1.6e9 seconds after 1970
    following = next(line for line in again.splitlines() if "mobpriv run" in line)
    assert shlex.split(following) == ["mobpriv", "run", "thesis_3_mechanisms", "--data", "my own_ready.parquet", "--quick"]
    assert "(guessed" not in call("validate", "my own_ready.parquet")[1]
    assert "To write the valid records" not in call("validate", "my own_ready.parquet")[1]  # they are written
    assert call("data", "show", "my own.csv")[1].count("We recognise the columns by their names: user = Device ID") == 1


@pytest.mark.parametrize(
    ("header", "row", "line"),
    [
        ("id,uid,t,lat,lng", "1,a,1600000000,45,4", "could be column id or uid: say which, as in: mobpriv validate o.csv --user uid -o"),
        ("user,t,lat,lng", "a,2020-01-01 12:00,45,4", "say which zone they are of, as in: mobpriv validate o.csv --zone Europe/Paris -o"),
        ("user,when,lat,lng", "a,1600000000,45,4", "no column t (time); it has: user, when, lat, lng. Say which is which, as in: mobpriv validate o.csv --time-column when -o"),
        ("user,when,lat,lng,v", "a,1600000000,45,4,9", "it has: user, when, lat, lng, v. Say which is which with --time-column of mobpriv validate o.csv"),
        ("who,t,north,lng", "a,1600000000,45,4", "it has: who, t, north, lng. Say which is which with --user, --lat of mobpriv validate o.csv"),
        ("user,t,lat,lng", "a,03.09.2024 17:21,45,4", "which is not guessed: write them as ISO 8601"),
        ("user,t,latitude,y,lng", "a,1600000000,45,45,4", "the latitude could be column latitude or y: say which, as in: mobpriv validate o.csv --lat"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("command", [["validate"], ["run", "thesis_3_attacks", "--data"], ["data", "show"]])
def test_what_is_in_doubt_is_one_line_with_the_command_that_says_it(refused, tmp_path, header, row, line, command):
    (tmp_path / "o.csv").write_text(f"{header}\n{row}\n")
    message = refused(*command, "o.csv")
    assert line in message
    assert not re.search(r"COLUMN|columns=|time=|zone=", message)  # no Python where nobody writes Python


def test_a_column_that_is_named_among_two_is_named_in_the_printed_command(call, tmp_path):
    (tmp_path / "o.csv").write_text("user,id,t,lat,lng\na,7,1600000000,45,4\n")
    out = call("validate", "o.csv", "--user", "user")[1]
    command = next(line for line in out.splitlines() if "mobpriv validate" in line)
    assert "written: o_ready.parquet, without the columns id" in call(*shlex.split(command)[1:])[1]
    assert pd.read_parquet(tmp_path / "o_ready.parquet").columns.tolist() == ["user", "t", "lat", "lng"]
    assert call("validate", "o_ready.parquet")[0] == 0  # nothing is in doubt any more


@pytest.mark.parametrize(
    ("column", "warned"), [(range(5), "5 of 5 users"), ("aabbcd", ""), ("aabcde", "4 of 5 users"), ("aaaaaa", "")]
)
def test_validate_warns_of_a_column_that_numbers_the_rows(call, tmp_path, column, warned):
    rows = [f"{user},{1_600_000_000 + k},45,4" for k, user in enumerate(column)]
    (tmp_path / "o.csv").write_text("\n".join(["id,t,lat,lng", *rows]))
    out = call("validate", "o.csv")[1]
    assert ("Warning" in out) == bool(warned)
    assert f"Warning: {warned} have a single record; if id numbers the rows" in out or not warned


@pytest.mark.parametrize(("bad", "warned"), [(2, False), (3, False), (4, True)])
def test_validate_warns_where_most_records_are_left_out(call, tmp_path, bad, warned):
    rows = [f"a,{1_600_000_000 + k},{99 if k < bad else 45},4" for k in range(3 + bad)]
    (tmp_path / "o.csv").write_text("\n".join(["user,t,lat,lng", *rows]))
    out = call("validate", "o.csv")[1]
    assert ("Warning: most records are left out, 4 of 7\n" in out) == ("Warning" in out) == warned


@pytest.mark.parametrize("text", ["user,t,lat,lng\n", "user,t,lat,lng\n\n \n"])
def test_validate_refuses_a_table_without_records(refused, tmp_path, text):
    (tmp_path / "o.csv").write_text(text)
    assert refused("validate", "o.csv", "-o", "ready.parquet") == "mobpriv: o.csv holds no records"
    assert not (tmp_path / "ready.parquet").exists()


def test_a_run_says_before_what_it_will_do(call, tmp_path):
    (tmp_path / "o.csv").write_text("uid,t,lat,lng\na,1600000000,45,4\n")
    code, _, err = call("run", make(tmp_path, "demo", SAVES), "--data", "o.csv", "-p", "cell=400")
    assert code == 0
    for words in ("A demonstration; data: o.csv, about 1 records (user = uid, ", "; parameters: cell = 400.0; ", "; takes: "):
        assert words in one_line(err)


@pytest.mark.parametrize(
    ("name", "value", "notebook", "data"),
    [("rate", 30, "primule_risk", "my.csv"), ("people", 100, "primule_quantification", "towns.geojson")],
)
def test_calls_may_be_made_of_traces_and_of_boundaries(tmp_path, table, name, value, notebook, data):
    # no line of the boundaries is a table's
    (tmp_path / "towns.geojson").write_text('{"type":"FeatureCollection","bbox":[9.6,42.2,12.3,44.4],"features":[]}')
    file, path = str(tmp_path / data), find(notebook)
    with pytest.raises(ValueError, match="needs call records"):
        _plan(path, {"dataset": file}, tmp_path)
    plan = _plan(path, {"dataset": file, name: value}, tmp_path)
    assert f"{name} = {value}" in plan["parameters"]
    assert plan["data"].startswith(data)


def test_on_a_terminal_a_run_shows_its_cells_and_steps(tmp_path):
    cell = "from mobpriv import book\nfor k in range(3):\n    book.step(f's {k}', lambda: __import__('time').sleep(1))"
    path = make(tmp_path, "demo", cell, SAVES)
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "mobpriv.cli", "run", str(path), "-o", str(tmp_path / "out")]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=slave)
    os.close(slave)
    shown = b""
    with contextlib.suppress(OSError):  # how a terminal ends
        while part := os.read(master, 4096):
            shown += part
    os.close(master)
    assert run.wait(timeout=60) == 0
    run.stdout.close()
    text = shown.decode()
    assert re.search(r"experiment.*A demonstration", text)
    assert re.search(r"cell \d of 4", text)
    assert re.search(r"[123] steps? finished", text)


def test_a_quick_run_reads_a_few_users_of_many(call, tmp_path):
    rows = [f"u{u:03},{1_600_000_000 + 43_200 * k},{45 + u / 100},4.8" for k in range(20) for u in range(300)]
    (tmp_path / "o.csv").write_text("\n".join(["uid,t,lat,lng", *rows]))
    assert call("run", "thesis_3_attacks", "--quick", "--data", "o.csv", "-p", "days=10", "-o", "there")[0] == 0
    record = json.loads((tmp_path / "there" / "thesis_3_attacks.json").read_text())["provenance"]
    assert re.search(
        "^The data have 20 users with 380 records in the 10 days.*only the 20 users .of 300. whose names come first",
        record["selection"],
    )
    assert record["data"]["size"] == {"records": 400, "users": 20, "days": 9.5}


def test_what_is_listed_and_shown(call, tmp_path, table):
    for arguments, words in (
        (["data", "list"], ["cabspotting", "call records", "positions"]),
        (["data", "show", table], ["my: my.csv (real)"]),
        (["validate", table], ["3 records of 2 users", "latitude outside [-90, 90]", "400.5"]),
    ):
        code, out, _ = call(*arguments)
        assert (code, [word for word in words if word not in out]) == (0, [])
    assert re.search(r"cell +float +800\.0 +m +> 0 +side of a heat-map cell", call("show", make(tmp_path, "demo"))[1])


# ------------------------------------------------------------------------------------------------------------- own data sets


def test_validate_writes_a_table_to_run_on(call, refused, tmp_path):
    naive = pd.DataFrame({"uid": ["a", "b"], "when": ["2020-01-01 12:00", "2020-01-02 12:00"], "lat": 45.0, "lng": 4.8})
    naive.to_csv(tmp_path / "naive.csv", index=False)
    proposed = "mobpriv validate naive.csv --time-column when -o naive_ready.parquet"
    assert proposed in refused("run", "thesis_3_attacks", "--data", "naive.csv")
    call("validate", "naive.csv", "--user", "uid", "--time-column", "when", "--zone", "Europe/Paris", "-o", "ready.parquet")
    assert "from 2020-01-01 11:00:00 UTC" in call("validate", "ready.parquet")[1]


def test_two_files_of_one_name_do_not_overwrite_each_other(call, tmp_path):
    path = make(tmp_path, "demo", LOADS)
    for folder, user in (("p", "a"), ("q", "b")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "d.csv").write_text(RECORD.replace("\na", f"\n{user}"))
        assert call("run", path, "--data", f"{folder}/d.csv")[0] == 0
    assert len(list((tmp_path / "runs" / "demo").iterdir())) == 2


@pytest.mark.parametrize("folder", ["my secret folder", 'my "secret" folder, it\'s', "mon secret caché", "a & secret <b>"])
def test_nothing_of_an_own_run_says_where_the_data_lie(call, tmp_path, folder):
    file = tmp_path / folder / "traces.csv"
    file.parent.mkdir()
    file.write_text(RECORD)
    path = make(tmp_path, "demo", f"print(dataset)\n{LOADS}\nrepr(data.source), dataset, {{dataset: 1}}")
    assert call("run", path, "--data", file, "-o", "there")[0] == 0
    for written in (tmp_path / "there").iterdir():
        assert "secret" not in written.read_text(), written.name
        assert "traces.csv" in written.read_text()


def test_an_own_file_named_like_a_data_set_has_a_folder_of_its_own_and_a_broken_result_is_made_again(call, tmp_path, table):
    path = make(tmp_path, "demo", SAVES)
    assert call("run", path, "--data", table.rename(tmp_path / "city.csv"))[1].startswith("runs/demo/city.csv/")
    (result := tmp_path / "runs/demo/city/demo.json").parent.mkdir(parents=True)
    result.write_text("{")
    code, out, err = call("run", path, "--data", "city")
    assert (code, out.startswith("runs/demo/city/"), "demo.json is broken" in err.splitlines()[0]) == (0, True, True)
    assert json.loads(result.read_text())["results"]


@pytest.mark.parametrize("command", ["run", "show"])
@pytest.mark.parametrize("text", ["{}", "[]", "", '{"cells": []}'])
def test_what_is_no_notebook_is_refused_in_one_line(refused, tmp_path, command, text):
    (tmp_path / "no.ipynb").write_text(text)
    assert "no.ipynb is " in refused(command, tmp_path / "no.ipynb")


def test_a_notebook_without_a_kernel_is_refused_with_what_to_do(refused, tmp_path):
    path = make(tmp_path, "demo", SAVES)
    path.write_text(path.read_text().replace('"kernelspec"', '"other"'))
    assert "names no kernel: choose the kernel Python 3 in Jupyter" in refused("run", path)


def test_an_own_file_named_like_a_data_set_is_the_readers_own(call, tmp_path):
    (tmp_path / "geolife_2009.csv").write_text(RECORD)
    assert call("run", make(tmp_path, "demo", LOADS), "--data", tmp_path / "geolife_2009.csv", "-o", "there")[0] == 0
    page = (tmp_path / "there" / "demo.html").read_text()
    assert "geolife_2009 (supplied by the user)" in page
    assert "real" not in page.partition("Where the numbers come from")[2].partition("</table>")[0]


def test_quick_says_what_it_shortens(call, refused, tmp_path):
    path = make(tmp_path, "demo", "sizes = sizes[:1] if quick else sizes", SAVES, tags={2: "quick"})
    code, _, err = call("run", path, "--quick", "-o", "there")
    assert code == 0
    assert (
        "quick, not a result: sizes = [1]; results: to there; takes: some seconds to two minutes after the start"
        in one_line(err)
    )
    assert json.loads((tmp_path / "there" / "demo.json").read_text())["provenance"]["parameters"]["sizes"] == [1]
    assert "sizes[:1]" in call("show", path)[1]
    message = refused("run", path, "--quick", "-p", "sizes=[5]", "-o", "there")
    assert message == "mobpriv: a quick run makes sizes = sizes[:1]: leave out --quick, or sizes"


def test_tables_of_two_months_are_written_to_two_files(call, tmp_path):
    written = set()
    for month in ("01", "02"):
        table = tmp_path / f"cdr.2024-{month}.csv"
        table.write_text(RECORD.replace("user", "uid"))
        written.add(call("validate", table)[1].split(" -o ")[1].split()[0])
    assert written == {"cdr.2024-01_ready.parquet", "cdr.2024-02_ready.parquet"}


def test_validate_reads_the_folder_of_a_known_format(call, tmp_path):
    (folder := tmp_path / "cabs").mkdir()
    (folder / "new_abc.txt").write_text("37.75 -122.39 0 1212345678\n37.76 -122.40 1 1212345618\n")  # newest first
    assert "2 records of 1 user\n" in call("validate", folder, "-o", tmp_path / "cabs.parquet")[1]
    assert call("validate", tmp_path / "cabs.parquet")[0] == 0


def test_an_assessment_leaves_a_page_and_says_which_settings_meet_the_goal(call, tmp_path):
    goal = ("--goal", "re-identified < 100 %", "--goal", "coverage > 0.01", "--goal", "distance<=200m")
    code, _, err = call("assess", "city", "--quick", "-o", tmp_path / "made", *goal)
    assert (code, re.findall(r"max_reidentified = 1|max_distance = 200", err)) == (
        0,
        ["max_reidentified = 1", "max_distance = 200"],
    )
    page = (tmp_path / "made" / "across_traces.html").read_text()
    assert "at least 0.01, and the median distance at the same time is at most 200" in re.sub(r"\s+", " ", page)
    assert "Geo-I at 40 m" in page


@pytest.mark.parametrize(
    ("goals", "fault"),
    [
        (["named < 5 %"], "the measures are re-identified, coverage, distance"),
        (["re-identified > 5 %"], "re-identified takes <"),
        (["re-identified < 5 m"], "re-identified is in %"),
        (["re-identified < 5"], "re-identified is in %"),
        (["coverage > 50 %"], "coverage has no unit"),
        (["distance < x m"], "a number such as 5 or 0.5"),
        (["re-identified < 5,5 %"], "a number such as 5 or 0.5"),
        (["distance < 0 m"], "distance is above 0"),
        (["coverage > 2"], "coverage is above 0 and at most 1"),
        (["coverage > 0.5", "coverage > 0.9"], "there are two goals for coverage"),
    ],
)
def test_a_goal_that_cannot_be_read_is_refused_with_its_fault(refused, goals, fault):
    error = refused("assess", "city", *(word for goal in goals for word in ("--goal", goal)))
    assert "a goal is written as" in error
    assert fault in error


def test_a_goal_is_not_also_a_parameter(refused):
    line = ("assess", "city", "--goal", "re-identified < 5 %", "-p", "min_coverage=0.3")
    assert "min_coverage is set by --goal" in refused(*line)


def test_nine_users_are_too_few_to_assess(refused, tmp_path):
    t = pd.date_range("2020-01-01", periods=40, freq="h", tz="UTC").astype(str)
    tables = [pd.DataFrame({"user": f"u{i}", "t": t, "lat": 45.0, "lng": 4.8 + 0.01 * i}) for i in range(9)]
    pd.concat(tables).to_csv(tmp_path / "nine.csv", index=False)
    assert "at least 10 persons" in refused("assess", tmp_path / "nine.csv")


def test_a_goal_for_call_records_is_refused(refused):
    assert "a goal is for traces, and region holds call records" in refused("assess", "region", "--goal", "coverage > 0.5")
