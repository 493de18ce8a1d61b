"""Every verdict and every fault of the ledger."""

import re
from pathlib import Path

import pytest
from claim_making import NAMED, REGISTRY, RESULTS, TABLE, because, claim

from mobpriv.book import quantities, yaml_files
from mobpriv.book.claims import Claim, Erratum, Explanation, LedgerError, printed, read
from mobpriv.book.expressions import named_in
from mobpriv.book.pages import score_page
from mobpriv.book.verdicts import NO_DATA, OLDER, check_errata, evaluate

BEYOND, NEAR = {"printed": {"cabspotting": 0.3}}, {"tolerance": 0.001}  # the printed number: outside our interval, and in it
BARE = {"quantity": "", "printed": None, "tolerance": None, "why": ""}
TWO = ("cabspotting", "geolife")
NAMES = quantities.names({"nb": NAMED}, {"none": "no protection"}, REGISTRY.runs)


def counted(score: str) -> dict[str, list[int]]:
    """The rows of a score."""
    rows = re.findall(r'scope="row">([^<]*)</th>(.*?)</tr>', score)
    return {name: [int(number) for number in re.findall(r">(\d+)<", cells)] for name, cells in rows}


def verdict(results=RESULTS, **fields):
    verdicts = evaluate([claim(**fields)], {"cabspotting": {"nb": results}, "city": {"nb": results}}, REGISTRY, NAMES)
    assert len(verdicts) == 1
    return verdicts[0]


def fault(*claims: Claim, results=None) -> str:
    with pytest.raises(LedgerError) as error:
        evaluate(list(claims), {"cabspotting": {"nb": RESULTS}} if results is None else results, REGISTRY, NAMES)
    return str(error.value)


# ---------------------------------------------------------------------------------------------------------------- verdicts
def test_agrees_within_the_tolerance_and_just_not_beyond():
    plain = {**RESULTS, "rate.AP-Attack.Promesse": 0.12}  # without an interval only the tolerance counts
    assert verdict(plain, printed={"cabspotting": 0.14}).verdict == "agrees"
    assert verdict(plain, printed={"cabspotting": 0.141}, explanations=because()).verdict == "disagrees"
    for at_the_end in (0.10, 0.14):  # a printed value in our interval decides nothing
        result = verdict(printed={"cabspotting": at_the_end}, tolerance=0.001)
        assert (result.verdict, result.value, result.low, result.high, result.n) == ("inconclusive", 0.12, 0.10, 0.14, 536)


PROMESSE = "rate['AP-Attack', 'Promesse'] < "  # .10 to .14


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        (NEAR | {"printed": {"cabspotting": 0.0999}}, "disagrees"),
        (NEAR | {"printed": {"cabspotting": 0.1401}}, "disagrees"),
        (NEAR | {"quantity": "rate['AP-Attack', 'none']", "printed": {"cabspotting": 0.44}}, "disagrees"),
        # a direction may not rest on a difference whose interval holds 0
        (BEYOND | {"direction": "change['AP-Attack'] < 0"}, "agrees in direction"),
        (BEYOND | {"direction": "change['POI-Attack'] < 0"}, "disagrees"),  # its upper end is 0
        (BEYOND | {"direction": "change['PIT-Attack'] < 0"}, "disagrees"),
        (NEAR | {"direction": "change['AP-Attack'] < 0"}, "agrees in direction"),
        (NEAR | {"direction": "change['POI-Attack'] < 0"}, "inconclusive"),
        (NEAR | {"direction": "change['PIT-Attack'] < 0"}, "disagrees"),  # fails throughout: that decides
        # two intervals that overlap show no direction
        (BEYOND | {"direction": PROMESSE + "rate['AP-Attack', 'TriLateration']"}, "agrees in direction"),
        (BEYOND | {"direction": PROMESSE + "rate['AP-Attack', 'W4M']"}, "disagrees"),  # .11 to .15
        (BEYOND | {"direction": PROMESSE + "rate['AP-Attack', 'none']"}, "agrees in direction"),
        # one that only our value shows does not stop an agreement, but one that fails does
        ({"direction": "change['POI-Attack'] < 0"}, "agrees"),
        ({"direction": "rate['AP-Attack', 'Promesse'] > 0.13"}, "inconclusive"),  # printed .11; open at the ends
        ({"printed": {"cabspotting": 0.12}, "direction": "rate['AP-Attack', 'Promesse'] > 0.2"}, "disagrees"),
        (BEYOND | {"direction": "rate['AP-Attack', 'Promesse'] > 0.5"}, "disagrees"),
        (BARE | {"relation": "min_k.median == 3"}, "agrees"),
        (BARE | {"relation": "min_k.median > 3"}, "disagrees"),
        (BARE | {"relation": "change['AP-Attack'] < -0.09"}, "inconclusive"),
        (BARE | {"relation": "change['AP-Attack'] < -0.09", "of_means": True}, "agrees"),  # the interval of the mean
        ({"printed": {"cabspotting": "< 0.2"}, "tolerance": None, "why": ""}, "agrees"),
        ({"printed": {"cabspotting": "< 0.1"}, "tolerance": None, "why": ""}, "disagrees"),
    ],
)
def test_what_comes_of_a_claim(fields, found):
    explained = because("other cabs") if found == "disagrees" else ()
    judged = verdict(**fields, explanations=explained)
    assert (judged.verdict, judged.explanation) == (found, "other cabs" if explained else "")


