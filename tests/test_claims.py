"""Every verdict and every fault of the ledger."""

from pathlib import Path

import pytest

from mobpriv.book import results, runs
from mobpriv.book.claims import Claim, Erratum, LedgerError, check_errata, evaluate, read, value_of
from mobpriv.book.pages import errata_page, ledger_page, score_page, sentence

REGISTRY = runs.read(results.ROOT)
RESULTS = {
    "rate.AP-Attack.Promesse": {"value": 0.12, "low": 0.10, "high": 0.14, "n": 536},
    "rate.AP-Attack.none": 0.45,
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


def verdict(results=RESULTS, **fields):
    found = evaluate([claim(**fields)], {"cabspotting": {"nb": results}, "city": {"nb": results}}, REGISTRY)
    assert len(found) == 1
    return found[0]


def fault(*claims: Claim, results=None) -> str:
    with pytest.raises(LedgerError) as error:
        evaluate(list(claims), {"cabspotting": {"nb": RESULTS}} if results is None else results, REGISTRY)
    return str(error.value)


# ---------------------------------------------------------------------------------------------------------------- verdicts
def test_agrees_within_the_tolerance_and_just_not_beyond():
    # ours is 0.12; without an interval only the tolerance counts
    plain = {**RESULTS, "rate.AP-Attack.Promesse": 0.12}
    assert verdict(plain, printed={"cabspotting": 0.14}).verdict == "agrees"
    assert "disagrees (printed 0.141, ours 0.12)" in fault(
        claim(printed={"cabspotting": 0.141}), results={"cabspotting": {"nb": plain}}
    )


def test_a_printed_value_in_our_interval_agrees_in_direction_only():
    found = verdict(printed={"cabspotting": 0.10}, tolerance=0.001)
    assert (found.verdict, found.value, found.low, found.high, found.n) == ("agrees in direction", 0.12, 0.10, 0.14, 536)
    assert "disagrees" in fault(claim(printed={"cabspotting": 0.09}, tolerance=0.001))


def test_nothing_agrees_against_its_own_direction():
    assert "disagrees" in fault(claim(printed={"cabspotting": 0.12}, direction="rate['AP-Attack', 'Promesse'] > 0.2"))


def test_agrees_in_direction_where_the_number_is_another_but_the_conclusion_holds():
    direction = "rate['AP-Attack', 'Promesse'] < rate['AP-Attack', 'none']"
    assert verdict(printed={"cabspotting": 0.3}, direction=direction).verdict == "agrees in direction"


def test_disagrees_with_its_explanation():
    found = verdict(printed={"cabspotting": 0.3}, explanations={"cabspotting": "other cabs"})
    assert (found.verdict, found.explanation) == ("disagrees", "other cabs")


def test_a_direction_that_fails_disagrees():
    found = verdict(
        printed={"cabspotting": 0.3}, direction="rate['AP-Attack', 'Promesse'] > 0.5", explanations={"cabspotting": "why"}
    )
    assert found.verdict == "disagrees"


def test_a_relation_agrees_or_disagrees():
    only = {"quantity": "", "printed": None, "tolerance": None, "why": ""}
    assert verdict(**only, relation="min_k.median == 3").verdict == "agrees"
    assert verdict(**only, relation="min_k.median > 3", explanations={"cabspotting": "why"}).verdict == "disagrees"


def test_a_printed_bound():
    assert verdict(printed={"cabspotting": "< 0.2"}, tolerance=None, why="").verdict == "agrees"
    assert "disagrees" in fault(claim(printed={"cabspotting": "< 0.1"}, tolerance=None, why=""))


def test_data_that_cannot_be_had_is_not_testable():
    found = evaluate(
        [claim(printed={"cabspotting": 0.12, "mdc": 0.46}, stated_for=("privamov",))],
        {"cabspotting": {"nb": RESULTS}},
        REGISTRY,
    )
    assert [v.verdict for v in found] == ["agrees", "not testable without MDC", "not testable without PrivaMov"]


def test_without_a_printed_value_nothing_is_judged_but_the_value_is_shown():
    both = {"datasets": ("cabspotting", "city"), "direction": "min_k.median < 4"}
    found = evaluate([claim(**both)], {"cabspotting": {"nb": RESULTS}, "city": {"nb": RESULTS}}, REGISTRY)
    assert [(v.verdict, v.value) for v in found] == [("agrees", 0.12), ("", 0.12)]


def test_a_worked_example_needs_no_data_set():
    found = verdict(printed=0.12, tolerance=0.0, why="exact")
    assert (found.dataset, found.verdict) == ("no data set", "agrees")


# ------------------------------------------------------------------------------------------------------------------ faults
def test_an_unknown_quantity_is_named_with_what_is_near_it():
    line = fault(claim(quantity="rate['AP-Attack', 'Promise']"))
    assert line.startswith("T2.3, Cabspotting: unknown quantity rate.AP-Attack.Promise (near it: rate.AP-Attack.Promesse")


def test_missing_results():
    assert fault(claim(), results={}) == "T2.3, Cabspotting: there are no results of nb"


def test_a_quantity_without_a_value_or_not_a_number():
    assert "quantity missing has no value" in fault(claim(quantity="missing"))
    assert "quantity table is not a number" in fault(claim(quantity="table"))


def test_a_disagreement_that_nobody_explained():
    assert fault(claim(printed={"cabspotting": 0.3})) == (
        "T2.3, Cabspotting: disagrees (printed 0.3, ours 0.12) and nobody has explained why"
    )


def test_an_explanation_that_has_gone_stale():
    assert "explanation of a disagreement, but the verdict is 'agrees'" in fault(claim(explanations={"cabspotting": "old"}))
    assert "explains geolife, where it is not tested" in fault(claim(explanations={"geolife": "old"}))


def test_unknown_data_sets_are_named():
    assert "T2.3: unknown data sets citty (known: " in fault(claim(datasets=("citty",)))


def test_by_default_a_claim_is_tested_on_every_run_of_its_notebook():
    own = REGISTRY._replace(runs={name: run._replace(notebooks=("nb",)) for name, run in REGISTRY.runs.items()})
    found = evaluate([claim(datasets=None)], {run: {"nb": RESULTS} for run in own.runs}, own)
    assert [v.dataset for v in found] == list(own.runs)
    assert "T2.3: no run has results of nb" in fault(claim(datasets=None, printed={}), results={})


def test_a_quick_run_is_judged_but_may_lack_what_the_ledger_wants():
    both = {"datasets": ("cabspotting", "city"), "quantity": "min_k.lowest", "printed": None, "tolerance": None}
    lacking = {"cabspotting": {"nb": {"min_k.lowest": 1}}, "city": {"nb": RESULTS}}
    found = evaluate([claim(**both)], lacking, REGISTRY, rough={"city"})
    assert [v.verdict for v in found] == ["", "not judged: a quick run"]
    assert "synthetic city: unknown quantity min_k.lowest" in fault(claim(**both), results=lacking)
    assert "1 not judged in this quick build" in score_page(found, [], REGISTRY, rough={"city"})


def test_all_faults_come_at_once():
    lines = fault(claim(id="A", quantity="x"), claim(id="B", quantity="y")).splitlines()
    assert [line[0] for line in lines] == ["A", "B"]


GOOD = """
paper: thesis
claims:
  - {id: T1, place: p, claim: c, notebook: nb, relation: "holds"}
"""


@pytest.mark.parametrize(
    ("files", "line"),
    [
        ({"a.yml": GOOD, "b.yml": GOOD}, "b.yml: T1: this id stands in a.yml already"),
        ({"a.yml": GOOD.replace("place: p, ", "")}, "a.yml: T1: missing: place"),
        ({"a.yml": GOOD.replace("relation", "relatoin")}, "unknown: relatoin"),
        ({"a.yml": GOOD.replace(', relation: "holds"', "")}, "needs either a quantity or a relation"),
        ({"a.yml": GOOD.replace("relation:", "quantity:")}, "a quantity needs the printed value"),
        ({"a.yml": GOOD.replace('relation: "holds"', "quantity: x, printed: {city: 1}")}, "a printed number needs a tolerance"),
        ({"a.yml": "claims: []"}, "a.yml: needs exactly the keys paper and claims"),
    ],
)
def test_a_malformed_ledger(tmp_path, files, line):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(LedgerError) as error:
        read(tmp_path, Claim)
    assert line in str(error.value)


def test_reading_keeps_the_order_and_the_paper(tmp_path):
    (tmp_path / "a.yml").write_text(GOOD)
    (only,) = read(tmp_path, Claim)
    assert (only.id, only.paper, only.relation) == ("T1", "thesis", "holds")


def test_data_sets_at_the_top_of_a_file_hold_for_every_claim_that_does_not_say_otherwise(tmp_path):
    second = GOOD.partition("claims:")[2].replace("T1", "T2").replace('"holds"', '"holds", datasets: [geolife]')
    (tmp_path / "a.yml").write_text("datasets: [city]\nstated_for: [mdc]\n" + GOOD + second)
    found = read(tmp_path, Claim)
    assert [(c.id, c.datasets, c.stated_for) for c in found] == [("T1", ["city"], ["mdc"]), ("T2", ["geolife"], ["mdc"])]


# ------------------------------------------------------------------------------------------------------------- expressions
@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1 + 2 * 3 - 4 / 2", 5),
        ("-min_k.median", -3),
        ("abs(-2) + min(3, 1, 2) + max(1, 2)", 5),
        ("min_k['median']", 3),
        ("1 < 2 < 3 and not 2 < 1", True),
        ("1 > 2 or holds", True),
        ("min_k.median == 3 != 4", True),
    ],
)
def test_expressions(expression, value):
    assert value_of(expression, RESULTS) == value


