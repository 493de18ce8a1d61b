"""The setting of the thesis's chapter 5: §5.5.2 as a table, the two readings, past and sub-traces, and what is refused."""

import numpy as np
import pandas as pd
import pytest

from mobpriv.attacks.policies import reidentified
from mobpriv.base import estimates
from mobpriv.experiments import thesis_5 as ill
from mobpriv.traces.table import as_traces, by_user


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
    latitude = {"a": 45.0, "b": 45.2, "c": 45.4, "d": 45.6}
    minutes = {user: [1440 * day + 10 * i for day in user_days for i in range(144)] for user, user_days in days.items()}
    minutes["d"] = range(0, 60, 10)
    start = pd.Timestamp("2020-01-01", tz="UTC")
    rows = [(u, start + pd.Timedelta(minutes=m), latitude[u], 4.0) for u, user_minutes in minutes.items() for m in user_minutes]
    rows += [("e", *row[1:]) for row in rows if row[0] == "a"][-200:]
    path = tmp_path / "small.csv"
    pd.DataFrame(rows, columns=["user", "t", "lat", "lng"]).to_csv(path, index=False)
    return str(path)


def test_four_fifths_of_the_sub_traces_are_known(table):
    text = ill.prepare(table, "days", days=10)
    assert text.owner.value_counts().to_dict() == {"a": 1, "b": 2, "c": 1}  # of 5, 10 and 6 days
    assert text.person == {"a-4": "a", "b-8": "b", "b-9": "b", "c-9": "c", "e": "a"}  # second names are persons, too
    assert text.secret["user"].cat.categories.tolist() == text.users.tolist() == ["a-4", "b-8", "b-9", "c-9"]
    assert by_user(text.known)[0].tolist() == ["a", "b", "c", "d", "e"]
    assert not text.known.merge(text.secret, on=["t", "lat"]).query("user_x != 'e'").size
    program = ill.prepare(table, "days", "program", days=10)
    assert program.owner.value_counts().to_dict() == {"b": 1, "c": 1}
    assert ill.prepare(table, days=10).owner.value_counts()["b"] == 480 // 5
    assert "We attack the remaining 4 days of 3 users" in text.selection


def test_the_most_active_are_kept(table):
    setting = ill.prepare(table, "days", active=3, days=10)
    assert by_user(setting.known)[0].tolist() == ["a", "b", "c"]
    assert by_user(ill.most_active_users(setting.known, 1))[0].tolist() == ["b"]
    twins = setting.known[setting.known["user"] != "b"].groupby("user", observed=True).head(10)
    twins = twins.assign(user=twins["user"].cat.remove_unused_categories()).reset_index(drop=True)
    assert by_user(ill.most_active_users(twins, 1))[0].tolist() == ["a"]  # of as many records each the first by name


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
        protected_traces = list(ill.protected(mechanism, setting.secret, range(3, 6)))
        assert len(protected_traces) == (3 if mechanism.random else 1), name
        for seed, published in zip(range(3, 6), protected_traces, strict=False):
            pd.testing.assert_frame_equal(published, mechanism.protect(setting.secret, np.random.default_rng(seed)))
            assert set(published["user"]) <= set(setting.users)


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"variant": "poem"}, 'variant must be "text" or "program"'),
        ({"length": "weeks"}, 'length must be "sessions" or "days"'),
        ({"active": -1}, "active must be a whole number, at least 0"),
        ({"active": 1}, r"at least two users \(got only b\)"),
        ({"length": "days", "days": 1}, "no user has enough days to hold some back"),
    ],
)
def test_what_cannot_be_prepared_is_refused_in_one_line(table, given, line):
    with pytest.raises(ValueError, match=line):
        ill.prepare(table, **{"days": 10, "start": "2020-01-01", **given})


def test_the_cabs_of_table_5_2(real_data):
    """50 cabs, 1 409 687 records and, of §5.5.4, 200 attacked days, in either reading: the setting is the thesis's own."""
    for variant in ("text", "program"):
        setting = ill.prepare(str(real_data / "cabspotting.parquet"), "days", variant, active=50, leave_out="mfeuer")
        assert len(setting.known) + len(setting.secret) == 1_409_687
        assert len(setting.users) == 200


def test_what_was_attacked_joins_to_the_users_own_late_traces(table):
    setting = ill.prepare(table, "days", days=10)
    joined = ill.joined(setting)
    assert by_user(joined)[0].tolist() == ["a", "b", "c"]
    assert len(joined) == len(setting.secret)
    bobs = setting.secret["t"][setting.secret["user"].str.startswith("b-")]
    assert joined.loc[joined["user"] == "b", "t"].tolist() == sorted(bobs)


