"""Profiles of call records for publication: what is in them, what is left out, and what the manifest promises."""

import json

import numpy as np
import pandas as pd
import pytest
from conftest import refuses
from typer.testing import CliRunner

from mobpriv import datasets
from mobpriv.base.system_noise import SystemGenerator
from mobpriv.cli import app
from mobpriv.mechanisms.icp import Mdav, Primule
from mobpriv.mechanisms.visits import Geometric, LaplaceCounts, RandomisedResponse
from mobpriv.own_data import call_protection, protection, streaming

SEEDED = np.random.default_rng
ANY = [Primule(k=3), Mdav(k=3), RandomisedResponse(epsilon=1.0), LaplaceCounts(epsilon=1.0), Geometric(epsilon=1.0)]


@pytest.fixture
def files(tmp_path):
    """Seven users at two cells in Here, two of them also at a cell in There; a call at an unknown place, one after five weeks."""
    t = pd.Timestamp("2024-03-04 08:00", tz="UTC")
    calls = [(f"u{i}", t + pd.Timedelta(days=int(d)), "a" if i % 2 else "b") for i in range(7) for d in range(i % 3 + 1)]
    calls += [("u0", t, "c"), ("u1", t, "c"), ("u2", t, "d"), ("u3", t + pd.Timedelta(weeks=5), "a")]
    pd.DataFrame(calls, columns=["user", "t", "cell"]).to_csv(tmp_path / "my.csv", index=False)
    cells = pd.DataFrame({"cell": list("abcd"), "lat": 45.0, "lng": 4.8, "municipality": ["Here", "Here", "There", None]})
    cells.to_csv(tmp_path / "my_cells.csv", index=False)
    return tmp_path


@pytest.fixture
def data(files):
    return datasets.load_calls(str(files / "my.csv"))


@pytest.mark.parametrize("mechanism", ANY, ids=lambda mechanism: mechanism.name)
def test_every_call_is_in_a_profile_or_left_out_for_a_reason(data, mechanism):
    protected = call_protection.protect(data, mechanism, SEEDED(1), "Europe/Paris")
    records = protected.manifest["records"]
    assert records["given"] == len(data.calls) == records["published"] + sum(records["left out"].values())
    assert records["left out"]  # the call after five weeks
    assert "user" not in protected.table
    assert not protected.table.isna().any(axis=None)


def test_groups_have_k_rows_and_small_municipalities_are_left_out(data):
    protected = call_protection.protect(data, Primule(k=3), SEEDED(1), "Europe/Paris")
    assert set(protected.table["municipality"]) == {"Here"}
    assert protected.table.value_counts().min() >= 3
    assert len(protected.table) == 7
    assert protected.manifest["municipalities"] == {"given": 2, "published": 1}
    assert protected.manifest["records"]["left out"] == {
        "after the window": 1,
        "cell without a municipality": 1,
        "municipality with fewer than 3 profiles": 2,
    }
    first_morning = protected.table["week 1 weekday 0-8 h"]
    given = [min(i % 3 + 1, 5) / 5 for i in range(7)]  # shares of the five weekdays, at 9 o'clock in Paris: the next slot
    assert first_morning.eq(0).all()
    assert protected.table["week 1 weekday 8-19 h"].sum() == pytest.approx(sum(given))  # groups keep the mean


def test_without_noise_the_visits_are_those_of_the_calls(data):
    protected = call_protection.protect(data, RandomisedResponse(epsilon=60.0), SEEDED(1), "UTC")
    assert list(protected.table) == ["a", "b", "c", "d"]
    assert protected.table.sum().tolist() == [3, 4, 2, 1]
    counts = call_protection.protect(data, LaplaceCounts(epsilon=200.0), SEEDED(1), "UTC")
    assert counts.table.to_numpy().sum() == counts.manifest["records"]["published"]


@pytest.mark.parametrize("mechanism", ANY, ids=lambda mechanism: mechanism.name)
def test_the_order_of_rows_and_users_tells_nothing(data, mechanism):
    table = call_protection.protect(data, mechanism, SEEDED(1), "UTC").table
    pd.testing.assert_frame_equal(table, table.sort_values([*table], ignore_index=True))


