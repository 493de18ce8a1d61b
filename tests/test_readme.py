"""What the README says in numbers is what the results on real data say."""

import json

from mobpriv.book.results import ROOT


def test_the_rates_of_the_readme_are_those_of_the_results():
    text = " ".join((ROOT / "README.md").read_text("utf-8").split())
    for run, whom in (("cabspotting", "San Francisco cabs"), ("geolife", "people in Beijing")):
        record = json.loads((ROOT / "book" / "results" / run / "thesis_3_attacks.json").read_text("utf-8"))
        rate = record["results"]["rate.AP-Attack"]
        assert f"{100 * rate['value']:.1f} % of {rate['n']} {whom}" in text
    record = json.loads((ROOT / "book" / "results" / "cabspotting" / "thesis_4_informed.json").read_text("utf-8"))
    ignored, known = (
        100 * record["results"][f"trained.{trained_on}.AP-Attack.Promesse"]["value"] for trained_on in ("recorded", "protected")
    )
    assert (
        f"Promesse it re-identifies {ignored:.1f} % of the cabs, and {known:.1f} % if the adversary knows the mechanism" in text
    )
