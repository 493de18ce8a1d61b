"""A figure of saved results in one statement."""

from collections import namedtuple
from pathlib import Path

import pytest
from IPython.display import Markdown
from notebook_making import publish

from mobpriv import book
from mobpriv.base.estimates import Estimate
from mobpriv.plot import palette

NB = "\u00a0"
REGISTRY = """
data_sets: {cabspotting: Cabspotting}
runs:
  cabspotting: {title: Cabspotting, kind: traces, data: cabspotting, file: a.parquet, notebooks: [nb]}
  city: {title: synthetic city, kind: traces, synthetic: true}
"""
CLAIMS = """
paper: p
claims:
  - {id: A, place: x, claim: y, notebook: nb, quantity: "rate['AP-Attack'].none", printed: {cabspotting: 0.45}, tolerance: 0.01, why: z}
"""
QUANTITIES = """
parts: {none: no protection, "k=": k names}
quantities:
  nb:
    "rate.{attack}.{mechanism}": {unit: share, words: "rate of {attack} under {mechanism}", short: users re-identified}
    "drawn.{attack}.{mechanism}": [share, "rate of {attack} under {mechanism}, range"]
    "within.{k}.{mechanism}": {unit: share, words: "within {k} under {mechanism}", short: users among them}
    "level.{what}.{q}": {unit: "", words: "{what}, percentile {q}", short: "measured {what}"}
    "gain.{mechanism}": {unit: points, words: "gain of {mechanism}", short: gain}
    "loss.{mechanism}": {unit: points, words: "loss of {mechanism}", short: loss}
    limit: [share, the limit]
"""
MECHANISMS, ATTACKS = ("none", "HMC"), ("AP-Attack", "PIT-Attack")
RATES = {
    f"rate.{a}.{m}": Estimate(0.1 * (1 + i + 2 * j), 0, 0.9, 20)
    for i, a in enumerate(ATTACKS)
    for j, m in enumerate(MECHANISMS)
}
RATES |= {f"drawn.{a}.HMC": Estimate(0.3, 0.2, 0.4, 5) for a in ATTACKS}
CURVES = {f"within.{k}.{m}": Estimate(0.01 * k + 0.2 * i, 0, 0.9, 20) for k in range(1, 11) for i, m in enumerate(MECHANISMS)}
PERCENTILES = {f"level.{what}.{q}": q / 100 for what in ("privacy", "utility") for q in range(0, 101, 10)}
GAINS = {f"{what}.{m}": Estimate(0.1, -0.1, 0.2, 20) for what in ("gain", "loss") for m in MECHANISMS}
OWN = {**RATES, **CURVES, **PERCENTILES, **GAINS, "limit": 0.5}
Data = namedtuple("Data", ["name", "synthetic"])
PUBLISHED = {f"rate.{a}.{m}": {"value": 0.4, "low": 0.3, "high": 0.5, "n": 536} for a in ATTACKS for m in MECHANISMS}


@pytest.fixture
def project(tmp_path) -> Path:
    return publish(tmp_path, REGISTRY, CLAIMS, QUANTITIES, {"cabspotting": PUBLISHED})


@pytest.fixture
def compared(project):
    return book.compared("nb", OWN, Data("city", True), project)


def titles(picture) -> list[str]:
    return [axes_of(figure).get_title("left") for figure in picture._figures]


def axes_of(figure):
    return figure.axes[0]


def rates(compared, **options):
    return compared.figure(
        "intervals",
        "rate.{attack}.{mechanism}",
        "Rates.",
        y="mechanism",
        colour="attack",
        mechanism=MECHANISMS,
        attack=ATTACKS,
        **options,
    )


def test_intervals_have_a_panel_per_run_labels_the_paper_s_number_and_the_range(compared):
    shown = rates(compared, spread="drawn.{attack}.{mechanism}", number="4.8")
    assert titles(shown) == [f"Cabspotting, n{NB}={NB}536", f"synthetic city, n{NB}={NB}20"]
    axis = axes_of(shown._figures[1])
    assert axis.get_xlabel() == "users re-identified (%)"
    assert [text.get_text() for text in axis.get_yticklabels()] == ["no protection", "HMC"]
    legend = {attack: palette.mark(attack) for attack in ATTACKS}
    assert shown.legend == legend | {"printed in the paper": palette.Mark(palette.PRINTED, "D", hollow=True)}
    lines = [[len(axes_of(figure).lines), *axes_of(figure).lines[-1].get_xdata()] for figure in shown._figures]
    assert lines == [[9, 45], [10, pytest.approx(40)]]  # a mark and a bar each; the printed number; two ranges
    assert (shown.caption, shown.number) == ("Rates.", "4.8")
    assert shown.alt == (
        f"Users re-identified. Cabspotting: 40.0{NB}% (no protection, AP-Attack), 40.0{NB}% (no protection, PIT-Attack), 40.0{NB}% (HMC, AP-Attack), 40.0{NB}% (HMC, PIT-Attack); "
        f"synthetic city: 10.0{NB}% (no protection, AP-Attack), 20.0{NB}% (no protection, PIT-Attack), 30.0{NB}% (HMC, AP-Attack), 40.0{NB}% (HMC, PIT-Attack)."
    )