def test_sessions_belong_to_a_day_of_their_user(table):
    sessions, days = (ill.prepare(table, length, days=10) for length in ("sessions", "days"))
    day, owner = ill.days_of(sessions)
    assert day.index.equals(sessions.users)
    assert owner.groupby(owner).size().to_dict() == {"a": 1, "b": 2, "c": 2, "e": 1}
    assert day[sessions.owner == "b"].unique().tolist() == ["b 8", "b 9"]  # of the days 0 to 9 the last two
    assert set(day.value_counts()[["b 8", "b 9"]]) == {48}  # half hours
    assert set(days.owner) <= set(owner)


def test_the_share_of_others_who_have_been_everywhere(table):
    """Four known users around the squares of three sub-traces, counted by hand."""

    class Numbers:  # a grid whose cells are the latitudes
        def cells(self, lat, lng):
            return np.asarray(lat).astype(int)

    def visits(**of):
        rows = [(user, i, float(cell), 0.0) for user, cells in of.items() for i, cell in enumerate(cells)]
        rows = pd.DataFrame(rows, columns=["user", "t", "lat", "lng"])
        return as_traces(rows.assign(t=pd.to_datetime(rows["t"] + 1_500_000_000, unit="s", utc=True)))

    known, secret = visits(a=[1, 2, 3], b=[1, 2], c=[2], d=[1, 2, 3, 4]), visits(x=[2, 2], y=[1, 2], z=[2, 9])
    setting = ill.prepare(table, "days", days=10)._replace(known=known, secret=secret, users=pd.Index(["z", "y", "x"]))
    setting = setting._replace(owner=pd.Series({"x": "c", "y": "a", "z": "a"}))
    assert ill.shared_by(setting, Numbers()).tolist() == [0, 2 / 3, 1]


def test_rates_over_runs_and_users():
    """Two runs, four sub-traces of two users, worked out by hand."""
    owner = pd.Series(["x", "x", "x", "y"], index=list("abcd"))
    under = lambda *hits: dict(zip(("ILL-Attack", "AP-Attack", "POI-Attack"), hits, strict=True))  # noqa: E731
    first = {"none": under([1, 1, 0, 1], [1, 0, 0, 1], [0] * 4), "Geo-I": under([0, 1, 0, 0], [1, 0, 0, 0], [0] * 4)}
    second = {"none": under([1, 1, 1, 1], [1, 0, 0, 1], [0] * 4), "Geo-I": under([0, 0, 0, 1], [1, 0, 0, 0], [0] * 4)}
    third = {"HMC": under([0] * 4, [0] * 4, [0] * 4)}
    results = ill.rates([first | third, second | third], owner)
    value = {name: result if isinstance(result, int) else result.value for name, result in results.items()}
    assert (value["attacked"], value["users"], value["runs"]) == (4, 2, 2)
    assert value["rate.ILL-Attack.none"] == pytest.approx(3.5 / 4)
    assert value["change.ILL-Attack.Geo-I"] == pytest.approx((1 - 3.5) / 4)
    assert value["lead.AP-Attack.none"] == pytest.approx((3.5 - 2) / 4)
    assert value["gap"] == pytest.approx(2 / 4)
    assert value["apart.Geo-I.HMC"] == pytest.approx(1 / 4) == -value["apart.HMC.Geo-I"]
    assert (results["drawn.ILL-Attack.none"].low, results["drawn.ILL-Attack.none"].high) == (3 / 4, 1)
    assert "drawn.AP-Attack.Geo-I" not in results  # the runs agree
    assert results["rate.ILL-Attack.none"] == estimates.clustered_rate([1, 1, 0.5, 1], owner.to_numpy())


def test_each_sub_trace_gets_the_number_of_records_it_had(table):
    setting = ill.prepare(table, "days", days=10)
    counts = setting.secret["user"].value_counts()
    pd.testing.assert_frame_equal(ill.with_original_counts(setting.secret, setting.secret), setting.secret)
    for name in ("Geo-I", "TriLateration"):
        published = ill.mechanisms(setting)[name].protect(setting.secret, np.random.default_rng(1))
        same = ill.with_original_counts(published, setting.secret)
        assert same["user"].value_counts().to_dict() == counts.to_dict(), name
        chosen, published_records = (set(map(tuple, t[["user", "t", "lat"]].to_numpy())) for t in (same, published))
        assert chosen <= published_records
        pd.testing.assert_frame_equal(*(t.groupby("user", observed=True)["t"].agg(["min", "max"]) for t in (same, published)))