@pytest.mark.parametrize(
    ("relation", "by_intervals", "by_values"),
    [
        ("change['AP-Attack'] < 0", "agrees", "agrees"),  # -0.2 to -0.01
        ("change['AP-Attack'] > 0", "disagrees", "disagrees"),
        ("change['AP-Attack'] < -0.05", "inconclusive", "agrees"),
        ("change['AP-Attack'] < -0.15", "inconclusive", "disagrees"),
        (PROMESSE + "rate['AP-Attack', 'W4M']", "inconclusive", "agrees"),
        (PROMESSE + "rate['AP-Attack', 'none']", "agrees", "agrees"),
    ],
)
def test_a_relation_of_estimates_holds_throughout_their_intervals(relation, by_intervals, by_values):
    for of_cases, kind in ((False, by_intervals), (True, by_values)):
        explained = because("why") if kind == "disagrees" else ()
        assert verdict(**BARE, relation=relation, of_cases=of_cases, explanations=explained).verdict == kind


def test_of_a_family_the_ledger_shows_the_intervals_that_leave_it_open():
    kept = {"value": 0.3, "low": 0.2, "high": 0.4}
    results = {**RESULTS, "change.AP-Attack": kept, "change.POI-Attack": {**kept, "value": 0.1, "low": -0.2}}
    (part,) = verdict(results, **BARE, relation="min(change[*]) > 0").read
    assert [("(" in value, value.split(":")[0]) for value in part.values][:2] == [(False, "AP-Attack"), (True, "POI-Attack")]
    (part,) = verdict(results, **BARE, relation="min(change[*]) > -0.5").read
    assert not [value for value in part.values if "(" in value]


def test_data_that_cannot_be_had_is_not_testable():
    one = claim(printed={"cabspotting": 0.12, "mdc": 0.46}, stated_for=("privamov",))
    verdicts = evaluate([one], {"cabspotting": {"nb": RESULTS}}, REGISTRY, NAMES)
    assert [v.verdict for v in verdicts] == ["agrees", "not testable without MDC", "not testable without PrivaMov"]


def test_without_a_printed_value_nothing_is_judged_but_the_value_is_shown():
    both = {"datasets": ("cabspotting", "city"), "direction": "min_k.median < 4"}
    verdicts = evaluate([claim(**both)], {"cabspotting": {"nb": RESULTS}, "city": {"nb": RESULTS}}, REGISTRY, NAMES)
    assert [(v.verdict, v.value) for v in verdicts] == [("agrees", 0.12), ("", 0.12)]


