"""A protected table: its columns, names, order and manifest; the refusals; the random numbers behind it."""

import json
import threading

import numba
import numpy as np
import pandas as pd
import pytest
from conftest import refuses
from scipy import stats
from typer.testing import CliRunner

from mobpriv import datasets
from mobpriv.base.system_noise import SystemGenerator
from mobpriv.book import provenance
from mobpriv.cli import app
from mobpriv.mechanisms import W4M, GeoI, Nothing
from mobpriv.own_data import protection, recommended
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


def crowd(users=6, records=40, decimals=5):
    """Users who walk together, with positions of so many decimals."""
    rng = np.random.default_rng(1)
    lat = np.round(45 + np.cumsum(rng.normal(0, 1e-4, records)), decimals)
    blocks = [
        pd.DataFrame(
            {
                "user": f"u{i}",
                "t": pd.date_range("2020-01-01", periods=records, freq="min", tz="UTC"),
                "lat": np.round(lat + rng.normal(0, 2e-4, records), decimals),
                "lng": np.round(4.8 + 0.001 * i, decimals),
            }
        )
        for i in range(users)
    ]
    return as_traces(pd.concat(blocks, ignore_index=True))


@pytest.mark.parametrize("decimals", [4, 5, 6])
def test_decimals_do_not_mark_the_records_that_w4m_moves(decimals):
    traces, mechanism = crowd(decimals=decimals), W4M(delta=20.0)
    computed = mechanism.protect(traces, np.random.default_rng(1))["lat"]
    moved = ~computed.isin(traces["lat"])
    assert 0 < moved.sum() < len(moved)
    assert (computed[moved].round(decimals) != computed[moved]).all()  # digits beyond those of the given table
    protected = protection.protect(traces, mechanism, np.random.default_rng(1))
    assert protected.manifest["decimals"]["of all positions"] == decimals
    for name in ("lat", "lng"):
        assert (protected.table[name].round(decimals) == protected.table[name]).all()


def test_a_mechanism_that_moves_every_record_publishes_seven_decimals():
    protected = protection.protect(crowd(), GeoI(), np.random.default_rng(1))
    assert protected.manifest["decimals"] == {"of all positions": 7, "unchanged positions": 0}
    assert (protected.table["lat"].round(7) == protected.table["lat"]).all()
    assert (protected.table["lat"].round(6) != protected.table["lat"]).mean() > 0.8


@pytest.mark.parametrize(
    ("mechanism", "warning"),
    [
        ("geoi(epsilon=1e100)", "240 of 240 records are published where they were"),
        ("geoi(epsilon=1e-9)", "records are published more than 10° of latitude away"),
        ("promesse(alpha=1e9)", "the mechanism publishes no record: choose other parameters"),
        ("geoi", None),
        ("promesse(alpha=20)", None),
    ],
)
def test_a_valid_but_absurd_setting_is_a_warning(tmp_path, mechanism, warning):
    crowd().to_parquet(tmp_path / "my.parquet")
    code, out, _ = call(tmp_path / "my.parquet", "--with", mechanism, "-o", tmp_path / "out.parquet")
    lines = [line for line in out.replace("\u202f", " ").splitlines() if line.startswith("Warning: ")]
    assert (code, len(lines)) == (0, bool(warning))
    assert not warning or warning in lines[0]
    manifest = json.loads((tmp_path / "out.parquet.manifest.json").read_text())
    assert len(manifest["warnings"]) == bool(warning)


@pytest.mark.parametrize(("kept", "warnings"), [(2, ["4 of 6 users are left out"]), (3, [])])
def test_more_than_half_of_the_users_left_out_is_a_warning(kept, warnings):
    class First(GeoI):
        def protect(self, traces, rng):
            return super().protect(as_traces(traces[traces["user"].astype(str) < f"u{kept}"]), rng)

    assert protection.protect(crowd(), First(), np.random.default_rng(1)).manifest["warnings"] == warnings


TIMES = pd.Series(pd.date_range("2020-01-01", periods=40, freq="min", tz="UTC"))


@pytest.mark.parametrize("mechanism", ["nothing", "promesse(alpha=20)"])
@pytest.mark.parametrize(
    "t",
    [
        *(TIMES.dt.as_unit(unit) for unit in ("s", "ms", "us", "ns")),
        *((TIMES.dt.as_unit("s").astype("int64")).astype(kind) for kind in ("int32", "int64", "float64")),
        TIMES.dt.as_unit("ms").astype("int64"),
    ],
    ids=lambda t: f"{t.dtype} {t.iloc[0]}",
)
def test_times_keep_their_type_and_unit(tmp_path, t, mechanism):
    given = crowd().assign(t=np.tile(t.to_numpy(), 6) if t.dtype.kind != "M" else pd.concat([t] * 6, ignore_index=True))
    given.to_parquet(tmp_path / "my.parquet")
    assert call(tmp_path / "my.parquet", "--with", mechanism, "-o", tmp_path / "out.parquet")[0] == 0
    published = pd.read_parquet(tmp_path / "out.parquet")["t"]
    assert published.dtype == pd.read_parquet(tmp_path / "my.parquet")["t"].dtype
    assert t.min() <= published.min() <= published.max() <= t.max()
    if mechanism == "nothing":
        assert set(published) == set(t)


