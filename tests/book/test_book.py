"""Running notebooks: parameters, results, provenance, skipping, and what remains after a failure."""

import json
import os
import re
import shlex
import shutil
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import nbformat
import numpy as np
import pandas as pd
import pytest
from conftest import refuses
from jupyter_client.provisioning import KernelProvisionerFactory
from notebook_making import SAVES, make, registry

from mobpriv import book
from mobpriv.book import (
    build,
    carrying,
    dependencies,
    notebooks,
    pages,
    provenance,
    quantities,
    results,
    running,
    runs,
    warm_kernels,
)
from mobpriv.book.warm_kernels import kernels

REGISTRY = runs.read(results.ROOT)
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:papermill", "ignore::DeprecationWarning:nbclient")


class Here:
    """A pool whose work is done at once by this process."""

    def submit(self, function, *arguments) -> Future:
        future = Future()
        try:
            future.set_result(function(*arguments))
        except Exception as error:  # whatever it is, as a pool does: who asks for the result gets it raised
            future.set_exception(error)
        return future


@contextmanager
def without_new_processes() -> Iterator[None]:
    """Builds by this process and warm kernels: a pool and kernels that start anew import for seconds what is imported here."""
    with kernels(), mock.patch.dict(os.environ), mock.patch.object(build.processes, "pool") as pool:
        pool.return_value.__enter__.return_value = Here()
        yield


@pytest.fixture
def new_processes() -> None:
    """For the tests that are to see the pool and the kernels as they are outside the tests."""


@pytest.fixture(autouse=True)
def _here(request) -> Iterator[None]:
    if "new_processes" in request.fixturenames:
        yield
        return
    with without_new_processes():
        yield


def run(path: Path, tmp_path: Path, given=None, name="out") -> dict:
    return running.run(path, given, output=tmp_path / f"{name}.ipynb", results=tmp_path / f"{name}.json", root=tmp_path)


# -------------------------------------------------------------------------------------------------------------- parameters
def test_parameters_are_read_with_type_default_unit_and_meaning(tmp_path):
    parameters = notebooks.parameters(make(tmp_path, "demo"))
    assert parameters["cell"] == ("cell", "float", 800.0, "m", "side of a heat-map cell", "> 0")
    assert parameters["dataset"] == ("dataset", "str", "city", "", "name or file of the data set", "")
    assert parameters["sizes"][1:4] == ("list[int]", [1, 2], "users")


@pytest.mark.parametrize(
    ("name", "plain", "values"),
    [
        ("cell", 400.0, [np.float32(400), "400", 400]),
        ("seed", 3, [np.int64(3), "3"]),
        ("quick", True, ["true", np.bool_(True)]),
        ("dataset", str(Path("a/b.csv")), [Path("a/b.csv")]),
        ("dataset", "12", ["12"]),
        ("sizes", [3, 4], [(3, 4), np.array([3, 4]), "[3, 4]"]),
    ],
)
def test_values_become_plain(tmp_path, name, plain, values):
    path = make(tmp_path, "demo")
    converted = [notebooks.checked_parameters(path, {name: value})[name] for value in values]
    assert converted == [plain] * len(values)
    assert {type(value) for value in converted} == {type(plain)}


@pytest.mark.parametrize(
    ("name", "value"),
    [("cell", "wide"), ("cell", True), ("seed", 1.5), ("seed", "1.5"), ("seed", True), ("quick", 1), ("quick", "yes"), ("dataset", 3),
     ("sizes", [1, "a"]), ("sizes", 3), ("cell", pd.Timestamp("2020-01-01"))],
)  # fmt: skip
def test_a_wrong_type_is_refused(tmp_path, name, value):
    refuses(f"^parameter {name} of demo must be ", notebooks.checked_parameters, make(tmp_path, "demo"), {name: value})


def test_an_unknown_parameter_and_an_unknown_notebook_are_refused_and_the_known_ones_named(tmp_path):
    path = make(tmp_path, "demo", "raise SystemError('it must not run')")
    with pytest.raises(
        ValueError, match=r"demo has no parameter 'cel'; its parameters: dataset \(str\), cell \(float\), sizes"
    ):
        run(path, tmp_path, {"cel": 1.0})
    with pytest.raises(FileNotFoundError, match="there is no notebook 'dmo'; notebooks: demo"):
        notebooks.find("dmo", tmp_path)


