/* The filters of a page of the ledger: by verdict and data set, kept in the address so that a link can be shared. Without this script
   all claims are shown and the bar stays hidden. And before printing, folds are opened. */
"use strict";

(() => {
  const FOLDS = ":is(.claim, .erratum) details:not([open]), details.provenance:not([open]), details.more:not([open])";
  let opened = [];
  window.addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll(FOLDS)];
    opened.forEach((fold) => (fold.open = true));
  });
  window.addEventListener("afterprint", () => opened.forEach((fold) => (fold.open = false)));

  /* a claim is shown where one of its findings, "geolife:disagrees", has both the data set and the verdict chosen */
  const matches = (says, { verdict, data }) =>
    says.dataset.found.split("|").some((found) => {
      const [set, kind] = found.split(":");
      return (!data || set === data) && (!verdict || kind === verdict);
    });

  /* what a link leads to is seen */
  const open = () => {
    const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let fold = target && target.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
    if (target && target.closest("details")) target.scrollIntoView();
  };
  window.addEventListener("hashchange", open);
  window.addEventListener("DOMContentLoaded", open);

  window.addEventListener("DOMContentLoaded", () => {
    /* all claims stood on one page once: an address of that time leads on */
    const moved = document.querySelector(".moved");
    const old = moved && /^#claim-([a-z]+)/.exec(location.hash);
    if (old) location.replace((JSON.parse(moved.dataset.pages)[old[1]] ?? "") + location.search + location.hash);
    /* the theme's toggles of the sidebar have no name */
    document.querySelectorAll(".bd-links details > summary").forEach((toggle) => {
      const chapter = toggle.closest("li").querySelector("a");
      toggle.setAttribute("aria-label", `Pages of ${chapter ? chapter.textContent.trim() : "this chapter"}`);
    });
  });

  const start = () => {
    const bar = document.querySelector("form.filters");
    if (!bar) return;
    const claims = [...document.querySelectorAll(".claim")];
    const sections = [...document.querySelectorAll("section section")].filter((section) => section.querySelector(".claim"));
    const chosen = () => Object.fromEntries([...bar.querySelectorAll("select")].map((select) => [select.name, select.value]));

    const show = () => {
      const wanted = chosen();
      claims.forEach((claim) => (claim.hidden = !matches(claim.querySelector("[data-found]"), wanted)));
      sections.forEach((section) => (section.hidden = !section.querySelector(".claim:not([hidden])")));
      const shown = claims.filter((claim) => !claim.hidden).length;
      bar.querySelector("output").textContent = `${shown} of ${claims.length} claims`;
      bar.querySelector("button").disabled = !Object.values(wanted).some(Boolean);
    };
    const remember = () => {
      const query = new URLSearchParams(Object.entries(chosen()).filter(([, value]) => value)).toString();
      history.replaceState(null, "", (query ? `?${query}` : location.pathname) + location.hash);
    };
    const recall = () => {
      const query = new URLSearchParams(location.search);
      bar.querySelectorAll("select").forEach((select) => {
        const value = query.get(select.name) ?? "";
        select.value = [...select.options].some((option) => option.value === value) ? value : "";
      });
    };
    /* a link to a claim shows it, whatever the filters hide */
    const reach = () => {
      const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
      if (!target || !target.closest("[hidden]")) return;
      bar.reset();
    };
    const measure = () => document.documentElement.style.setProperty("--filters", `${bar.offsetHeight}px`);

    bar.hidden = false;
    bar.addEventListener("change", () => { show(); remember(); });
    bar.addEventListener("submit", (event) => event.preventDefault());
    bar.addEventListener("reset", () => setTimeout(() => {
      show();
      remember();
      document.getElementById(location.hash.slice(1))?.scrollIntoView();
    }));
    window.addEventListener("popstate", () => { recall(); show(); });
    window.addEventListener("hashchange", reach);
    new ResizeObserver(measure).observe(bar);
    measure();
    recall();
    show();
    reach();
    if (location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView();
  };

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
