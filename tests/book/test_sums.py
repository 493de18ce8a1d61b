"""How many claims of each paper came out how."""

import importlib.util
import json
import re
from types import SimpleNamespace

import pytest
from claim_making import NAMED, REGISTRY, RESULTS, claim

from mobpriv.book import quantities, results, sums
from mobpriv.book.claims import AGREES, BY_DEFINITION, DIRECTION, DISAGREES, IMPOSSIBLE, NOT_COMPARABLE, UNDECIDED
from mobpriv.book.verdicts import QUICK, Verdict, evaluate

NAMES = quantities.names({"nb": NAMED}, {}, REGISTRY.runs)


def found(*kinds: str, name: str = "T1.1", **fields) -> list[Verdict]:
    return [
        Verdict(claim(id=name, **fields), run, kind)
        for run, kind in zip(("cabspotting", "geolife", "city"), kinds, strict=False)
    ]


@pytest.mark.parametrize(
    ("kinds", "outcome"),
    [
        ([AGREES, AGREES, AGREES], "agree"),
        ([AGREES, UNDECIDED, BY_DEFINITION], "agree"),
        ([DISAGREES, UNDECIDED, ""], "disagree"),
        ([AGREES, DISAGREES], "mixed"),
        ([DIRECTION, DIRECTION], "mixed"),
        ([UNDECIDED, "", QUICK], "inconclusive"),
        ([BY_DEFINITION, IMPOSSIBLE], "by construction"),
        (["not testable without MDC", NOT_COMPARABLE, ""], "not tested"),
    ],
)
def test_what_came_of_a_claim_on_all_data_sets(kinds, outcome):
    assert sums.outcome(found(*kinds)) == outcome


def test_a_table_counts_once_with_its_worst_cell():
    tabled = claim(table={"a": {}, "b": {}})
    cells = [Verdict(tabled, "city", AGREES, quantity="a"), Verdict(tabled, "city", DISAGREES, quantity="b")]
    assert sums.counts(cells) == {"disagree": 1}


def test_the_figures_that_a_place_names():
    several = ["Figure 4.5", "Figure 4.6", "Figure 4.10", "Table I"]
    assert sums.figures_of("Figures 4.5, 4.6 and 4.10; Table I") == several
    assert sums.figures_of("§9.1, Figure 3") == ["Figure 3"]
    assert sums.figures_of("§II-C3, Figure 1 (a)") == ["Figure 1"]
    assert sums.figures_of("§4.7, Equation 3") == []


def test_each_figure_has_its_pages_and_claims_or_what_it_shows():
    verdicts = [
        *found(AGREES, place="Figure 10"),
        *found(DISAGREES, name="T1.2", place="Figures 2 and 10", notebook="other"),
        *found(AGREES, name="T1.3", place="Table 1"),
    ]
    titles, nb, other = {"nb": "Who?", "other": "How?"}, "[Who?](notebooks/nb.ipynb)", "[How?](notebooks/other.ipynb)"
    first, second, third = (f'<a href="ledger_thesis.html#claim-t1-{k}">T1.{k}</a>' for k in (1, 2, 3))
    assert sums.by_figure(verdicts, titles, {"Figure 9": "A drawing."}).splitlines() == [
        "- **Figure 2.**",
        f"  - {other} Claim {second} (disagrees).",
        "- **Figure 9.** A drawing. We test no claim about it.",
        "- **Figure 10.**",
        f"  - {nb} Claim {first} (agrees).",
        f"  - {other} Claim {second} (disagrees).",
        "- **Table 1.**",
        f"  - {nb} Claim {third} (agrees).",
    ]
    labelled = found(AGREES, place="Figure 10", figure="fig-ten")
    assert "[Who?](fig-ten) Claim" in sums.by_figure(labelled, titles, {})  # the figure, not the top of its page
    assert "Figure 10" not in sums.by_figure(verdicts, titles, {}, "2")
    with pytest.raises(ValueError, match="Figure 10: listed under drawings"):
        sums.by_figure(verdicts, titles, {"Figure 10": "A drawing."})


def test_each_paper_has_its_sum_and_each_chapter_of_one_with_several():
    every = [
        *found(AGREES),
        *found(DISAGREES, name="T2.1", notebook="other"),
        *found(AGREES, DISAGREES, name="U1.1", paper="pulp", notebook="third"),
    ]
    text = sums.table(every, REGISTRY, {"One": ["nb"], "Two": ["other"], "Three": ["third"]})
    rows = [row.split("</th>") for row in text.split("<tr")[2:]]
    titles = [re.sub("<[^>]*>", "", title).rpartition(">")[2] for title, _ in rows]
    assert titles == ["Maouche 2019, thesis", "– One", "– Two", "Cerf 2018, PULP"]
    assert [cells.count(">1<") for _, cells in rows] == [2, 1, 1, 1]
    values = sums.substitutions(every)
    assert values["sum_thesis"] == "2 claims: 1 agrees, 1 disagrees"
    assert values["score_thesis"].split("\u202f/\u202f") == ["1", "0", "1", "0"]
    counted = {"claims_all": "3", "mixed_pulp": "1", "agree_all": "1", "not_tested_thesis": "0"}
    assert {name: values[name] for name in counted} == counted
    values = sums.substitutions([*every, *found(BY_DEFINITION, name="T3.1"), *found(NOT_COMPARABLE, name="T4.1")])
    assert (values["claims_all"], values["tested_all"]) == ("5", "3")


def test_a_page_is_filled_with_what_the_build_counted(tmp_path):
    path = results.ROOT / "book" / "_ext" / "filled.py"
    spec = importlib.util.spec_from_file_location("filled", path)
    extension = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(extension)
    config, app = SimpleNamespace(myst_substitutions={"own": "1"}), SimpleNamespace(srcdir=tmp_path)
    extension.fill(app, config)  # before the first build there is nothing
    (tmp_path / "_generated").mkdir()
    (tmp_path / "_generated" / "filled.json").write_text(json.dumps({"agree_thesis": "60"}))
    extension.fill(app, config)
    assert config.myst_substitutions == {"own": "1", "agree_thesis": "60"}


RELATION = {"quantity": "", "printed": None, "tolerance": None, "datasets": None}
BOTH = {run: {"nb": RESULTS} for run in ("cabspotting", "city")}


def test_a_theorem_is_tested_once_without_a_data_set_and_a_stopwatchs_number_is_not_compared():
    holds = claim(**{**RELATION, "why": ""}, relation="holds", kind="theorem", stated_for=("mdc",))
    assert [(v.dataset, v.verdict) for v in evaluate([holds], BOTH, REGISTRY, NAMES)] == [("no data set", AGREES)]
    relation = claim(**{**RELATION, "why": "two machines"}, relation="min_k.median > 100", kind="stopwatch")
    printed = claim(quantity="min_k.median", printed={"cabspotting": 100}, kind="stopwatch", id="T2.4")
    judged = evaluate([relation, printed], BOTH, REGISTRY, NAMES)
    assert {v.verdict for v in judged} == {NOT_COMPARABLE}
    assert sums.counts(judged) == {"not tested": 2}