# ----------------------------------------------------------------------------------------------------------------- running
@pytest.mark.usefixtures("new_processes")
def test_a_run_keeps_results_with_their_provenance_and_repeats_byte_for_byte(tmp_path):
    path = make(tmp_path, "demo", SAVES)
    record = run(path, tmp_path, {"cell": 400, "seed": 7})
    run(path, tmp_path, {"cell": 400, "seed": 7}, "again")
    assert record == json.loads((tmp_path / "out.json").read_text())
    assert record["results"]["cell"] == 400
    assert record["results"]["draw"] == np.random.default_rng(7).random()
    origin = record["provenance"]
    assert origin["data"] == {"name": "city", "sha256": "ab" * 32, "synthetic": True, "left_out": {}}
    assert origin["parameters"] == {"dataset": "city", "cell": 400, "sizes": [1, 2], "seed": 7, "quick": False}
    assert origin["command"] == "mobpriv run demo -p cell=400.0 -p seed=7"
    assert origin["commit"] == "unknown"  # the temporary folder is no repository
    assert (tmp_path / "out.ipynb").read_bytes() == (tmp_path / "again.ipynb").read_bytes()
    text = (tmp_path / "out.ipynb").read_text()
    assert str(tmp_path) not in text
    assert "papermill" not in nbformat.reads(text, 4).metadata


def test_a_failing_cell_shows_its_traceback_and_leaves_the_old_result(tmp_path):
    run(make(tmp_path, "demo", SAVES), tmp_path)
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir() if p.is_file()}
    bad = make(tmp_path, "demo", SAVES + "\nraise KeyError('cabs')")
    with pytest.raises(running.CellFailed, match=r"(?s)Traceback.*demo.ipynb, cell 3: KeyError: 'cabs'"):
        run(bad, tmp_path)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir() if p.is_file()} == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["notebooks", "out.ipynb", "out.json"]
    assert results.RESULTS not in os.environ


def test_a_kernel_that_has_not_saved_may_tidy_up(tmp_path, new_processes):
    last_act = f"import atexit\nfrom pathlib import Path\natexit.register(Path(r'{tmp_path}/tidied').touch)\n"
    with pytest.raises(running.CellFailed):
        run(make(tmp_path, "demo", last_act + "raise KeyError('cabs')"), tmp_path)
    until = time.monotonic() + 20  # it is told to end, and does so by itself
    while not (tmp_path / "tidied").exists() and time.monotonic() < until:
        time.sleep(0.1)
    assert (tmp_path / "tidied").exists()


def test_saving_refuses_what_is_no_result_and_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv(results.RESULTS, str(tmp_path / "r.json"))
    refuses(r"result 'rate': a result is a number, .* \(got set\)", book.save, {"rate": {1, 2}})
    assert not list(tmp_path.iterdir())
    book.save({"rate": np.float64("nan"), "rows": pd.DataFrame({"a": [1]}), "n": np.int64(3), "yes": np.bool_(True)})
    assert json.loads((tmp_path / "r.json").read_text())["results"] == {"rate": None, "rows": [{"a": 1}], "n": 3, "yes": True}


def test_the_command_that_repeats_a_run_is_quoted_for_a_shell_and_without_a_path_on_this_machine():
    given = {"dataset": "/home/me/my cabs; rm x.csv", "sizes": [1, 2], "user": "d'Arc $HOME"}
    assert provenance.without_path(given) == given | {"dataset": "my cabs; rm x.csv"}
    words = shlex.split(provenance.command("demo", given, {"dataset": "city", "sizes": [1], "user": ""}))
    assert words == ["mobpriv", "run", "demo", "--data", "my cabs; rm x.csv", "-p", "sizes=[1, 2]", "-p", "user=d'Arc $HOME"]


# -------------------------------------------------------------------------------------------------------------- the build
def test_a_page_hangs_on_the_titles_of_the_runs_that_it_shows_alone():
    for name, others in (("dchi_booleans", {"callers"}), ("thesis_3_top_k", {"cabspotting", "geolife"})):
        page = results.ROOT / "notebooks" / f"{name}.ipynb"
        titles = json.loads(build.shown_beside(page, results.ROOT)[-1])[1]
        for run in REGISTRY.runs.values():
            assert (run.title in titles) >= (run.synthetic or run.name in others)
            kept = results.ROOT / "book" / "results" / run.name / f"{page.stem}.json"
            assert run.title not in titles or run.synthetic or kept.exists()


