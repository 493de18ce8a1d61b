"""Chapter 3: §3.4.2 as a table, the two readings, what is refused; and its main numbers by another way, plain pandas and NumPy."""

import numba
import numpy as np
import pandas as pd
import pytest
from conftest import published

from mobpriv.experiments import thesis_3 as re
from mobpriv.experiments.thesis_3 import mechanisms, prepare, protected
from mobpriv.ground.geo import distance, meridian_arc, metres_per_degree
from mobpriv.ground.grid import latitude_of_arc
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
        ({"variant": "poem"}, "variant must be"),
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


@pytest.mark.parametrize(("days", "counted"), [(2, "2 of the 3 attacked users"), (4, "all 2 attacked users")])
def test_users_who_can_be_found_are_counted(table, days, counted):
    """The third user begins on the second day: with a day a half the training half has not seen her."""
    setting = re.prepare(table, start="2020-01-01", days=days)
    assert counted in setting.selection
    assert len(set(by_user(setting.secret)[0]) & set(by_user(setting.known)[0])) == 2


def test_named_draws_of_a_mechanism(table):
    """One for each seed, the same as alone; what draws nothing is protected once."""
    secret = re.prepare(table, "program", days=4).secret
    for name, mechanism in re.mechanisms("text").items():
        protected_traces = list(re.protected(mechanism, secret, range(3, 6)))
        assert len(protected_traces) == (3 if mechanism.random else 1), name
        for seed, traces in zip(range(3, 6), protected_traces, strict=False):
            pd.testing.assert_frame_equal(traces, mechanism.protect(secret, np.random.default_rng(seed)))


CELL = 800.0  # m


@pytest.fixture(scope="module")
def cabs(real_data):
    return prepare(str(real_data / "cabspotting.parquet"), leave_out="mfeuer")


def shares(traces) -> pd.DataFrame:
    """Share of a user's records (rows) in each cell of 800 m (columns), as the definition says."""
    row, of = np.unique(np.floor(meridian_arc(traces["lat"].to_numpy()) / CELL), return_inverse=True)
    east = metres_per_degree(latitude_of_arc((row + 0.5) * CELL))[0]
    column = np.floor(traces["lng"].to_numpy() * east[of] / CELL)
    cell, cells = pd.factorize(row[of] * 1e6 + column)
    user, users = pd.factorize(traces["user"])
    records = np.bincount(user * len(cells) + cell, minlength=len(users) * len(cells)).reshape(len(users), -1)
    return pd.DataFrame(records / records.sum(axis=1, keepdims=True), users.astype(str), cells)


def distances(secret, known) -> pd.DataFrame:
    """Equation (3.3) of every anonymous map with every known one, from its definition."""
    x, y = shares(secret).align(shares(known), join="outer", axis=1, fill_value=0.0)
    others = np.ascontiguousarray(y.to_numpy().T)
    return pd.DataFrame(np.array([topsoe(shares_of_one, others) for shares_of_one in x.to_numpy()]), x.index, y.index)


@numba.njit
def topsoe(shares_of_one, others):
    """Term by term; where one of the two is 0 the other's term is itself times ln 2."""
    ln2 = np.log(2)
    total = np.full(others.shape[1], ln2)  # as if the two shared no cell but for the terms that follow
    for cell in np.flatnonzero(shares_of_one):
        x = shares_of_one[cell]
        for user, y in enumerate(others[cell]):
            if y > 0:
                total[user] += x * np.log(2 * x / (x + y)) + y * np.log(2 * y / (x + y)) - y * ln2
            else:
                total[user] += x * ln2
    return total


def reidentified(d) -> pd.Series:
    """Who is nearer to herself than to anybody else."""
    return pd.Series({user: user in d and (d.loc[user] <= d.loc[user, user] + 1e-12).sum() == 1 for user in d.index})


@pytest.fixture(scope="module")
def unprotected(cabs):
    return distances(cabs.secret, cabs.known)


def test_the_best_threshold(cabs, unprotected):
    """Table 3.1's measure at every probability that occurs among the largest of each trace, from its definition."""
    p = 1 - unprotected / (2 * np.log(2))
    p = p.div(p.sum(axis=1), axis=0)
    true_probability = np.array([p.loc[user, user] if user in p else 0.0 for user in p.index])

    def precision(alpha):
        answer_size = (p.to_numpy() >= alpha).sum(axis=1)
        return ((true_probability >= alpha) / np.maximum(answer_size, 1)).sum() / len(cabs.users)

    results = published("thesis_3_threshold")
    at_best = precision(results["best_alpha.none"] * (1 - 1e-9))
    assert at_best == pytest.approx(results["best_precision.none"]["value"], abs=1e-6)
    assert max(map(precision, np.sort(p.to_numpy().max(axis=1)))) <= at_best + 1e-12


def test_the_adversary_who_smooths_his_half_too(cabs, unprotected):
    """27 of 522 cabs under Promesse, 98 when the training half is smoothed as well."""
    promesse, results = mechanisms()["Promesse"], published("thesis_3_causes")
    (secret,), (known,) = (list(protected(promesse, of, [1])) for of in (cabs.secret, cabs.known))
    hits = {side: reidentified(distances(secret, of)).sum() for side, of in (("recorded", cabs.known), ("protected", known))}
    assert hits == {"recorded": 27, "protected": 98}
    for side, count in hits.items():
        assert count / len(cabs.users) == pytest.approx(results[f"trained.{side}.Promesse"]["value"])
    assert reidentified(unprotected).sum() / len(cabs.users) == pytest.approx(results["trained.recorded.none"]["value"])


