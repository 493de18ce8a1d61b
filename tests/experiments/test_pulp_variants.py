"""Many metrics on traces that are protected once: the same tables as one profile for each metric."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from pulp_making import Kept, Moody, wanderers

from mobpriv.experiments.pulp_metrics import profiles
from mobpriv.mechanisms import GeoI, Promesse
from mobpriv.pulp import Metrics, Sweep, profile

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
    found = profiles(PEOPLE, VARIANTS, FEW, (3, 8))
    assert list(found) == list(VARIANTS)
    for name, metrics in VARIANTS.items():
        pd.testing.assert_frame_equal(found[name], profile(PEOPLE, FEW, (3, 8), metrics), obj=name)
    apart = [name for name in VARIANTS if name != "base" and not found[name].equals(found["base"])]
    assert {"longer", "wider", "nearer", "larger cells", "stays", "both"} <= set(apart), "these metrics differ on these traces"


def test_a_refused_trace_stands_in_every_table():
    sweep = Sweep(Moody(), "most", [0.5, 0.7], rises="privacy")
    found = profiles(PEOPLE, {"base": BASE, "wider": VARIANTS["wider"]}, (FEW[1], sweep), (1,))
    refused = found["wider"]["reason"].str.contains("refused")
    assert refused.sum() == 3 * 2
    assert np.isnan(found["wider"].loc[refused, "utility"]).all()
    assert (found["base"]["reason"] == found["wider"]["reason"]).all()


def test_processes_and_what_was_kept_change_nothing():
    kept = Kept()

    alone = profiles(PEOPLE, {"base": BASE}, FEW, keep=kept)["base"]
    pd.testing.assert_frame_equal(profiles(PEOPLE, {"base": BASE}, FEW, workers=2, keep=kept)["base"], alone)
    pd.testing.assert_frame_equal(profiles(PEOPLE, {"base": BASE}, FEW, workers=2)["base"], alone)
    assert set(kept) == {"variants-1", "variants-2", "variants-3"}


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"metrics": {}}, "metrics must hold at least one"),
        ({"sweeps": ()}, "sweeps must hold at least one"),
        ({"seeds": ()}, "seeds must hold at least one"),
        ({"seeds": (1, 1)}, "seeds must be all different"),
        ({"seeds": (-1,)}, "a seed must be"),
        ({"sweeps": (FEW[0], FEW[0])}, "different names"),
    ],
)
def test_mistakes_are_one_line(wrong, words):
    given = {"metrics": {"base": BASE}, "sweeps": FEW, "seeds": (1,)} | wrong
    with pytest.raises(ValueError, match=words):
        profiles(PEOPLE, **given)