# ------------------------------------------------------------------------------------------------------------------ faults
@pytest.mark.parametrize(
    ("fields", "line"),
    [
        (
            {"quantity": "rate['AP-Attack', 'Promise']"},
            "unknown quantity rate.AP-Attack.Promise (near it: rate.AP-Attack.Promesse",
        ),
        ({"quantity": "missing"}, "quantity missing has no value"),
        ({"quantity": "table"}, "quantity table is not a number"),
        (BARE | {"relation": "nothing < 1", "of_means": True}, "unknown quantity nothing"),
        (BEYOND, "disagrees (printed 30\u00a0%, ours 12.0\u00a0%) without an explanation"),
        ({"explanations": because("old")}, "has an explanation of 'disagrees', but the verdict is 'agrees'"),
        ({"explanations": because("old", "geolife")}, "explains geolife, where it is not tested"),
    ],
)
def test_a_fault_is_named_with_its_claim_and_its_run(fields, line):
    where, _, message = fault(claim(**fields)).partition("T2.3")
    assert where == ""
    assert line in message


@pytest.mark.parametrize("of", ["agrees", "agrees in direction", "inconclusive", "disagrees", "holds by construction"])
def test_every_verdict_may_be_explained_and_no_other_explanation_stands(of):
    ways = {
        "agrees": {},
        "agrees in direction": {"printed": {"cabspotting": 0.3}, "direction": "change['AP-Attack'] < 0"},
        "inconclusive": {"tolerance": 0.001},
        "disagrees": {"printed": {"cabspotting": 0.3}},
        "holds by construction": {"by_definition": "our rule"},
    }
    for kind, fields in ways.items():
        why = because("an old cause" if kind == "disagrees" else "the cause", of=of)
        if kind == of:
            result = verdict(**fields, explanations=why)
            assert (result.verdict, result.explanation) == (of, why[0].why)
        else:
            assert f"has an explanation of '{of}', but the verdict is '{kind}'" in fault(claim(**fields, explanations=why))


def test_one_explanation_serves_several_runs_with_the_numbers_of_each():
    results = {run: {"nb": {**RESULTS, "x": i}} for i, run in enumerate(TWO)}
    fields = {"printed": {"cabspotting": 0.3, "geolife": 0.4}, "datasets": TWO}
    verdicts = evaluate([claim(**fields, explanations=because("x is {x}", *TWO))], results, REGISTRY, NAMES)
    assert [v.explanation for v in verdicts] == ["x is 0", "x is 1"]
    assert "GeoLife: disagrees" in fault(claim(**fields, explanations=because("x", "cabspotting")), results=results)


@pytest.mark.parametrize(
    ("kind", "called", "right", "wrong", "verdict_of_wrong"),
    [
        ("impossible", "cannot hold", BEYOND | {"explanations": because("Why.")}, {}, "agrees"),
        ("by_definition", "holds by construction", {}, BEYOND, "disagrees"),
        ("by_definition", "holds by construction", BARE | {"relation": "holds"}, NEAR, "inconclusive"),
        ("by_definition", "holds by construction", {}, BARE | {"relation": "not holds"}, "disagrees"),
    ],
)
def test_what_is_true_or_false_by_definition_is_tested_but_does_not_count(kind, called, right, wrong, verdict_of_wrong):
    declared = {kind: "a theorem"}
    result = verdict(**declared, **right)
    assert (result.verdict, result.explanation) == (called, "Why." if kind == "impossible" else "")
    assert f"is declared '{called}' (a theorem), but the verdict is: {verdict_of_wrong}" in fault(claim(**declared, **wrong))
    score = score_page([result, verdict(id="T2.4")], REGISTRY)
    assert counted(score) == {"Cabspotting": [1, 0, 0, 0]}
    assert "2 claims are tested, and 1 of them is true or false by construction." in score
    assert counted(score_page([result], REGISTRY)) == {}


