"""Bands of PULP's recommendations and margins on its thresholds."""

import numpy as np
import pandas as pd
import pytest

from mobpriv.experiments.pulp import NONE, P_THLD, PU_RATIO, PU_THLD, U_THLD, recommended
from mobpriv.experiments.pulp_beyond import (
    bands,
    left_out_errors,
    margin,
    own_margin,
    resample,
    resample_errors,
    shortfall,
    with_margin,
)
from mobpriv.mechanisms import GeoI
from mobpriv.pulp import Arctan, Sweep, models

GEO = Sweep(GeoI(), "epsilon", np.geomspace(1e-4, 1, 9), "utility")
FALLING, RISING = Arctan(-0.32, 2.0, np.log(0.01), 0.5), Arctan(0.32, 1.5, np.log(0.02), 0.5)
LAW = P_THLD._replace(objectives=((0.7,),))


def made(noise: float, users=("a", "b"), repetitions=4, seed=1) -> pd.DataFrame:
    """A profile that two curves give, with noise."""
    rng = np.random.default_rng(seed)
    rows = [
        {"user": u, "mechanism": "Geo-I", "parameter": "epsilon", "value": v, "repetition": r + 1}
        | {"privacy": FALLING.at(np.log(v)) + noise * rng.normal(), "utility": RISING.at(np.log(v)) + noise * rng.normal()}
        | {"records": 9, "reason": ""}
        for u in users
        for v in GEO.values
        for r in range(repetitions)
    ]
    return pd.DataFrame(rows)


def drawn(levels: dict[str, list[float]], metric="privacy") -> pd.DataFrame:
    """Measured levels of users, a draw a number."""
    rows = [{"user": u, "repetition": i, metric: x} for u, of in levels.items() for i, x in enumerate(of, 1)]
    return pd.DataFrame(rows).reindex(columns=["user", "repetition", "privacy", "utility"]).fillna(1.0)


class TestResampling:
    def test_levels_stay_with_their_user_and_setting(self):
        profile = made(0.1)
        again = resample(profile, np.random.default_rng(1))
        keys = ["user", "value"]
        there = {key: set(of) for key, of in profile.groupby(keys)["privacy"]}
        assert all(set(of) <= there[key] for key, of in again.groupby(keys)["privacy"])
        pairs = set(zip(profile["privacy"], profile["utility"], strict=True))
        assert set(zip(again["privacy"], again["utility"], strict=True)) <= pairs, "both levels of one protection stay together"
        assert (again["privacy"] != profile["privacy"]).any()
        once = made(0.1, repetitions=1)
        pd.testing.assert_frame_equal(resample(once, np.random.default_rng(1)), once)

    def test_each_repetition_is_drawn_as_often(self):
        profile = made(0.1, users=("a",), repetitions=3)
        rng = np.random.default_rng(2)
        first = np.mean([resample(profile, rng)["privacy"].isin(profile["privacy"][::3]).mean() for _ in range(120)])
        assert first == pytest.approx(1 / 3, abs=0.03)  # 120 × 27 draws: three standard deviations are 0.025

    def test_errors_are_put_on_the_model(self):
        profile = made(0.05, users=("a",))
        found = models(profile, [GEO])
        again = resample_errors(profile, found, np.random.default_rng(1))
        row = found[found["metric"] == "privacy"].iloc[0]
        curve = np.array([Arctan(row.a, row.b, row.c, row.d).at(np.log(v)) for v in profile["value"]])
        old, new = ((t["privacy"] - curve).to_numpy() for t in (profile, again))
        assert np.abs(new[:, None] - old).min(axis=1).max() < 1e-12
        assert not np.allclose(old, new)


class TestBands:
    def test_without_noise_a_band_is_a_point(self):
        for resampled in ("repetitions", "errors"):
            found = bands(made(0.0), [LAW], 3, np.random.default_rng(1), [GEO], resampled)
            assert found["same"].eq(1).all()
            assert found["low"].to_numpy() == pytest.approx(found["value"], rel=1e-3)
            assert found["high"].to_numpy() == pytest.approx(found["value"], rel=1e-3)
        with pytest.raises(ValueError, match='resampled must be "repetitions" or "errors"'):
            bands(made(0.0), [LAW], 3, np.random.default_rng(1), [GEO], "users")

    def test_more_noise_is_a_wider_band(self):
        found = [bands(made(noise), [LAW], 20, np.random.default_rng(1), [GEO]) for noise in (0.01, 0.05)]
        width = [np.log(of["high"] / of["low"]).mean() for of in found]
        assert width[1] > 2 * width[0] > 0

    def test_each_law_has_its_rows_and_what_nobody_keeps_has_no_band(self):
        high = PU_THLD._replace(objectives=((0.95, 0.95),))
        found = bands(made(0.01), [LAW, high], 3, np.random.default_rng(1), [GEO])
        assert found.groupby("law")["user"].apply(list).to_dict() == {"P-thld": ["a", "b"], "PU-thld": ["a", "b"]}
        none = found[found["law"] == "PU-thld"]
        assert (none["mechanism"] == NONE).all()
        assert none[["low", "high"]].isna().all(axis=None)
        assert (none["same"] == 1).all()


