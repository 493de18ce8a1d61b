"""The cards of the claims and the errata: everything once, in words, and nothing left out."""

import json
import re
from html import unescape
from pathlib import Path

import pytest
from claim_making import NAMED, REGISTRY, RESULTS, TABLE, because, claim
from conftest import refuses

from mobpriv.book import quantities, runs
from mobpriv.book.claims import BY_DEFINITION, IMPOSSIBLE, NOT_COMPARABLE, SCORED_VERDICTS, Claim, Erratum, read
from mobpriv.book.ledger import Line as TableLine
from mobpriv.book.ledger import _merged, badge, errata_page, ids_page, ledger_page, linked, side_by_side, verdicts_in_words
from mobpriv.book.verdicts import evaluate

BOOK = Path(__file__).parents[2] / "book"
NAMES = quantities.names({"nb": NAMED, "other": NAMED}, {"none": "no protection"}, REGISTRY.runs)
CONTENTS = {"Part": {"other": "Another page", "nb": "A page"}}
RELATION = {"quantity": "", "printed": None, "tolerance": None, "why": ""}
TWO = ("cabspotting", "geolife")


def judged(*claims: Claim, runs=TWO, notebooks=("nb",), change=lambda run: {}):
    results = {run: {name: {**RESULTS, **change(run)} for name in notebooks} for run in (*runs, "city")}
    return evaluate(list(claims), results, REGISTRY, NAMES)


def ledger(*claims: Claim, **given) -> str:
    return ledger_page(judged(*claims, **given), REGISTRY, CONTENTS)


def rows(text: str, kind: str = "sets") -> list[list[str]]:
    """The lines of all tables of a kind: what the cells say."""
    tables = re.findall(rf'<table class="{kind}\b.*?</table>', text)
    markup = re.findall(r"<tr.*?</tr>", "".join(tables))
    return [
        [re.sub(r" +", " ", re.sub(r"<[^>]+>", " ", cell)).strip(" ") for cell in re.findall(r"<t[hd].*?</t[hd]>", row)]
        for row in map(unescape, markup)
    ]


def test_data_sets_stand_side_by_side_real_ones_first_the_city_last():
    text = ledger(claim(datasets=("city", *TWO), printed={"cabspotting": 0.11, "mdc": 0.46}, stated_for=("privamov",)))
    assert rows(text) == [
        ["", "Cabspotting", "GeoLife", "synthetic city"],
        ["verdict", "✓ reproduced", "– no number in the paper", "– no number in the paper"],
        ["printed", "11\u00a0%", "–", "–"],
        ["ours: rate of AP-Attack under Promesse"] + ["12.0\u00a0% 10.0 to 14.0\u00a0%"] * 3,
        ["n", "536", "536", "536"],
    ]
    assert text.count("○ not tested on MDC and PrivaMov") == text.count("not tested on") == 1
    assert "○ not testable without MDC</span></summary>" in ledger(claim(datasets=(), printed={"mdc": 0.46}))
    assert 'data-found="cabspotting:agrees|geolife:open|city:open|mdc:untestable|privamov:untestable"' in text


def test_the_number_of_cases_stands_once_where_the_numbers_of_a_data_set_share_it():
    relation = "rate['AP-Attack', 'Promesse'] < rate['AP-Attack', 'TriLateration']"
    shared = rows(ledger(claim(**RELATION, relation=relation)))
    under = [f"rate of AP-Attack under {name}" for name in ("Promesse", "TriLateration")]
    assert [row[0] for row in shared[2:]] == [*under, "n"]
    other = {"rate.AP-Attack.Promesse": {"value": 0.12, "low": 0.10, "high": 0.14, "n": 1234}}
    separate = rows(ledger(claim(**RELATION, relation=relation), change=lambda run: other))
    assert [(row[0], row[1].split(" n")[1]) for row in separate[2:]] == [
        (under[0], "\u00a0=\u00a01\u202f234"),
        (under[1], "\u00a0=\u00a0536"),
    ]


def test_an_explanation_is_said_once_for_all_data_sets_that_share_it():
    fields = {"printed": dict.fromkeys(TWO, 0.3), "datasets": TWO}
    text = ledger(claim(**fields, explanations=because("The cause.", *TWO)))
    assert text.count("The cause.") == text.count("**Cabspotting; GeoLife**: The cause.\n") == 1
    text = ledger(claim(**fields, explanations=because("One cause.", "cabspotting") + because("Another.", "geolife")))
    assert "**Cabspotting**: One cause.\n" in text
    assert "**GeoLife**: Another.\n" in text


