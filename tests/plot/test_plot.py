"""What the figures show: the data of what is drawn, not its pixels."""

import io
import re
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import shapely
from matplotlib import image
from matplotlib.colors import to_hex
from matplotlib.text import Text

from mobpriv import plot
from mobpriv.base.estimates import Estimate
from mobpriv.plot import palette
from mobpriv.plot.picture import spaced, themed


def drawn(axis, marker=None) -> list:
    """The lines of an axis, those with this marker only."""
    return [line for line in axis.lines if marker is None or line.get_marker() == marker]


def points(line) -> list:
    return np.column_stack(line.get_data()).tolist()


def texts(artist) -> list[str]:
    return [text.get_text() for text in artist]


def estimates(*rows, columns=("x", "kind", "value", "low", "high")) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=columns)


def test_a_stacked_bar_begins_where_those_before_it_end_and_its_seam_takes_at_most_half_of_it():
    parts = {"a": (0.5, 0.498, 0.002), "b": (0.2, 0.0, 0.8)}
    rows = [(name, *level) for name, shares in parts.items() for level in zip(("good", "fair", "bad"), shares, strict=True)]
    bars = plot.stacked(estimates(*rows, columns=["mechanism", "level", "value"]), "mechanism", "level").containers
    assert np.allclose([[bar.get_x() for bar in kind] for kind in bars], [[0, 0], [50, 20], [99.8, 20]])
    widths, shares = np.array([[bar.get_width() for bar in kind] for kind in bars]), 100 * np.array(list(parts.values())).T
    assert (widths <= shares + 1e-9).all()  # never more than there is
    assert (widths >= np.maximum(shares / 2, shares - 0.4) - 1e-9).all()
    assert (widths[shares > 0] > 0).all()


class TestDots:
    VALUES = {("a", "one"): [3.0, 1.0, 2.0], ("a", "two"): [5.0], ("b", "one"): [4.0, 4.0], ("b", "two"): [6.0, 8.0]}  # noqa: RUF012

    def test_a_dot_a_case_and_the_median(self):
        marks = {"one": palette.Mark(palette.ORANGE, "s"), "two": palette.Mark(palette.BLUE, "D")}
        axis = plot.dots(self.VALUES, marks=marks)
        assert [line.get_xdata().tolist() for line in drawn(axis, "s")] == [[3, 1, 2], [4, 4]]
        assert [line.get_xdata().tolist() for line in drawn(axis, "D")] == [[5], [6, 8]]
        bars = drawn(axis, "None")
        assert [list(line.get_xdata()) for line in bars] == [[2, 2], [5, 5], [4, 4], [7, 7]]
        assert {to_hex(line.get_color()) for line in bars} == {palette.INK}  # in the dots' colour they would be lost among them
        assert min(line.get_zorder() for line in bars) > max(line.get_zorder() for line in axis.lines if line not in bars)
        for bar, dots in zip(bars, [line for line in axis.lines if line.get_marker() != "None"], strict=True):
            low, high = bar.get_ydata()
            assert ((low < dots.get_ydata()) & (dots.get_ydata() < high)).all()

    def test_groups_from_the_top_kinds_apart(self):
        axis = plot.dots(self.VALUES)
        assert texts(axis.get_yticklabels()) == ["a", "b"]
        assert axis.get_ylim() == (1.5, -0.5)
        bars = [sorted(line.get_ydata()) for line in drawn(axis, "None")]
        assert all(first[1] < second[0] for first, second in pairwise(bars))  # none overlaps the next
        assert axis.get_legend_handles_labels()[1] == ["one", "two"]  # each once

    def test_upright(self):
        lying, upright = plot.dots(self.VALUES), plot.dots(self.VALUES, upright=True)
        for one, other in zip(lying.lines, upright.lines, strict=True):
            assert points(one) == [[y, x] for x, y in points(other)]
        assert texts(upright.get_xticklabels()) == ["a", "b"]

    def test_one_kind_needs_no_name(self):
        axis = plot.dots({("a", ""): [1, 2], ("b", ""): [2]})
        assert axis.get_legend_handles_labels() == ([], [])
        assert [line.get_ydata().tolist() for line in drawn(axis, "o")][1] == [1]  # a single case stands in the middle