def test_a_definition_may_hold_for_some_runs_only():
    results = {run: {"nb": RESULTS} for run in TWO}
    fields = {"printed": {"cabspotting": 0.11, "geolife": 0.12}, "datasets": TWO}
    verdicts = evaluate([claim(**fields, by_definition={"geolife": "we cut it"})], results, REGISTRY, NAMES)
    assert [v.verdict for v in verdicts] == ["agrees", "holds by construction"]
    for run, line in (("mdc", "explains mdc, where it is not tested"), ("nowhere", "unknown data sets nowhere")):
        assert line in fault(claim(**fields, by_definition={run: "x"}), results=results)


# ------------------------------------------------------------------------------------------------------------------ tables
def test_a_printed_number_stays_where_another_claim_of_the_quantity_prints_none():
    both = [claim(), claim(id="T2.4", printed={}), claim(id="T2.5", printed={"geolife": 0.3})]
    assert printed(both, "nb", "cabspotting") == {"rate.AP-Attack.Promesse": 0.11}


def test_a_printed_table_has_a_verdict_for_every_cell_that_is_printed():
    results, under = {run: {"nb": RESULTS} for run in TWO}, "rate of AP-Attack under "
    verdicts = evaluate([claim(**TABLE, explanations=because())], results, REGISTRY, NAMES)
    assert [(v.dataset, v.words.removeprefix(under), v.verdict, v.explanation) for v in verdicts] == [
        ("cabspotting", "Promesse", "agrees", ""),
        ("cabspotting", "no protection", "disagrees", "why"),
        ("geolife", "no protection", "agrees", ""),
        ("mdc", "Promesse", "not testable without MDC", ""),
    ]
    for explanations in ((), because("why the other cell agrees", of="agrees")):
        assert "without an explanation" in fault(claim(**TABLE, explanations=explanations), results=results)
    score = score_page(verdicts, REGISTRY)
    assert counted(score) == {"Cabspotting": [0, 0, 0, 1], "GeoLife": [1, 0, 0, 0]}  # a table is one claim
    assert "1 claim is tested" in score


def test_a_number_of_the_score_is_that_of_the_claims_it_leads_to():
    verdicts = evaluate([claim(**TABLE, explanations=because())], {run: {"nb": RESULTS} for run in TWO}, REGISTRY, NAMES)
    cells = [v._replace(verdict="agrees") for v in verdicts if v.dataset == "cabspotting"]
    assert len(cells) == 2
    assert counted(score_page(cells, REGISTRY)) == {"Cabspotting": [1, 0, 0, 0]}
    example = [v._replace(dataset=NO_DATA) for v in cells]
    assert 'href="?verdict=agrees&amp;data=no%20data%20set">1<' in score_page(example, REGISTRY)


def test_a_worked_example_needs_no_data_set():
    result = verdict(printed=0.12, tolerance=0.0, why="exact")
    assert (result.dataset, result.verdict) == ("no data set", "agrees")
    worked = claim(**{**TABLE, "table": {"min_k.median": 3, "x": 2}, "tolerance": 0, "datasets": None})
    cells = evaluate([worked], {"city": {"nb": {**RESULTS, "x": 2}}}, REGISTRY, NAMES)
    assert [(v.dataset, v.verdict) for v in cells] == [("no data set", "agrees")] * 2


# ------------------------------------------------------------------------------------------------------------------- names
def test_every_quantity_of_a_claim_has_a_name():
    for fields in (
        {"quantity": "poi.best"},
        {"direction": "poi.best < 1"},
        BARE | {"relation": "poi.best < 1"},
        BEYOND | {"explanations": because("{poi.best}")},
    ):
        assert "poi.best of nb has no name in book/quantities" in fault(claim(**fields))
    assert "poi.* of nb has no name" in fault(claim(direction="max(poi[*]) < 1"))


def test_what_is_no_expression_and_no_data_set():
    assert "T2.3: '1 +' is not an expression" in fault(claim(direction="1 +"))
    assert "T2.3: unknown data sets citty (known: " in fault(claim(datasets=("citty",)))


