"""What tells PULP and ALP apart: the costs of both objectives, their best settings, and annealing on what was measured."""

from math import pi

import numpy as np
import pandas as pd
import pytest

from mobpriv.experiments.pulp_beyond import Response, costs, largest_sum, responses
from mobpriv.pulp import BOTH, Arctan, Candidate, Objective

VALUES = np.array([0.001, 0.01, 0.1, 1.0])


def response(privacy, utility, noise=0.0) -> Response:
    """Two draws around the given means."""
    apart = np.array([-noise, noise])
    return Response(VALUES, np.asarray(privacy, float)[:, None] + apart, np.asarray(utility, float)[:, None] + apart)


@pytest.mark.parametrize(("privacy", "utility"), [(0.7, 0.4), (1.0, 0.0), (0.2, 0.9), (0.5, 0.5), (-0.1, 0.5)])
def test_the_costs_of_the_sum_and_of_the_ratio_are_those_of_alps_objectives(privacy, utility):
    of = {"privacy": privacy, "utility": utility}
    assert costs("sum", privacy, utility) == pytest.approx(sum(o.cost(of[o.metric]) for o in BOTH))
    half = Objective("equal", "privacy", 0.5)
    assert costs("ratio", abs(privacy), utility) == pytest.approx(half.cost(abs(privacy) / (abs(privacy) + utility)))
    assert costs("ratio", 0.0, 0.0) == 1
    with pytest.raises(ValueError, match="objective"):
        costs("product", privacy, utility)


def test_the_best_ratio_is_where_the_levels_cross():
    # privacy 1 - s, utility s/2 at the share s of the way in ln ε: equal at s = 2/3
    thirds = np.arange(4) / 3
    assert response(1 - thirds, thirds / 2).best("ratio") == pytest.approx(0.1)
    # between two values: 0.8 and 0.3 at 0.01, 0.2 and 0.5 at 0.1 meet 5/8 of the way
    assert response([1, 0.8, 0.2, 0], [0, 0.3, 0.5, 1]).best("ratio") == pytest.approx(0.01 * 10 ** (5 / 8))

    # of three crossings, at 0.15, 0.5 and 0.45, that of the highest levels
    assert response([0.2, 0.1, 0.9, 0.0], [0.1, 0.2, 0.8, 0.1]).best("ratio") == pytest.approx(10**-1.5)
    # levels that never cross are nearest at an end
    assert response([0.9, 0.8, 0.7, 0.6], [0.1, 0.2, 0.3, 0.4]).best("ratio") == 1.0


def test_the_best_sum_is_the_highest_corner():
    assert response([1, 0.9, 0.2, 0], [0, 0.4, 0.8, 0.9]).best("sum") == pytest.approx(0.01, rel=0.01)


def test_annealing_without_noise_comes_near_the_best():
    one, values = response([1, 0.9, 0.2, 0], [0, 0.4, 0.8, 0.9]), np.geomspace(0.001, 1, 200)
    found = [one.annealed("sum", values, np.random.default_rng(seed)) for seed in range(10)]
    assert set(found) <= set(values.tolist())
    best = costs("sum", *one.means(one.best("sum")))
    assert np.median([costs("sum", *one.means(value)) for value in found]) - best < 0.05


def test_annealing_sees_the_noise_of_one_draw_in_both_levels():
    # the noise takes from privacy what it gives to utility: their sum never moves, and neither does what annealing finds
    calm, noise = response([1, 0.9, 0.2, 0], [0, 0.4, 0.8, 0.9]), np.array([-0.05, 0.05])
    noisy = Response(VALUES, calm.privacy + noise, calm.utility - noise)
    values = np.geomspace(0.011, 0.09, 50)  # where no level is cut at 1
    for seed in range(5):
        a, b = (r.annealed("sum", values, np.random.default_rng(seed), runs=1) for r in (calm, noisy))
        assert a == b


ONE = Candidate("Geo-I", Arctan(-1 / pi, 2.0, np.log(0.02), 0.5), Arctan(1 / pi, 1.0, np.log(0.005), 0.5), 1e-4, 1.0)


def test_the_largest_sum_of_models_is_that_of_a_search():
    x = np.linspace(np.log(1e-4), 0, 20_001)
    sums = [ONE.privacy.at(v) + ONE.utility.at(v) for v in x]
    assert np.log(largest_sum(ONE)) == pytest.approx(x[np.argmax(sums)], abs=0.01)


def profile(**changed) -> pd.DataFrame:
    rows = [
        {"user": user, "mechanism": "Geo-I", "value": value, "repetition": r, "privacy": 0.5 + value, "utility": r / 10}
        for user in "ab"
        for value in (0.1, 0.2)
        for r in (1, 2, 3)
    ]
    return pd.DataFrame(rows).assign(**changed)


def test_responses_hold_a_row_a_value_and_a_column_a_draw():
    found = responses(profile())
    assert list(found) == ["a", "b"]
    assert found["a"].values.tolist() == [0.1, 0.2]
    assert found["a"].utility.tolist() == [[0.1, 0.2, 0.3]] * 2
    assert found["b"].privacy.tolist() == [[0.6] * 3, [0.7] * 3]

    table = profile()
    table.loc[table["user"] == "a", "privacy"] = np.nan
    assert list(responses(table)) == ["b"]
    with pytest.raises(ValueError, match="one mechanism"):
        responses(profile(mechanism=["Geo-I", "Promesse"] * 6))


def test_halves_have_each_draw_once():
    whole = responses(profile())["a"]
    first, second = whole.halves()
    assert first.utility.tolist() == [[0.1]] * 2
    assert second.utility.tolist() == [[0.2, 0.3]] * 2
    assert np.hstack([first.privacy, second.privacy]).tolist() == whole.privacy.tolist()
    with pytest.raises(ValueError, match=r"^draws must be a whole number, at least 2 \(got 1\)$"):
        first.halves()


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ({"missing": "privacy: no POI"}, r"^the largest sum needs models of both levels \(Geo-I has privacy: no POI\)$"),
        ({"utility": Arctan(np.nan, 1, 0, 0)}, r"^the largest sum needs models of both levels \(Geo-I has none\)$"),
        ({"low": 2.0}, r"^the range of Geo-I must be positive, its ends in order \(got 2.0 to 1.0\)$"),
    ],
)
def test_a_candidate_without_models_has_no_largest_sum(changed, line):
    with pytest.raises(ValueError, match=line):
        largest_sum(ONE._replace(**changed))
