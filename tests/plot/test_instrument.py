"""A figure with a knob: a frame for each setting, one of them seen; turned by keyboard, without a script; all of it said on paper."""

import re
from itertools import count

import pytest
from chromium import sheets
from conftest import refusals

from mobpriv import plot
from mobpriv.book import webpage
from mobpriv.plot import palette

SAYS = {
    "small": "With a small margin few are found.",
    "large": "With a large <b> margin nobody is found.",
    "huge": "All is lost.",
}


def drawn(height: float, many: int = 2) -> list:
    panels = plot.panels(many)
    for axis in panels:
        axis.plot([0, height], [0, height])
        axis.fill_between([0, height], [0, height], clip_on=True)
    return panels


def frames_at_all_settings() -> dict:
    return {setting: (drawn(10.0**i), says) for i, (setting, says) in enumerate(SAYS.items())}


def instrument(**given):
    usual = {"frames": frames_at_all_settings(), "knob": "Margin (nats)", "marked": "large"}
    given = {**usual, "legend": {"AP-Attack": palette.mark("AP-Attack")}, **given}
    return plot.turned(given.pop("frames"), given.pop("knob"), "A caption in words.", **given)


def described_by(html: str) -> list[list[str]]:
    """The sentences that each button is described by."""
    sentences = dict(re.findall(r'<p id="([^"]+)" aria-hidden="true">(.*?)</p>', html))
    return [[sentences[name] for name in names.split()] for names in re.findall(r'aria-describedby="([^"]+)"', html)]


def has_no_id_twice(html: str) -> bool:
    ids = re.findall(r'\sid="([^"]*)"', html)
    used = {one or other for one, other in re.findall(r'url\(#([^)]+)\)|href="#([^"]+)"', html)}
    return len(ids) == len(set(ids)) > 0 and bool(used) and used <= set(ids)


def test_a_button_and_a_frame_for_each_setting_the_marked_one_first():
    html = instrument().html
    assert re.findall(r"<label>.*?>([a-z]+)</label>", html) == list(SAYS)
    assert re.findall(r'value="(\d)"[^>]*checked', html) == ["1"]
    assert len(set(re.findall(r'type="radio" name="([^"]+)"', html))) == 1
    assert html.count('role="img"') == html.count('class="frame"') == 3
    assert html.index("<legend>Margin (nats)</legend>") < html.index('class="legend"') < html.index('class="frame"')
    assert re.findall(r'value="(\d)"[^>]*checked', instrument(marked="").html) == ["0"]
    says = [text.replace("<b>", "&lt;b&gt;") for text in SAYS.values()]
    assert described_by(html) == [[text] for text in says]  # each button by its frame's sentence
    assert re.findall(r'role="img" aria-label="([^"]+)"', html) == says
    other = instrument(frames={"a": (drawn(1), "This is a."), "b": (drawn(1), "This is b.")}, marked="b")
    assert has_no_id_twice(html + other.html)  # not even in two instruments


def test_what_moves_moves_for_its_value():
    """The limits are the same at every setting, panel by panel."""
    frames = frames_at_all_settings()
    alone = max(axes[1].get_xlim()[1] for axes, _ in frames.values())
    instrument(frames=frames)
    limits = {(axis.get_xlim(), axis.get_ylim()) for axes, _ in frames.values() for axis in axes}
    assert len(limits) == 1
    assert limits.pop()[0][1] == alone


def test_where_there_is_no_html_what_all_frames_say():
    shown = instrument()._repr_mimebundle_()
    assert all(text in shown["text/plain"] for text in SAYS.values())


test_mistakes_are_named = refusals(
    ({"a": (1, "One.")}, "", "two settings or more"),
    ({}, "", "two settings or more"),
    ({"a": (1, "One."), "b": (1, "Two.")}, "c", "marked 'c'"),
    ({"a": (1, "One."), "b": (2, "Two.")}, "", "as many panels"),
    ({"a": (1, "One."), "b": (1, "two words")}, "", "is a sentence"),
    call=lambda frames, marked: instrument(
        frames={name: (drawn(1, count), text) for name, (count, text) in frames.items()}, marked=marked
    ),
)