def test_by_default_a_claim_is_tested_on_every_run_of_its_notebook():
    registry = REGISTRY._replace(runs={name: run._replace(notebooks=("nb",)) for name, run in REGISTRY.runs.items()})
    verdicts = evaluate([claim(datasets=None)], {run: {"nb": RESULTS} for run in registry.runs}, registry, NAMES)
    assert [v.dataset for v in verdicts] == list(registry.runs)
    assert "T2.3: no run has results of nb" in fault(claim(datasets=None, printed={}), results={})


def test_a_quick_run_is_judged_but_may_lack_what_the_ledger_wants():
    both = {"datasets": ("cabspotting", "city"), "quantity": "min_k.lowest", "printed": None, "tolerance": None}
    lacking = {"cabspotting": {"nb": {"min_k.lowest": 1}}, "city": {"nb": RESULTS}}
    verdicts = evaluate([claim(**both)], lacking, REGISTRY, NAMES, quick_runs={"city"})
    assert [v.verdict for v in verdicts] == ["", "not judged: a quick run"]
    assert "synthetic city: unknown quantity min_k.lowest" in fault(claim(**both), results=lacking)
    assert "1 not judged in this quick build" in score_page(verdicts, REGISTRY, quick_runs={"city"})


def test_all_faults_come_at_once():
    lines = fault(claim(id="A", quantity="x"), claim(id="B", quantity="y")).splitlines()
    assert [line[0] for line in lines] == ["A", "B"]
    assert fault(claim(), results={}) == "T2.3, Cabspotting: there are no results of nb"


GOOD = """
paper: thesis
claims:
  - {id: T1, place: p, claim: c, notebook: nb, relation: "holds"}
"""


@pytest.mark.parametrize(
    ("files", "line"),
    [
        ({"a.yml": GOOD, "b.yml": GOOD}, "b.yml: T1: this id is already in a.yml"),
        ({"a.yml": GOOD.replace("place: p, ", "")}, "a.yml: T1: missing: place"),
        ({"a.yml": GOOD.replace("relation", "relatoin")}, "unknown: relatoin"),
        ({"a.yml": GOOD.replace(', relation: "holds"', "")}, "needs either a quantity, a table or a relation"),
        ({"a.yml": GOOD.replace("relation:", "quantity:")}, "a quantity needs the printed value"),
        ({"a.yml": GOOD.replace('relation: "holds"', "quantity: x, printed: {city: 1}")}, "a printed number needs a tolerance"),
        ({"a.yml": GOOD.replace('relation: "holds"', "table: 3")}, "a.yml: T1: a table is a mapping"),
        ({"a.yml": GOOD.replace("}", ", table: {x: {city: 1}}}")}, "needs either a quantity, a table or a relation"),
        ({"a.yml": GOOD.replace('relation: "holds"', "table: {x: {city: 1}}")}, "a printed number needs a tolerance"),
        ({"a.yml": GOOD.replace('relation: "holds"', "table: {x: {city: '< 1'}}, direction: x > 0")}, "has no direction"),
        ({"a.yml": GOOD.replace("}", ", explanations: {city: why}}")}, "explanations are a list"),
        ({"a.yml": GOOD.replace("}", ", explanations: [{runs: [city]}]}")}, "an explanation needs runs and why"),
        ({"a.yml": GOOD.replace("}", ", explanations: [{runs: city, why: x}]}")}, "needs a list of runs and a text"),
        ({"a.yml": GOOD.replace("}", ", explanations: [{runs: [], why: x}]}")}, "needs a list of runs and a text"),
        ({"a.yml": GOOD.replace("}", ", explanations: [{runs: [city], why: x, of: agreed}]}")}, "(got 'agreed')"),
        (
            {"a.yml": GOOD.replace("}", ", explanations: [{runs: [city, mdc], why: x}, {runs: [city], why: y}]}")},
            "a.yml: T1: city has two explanations of 'disagrees'",
        ),
        (
            {"a.yml": "claims: []"},
            "a.yml: needs the keys paper and claims, may have datasets, drawings, findings, of_means, stated_for",
        ),
    ],
)
def test_a_malformed_ledger(tmp_path, files, line):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(LedgerError) as error:
        read(tmp_path, Claim)
    assert line in str(error.value)


