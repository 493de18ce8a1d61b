"""An executed notebook as a self-contained HTML file: embedded pictures and styles, no network requests."""

import html
import importlib.util
import re
from copy import deepcopy
from itertools import count
from pathlib import Path

import nbformat

from mobpriv.base.numbers import FIXED, counted, shown
from mobpriv.book import notebook_pages, notebooks, pages, provenance, runs, yaml_files
from mobpriv.book.results import ROOT
from mobpriv.book.self_checks import CHECK
from mobpriv.book.tables import Cell, Table

# colours of the book's theme: light, dark
_THEME = {
    "background": ("#fff", "#121212"),
    "surface": ("#f3f4f5", "#222425"),
    "on-background": ("#fff", "#1c1c1c"),
    "on-surface": ("#222832", "#e6e6e6"),
    "text-base": ("#222832", "#e6e6e6"),
    "text-muted": ("#48566b", "#b3b8bd"),
    "border": ("#c9c9c9", "#48566b"),
    "primary": ("#0b57c0", "#86b4ff"),
    "link": ("#0b57c0", "#86b4ff"),
    "table-outer-border": ("#c9c9c9", "#48566b"),
    "table-inner-border": ("#dfe3e8", "#364150"),
    "table-heading-bg": ("#f3f4f5", "#222425"),
    "table-row-zebra-low-bg": ("#f3f4f5", "#222425"),
    "table-row-zebra-high-bg": ("#fff", "#121212"),
}
_PAGE_STYLE = """
:root { color-scheme: light dark; }
* { box-sizing: border-box; }
body { font: 16px/1.55 system-ui, sans-serif; margin: 0; background: var(--pst-color-background); color: var(--pst-color-text-base); }
main { max-width: 62rem; margin: 0 auto; padding: 1.2rem 1rem 3rem; overflow-wrap: break-word; }
h1, h2, h3 { line-height: 1.25; } h2 { margin-top: 2.2rem; } main > p, main > ul, main > ol, dl { max-width: 46rem; }
a { color: var(--pst-color-link); }
.banner { border-left: .3rem solid #b36b00; padding: .5rem .9rem; margin: 0 0 1rem; background: #b36b0018; }
.banner.synthetic { border-color: #e69f00; background: #e69f0014; font-size: inherit; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; padding: .6rem; margin: .4rem 0; background: var(--pst-color-surface); font-size: .85em; }
code { overflow-wrap: anywhere; font-size: .9em; } pre code { font-size: 1em; }
details { margin: .5rem 0; } summary { cursor: pointer; color: var(--pst-color-text-muted); font-size: .9em; }
img, svg { max-width: 100%; height: auto; } .mobpriv-figure { overflow: visible; } main .mobpriv-figure svg { min-width: 0; }
.drawn { background: #fff; width: fit-content; }
main table { border-collapse: collapse; font-size: .88em; }
main table:not(.numbers) :is(th, td) { padding: .25rem .6rem; text-align: right; vertical-align: top; border: 0; border-bottom: 1px solid var(--pst-color-border); }
main table:not(.numbers) :is(tbody th, th:first-child, td:first-child) { text-align: left; }
main table.origin { font-size: .85em; } main table.origin :is(th, td) { text-align: left; overflow-wrap: anywhere; } main table.origin th { overflow-wrap: normal; }
dt { font-weight: 600; margin-top: .6rem; } dd { margin: 0 0 0 1.2rem; }
@media (max-width: 480px) { main table:not(.numbers) :is(th, td) { padding: .2rem .3rem; } main table:not(.numbers, .origin) { font-size: .8em; } }
@media print { body { font-size: 10pt; } details:not([open]) { display: none; } main { max-width: none; padding: 0; } a { color: inherit; }
  main table:not(.numbers) { font-size: .7em; } main table:not(.numbers) :is(th, td) { overflow-wrap: anywhere; padding: .15rem .25rem; }
  main table.origin th { overflow-wrap: normal; white-space: nowrap; } }
"""
# an assessment on four sheets: small print, three panels in a row; a figure over several sheets stays on the screen
_FEW_SHEETS = """
@media print {
  @page { margin: 10mm 12mm; }
  body { font-size: 7.7pt; line-height: 1.27; }
  h1 { font-size: 1.5em; margin: 0 0 .3em; } h2 { font-size: 1.15em; margin: .7em 0 .2em; }
  main > p, main > ul, main > ol, dl { max-width: none; } main :is(p, ul, ol) { margin-block: .35em; }
  dl { columns: 4; font-size: .75em; margin: 0; } dt { margin-top: .2em; } dd { break-inside: avoid; margin-left: .8em; }
  main .mobpriv-figure { display: block !important; margin-block: .4em; }
  main .mobpriv-figure[data-panels="3"] .panels { display: grid; grid-template: none / repeat(3, minmax(0, 1fr)) !important; }
  main .mobpriv-figure[data-panels="3"] .panels svg { max-height: 3.7cm !important; }
  main .mobpriv-figure.broken > :not(figcaption) { display: none; } .broken figcaption::after { content: " This figure is on the screen only."; }
  main table.numbers { line-height: 1.15; } main table.numbers :is(th, td) { padding-block: .08rem; } main table.numbers small { display: inline; white-space: nowrap; margin-left: .35em; }
  main table:not(.numbers) { font-size: .8em; } main table:not(.numbers) :is(th, td) { overflow-wrap: anywhere; padding: .1rem .25rem; }
}
"""
ASSESSMENTS = {"traces": "across_traces", "calls": "primule_risk"}  # kind of data -> its first page
_STYLES = ("figures.css", "mobpriv.css")  # of the book
_MATH = "<script>window.MathJax = {tex: {inlineMath: [['$', '$']]}, options: {enableMenu: false}}</script><script>%s</script>"
_INTERVALS = "The small numbers below a value are its 95 % interval and n, the number of cases."
_BESIDE = {  # pattern in the tables and figures of a page -> sentence that explains it
    "<small>(?:as described|author(?:'|&#x27;)s code):": "A second number below the first is from the other variant of the method.",
    "<small>paper:": "The paper prints the number after “paper”.",
}
_OF_THE_BOOK = "The numbers on {others} come with the book, from runs of the same notebook."
_NOT_OF_THESE_DATA = "The text between the results was written for the data sets of the book. Where it contradicts a result on this page, the result is right for these data."
_VARIANTS_EXPLAINED = (
    "The thesis's methods have two variants. <em>text</em>: as the thesis describes them; <em>program</em>: as in its author's code "
    "(another split into halves, distances in a Mercator projection, other weights). The parameter <code>variant</code> chooses one."
)


