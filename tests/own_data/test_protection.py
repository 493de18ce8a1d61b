"""A protected table: its columns, names, order and manifest; the refusals; the random numbers behind it."""

import json
import threading

import numba
import numpy as np
import pandas as pd
import pytest
from scipy import stats
from typer.testing import CliRunner

from mobpriv import datasets
from mobpriv.base.system_noise import SystemGenerator
from mobpriv.cli import app
from mobpriv.mechanisms import GeoI, Nothing
from mobpriv.own_data import protection
from mobpriv.traces.table import as_traces


@pytest.fixture
def file(tmp_path):
    """Three users under usual names of columns, with times in ms, another column and a record that cannot be."""
    rows = {
        "uid": ["zoe", "ann", "bob", "ann", "zoe", "bob"],
        "timestamp": [1_400_000_000_000 + 60_000 * k for k in (5, 2, 1, 0, 3, 9)],
        "latitude": [45.0, 45.1, 45.2, 45.3, 45.4, 145.0],
        "longitude": 4.8,
        "phone": "555-0100",
    }
    pd.DataFrame(rows).to_csv(tmp_path / "my.csv", index=False)
    return tmp_path / "my.csv"


def call(*arguments):
    result = CliRunner().invoke(app, ["protect", *map(str, arguments)], env={"COLUMNS": "200"})
    assert not result.exception or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stdout, result.stderr


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_the_published_table_has_the_form_of_the_given_one_and_tells_nothing_else(file, ending):
    output = file.with_name(f"out.{ending}")
    assert call(file, "--with", "nothing", "-o", output)[0] == 0
    published = pd.read_csv(output) if ending == "csv" else pd.read_parquet(output)
    assert list(published) == ["uid", "timestamp", "latitude", "longitude"]
    assert [name.split("-")[1] for name in sorted(set(published["uid"]))] == ["1", "2", "3"]
    assert not set(published["uid"]) & {"ann", "bob", "zoe"}
    assert published.equals(published.sort_values(["uid", "timestamp"], ignore_index=True))
    given = pd.read_csv(file).query("latitude < 90")
    columns = ["timestamp", "latitude", "longitude"]
    assert sorted(published[columns].values.tolist()) == sorted(given[columns].values.tolist())
    manifest = json.loads(file.with_name(f"out.{ending}.manifest.json").read_text())
    assert manifest["users"] == {"given": 3, "published": 3, "names": "new"}
    assert (manifest["records"]["given"], manifest["records"]["published"]) == (5, 5)
    assert list(manifest["records"]["left out when read"].values()) == [1]
    assert manifest["columns"]["left out"] == ["phone"]
    assert manifest["input"]["sha256"] == datasets.sha256_of(file)
    assert "seed" not in manifest


def test_the_order_of_the_given_records_makes_no_difference(file):
    tables = []
    for name in ("a", "b"):
        assert call(file, "--with", "geoi(epsilon=0.02)", "--seed", 3, "-o", file.with_name(f"{name}.csv"))[0] == 0
        tables.append(file.with_name(f"{name}.csv").read_text())
        pd.read_csv(file).iloc[::-1].to_csv(file, index=False)
    assert tables[0] == tables[1]
    manifest = json.loads(file.with_name("a.csv.manifest.json").read_text())
    assert (manifest["seed"], manifest["guarantee"]) == (3, "none: anybody with the seed can remove the noise")


def test_without_a_seed_nobody_can_draw_the_noise_again(file):
    for name in ("a", "b"):
        assert call(file, "--with", "geoi", "--keep-names", "-o", file.with_name(f"{name}.csv"))[0] == 0
    first, second = (pd.read_csv(file.with_name(f"{name}.csv")) for name in "ab")
    assert first["uid"].equals(second["uid"])
    assert set(first["uid"]) == {"ann", "bob", "zoe"}
    assert (first["latitude"] != second["latitude"]).all()


def test_epsilon_adds_up_over_the_records_of_a_user():
    t = pd.date_range("2020-01-01", periods=8, freq="h", tz="UTC")
    traces = as_traces(pd.DataFrame({"user": list("aaaaaccd"), "t": t, "lat": 45.0, "lng": 4.8}))
    guarantee = protection.protect(traces, GeoI(0.01), SystemGenerator()).manifest["guarantee"]
    assert "ε = 0.01 per metre for each record" in guarantee
    assert "0.02 per metre for the median user (2 records), 0.05 for the one with the most (5)" in guarantee
    assert protection.protect(traces, Nothing(), np.random.default_rng(1)).manifest["guarantee"].startswith("none by noise")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("promes", "(got 'promes'): write for example --with Promesse"),
        ("hmc", "HMC needs known: use it in Python"),
        ("hybrid()", "Hybrid needs mechanisms, attacks"),
        ("geoi(eps=1)", "GeoI takes epsilon, plane, written as GeoI(name=value) (got eps in 'geoi(eps=1)')"),
        ("geoi(0.1)", "(got 0.1 in 'geoi(0.1)')"),
        ("geoi(epsilon=open('x'))", "GeoI takes epsilon"),
        ("geoi(", "GeoI takes epsilon"),
        ("geoi)(", "a mechanism is one of"),
        ("geoi(epsilon=1) or 2", "GeoI takes epsilon"),
        ("geoi(epsilon=0.01,epsilon=10)", "GeoI takes epsilon"),
        ("geoi(epsilon=0.01)(epsilon=1)", "GeoI takes epsilon"),
        ("geoi(epsilon=1)#x", "GeoI takes epsilon"),
        ("geoi(epsilon={[]:1})", "GeoI takes epsilon"),
        ("nothing(a=1)", "Nothing takes no parameters"),
        ("geoi(epsilon=-1)", "epsilon must be positive, in 1/m (got -1)"),
        ("", "a mechanism is one of"),
    ],
)
def test_a_refused_mechanism(file, text, says):
    code, out, error = call(file, "--with", text, "-o", file.with_name("out.csv"))
    assert (code, out, error.count("\n")) == (2, "", 1)
    assert says in error
    assert not file.with_name("out.csv").exists()