@pytest.mark.parametrize(
    "expression",
    ["__import__('os')", "open('x')", "(1).real", "[1][0]", "lambda: 1", "holds if 1 else 2", "2 ** 9", "'a'", "min_k[x]", "1 +", "1/0",
     "max(1, key=abs)"],
)  # fmt: skip
def test_nothing_else_is_an_expression(expression):
    with pytest.raises(ValueError, match=r"expression|result|unknown|divides"):
        value_of(expression, RESULTS)


# --------------------------------------------------------------------------------------------------------- errata and pages
def erratum(demonstration: str) -> Erratum:
    return Erratum("E1", "thesis", "Eq. (3.9)", "min for max", "max", "nb", demonstration)


def test_an_erratum_must_be_demonstrated():
    check_errata([erratum("holds")], {"city": {"nb": RESULTS}}, REGISTRY)
    for demonstration, line in [
        ("not holds", "did not come out true"),
        ("min_k.median", "did not come out true"),
        ("no", "unknown"),
    ]:
        with pytest.raises(LedgerError, match=line):
            check_errata([erratum(demonstration)], {"city": {"nb": RESULTS}}, REGISTRY)
    with pytest.raises(LedgerError, match="no results"):
        check_errata([erratum("holds")], {}, REGISTRY)


def test_the_pages_show_values_verdicts_and_reasons():
    verdicts = evaluate(
        [
            claim(unit="%", figure="fig-3-4"),
            claim(id="T9", printed={"cabspotting": 0.3}, explanations={"cabspotting": "because"}),
        ],
        {"cabspotting": {"nb": RESULTS}},
        REGISTRY,
    )
    ledger = ledger_page(verdicts, REGISTRY)
    assert "| 11 % | 12 % (10 % to 14 %), n = 536 |" in ledger
    assert "[§3.4.6, Figure 3.4](#fig-3-4)" in ledger
    assert '<span class="verdict disagrees">✗ disagrees</span>' in ledger
    assert "- **T9**, Cabspotting: because" in ledger
    score = score_page(verdicts, [erratum("holds")], REGISTRY)
    assert "| Cabspotting | 1 | 0 | 1 |" in score
    assert "2 claims tested; 1 erratum demonstrated." in score
    assert "[demonstration](notebooks/nb.ipynb)" in errata_page([erratum("holds")])