def page(notebook: nbformat.NotebookNode, record: dict, root: Path = ROOT) -> str:
    """The page of an executed notebook: kind of run, data, cells, glossary, provenance."""
    run_record = record["provenance"]
    cells = notebook_pages.results_first(notebook_pages.opened(deepcopy(notebook.cells)))
    text = "".join(cell.source for cell in cells if cell.cell_type == "markdown")
    title, body = _cells(cells, selection=run_record["selection"])
    numbers = count(1)
    body = notebook_pages.numbered(body, lambda: f"own{FIXED}{next(numbers)}")
    rows = pages.provenance_row(run_record, shortened=_shortened(run_record["notebook"], root)).items()
    origin = "".join(
        f'<tr><th scope="row">{html.escape(k)}</th><td>{html.escape(v).replace("`", "")}</td></tr>' for k, v in rows
    )
    parts = [
        title,
        _banners(run_record, root),
        _about(run_record, root),
        body,
        _how_to_read(run_record, body, root),
        _words(f"{text} {re.sub('<details.*?</details>|<[^>]+>', ' ', body, flags=re.DOTALL)}", run_record["notebook"], root),
        f'<h2>Where the numbers come from</h2><table class="origin"><tbody>{origin}</tbody></table>',
    ]
    name = re.sub("<[^>]+>", "", title) or run_record["notebook"]
    data = f": {run_record['data']['name']}" if run_record["data"] else ""
    style = _FEW_SHEETS if run_record["notebook"] in ASSESSMENTS.values() else ""
    return document(f"{name}{html.escape(data)}", "".join(parts), root, formulas="$" in text, style=style)