def switched():
    frames = {
        setting: {side: (drawn(10.0**i + k), f"{says[:-1]}, {side}.") for k, side in enumerate(("left", "right"))}
        for i, (setting, says) in enumerate(SAYS.items())
    }
    return plot.turned(frames, "Margin (nats)", "A caption in words.", "large", switch="side")


def test_a_switch_has_a_group_of_its_own_and_each_button_says_both_positions():
    html = switched().html
    names = re.findall(r'type="radio" name="([^"]+)"', html)
    assert sorted(names.count(name) for name in set(names)) == [2, 3]
    assert [[one[-5:] for one in ids] for ids in described_by(html)] == [["left.", "ight."]] * 3
    assert has_no_id_twice(html)


@pytest.mark.parametrize(
    ("first", "second", "says"),
    [("x", "x", "two to 4 positions"), ("abcde", "abcde", "two to 4 positions"), ("xy", "x", "the same at each setting")],
)
def test_a_switch_with_another_number_of_positions_or_a_setting_that_lacks_one_is_refused(first, second, says):
    frames = {setting: {side: (drawn(1), "One.") for side in sides} for setting, sides in (("a", first), ("b", second))}
    with pytest.raises(ValueError, match=says):
        plot.turned(frames, "Margin", "A caption.", switch="side")


def test_a_place_on_curves_is_marked_with_its_values():
    import pandas as pd

    table = pd.DataFrame([{"x": x, "kind": "AP-Attack", "value": x / 10, "low": x / 20, "high": x / 5} for x in (1, 2)])
    (axis,) = plot.panels()
    plot.at(axis, table, "x", "kind", 2)
    across, interval, value = axis.lines
    assert across.get_xdata() == [2, 2]
    assert list(interval.get_ydata()) == [10, 40]
    assert (value.get_xdata()[0], value.get_ydata()[0], value.get_marker()) == (2, 20, palette.marker("AP-Attack"))


@pytest.fixture
def phone(browser):
    """A page without scripts, as narrow as a phone, that holds what it is given."""
    context = browser.new_context(java_script_enabled=False, viewport={"width": 390, "height": 900})
    page = context.new_page()

    def holding(html):
        page.set_content(
            f'<!doctype html><html lang="en"><title>t</title><style>{webpage.stylesheet()}</style><main class="bd-article">{html}</main></html>'
        )
        return page

    yield holding
    context.close()


@pytest.fixture
def opened(phone):
    return phone(instrument().html)


def test_a_switch_shows_one_view_of_the_chosen_frame_and_leaves_the_knob_where_it_is(phone):
    page = phone(switched().html)

    def seen() -> list[int]:
        return [i for i in range(6) if page.locator(".view").nth(i).is_visible()]

    assert seen() == [2]
    page.get_by_role("radio", name="right").check()
    assert seen() == [3]
    page.get_by_role("radio", name="huge").check()
    assert seen() == [5]
    page.emulate_media(media="print")
    assert [page.locator(".view p").nth(i).is_visible() for i in range(6)] == [True] * 6


def test_it_is_turned_by_keyboard_and_without_a_script(opened):
    def seen() -> list[bool]:
        return [opened.locator(".frame").nth(i).is_visible() for i in range(3)]

    assert seen() == [False, True, False]
    opened.keyboard.press("Tab")
    opened.keyboard.press("ArrowRight")
    assert seen() == [False, False, True]
    opened.keyboard.press("ArrowRight")  # round the group
    assert seen() == [True, False, False]
    opened.get_by_role("radio", name="large").check()
    assert seen() == [False, True, False]


def test_on_paper_stand_all_frames_each_below_its_sentence(opened):
    opened.emulate_media(media="print")
    panels, sentences = opened.locator(".frame .panels"), opened.locator(".frame p")
    for i in range(3):
        picture, words = panels.nth(i).bounding_box(), sentences.nth(i).bounding_box()
        assert words["y"] + words["height"] <= picture["y"]
    assert not opened.locator("input").first.is_visible()
    assert opened.locator("figcaption").bounding_box()["y"] < panels.first.bounding_box()["y"]