class TestMargin:
    def test_shortfall_is_that_of_the_threshold_missed_by_more(self):
        law = PU_THLD._replace(objectives=((0.6, 0.7),))
        levels = pd.DataFrame({"user": "a", "privacy": [0.5, 0.7, 0.9], "utility": [0.7, 0.5, 0.9]})
        assert shortfall(law, levels).to_numpy() == pytest.approx([0.1, 0.2, -0.2])
        assert shortfall(U_THLD._replace(objectives=((0.7,),)), levels).to_numpy() == pytest.approx([0, 0.2, -0.2])
        with pytest.raises(ValueError, match="a law with thresholds must be"):
            shortfall(PU_RATIO, levels)

    def test_its_rank_is_that_of_split_conformal_prediction(self):
        """Nine users of one draw: the 0.8 · 10 / 9 quantile is the eighth smallest shortfall."""
        short = [0.01, 0.05, 0.02, 0.09, 0.03, 0.08, 0.04, 0.07, 0.06]
        levels = drawn({f"u{i}": [0.7 - s] for i, s in enumerate(short)})
        assert margin(LAW, levels, 0.8) == pytest.approx(sorted(short)[7])

    def test_a_user_counts_once_however_often_she_was_drawn(self):
        once = drawn({"a": [0.6], "b": [0.65], "c": [0.5]})
        often = drawn({"a": [0.6], "b": [0.65] * 20, "c": [0.5]})
        assert margin(LAW, often, 0.5) == margin(LAW, once, 0.5) == pytest.approx(0.1)

    def test_it_keeps_the_word_as_often_as_it_says(self):
        """Of users who are alike, whatever their law: the share whose next shortfall is below the margin is at least what was wanted."""
        rng = np.random.default_rng(3)
        kept = []
        for _ in range(200):
            levels = drawn({f"u{i}": [0.7 - s] for i, s in enumerate(rng.gamma(2, 0.05, 19))})
            kept.append(rng.gamma(2, 0.05) <= margin(LAW, levels, 0.9))
        assert 0.9 - 3 * np.sqrt(0.09 / 200) <= np.mean(kept) <= 0.9 + 1 / 20 + 3 * np.sqrt(0.09 / 200)

    def test_too_few_users_promise_nothing(self):
        assert margin(LAW, drawn({"a": [0.6], "b": [0.6]}), 0.9) == np.inf
        assert margin(LAW, drawn({f"u{i}": [0.6] for i in range(9)}), 0.9) == pytest.approx(0.1)
        assert margin(LAW, drawn({f"u{i}": [0.9] for i in range(20)}), 0.9) == 0  # who never falls short needs none

    def test_raised_thresholds_are_asked_for_user_by_user(self):
        found = models(made(0.0), [GEO])
        raised = with_margin(found, LAW, {"a": 0.0, "b": 0.1}).set_index("user")
        plain, higher = (recommended(found, P_THLD._replace(objectives=((t,),))).set_index("user") for t in (0.7, 0.8))
        assert raised.loc["a", "value"] == plain.loc["a", "value"]
        assert raised.loc["b", "value"] == pytest.approx(higher.loc["b", "value"])
        assert set(raised["objective"]) == {"0.7"}
        assert with_margin(found, LAW, {"a": np.inf, "b": 0.0})["mechanism"].tolist() == [NONE, "Geo-I"]

    def test_no_unknown_level_passes_for_a_number(self):
        profile = made(0.05)
        profile.loc[3, "privacy"] = np.nan
        again = resample_errors(profile, models(profile, [GEO]), np.random.default_rng(1))
        assert again["privacy"].isna().sum() == 1
        with pytest.raises(ValueError, match=r"a margin needs levels that are numbers \(got NaN for a\)"):
            margin(LAW, drawn({"a": [np.nan, 0.5], "b": [0.6]}).assign(privacy=[np.nan, 0.5, 0.6]), 0.5)
        for given in ({"a": np.nan, "b": 0.1}, {"b": 0.1}):
            with pytest.raises(ValueError, match=r"every user needs a margin \(a has none\)"):
                with_margin(models(made(0.0), [GEO]), LAW, given)

    def test_one_unknown_error_does_not_hide_the_other(self):
        errors = left_out_errors(made(0.05), [GEO])
        errors.loc["a", ("Geo-I", "privacy")] = np.nan
        law = PU_THLD._replace(objectives=((0.3, 0.3),))
        chosen = recommended(models(made(0.05), [GEO]), law)
        assert own_margin(law, chosen, errors, 1.0)["a"] == pytest.approx(errors.loc["a", ("Geo-I", "utility")])

    def test_ones_own_is_the_spread_of_her_errors(self):
        profile = made(0.05)
        errors = left_out_errors(profile, [GEO])
        table = models(profile, [GEO], left_out=True).set_index(["user", "metric"])
        chosen = recommended(models(profile, [GEO]), LAW)
        assert own_margin(LAW, chosen, errors, 2.0)["a"] == pytest.approx(2 * np.sqrt(table.loc[("a", "privacy"), "left_out"]))
        law = PU_THLD._replace(objectives=((0.3, 0.3),))
        both = own_margin(law, recommended(models(profile, [GEO]), law), errors, 1.0)["a"]
        assert both == pytest.approx(np.sqrt(table.loc["a", "left_out"].max()))
        assert own_margin(LAW, chosen.assign(mechanism=NONE), errors, 2.0) == {"a": 0.0, "b": 0.0}