def test_levels_or_other_families_are_read_aloud(compared):
    said = f"Users re-identified, PIT-Attack. Cabspotting: 40.0{NB}% (no protection), 40.0{NB}% (HMC); synthetic city: 20.0{NB}% (no protection), 40.0{NB}% (HMC)."
    assert rates(compared, say={"attack": "PIT-Attack"}).alt == said
    assert (
        rates(compared, say="gain.{mechanism}").alt
        == f"Gain. synthetic city: 10.0{NB}points (no protection), 10.0{NB}points (HMC)."
    )
    assert (
        rates(compared, say={"attack": "ILL-Attack"}).alt
        == rates(compared, say="drawn.ILL-Attack.{mechanism}").alt
        == rates(compared).alt
    )
    both = rates(compared, say=["gain.HMC", "loss.HMC"]).alt
    assert both == f"Gain. synthetic city: 10.0{NB}points. Loss. synthetic city: 10.0{NB}points."


def test_curves_are_drawn_over_numbers_and_the_caption_names_the_runs_without_them(compared):
    shown = compared.figure(
        "curves", "within.{k}.{mechanism}", "Shares.", x="k", colour="mechanism", limits=(0, 102), at={"limit": "half"}
    )
    (figure,) = shown._figures
    assert (axes_of(figure).get_xlabel(), axes_of(figure).get_ylabel()) == ("k names", "users among them (%)")
    assert axes_of(figure).get_ylim() == (0, 102)
    assert axes_of(figure).lines[-1].get_ydata() == pytest.approx([50, 50])
    assert shown.legend == {"no protection": palette.mark("none"), "HMC": palette.mark("HMC")}
    assert shown.caption == "Shares. Cabspotting is not drawn, because the book lacks these results for it."
    ends = f"1.0{NB}% to 10.0{NB}% (no protection), 21.0{NB}% to 30.0{NB}% (HMC)"
    assert shown.alt == f"Users among them, from the smallest k names to the largest. synthetic city: {ends}."
    of_two = compared.figure("curves", "within.{k}.{mechanism}", "Shares.", x="k", colour="mechanism", say={"k": 2})
    assert of_two.alt == f"Users among them, k names = 2. synthetic city: 2.0{NB}% (no protection), 22.0{NB}% (HMC)."


@pytest.mark.parametrize(
    ("form", "family", "axes"),
    [
        ("curves", "within.{k}.{mechanism}", {"x": "k", "colour": "mechanism"}),
        ("intervals", "rate.{attack}.{mechanism}", {"y": "mechanism", "colour": "attack"}),
    ],
)
def test_the_x_axis_is_logarithmic_on_request(compared, form, family, axes):
    for log, scale in ((False, "linear"), (True, "log")):
        shown = compared.figure(form, family, "A caption.", log=log, **axes)
        assert {axes_of(figure).get_xscale() for figure in shown._figures} == {scale}


def test_bars_have_an_ordered_scale_and_percentiles_panels_of_their_own(compared):
    bars = compared.figure(
        "stacked", "within.{k}.{mechanism}", "Parts.", y="mechanism", colour="k", k={1: "one", 2: "two"}, words="users"
    )
    assert [(name, look.marker) for name, look in bars.legend.items()] == [("one", "s"), ("two", "s")]
    assert axes_of(bars._figures[0]).get_xlabel() == "users (%)"
    levels = compared.figure(
        "percentiles", "level.{what}.{q}", "Levels.", panel="what", limits={"privacy": (0, 1), "utility": (0, 2)}
    )
    assert titles(levels) == ["synthetic city\nprivacy", "synthetic city\nutility"]
    assert [axes_of(figure).get_xlabel() for figure in levels._figures] == ["measured privacy", "measured utility"]
    assert [axes_of(figure).get_xlim() for figure in levels._figures] == [(-0.02, 1.02), (-0.04, 2.04)]
    assert (
        levels.alt
        == "Measured privacy, 50th percentile. synthetic city: 0.5. Measured utility, 50th percentile. synthetic city: 0.5."
    )


def test_several_families_differ_in_colour_and_runs_may_share_a_panel(compared):
    both = compared.figure("intervals", ["gain.{mechanism}", "loss.{mechanism}"], "Gains.", y="mechanism", words="change", at=0)
    assert list(both.legend) == ["gain", "loss"]
    assert axes_of(both._figures[0]).get_xlabel() == "change (points)"
    runs = compared.figure("intervals", "rate.{attack}.none", "Rates.", y="run", colour="attack")
    (figure,) = runs._figures
    assert [text.get_text() for text in axes_of(figure).get_yticklabels()] == ["Cabspotting", "synthetic city"]
    of_margin = compared.figure(
        "intervals", {"alone": "gain.{mechanism}", "at {k}": "within.{k}.{mechanism}"}, "All.", y="mechanism"
    )
    assert list(of_margin.legend) == ["alone", *(f"at {k}" for k in range(1, 11))]


def test_a_reader_s_own_data_have_no_printed_numbers_and_may_have_other_levels(project):
    results = {f"rate.{a}.Rounding": Estimate(0.5, 0.4, 0.6, 7) for a in ATTACKS}
    shown = book.compared("nb", results, Data("mine.csv", False), project).figure(
        "intervals", "rate.{attack}.{mechanism}", "Rates.", y="mechanism", colour="attack", mechanism=["Rounding"]
    )
    assert titles(shown) == [f"this run, n{NB}={NB}7"]
    assert list(shown.legend) == list(ATTACKS)
    assert shown.alt == f"Users re-identified. this run: 50.0{NB}% (AP-Attack), 50.0{NB}% (PIT-Attack)."
    assert "Cabspotting is not drawn" in shown.caption
    nothing = book.compared("nb", {}, Data("mine.csv", False), project).figure(
        "curves", "within.{k}.{mechanism}", "None.", x="k"
    )
    assert isinstance(nothing, Markdown)


def test_an_unknown_form_is_refused(compared):
    with pytest.raises(ValueError, match=r"^a figure has one of the forms intervals, .* \(got 'pie'\)$"):
        compared.figure("pie", "gain.{mechanism}", "Gains.")