class TestWhatAResultDependsOn:
    IMPORTS = (
        "from mobpriv import book, plot\nfrom mobpriv.mechanisms import GeoI\nfrom mobpriv.datasets import load\nGeoI()\n"
        "book.compared\nplot.panels\nplot.intervals"
    )

    @pytest.fixture
    def package(self, tmp_path, monkeypatch):
        """A copy of the package whose files can be changed."""
        copy = tmp_path / "mobpriv"
        shutil.copytree(dependencies.PACKAGE_FOLDER, copy, ignore=shutil.ignore_patterns("__pycache__"))
        monkeypatch.setattr(dependencies, "PACKAGE_FOLDER", copy)
        return copy

    def hashes(self, root, given=None, others=()):
        path = root / "notebooks" / "demo.ipynb"
        return dependencies.page_hash(path, given or {}, root, others), dependencies.code_hash(path, given or {}, root)

    def replaced(self, file, old, new):
        """Which of both hashes change when a file of the package does."""
        root, text = file.parents[2], file.read_text(encoding="utf-8")
        before = self.hashes(root)
        file.write_text(text.replace(old, new) if old else text + new, encoding="utf-8")
        return [a != b for a, b in zip(before, self.hashes(root), strict=True)]

    @pytest.mark.parametrize(
        ("file", "old", "page", "numbers"),
        [
            ("mechanisms/geo_i.py", "def protect(", True, True),
            ("mechanisms/geo_i.py", "", False, False),  # a new neighbour in the same file
            ("base/draws.py", "def per_user(", True, True),  # called by geo_i
            ("ground/geo.py", "def meridian_arc(", False, False),  # imported by nothing that geo_i calls
            ("ground/geo.py", "def metres_per_degree_at(", True, True),
            ("plot/style.py", "def panels(", True, False),  # what only draws
            ("plot/palette.py", "def mark(", True, False),  # called by plot
            ("base/numbers.py", "def shown(", True, False),  # how a number is written
            ("book/comparison.py", "def compared(", True, False),
            ("mechanisms/w4m.py", "", False, False),  # another room of the same package
            ("channels/optimal.py", "", False, False),
            ("book/webpage.py", "", False, False),
        ],
    )
    def test_on_what_it_imports_and_on_nothing_else(self, tmp_path, package, file, old, page, numbers):
        """``old`` gets another first line in its body; without it the file gets another constant."""
        make(tmp_path, "demo", self.IMPORTS)
        assert self.replaced(package / file, "", "\n# a comment changes nothing\n") == [False, False]
        text = (package / file).read_text(encoding="utf-8")
        head = text[text.index(old) : text.index(":\n", text.index(old)) + 2]
        body = head + " " * (8 if "(self" in head else 4) + "changed = 1\n"
        assert self.replaced(package / file, head if old else "", body if old else "\nCHANGED = 1\n") == [page, numbers]

    def test_not_on_the_module_where_a_definition_is(self, tmp_path, package):
        make(tmp_path, "demo", "from mobpriv.mechanisms.geo_i import GeoI", "GeoI()")
        before = self.hashes(tmp_path)[1]
        (package / "mechanisms" / "geo_i.py").rename(package / "mechanisms" / "planar.py")
        make(tmp_path, "demo", "from mobpriv.mechanisms.planar import GeoI", "GeoI()")
        assert self.hashes(tmp_path)[1] == before
        make(tmp_path, "demo", "from mobpriv.mechanisms.promesse import Promesse as GeoI", "GeoI()")
        assert self.hashes(tmp_path)[1] != before

    @pytest.mark.parametrize("cell", ["import mobpriv\nmobpriv.GeoI()", "from mobpriv import GeoI\nGeoI()"])
    def test_on_what_it_takes_from_the_face_of_the_package(self, tmp_path, package, cell):
        make(tmp_path, "demo", cell)
        assert self.replaced(package / "mechanisms" / "geo_i.py", "epsilon", "other") == [True, True]

    def test_not_on_how_its_numbers_are_written(self, tmp_path, package):
        make(tmp_path, "demo", "from mobpriv.base.numbers import shown", "print(shown(0.5))")
        assert self.replaced(package / "base" / "numbers.py", "infinite", "endless") == [True, False]

    def test_on_its_parameters_its_cells_its_data_and_the_packages_it_uses(self, tmp_path):
        lock = tmp_path / "requirements.lock"
        lock.write_text("numpy==1\ntyper==1\n")
        make(tmp_path, "demo", self.IMPORTS, "x = 1")
        page, numbers = self.hashes(tmp_path)
        assert self.hashes(tmp_path) == (page, numbers)
        assert self.hashes(tmp_path, {"seed": 2})[0] != page
        assert self.hashes(tmp_path, {"seed": 2})[1] != numbers
        assert self.hashes(tmp_path, {"dataset": "a.csv"})[1] == numbers  # its name; its content is another fingerprint
        assert self.hashes(tmp_path, others=["results of others"])[0] != page
        lock.write_text("numpy==1\ntyper==2\n")
        assert self.hashes(tmp_path) == (page, numbers)
        lock.write_text("numpy==2\ntyper==2\n")
        assert self.hashes(tmp_path)[1] != numbers
        seen = set()
        for older, newer in ((1, 1), (1, 2), (2, 1)):
            lock.write_text(f"numpy=={older} ; python_full_version < '3.12'\nnumpy=={newer} ; python_full_version >= '3.12'")
            seen.add(self.hashes(tmp_path)[1])
        assert len(seen) == 3  # whichever Python it is: each line counts
        lock.write_text("numpy==1\ntyper==1\n")
        make(tmp_path, "demo", self.IMPORTS, "x = 1  # said better", title="Another title")
        assert self.hashes(tmp_path)[0] != page
        assert self.hashes(tmp_path)[1] == numbers
        make(tmp_path, "demo", self.IMPORTS, "x = 2")
        assert self.hashes(tmp_path)[1] != numbers

    def test_a_figure_makes_no_number(self, tmp_path):
        seen = []
        for cell in ("x.plot()", "x.scatter()"):
            make(tmp_path, "demo", self.IMPORTS, cell, tags={3: "figure"})
            seen.append(self.hashes(tmp_path))
        assert seen[0][0] != seen[1][0]
        assert seen[0][1] == seen[1][1]

    def test_own_data_and_embedded_data_are_told_apart_by_their_content(self, tmp_path, monkeypatch):
        data_file = tmp_path / "own.csv"
        data_file.write_text("x")
        first = running.data_fingerprints(str(data_file))
        data_file.write_text("y")
        assert running.data_fingerprints(str(data_file)) != first
        monkeypatch.setenv("MOBPRIV_DATA", str(tmp_path))
        (tmp_path / "city.parquet").write_text("another city")
        another = running.data_fingerprints("city")
        monkeypatch.delenv("MOBPRIV_DATA")
        assert len(another) == 1
        assert running.data_fingerprints("city") != another


