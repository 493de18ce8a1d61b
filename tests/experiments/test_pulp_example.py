"""The worked example of PULP's Figure 1, the cases on which Equations (1) and (2) are silent, and many metrics on traces protected once."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from conftest import refusals
from pulp_making import Moody, StepStore, wanderers

from mobpriv.experiments.pulp_metrics import EXAMPLE_CELL as CELL
from mobpriv.experiments.pulp_metrics import (
    cell_corners,
    edge_cases,
    figure_1,
    levels_with_counts,
    poi_positions,
    profiles_by_metrics,
    record_positions,
    trace,
)
from mobpriv.mechanisms import GeoI, Promesse
from mobpriv.pulp import Metrics, Sweep, profile

EXAMPLE = figure_1()
PAPER = {"Geo-I": (3, 3, 2, 7, 9, 7), "Promesse": (3, 1, 1, 7, 6, 6)}  # §II-C3: real, found, matched POIs; cells of T, T', both


@pytest.mark.parametrize("mechanism", PAPER)
def test_the_counts_and_levels_of_the_paper(mechanism):
    example_levels = levels_with_counts(EXAMPLE.original, EXAMPLE.protected[mechanism])
    real, obfuscated, matched, before, after, common = PAPER[mechanism]
    counts = [example_levels[name] for name in ("POIs", "POIs, protected", "POIs, matched", "cells", "cells, protected")]
    assert counts == [real, obfuscated, matched, before, after]
    p, r = matched / obfuscated, matched / real
    assert example_levels["privacy"] == pytest.approx(1 - 2 * p * r / (p + r))
    p, r = common / after, common / before
    assert (example_levels["precision of cells"], example_levels["recall of cells"]) == pytest.approx((p, r))
    assert example_levels["utility"] == pytest.approx(2 * p * r / (p + r))


def test_what_the_figure_draws_is_what_the_metrics_see():
    """Cells are true squares above one another, and the third POI of Geo-I lies more than 100 m off, the other two nearer."""
    assert {round(x / CELL, 3) % 1 for corner in cell_corners(EXAMPLE.protected["Geo-I"]) for x in corner} == {0}
    real, noisy = np.array(poi_positions(EXAMPLE.original)), np.array(poi_positions(EXAMPLE.protected["Geo-I"]))
    assert [round(d) > 100 for d in np.hypot(*(noisy - real).T)] == [False, False, True]
    around = record_positions(EXAMPLE.protected["Promesse"])
    assert np.hypot(*np.diff(around, axis=0).T)[[0, 5, -1]] == pytest.approx(90, abs=0.5)
    assert np.array(record_positions(trace([(10.0, 20.0), (40.0, 60.0)]))) == pytest.approx(
        np.array([[10, 20], [40, 60]]), abs=0.1
    )


def test_the_silent_cases():
    case_levels = {case: levels_with_counts(*traces) for case, traces in edge_cases().items()}
    expected = {"published as it is": 0, "none in the protected": 1, "none matched": 1, "trace erased": 1}
    expected |= {"three POIs around one": -0.5, "no POI in the original": math.nan}
    assert {case: of["privacy"] for case, of in case_levels.items()} == pytest.approx(expected, nan_ok=True)
    assert case_levels["trace erased"]["utility"] == 0
    assert (
        case_levels["three POIs around one"]["precision of POIs"],
        case_levels["three POIs around one"]["recall of POIs"],
    ) == (1, 3)
    assert levels_with_counts(*edge_cases()["three POIs around one"], matched="both")["privacy"] == 0


@pytest.mark.parametrize("case", ["no POI in the original", "none in the protected", "none matched", "three POIs around one"])
def test_the_levels_of_a_profile_are_the_same(case):
    """Privacy does not depend on the cells: PULP's own object says the same as the metric of the package."""
    original, protected = edge_cases()[case]
    of_profile = Metrics().of(original).levels(protected)
    assert of_profile.privacy == pytest.approx(levels_with_counts(original, protected)["privacy"], nan_ok=True)


PEOPLE = wanderers([400, 1, 350], 5)
BASE = Metrics(duration=600)
VARIANTS = {
    "base": BASE,
    "longer": replace(BASE, duration=1200.0),
    "wider": replace(BASE, diameter=400.0),
    "nearer": replace(BASE, near=20.0),
    "larger cells": replace(BASE, level=12),
    "stays": replace(BASE, merged=False),
    "both": replace(BASE, merged=False, matched="both"),
    "pauses": replace(BASE, max_gap=30.0),
    "plane": replace(BASE, plane="mercator"),
}
FEW = (
    Sweep(GeoI(), "epsilon", [0.005, 0.02, 0.5], rises="utility"),
    Sweep(Promesse(), "alpha", [60, 5000.0], rises="privacy"),  # the larger erases traces
)


def test_each_table_is_that_of_a_profile():
    tables = profiles_by_metrics(PEOPLE, VARIANTS, FEW, (3, 8))
    assert list(tables) == list(VARIANTS)
    for name, metrics in VARIANTS.items():
        pd.testing.assert_frame_equal(tables[name], profile(PEOPLE, FEW, (3, 8), metrics), obj=name)
    different = [name for name in VARIANTS if name != "base" and not tables[name].equals(tables["base"])]
    assert {"longer", "wider", "nearer", "larger cells", "stays", "both"} <= set(different), (
        "these metrics differ on these traces"
    )


def test_a_refused_trace_stands_in_every_table():
    sweep = Sweep(Moody(), "most", [0.5, 0.7], rises="privacy")
    tables = profiles_by_metrics(PEOPLE, {"base": BASE, "wider": VARIANTS["wider"]}, (FEW[1], sweep), (1,))
    refused = tables["wider"]["reason"].str.contains("refused")
    assert refused.sum() == 3 * 2
    assert np.isnan(tables["wider"].loc[refused, "utility"]).all()
    assert (tables["base"]["reason"] == tables["wider"]["reason"]).all()


def test_processes_and_what_was_kept_change_nothing():
    store = StepStore()
    alone = profiles_by_metrics(PEOPLE, {"base": BASE}, FEW, keep=store)["base"]
    pd.testing.assert_frame_equal(profiles_by_metrics(PEOPLE, {"base": BASE}, FEW, workers=2, keep=store)["base"], alone)
    pd.testing.assert_frame_equal(profiles_by_metrics(PEOPLE, {"base": BASE}, FEW, workers=2)["base"], alone)
    assert set(store) == {"variants-1", "variants-2", "variants-3"}


test_mistakes_are_one_line = refusals(
    ({"metrics": {}}, "metrics must hold at least one"),
    ({"sweeps": ()}, "sweeps must hold at least one"),
    ({"seeds": ()}, "seeds must hold at least one"),
    ({"seeds": (1, 1)}, "seeds must hold at least one, all different"),
    ({"seeds": (-1,)}, "a seed must be"),
    ({"sweeps": (FEW[0], FEW[0])}, "different names"),
    call=lambda wrong: profiles_by_metrics(PEOPLE, **{"metrics": {"base": BASE}, "sweeps": FEW, "seeds": (1,)} | wrong),
)
