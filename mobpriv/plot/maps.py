"""Maps without internet access or tiles: an SVG picture in the page, and Leaflet on top of it if scripts run."""

import html
import json
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

_WIDTH = 720  # width of the picture in its units
_TICKS = 5  # most shades in a layer's legend
# red, green, blue of the palest and the strongest cell
_FEW, _MANY = np.array([0.55, 0.66, 0.80]), np.array([0.70, 0.25, 0.10])


class Layer(NamedTuple):
    """One layer of a map.

    ``features`` is a GeoJSON FeatureCollection of polygons, lines or points. Their properties may be ``colour`` (of lines and
    borders), ``fill``, ``weight`` (of lines, in pixels), ``opacity`` (0 … 1) and ``label`` (text of the popup).
    """

    name: str
    features: dict
    shown: bool = True  # initial state; the reader switches layers on and off


def cells(grid, ids, colours, labels=None) -> dict:
    """Cells of a :class:`mobpriv.ground.grid.SquareGrid` as coloured GeoJSON polygons."""
    labels = [None] * len(ids) if labels is None else labels
    features = []
    for (south, west, north, east), colour, label in zip(grid.bounds(ids), colours, labels, strict=True):
        ring = [[west, south], [east, south], [east, north], [west, north], [west, south]]
        features.append(_feature("Polygon", [ring], colour=colour, weight=0, label=label))
    return {"type": "FeatureCollection", "features": features}


def areas(shapes, colours, labels=None) -> dict:
    """Shapely polygons (longitude and latitude in degrees, one or several parts) as coloured GeoJSON polygons."""
    labels = [None] * len(shapes) if labels is None else labels
    features = [
        _feature(
            "Polygon",
            [list(map(list, ring.coords)) for ring in (part.exterior, *part.interiors)],
            colour=c,
            weight=1,
            opacity=1,  # opaque, so that the colours equal those of the legend
            label=text,
        )
        for shape, c, text in zip(shapes, colours, labels, strict=True)
        for part in getattr(shape, "geoms", [] if shape is None else [shape])
        if part.geom_type == "Polygon" and not part.is_empty
    ]
    return {"type": "FeatureCollection", "features": features}


def lines(paths, colour: str, weight: float = 2, opacity: float = 1, label: str | None = None) -> dict:
    """Paths, arrays of (lat, lng) in degrees, as GeoJSON lines: traces, or streets as a background."""
    features = [
        _feature("LineString", np.asarray(path)[:, ::-1].tolist(), colour=colour, weight=weight, opacity=opacity, label=label)
        for path in paths
    ]
    return {"type": "FeatureCollection", "features": features}


def background(collection: dict) -> dict:
    """The lines of a GeoJSON FeatureCollection, such as streets, as a faint background without popups."""
    shapes = [f["geometry"] for f in collection["features"] if f["geometry"]["type"] in ("LineString", "MultiLineString")]
    faint = {"colour": "#8a8a8b", "weight": 0.8, "opacity": 0.5}
    features = [_feature(shape["type"], shape["coordinates"], **faint) for shape in shapes]
    return {"type": "FeatureCollection", "features": features}


def shades(values) -> list[str]:
    """A colour for each positive value, from pale blue to strong red on a logarithmic scale."""
    logs = np.log(np.asarray(values, float))
    place = (logs - logs.min()) / max(np.ptp(logs), 1e-12) if len(logs) else logs
    rgb = np.rint(255 * (_FEW + place[:, None] * (_MANY - _FEW))).astype(int)
    return [f"#{r:02x}{g:02x}{b:02x}" for r, g, b in rgb]


def _feature(kind: str, coordinates: list, **properties) -> dict:
    properties = {name: value for name, value in properties.items() if value is not None}
    return {"type": "Feature", "geometry": {"type": kind, "coordinates": _rounded(coordinates)}, "properties": properties}


def _rounded(coordinates):
    """Round to six decimals, a tenth of a metre: further digits only enlarge the page."""
    if isinstance(coordinates, int | float | np.floating):
        return round(float(coordinates), 6)
    return [_rounded(entry) for entry in coordinates]


