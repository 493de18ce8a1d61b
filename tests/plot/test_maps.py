"""Maps and the colours of figures on light and dark pages."""

import json
import re
import shutil

import numpy as np
import pytest
import shapely

from mobpriv import plot
from mobpriv.book import results
from mobpriv.ground.grid import AreaGrid, SquareGrid
from mobpriv.plot import maps, palette


def content(shown) -> dict:
    return json.loads(re.search(r'<script type="application/json">(.*)</script>', shown.data)[1])


def key_of(layers) -> str:
    return re.search(r'<p class="legend">.*?</p>', maps.interactive_map(layers, "A map").data)[0]


def test_a_map_holds_its_picture_its_layers_and_no_address():
    grid = SquareGrid(800.0)
    ids = np.unique(grid.cells(np.array([45.0, 45.01]), np.array([4.8, 4.81])))
    layers = [
        maps.Layer("heat map", maps.cells(grid, ids, maps.shades([1, 9]), ["few", "</script><b>"])),
        maps.Layer("trace", maps.lines([np.array([[45.0, 4.8], [45.01, 4.81]])], "#d55e00"), shown=False),
    ]
    shown = maps.interactive_map(layers, "A <made-up> person")
    carried = content(shown)
    assert carried["label"] == "A <made-up> person"
    assert [(layer["name"], layer["shown"]) for layer in carried["layers"]] == [("heat map", True), ("trace", False)]
    assert carried["layers"][0]["features"]["features"][1]["properties"]["label"] == "</script><b>"
    # GeoJSON has the longitude first
    assert carried["layers"][1]["features"]["features"][0]["geometry"]["coordinates"] == [[4.8, 45.0], [4.81, 45.01]]
    assert "<made-up>" not in shown.data.split("<script")[0]
    assert shown.data.count("<path") == 2  # the cells; the trace is hidden at first
    assert "http" not in shown.data.replace("http://www.w3.org/2000/svg", "")


def squares(*colours) -> dict:
    return maps.areas([shapely.box(i, 0, i + 1, 1) for i in range(len(colours))], colours)


def test_layers_of_the_same_areas_are_alternatives_of_which_one_is_shown():
    def found(*shown):
        layers = [
            maps.Layer("streets", maps.lines([np.array([[0.0, 0.0], [1.0, 1.0]])], "#d55e00")),
            maps.Layer("now", squares("#112233", "#445566"), shown[0]),
            maps.Layer("then", squares("#445566", "#112233"), shown[1]),
            maps.Layer("elsewhere", squares("#112233")),
        ]
        map_ = maps.interactive_map(layers, "A map")
        assert len(re.findall("<path", map_.data)) == 1 + 2 + 1  # the picture, too, shows one of them
        return [(layer["name"], layer["shown"], layer["alternative"]) for layer in content(map_)["layers"]]

    one = [("streets", True, False), ("now", True, True), ("then", False, True), ("elsewhere", True, False)]
    assert found(True, True) == found(False, False) == found(True, False) == one
    assert [shown for _, shown, _ in found(False, True)] == [True, False, True, True]


def test_a_map_has_a_key_of_its_colours():
    grid = SquareGrid(800.0)
    ids = np.unique(grid.cells(np.array([45.0, 45.01, 45.02]), np.array([4.8, 4.81, 4.82])))
    colours = maps.shades([1, 9, 3])
    street = {"geometry": {"type": "LineString", "coordinates": [[4.8, 45], [4.9, 45]]}}
    layers = [
        maps.Layer("streets", maps.background({"features": [street]})),
        maps.Layer("heat map", maps.cells(grid, ids, colours, ["1 <%>", "9 %", "3 %"])),
        maps.Layer("trace", maps.lines([np.array([[45.0, 4.8], [45.01, 4.81]])], "#d55e00"), shown=False),
    ]
    assert re.findall(r"background:(#\w+)(?:;height:([\d.]+)px[^\"]*)?\"></i>([^<]*)<", key_of(layers)) == [
        ("#8a8a8b", "1.6", "streets"),  # a thin line
        (colours[0], "", "heat map: 1 &lt;%&gt;"),
        *((colours[2], "", "3 %"), (colours[1], "", "9 %"), ("#d55e00", "4", "trace")),
    ]


def test_the_key_is_that_of_the_alternative_shown():
    layers = [maps.Layer(name, squares("#112233", "#445566"), name == "then") for name in ("now", "then")]
    assert re.findall(r'<span class="(layer.*?)"(.*?)>', key_of(layers)) == [("layer undrawn", " hidden"), ("layer", "")]


