"""Families of results over their numbers, of runs that hold them and runs that do not."""

from mobpriv.book.comparison import Compared, Shown
from mobpriv.book.quantities import Names

NEW = {"privacy.0.6": {"value": 1.0, "low": 0.5, "high": 2.0}, "privacy.0.15": 3.0, "privacy.full": 4.0, "gap": 0.0}
OLD = {"gap": 0.0}


def shown(title: str, results: dict, here: bool = False) -> Shown:
    return Shown(title, title, "text", results, {}, False, here)


COMPARED = Compared("nb", [shown("Cabspotting", OLD), shown("GeoLife", OLD), shown("this run", NEW, True)], Names({}, {}, {}))


def test_a_curve_goes_over_the_numbers_of_a_family():
    curve = COMPARED.this.curve("privacy.*")
    assert curve.to_dict("list") == {"x": [0.6, 0.15], "low": [0.5, 3.0], "value": [1.0, 3.0], "high": [2.0, 3.0]}


def test_a_run_without_the_family_has_no_curve():
    assert COMPARED.runs[0].curve("privacy.*").empty


def test_who_holds_a_family_is_drawn_who_does_not_is_named():
    assert [run.title for run in COMPARED.having("privacy.*")] == ["this run"]
    assert COMPARED.lacking("privacy.*") == " Not drawn: Cabspotting and GeoLife, whose published results lack these numbers."
    assert Compared("nb", COMPARED.runs[2:], COMPARED.names).lacking("privacy.*") == ""