def interactive_map(layers: list[Layer], label: str):
    """An HTML object for a notebook with the layers, later ones on top; ``label`` describes the map in words.

    Layers of the same areas would cover each other: the reader selects one of them; other layers are switched on and off
    separately. The legend gives the colour of each layer. For shaded cells it shows a few labelled shades from the palest to
    the strongest. If layers are alternatives, it shows the visible one.
    """
    from IPython.display import HTML

    if not any(layer.features["features"] for layer in layers):
        return HTML(f"<p>{html.escape(label)}: nothing to draw.</p>")
    instead = _alternatives(layers)
    first = next((i for i in instead if layers[i].shown), min(instead, default=None))
    layers = [layer._replace(shown=i == first) if i in instead else layer for i, layer in enumerate(layers)]
    content = [{**layer._asdict(), "alternative": i in instead} for i, layer in enumerate(layers)]
    return _html({"label": label, "layers": content}, picture(layers, label), _key(layers, instead))


def _alternatives(layers: list[Layer]) -> set[int]:
    """Indices of the layers that colour the same areas."""
    drawn = [[feature["geometry"] for feature in layer.features["features"]] for layer in layers]
    areas = {i for i, shapes in enumerate(drawn) if shapes and all(shape["type"] == "Polygon" for shape in shapes)}
    return {i for i in areas if any(drawn[i] == drawn[other] for other in areas - {i})}


def _key(layers: list[Layer], instead: set[int] = frozenset()) -> str:
    """The legend, one span per layer.

    Hidden alternative layers (``instead``) have a hidden span. Layers that the still picture lacks are marked, for print.
    """
    drawn, spans = _drawn(layers), []
    for i, layer in enumerate(layers):
        colours = {f["properties"].get("colour"): f["properties"].get("label") for f in layer.features["features"]}
        swatches = []
        if len(colours) == 1:
            swatches.append(_swatch(*colours, layer.name, layer.features["features"][0]))
        elif colours:
            texts = [colours[colour] for colour in _ramp(colours)]
            texts = [f"{layer.name}: {texts[0]}", *texts[1:]] if all(texts) else [layer.name] * len(texts)
            swatches += [_swatch(colour, text) for colour, text in zip(_ramp(colours), texts, strict=True)]
        missing = "" if layer in drawn else " undrawn"
        hidden = " hidden" if i in instead and not layer.shown else ""
        spans.append(f'<span class="layer{missing}"{hidden}>{"".join(swatches)}</span>')
    return f'<p class="legend">{"".join(spans)}</p>'


def _ramp(colours) -> list[str]:
    """A few shades: the palest, the strongest, and the nearest ones to even steps between them."""
    shades = sorted(colours, key=_strength)
    steps = np.linspace(_strength(shades[0]), _strength(shades[-1]), _TICKS)
    return list(dict.fromkeys(min(shades, key=lambda colour: abs(_strength(colour) - step)) for step in steps))


def _strength(colour: str) -> int:
    """Strength of a shade: its red minus its green."""
    return int(colour[1:3], 16) - int(colour[3:5], 16)


def _swatch(colour: str, text: str, line: dict | None = None) -> str:
    """A legend entry: a square of a colour, or a line of the drawn weight, and its text."""
    weight = line["properties"].get("weight") if line and line["geometry"]["type"] != "Polygon" else None
    stroke = f";height:{2 * weight:g}px;vertical-align:middle" if weight else ""
    return f'<span><i style="background:{colour}{stroke}"></i>{html.escape(text)}</span>'


