"""The contract of mechanisms: each rule meets a mechanism that breaks it alone, and says so in one line."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

from mobpriv.mechanisms import W4M, GeoI, Nothing, Promesse
from mobpriv.own_data import contract
from mobpriv.traces.table import as_traces, rows


def altered(change, **attributes):
    """A mechanism that publishes ``change(traces, rng)``."""
    return type("Altered", (), {"protect": lambda self, traces, rng: change(traces, rng), **attributes})()


def copied(traces):
    return rows(traces, np.ones(len(traces), bool))


def moved(traces, **columns):
    return as_traces(traces.assign(**columns))


def written_into(traces, rng):
    traces.loc[: len(traces), "lat"] = 45.0
    return copied(traces)


def without_check(traces, rng):
    """Noise that crosses the date line."""
    return traces.assign(lng=traces["lng"] + 0.5)


def averaged(traces, rng):
    """All records at the mean of the longitudes, as if 180 and −180 were far apart."""
    return moved(traces, lng=traces.groupby("user", observed=True)["lng"].transform("mean"))


def by_length_of_name(traces, rng):
    return moved(traces, lat=traces["lat"] + 1e-3 * traces["user"].astype(str).str.len())


def by_rank(traces, rng):
    return moved(traces, lat=traces["lat"] + 1e-3 * traces["user"].cat.codes)


def by_categories(traces, rng):
    return moved(traces, lat=traces["lat"] + 1e-3 * len(traces["user"].cat.categories))


def needs_two_records(traces, rng):
    return moved(traces, lat=traces["lat"].to_numpy() + 0 * traces["lat"].iloc[1]) if len(traces) else traces.copy()


def by_time_span(traces, rng):
    span = (traces["t"].max() - traces["t"].min()).total_seconds() if len(traces) > 1 else 1.0
    return moved(traces, lat=traces["lat"] + 1 // int(span)) if len(traces) else traces.copy()


def own_noise(traces, rng):
    return moved(traces, lat=traces["lat"] + np.random.default_rng().normal(0, 1e-5, len(traces)))


BROKEN = [
    (altered(lambda traces, rng: None), "protect must return a table (got NoneType)"),
    (altered(lambda traces, rng: 1 / 0), "protect must not fail (got ZeroDivisionError: division by zero"),
    (altered(lambda traces, rng: traces[["user", "t"]]), "the result must have the columns user, t, lat, lng (got user, t)"),
    (altered(lambda traces, rng: traces.assign(speed=1.0)), "(got user, t, lat, lng, speed)"),
    (altered(lambda traces, rng: traces.assign(lat=np.nan)), "latitude or longitude not a number in 1 080 records of 1080"),
    (altered(lambda traces, rng: traces.assign(t=0)), "the result must be valid (column t must hold times with a zone"),
    (altered(lambda traces, rng: moved(traces, user="eve")), "no user may be invented (got 1 user"),
    (altered(lambda traces, rng: traces.iloc[::-1]), "the result must be typed, sorted by user and time"),
    (altered(lambda traces, rng: copied(traces).astype({"lat": "float32"})), "the result must be typed, sorted"),
    (altered(lambda traces, rng: as_traces(traces.head(0))), "some record must be published"),
    (altered(lambda traces, rng: traces), "the given table must not be changed or returned itself"),
    (altered(written_into), "the given table must not be changed"),
    (altered(own_noise), "the same seed must give the same table: draw from rng alone"),
    (
        altered(lambda traces, rng: copied(traces), random=True),
        "random must say whether other seeds give other tables (got True",
    ),
    (altered(GeoI().protect.__func__.__get__(GeoI()), random=False), "(got False, and they do)"),
    (altered(lambda traces, rng: copied(traces), epsilon=0.01), "a mechanism with epsilon must draw its noise from rng"),
    (altered(by_categories), "users without records must not matter"),
    (altered(by_length_of_name), "the users' names must not matter"),
    (altered(by_rank), "the order of the users must not matter"),
    (altered(needs_two_records), "1 record of one user: protect must not fail (got IndexError"),
    (altered(by_time_span), "all records at one time: protect must not fail (got ZeroDivisionError"),
    (altered(without_check), "at the date line: the result must be valid (got longitude outside [-180, 180]"),
    (altered(averaged), "at the date line: records must stay on their side of the Earth"),
]


@pytest.mark.parametrize(("mechanism", "words"), BROKEN, ids=[words for _, words in BROKEN])
def test_a_broken_rule_is_one_line(mechanism, words):
    lines = contract.broken_rules(mechanism)
    assert any(words in line.replace("\u202f", " ") for line in lines), lines
    assert not any("\n" in line for line in lines)


def test_each_rule_after_the_first_is_broken_by_a_mechanism_that_keeps_the_first():
    first, *others = contract.RULES
    refused = set()
    for mechanism, _ in BROKEN:
        broken = {rule for rule in contract.RULES if fails(contract.RULES[rule], mechanism)}
        refused |= broken if first not in broken else set()
    assert refused == set(others)


def fails(rule, mechanism):
    try:
        rule(mechanism, contract.walks())
    except contract.Broken:
        return True
    return False


@pytest.mark.parametrize("mechanism", [Nothing(), GeoI(), Promesse(), W4M()], ids=repr)
def test_the_package_keeps_it(mechanism):
    seen = []
    assert contract.broken_rules(mechanism, seen.append) == []
    assert seen == list(contract.RULES)


def test_the_line_of_the_strangers_file_is_named():
    @dataclass(frozen=True)
    class Failing:
        def protect(self, traces, rng):
            return pd.concat([])

    assert f"line {Failing.protect.__code__.co_firstlineno + 1} of its file" in contract.broken_rules(Failing())[0]


def test_an_error_on_real_data_is_not_quoted():
    def failing(traces, rng):
        raise ValueError(f"bad record {traces['lat'].iloc[0]}")

    with pytest.raises(contract.Broken, match=r"got ValueError, line \d+"):
        contract.published_by(altered(failing), contract.walks(), np.random.default_rng(1), quote=False)