def test_of_an_explanation_only_the_sentences_with_other_numbers_are_said_for_each_data_set():
    why = because("It does so for {x} of them. The rest is a matter of course.", *TWO)
    text = ledger(claim(printed=dict.fromkeys(TWO, 0.3), datasets=TWO, explanations=why), change=lambda run: {"x": len(run)})
    differing = "- Cabspotting: It does so for 11 of them.\n- GeoLife: It does so for 7 of them."
    assert f"\n\n{differing}\n\nThe rest is a matter of course.\n" in text


def test_sentences_are_merged():
    assert _merged({"A": "One. Two. Three.", "B": "One. 2. Three."}) == ["One.", "- A: Two.\n- B: 2.", "Three."]
    assert _merged({"A": "One. Two.", "B": "One."}) == ["", "- A: One. Two.\n- B: One."]  # nothing is lost
    assert _merged({"A": "One. Two.", "B": "One. Two."}) == ["One. Two."]


def test_each_kind_of_verdict_says_what_it_rests_on():
    cards = ledger(
        claim(id="T1.1", printed={"cabspotting": 0.3}, direction="change['AP-Attack'] < 0"),
        claim(id="T1.2", tolerance=0.001, direction="change['POI-Attack'] < 0"),
        claim(id="T1.3", by_definition="a theorem"),
        claim(id="T1.4", direction="change['AP-Attack'] < 0"),
        claim(id="T1.5", printed={"cabspotting": "<= 0.5"}, tolerance=None, why=""),
        claim(id="T1.6", printed={}, tolerance=None, why=""),
    ).split(":::::{div} claim")[1:]
    intervals, inside = (
        "also follows from every value inside our 95\u00a0% intervals.",
        "The printed number lies inside our interval",
    )
    others = "**Cabspotting**: A theorem.", "", "must satisfy the printed bound.", "is shown, but not compared"
    for card, words in zip(cards, (intervals, inside, *others), strict=True):
        assert words in card
    assert ["change of AP-Attack's rate", "is below 0\u00a0points"] in rows(cards[0], "conditions")
    assert ["change of AP-Attack's rate", "−10.0\u00a0points −20.0 to −1.0\u00a0points"] in rows(cards[0])
    assert "change of AP-Attack's rate" not in "".join(map(str, rows(cards[3])))  # it agrees by its number


def test_of_a_printed_table_every_cell_is_shown_and_those_that_differ_are_marked():
    text = ledger(claim(**TABLE, explanations=because()), runs=TWO)
    under, differs = "rate of AP-Attack under ", "✗ not reproduced 45.0\u00a0% printed 30\u00a0%"
    assert rows(text)[1:] == [
        ["verdict", "✗ not reproduced", "✓ reproduced"],
        ["cells that agree", "1 of 2", "1 of 1"],
        [under + "Promesse", "12.0\u00a0% 10.0 to 14.0\u00a0% printed 11\u00a0%", "no printed number"],
        [under + "no protection", differs, "45.0\u00a0% printed 45\u00a0%"],
        ["n", "536", "–"],
    ]
    assert 'data-found="cabspotting:disagrees|geolife:agrees|mdc:untestable"' in text


def test_too_few_cases_have_no_interval_and_decide_nothing():
    few = {"rate.AP-Attack.Promesse": {"value": 0.5, "low": None, "high": None, "n": 3}}
    lines = rows(ledger(claim(printed={"cabspotting": 0.11}), change=lambda run: few))
    assert lines[1] == ["verdict", "? inconclusive"]
    assert lines[3:] == [["ours: rate of AP-Attack under Promesse", "50.0\u00a0% no interval"], ["n", "3"]]


def test_a_computed_number_comes_with_those_that_it_is_made_of():
    quantity = "mean(rate['AP-Attack', 'Promesse'], rate['AP-Attack', 'TriLateration'])"
    text = ledger(claim(quantity=quantity, printed={"cabspotting": 0.21}, direction=f"{quantity} > 0"))
    words = "rate of AP-Attack under Promesse", "rate of AP-Attack under TriLateration"
    assert [row[0] for row in rows(text)[3:]] == [f"ours: the mean of “{words[0]}” and “{words[1]}”", *words, "n"]
    assert rows(text)[4] == [words[0], "12.0\u00a0% 10.0 to 14.0\u00a0%"]


