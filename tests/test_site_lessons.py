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