def project(tmp_path: Path, *names: str) -> Path:
    for name in names:
        make(tmp_path, name, SAVES)
    registry(tmp_path)
    files = "".join(f"  - file: notebooks/{name}\n" for name in names)
    (tmp_path / "book" / "_toc.yml").write_text(f"format: jb-book\nroot: index\nchapters:\n{files}")
    return tmp_path


@pytest.fixture
def built(capfd):
    """Builds a project; what it says."""

    def built(root: Path, **how) -> str:
        capfd.readouterr()
        build.build(root, render=False, **how)
        return capfd.readouterr().err.replace("\n", "")

    return built


def test_a_build_skips_what_has_not_changed(tmp_path, built):
    root, stamps = project(tmp_path, "one", "two"), []
    for unchanged in (0, 1):
        assert f"{unchanged} of 2 notebooks unchanged" in built(root)
        stamps.append({p.stem: p.stat().st_mtime_ns for p in (root / "book" / "_generated" / "executed" / "city").iterdir()})
        make(root, "two", SAVES, "2")
    assert [stamps[0][name] == stamps[1][name] for name in ("one", "two")] == [True, False]


@pytest.mark.usefixtures("new_processes")
def test_a_failing_notebook_stops_the_build_but_the_others_are_kept(tmp_path):
    root = project(tmp_path, "good", "wrong")
    make(root, "wrong", "1 / 0")
    with pytest.raises(build.BuildFailed, match=r"(?s)wrong: .*ZeroDivisionError"):
        build.build(root, render=False)
    assert [p.name for p in (root / "book" / "_generated" / "results" / "city").iterdir()] == ["good.json"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A project with a result on real data in each reading and its book built."""
    root = tmp_path_factory.mktemp("made")
    (root / "book").mkdir()
    project(root, "nb")
    runs_file = root / "book" / "results" / "runs.yml"
    text = runs_file.read_text().replace("variant: program, file", "variant: program, parameters: {variant: program}, file")
    runs_file.write_text(text)
    path = make(root, "nb", SAVES.replace('none": 0.5', 'none": 0.5 if variant == "text" else 0.25'))
    reads = 'variant: str = \\"text\\"  # of the paper, one of text | program\\nsizes: list'
    path.write_text(path.read_text().replace("sizes: list", reads))
    (root / "cabs.parquet").write_text("")
    with without_new_processes():
        build.real(root, [], root=root)
        build.build(root, render=False)
    return root


class TestCarryingOver:
    """A checkout before, whose results were made once, and one of today, whose computing cell says the same in another way."""

    @pytest.fixture
    def checkouts(self, made, tmp_path):
        before, today = tmp_path / "before", tmp_path / "today"
        shutil.copytree(made, before)
        shutil.copytree(made, today)
        rewrite(today / "notebooks" / "nb.ipynb", r'"import numpy as np\n",', r'"import numpy as np\n", "unused = 1\n",')
        return before, today

    def stale(self, root):
        return build.stale_results(build.all_records(root), root)

    def test_what_was_only_rearranged_is_carried_over(self, checkouts):
        before, today = checkouts
        both = {("cabspotting", "nb"), ("cabspotting-program", "nb")}
        assert self.stale(today) == both
        assert carrying.carry(before, today) == (sorted(both), {})
        assert self.stale(today) == set()
        build.write_pages({"nb": "city"}, today)
        status = (today / "book" / "_generated" / "status.md").read_text()
        assert status.count("at commit unknown; carried over at commit unknown |\n") == 2
        assert "was reorganised after this run" in (today / "book" / "notebooks" / "nb.ipynb").read_text()

    def test_another_reading_is_run_in_both(self, checkouts):
        before, today = checkouts
        rewrite(today / "notebooks" / "nb.ipynb", "else 0.25", "else 0.125")
        carried = carrying.carry(before, today)
        assert carried.results == [("cabspotting", "nb")]
        assert carried.kept_stale == {
            ("cabspotting-program", "nb"): "a quick run of the variant 'program' gives other numbers on the embedded data"
        }

    @pytest.mark.parametrize(
        ("where", "file", "old", "new", "reason"),
        [
            (
                "today",
                "_generated/results/city/nb.json",
                "0.07",
                "0.08",
                "its notebook gives other numbers on the embedded data",
            ),
            ("today", "results/cabspotting/nb.json", "0.07", "0.06", "it differs from the result before"),
            (
                "today",
                "results/runs.yml",
                'data: cabspotting, file: "c*.parquet"',
                'data: cabspotting, parameters: {seed: 2}, file: "c*.parquet"',
                "its run had other parameters than today's: seed = 2",
            ),
            ("before", "../notebooks/nb.ipynb", "0.07", "0.06", "it was stale before"),
            ("before", "_generated/results/city/nb.json", "", None, "its notebook has no embedded results in both"),
        ],
    )
    def test_what_stays_stale_and_why(self, checkouts, where, file, old, new, reason):
        before, today = checkouts
        path = (before if where == "before" else today) / "book" / file
        path.unlink() if new is None else rewrite(path, old, new)
        for root in checkouts:  # the program's reading is another test's: its quick runs take long
            (root / "book" / "results" / "cabspotting-program" / "nb.json").unlink()
        carried = carrying.carry(before, today)
        assert not carried.results
        assert carried.kept_stale[("cabspotting", "nb")].startswith(reason)
        assert self.stale(today) == {("cabspotting", "nb")}


def rewrite(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_two_builds_in_one_folder(tmp_path, built):
    root = project(tmp_path, "one")
    with build.build_lock(root), pytest.raises(ValueError, match=f"^another build is running in {root.name}: wait"):
        built(root)
    built(root)


@pytest.mark.parametrize("broken", ["", "{", "[]", '{"results": {}}'])
def test_a_broken_result_is_named_and_made_again(tmp_path, built, broken):
    root = project(tmp_path, "one")
    built(root)
    result = root / "book" / "_generated" / "results" / "city" / "one.json"
    intact = result.read_text()
    result.write_text(broken)
    assert "one.json is" in built(root)
    assert json.loads(result.read_text())["results"] == json.loads(intact)["results"]


def test_a_broken_published_result_stops_the_build_with_its_name(tmp_path):
    root = project(tmp_path, "one")
    (broken := root / "book" / "results" / "cabspotting" / "one.json").parent.mkdir()
    broken.write_text("{")
    refuses(r"cabspotting/one.json is broken .*: delete it and run its notebook again", build.build, root, render=False)


def test_only_runs_whose_file_is_there_are_named(tmp_path, capsys):
    root = project(tmp_path, "nb")
    path = root / "book" / "results" / "runs.yml"
    path.write_text(path.read_text().replace('variant: program, file: "c*.parquet"', "variant: program, file: other.parquet"))
    (tmp_path / "cabs.parquet").write_text("")
    build.real(tmp_path, [], root=root)
    said = capsys.readouterr().err
    assert "1 to run" in said
    assert "cabspotting/nb: not run before" in said
    assert "cabspotting-program" not in said


def test_notebooks_on_real_data_are_planned_by_their_last_run_the_longest_first(tmp_path, capsys):
    root = project(tmp_path, "nb")
    (tmp_path / "cabs.parquet").write_text("")
    build.real(tmp_path, [], root=root)
    capsys.readouterr()
    for seconds, run_name in ((30, "cabspotting"), (300, "cabspotting-program")):
        path = root / "book" / "results" / run_name / "nb.json"
        record = json.loads(path.read_text())
        record["provenance"] |= {"seconds": seconds, "content_hash": "of older code"}
        path.write_text(json.dumps(record))
    build.real(tmp_path, [], root=root)
    said = capsys.readouterr().err
    assert "0 of 2 notebooks unchanged, 2 to run" in said
    assert re.findall(r"(\S+)/nb: ([\d.]+) min", said) == [("cabspotting-program", "5.0"), ("cabspotting", "0.5")]


def test_a_result_of_code_that_has_changed_since_is_stale(tmp_path, built):
    root = project(tmp_path, "nb")
    (real := tmp_path / "real").mkdir()
    (real / "cabs.parquet").write_text("")
    build.real(real, [], root=root)
    for stale in ("none", "2"):
        assert ("2 results on real data are stale" in built(root)) == (stale == "2")
        status = (root / "book" / "_generated" / "status.md").read_text()
        assert f"2 results on real data, {stale} of them stale." in status
        make(root, "nb", SAVES.replace("0.07", "0.08"))
    page = (root / "book" / "notebooks" / "nb.ipynb").read_text()
    assert "has changed since they were computed: Cabspotting; Cabspotting, as the program" in page


def test_synthetic_people_on_real_boundaries_are_counted_apart_from_real_data():
    both = {name: runs.Run(name, name, "calls", file=f"{name}.parquet", made_up=name == "towns") for name in ("cabs", "towns")}
    registry = runs.Registry(both | {"region": runs.Run("region", "region", "calls", synthetic=True)}, {})
    record = {"provenance": {"commit": "1a", "seconds": 2.0, "parameters": {}}}
    cabs, region = {"one": record, "two": record}, {"region": {"one": record}}
    for records, stale, counts in (
        ({"cabs": cabs, "towns": {"one": record}} | region, {("towns", "one")}, ["2 results", "none", "1 result", "1"]),
        ({"cabs": cabs, "towns": {}} | region, {("cabs", "two")}, ["2 results", "1"]),
        ({"cabs": {}, "towns": {}, "region": {}}, (), []),
    ):
        first = pages.status_page(records, registry, stale, {}).partition("\n")[0]
        assert re.findall(r"\d results?\b|\w+(?= of them stale)", first) == counts


def test_a_full_disk_leaves_all_files_or_none(tmp_path, monkeypatch):
    one, two = tmp_path / "one.json", tmp_path / "two.json"
    provenance.write_all({one: "old", two: "old"})
    write = Path.write_text

    def full(path, text, **options):
        if "two" in path.name:
            write(path, text[:2], **options)
            raise OSError(28, "No space left on device")
        return write(path, text, **options)

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match=r"not written, and nothing of it was kept \(No space left on device\): .*two\.json"):
        provenance.write_all({one: "new", two: "new"})
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"one.json": "old", "two.json": "old"}


def test_every_notebook_stands_in_the_table_of_contents(tmp_path):
    root = project(tmp_path, "one")
    make(root, "two")
    with pytest.raises(build.BuildFailed, match=r"book/_toc.yml lacks notebooks/two"):
        build.build(root, render=False)


def test_a_page_holds_the_notebooks_that_are_merged_into_it(tmp_path, built):
    figure = "from IPython.display import HTML\nHTML('<figure><span class=\"figure-number\"></span></figure>')"
    root = project(tmp_path, "one", "three")
    for name in ("one", "two", "three"):
        make(root, name, SAVES, figure, tags={3: "figure"})
    (root / "book" / "merged.yml").write_text("one: [two]\n")
    built(root)
    assert {path.stem for path in (root / "book" / "notebooks").glob("*.ipynb")} == {"one", "three"}
    page = (root / "book" / "notebooks" / "one.ipynb").read_text()
    assert re.findall(r"Figure (\w+)\.", page) == ["T1", "T2"]
    assert [f"mobpriv run {name}`" in page for name in ("one", "two", "three")] == [True, True, False]
    assert "Figure T2." in build.figure("two", root)
    assert "Figure T1." in build.figure("one", root)
    assert (root / "book" / "_generated" / "downloads" / "source" / "two.ipynb").is_file()
    assert [file for files in build.chapters_of(root).values() for file in files][:2] == ["notebooks/one", "notebooks/two"]
    assert "notebooks/two" not in [file for files in build.pages_of(root).values() for file in files]


def test_figures_of_two_parts_that_begin_alike_have_letters_of_their_own(tmp_path, built):
    figure = "from IPython.display import HTML\nHTML('<figure><span class=\"figure-number\"></span></figure>')"
    parts = {"one": "About", "two": "A mechanism", "three": "A"}
    root = project(tmp_path, *parts)
    for name in parts:
        make(root, name, SAVES, figure, tags={3: "figure"})
    listed = "".join(f"  - file: notebooks/{name}\n    title: {caption}\n" for name, caption in parts.items())
    (root / "book" / "_toc.yml").write_text(f"format: jb-book\nroot: index\nchapters:\n{listed}")
    built(root)
    written = [(root / "book" / "notebooks" / f"{name}.ipynb").read_text() for name in parts]
    assert [re.findall(r"Figure (\w+)\.", page) for page in written] == [["A1"], ["M1"], ["B1"]]


def test_the_foot_of_a_page_says_where_its_numbers_come_from(tmp_path):
    record = run(make(tmp_path, "demo", SAVES), tmp_path)
    foot = pages.footer("demo", {"city": record}, REGISTRY)
    defaults = "<dt>parameters</dt><dd>All parameters have their default values.</dd>"
    parts = ["synthetic city (synthetic)", "abababab", defaults, "<code>mobpriv run demo</code>", "results on synthetic city"]
    assert [part for part in parts if part not in foot] == []
    # of several runs it says once what they share
    other = {**record, "provenance": {**record["provenance"], "selection": "1,234,567 records of < cabs"}}
    both = pages.footer("demo", {"city": record, "cabspotting": other}, REGISTRY, stale=["cabspotting"])
    commit = record["provenance"]["commit"]
    counts = {commit: 1, "<dt>selected data</dt>": 2, "<strong>all runs</strong>": 1, "since this run (stale).</dd>": 1}
    assert {part: both.count(part) for part in counts} == counts
    assert "<dd>1\u202f234\u202f567 records of &lt; cabs</dd>" in both
    assert "all runs" not in foot
    # no empty file is offered
    without = pages.footer("demo", {"city": {**record, "results": {}}}, REGISTRY)
    assert [words for words in ("results on", "all numbers", "source notebook") if words in without] == ["source notebook"]


def test_all_numbers_of_a_page_as_one_table():
    words = quantities.names({"nb": {"rate.{attack}.{n}": ["share", "rate of {attack}, {n} users"]}}, {}, REGISTRY.runs)
    estimate = {"value": 0.5, "low": 0.4, "high": 0.6, "n": 20, "interval": "Wilson, 95 %"}
    results = {"rate.AP.0.5": estimate, "k": "infinite", "held": True, "rows": [{"a": 1}]}
    text = pages.numbers("nb", {"geolife-program": {"results": results}}, words, REGISTRY)
    assert text.splitlines() == [
        "run,data set,name,quantity,attack,n_,value,low,high,n,interval,unit,words",
        'geolife-program,GeoLife (author\'s code),rate.AP.0.5,rate,AP,0.5,0.5,0.4,0.6,20,"Wilson, 95 %",share,"rate of AP, 0.5 users"',
        "geolife-program,GeoLife (author's code),k,k,,,inf,,,,,,",
        "geolife-program,GeoLife (author's code),held,held,,,True,,,,,,",
    ]


def test_provenance_names_the_parameters_that_were_given_in_words(tmp_path):
    record = run(make(tmp_path, "demo", SAVES), tmp_path, {"cell": 1500, "sizes": [3], "quick": True})["provenance"]
    row = pages.provenance_row(record)
    assert row["parameters"].startswith("cell: 1\u202f500; sizes: 3; quick: yes. ")
    assert row["command"] == "`mobpriv run demo -p cell=1500.0 -p 'sizes=[3]' --quick`"


def test_a_step_is_computed_once_and_read_afterwards(tmp_path, monkeypatch):
    calls = []

    def compute(x):
        calls.append(x)
        return {"x": (x, 2)}

    assert book.step("by hand", compute, 1) == {"x": [1, 2]}  # as it would come back from JSON
    monkeypatch.setenv(results.STEPS_FOLDER, str(tmp_path))
    assert [book.step("W4M 0.2", compute, 3) for _ in range(2)] == [{"x": [3, 2]}] * 2
    assert calls == [1, 3]


def test_an_interrupted_run_goes_on_behind_its_last_step(tmp_path):
    done = tmp_path / "done.txt"
    path = make(
        tmp_path,
        "long",
        "from pathlib import Path\nfrom mobpriv import book\n"
        "def first():\n    Path(dataset).open('a').write('x')\n    return len(Path(dataset).read_text())\n"
        "one = book.step('first', first)\nassert not Path(dataset).with_name('stop').exists()\nbook.save({'one': one})",
    )
    (tmp_path / "stop").touch()
    target = {"output": tmp_path / "out.ipynb", "results": tmp_path / "out.json", "root": tmp_path, "key": "the same"}
    for _ in range(2):
        with pytest.raises(running.CellFailed):
            running.run(path, {"dataset": str(done)}, **target)
    (tmp_path / "stop").unlink()
    assert running.run(path, {"dataset": str(done)}, **target)["results"] == {"one": 1}
    assert done.read_text() == "x"  # the first step ran once in three runs
    assert not list(tmp_path.glob(".*steps"))


def test_steps_of_other_parameters_are_not_taken(tmp_path):
    stops = "from pathlib import Path\nassert not Path('stop').exists()\nbook.save({'cell': kept})"
    path = make(tmp_path, "long", f"from mobpriv import book\nkept = book.step('cell', lambda: cell)\n{stops}")
    (tmp_path / "stop").touch()
    with pytest.raises(running.CellFailed):
        run(path, tmp_path, {"cell": 400})
    assert list(tmp_path.glob(".long.*.steps/cell.json"))  # kept for the same run
    (tmp_path / "stop").unlink()
    assert run(path, tmp_path, {"cell": 200})["results"] == {"cell": 200}


def test_a_page_is_made_again_when_a_published_result_beside_its_own_changes(tmp_path, built):
    root = project(tmp_path, "one", "two")
    make(root, "two", SAVES, "book.compared('two', {'draw': draw}, data).table({'draw': 'a draw'})")
    built(root)
    (published := root / "book" / "results" / "cabspotting" / "two.json").parent.mkdir()
    record = json.loads((root / "book" / "_generated" / "results" / "city" / "two.json").read_text())
    for draw in (0.25, 0.5):
        record["results"]["draw"] = draw
        published.write_text(json.dumps(record))
        assert "1 of 2 notebooks unchanged, 1 to run" in built(root)
    (words := root / "book" / "quantities" / "p.yml").parent.mkdir(exist_ok=True)
    two = "two: {draw: ['', a draw], '{name}': ['', another], 'rate.{attack}.{mechanism}': [share, a rate]}"
    for entries, to_run in ((two, 1), (f"{two}, another: {{x: ['', an x]}}", 0)):
        words.write_text(f"quantities: {{{entries}}}")
        assert f"{2 - to_run} of 2 notebooks unchanged, {to_run} to run" in built(root)


def test_a_quick_build_marks_its_verdicts_and_may_lack_what_the_ledger_wants(tmp_path, built):
    root = project(tmp_path, "one")
    make(root, "one", SAVES, "if not quick:\n    book.save({'long': 1, 'draw': draw}, data)")
    claim = "{id: A, place: x, claim: y, notebook: one, relation: 'long == 1'}"
    for folder, text in (
        ("claims", f"paper: p\nclaims:\n  - {claim}\n"),
        (
            "quantities",
            "quantities: {one: {long: ['', the long one], '{name}': ['', another], 'rate.{attack}.{mechanism}': [share, a rate]}}",
        ),
    ):
        (root / "book" / folder).mkdir()
        (root / "book" / folder / "p.yml").write_text(text)
    score = root / "book" / "_generated" / "score_p.md"
    built(root, quick=True)
    assert "1 not judged in this quick build" in score.read_text()
    built(root)
    assert 'synthetic city</th><td role="cell" class="agrees" data-label="✓ agrees"><a href="?' in score.read_text()


def test_kernels_start_anew_where_the_package_has_changed_since_they_were_prepared(monkeypatch):
    """A forked one would compute with the old code and be recorded with the new."""
    factory = KernelProvisionerFactory.instance()
    with kernels():
        assert factory.default_provisioner_name == warm_kernels.NAME or sys.platform != "linux"
    monkeypatch.setattr(factory, "default_provisioner_name", "local-provisioner")
    monkeypatch.setattr(warm_kernels, "_begun", [0.0])
    with kernels():
        assert factory.default_provisioner_name == "local-provisioner"