def test_data_sets_at_the_top_of_a_file_hold_for_every_claim_that_does_not_say_otherwise(tmp_path):
    second = GOOD.partition("claims:")[2].replace("T1", "T2").replace('"holds"', '"holds", datasets: [geolife]')
    (tmp_path / "a.yml").write_text("datasets: [city]\nstated_for: [mdc]\n" + GOOD + second)
    first, other = read(tmp_path, Claim)
    assert (first.id, first.paper, first.relation) == ("T1", "thesis", "holds")
    assert [(c.id, c.datasets, c.stated_for) for c in (first, other)] == [
        ("T1", ["city"], ["mdc"]),
        ("T2", ["geolife"], ["mdc"]),
    ]


def test_what_results_older_than_the_code_lack_is_no_fault():
    new, wrong = claim(quantity="rate['AP-Attack', 'new']"), claim(printed={"cabspotting": 0.9})
    results, both = {"cabspotting": {"nb": RESULTS}}, {("cabspotting", "nb")}
    verdicts = evaluate([new], results, REGISTRY, NAMES, stale=both)
    assert [(v.verdict, v.quantity) for v in verdicts] == [(OLDER, new.quantity)]
    for one, stale in ((new, ()), (new, {("geolife", "nb")}), (wrong, both)):
        with pytest.raises(LedgerError):
            evaluate([one], results, REGISTRY, NAMES, stale=stale)


# --------------------------------------------------------------------------------------------------------- errata and pages
def erratum(demonstration: str) -> Erratum:
    return Erratum("E1", "thesis", "Eq. (3.9)", "min for max", "max", "nb", demonstration)


def test_an_erratum_must_be_demonstrated():
    city = {"city": {"nb": RESULTS}}
    assert check_errata([erratum("holds")], city, REGISTRY) == {"E1": ""}
    other = {"holds": False, "rate.AP-Attack.none": 1}
    runs = city | {"geolife": {"nb": other}, "cabspotting": {"nb": RESULTS}, "callers": {"nb": {}}}
    assert check_errata([erratum("holds")], runs, REGISTRY) == {
        "E1": " The computation also shows the erratum on Cabspotting, but does not show it on GeoLife."
    }
    for demonstration, results, line in [
        ("not holds", city, "is not true"),
        ("min_k.median", city, "is a number, not a comparison"),
        ("no", city, "unknown"),
        ("holds", {}, "no results"),
    ]:
        with pytest.raises(LedgerError, match=line):
            check_errata([erratum(demonstration)], results, REGISTRY)


# --------------------------------------------------------------------------------------------------------------------- runs
def test_a_run_as_the_program_is_held_against_the_numbers_of_its_data_set():
    results = {"cabspotting-program": {"nb": RESULTS}}
    verdicts = evaluate([claim(printed={"cabspotting": 0.11}, datasets=("cabspotting-program",))], results, REGISTRY, NAMES)
    assert [(v.dataset, v.printed, v.verdict) for v in verdicts] == [("cabspotting-program", 0.11, "agrees")]


def test_a_claim_across_data_sets_reads_every_run():
    results = {"cabspotting": {"nb": {"rate": 0.4}}, "geolife": {"nb": {"rate": 0.8}}}
    across = BARE | {"datasets": ("across",)}
    result = evaluate([claim(**across, relation="cabspotting.rate < geolife.rate")], results, REGISTRY, NAMES)[0]
    assert (result.dataset, result.verdict) == ("across", "agrees")
    assert result.read == (("rate on Cabspotting", ("40.0\u00a0%",), "", None), ("rate on GeoLife", ("80.0\u00a0%",), "", None))
    assert "disagrees" in fault(claim(**across, relation="cabspotting.rate > geolife.rate"), results=results)


