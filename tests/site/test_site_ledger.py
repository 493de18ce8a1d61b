"""The built ledger, errata and bibliography in a real browser: filters, anchors, print, without scripts."""

import re
from urllib.parse import parse_qs, urlparse

import pytest
from built_site import PAGES, needs_the_book

pytestmark = needs_the_book
LEDGER = "ledger_thesis.html"  # the largest page of the ledger
OPENED = "() => document.querySelectorAll('.claim details.behind').forEach(fold => fold.open = true)"


@pytest.fixture
def visit(browser, address):
    """Open a page of the book in a window of a width."""
    contexts = []

    def go(page: str, width: int = 1440, **options):
        contexts.append(browser.new_context(viewport={"width": width, "height": 900}, reduced_motion="reduce", **options))
        opened = contexts[-1].new_page()
        opened.goto(address + page)  # loaded to its end: a page as large as the ledger is idle before that
        opened.wait_for_load_state("networkidle")
        return opened

    yield go
    for context in contexts:
        context.close()


@pytest.fixture(scope="module")
def opened_once(browser, address):
    context = browser.new_context(reduced_motion="reduce")
    page = context.new_page()
    page.goto(address + LEDGER)
    page.evaluate(OPENED)
    yield page
    context.close()


@pytest.fixture
def ledger(opened_once):
    """The ledger, with the filters of a query, in a window of a width: opened once, for it is large."""

    def go(query: str = "", width: int = 1440):
        opened_once.emulate_media(media="screen")
        opened_once.set_viewport_size({"width": width, "height": 900})
        filtered(opened_once, query)
        return opened_once

    return go


def filtered(page, query: str) -> None:
    """Go to the ledger's filters as Back and Forward do, without opening the page again."""
    page.evaluate(
        f"query => {{ history.pushState(null, '', '{LEDGER}' + query); dispatchEvent(new PopStateEvent('popstate')); }}", query
    )


def shown(page) -> list[str]:
    """The anchors of the claims that can be seen."""
    return page.eval_on_selector_all(".claim", "all => all.filter(e => e.checkVisibility()).map(e => e.id)")


def count(page) -> str:
    return page.locator(".filters output").inner_text()


# --------------------------------------------------------------------------------------------------------------------- print
def test_paper_shows_every_claim_and_every_value_and_no_bar(ledger):
    page = ledger("?verdict=undecided", 794)
    assert len(shown(page)) < page.locator(".claim").count()
    page.emulate_media(media="print")
    assert len(shown(page)) == page.locator(".claim").count()
    assert not page.locator(".filters").is_visible()
    hidden = page.eval_on_selector_all(
        ".claim details > :not(summary), .claim td > div",
        "all => all.filter(e => !e.checkVisibility({contentVisibilityAuto: true}) || !e.getBoundingClientRect().height)"
        ".map(e => e.textContent.slice(0, 60))",
    )
    assert not hidden
    page.set_viewport_size({"width": 718, "height": 900})  # between the margins of an A4 sheet: side by side on paper, too
    tops = page.eval_on_selector_all(
        ".claim table.sets",
        "all => all.map(t => [...t.querySelectorAll('thead th')].map(e => e.getBoundingClientRect().bottom))",
    )
    assert max(map(len, tops)) > 3
    assert all(len(set(row)) == 1 for row in tops)


def test_without_a_script_every_claim_is_shown_and_no_bar(visit):
    page = visit(f"{LEDGER}?verdict=undecided", java_script_enabled=False)
    assert page.locator(".claim:visible").count() == page.locator(".claim").count() > 50
    assert not page.locator(".filters").is_visible()


@pytest.mark.parametrize("width", [360, 600])
def test_on_a_phone_the_verdict_comes_first_and_nothing_but_the_data_sets_is_named_twice(ledger, width):
    page = ledger(width=width)
    places = page.eval_on_selector_all(
        ".claim table.sets",
        """all => all.map(t => { const of = s => [...t.querySelectorAll(s)].map(e => e.getBoundingClientRect());
               const named = [...t.querySelectorAll('.verdicts td')].map(e => getComputedStyle(e, '::after').content.slice(1, -1));
               return [t.getBoundingClientRect().left, of('.verdicts .verdict').map(r => [r.left, r.top]), named,
                       [...t.querySelectorAll('thead th')].map(e => e.textContent)]; })""",
    )
    assert len(places) > 50
    for left, chips, named, titles in places:
        assert named == titles  # behind each verdict its data set
        assert all(chip[0] < left + 5 for chip in chips)
        assert [top for _, top in chips] == sorted({top for _, top in chips})
    labels = page.eval_on_selector_all(
        ".claim table.sets tbody tr:not(.verdicts)",
        """all => all.map(row => { const label = row.querySelector('th'), cells = [...row.querySelectorAll('td')];
               return [label.checkVisibility() && label.getBoundingClientRect().height > 8,
                       cells.filter(e => getComputedStyle(e, '::before').content.slice(1, -1) === label.textContent).length]; })""",
    )
    assert {tuple(label) for label in labels} == {(True, 0)}  # the label once, none at the cells


def test_on_a_wide_page_data_sets_stand_side_by_side(ledger):
    tops = ledger().eval_on_selector_all(
        ".claim table.sets",
        "all => all.map(t => [...t.querySelectorAll('thead th')].map(e => e.getBoundingClientRect().bottom))",
    )
    assert max(map(len, tops)) > 3
    assert all(len(set(row)) == 1 for row in tops)