class TestAgainst:
    PAIRS = {"differential": ([1.0, 2.0], [3.0, 4.0]), "joint": ([1.0, 2.0], [2.0, 1.0])}  # noqa: RUF012

    def test_a_dot_a_case_in_the_marks_of_the_names_and_a_diagonal_beyond_all_numbers(self):
        axis = plot.against(self.PAIRS)
        (one,), (two,), (diagonal,) = drawn(axis, "o"), drawn(axis, "^"), drawn(axis, "None")
        assert (points(one), points(two)) == ([[1, 3], [2, 4]], [[1, 2], [2, 1]])
        assert to_hex(one.get_color()) == palette.colour("differential")
        assert axis.get_legend_handles_labels()[1] == ["differential", "joint"]
        assert points(diagonal) == [[0, 0], pytest.approx([4.2, 4.2])]
        assert axis.get_xlim() == axis.get_ylim() == pytest.approx((0, 4.2))
        assert points(drawn(plot.against(self.PAIRS, diagonal=7.0), "None")[0]) == [[0, 0], [7, 7]]
        assert drawn(plot.against(self.PAIRS, diagonal=False), "None") == []

    @pytest.mark.parametrize("joined", [False, True])
    def test_hollow_dots_lie_around_the_others(self, joined):
        axis = plot.against(self.PAIRS, hollow="joint", joined=joined)
        (filled,), (hollow,) = drawn(axis, "o"), drawn(axis, "^")
        assert hollow.get_markerfacecolor() == "none"
        assert hollow.get_markersize() > filled.get_markersize()
        assert (hollow.get_linestyle() == "-") == joined

    def test_joined_by_lines_in_the_order_given(self):
        assert {line.get_linestyle() for line in plot.against(self.PAIRS).lines[:2]} == {"None"}
        axis = plot.against({"": ([2, 1, 3], [1, 2, 3])}, joined=True, diagonal=False)
        assert (axis.lines[0].get_linestyle(), points(axis.lines[0])) == ("-", [[2, 1], [1, 2], [3, 3]])
        assert axis.get_legend_handles_labels() == ([], [])  # one column needs no name


def test_a_line_a_user():
    table = pd.DataFrame({"ann": [1.0, 2.0], "bob": [3.0, 4.0], "cat": [8.0, 9.0]}, index=[0.3, 0.6])
    users = [[[0.3, a], [0.6, b]] for a, b in [(1, 2), (3, 4), (8, 9)]]
    axis = plot.lines(table, "joint")
    assert [points(line) for line in axis.lines] == users
    assert {to_hex(line.get_color()) for line in axis.lines} == {palette.colour("joint")}


def test_levels_have_an_order_and_a_marker_each():
    marks = plot.levels([0.6, 0.15, 0.9], "ε = {:g}")
    assert list(marks) == ["ε = 0.15", "ε = 0.6", "ε = 0.9"]
    assert [mark.colour for mark in marks.values()] == list(palette.ordered([0.15, 0.6, 0.9]).values())
    assert len({mark.marker for mark in plot.levels(range(12)).values()}) == 12


def test_a_reference_goes_across_the_figure():
    (axis,) = plot.panels()
    plot.reference(axis, x=2, text="here")
    plot.reference(axis, y=5)
    assert [line.get_xdata() for line in axis.lines] == [[2, 2], [0, 1]]
    assert axis.lines[1].get_ydata() == [5, 5]
    assert [(text.get_text(), text.xy) for text in axis.texts if text.get_text()] == [("here", (2, 1))]


def test_no_figure_is_left_open():
    plot.dots({("a", ""): [1]})
    plot.against({"": ([1], [1])})
    plot.lines(pd.DataFrame({"a": [1.0]}), "joint")
    assert plt.get_fignums() == []


def test_intervals_stand_in_groups_at_their_values():
    complete = {"value": 2.0, "low": 1.0, "high": 4.0}
    axis = plot.intervals({("Cabspotting", "joint"): complete, ("GeoLife", "joint"): {"value": 3.0}})
    assert texts(axis.get_yticklabels()) == ["Cabspotting", "GeoLife"]
    assert [points(line) for line in axis.lines] == [[[1, 0], [4, 0]], [[2, 0]], [[3, 1]]]
    assert axis.lines[1].get_marker() == palette.marker("joint")
    # a number that the cases do not have leaves its row empty
    axis = plot.intervals({("a", ""): dict.fromkeys(complete), ("b", ""): {"value": 2.0}, ("c", ""): {"value": np.nan}})
    assert [points(line) for line in axis.lines] == [[[2, 1]]]
    assert texts(axis.get_yticklabels()) == ["a", "b", "c"]