def test_the_cards_stand_in_the_order_of_the_book_under_their_pages():
    claims = [claim(id="J1.1", paper="joint"), claim(id="T2.2", notebook="other"), claim(id="T2.1")]
    text = ledger(*claims, notebooks=("nb", "other"))
    assert re.findall(r"^#+ .*|(?<=:name: ).*", text, re.MULTILINE) == [
        "## Part",
        *("### [Another page](notebooks/other.ipynb)", "claim-t2-2"),
        *("### [A page](notebooks/nb.ipynb)", "claim-j1-1", "claim-t2-1"),
    ]
    ids = ids_page(REGISTRY, claims)
    assert "*Shokri 2015, Privacy games*: its claims are numbered **J…**, its errata **E-J…**" in ids
    pages = {"t": "ledger_thesis.html", "j": "ledger_joint.html"}
    assert json.loads(unescape(re.search('data-pages="(.*?)"', ids)[1])) == pages


def test_the_filters_offer_what_the_claims_hold_and_stay_hidden_without_a_script():
    text = ledger(claim(printed={"cabspotting": 0.11, "mdc": 0.4}, datasets=("cabspotting", "city")))
    form = re.search(r'<form class="filters"[^>]* hidden>.*?</form>', text)[0]
    assert re.findall(r'<option value="([^"]*)">([^<]*)', form) == [
        *(("", "all"), ("agrees", "agrees"), ("open", "no number in the paper"), ("untestable", "not testable")),
        *(("", "all"), ("cabspotting", "Cabspotting"), ("city", "synthetic city"), ("mdc", "MDC")),
    ]
    assert '<output aria-live="polite">1 of 1 claims</output>' in form


def test_a_page_shows_the_same_cards_and_its_ids_lead_to_the_ledger():
    verdicts = judged(claim(figure="fig-3-4"), claim(id="T2.4"))
    text = verdicts_in_words(verdicts, REGISTRY)
    assert ":name:" not in text  # an anchor stands once in the book
    assert 'href="../ledger_thesis.html#claim-t2-3"' in text
    assert "<form" not in text
    assert "[Maouche 2019, thesis, §3.4.6, Figure 3.4](#fig-3-4)" in text
    assert "\nMaouche 2019, thesis, §3.4.6, Figure 3.4\n" in text  # without a figure the claim is about the page itself
    assert rows(text) == rows(ledger_page(verdicts, REGISTRY, CONTENTS))


def test_a_card_is_a_line_with_the_verdicts_and_folds_the_rest():
    verdicts = judged(claim(id="T1.1", printed={"cabspotting": 0.11, "mdc": 0.3}))
    for card in (verdicts_in_words(verdicts, REGISTRY), ledger_page(verdicts, REGISTRY, CONTENTS)):
        summary = re.search('<details class="behind"><summary>(.*?)</summary>\n\n<table', card)[1]
        assert re.sub("<.*?>", "", summary).startswith(
            "✓ reproduced Cabspotting 12.0\u00a0% (printed 11\u00a0%)○ not tested on MDC"
        )
        assert card.count("<details") == card.count("</details>") == 2  # the other one: how it is tested
        assert card.index("T1.1") < card.index("<details")  # the claim itself stays


def test_no_raw_key_and_no_value_of_python_reaches_a_reader():
    text = ledger(
        claim(id="T1.1", printed={"cabspotting": 0.3}, direction="change['AP-Attack'] < 0 and holds"),
        claim(**RELATION, id="T1.2", relation="falling(privacy[*]) and holds and rate['AP-Attack', 'none'] < 0.5"),
        claim(id="T1.3", tolerance=0.001, direction="change['POI-Attack'] < 0"),
    )
    assert ["AP over the ε", "0.15: 3\u00a0km; 0.3: 2.5\u00a0km"] in rows(text)
    assert ["what holds", "yes"] in rows(text)
    prose = re.sub(r"<code>.*?</code>", "", text)
    for raw in ("rate.", "rate[", "privacy[", "change[", "True", "None", "nan", "e-0"):
        assert raw not in prose
    assert "<code>change[&#x27;POI-Attack&#x27;] &lt; 0</code>" in text


def test_a_test_is_a_table_of_conditions():
    text = ledger(claim(**RELATION, relation="falling(privacy[*]) and (holds or rate['AP-Attack', 'none'] < 0.01)"))
    assert rows(text, "conditions") == [
        ["result", "condition"],
        ["AP over the ε", "falls from each value to the next"],
        ["what holds; or “rate of AP-Attack under no protection” is below 1\u00a0%", "is true"],
    ]