# ------------------------------------------------------------------------------------------------------------------- filters
def test_the_filters_find_claims_with_such_a_verdict_on_such_data(ledger, visit):
    page = ledger()
    total = page.locator(".claim").count()
    assert count(page) == f"{total} of {total} claims"
    page.get_by_label("Verdict").select_option(label="disagrees")
    page.get_by_label("Data set").select_option(label="GeoLife")
    visible = shown(page)
    assert 0 < len(visible) < total
    assert count(page) == f"{len(visible)} of {total} claims"
    marked = page.eval_on_selector_all("[data-found]", "all => all.map(e => [e.closest('.claim').id, e.dataset.found])")
    assert visible == [anchor for anchor, pairs in marked if "geolife:disagrees" in pairs.split("|")]
    assert parse_qs(urlparse(page.url).query) == {"verdict": ["disagrees"], "data": ["geolife"]}
    assert page.eval_on_selector_all("section:has(.claim)", "all => all.filter(s => s.checkVisibility() && "
                                     "![...s.querySelectorAll('.claim')].some(c => c.checkVisibility())).length") == 0  # fmt: skip
    again = visit(page.url.partition("/ledger")[2].join(["ledger", ""]))
    assert shown(again) == visible
    page.get_by_role("button", name="Show all").click()
    page.wait_for_function("document.querySelectorAll('.claim[hidden]').length === 0")
    assert urlparse(page.url).query == ""


def test_the_filters_work_from_the_keyboard_and_say_what_they_found(ledger):
    page = ledger()
    page.get_by_label("Verdict").focus()
    page.keyboard.press("d")  # the first that begins so
    page.wait_for_function("document.querySelectorAll('.claim[hidden]').length > 0")
    assert page.evaluate("document.activeElement.value") == "disagrees"
    assert page.locator(".filters output").get_attribute("aria-live") == "polite"


def test_an_address_with_a_filter_that_is_none_shows_everything(ledger):
    page = ledger("?verdict=none&data=geolife%22")
    assert len(shown(page)) == page.locator(".claim").count()


def test_a_number_leads_to_as_many_claims(visit):
    """Every number of a page of the ledger that leads to its claims."""
    wrong, numbers = [], 0
    for name in [page for page in PAGES if page.startswith("ledger_")]:
        page = visit(name)
        for query, words in page.eval_on_selector_all(
            "table.score td a", "all => all.map(a => [a.getAttribute('href'), a.textContent])"
        ):
            page.evaluate("to => { history.pushState(null, '', to); dispatchEvent(new PopStateEvent('popstate')); }", query)
            shows, numbers = len(shown(page)), numbers + 1
            if count(page).split()[0] != words or shows != int(words):
                wrong.append(f"{words} leads to {name}{query}, which shows {shows}: {count(page)}")
    assert numbers > 40
    assert not wrong


def test_an_address_of_the_time_of_one_page_leads_on(visit):
    page = visit("ledger.html?data=geolife#claim-u2-1")
    page.wait_for_url("**/ledger_pulp.html?data=geolife#claim-u2-1")


def test_a_number_of_the_score_leads_to_its_claims(visit):
    page = visit(LEDGER)
    page.locator("table.score td.disagrees a").first.click()
    page.wait_for_url(f"**/{LEDGER}?*")  # a large page: idle before it begins to load
    page.wait_for_function(
        "document.querySelectorAll('.claim').length && [...document.querySelectorAll('.claim')].some(c => !c.checkVisibility())"
    )
    page.wait_for_load_state("networkidle")
    assert 0 < len(shown(page)) < page.locator(".claim").count()
    assert page.get_by_label("Verdict").input_value() == "disagrees"
    assert page.get_by_label("Data set").input_value() == "cabspotting"


# ------------------------------------------------------------------------------------------------------------------- anchors
@pytest.mark.parametrize("width", [360, 1024, 1440])
def test_a_link_to_a_claim_shows_it_below_the_bar_whatever_is_filtered(visit, width):
    for query in ("", "?verdict=undecided"):
        page = visit(f"{LEDGER}{query}#claim-t2-3", width)
        page.wait_for_function("document.getElementById('claim-t2-3').checkVisibility()")
        page.wait_for_timeout(300)
        top = page.evaluate("document.getElementById('claim-t2-3').getBoundingClientRect().top")
        bottom = page.evaluate("document.querySelector('.filters').getBoundingClientRect().bottom")
        assert bottom - 1 <= top < 450
        page.locator("#claim-t2-9 .permalink").click()
        assert page.url.endswith("#claim-t2-9")


def test_the_errata_have_anchors_and_every_id_on_a_page_leads_to_its_entry(visit):
    page = visit("errata.html#erratum-e3-13")
    assert page.locator(".erratum:target .permalink").inner_text().startswith("E3.13")
    page = visit("notebooks/thesis_3_mechanisms.html")
    page.get_by_text("Show the claims").click()
    page.locator(".claim .permalink").first.click()
    page.wait_for_url(f"**/{LEDGER}#*")  # a large page: idle before it begins to load
    page.wait_for_selector(".claim:target", state="attached")
    assert page.locator(".claim:target").count() == 1


# --------------------------------------------------------------------------------------------------------------- bibliography
def test_the_bibliography_bears_the_labels_that_the_text_cites(visit):
    labels = visit("bibliography.html").locator(".citation .label").all_inner_texts()
    labels = [label.strip("[] \n") for label in labels]
    assert labels == sorted(set(labels), key=str.casefold)
    cited = visit("index.html").locator(".bibtex-citation a").all_inner_texts()
    assert len(cited) > 3
    assert set(cited) <= set(labels)
    assert not [label for label in labels if not re.fullmatch(r".+, (\d{4}|n\.d\.)", label)]