def test_w4m_s_pivots_are_found_as_if_unprotected_and_moved_users_hardly(cabs, unprotected):
    """Of a third of the cabs, for W4M compares each with each; they are sought among all."""
    sample = cabs.secret[cabs.secret["user"].isin(cabs.secret["user"].unique()[::3])]
    moved = next(protected(mechanisms()["W4M"], sample, [1]))
    columns = ["user", "t", "lat", "lng"]
    before, after = (of[columns].assign(user=of["user"].astype(str)).groupby("user") for of in (sample, moved))
    same = lambda user, trace: np.array_equal(trace[columns[1:]], before.get_group(user)[columns[1:]])  # noqa: E731
    pivots = [user for user, trace in after if same(user, trace)]
    hits, without = reidentified(distances(moved, cabs.known)), reidentified(unprotected)
    others = hits.index.difference(pivots)
    results = published("thesis_3_causes")
    share = results["users.pivot"]["value"] / len(cabs.users)
    assert len(pivots) / sample["user"].nunique() == pytest.approx(share, abs=0.12)  # three standard errors of 174
    assert hits[pivots].sum() == without[pivots].sum() > 10
    assert hits[others].mean() <= results["found.moved"]["high"]


def stops(trace, max_gap=np.inf) -> list[np.ndarray]:
    """Rows (lat, lng) of each stop of 200 m and an hour: a window that grows, and forgets its oldest records until the next fits."""
    t, place = trace["t"].astype("datetime64[ns, UTC]").astype("int64").to_numpy() / 1e9, trace[["lat", "lng"]].to_numpy()
    metres = np.stack(metres_per_degree(place[:, 0])[::-1], axis=1)  # of a degree to the north and to the east
    return [place[first:end] for first, end in windows(t, np.ascontiguousarray(place), metres, max_gap)]


@numba.njit
def windows(t, place, metres, max_gap):
    stays, first = [], 0
    for i in range(1, len(t) + 1):
        far = i - 1  # the last that does not fit the next record: at the end, and at a pause, all
        if i < len(t) and t[i] - t[i - 1] <= max_gap:
            while far >= first and (((place[far] - place[i]) * metres[i]) ** 2).sum() <= 200**2:
                far -= 1
        if far >= first:
            stop = i - first >= 2 and t[i - 1] - t[first] >= 3600
            if stop:
                stays.append((first, i))
            first = i if stop else far + 1
    return stays


def places(trace, max_gap=np.inf) -> np.ndarray:
    """Rows (lat, lng, share of the records) of the stops joined over 100 m, by falling share."""
    stays = stops(trace, max_gap)
    middles = np.array([stop.mean(axis=0) for stop in stays])
    groups = []
    for i, middle in enumerate(middles):
        near = set(np.flatnonzero(distance(*middles.T, *middle) <= 100)) | {i}
        groups = [g for g in groups if not g & near] + [near.union(*(g for g in groups if g & near))]
    joined = [np.concatenate([stays[i] for i in sorted(g)]) for g in groups]
    rows = sorted(((len(j), *j.mean(axis=0)) for j in joined), key=lambda row: -row[0])
    total = sum(n for n, _, _ in rows)
    return np.array([(lat, lng, n / total) for n, lat, lng in rows]).reshape(-1, 3)


def nearest_median(p, q, _):
    """Equation (3.12)."""
    d = distance(*p[:, :2].T[:, :, None], *q[:, :2].T[:, None])
    return np.median(np.r_[d.min(axis=1), d.min(axis=0)])


def stats_prox(p, q, printed):
    """Equations (3.13) to (3.15), 10 points for the first pair within 100 m, d0 = 2 km."""
    d = distance(*p[:, :2].T[:, :, None], *q[:, :2].T[:, None])
    stationary, near = (p[:, 2] * d.min(axis=1)).sum(), np.diagonal(d) < 100
    score = (10 * 0.5 ** np.arange(len(near)))[near].sum()
    if stationary <= 2000 or not (printed or score):
        return stationary
    return 1 / score if score else 1e8


def test_stays_that_are_pauses_and_the_printed_condition(real_data):
    """GeoLife, 35 users: POI-Attack 13, 5 without pauses; PIT-Attack 11, 6 without pauses, 7 with Equation (3.13) as printed."""
    halves = prepare(str(next(real_data.glob("geolife_*.parquet"))), start="2009-01-13T23:00")
    hit_counts = {}
    for pause in (np.inf, 3600):
        secret, known = (
            {user: places(trace, pause) for user, trace in half.groupby("user", observed=True)}
            for half in (halves.secret, halves.known)
        )
        secret, known = ({user: of for user, of in half.items() if len(of)} for half in (secret, known))
        for name, d, printed in (("POI", nearest_median, 0), ("PIT", stats_prox, 0), ("PIT", stats_prox, 1)):
            dissimilarities = {user: {other: d(of, known[other], printed) for other in known} for user, of in secret.items()}
            alone = lambda user, of: all(of[user] < of[other] - 1e-9 for other in known if other != user)  # noqa: E731, B023
            hit_counts[name, pause, printed] = sum(user in of and alone(user, of) for user, of in dissimilarities.items())
    results = published("thesis_3_causes", "geolife")
    assert len(halves.users) == 35
    names = ("pauses.filled.POI", "pauses.filled.PIT", "printed.PIT", "pauses.end.POI", "pauses.end.PIT")
    for name, hits in zip(names, hit_counts.values(), strict=False):
        assert hits / 35 == pytest.approx(results[f"{name}-Attack"]["value"]), name
    assert list(hit_counts.values())[:5] == [13, 11, 7, 5, 6]