def test_the_picture_keeps_proportions_and_has_the_colours_of_the_key():
    # at 60° north one degree of longitude is half as long as one of latitude: twice as many degrees make a square
    layer = maps.Layer("square", maps.areas([shapely.box(10, 59, 14, 61)], ["#112233"]))
    picture = maps.picture([layer], "a square")
    width, height = map(float, re.search(r'viewBox="-4 -4 (\S+) (\S+)"', picture).groups())
    assert width == pytest.approx(height, abs=1)
    assert 'fill="#112233" fill-opacity="1"' in picture


def test_shades_go_from_pale_to_strong():
    reds = [int(colour[1:3], 16) for colour in maps.shades([1, 10, 100])]
    assert reds == sorted(set(reds))
    assert len(set(maps.shades([5, 5]))) == 1
    assert maps.shades([]) == []


def test_a_map_of_nothing_says_so_and_what_cannot_be_drawn_is_named():
    assert "nothing to draw" in maps.interactive_map([maps.Layer("none", {"features": []})], "Empty").data
    layer = maps.Layer("x", {"features": [{"geometry": {"type": "Curve", "coordinates": [[0, 0], [1, 1]]}, "properties": {}}]})
    with pytest.raises(ValueError, match=r"points, lines and polygons \(got Curve\)"):
        maps.picture([layer], "x")


def test_the_book_has_the_colours_of_the_figures():
    assert plot.stylesheet() in (results.ROOT / "book" / "_static" / "figures.css").read_text()


def contrast(colour: str, page: str) -> float:
    """The contrast ratio of WCAG 2."""

    def luminance(colour):
        parts = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
        return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4) @ (0.2126, 0.7152, 0.0722)

    low, high = sorted((luminance(colour), luminance(page)))
    return (high + 0.05) / (low + 0.05)


def test_ordered_colours_stand_out_on_light_and_dark_pages():
    light, dark = (dict(re.findall(r"--mp-(\w+): (#\w+);", part)) for part in plot.stylesheet().split("html[data-theme=dark]"))
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    for n in range(1, 13):
        colours = list(palette.ordered(range(n)).values())
        assert len(set(colours)) == min(n, 8)
        twins = [dark[colour[1:]] for colour in colours]
        on_light, on_dark = [contrast(c, "#ffffff") for c in colours], [contrast(c, "#121212") for c in twins]
        assert min(on_light + on_dark) >= 3
        assert on_light == sorted(on_light, reverse=True)  # lighter from level to level, on both pages
        assert on_dark == sorted(on_dark)
        assert all(light[colour[1:]] == colour for colour in colours)


class TestChannelMap:
    grid = AreaGrid(45.0, 5.0, 300.0, 100.0, 3, 1)
    channel = np.array([[0.7, 0.29996, 0.00004], [0.0, 1.0, 0.0], [0.5, 0.5, 0.0]])

    def test_it_carries_the_used_columns_in_four_digits(self):
        carried = content(maps.channel_map(self.grid, self.channel, "A channel", secret=2))["channel"]
        assert carried["observables"] == [0, 1]  # the third is never drawn within four digits
        assert carried["parts"] == [[7000, 3000], [0, 10000], [5000, 5000]]
        assert (carried["secret"], carried["columns"]) == (2, 3)
        assert len(carried["south_west_north_east"]) == 3

    def test_the_picture_shows_the_secret_cells_row_and_stays_small(self):
        shown = maps.channel_map(self.grid, self.channel, "A channel", secret=1).data.split("<script")[0]
        fills = re.findall(r'<path d="[^"]*" fill="([^"]*)"', shown)
        assert fills == ["none", "none", maps.shades([1e-4, 1])[1]]  # the chosen cell last, with probability 1
        assert "http" not in shown.replace("http://www.w3.org/2000/svg", "")
        dense = np.random.default_rng(1).dirichlet(np.ones(300), 300)  # as large as the paper's
        assert len(maps.channel_map(AreaGrid(45.0, 5.0), dense, "A channel").data) < 1_000_000

    def test_the_still_figure(self):
        axis = plot.channel_map(self.grid, self.channel[0], 0)
        drawn = axis.collections
        assert drawn[1].get_array().tolist() == [0.7, 0.29996]  # below 0.0001 nothing is drawn
        assert drawn[2].get_paths()[0].get_extents().bounds == pytest.approx((0, 0, 0.1, 0.1))  # km


def test_areas_keep_their_parts_and_holes():
    square, far = shapely.box(0, 0, 3, 3), shapely.box(5, 5, 6, 6)
    holed = square.difference(shapely.box(1, 1, 2, 2))
    features = maps.areas([shapely.union(square, far), holed], ["#112233", "#445566"], ["two", "one"])["features"]
    parts = [(f["properties"]["label"], f["properties"]["colour"], len(f["geometry"]["coordinates"])) for f in features]
    assert parts == [("two", "#112233", 1), ("two", "#112233", 1), ("one", "#445566", 2)]


