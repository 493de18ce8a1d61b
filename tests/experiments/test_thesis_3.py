"""The setting of the thesis's chapter 3: §3.4.2 as a table, the two readings, and what is refused."""

import numpy as np
import pandas as pd
import pytest

from mobpriv.experiments import thesis_3 as re
from mobpriv.traces.table import by_user


def test_the_settings_are_those_of_the_text():
    ap, poi, pit = re.attacks("text")
    assert (ap.cell, ap.plane, ap.unit) == (800, "ground", "nats")
    assert (poi.diameter, poi.duration, poi.merged, poi.plane) == (200, 3600, True, "ground")
    assert (pit.diameter, pit.duration) == (200, 3600)
    assert (pit.order, pit.stationary, pit.whole_scores) == ("descending", "nearest", False)
    m = re.mechanisms("text")
    assert list(m) == ["none", "Geo-I", "Promesse", "W4M"]
    assert (m["Geo-I"].epsilon, m["Promesse"].alpha, m["W4M"].k, m["W4M"].delta) == (0.01, 200, 2, 600)
    assert {x.plane for name, x in m.items() if name != "none"} == {"ground"}


def test_the_settings_are_those_of_the_program():
    ap, poi, pit = re.attacks("program")
    assert (ap.cell, ap.plane, ap.unit) == (800, "mercator", "bits")
    assert (poi.diameter, poi.duration, poi.merged, poi.plane) == (200, 3600, False, "mercator")
    assert (pit.order, pit.whole_scores, pit.plane) == ("ascending", True, "mercator")
    assert {x.plane for name, x in re.mechanisms("program").items() if name != "none"} == {"mercator"}


@pytest.fixture
def table(tmp_path):
    """Three users, four days; the second has records in the first half only, the third begins late."""
    days = {"a": range(4), "b": range(2), "c": range(1, 4)}
    rows = [(u, f"2020-01-0{d + 1}T{h:02}:00:00Z", 45 + d / 100, 4.0) for u, ds in days.items() for d in ds for h in range(24)]
    path = tmp_path / "small.csv"
    pd.DataFrame(rows, columns=["user", "t", "lat", "lng"]).to_csv(path, index=False)
    return str(path)


def test_the_readings_cut_where_they_say(table):
    text = re.prepare(table, days=4)
    assert by_user(text.known)[0].tolist() == ["a", "b", "c"]
    assert text.users.tolist() == ["a", "c"]
    assert text.secret["t"].min() == pd.Timestamp("2020-01-03", tz="UTC")
    program = re.prepare(table, "program", days=4)
    assert program.users.tolist() == ["a", "b", "c"]
    assert re.prepare(table, "text", "user", days=4).users.tolist() == program.users.tolist()
    assert by_user(re.prepare(table, days=4, leave_out="b").known)[0].tolist() == ["a", "c"]


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"reading": "poem"}, "reading must be"),
        ({"halves": "thirds"}, "rule must be"),
        ({"start": "yesterday-ish"}, "start must be an ISO date"),
        ({"start": "2031-01-01"}, "no records in the 4 days"),
        ({"leave_out": "zz"}, "does not have: zz"),
        ({"leave_out": "b, c"}, "at least two users"),
        ({"days": 30}, "attacked half is empty: the records span 4.0 days"),
    ],
)
def test_what_cannot_be_prepared_is_refused_in_one_line(table, given, line):
    with pytest.raises(ValueError, match=line):
        re.prepare(table, **{"days": 4, **given})


@pytest.mark.parametrize(("days", "counted"), [(2, "2 of the 3 attacked users"), (4, "All 2 attacked users")])
def test_users_who_can_be_found_are_counted(table, days, counted):
    """The third user begins on the second day: with a day a half the training half has not seen her."""
    setting = re.prepare(table, start="2020-01-01", days=days)
    assert counted in setting.selection
    assert len(set(by_user(setting.secret)[0]) & set(by_user(setting.known)[0])) == 2


def test_named_draws_of_a_mechanism(table):
    """One for each seed, the same as alone; what draws nothing is protected once."""
    secret = re.prepare(table, "program", days=4).secret
    for name, mechanism in re.mechanisms("text").items():
        found = list(re.protected(mechanism, secret, range(3, 6)))
        assert len(found) == (3 if mechanism.random else 1), name
        for seed, published in zip(range(3, 6), found, strict=False):
            pd.testing.assert_frame_equal(published, mechanism.protect(secret, np.random.default_rng(seed)))
