"""The setting of the thesis's chapter 5: §5.5.2 as a table, the two readings, past and sub-traces, and what is refused."""

import numpy as np
import pandas as pd
import pytest

from mobpriv.attacks.policies import reidentified
from mobpriv.experiments import thesis_5 as ill
from mobpriv.traces import by_user


def test_the_settings_are_those_of_the_text():
    learned, ap, poi = ill.attacks("sessions")
    assert (learned.delta, learned.level, learned.trees, learned.max_features) == (1800, 13, 100, 0.6)
    assert (learned.min_leaf, learned.min_split, learned.hour, learned.zero_count) == (2, 8, "mean", False)
    assert (ap.cell, ap.plane, ap.unit) == (800, "ground", "nats")
    assert (poi.diameter, poi.duration, poi.merged, poi.plane) == (500, 900, True, "ground")
    assert ill.attacks("days", seed=3)[0].delta == 86_400
    assert ill.attacks("days", seed=3)[0].seed == 3


def test_the_mechanisms_are_those_of_the_text(table):
    setting = ill.prepare(table, "days", days=10)
    m = ill.mechanisms(setting)
    assert list(m) == ["none", "Geo-I", "Promesse", "TriLateration", "HMC"]
    assert (m["Geo-I"].epsilon, m["Promesse"].alpha, m["TriLateration"].radius) == (0.01, 200, 1000)
    assert (m["HMC"].grid.cell, m["HMC"].plane, m["HMC"].unlike) == (800, "ground", "weight")
    assert m["HMC"].owners == setting.owner.to_dict()
    assert m["HMC"].known is setting.known
    program = ill.mechanisms(setting, "program")
    assert {x.plane for name, x in program.items() if name != "none"} == {"mercator"}
    assert program["HMC"].unlike == "exclusion"


def test_the_settings_are_those_of_the_program():
    learned, ap, poi = ill.attacks("days", "program")
    assert (learned.delta, learned.hour, learned.zero_count) == (86_400, "program", True)
    assert (ap.plane, ap.unit, poi.plane, poi.merged) == ("mercator", "bits", "mercator", False)


@pytest.fixture
def table(tmp_path):
    """Records every 10 min: "a" for five days, "b" for ten, "c" for six, with a gap each; "d" for one hour; "e" is "a" again."""
    days = {"a": range(5), "b": range(10), "c": [0, 1, 2, 7, 8, 9]}
    place = {"a": 45.0, "b": 45.2, "c": 45.4, "d": 45.6}
    minutes = {user: [1440 * day + 10 * i for day in own for i in range(144)] for user, own in days.items()} | {
        "d": range(0, 60, 10)
    }
    start = pd.Timestamp("2020-01-01", tz="UTC")
    rows = [(u, start + pd.Timedelta(minutes=m), place[u], 4.0) for u, own in minutes.items() for m in own]
    rows += [("e", *row[1:]) for row in rows if row[0] == "a"][-200:]
    path = tmp_path / "small.csv"
    pd.DataFrame(rows, columns=["user", "t", "lat", "lng"]).to_csv(path, index=False)
    return str(path)


def test_four_fifths_of_the_sub_traces_are_known(table):
    text = ill.prepare(table, "days", days=10)
    assert text.owner.value_counts().to_dict() == {"a": 1, "b": 2, "c": 1}  # of 5, 10 and 6 days
    assert text.secret["user"].cat.categories.tolist() == text.users.tolist() == ["a-4", "b-8", "b-9", "c-9"]
    assert by_user(text.known)[0].tolist() == ["a", "b", "c", "d", "e"]
    assert not text.known.merge(text.secret, on=["t", "lat"]).query("user_x != 'e'").size
    program = ill.prepare(table, "days", "program", days=10)
    assert program.owner.value_counts().to_dict() == {"b": 1, "c": 1}
    assert ill.prepare(table, days=10).owner.value_counts()["b"] == 480 // 5
    assert "4 days of 3 users attacked" in text.selection


def test_the_most_active_are_kept(table):
    setting = ill.prepare(table, "days", active=3, days=10)
    assert by_user(setting.known)[0].tolist() == ["a", "b", "c"]
    assert "only the 3 most active" in setting.selection
    by_records = ill.most_active(setting.known, 1)
    assert by_user(by_records)[0].tolist() == ["b"]
    twins = setting.known[setting.known["user"] != "b"].groupby("user", observed=True).head(10)
    twins = twins.assign(user=twins["user"].cat.remove_unused_categories()).reset_index(drop=True)
    assert by_user(ill.most_active(twins, 1))[0].tolist() == ["a"]  # of as many records each the first by name


def test_sub_traces_and_second_names_are_persons(table):
    setting = ill.prepare(table, "days", days=10)
    assert setting.person == {"a-4": "a", "b-8": "b", "b-9": "b", "c-9": "c", "e": "a"}


def test_every_attack_finds_who_lives_alone_whatever_protects_her(table):
    """The homes are 20 km apart, so every LPPM that only moves records leaves them apart: a trace that is left is found."""
    setting = ill.prepare(table, "days", days=10)
    fitted = [attack.fit(setting.known) for attack in ill.attacks("days")]
    used = ill.mechanisms(setting)
    del used["HMC"]  # erases who stays, and sends the others elsewhere
    for name, mechanism in used.items():
        (published,) = ill.protected(mechanism, setting.secret, [1])
        for attack in fitted[:2]:
            hits = reidentified(attack.rank(published), setting.users, setting.person)
            assert hits.index.tolist() == setting.users.tolist()
            assert hits.all() == (name != "Promesse")  # who never moves is erased
            assert hits.any() == (name != "Promesse")


def test_every_sub_trace_is_protected_by_itself(table):
    setting = ill.prepare(table, "days", days=10)
    for name, mechanism in ill.mechanisms(setting).items():
        found = list(ill.protected(mechanism, setting.secret, range(3, 6)))
        assert len(found) == (3 if mechanism.random else 1), name
        for seed, published in zip(range(3, 6), found, strict=False):
            pd.testing.assert_frame_equal(published, mechanism.protect(setting.secret, np.random.default_rng(seed)))
            assert set(published["user"]) <= set(setting.users)


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"reading": "poem"}, 'reading must be "text" or "program"'),
        ({"length": "weeks"}, 'length must be "sessions" or "days"'),
        ({"active": -1}, "active must be a whole number, at least 0"),
        ({"active": 1}, r"at least two users \(got b alone\)"),
        ({"length": "days", "days": 1}, "nobody has days enough to hold some back"),
    ],
)
def test_what_cannot_be_prepared_is_refused_in_one_line(table, given, line):
    with pytest.raises(ValueError, match=line) as error:
        ill.prepare(table, **{"days": 10, "start": "2020-01-01", **given})
    assert "\n" not in str(error.value)


def test_the_cabs_of_table_5_2(real_data):
    """50 cabs, 1 409 687 records and, of §5.5.4, 200 attacked days, in either reading: the setting is the thesis's own."""
    for reading in ill.READINGS:
        setting = ill.prepare(str(real_data / "cabspotting.parquet"), "days", reading, active=50, leave_out="mfeuer")
        assert len(setting.known) + len(setting.secret) == 1_409_687
        assert len(setting.users) == 200