def test_infinite_results_are_numbers_and_cases_too_few_for_an_interval_decide_nothing():
    infinite = {"q3": {"value": "infinite", "low": 34, "high": "infinite", "n": 35}}
    few = {"q3": {"value": 5.0, "low": None, "high": None, "n": 3}}
    for results, at, direction, expected in (
        (infinite, 40, "", "inconclusive"),  # 40 lies between 34 and infinity
        (infinite, 30, "", "disagrees"),
        (few, 39, "", "inconclusive"),
        (few, 39, "q3 < 10", "inconclusive"),  # it holds, but at n = 3 by chance
        (few, 5.5, "", "agrees"),
        ({"q3": 5.0}, 39, "", "disagrees"),  # a number that no sample stands behind
    ):
        explained = because() if expected == "disagrees" else ()
        fields = {"quantity": "q3", "printed": {"cabspotting": at}, "direction": direction, "explanations": explained}
        assert verdict(results, **fields, tolerance=1).verdict == expected


def test_an_explanation_takes_its_numbers_from_the_run():
    def explained(text: str) -> str:
        return verdict(printed={"cabspotting": 0.3}, explanations=because(text)).explanation

    assert explained("only {rate['AP-Attack', 'Promesse']}, {1 / 3} of {min_k.median}") == (
        "only 12\u00a0% (10 to 14\u00a0%, n\u00a0=\u00a0536), 0.33 of 3"
    )
    assert explained("by {-change['AP-Attack']} and {privacy[0.3]}") == "by 10\u00a0points and 2.5\u00a0km"
    assert explained("{rate['AP-Attack', 'W4M']}, not {rate['AP-Attack', 'TriLateration']}") == (  # their n once
        "13\u00a0% (11 to 15\u00a0%, n\u00a0=\u00a0536), not 30\u00a0% (20 to 40\u00a0%)"
    )
    inside = "few (only {rate['AP-Attack', 'Promesse']})"
    assert explained(inside) == "few (only 12\u00a0% [10 to 14\u00a0%, n\u00a0=\u00a0536])"
    for twice in ("{100 * rate['AP-Attack', 'none']} %", "{change['AP-Attack']} points", "{privacy[0.3]} km"):
        assert "which comes with the number" in fault(claim(printed={"cabspotting": 0.3}, explanations=because(twice)))
    assert "unknown quantity" in fault(claim(printed={"cabspotting": 0.3}, explanations=because("{nothing}")))


def test_the_books_own_ledger_can_be_read_and_names_its_quantities():
    root = Path(__file__).parents[2] / "book"
    claims, errata = read(root / "claims", Claim), read(root / "errata", Erratum)
    assert {c.notebook for c in claims} | {e.notebook for e in errata} <= {
        p.stem for p in (root.parent / "notebooks").glob("*.ipynb")
    }
    names = quantities.read(root.parent, REGISTRY.runs)
    assert all(names.of(c.notebook, name).words for c in claims for test in c.tests for name in named_in(test))


def test_a_key_that_stands_twice_is_refused_and_not_dropped_in_silence(tmp_path):
    file = tmp_path / "one.yml"
    file.write_text("paper: thesis\nfindings:\n  - notebook: nb\n    says: one\n    says: two\n")
    with pytest.raises(ValueError, match=r"^one.yml: line 5: 'says' occurs twice$"):
        yaml_files.content(file)
    file.write_text("findings:\n  - says: one\n  - says: one\n")
    assert yaml_files.content(file) == {"findings": [{"says": "one"}] * 2}


def test_one_text_may_explain_two_verdicts():
    why = (Explanation(("cabspotting",), "Why {rate['AP-Attack', 'none']}.", ("disagrees", "inconclusive")),)
    for fields in (BEYOND, NEAR):
        assert verdict(**fields, explanations=why).explanation.startswith("Why 45")
    assert "has an explanation of 'disagrees or inconclusive', but the verdict is 'agrees'" in fault(claim(explanations=why))