def test_a_curve_in_the_mark_of_another_name():
    table = pd.DataFrame({"x": [1.0, 2.0], "of": "median", "low": 0.0, "value": [1.0, 2.0], "high": 3.0})
    axis = plot.curves(table, "x", "of", percent=False, marks={"median": palette.mark("joint")})
    assert to_hex(axis.lines[0].get_color()) == palette.colour("joint")
    assert points(axis.lines[0]) == [[1, 1], [2, 2]]
    assert axis.ends == [(2.0, 2.0, "median", palette.colour("joint"))]


def test_a_narrow_colour_bar_has_numbers_between_powers_of_ten():
    bounds = np.array([[0.0, 0.0, 1.0, 1.0], [0.0, 1.0, 1.0, 2.0]])
    axis = plot.heat_map(bounds, np.array([0.6, 2.4]))
    axis.figure.canvas.draw()
    bar = next(other for other in axis.figure.axes if other is not axis)
    low, high = bar.get_ylim()
    assert sum(low <= tick <= high for tick in bar.get_yticks()) >= 2


class TestShow:
    def test_panels_side_by_side_with_number_legend_and_caption(self):
        marks = (palette.mark("W4M"), palette.Mark(palette.INK, ":"), palette.Mark(palette.PINK, "D", hollow=True))
        legend = dict(zip(("a", "line", "paper"), marks, strict=True))
        html = plot.show(plot.panels(2), "What it <shows>.", "A sentence.", number="3.4", legend=legend).html
        assert html.count("<svg xmlns") == 2
        assert html.count('class="swatch"') == 3
        assert '<span class="figure-number">Figure 3.4.</span> What it &lt;shows&gt;.</figcaption>' in html
        assert 'role="img" aria-label="A sentence."' in html
        assert '<span class="figure-number"></span>' in plot.show(plot.panels(), "Ours.", "A sentence.").html

    @pytest.mark.parametrize(("caption", "alt"), [("no stop", "A sentence."), ("A sentence.", "no stop"), ("", "A sentence.")])
    def test_captions_and_names_are_sentences(self, caption, alt):
        with pytest.raises(ValueError, match="is a sentence that ends with a full stop"):
            plot.show(plot.panels(), caption, alt)

    def test_limits_that_panels_share(self):
        one, two = plot.panels(2)
        one.set(xlim=(0, 3), ylim=(5, 0))
        two.set(xlim=(-1, 2), ylim=(9, 1))
        plot.show([one, two], "A.", "A.", same="y")
        assert (one.get_ylim(), two.get_ylim()) == ((9, 0), (9, 0))  # axes that grow downwards still do
        assert (one.get_xlim(), two.get_xlim()) == ((0, 3), (-1, 2))

    @pytest.mark.parametrize("named", [True, False])
    def test_names_stand_at_the_ends_of_their_lines_if_no_legend_has_them(self, named):
        table = estimates(*((x, kind, v, v, v) for x in (1, 2) for kind, v in (("a", 0.1), ("b", 0.5), ("c", 0.9))))
        plot.show(axis := plot.curves(table, "x", "kind", named=named), "A.", "A.")
        names = {"a": (2, 10), "b": (2, 50), "c": (2, 90)} if named else {}
        assert {text.get_text(): text.xy for text in axis.texts} == names
        assert all(abs(text.xyann[1]) < 1e-6 for text in axis.texts)

    def test_of_lines_that_end_in_a_heap_only_the_legend_tells_the_names(self):
        legend = {name: palette.Mark(palette.BLUE, "o") for name in "abcd"}
        for ends, named in ((range(0, 100, 25), 4), (range(4), 0)):
            for also in (legend, None):
                axis, other = plot.panels(2)
                axis.set_ylim(0, 100)
                plot.label_ends(axis, [(1, y, name, palette.BLUE) for y, name in zip(ends, "abcd", strict=True)])
                plot.label_ends(other, [(1, 0.5, "a", palette.BLUE)])
                plot.show([axis, other], "A.", "A.", legend=also)
                assert [len(panel.texts) for panel in (axis, other)] == ([named, named > 0] if also else [4, 1])

    def test_a_leader_ends_where_its_name_begins(self):
        axis = plot.label_ends(plot.panels(1)[0], [(1, 0.5, "first", palette.BLUE), (1, 0.5, "second", palette.INK)])
        plot.show(axis, "A.", "A.")
        axis.figure.draw_without_rendering()
        for text in axis.texts:
            ends = text.arrow_patch.get_transform().transform(text.arrow_patch.get_path().vertices)
            assert ends[:, 0].max() <= Text.get_window_extent(text).x0

    def test_colours_follow_the_page(self):
        axis = plot.against({"": ([1], [2])}, diagonal=False, marks={"": palette.Mark(palette.BLUE, "o")})
        html = plot.show(axis, "A.", "A.").html
        assert f"var(--mp-{palette.BLUE[1:]}, {palette.BLUE})" in html
        assert html.count(palette.BLUE) == html.count(f", {palette.BLUE})")


