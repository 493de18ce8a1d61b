"""Small claims for tests, and the results that they are held against."""

from mobpriv.book import results, runs
from mobpriv.book.claims import Claim, Explanation

REGISTRY = runs.read(results.ROOT)
NAMED = {
    "rate.{attack}.{mechanism}": ["share", "rate of {attack} under {mechanism}"],
    "change.{attack}": ["points", "change of {attack}'s rate"],
    "min_k.{which}": ["", "{which} of min k"],
    "rate": ["share", "rate"],
    "q3": ["", "third quartile"],
    "privacy.{epsilon}": ["km", "AP at ε = {epsilon} per km", "AP over the ε"],
    "holds": ["", "what holds"],
    "missing": ["", "what is missing"],
    "table": ["", "table"],
    "nothing": ["", "nothing"],
    "x": ["", "x"],
    "y": ["", "y"],
}
RESULTS = {
    "rate.AP-Attack.Promesse": {"value": 0.12, "low": 0.10, "high": 0.14, "n": 536},
    "rate.AP-Attack.none": 0.45,
    "rate.AP-Attack.W4M": {"value": 0.13, "low": 0.11, "high": 0.15, "n": 536},
    "rate.AP-Attack.TriLateration": {"value": 0.3, "low": 0.2, "high": 0.4, "n": 536},
    "change.AP-Attack": {"value": -0.1, "low": -0.2, "high": -0.01, "n": 536},
    "change.POI-Attack": {"value": -0.1, "low": -0.2, "high": 0.0, "n": 536},
    "change.PIT-Attack": {"value": 0.1, "low": 0.01, "high": 0.2, "n": 536},
    "privacy.0.15": 3.0,
    "privacy.0.3": 2.5,
    "min_k.median": 3,
    "holds": True,
    "missing": None,
    "table": [{"a": 1}],
}


def claim(**fields) -> Claim:
    basis = {
        "id": "T2.3",
        "paper": "thesis",
        "place": "§3.4.6, Figure 3.4",
        "claim": "Promesse brings AP-Attack down.",
        "notebook": "nb",
        "quantity": "rate['AP-Attack', 'Promesse']",
        "printed": {"cabspotting": 0.11},
        "tolerance": 0.02,
        "why": "the grid's origin",
        "datasets": ("cabspotting",),
    }
    return Claim(**{**basis, **fields})


def because(why: str = "why", *runs: str, of: str = "disagrees") -> tuple[Explanation]:
    return (Explanation(runs or ("cabspotting",), why, (of,)),)


TABLE = {
    "quantity": "",
    "printed": None,
    "table": {
        "rate['AP-Attack', 'Promesse']": {"cabspotting": 0.11, "mdc": 0.5},
        "rate['AP-Attack', 'none']": {"cabspotting": 0.3, "geolife": 0.45},
    },
    "datasets": ("cabspotting", "geolife"),
}
