"""The setting of the pages on PRIMULE: whose profiles, of which weeks, and what it refuses."""

import numpy as np
import pytest

from mobpriv.experiments.primule import prepare


def test_the_profiles_of_the_region():
    setting = prepare("region")
    assert setting.values.shape == (len(setting.profiles), 24)
    assert len(setting.town) == len(setting.profiles)
    assert ((setting.values > 0).any(axis=1)).all()  # a profile is of somebody who called
    assert not setting.left_out["records"].sum()
    assert f"{setting.profiles['municipality'].nunique()} municipalities" in setting.selection


def test_the_most_populous_municipalities():
    every, few = prepare("region"), prepare("region", most=3)
    names, sizes = np.unique(every.town, return_counts=True)
    assert set(few.town) == set(names[np.argsort(-sizes, kind="stable")[:3]])
    assert len(few.profiles) == np.sort(sizes)[-3:].sum()
    assert "3 municipalities, the most populous of 20," in few.selection
    assert "populous" not in every.selection
    assert few.profiles.index.equals(few.profiles.reset_index(drop=True).index)


def test_fewer_weeks_are_the_first_of_four():
    assert prepare("region", weeks=2).values.shape[1] == 12


def test_calls_outside_the_weeks_are_counted():
    setting = prepare("region", start="2024-10-14")
    assert setting.left_out.set_index("rule")["records"]["before the window"] > 0
    assert "before the window" in setting.selection


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"dataset": "city"}, r"individual call profiles are made of call records.*city holds traces"),
        ({"dataset": "region", "start": "2030-01-01"}, r"region has no call in the 4 weeks from 2030-01-01 on"),
        ({"dataset": "region", "most": -1}, r"most must be"),
        ({"dataset": "region", "zone": "Europe/Atlantis"}, r"zone must be the name of a time zone.*Atlantis"),
    ],
)
def test_what_cannot_be_profiled_is_refused_in_one_line(given, message):
    with pytest.raises(ValueError, match=message):
        prepare(**given)