@pytest.fixture
def shown(browser, tmp_path):
    """Maps on a page of their own with the book's script, 1200 pixels wide."""
    book = results.ROOT / "book"
    shutil.copytree(book / "_extra" / "leaflet", tmp_path / "leaflet")
    shutil.copy(book / "_static" / "maps.js", tmp_path)
    context = browser.new_context(viewport={"width": 1200, "height": 800})
    page = context.new_page()
    style = (book / "_static" / "mobpriv.css").read_text(encoding="utf-8")

    def holding(*shown_maps):
        (tmp_path / "page.html").write_text(
            f'<!doctype html><html lang="en" data-content_root="./"><title>t</title><meta charset="utf-8"><style>{style}</style>'
            f'<script src="maps.js"></script><main class="bd-article">{"".join(map_.data for map_ in shown_maps)}</main></html>',
            encoding="utf-8",
        )
        page.goto((tmp_path / "page.html").as_uri())
        page.wait_for_selector(".leaflet-overlay-pane canvas")
        return page

    yield holding
    context.close()


# where on the map's canvas something is drawn, as shares of its width: the leftmost column of coloured pixels and the rightmost
DRAWN = """async () => {
    await new Promise(done => setTimeout(done, 200));
    const box = document.querySelector('.canvas').getBoundingClientRect();
    const drawn = document.querySelector('.leaflet-overlay-pane canvas'), at = drawn.getBoundingClientRect();
    const { data, width, height } = drawn.getContext('2d').getImageData(0, 0, drawn.width, drawn.height);
    let left = Infinity, right = -Infinity;
    for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) if (data[4 * (y * width + x) + 3]) { left = Math.min(left, x); right = Math.max(right, x); }
    const place = x => (at.left + x * at.width / width - box.left) / box.width;
    return [place(left), place(right), box.width]; }"""


def wide() -> maps.Layer:
    return maps.Layer("squares", squares(*["#112233"] * 8))


@pytest.mark.parametrize("of", ["layers", "channel"])
def test_a_map_stays_where_it_is_when_the_window_changes(shown, of):
    grid = AreaGrid(45.0, 5.0, 800.0, 100.0, 8, 1)
    map_ = maps.interactive_map([wide()], "A map.") if of == "layers" else maps.channel_map(grid, np.eye(8), "A channel.")
    page = shown(map_)
    for width, height in [(1200, 800), (800, 800), (1200, 800), (390, 844), (844, 390), (1200, 3000)]:
        page.set_viewport_size({"width": width, "height": height})
        left, right, map_width = page.evaluate(DRAWN)
        assert map_width == pytest.approx(page.locator(".mobpriv-map").bounding_box()["width"], abs=4)
        assert (left + right) / 2 == pytest.approx(0.5, abs=0.05), width
        assert right - left > 0.55, width


def test_a_map_that_was_moved_keeps_its_middle(shown):
    page = shown(maps.interactive_map([wide()], "A map."))
    page.locator(".leaflet-control-zoom-in").click()
    page.wait_for_timeout(400)
    page.set_viewport_size({"width": 800, "height": 800})
    left, right, _ = page.evaluate(DRAWN)
    assert (left + right) / 2 == pytest.approx(0.5, abs=0.05)
    assert right - left > 1  # still as near


def test_one_of_the_alternatives_is_chosen_by_keyboard_and_the_others_are_switched(shown):
    streets = maps.Layer("streets", maps.lines([np.array([[0.0, 0.0], [1.0, 1.0]])], "#d55e00"))
    layers = [maps.Layer(name, squares("#112233", "#445566")) for name in ("now", "then")]
    page = shown(maps.interactive_map([streets, *layers], "A map."))

    def found():
        return page.eval_on_selector_all(
            ".leaflet-control-layers input", "all => all.map(e => [e.type, e.parentElement.textContent.trim(), e.checked])"
        )

    assert found() == [["radio", "now", True], ["radio", "then", False], ["checkbox", "streets", True]]
    page.get_by_role("radio", name="now").focus()
    page.keyboard.press("ArrowDown")
    assert [checked for *_, checked in found()] == [False, True, True]
    assert [page.locator(".legend .layer").nth(i).is_visible() for i in (0, 1, 2)] == [True, False, True]  # so does the key
    page.get_by_role("checkbox", name="streets").focus()
    page.keyboard.press("Space")
    assert [checked for *_, checked in found()] == [False, True, False]
    page = shown(maps.interactive_map([streets, layers[0]], "A map."))
    assert [kind for kind, *_ in found()] == ["checkbox", "checkbox"]
