"""A protected table beside the published mechanisms: its rates, how users are matched, the refusals."""

import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from conftest import refusals, refuses
from typer.testing import CliRunner

from mobpriv import cli
from mobpriv.attacks import APAttack
from mobpriv.attacks.policies import reidentified
from mobpriv.base import estimates
from mobpriv.cli import app
from mobpriv.mechanisms import GeoI, Nothing
from mobpriv.metrics import spatial_distortion
from mobpriv.own_data.judging import UNITS, judge, matched, read_pairs
from mobpriv.traces.table import as_traces, by_user, split_in_half


def people(n=6, days=4, seed=0):
    """Users who stay at a place of their own for hours, and walk there in between."""
    rng = np.random.default_rng(seed)
    t = pd.date_range("2020-01-06", periods=days * 24 * 6, freq="10min", tz="UTC")
    homes = rng.uniform(0, 0.2, (n, 2))
    blocks = [
        pd.DataFrame({"user": f"u{i}", "t": t, "lat": 45 + home[0] + 0.02 * (t.hour > 12), "lng": 4.8 + home[1]})
        for i, home in enumerate(homes)
    ]
    return as_traces(pd.concat(blocks, ignore_index=True))


@pytest.fixture(scope="module")
def original():
    return people()


def values(numbers, mechanism):
    return numbers[numbers["mechanism"] == mechanism].set_index("quantity")[["value", "low", "high", "n"]]


def test_an_unprotected_table_has_the_numbers_of_no_protection(original):
    numbers = judge(original, original, np.random.default_rng(1), [Nothing()])
    pd.testing.assert_frame_equal(values(numbers, "given table"), values(numbers, "none"))
    assert values(numbers, "none").loc[["area coverage", "distance to the path", "users left out"], "value"].tolist() == [
        1,
        0,
        0,
    ]


def test_the_numbers_are_those_of_attack_and_metric(original):
    protected = GeoI(0.002).protect(original, np.random.default_rng(3))
    known, secret = split_in_half(original, "set")
    attacked = split_in_half(protected, "set").secret
    numbers = values(judge(original, protected, np.random.default_rng(1), []), "given table")
    rate = estimates.rate(reidentified(APAttack().fit(known).rank(attacked), by_user(secret)[0]))
    assert numbers.loc["AP-Attack"].tolist() == [rate.value, rate.low, rate.high, rate.n]
    assert numbers.loc["distance to the path", "value"] == spatial_distortion(secret, attacked).median()
    assert numbers.loc["any attack", "value"] >= numbers.loc["AP-Attack", "value"]


def test_a_user_who_is_not_published_counts_as_left_out_and_is_not_re_identified(original):
    some = original[original["user"] != "u0"]
    numbers = values(judge(original, as_traces(some), np.random.default_rng(1), []), "given table")
    assert numbers.loc["users left out", "value"] == 1 / 6
    assert numbers.loc["AP-Attack", "value"] == 5 / 6


def test_pairs_match_users_with_other_names(original, tmp_path):
    renamed = as_traces(original.assign(user=original["user"].astype(str).map(lambda name: f"x{9 - int(name[1])}")))
    pairs = {f"x{9 - i}": f"u{i}" for i in range(6)}
    pd.testing.assert_frame_equal(matched(original, renamed, pairs), original)
    pd.DataFrame({"protected": pairs.keys(), "original": pairs.values()}).to_csv(tmp_path / "pairs.csv", index=False)
    assert read_pairs(tmp_path / "pairs.csv") == pairs