def document(title: str, body: str, root: Path = ROOT, formulas: bool = False, style: str = "") -> str:
    """A self-contained HTML page; ``formulas``: whether it needs the formula renderer; ``style``: added to the book's styles."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<title>{title}</title><link rel="icon" href="data:,">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{stylesheet(root)}{style}</style></head>'
        f'<body><main class="bd-article">{body}</main>{_mathjax() if formulas else ""}</body></html>\n'
    )


# ------------------------------------------------------------------------------------------------------------------ cells
def _cells(cells: list[nbformat.NotebookNode], selection: str) -> tuple[str, str]:
    """The title of a notebook and its cells: text, results, and the code of each result in a fold.

    Printed lines equal to ``selection``, which is at the top of the page, are dropped.
    """
    parts, code, tables = [], [], 0
    for cell in cells:
        if cell.cell_type == "markdown":
            parts += [_fold(code), markdown(cell.source)]
            code = []
        elif cell.cell_type == "code" and not {"remove-cell", CHECK} & set(cell.metadata.get("tags", [])):
            code.append(cell.source)
            new = [_without(output, selection) for output in cell.outputs]
            outputs = [_output(output, tables := tables + 1) for output in new]
            if any(outputs):
                parts += [_fold(code), f'<div class="cell_output">{"".join(outputs)}</div>']
                code = []
    heading = re.match(r"\s*<h1.*?</h1>", body := "".join([*parts, _fold(code)]), flags=re.DOTALL)
    return (heading[0], body[heading.end() :]) if heading else ("", body)


def _without(output: nbformat.NotebookNode, selection: str) -> nbformat.NotebookNode:
    """An output without the lines equal to ``selection``."""
    if output.output_type != "stream" or not selection:
        return output
    lines = [line for line in output.text.splitlines() if line.strip() != selection.strip()]
    return nbformat.from_dict({**output, "text": "\n".join(lines)})


def _fold(code: list[str]) -> str:
    text = html.escape("\n\n".join(code))
    return f"<details><summary>code</summary><pre><code>{text}</code></pre></details>" if code else ""


def markdown(text: str) -> str:
    """MyST as HTML, without what only the book can show."""
    from nbconvert.filters import markdown2html

    return re.sub(r"<a class=\"anchor-link\".*?</a>", "", markdown2html(without_roles(text)))


def _output(output: nbformat.NotebookNode, number: int) -> str:
    """An output as in the book; a wide table, the ``number``-th output, can be focused and scrolled by keyboard."""
    if output.output_type == "stream":
        return f"<pre>{html.escape(output.text)}</pre>" if output.text.strip() else ""
    data = output.get("data", {})
    if "text/html" in data:
        # an empty heading in the corner of a pandas table confuses screen readers
        markup = "".join(data["text/html"]).replace("<th></th>", "<td></td>")
        scrolls = "<table" in markup and "numbers" not in markup
        reached = f' tabindex="0" role="region" aria-label="Table of output {number}"' if scrolls else ""
        return f'<div class="output text_html"{reached}>{markup}</div>'
    if "text/markdown" in data:
        return markdown("".join(data["text/markdown"]))
    if "image/png" in data:
        words = html.escape("".join(data.get("text/plain", "a drawing")))
        return f'<div class="drawn"><img src="data:image/png;base64,{"".join(data["image/png"]).strip()}" alt="{words}"></div>'
    return f"<pre>{html.escape(''.join(data['text/plain']))}</pre>" if "text/plain" in data else ""


def without_roles(text: str) -> str:
    """Markdown without the syntax specific to the book: labels, roles, directives, links to its other pages."""
    text = re.sub(r"^\([\w-]+\)=\n", "", text, flags=re.MULTILINE)
    text = re.sub(
        r"\{cite(?::\w+)?\}`([^`]+)`", lambda m: f"({'; '.join(cited(key.strip()) for key in m[1].split(','))})", text
    )
    text = re.sub(r"\{[\w:]+\}`([^`<]+?)\s*(?:<[^`]*>)?`", r"\1", text)
    text = re.sub(r"^[:`]{3,}\{exercise-start\}[ \t]*(.*)$", r"**Exercise: \1**\n", text, flags=re.MULTILINE)
    text = re.sub(r"^[:`]{3,}\{solution-start\}.*$", "**Solution**\n", text, flags=re.MULTILINE)
    text = re.sub(r"^[:`]{3,}\{[\w-]+\}[ \t]*(.*)$", lambda m: f"**{m[1]}**\n" if m[1] else "", text, flags=re.MULTILINE)
    text = re.sub(r"^(?::{3,}|:[\w-]+:.*)$", "", text, flags=re.MULTILINE)
    return re.sub(r"\[([^\]]+)\]\((?!https?:)[^)]*\)", r"\1", text)


def cited(key: str, root: Path = ROOT) -> str:
    """A work of the bibliography by author and year, "Andrés et al. 2013"; its key if it is not there."""
    from pybtex.database import parse_file

    path = root / "book" / "references.bib"
    entry = parse_file(path).entries.get(key) if path.is_file() else None
    if entry is None or "author" not in entry.persons:
        return key
    names = [" ".join([*person.prelast_names, *person.last_names]).strip("{}") for person in entry.persons["author"]]
    people = f"{names[0]} et al." if len(names) > 2 else " and ".join(names)
    return f"{people} {entry.fields.get('year', 'n.d.')}"


# ------------------------------------------------------------------------------------------------- what kind of run it was
def _banners(run_record: dict, root: Path) -> str:
    """The notices at the top: a quick run, with the parameters used, and synthetic data."""
    notices = ""
    if run_record["parameters"].get("quick"):
        short = {
            name: run_record["parameters"][name]
            for name in _shortened(run_record["notebook"], root)
            if name in run_record["parameters"]
        }
        used = ", ".join(f"{name} = {_value(value)}" for name, value in short.items())
        with_ = f" It used {html.escape(used)}." if used else ""
        notices += f'<p class="banner"><strong>Quick, not a result.</strong> This run is shortened, to try out the notebook.{with_}</p>'
    if run_record["data"] and run_record["data"]["synthetic"]:
        notices += '<p class="banner synthetic"><strong>Synthetic data.</strong> All people and vehicles in these data are invented.</p>'
    return notices


def _shortened(notebook: str, root: Path) -> dict[str, str]:
    try:
        return notebooks.shortened(notebook, root)
    except FileNotFoundError:  # the reader's own notebook, outside the project
        return {}


def _value(value) -> str:
    return ", ".join(map(_value, value)) if isinstance(value, list) else shown(value)


def _about(run_record: dict, root: Path) -> str:
    """The data of this run in words, and a table of their size and the size of the book's data; "" without data."""
    if not run_record["data"]:
        return ""
    name = html.escape(run_record["data"]["name"])
    parts = [part.strip() for part in run_record["selection"].split(";")]
    sentences = [f"{part[0].upper()}{part[1:]}." for part in parts if part]
    lines = [f"This run is on <strong>{name}</strong>.", *map(html.escape, sentences)]
    if lost := sum(run_record["data"]["left_out"].values()):
        lines.append(
            f"{counted(lost, 'record')} {'was' if lost == 1 else 'were'} left out while reading (see the end of the page)."
        )
    sizes = {f"this run ({run_record['data']['name']})": run_record["data"]["size"]} if run_record["data"].get("size") else {}
    sizes |= {
        title: size
        for run, (title, size) in _of_the_book(run_record["notebook"], root).items()
        if run != run_record["data"]["name"]
    }
    table = _sizes(sizes) if run_record["data"].get("size") else ""
    notice = "" if run_record["data"]["name"] in runs.read(root).runs else f"<p>{_NOT_OF_THESE_DATA}</p>"
    return f"<p>{' '.join(lines)}</p>{notice}{table}"