def linked(html: str, **texts: str) -> str:
    """The HTML with links around its panels and some texts, so that it can be told on which sheet of paper they are."""
    panel = count()
    html = re.sub(
        r"<div>(<svg.*?</svg>)</div>",
        lambda m: f'<div><a style="display:block" href="http://on/panel-{next(panel)}">{m[1]}</a></div>',
        html,
        flags=re.DOTALL,
    )
    for name, text in texts.items():
        html = re.sub(rf"(?<=[> ]){re.escape(text)}(?=<)", f'<a href="http://on/{name}">{text}</a>', html)
    return html


def test_a_sentence_and_its_pictures_are_on_one_sheet_below_the_heading(phone):
    html = instrument(frames={f"s{i}": (drawn(1), f"Here is sentence {i}.") for i in range(6)}, marked="s0").html
    html = linked(html, caption="A caption in words.", **{f"says-{i}": f"Here is sentence {i}." for i in range(6)})
    page = '<h2><a href="http://on/heading">Head</a></h2><div class="cell"><div class="cell_output"><div class="output">'
    for lines in range(0, 40, 4):  # wherever on a sheet it begins
        on = sheets(phone("<p>above</p>" * lines + f"{page}{html}</div></div></div>"))
        assert len(on) > 1
        for i in range(6):
            assert any({f"says-{i}", f"panel-{2 * i}", f"panel-{2 * i + 1}"} <= sheet for sheet in on)
        assert any({"heading", "caption", "says-0"} <= sheet for sheet in on)
        assert sum(map(len, on)) == 6 * 3 + 2  # nothing is cut in two


def test_on_paper_three_panels_of_an_interactive_figure_share_the_width_and_the_caption_is_not_beside_them(phone):
    html = instrument(frames={setting: (drawn(1, 3), says) for setting, says in SAYS.items()}).html
    page = phone(f'<div class="cell_output"><div class="output">{html}</div></div>')
    page.set_viewport_size({"width": 718, "height": 900})  # an A4 sheet without its margins
    page.emulate_media(media="print")
    widths = [page.locator(".view svg").nth(i).bounding_box()["width"] for i in range(3)]
    assert min(widths) > 0.28 * 718
    assert page.locator("figcaption").bounding_box()["width"] > 0.9 * 718


@pytest.mark.parametrize(("panels", "size"), [(7, (2.7, 2.7)), (1, (4.0, 12.0)), (2, (3.5, 7.0)), (6, None), (3, (4.2, 5.0))])
def test_a_figure_and_its_caption_are_on_one_sheet(phone, panels, size):
    html = linked(plot.show(plot.panels(panels, size), "A caption in words.", "A.").html, caption="A caption in words.")
    for lines in (0, 12, 25):
        on = [sheet for sheet in sheets(phone("<p>above</p>" * lines + html)) if sheet]
        assert on == [{"caption", *(f"panel-{i}" for i in range(panels))}]


@pytest.mark.parametrize(("panels", "size"), [(8, (4.6, 3.6)), (8, None), (5, (3.5, 7.0)), (4, (3.5, 7.0)), (3, (3.9, 6.1))])
def test_a_figure_too_small_to_read_on_one_sheet_breaks_between_two_rows(phone, panels, size):
    html = linked(plot.show(plot.panels(panels, size), "A caption in words.", "A.").html, caption="A caption in words.")
    for lines in (0, 12, 25):
        on = [sheet for sheet in sheets(phone("<p>above</p>" * lines + html)) if sheet]
        assert len(on) > 1
        assert sum(map(len, on)) == panels + 1  # no panel is cut in two
        assert on[-1] >= {"caption", f"panel-{panels - 1}"}
        for i in range(0, panels - 1, 2):
            assert any({f"panel-{i}", f"panel-{i + 1}"} <= sheet for sheet in on)