def test_what_a_claim_says_is_text_in_html_not_html():
    text = ledger(claim(claim="a < b & <script>c</script>"))
    assert "a &lt; b &amp; &lt;script&gt;" in text
    assert "<script>" not in text


def test_ids_in_a_text_are_links():
    erratum, other = "[E3.13](#erratum-e3-13)", "[E-J5](#erratum-e-j5)"
    assert linked("see T2.4 (erratum E3.13), E-J5.") == f"see [T2.4](#claim-t2-4) (erratum {erratum}), {other}."
    assert linked("2.4 of AT2.4, §3.1") == "2.4 of AT2.4, §3.1"


def test_each_cell_names_its_data_set_for_a_page_too_narrow_for_columns():
    lines = [TableLine("verdict", {"a": "x", "b": "y"}, "verdicts"), TableLine("n", {"a": "1"})]
    html = side_by_side({"a": "A & C", "b": "B"}, lines)
    labels = re.findall(r'data-set="([^"]*)"( class="nothing")?><div>(.)', html)
    assert labels == [("A &amp; C", "", "x"), ("B", "", "y"), ("A &amp; C", "", "1"), ("B", ' class="nothing"', "–")]


def erratum(**fields) -> Erratum:
    return Erratum(**{"id": "E3.1", "paper": "thesis", "place": "Eq. (3.9)", "wrong": "min for max", "decision": "max, see T4.1",
                      "notebook": "nb", "demonstration": "holds and 1 < 2", **fields})  # fmt: skip


def test_errata_stand_paper_by_paper_with_their_test_behind_a_fold():
    both = [erratum(id="E-J1", paper="joint", figure="ties"), erratum()]
    text = errata_page(both, REGISTRY, {"E3.1": " Elsewhere it holds on GeoLife."})
    assert re.findall(r"^## .*|(?<=:name: ).*", text, re.MULTILINE) == [
        *("## Maouche 2019, thesis", "erratum-e3-1"),
        *("## Shokri 2015, Privacy games", "erratum-e-j1"),
    ]
    for part in (
        "**The paper.** min for max",
        "**This book.** max, see [T4.1](#claim-t4-1)",
        "[by a computation](#ties).\n",
        "[by a computation](notebooks/nb.ipynb). Elsewhere it holds on GeoLife.\n",
        "<summary>The test</summary><p><code>holds and 1 &lt; 2</code></p></details>",
    ):
        assert part in text


def test_a_paper_that_the_registry_lacks_is_named():
    refuses(r"^runs.yml: papers lacks 'other', which .* \(known: thesis, ", errata_page, [erratum(paper="other")], REGISTRY, {})


def test_the_ids_of_the_books_own_claims_and_errata_begin_as_the_registry_says():
    claims, errata = read(BOOK / "claims", Claim), read(BOOK / "errata", Erratum)
    assert [c.id for c in claims if not c.id.startswith(REGISTRY.paper(c.paper).claims)] == []
    assert [e.id for e in errata if not e.id.startswith(REGISTRY.paper(e.paper).errata)] == []
    known = {c.id for c in claims} | {e.id for e in errata}
    texts = [e.why for c in claims for e in c.explanations] + [c.why for c in claims] + [e.wrong + e.decision for e in errata]
    named = {name for text in texts for name, _ in re.findall(r"\[([^\]]+)\]\(#(claim|erratum)-", linked(text))}
    assert named
    assert named <= known


def test_every_chip_of_a_card_is_explained():
    page = (BOOK / "how-to-read.md").read_text(encoding="utf-8")
    kinds = (*SCORED_VERDICTS, BY_DEFINITION, IMPOSSIBLE, NOT_COMPARABLE, "", "not testable without …")
    assert [kind for kind in kinds if f"{badge(kind)}\n: " not in page] == []


@pytest.mark.parametrize("fields", ["title: P, claims: A", "title: P, claims: A, errata: E, year: 1"])
def test_a_paper_in_the_registry_needs_its_name_and_how_its_ids_begin(tmp_path, fields):
    (path := tmp_path / "book" / "results" / "runs.yml").parent.mkdir(parents=True)
    path.write_text(f"runs: {{city: {{title: a city, kind: traces, synthetic: true}}}}\npapers: {{p: {{{fields}}}}}\n")
    refuses(r"runs.yml: p: a paper needs title, claims, errata, and may have data_sets \(got title, ", runs.read, tmp_path)