def _html(content: dict, still: str, legend: str = ""):
    from IPython.display import HTML

    data = json.dumps(content, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")  # prevents </script> inside
    return HTML(
        f'<figure class="mobpriv-map">{still}{legend}'
        f'<figcaption><span class="figure-number"></span> {html.escape(content["label"])}</figcaption>'
        f'<script type="application/json">{data}</script></figure>'
    )


_LEAST_PROBABILITY = 1e-4  # probabilities on a channel's map are rounded to four digits
_STEPS = 13  # shades of a channel's map, from LEAST_PROBABILITY to 1 in equal factors
_CHOSEN = "#cc79a7"  # the outline of the secret cell


def channel_map(grid, channel, label: str, secret: int = 0):
    """A map on which a click or the arrow keys select a secret cell s; the shades show its p(o|s).

    * ``grid``: a :class:`mobpriv.ground.grid.AreaGrid`;
    * ``channel``: one row and one column per cell;
    * ``secret``: the cell shown first and in the still picture.

    The page contains the whole channel, rounded to four digits. Only public data may be on a public page.
    """
    channel, all_cells = np.asarray(channel, float), np.arange(grid.size)
    parts = np.rint(channel / _LEAST_PROBABILITY).astype(int)
    used, row = parts.any(axis=0), channel[secret]
    palette = shades(_LEAST_PROBABILITY ** np.linspace(1, 0, _STEPS))
    place = np.log(np.maximum(row, _LEAST_PROBABILITY / 2) / _LEAST_PROBABILITY) / np.log(1 / _LEAST_PROBABILITY)
    colours = [
        palette[round(x * (_STEPS - 1))] if p >= _LEAST_PROBABILITY / 2 else "none"
        for x, p in zip(place.clip(0, 1), row, strict=True)
    ]
    area = cells(grid, all_cells, colours)
    for cell, feature in enumerate(area["features"]):
        feature["properties"] |= {"colour": _CHOSEN if cell == secret else "#8a8a8b", "fill": colours[cell]}
        feature["properties"] |= {"weight": 3 if cell == secret else 0.3, "opacity": 1}
    # drawn last, so that no neighbour covers the outline of the chosen cell
    order = [*np.delete(all_cells, secret), secret]
    still = {**area, "features": [area["features"][cell] for cell in order]}
    content = {
        "label": label,
        "layers": [],
        "channel": {
            "south_west_north_east": [_rounded(b) for b in grid.bounds(all_cells).tolist()],
            "columns": grid.columns,
            "secret": int(secret),
            "observables": all_cells[used].tolist(),
            "parts": parts[:, used].tolist(),  # in units of 1/10 000
            "palette": palette,
            "chosen": _CHOSEN,
        },
    }
    return _html(content, picture([Layer("channel", still)], label), _legend(palette))


def _legend(palette: list[str]) -> str:
    """Legend of five shades with their probabilities, and of the outline."""
    places = [(0, f"{_LEAST_PROBABILITY:.4f}"), (3, "0.001"), (6, "0.01"), (9, "0.1"), (12, "1")]
    swatches = "".join(f'<span><i style="background:{palette[i]}"></i>{text}</span>' for i, text in places)
    chosen = f'<span><i style="background:none;border:3px solid {_CHOSEN}"></i>secret cell s</span>'
    return f'<p class="legend">p(o|s): {swatches}{chosen}</p><p class="chosen" aria-live="polite"></p>'


def picture(layers: list[Layer], label: str) -> str:
    """The layers as an SVG picture, east to the right, equal scales in both directions at the middle latitude."""
    layers = _drawn(layers)
    features = [feature for layer in layers for feature in layer.features["features"]]
    points = np.array([point for feature in features for point in _points(feature["geometry"]["coordinates"])])
    (west, south), (east, north) = points.min(0), points.max(0)
    squeeze = np.cos(np.radians((south + north) / 2))
    scale = _WIDTH / max((east - west) * squeeze, 1e-9)
    height = max((north - south) * scale, 1)

    def at(point) -> str:
        return f"{(point[0] - west) * squeeze * scale:.1f} {(north - point[1]) * scale:.1f}"

    shapes = "".join(_shape(feature, at) for feature in features)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-4 -4 {_WIDTH + 8} {height + 8:.0f}" role="img" '
        f'aria-label="{html.escape(label)}">{shapes}</svg>'
    )


def _drawn(layers: list[Layer]) -> list[Layer]:
    """The layers of the still picture: those shown at first, or all if these are empty."""
    return [layer for layer in layers if layer.shown and layer.features["features"]] or layers


def _points(coordinates) -> Iterator:
    if isinstance(coordinates[0], int | float):
        yield coordinates
    else:
        for entry in coordinates:
            yield from _points(entry)


def _shape(feature: dict, at) -> str:
    kind, coordinates, p = feature["geometry"]["type"], feature["geometry"]["coordinates"], feature["properties"]
    colour, opacity = html.escape(p.get("colour", "#0072b2")), p.get("opacity", 1)
    if kind == "Point":
        return f'<circle cx="{at(coordinates).split()[0]}" cy="{at(coordinates).split()[1]}" r="4" fill="{colour}"/>'
    if kind in ("LineString", "MultiLineString"):
        paths = [coordinates] if kind == "LineString" else coordinates
        path = "".join("M" + "L".join(at(point) for point in line) for line in paths)
        return f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="{p.get("weight", 2)}" opacity="{opacity}"/>'
    if kind == "Polygon":
        path = "".join("M" + "L".join(at(point) for point in ring) + "Z" for ring in coordinates)
        fill = html.escape(p.get("fill", colour))
        return f'<path d="{path}" fill="{fill}" fill-opacity="{p.get("opacity", 0.7)}" stroke="{colour}" stroke-width="{p.get("weight", 1)}"/>'
    raise ValueError(f"a map draws points, lines and polygons (got {kind})")