@pytest.mark.parametrize(("first", "form"), [(1_577_836_800, "int64"), (1_577_836_800.5, "float64")])
def test_whole_seconds_of_a_text_stay_whole(tmp_path, first, form):
    crowd().assign(t=np.tile(first + 60 * np.arange(40), 6)).to_csv(tmp_path / "my.csv", index=False)
    assert call(tmp_path / "my.csv", "--with", "promesse(alpha=20)", "-o", tmp_path / "out.csv")[0] == 0
    assert pd.read_csv(tmp_path / "out.csv")["t"].dtype == form


def test_the_manifest_has_the_hash_of_the_output_and_epsilon_in_numbers(file):
    output = file.with_name("out.csv")
    assert call(file, "--with", "geoi(epsilon=0.02)", "-o", output)[0] == 0
    manifest = json.loads(file.with_name("out.csv.manifest.json").read_text())
    assert manifest["output"] == {"file": "out.csv", "sha256": datasets.sha256_of(output)}
    assert manifest["epsilon"] == {"unit": "1/m", "each record": 0.02, "median user": 0.04, "user with the most records": 0.04}
    assert call(file, "--with", "geoi(epsilon=0.02)", "--seed", 1, "-o", output)[0] == 0
    assert "epsilon" not in json.loads(file.with_name("out.csv.manifest.json").read_text())


def test_an_interrupt_says_that_nothing_is_written(file, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(protection, "protect", interrupted)
    code, _, error = call(file, "--with", "geoi", "-o", file.with_name("out.csv"))
    assert (code, error) == (130, "mobpriv: interrupted (nothing is written)\n")
    assert not file.with_name("out.csv").exists()


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
        ("w4m(times='wrapper')", "repeats a mistake of the thesis author's program, which moves all records to January 1970"),
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
        ("other.csv", "out.csv", "there is no file other.csv"),
        ("region", "out.csv", "a mechanism for call records is one of"),
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


def test_pairs_of_an_earlier_run_are_not_replaced(file):
    """They may be the only way back to the users' names."""
    output, pairs = file.with_name("out.csv"), file.with_name("secret.csv")
    assert call(file, "--with", "nothing", "-o", output, "--pairs", pairs)[0] == 0
    before = pairs.read_text(), output.read_text()
    code, _, error = call(file, "--with", "nothing", "-o", output, "--pairs", pairs)
    assert (code, error.count("\n")) == (2, 1)
    assert "may hold the only pairs of an earlier table" in error
    assert (pairs.read_text(), output.read_text()) == before


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


ASSESSED = {  # setting -> bounds of the share re-identified, of the coverage, of the distance
    "none": ((0.5, 0.7), (1, 1), (0, 0)),
    "Promesse at 200 m": ((0.1, 0.3), (0.8, 0.9), (500, "infinite")),
    "Promesse at 500 m": ((0.0, 0.2), (0.5, 0.7), (900, "infinite")),
    "Geo-I at 1000 m": ((0.1, 0.2), (0.3, 0.5), (900, 1100)),
    "HMC": ((0.0, 0.1), (0.9, 1.0), (100, 200)),
    "Optimal channel at 1000 m": ((0.0, 0.1), (0.9, 1.0), (100, 200)),
}


class TestGoal:
    """`mobpriv protect --goal`: the setting that keeps most, of those that the assessment shows to meet the goal."""

    def results(self):
        return {
            f"bound.{quantity}.{name}": {"value": low, "low": low, "high": high}
            for name, bounds in ASSESSED.items()
            for quantity, (low, high) in zip(("either", "coverage", "time"), bounds, strict=True)
        }

    @pytest.mark.parametrize(
        ("goals", "name"),
        [
            ({"max_reidentified": 0.3}, "Promesse at 200 m"),
            ({"max_reidentified": 0.2}, "Promesse at 500 m"),  # HMC and the channel need the traces that the adversary knows
            ({"max_reidentified": 0.3, "max_distance": 1100}, "Geo-I at 1000 m"),
            ({"min_coverage": 0.8}, "none"),
        ],
    )
    def test_the_setting_that_keeps_most(self, goals, name):
        assert recommended.setting_for(self.results(), goals) == name

    def test_no_setting(self):
        refuses(
            "none of the 4 settings .* is shown to meet the goal",
            recommended.setting_for,
            self.results(),
            {"max_reidentified": 0.1},
        )

    def test_the_command_takes_it_from_a_finished_assessment_of_the_same_table(self, file, monkeypatch):
        monkeypatch.chdir(file.parent)
        line = ("my.csv", "--goal", "re-identified < 25 %", "-o", "out.csv")
        assert "run mobpriv assess" in call(*line)[2]
        folder = file.parent / "runs" / "across_traces" / "my"
        folder.mkdir(parents=True)
        record = {"results": self.results(), "provenance": dict.fromkeys(provenance.RECORDED) | {"parameters": {}}}

        def assessed(**changed):
            of_file = {"parameters": {}, "data": {"sha256": datasets.sha256_of(file)}}
            record["provenance"] |= of_file | changed
            (folder / "across_traces.json").write_text(json.dumps(record))
            return call(*line)

        assert "is not a result" in assessed(parameters={"quick": True})[2]
        code, out, error = assessed()
        assert code == 0, error
        assert out.startswith("the assessment recommends Promesse at 500 m\n")
        manifest = json.loads((file.parent / "out.csv.manifest.json").read_text())
        assert manifest["mechanism"]["alpha"] == 500
        assert manifest["chosen"]["goal"] == ["re-identified < 25 %"]
        assert "there is no assessment" in assessed(data={"sha256": "of another table"})[2]
