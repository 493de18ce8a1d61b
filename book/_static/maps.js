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
    const { layers, label } = JSON.parse(box.querySelector("script[type='application/json']").textContent);
    const canvas = Object.assign(document.createElement("div"), { className: "canvas" });
    canvas.setAttribute("role", "region");
    canvas.setAttribute("aria-label", label);
    const still = box.querySelector("svg");
    still.before(canvas);
    still.style.display = "none";
    const map = L.map(canvas, { scrollWheelZoom: false, zoomSnap: 0.25, attributionControl: false, preferCanvas: true });
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
    if (drawn.length > 1) L.control.layers(null, Object.fromEntries(drawn), { collapsed: false }).addTo(map);
    map.fitBounds(L.featureGroup(drawn.map(([, features]) => features).filter((features) => map.hasLayer(features))).getBounds(), { padding: [8, 8], animate: false });
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