def _of_the_book(notebook: str, root: Path) -> dict[str, tuple[str, dict]]:
    """Run -> title and size of its data, for the book's runs of a notebook."""
    sizes = {}
    for run in runs.read(root).runs.values():
        record = provenance.read_record(run.folder(root) / f"{notebook}.json")
        if record and (record["provenance"]["data"] or {}).get("size"):
            sizes[run.name] = (run.title, record["provenance"]["data"]["size"])
    return sizes


def _sizes(sizes: dict[str, dict]) -> str:
    names, rows = ("users", "records", "days"), {}
    for title, size in sizes.items():
        numbers = (round(size[name], 1) if size[name] < 1000 else round(size[name]) for name in names)
        rows[title] = [Cell(shown(number)) for number in numbers]
    return Table(names, {"": rows}, "data set")._repr_html_()


# ----------------------------------------------------------------------------------------------------- words and variants
def _how_to_read(run_record: dict, body: str, root: Path) -> str:
    """The explanation of the small print in the tables, limited to what occurs."""
    results = "".join(re.findall("<table.*?</table>|<figure.*?</figure>", body, re.DOTALL))
    words = [_INTERVALS, *(words for what, words in _BESIDE.items() if re.search(what, results))]
    registry, this_run = runs.read(root), run_record["data"]["name"] if run_record["data"] else ""
    titles = (registry.title(run.data or run.name) for run in registry.runs.values() if run.name != this_run)
    others = [title for title in dict.fromkeys(titles) if html.escape(title) in results]
    words += [_OF_THE_BOOK.format(others=html.escape(" and ".join(others)))] if others else []
    variants = f"<p>{_VARIANTS_EXPLAINED}</p>" if "variant" in run_record["parameters"] else ""
    return f"<h2>How to read the numbers</h2><p>{' '.join(words)}</p>{variants}"