def test_neighbours_are_pushed_apart_and_no_further():
    assert spaced([0.1, 0.5, 0.9], 0.1) == pytest.approx([0.1, 0.5, 0.9])
    assert spaced([0.5, 0.5], 0.1) == pytest.approx([0.45, 0.55])
    assert spaced([0.2, 0.5, 0.52, 0.53], 0.1) == pytest.approx([0.2, 0.41667, 0.51667, 0.61667], abs=1e-4)
    assert spaced([], 0.1) == []


def test_rates_with_a_twin_stand_in_pairs_and_the_paper_s_at_them():
    rates = [("AP-Attack", "text", 0.4), ("AP-Attack", "program", 0.5), ("POI-Attack", "text", 0.2)]
    table = pd.DataFrame(rates, columns=["attack", "as", "value"]).assign(data="d", low=0.1, high=0.6)
    axis = plot.rates(table, "data", "attack", twin="as", printed={("d", "AP-Attack"): 0.45})
    filled, hollow = drawn(axis, "o")
    assert (filled.get_markerfacecolor(), hollow.get_markerfacecolor()) == (palette.colour("AP-Attack"), "none")
    assert [float(line.get_xdata()[0]) for line in (filled, hollow, *drawn(axis, "s"))] == [40, 50, 20]
    (paper,) = drawn(axis, "D")
    assert paper.get_xdata()[0] == 45
    assert filled.get_ydata()[0] < paper.get_ydata()[0] < hollow.get_ydata()[0]


def test_of_a_single_case_the_value_is_drawn_and_no_interval():
    one = {"value": 0.5, "low": None, "high": None}
    table = pd.DataFrame([{"x": x, "kind": "HMC", **one} for x in (1, 2)])
    rates = drawn(plot.rates(table, "x", "kind"), palette.mark("HMC").marker)
    assert [points(line) for line in rates] == [[[50, 0]], [[50, 1]]]
    assert [bar.get_width() for bar in plot.stacked(table, "x", "kind").patches] == [50 - 0.4, 50 - 0.4]
    axis = plot.at(plot.curves(table, "x", "kind"), table, "x", "kind", 2)
    assert points(axis.lines[-1]) == [[2, 50]]
    assert points(*drawn(plot.intervals({("group", ""): one}, percent=True), "o")) == [[50, 0]]
    axis = plot.intervals({("group", ""): Estimate(0.5, 0.25, 0.75, 9)}, percent=True)
    assert points(axis.lines[0]) == [[25, 0], [75, 0]]


def test_the_distribution_of_values_some_of_which_never_arrive():
    axis = plot.distributions({"a": ([1, 2], [0.25, 0.5]), "b": (np.array([1, 8]), np.array([0.5, 1.0]))})
    # a curve goes on to the right edge, where its name stands
    drawn = [[[1, 0], [1, 25], [2, 50], [8, 50]], [[1, 0], [1, 50], [8, 100], [8, 100]]]
    assert [points(line) for line in axis.lines] == drawn
    assert [(x, y, name) for x, y, name, _ in axis.ends] == [(8, 50.0, "a"), (8, 100.0, "b")]
    assert plot.distributions({"a": ([], [])}).lines[0].get_ydata().max() == 0  # nobody is found


def test_the_spread_of_draws_is_shaded():
    both = ("AP-Attack", 0.4, 0.3, 0.5, 0.38, 0.43), ("POI-Attack", 0.2, 0.1, 0.3, np.nan, np.nan)
    table = estimates(*both, columns=["attack", "value", "low", "high", "least", "largest"]).assign(data="d")
    shaded = [list(line.get_xdata()) for line in plot.rates(table, "data", "attack").lines if line.get_alpha() is not None]
    assert shaded == [[38, 43]]


