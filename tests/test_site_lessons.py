"""Instruments and exercises as they are built: a knob that turns, solutions that are folded and hold their code."""

import pytest
from built_site import PAGES, SITE, needs_the_book, visited

pytestmark = needs_the_book


def having(what: str) -> list[str]:
    return [page for page in PAGES if what in (SITE / page).read_text(encoding="utf-8")]


INSTRUMENTS, LESSONS = having('class="mobpriv-figure instrument"'), having('class="solution dropdown')


def test_the_book_has_both():
    assert INSTRUMENTS
    assert LESSONS


@pytest.mark.parametrize("page", INSTRUMENTS)
def test_a_knob_turns_by_keyboard(browser, address, page):
    context, opened, wrong = visited(browser, address, page, "phone")
    knob = opened.locator(".instrument").first
    count = knob.locator(".knob input").count()
    knob.locator(".knob input:checked").focus()
    for _ in range(count):
        opened.keyboard.press("ArrowRight")
        chosen = knob.locator(".knob input:checked").get_attribute("value")
        seen = [i for i in range(count) if knob.locator(".frame").nth(i).is_visible()]
        assert seen == [int(chosen)]
    context.close()
    assert not wrong


@pytest.mark.parametrize("page", LESSONS)
def test_a_solution_is_folded_and_holds_its_code(browser, address, page):
    context, opened, wrong = visited(browser, address, page)
    solutions = opened.locator(".solution.dropdown")
    for i in range(solutions.count()):
        code = solutions.nth(i).locator("div.highlight-ipython3, div.highlight-python").first
        assert not code.is_visible()
        solutions.nth(i).locator(".toggle-button").first.click()
        assert code.is_visible()
        assert "assert" in solutions.nth(i).inner_text()
    assert opened.locator(".exercise").count() == solutions.count()
    context.close()
    assert not wrong


@pytest.mark.parametrize("page", LESSONS)
def test_on_paper_a_solution_has_the_code_that_it_builds_on(browser, address, page):
    """The folds of a lesson hold its imports and its data; on other pages they stay folded."""
    context, opened, _ = visited(browser, address, page)
    fold = opened.locator("details.hide").first
    code = fold.locator("div.highlight-ipython3, div.highlight-python").first
    assert not code.is_visible()
    opened.emulate_media(media="print")
    assert "import" in code.inner_text()
    assert code.bounding_box()["height"] > 20
    context.close()


def test_on_paper_code_that_no_solution_needs_is_left_out(browser, address):
    page = next(
        page for page in PAGES if page not in LESSONS and 'details class="admonition hide' in (SITE / page).read_text("utf-8")
    )
    context, opened, _ = visited(browser, address, page)
    opened.emulate_media(media="print")
    assert not opened.locator("details.hide").first.is_visible()
    context.close()