def test_a_table_protected_by_the_shell_is_judged_by_it_with_its_pairs(original, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    original.to_parquet("my.parquet")
    for line in (
        "protect my.parquet --with geoi(epsilon=0.001) -o out.parquet --pairs pairs.csv",
        "judge my.parquet out.parquet --pairs pairs.csv -o numbers.csv",
    ):
        result = CliRunner().invoke(app, line.split())
        assert result.exit_code == 0, result.stderr
    assert (tmp_path / "pairs.csv").stat().st_mode & 0o077 == 0  # nobody else may read the pairs
    numbers = pd.read_csv("numbers.csv")
    assert set(numbers["mechanism"]) == {"given table", "none", "Geo-I", "Promesse", "W4M", "TriLateration"}
    assert 1_500 < values(numbers, "given table").loc["distance at the time", "value"] < 2_500  # 2/ε


MECHANISMS = """
import time
import numpy as np
from mobpriv.ground.geo import move
from mobpriv.mechanisms import GeoI
from mobpriv.traces.table import as_traces

class Noise(GeoI):
    name = "Geo-I"  # as a published one

class Stronger:
    epsilon = 0.005
    def protect(self, traces, rng):
        return GeoI(0.01).protect(traces, rng)

class Together:
    def protect(self, traces, rng):
        return as_traces(traces.assign(lat=traces["lat"] + 1e-3 * traces["lat"].max()))

class Failing:
    def protect(self, traces, rng):
        return traces["speed"]

class FailsOnMany:
    def protect(self, traces, rng):
        if len(traces) > 2000:
            raise ValueError(f"a record at {traces['lat'].iloc[0]}")
        return as_traces(traces.copy())

class Careless:
    def protect(self, traces, rng):
        traces["lat"] += np.random.default_rng().normal(0, 1e-5, len(traces))
        return traces

class Hanging:
    def protect(self, traces, rng):
        print("begun", flush=True)
        time.sleep(600)
"""


def line_of(word):
    return next(number for number, line in enumerate(MECHANISMS.splitlines(), 1) if word in line)


@pytest.fixture
def of_mine(original, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("mobpriv.metrics.location_audits._CHOOSING", 1_000)
    original.to_parquet("my.parquet")
    (tmp_path / "of_mine.py").write_text(MECHANISMS)
    return lambda call, *more: CliRunner().invoke(app, ["judge", "my.parquet", f"of_mine.py:{call}", *more])


def test_a_mechanism_is_judged_as_its_table_would_be(of_mine, original):
    result = of_mine("Noise(epsilon=0.02)", "--seed", "3", "-o", "numbers.csv")
    assert result.exit_code == 0, result.stderr
    assert "of_mine.py:Noise(epsilon=0.02): the tests find no broken rule of a mechanism's contract" in result.stdout
    assert "the claim ε = 0.02 per metre for each record is not refuted" in result.stdout
    assert "This is no proof" in result.stdout
    table = GeoI(0.02).protect(original, np.random.default_rng(3))
    expected = judge(original, table, np.random.default_rng(3), [Nothing()], "given mechanism")
    numbers = pd.read_csv("numbers.csv")
    for name in ("given mechanism", "none"):
        pd.testing.assert_frame_equal(values(numbers, name), values(expected, name))
    assert list(numbers["mechanism"].unique())[2:] == ["Geo-I", "Promesse", "W4M", "TriLateration"]


def test_a_wrong_claim_is_refuted_and_dependence_is_noted(of_mine):
    out = of_mine("Stronger").stdout
    assert "the claim ε = 0.005 per metre for each record is refuted: two places" in out
    assert "proof" not in out
    assert "Note" not in out
    out = of_mine("Together").stdout
    assert "claim" not in out
    assert "Note: a user's published records depend on the other users of the table" in out
    assert "given" in out


@pytest.mark.parametrize(
    ("call", "lines"),
    [
        ("Failing", [f"(got KeyError: 'speed', line {line_of('speed')} of its file)"]),
        ("Careless", ["the given table must not be changed", "the same seed must give the same table"]),
        ("FailsOnMany", [f"(got ValueError, line {line_of('raise')} of its file)"]),
        ("Missing", ["of_mine.py must define the class Missing"]),
        ("Noise(epsilon=-1)", ["epsilon must be positive"]),
    ],
)
def test_a_mechanism_that_cannot_be_judged_is_a_line_for_each_reason(of_mine, call, lines):
    result = of_mine(call)
    assert result.exit_code == 2
    for line in lines:
        assert line in result.stderr
    assert all(line.startswith("mobpriv: ") for line in result.stderr.splitlines())
    assert call == "Careless" or result.stderr.count("\n") == 1
    assert not result.stderr.count("Traceback")
    assert "given" not in result.stdout


def test_a_mechanism_has_no_pairs(of_mine):
    assert "a mechanism keeps the users' names: leave out --pairs" in of_mine("Together", "--pairs", "pairs.csv").stderr


def test_a_mechanism_that_hangs_can_be_interrupted(of_mine):
    command = [sys.executable, "-m", "mobpriv.cli", "judge", "my.parquet", "of_mine.py:Hanging"]
    judging = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert judging.stdout.readline() == "begun\n"
    judging.send_signal(signal.SIGTERM)
    _, err = judging.communicate(timeout=60)
    assert (judging.returncode, err) == (130, "mobpriv: interrupted (nothing is written)\n")


@pytest.mark.parametrize(
    ("output", "says"),
    [
        ("none/numbers.csv", "there is no folder"),
        ("my.csv", "a file of their own"),
        ("pairs.csv", "a file of their own"),
        ("numbers.parquet", "ends in .csv"),
    ],
)
def test_an_output_that_cannot_be_written_is_refused_before_anything_runs(tmp_path, monkeypatch, output, says):
    monkeypatch.chdir(tmp_path)
    for name in ("my.csv", "out.csv"):
        (tmp_path / name).touch()
    result = CliRunner().invoke(app, f"judge my.csv out.csv --pairs pairs.csv -o {output}".split())
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert says in result.stderr


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("protected,who\na,b\n", r"needs the columns protected and original \(it has protected, who\)"),
        ("protected,original\na,b\na,c\n", r"one row for each name in protected \(a has several\)"),
    ],
)
def test_refused_pairs(tmp_path, text, words):
    (tmp_path / "pairs.csv").write_text(text)
    refuses(words, read_pairs, tmp_path / "pairs.csv")


test_refused_users = refusals(
    ({"u0": "u0"}, r"by the pairs, u1 and 4 others have none"),
    (dict.fromkeys((f"u{i}" for i in range(6)), "u1"), "two users of the protected table are u1"),
    call=lambda pairs: matched(people(), people(), pairs),
)


def test_a_number_without_an_interval_is_printed_alone(capsys):
    numbers = [
        ("TriLateration", name, 0.25, low, high)
        for name, (low, high) in zip(UNITS, [(0.1, 0.4)] + [(np.nan, np.nan)] * 20, strict=False)
    ]
    cli._print_numbers(pd.DataFrame(numbers, columns=["mechanism", "quantity", "value", "low", "high"]))
    printed = capsys.readouterr().out
    assert "()" not in printed
    assert "10.0 to" in printed
    assert "TriLateration" in printed