# --------------------------------------------------------------------------------------------------------------------- runs
def test_a_run_as_the_program_is_held_against_the_numbers_of_its_data_set():
    results = {"cabspotting-program": {"nb": RESULTS}}
    found = evaluate([claim(printed={"cabspotting": 0.11}, datasets=("cabspotting-program",))], results, REGISTRY)
    assert [(v.dataset, v.printed, v.verdict) for v in found] == [("cabspotting-program", 0.11, "agrees")]


def test_a_claim_across_data_sets_reads_every_run():
    results = {"cabspotting": {"nb": {"rate": 0.4}}, "geolife": {"nb": {"rate": 0.8}}}
    relation = {"quantity": "", "printed": None, "tolerance": None, "datasets": ("across",)}
    found = evaluate([claim(**relation, relation="cabspotting.rate < geolife.rate")], results, REGISTRY)[0]
    assert (found.dataset, found.verdict) == ("across", "agrees")
    assert found.parts == (("cabspotting.rate", 0.4), ("geolife.rate", 0.8))
    assert "`cabspotting.rate` = 0.4" in sentence(found, REGISTRY)
    assert "disagrees" in fault(claim(**relation, relation="cabspotting.rate > geolife.rate"), results=results)


def test_infinite_results_are_numbers():
    results = {"q3": {"value": "infinite", "low": 34, "high": "infinite", "n": 35}}
    assert value_of("q3 > 1000", results) is True
    found = verdict(results, quantity="q3", printed={"cabspotting": 40}, tolerance=0)
    assert found.verdict == "agrees in direction"  # 40 lies between 34 and infinity
    assert "disagrees" in fault(
        claim(quantity="q3", printed={"cabspotting": 30}, tolerance=0), results={"cabspotting": {"nb": results}}
    )


def test_an_explanation_takes_its_numbers_from_the_run():
    found = verdict(printed={"cabspotting": 0.3}, explanations={"cabspotting": "only {100 * rate['AP-Attack', 'Promesse']} %"})
    assert found.explanation == "only 12 %"
    assert "unknown quantity" in fault(claim(printed={"cabspotting": 0.3}, explanations={"cabspotting": "{nothing}"}))


def test_the_books_own_ledger_can_be_read():
    root = Path(__file__).parent.parent / "book"
    claims, errata = read(root / "claims", Claim), read(root / "errata", Erratum)
    assert {c.notebook for c in claims} | {e.notebook for e in errata} <= {
        p.stem for p in (root.parent / "notebooks").glob("*.ipynb")
    }