@pytest.mark.parametrize(
    ("data", "output", "says"),
    [
        ("my.csv", "out.txt", "ends in .parquet or .csv"),
        ("my.csv", "my.csv", "another file than the table"),
        ("my.csv", "none/out.csv", "there is no folder"),
        ("my.csv", "out.csv --pairs out.csv", "the pairs go to another file"),
        ("my.csv", "out.csv --pairs pairs.txt", "that ends in .csv"),
        ("my.csv", "out.csv --pairs none/pairs.csv", "there is no folder"),
        ("other.csv", "out.csv", "there is no file or data set"),
        ("region", "out.csv", "holds call records"),
    ],
)
def test_a_refused_table(file, monkeypatch, data, output, says):
    monkeypatch.chdir(file.parent)
    code, out, error = call(data, "--with", "geoi", "-o", *output.split())
    assert (code, out, error.count("\n")) == (2, "", 1)
    assert says in error


def test_a_table_is_written_whole_or_not_at_all(file, monkeypatch):
    output = file.with_name("out.csv")
    output.write_text("before")
    monkeypatch.setattr(protection.json, "dumps", lambda *_, **__: 1 / 0)
    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        call(file, "--with", "geoi", "-o", output)
    assert output.read_text() == "before"
    assert sorted(path.name for path in file.parent.iterdir()) == ["my.csv", "out.csv"]


def test_pairs_of_another_run_match_no_name(file):
    names = []
    for _ in range(2):
        assert call(file, "--with", "nothing", "-o", file.with_name("out.csv"))[0] == 0
        names.append(set(pd.read_csv(file.with_name("out.csv"))["uid"]))
    assert not names[0] & names[1]


@pytest.mark.parametrize("plane", ["ground", "mercator"])
def test_only_noise_on_the_ground_has_a_guarantee(file, plane):
    assert call(file, "--with", f"geoi(plane='{plane}')", "-o", file.with_name("out.csv"))[0] == 0
    guarantee = json.loads(file.with_name("out.csv.manifest.json").read_text())["guarantee"]
    assert guarantee.startswith("none stated") == (plane == "mercator")


def test_nothing_is_published_if_the_random_numbers_fail(file, monkeypatch):
    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr("mobpriv.base.system_noise.os.urandom", interrupted)
    code, _, error = call(file, "--with", "geoi", "-o", file.with_name("out.csv"))
    assert (code, error.count("\n")) == (2, 1)
    assert "random numbers failed" in error
    assert not file.with_name("out.csv").exists()


def test_no_signal_can_interrupt_a_draw():
    """Signals reach the main thread only."""

    class Watched(Nothing):
        def protect(self, traces, rng):
            threads.append(threading.current_thread())
            return traces

    threads = []
    t = pd.date_range("2020-01-01", periods=2, freq="h", tz="UTC")
    traces = as_traces(pd.DataFrame({"user": ["a", "b"], "t": t, "lat": 45.0, "lng": 4.8}))
    protection.protect(traces, Watched(), SystemGenerator())
    assert threads[0] is not threading.main_thread()


class TestSystemGenerator:
    def test_its_numbers_follow_their_laws(self):
        rng = SystemGenerator()
        assert stats.kstest(rng.random(20_000), "uniform").pvalue > 1e-6
        assert stats.kstest(rng.standard_exponential(20_000), "expon").pvalue > 1e-6
        counts = np.bincount(rng.integers(0, 7, 70_000, dtype=np.uint32), minlength=7)
        assert stats.chisquare(counts).pvalue > 1e-6
        assert sorted(rng.permutation(50)) == list(range(50))

    def test_compiled_code_can_draw_from_it(self):
        @numba.njit(nogil=True)
        def mean(rng, n):
            total = 0.0
            for _ in range(n):
                total += rng.random()
            return total / n

        assert abs(mean(SystemGenerator(), 20_000) - 0.5) < 0.02

    def test_children_and_other_generators_draw_other_numbers(self):
        rng = SystemGenerator()
        drawn = [generator.random() for generator in (rng, *rng.spawn(3), SystemGenerator())]
        assert len(set(drawn)) == 5

    def test_a_failed_draw_of_a_child_is_known_to_its_parent(self, monkeypatch):
        def fails(_):
            raise OSError

        rng = SystemGenerator()
        (child,) = rng.spawn(1)
        monkeypatch.setattr("mobpriv.base.system_noise.os.urandom", fails)
        child.random()
        assert rng.failures