class TestAreaMaps:
    EAST = shapely.box(11, 43, 12, 44)
    WEST = shapely.MultiPolygon([shapely.box(10, 43, 11, 44), shapely.box(9, 43, 9.001, 43.001)])

    def maps(self, values):
        return plot.area_maps([self.WEST, self.EAST], values)

    def test_a_panel_a_column_a_map_a_name_and_the_more_the_darker(self):
        axes = self.maps({("now", "a"): [0.1, 0.9], ("now", "b"): [0.5, 0.5], ("then", "a"): [0.9, 0.1], ("then", "b"): [0, 1]})
        assert [axis.get_title("left") for axis in axes] == ["a", "b"]
        assert [texts(axis.texts) for axis in axes] == [["now", "then"]] * 2
        now, then = (drawn_areas.get_facecolors() for drawn_areas in axes[0].collections)
        assert now[0, 3] < now[1, 3]  # how far the page does not shine through
        assert then[::-1].tolist() == now.tolist()
        same = axes[1].collections[0].get_facecolors()
        assert (same[0] == same[1]).all()

    def test_two_maps_in_a_row(self):
        (axis,) = self.maps({(name, ""): [0.1, 0.9] for name in "abcd"})
        a, b, c, d = (drawn_areas.get_paths()[0].vertices.mean(axis=0) for drawn_areas in axis.collections)
        assert a[0] == c[0] < b[0] == d[0]
        assert a[1] == b[1] > c[1] + 0.3
        assert c[1] == d[1]

    def test_what_has_no_number_is_hatched_which_none_is_not_and_specks_are_left_out(self):
        (axis,) = self.maps({("", ""): [np.nan, 0.0]})
        none, missing = axis.collections
        # the islet of a thousandth is not drawn
        assert [len(drawn_areas.get_paths()) for drawn_areas in (none, missing)] == [1, 1]
        assert (none.get_hatch(), bool(missing.get_hatch())) == (None, True)
        assert none.get_facecolors()[0, 3] > 0
        assert len(missing.get_facecolors()) == 0
        assert "no number" in texts(axis.texts)
        assert "no number" not in texts(self.maps({("", ""): [0.5, 0.0]})[0].texts)

    def test_neighbours_keep_their_border_in_common(self):
        x = 11 + 0.2 * np.sin(np.linspace(0, 20, 300))
        border = list(zip(x, np.linspace(43, 44, 300), strict=True))
        west, east = (shapely.Polygon([*border, (far, 44), (far, 43)]) for far in (10, 12))
        (axis,) = plot.area_maps([west, east], {("", ""): [0.5, 0.0]})
        one, other = (shapely.Polygon(path.vertices) for path in axis.collections[0].get_paths())
        assert shapely.get_num_coordinates(one) < 150
        assert one.intersection(other).area == pytest.approx(0, abs=1e-12)
        union = shapely.union_all([one, other])
        assert (union.geom_type, len(union.interiors)) == ("Polygon", 0)

    def test_rare_things_show_and_areas_that_overlap_are_drawn_too(self):
        alpha = self.maps({("", ""): [0.01, 1.0]})[0].collections[0].get_facecolors()[:, 3]
        assert alpha[0] == pytest.approx(0.1 * alpha[1], rel=0.2)
        (axis,) = plot.area_maps([shapely.box(10, 43, 11.5, 44), None, self.EAST], {("", ""): [0.5, 0.1, 0.0]})
        assert len(axis.collections[0].get_paths()) == 2

    def test_a_kilometre_is_as_long_northwards_as_eastwards(self):
        (path,) = self.maps({("", ""): [np.nan, 0.5]})[0].collections[0].get_paths()
        wide, high = np.ptp(path.vertices, axis=0)
        assert wide / high == pytest.approx(np.cos(np.radians(43.5)), rel=0.01)

    def test_their_bar_turns_dark_with_them(self):
        html = plot.show(self.maps({("", ""): [1.0, 0.5]}), "A.", "A.").html
        assert "<image" not in html
        assert len(coloured(html, palette.BLUE)) > 10