def _words(text: str, name: str, root: Path) -> str:
    """The terms of the book's glossary that a page uses; "" if there are none."""
    config = root / "_config.yml"
    limited = yaml_files.content(config)["sphinx"]["config"]["glossary_chapters"] if config.is_file() else {}
    every = glossary(root / "book" / "glossary.md")
    known = {term: what for term, what in every.items() if any(map(name.startswith, limited.get(term, [""])))}
    used = {term: what for term, what in known.items() if re.search(rf"\b{re.escape(term)}s?\b", text, flags=re.IGNORECASE)}
    rendered = {term: re.sub(r"^<p>|</p>\s*$", "", markdown(used[term]).strip()) for term in sorted(used, key=str.lower)}
    terms = "".join(f"<dt>{html.escape(term)}</dt><dd>{what}</dd>" for term, what in rendered.items())
    return f"<h2>Words used here</h2><dl>{terms}</dl>" if terms else ""


def glossary(path: Path) -> dict[str, str]:
    """Term -> definition, from a MyST ``{glossary}``: a line with the term, then ``: definition``, further lines indented."""
    if not path.is_file():
        return {}
    definitions, terms = {}, []
    blocks = re.findall(
        r"^[`:]{3,}\{glossary\}.*?\n(.*?)^[`:]{3,}\s*$", path.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    for line in "\n".join(blocks).splitlines():
        if line.startswith(":") and not re.match(r":[\w-]+:", line):
            definitions |= dict.fromkeys(terms, line[1:].strip())
        elif line[:1].isspace() and line.strip() and terms:
            definitions |= {term: f"{definitions.get(term, '')} {line.strip()}".strip() for term in terms}
        elif line.strip() and not line.startswith(":"):
            terms = [*terms, line.strip()] if terms and terms[-1] not in definitions else [line.strip()]
    return definitions


# ----------------------------------------------------------------------------------------------------------------- styles
def stylesheet(root: Path = ROOT) -> str:
    """The book's styles with the colours of its theme; a single page follows the reader's system instead of a switch."""
    light, dark = ("".join(f"--pst-color-{name}: {colours[k]}; " for name, colours in _THEME.items()) for k in (0, 1))
    theme = f":root {{ {light}}}\nhtml[data-theme=dark] {{ {dark}}}\n"
    files = [root / "book" / "_static" / name for name in _STYLES]
    book = "\n".join(file.read_text(encoding="utf-8") for file in files if file.is_file())
    return _by_system(theme + book) + _PAGE_STYLE


def _by_system(css: str) -> str:
    """Styles that follow the reader's system instead of the switch of the book's theme; print is light."""
    out = []
    for rule in _rules(re.sub(r"/\*.*?\*/", "", css, flags=re.DOTALL)):
        theme = re.match(r"""\s*html\[data-theme=["']?(dark|light)["']?\]""", rule)
        if theme:
            rule = re.sub(r"""html\[data-theme=["']?(?:dark|light)["']?\]""", ":root", rule)
            rule = f"@media screen and (prefers-color-scheme: {theme[1]}) {{ {rule.strip()} }}"
        out.append(rule.strip())
    return "\n".join(out) + "\n"


def _rules(css: str) -> list[str]:
    """The rules of a stylesheet; an @media or @container block is one rule."""
    rules, depth, begin = [], 0, 0
    for brace in re.finditer("[{}]", css):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            rules.append(css[begin : brace.end()])
            begin = brace.end()
    return rules


def _mathjax() -> str:
    """The formula renderer of the book, embedded in the page (2 MB); "" if not installed: formulas stay TeX."""
    package = importlib.util.find_spec("sphinx-mathjax-offline")
    script = Path(package.origin).parent / "static" / "mathjax" / "tex-svg.js" if package and package.origin else None
    return _MATH % script.read_text(encoding="utf-8").replace("</script", "<\\/script") if script and script.is_file() else ""