def test_the_guarantee_is_stated_only_where_it_holds(data):
    of = lambda mechanism, rng: call_protection.protect(data, mechanism, rng, "UTC").manifest["guarantee"]  # noqa: E731
    assert "at least 2 others of its municipality" in of(Primule(k=3), SEEDED(1))
    assert of(RandomisedResponse(epsilon=2.0), SEEDED(1)) == "none: anybody with the seed can remove the noise"
    assert "ε = 2 for each visited cell: it adds up" in of(RandomisedResponse(epsilon=2.0), SystemGenerator())
    assert of(Geometric(epsilon=1.0), SystemGenerator()).endswith("far larger ε; up to the rounding of the random numbers")
    assert of(Geometric(epsilon=1.0, exact=True), SystemGenerator()).endswith("far larger ε")
    known_weeks = call_protection.protect(data, Primule(k=3, h=1), SEEDED(1), "UTC").manifest
    assert "agrees on 6 columns" in known_weeks["guarantee"]
    assert known_weeks["warnings"] == ["18 columns outside h are published as given, and can identify users"]
    for printed in (LaplaceCounts(epsilon=1.0, scale="printed"), RandomisedResponse(epsilon=1.0, modulo=False)):
        refuses("does not satisfy its ε", call_protection.protect, data, printed, SEEDED(1), "UTC")
    refuses("one ε for all users", call_protection.protect, data, RandomisedResponse(epsilon=np.ones(7)), SEEDED(1), "UTC")
    refuses("the largest has 7", call_protection.protect, data, Primule(k=8), SEEDED(1), "UTC")
    refuses("time zone is needed", call_protection.protect, data, Primule(k=2), SEEDED(1))


@pytest.mark.parametrize(
    ("text", "says"),
    [("primule", "k must be given"), ("promesse", "one of Primule, Mdav, RandomisedResponse"), ("primule(k=1)", "at least 2"), ("mdav(l=1)", "got l")],
)  # fmt: skip
def test_a_refused_mechanism(text, says):
    refuses(says, protection.mechanism_of, text, call_protection.MECHANISMS)


def test_the_command_writes_profiles_and_a_manifest(files, monkeypatch):
    monkeypatch.chdir(files)
    run = lambda *words: CliRunner().invoke(app, ["protect", *words], env={"COLUMNS": "300"})  # noqa: E731
    line = ("my.csv", "--with", "primule(k=3)", "-o", "out.csv")
    assert "give it with --zone" in run(*line).stderr
    assert "leave out --pairs" in run(*line, "--zone", "Europe/Paris", "--keep-names").stderr
    assert "are for call records" in run("city", "--with", "promesse", "-o", "out.csv", "--weeks", "2").stderr
    assert not (files / "out.csv").exists()
    done = run(*line, "--zone", "Europe/Paris", "--weeks", "1", "--start", "2024-03-04")
    assert done.exit_code == 0, done.output
    assert "municipality with fewer than 3 profiles: 2" in done.stdout
    table, manifest = pd.read_csv("out.csv"), json.loads((files / "out.csv.manifest.json").read_text())
    assert table.shape == (7, 1 + 6)
    assert manifest["days"] == {"first": "2024-03-04", "weeks": 1, "zone": "Europe/Paris"}
    assert manifest["input"]["sha256"] == datasets.sha256_of(files / "my.csv")


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("with_", ["primule(k=3)", "mdav(k=3)"])
def test_a_file_that_exceeds_the_memory_as_one_that_does_not(files, monkeypatch, form, with_):
    if form == "parquet":
        pd.read_csv(files / "my.csv", parse_dates=["t"]).to_parquet(files / "my.parquet")
    with (files / "my.csv").open("a") as file:
        file.write(",2024-03-04 08:00:00+00:00,a\nu1,2024-03-04 09:00:00+00:00,z\n")
    published, manifests = [], []
    for records in (streaming.CALLS, 1):
        monkeypatch.setattr(streaming, "CALLS", records)
        arguments = ["protect", files / f"my.{form}", "--with", with_, "--zone", "Europe/Paris", "-o", files / f"{records}.csv"]
        result = CliRunner().invoke(app, [*map(str, arguments)])
        assert result.exit_code == 0, result.output
        published.append((files / f"{records}.csv").read_text())
        manifests.append(json.loads((files / f"{records}.csv.manifest.json").read_text()))
    assert published[0] == published[1]
    records = [manifest.pop("records") for manifest in manifests]
    for of in records:
        assert of["given"] == of["published"] + sum(of["left out"].values())
    total = [of["given"] + sum(of["left out when read"].values()) for of in records]
    assert total[0] == total[1] == 17 + 2 * (form == "csv")
    assert [of["published"] for of in records] == [records[0]["published"]] * 2
    same = [{key: manifest[key] for key in manifest if key != "output"} for manifest in manifests]
    assert same[0] == same[1]


def test_another_format_than_text_and_parquet_is_read_at_once_whatever_its_size(files, monkeypatch):
    pd.read_csv(files / "my.csv", parse_dates=["t"]).to_feather(files / "my.feather")
    monkeypatch.setattr(streaming, "CALLS", 1)
    arguments = ["protect", files / "my.feather", "--with", "primule(k=3)", "--zone", "Europe/Paris", "-o", files / "out.csv"]
    result = CliRunner().invoke(app, [*map(str, arguments)])
    assert result.exit_code == 0, result.output