def test_a_picture_that_is_kept_comes_back_with_its_words():
    axis = plot.tiles(pd.DataFrame({"x": [1.0]}, ["y"]))
    kept, two = (plot.Kept.of(plot.as_text(drawn), "What it <is>.", "What it shows.") for drawn in (axis, [axis, axis]))
    for part in ("What it &lt;is&gt;.", 'role="img" aria-label="What it shows."', '<span class="figure-number"></span>'):
        assert part in kept.html
    assert set(kept._repr_mimebundle_()) == {"text/html", "text/plain"}
    assert (two.html.count("<img"), kept.html.count("<img")) == (2, 1)
    shapes = {image.imread(io.BytesIO(png), format="png").shape for png in (*kept.pngs, *two.pngs)}
    assert len(shapes) == 1  # the panels are alike
    assert shapes.pop()[0] > 100


def test_a_shade_is_the_same_in_all_panels_that_are_kept():
    shades = np.linspace(0, 1, 200)[None]
    many, one = (plot.panels(1)[0] for _ in range(2))
    many.imshow(shades, cmap="viridis", aspect="auto", interpolation="nearest")
    one.imshow(np.full_like(shades, shades[0, 77]), cmap="viridis", vmin=0, vmax=1, aspect="auto", interpolation="nearest")
    pngs = plot.Kept.of(plot.as_text([many, one]), "A.", "A.").pngs
    pixels = [(255 * image.imread(io.BytesIO(png), format="png")[..., :3]).round().astype(int) for png in pngs]
    only = pixels[1][pixels[1].shape[0] // 2, pixels[1].shape[1] // 2]
    assert len(np.unique(np.concatenate([p.reshape(-1, 3) for p in pixels]), axis=0)) <= 64
    assert (pixels[0] == only).all(axis=-1).any()


def coloured(svg: str, colour: str) -> set:
    """How opaque the fills of this colour of the palette are, in the page's variables."""
    opacities = re.findall(rf"fill: var\(--mp-{colour[1:]}, {colour}\)(?:; fill-opacity: ([\d.]+))?", svg)
    return {round(float(alpha or 1), 3) for alpha in opacities}


@pytest.mark.parametrize("numbers", [[0.0, 37.6], [-20.0, 15.0]])
def test_the_colours_of_a_bar_turn_dark_with_its_tiles(numbers):
    """A bar of pixels keeps the colours of a light page, and its end is darker than the largest tile of a dark one."""
    table = pd.DataFrame([numbers, np.linspace(*numbers, 2) / 2])
    tiles, bar = plot.tiles(table), plot.tiles(table, label="days (%)")
    bare, svg = (plot.show(axis, "A.", "A.").svgs[0] for axis in (tiles, bar))
    html = plot.show(bar, "A.", "A.").html
    assert "<image" not in html
    assert "crispEdges" in html
    for colour in (palette.BLUE, palette.ORANGE):
        shown, replaced = coloured(themed(bare), colour), coloured(themed(svg), colour)
        assert bool(shown) == (colour == palette.BLUE or numbers[0] < 0)
        if shown:
            assert max(replaced) == max(shown)
            assert len(replaced - shown) > 10
    others = set(re.findall(r"fill: (#\w+)", themed(bare) + themed(svg))) - {"#ffffff"}
    assert not others  # a colour that no dark page has a twin of


@pytest.mark.parametrize(
    ("panels", "size", "paper"),
    [
        (1, (4.2, 2.9), (1, 1, False)),
        (2, (3.9, 9.0), (2, 1, False)),
        (3, (3.9, 5.0), (2, 2, False)),
        (3, (3.9, 6.1), (2, 1, True)),
        (6, (3.5, 2.8), (2, 3, False)),
        (7, (2.7, 2.7), (3, 3, False)),
        (8, (3.5, 2.8), (2, 1, True)),
    ],
)
def test_panels_stand_on_paper_as_large_as_can_be_read(panels, size, paper):
    picture = plot.show(plot.panels(panels, size), "A caption.", "A name.")
    assert picture.on_paper == paper
    opening = picture.html.split(">")[0]
    assert ("many" in opening, "broken" in opening) == (paper[0] > 2, paper[2])


def test_a_logarithmic_axis_bears_plain_numbers_and_its_ends_have_room():
    def numbers(low, high):
        (axis,) = plot.panels()
        axis.plot([low, high], [low, high])
        axis.set(xscale="log", xlim=(low, high))
        plot.show(axis, "A.", "A.")
        axis.figure.draw_without_rendering()
        return [text.get_text() for text in axis.get_xticklabels() if low <= text.get_position()[0] <= high]

    assert numbers(0.3, 3) == ["0.5", "1", "2"]
    assert set(numbers(0.4, 0.9)) >= {"0.4", "0.6", "0.8"}
    assert numbers(0.1, 100) == ["0.1", "1", "10", "100"]
    assert "10^" in numbers(1e-9, 1e-3)[0]
    table = pd.DataFrame({"kind": "a", "q": [1.0, 2.0], "value": [1.0, 10.0]})
    low, high = plot.percentiles(table, "kind", ends=(1, 1000), log=True).get_xlim()
    assert low < 0.9 < 1100 < high


def test_thousands_stand_apart_on_axes_too():
    axis = plot.against({"": ([0, 8000], [0, 20])}, diagonal=False)
    named = plot.intervals({("1000", ""): {"value": 2000.0}})
    plot.show([axis, named], "A caption.", "A name.")
    assert axis.xaxis.get_major_formatter()(2000, 0) == "2\u202f000"
    assert texts(named.get_yticklabels()) == ["1000"]  # a name is no number


def test_no_panel_is_drawn_wider_than_a_phone_can_show_it():
    wide, narrow = plot.panels(1, (5.6, 3.0))[0], plot.panels(1, (2.7, 2.7))[0]
    assert [list(axis.figure.get_size_inches()) for axis in (wide, narrow)] == [[4.2, 3.0], [2.7, 2.7]]
    assert [axis.figure.get_size_inches()[0] for axis in plot.panels(2, (4.6, 3.0))] == [3.65] * 2
    html = plot.show([wide, narrow], "A.", "A.").html
    assert 'class="mobpriv-figure wide"' in html
    assert "--widest: 302px; --rows: 1" in html
    assert 'class="mobpriv-figure"' in plot.show(narrow, "A.", "A.").html


def test_tiles_bear_their_numbers():
    table = pd.DataFrame([[-10.0, -0.2], [np.nan, 5.0]], index=[1, 2], columns=["a", "b"])
    axis = plot.tiles(table, label="points", framed={"#d55e00": table > 0, "#cc79a7": table > -1})
    assert (texts(axis.texts), texts(axis.get_xticklabels()), len(axis.patches)) == (["−10", "0", "5"], ["a", "b"], 3)


def test_a_confusion_matrix_has_its_first_class_on_top_and_a_framed_diagonal():
    shares = [("a", "a", 0.9), ("a", "b b", 0.1), ("b b", "a", np.nan), ("b b", "b b", np.nan)]
    axis = plot.confusion(estimates(*shares, columns=["true", "found", "value"]), title="k = 10")
    assert {(text.get_position(), text.get_text()) for text in axis.texts} == {((0.5, 1.5), "90"), ((1.5, 1.5), "10")}
    assert (texts(axis.get_yticklabels()), texts(axis.get_xticklabels())) == (["b\nb", "a"], ["a", "b\nb"])
    assert [patch.get_xy()[1] for patch in axis.patches] == pytest.approx([1.05])


def test_a_label_that_would_run_out_of_the_picture_has_two_lines():
    long, shown = "profiles with fewer than ten alike, shift (points)", []
    for name in ("every slot that a call touches, too", "a"):
        axis = plot.intervals({(name, ""): {"value": 1.0}})
        axis.set_xlabel(long)
        plot.show(axis, "A.", "A.")
        axis.figure.draw_without_rendering()
        box = axis.xaxis.label.get_window_extent()
        assert axis.figure.bbox.x0 <= box.x0 < box.x1 <= axis.figure.bbox.x1
        shown.append(axis.get_xlabel() == long)
    assert shown == [False, True]


def test_a_title_that_would_run_out_of_the_picture_begins_further_left():
    long, short = (plot.intervals({("dynamic resident", ""): {"value": 1.0}}, plot.panels(2)[0]) for _ in range(2))
    long.set_title("A town, its 2 144 synthetic callers")
    short.set_title("A town")
    plot.show([long, short], "A caption.", "A name.")
    for axis in (long, short):
        axis.figure.draw_without_rendering()
        titles = [artist for artist in axis.get_children() if getattr(artist, "get_text", str)().startswith("A town")]
        box = titles[0].get_window_extent()
        assert 0 <= box.x0 < box.x1 <= axis.figure.bbox.x1
    assert box.x0 == pytest.approx(axis.get_window_extent().x0, abs=1)
