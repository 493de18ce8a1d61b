// Maps: a picture (SVG) stands in the page; where scripts run, Leaflet takes its place when the reader comes near.
// Leaflet is loaded only on pages that hold a map, and from this site.
(() => {
  const root = new URL(document.documentElement.dataset.content_root || "./", document.baseURI);
  let leaflet;
  const load = () => leaflet ??= new Promise((resolve, reject) => {
    const style = Object.assign(document.createElement("link"), { rel: "stylesheet", href: new URL("leaflet/leaflet.css", root).href });
    const script = Object.assign(document.createElement("script"), { src: new URL("leaflet/leaflet.js", root).href, onload: () => resolve(window.L), onerror: reject });
    document.head.append(style, script);
  });

  const show = async (box) => {
    const L = await load();
    const { layers, label, channel } = JSON.parse(box.querySelector("script[type='application/json']").textContent);
    const canvas = Object.assign(document.createElement("div"), { className: "canvas" });
    canvas.setAttribute("role", "region");
    canvas.setAttribute("aria-label", label);
    const still = box.querySelector("svg");
    still.before(canvas);
    still.style.display = "none";
    const map = L.map(canvas, { trackResize: false, scrollWheelZoom: false, zoomSnap: 0.25, attributionControl: false, preferCanvas: true });
    L.control.scale({ imperial: false }).addTo(map);
    const drawn = layers.map((layer) => {
      const features = L.geoJSON(layer.features, {
        pointToLayer: (_, place) => L.circleMarker(place, { radius: 4 }),
        style: ({ properties: p }) => ({ color: p.colour || "#0072b2", weight: p.weight ?? 2, fillColor: p.fill || p.colour || "#0072b2", fillOpacity: p.opacity ?? 0.7, opacity: p.opacity ?? 1, interactive: Boolean(p.label) }),
        onEachFeature: (f, item) => { if (f.properties.label) item.bindPopup(() => Object.assign(document.createElement("span"), { textContent: f.properties.label })); },
      });
      if (layer.shown) features.addTo(map);
      return [layer.name, features];
    });
    const of = (alternative) => Object.fromEntries(drawn.filter((_, i) => Boolean(layers[i].alternative) === alternative));
    // alternatives are radio buttons, one of them shown; what may lie on top of another is a checkbox
    if (drawn.length > 1) L.control.layers(of(true), of(false), { collapsed: false }).addTo(map);
    const keys = box.querySelectorAll(".legend .layer"); // the key is that of the alternative shown
    map.on("baselayerchange", ({ name }) => layers.forEach((layer, i) => { if (layer.alternative) keys[i].hidden = layer.name !== name; }));
    if (channel) return choose(L, map, canvas, box.querySelector(".chosen"), channel);
    keep(map, canvas, L.featureGroup(drawn.map(([, features]) => features).filter((features) => map.hasLayer(features))).getBounds());
  };

  // the bounds, and what the reader sees of them when the window changes: all as long as he has not moved the map, then its middle
  const keep = (map, canvas, bounds) => {
    let ours = true, moved = false;
    const fit = () => map.fitBounds(bounds, { padding: [8, 8], animate: false });
    fit();
    map.on("movestart", () => { moved ||= !ours; });
    new ResizeObserver(() => {
      if (!canvas.clientWidth) return; // printed, or folded
      const middle = map.getCenter(); // of the size that Leaflet still reckons with
      ours = true;
      map.invalidateSize({ pan: false });
      moved ? map.setView(middle, map.getZoom(), { animate: false }) : fit();
      ours = false;
    }).observe(canvas);
    ours = false;
  };

  // a channel: a click or the arrow keys choose the secret cell, the shades are its row
  const choose = (L, map, canvas, said, { south_west_north_east: bounds, columns, secret, observables, parts, palette, chosen }) => {
    keep(map, canvas, L.latLngBounds(bounds.flatMap(([south, west, north, east]) => [[south, west], [north, east]])));
    const cells = bounds.map(([south, west, north, east], cell) => L.rectangle([[south, west], [north, east]], { weight: 0.3, color: "#8a8a8b" }).on("click", () => show(cell)).addTo(map));
    const outline = L.rectangle(cells[secret].getBounds(), { color: chosen, weight: 3, fill: false, interactive: false }).addTo(map);
    const name = (cell) => `column ${(cell % columns) + 1}, row ${Math.floor(cell / columns) + 1}`;
    const shade = (part) => palette[Math.round((Math.log10(part) / 4) * (palette.length - 1))];
    const show = (cell) => {
      secret = cell;
      const row = new Map();
      parts[cell].forEach((part, i) => { if (part) row.set(observables[i], Math.min(10000, (row.get(observables[i]) || 0) + part)); });
      cells.forEach((c, o) => c.setStyle(row.has(o) ? { fillColor: shade(row.get(o)), fillOpacity: 1 } : { fillColor: "#000", fillOpacity: 0 }));
      outline.setBounds(cells[cell].getBounds());
      outline.bringToFront();
      const best = [...row].sort((a, b) => b[1] - a[1])[0];
      const stays = ((row.get(cell) || 0) / 10000).toFixed(4);
      said.textContent = `Secret cell: ${name(cell)}. Published as itself with probability ${stays}` + (best && best[0] !== cell ? `; most often as ${name(best[0])} (${(best[1] / 10000).toFixed(4)}).` : ".");
    };
    map.keyboard.disable();
    canvas.tabIndex = 0;
    canvas.addEventListener("keydown", (e) => {
      const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: columns, ArrowDown: -columns }[e.key];
      if (!step) return;
      e.preventDefault();
      const next = secret + step;
      const sameRow = Math.floor(next / columns) === Math.floor(secret / columns);
      if (next >= 0 && next < cells.length && (Math.abs(step) > 1 || columns === 1 || sameRow)) show(next);
    });
    show(secret);
    said.textContent += " Click another cell, or move with the arrow keys.";
  };

  const start = () => {
    const near = new IntersectionObserver((entries) => entries.filter((e) => e.isIntersecting).forEach((e) => {
      near.unobserve(e.target);
      show(e.target);
    }), { rootMargin: "200px" });
    document.querySelectorAll(".mobpriv-map").forEach((box) => near.observe(box));
  };
  document.readyState === "loading" ? document.addEventListener("DOMContentLoaded", start) : start();
})();
