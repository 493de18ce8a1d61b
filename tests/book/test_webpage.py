"""The single page that a run leaves: what it says first, whose styles it has, and that it stands alone in a browser."""

import importlib.util
import json
import re

import nbformat
import pytest
from notebook_making import make

from mobpriv.book import running, webpage, yaml_files
from mobpriv.book.results import ROOT
from mobpriv.book.tables import Cell, Table

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:papermill", "ignore::DeprecationWarning:nbclient")
DRAWS = """\
import pandas as pd
from IPython.display import HTML, display
figure = '<figure class="mobpriv-figure"><svg role="img" aria-label="A line." viewBox="0 0 9 9"><path d="M0 0L9 9"/></svg>'
caption = '<figcaption><span class="figure-number">{}</span> What is seen.</figcaption></figure>'
for number in ("Figure 3.4.", "", ""):
    display(HTML(figure + caption.format(number)))
display(pd.DataFrame([[1.0] * 14], columns=[f"a long name {k}" for k in range(14)]))"""
GLOSSARY = """\
# Glossary

```{glossary}
training half
: The earlier half, see {term}`test half`.

AP-Attack
: By heat maps,
  in squares.

pivot
: Of W4M.
```
"""
OWN = """\
from mobpriv import book, datasets
data = datasets.load(dataset)
print("2 users, 4 records")
book.save({"n": 1}, data, "2 users, 4 records")"""


def made(tmp_path, *cells: str, given=None, **keywords):
    """The executed notebook and the record of a run."""
    path = make(tmp_path, "demo", *cells, **keywords)
    record = running.run(path, given, output=tmp_path / "out.ipynb", results=tmp_path / "out.json")
    return nbformat.read(tmp_path / "out.ipynb", 4), record


@pytest.fixture(scope="module")
def user_run(tmp_path_factory):
    """A quick run on an own table."""
    folder = tmp_path_factory.mktemp("own")
    table = folder / "mine.csv"
    table.write_text("uid,t,lat,lng\n" + "".join(f"{'ab'[k % 2]},{1_600_000_000 + 86_400 * k},45.0,4.8\n" for k in range(4)))
    cells = ("cell = 50.0 if quick else cell", "a = 1\n", "b = 2", OWN, DRAWS, "1 + 1")
    executed = made(folder, *cells, given={"dataset": str(table), "quick": True}, tags={2: "quick"}, title="How $x$ goes")
    return executed


UNSEEN = re.compile(r"<title.*?</title>|<style.*?</style>|<script.*?</script>|<pre><code.*?</pre>|<[^>]+>", re.DOTALL)


def text_of(page: str) -> str:
    return re.sub(r"\s+", " ", UNSEEN.sub(" ", page))


def showing(user_run, output=None, text: str = "", **provenance) -> str:
    """The page of the run whose cells are the title and one with this output, and whose record says something else."""
    notebook, record = user_run
    record = record | {"provenance": record["provenance"] | provenance}
    if output or text:
        shown_output = nbformat.v4.new_output(*(("stream", None) if text else ("display_data", {"text/html": output})))
        if text:
            shown_output.text = text
        notebook = nbformat.v4.new_notebook(cells=[notebook.cells[0], nbformat.v4.new_code_cell("", outputs=[shown_output])])
    return webpage.page(notebook, record)


def test_it_says_first_what_run_it_was_and_on_which_data(user_run):
    text = text_of(webpage.page(*user_run))
    assert text.index("How $x$ goes") < text.index("Quick, not a result.") < text.index("This run is on") < text.index("code")
    assert "This run is on mine . 2 users, 4 records. " in text
    assert "this run (mine) 2 4 3" in text  # users, records, days
    assert "Cabspotting" not in text  # no run of the book has this notebook
    assert re.search(
        r"Cabspotting 537 11\D220\D058 24", text_of(showing(user_run, notebook="data_card"))
    )  # the book's, from its results
    assert text.count("2 users, 4 records") == 2  # at the top and in the provenance, not once more as it was printed
    assert "Synthetic data" not in text


def test_a_quick_run_names_the_parameters_that_it_used_and_a_selection_is_said_once(user_run):
    for quick in (True, False):
        used = {"quick": quick, "max_users": 30, "sizes": [10, 25], "seed": 1}
        text = text_of(showing(user_run, notebook="thesis_3_users", parameters=used))
        assert ("It used max_users = 30, sizes = 10, 25." in text) == ("not a result" in text) == quick
        assert ("parameters quick: yes; max_users: 30; sizes: 10, 25. All other" in text) == quick
    selection = "2 users; halves: two; only a < b"
    page = showing(user_run, text=f"{selection}\nfor the cost: 3 cells\n", selection=selection)
    assert "<strong>mine</strong>. 2 users. Halves: two. Only a &lt; b.</p>" in page
    assert page.count("halves: two") == 1  # in the provenance
    assert "<pre>for the cost: 3 cells</pre>" in page


@pytest.mark.parametrize(
    ("table", "said", "not_said"),
    [
        ('<table class="numbers"><td>1</td></table>', "The small numbers below", ["other variant", "paper", "same notebook"]),
        ('<table><td data-label="GeoLife">1<small>author\'s code: 2</small><small>paper: 3</small></td></table>', "The numbers on GeoLife come with the book", []),
        ("<p>GeoLife</p>", "The small numbers below", ["other variant", "same notebook"]),
    ],
)  # fmt: skip
def test_how_to_read_speaks_of_what_is_there(user_run, table, said, not_said):
    words = (
        text_of(showing(user_run, table)).partition("How to read the numbers")[2].partition("Where the numbers come from")[0]
    )
    assert said in words
    assert not [phrase for phrase in not_said if phrase in words]
    assert ("from the other variant" in words and "The paper prints" in words) == (not not_said)


def test_figures_are_numbered_and_code_is_folded_once_for_each_result(user_run):
    page = webpage.page(*user_run)
    assert re.findall(r'figure-number">([^<]*)<', page) == ["Figure 3.4.", "Figure own\xa01.", "Figure own\xa02."]
    folds = re.findall(r"<details>.*?</details>", page, re.DOTALL)
    assert sum("a = 1" in fold and "b = 2" in fold for fold in folds) == 1
    assert len(folds) == 2  # the set-up and the figures' code; the last line's


def test_the_words_that_it_uses_stand_at_its_end(user_run, tmp_path):
    notebook, record = user_run
    (tmp_path / "book" / "results").mkdir(parents=True)
    (tmp_path / "book" / "results" / "runs.yml").write_text("runs: {}\n")
    assert "Words used here" not in webpage.page(notebook, record, tmp_path)  # a book without a glossary
    (tmp_path / "book" / "glossary.md").write_text(GLOSSARY)
    assert webpage.glossary(tmp_path / "book" / "glossary.md") == {
        "training half": "The earlier half, see {term}`test half`.",
        "AP-Attack": "By heat maps, in squares.",
        "pivot": "Of W4M.",
    }
    notebook.cells.append(nbformat.v4.new_markdown_cell("Both {term}`training halves <training half>` and the training half."))
    notebook.cells.append(nbformat.v4.new_code_cell("table.pivot()"))  # a word of the code is none of the page
    words = text_of(webpage.page(notebook, record, tmp_path)).partition("Words used here")[2]
    assert "training half The earlier half, see test half." in words
    assert "AP-Attack" not in words
    assert "Of W4M" not in words
    (tmp_path / "_config.yml").write_text("sphinx: {config: {glossary_chapters: {training half: [another]}}}\n")
    assert "Words used here" not in webpage.page(notebook, record, tmp_path)  # there it is a word like others


def test_words_that_are_terms_in_some_chapters_are_in_the_glossary():
    limited = yaml_files.content(ROOT / "_config.yml")["sphinx"]["config"]["glossary_chapters"]
    known = webpage.glossary(ROOT / "book" / "glossary.md")
    pages = [path.stem for path in (ROOT / "notebooks").glob("*.ipynb")]
    assert [term for term in limited if term not in known] == []
    assert all(any(page.startswith(part) for page in pages) for those in limited.values() for part in those)


@pytest.mark.parametrize(
    ("text", "linked"),
    [("a stay of an hour", True), ("short stays", True), ("their traces stay useful", False), ("to stay", False)],
)
def test_a_word_that_is_a_verb_too_is_a_term_only_as_a_noun(text, linked):
    spec = importlib.util.spec_from_file_location("glossary_links", ROOT / "book" / "_ext" / "glossary_links.py")
    links = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(links)
    assert bool(re.search(rf"(?<![\w-]){links._NOUN}stay", text)) == linked


def test_the_styles_are_the_books_and_follow_the_readers_system():
    css = webpage.stylesheet()
    assert "data-theme" not in css
    assert ".mobpriv-figure" in css
    assert "--mp-0072b2: #56b4e9" in css.partition("prefers-color-scheme: dark")[2]
    used, defined = set(re.findall(r"var\((--[\w-]+)\)", css)), set(re.findall(r"(--[\w-]+):", css))
    assert not used - defined  # what has no fallback is defined
    for colours in re.findall(r"var\((--pst-[\w-]+)", css):
        assert colours in defined
    assert css.count("{") == css.count("}")


def test_the_page_drops_what_only_the_book_understands():
    exercise = ":::{exercise-start} A loop\n:label: one\n:::\n\nWrite it.\n\n:::{exercise-end}\n:::\n"
    solution = ":::{solution-start} one\n:class: dropdown\n:::\nDone."
    cites = "(fig-3)=\n# A title\n\nSee {cite}`maouche2019`, {ref}`the figure <fig-3>` and [the ledger](../ledger.md).\n\n"
    text = webpage.without_roles(cites + ":::{note} Mind\n:class: x\nthis\n:::\n" + exercise + solution)
    words = "# A title See (Maouche 2019), the figure and the ledger. **Mind** this **Exercise: A loop** Write it. **Solution** Done."
    assert text.split() == words.split()


def test_works_are_cited_by_author_and_year(tmp_path):
    keys = set(re.findall(r"\{cite(?::\w+)?\}`([^`]+)`", "".join(p.read_text() for p in (ROOT / "notebooks").glob("*.ipynb"))))
    assert keys
    for key in {key.strip() for group in keys for key in group.split(",")}:
        assert re.fullmatch(r"\D+ (\d{4}|n\.d\.)", webpage.cited(key)), webpage.cited(key)
    assert webpage.cited("nobody2000") == "nobody2000"


def test_a_rule_within_a_rule_stays_whole():
    css = "a { b: c } @media print { html[data-theme=dark] x { y: z } p { q: r } } html[data-theme='dark'] t { u: v }"
    assert webpage._by_system(css).splitlines() == [
        "a { b: c }",
        "@media print { html[data-theme=dark] x { y: z } p { q: r } }",
        "@media screen and (prefers-color-scheme: dark) { :root t { u: v } }",
    ]


# ------------------------------------------------------------------------------------------------------------ in a browser
@pytest.fixture(scope="module")
def files(user_run, tmp_path_factory):
    """The page of a small run on own data, and, where the book was built, of one of its notebooks."""
    folder, name = tmp_path_factory.mktemp("pages"), "thesis_3_mechanisms"
    (folder / "own.html").write_text(webpage.page(*user_run))
    built = ROOT / "book" / "_generated"
    if (executed := built / "executed" / "city" / f"{name}.ipynb").is_file():
        record = json.loads((built / "results" / "city" / f"{name}.json").read_text())
        (folder / "city.html").write_text(webpage.page(nbformat.read(executed, 4), record))
    return sorted(folder.iterdir())


@pytest.fixture
def opened(browser):
    """Opens a page of its own, so wide and so high."""
    contexts = []

    def opened(width: int, height: int = 1000, **options):
        contexts.append(browser.new_context(viewport={"width": width, "height": height}, **options))
        return contexts[-1].new_page()

    yield opened
    for context in contexts:
        context.close()


TOO_WIDE = "document.documentElement.scrollWidth - window.innerWidth"


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 360), ("dark", 360)])
def test_it_stands_alone_fits_the_screen_and_is_accessible(opened, files, scheme, width):
    from axe_playwright_python.sync_playwright import Axe

    rules = {"runOnly": ["color-contrast", "link-in-text-block"]} if scheme == "dark" else {}  # the others read no colours
    for file in files:
        page, wrong, address = opened(width, 800, color_scheme=scheme, reduced_motion="reduce"), [], file.as_uri()
        page.on(
            "request",
            lambda r, address=address, wrong=wrong: None if r.url.startswith((address, "data:")) else wrong.append(r.url),
        )
        page.on("console", lambda m, wrong=wrong: wrong.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda e, wrong=wrong: wrong.append(str(e)))
        page.goto(address, wait_until="networkidle")
        assert page.evaluate(TOO_WIDE) <= 0
        violations = Axe().run(page, options=rules).response["violations"]
        assert [f"{violation['id']}: {node['html'][:200]}" for violation in violations for node in violation["nodes"]] == []
        background = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (background == "rgb(18, 18, 18)") == (scheme == "dark")
        assert not wrong


def test_on_paper_it_is_light_and_nothing_is_cut(opened, files):
    for file in files:
        page = opened(700, color_scheme="dark")
        page.goto(file.as_uri())
        page.emulate_media(media="print", color_scheme="dark")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        cut = "[...document.querySelectorAll('main *')].filter(e => getComputedStyle(e).overflowX == 'auto').length"
        assert page.evaluate(cut) == 0


def test_on_paper_a_table_stays_one_and_its_heads_whole(opened, user_run, tmp_path):
    """At the width of A4: no card a row, no word of a head broken."""
    wide = Table([f"data set {k}" for k in range(7)], {"": {"a row": [Cell("1")] * 7}})._repr_html_()
    (tmp_path / "own.html").write_text(showing(user_run, wide, selection="users and records of a long time; " * 30))
    page, shapes = opened(680), {}
    page.goto((tmp_path / "own.html").as_uri())
    for media, width in {"screen": 600, "print": 680}.items():
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(media=media)
        shapes[media] = page.evaluate("getComputedStyle(document.querySelector('table.columns-7')).display")
    assert shapes == {"screen": "block", "print": "table"}
    broken = page.evaluate(
        "[...document.querySelectorAll('table.origin th')].filter(e => e.scrollWidth > e.clientWidth || "
        "(r => (r.selectNodeContents(e), r.getClientRects().length))(document.createRange()) > 1).length"
    )
    assert (broken, page.evaluate(TOO_WIDE) <= 0) == (0, True)


@pytest.mark.parametrize("columns", [1, 3, 5, 6])
def test_rows_that_are_cards_stand_below_the_name_of_their_corner(opened, columns):
    """The head with the corner is not seen there, and tables of one page would look alike."""
    rows = {"k = 2": [Cell("1")] * columns}
    tables = "".join(Table([f"c{i}" for i in range(columns)], {"": rows}, corner)._repr_html_() for corner in ("alike", ""))
    page, seen = opened(1200, 900), {}
    page.set_content(f"<style>{webpage.stylesheet()}</style><main class='bd-article' style='max-width:none'>{tables}</main>")
    for width in (1200, 390, 320):
        page.set_viewport_size({"width": width, "height": 900})
        corners = [
            element
            for element in page.get_by_text("alike").all()
            if element.bounding_box() and element.bounding_box()["width"] > 2
        ]
        seen[width] = (
            page.locator("thead th").first.bounding_box()["width"] > 2,
            [element.is_visible() for element in corners],
        )
    page.emulate_media(media="print")
    assert not page.locator(".corner").is_visible()
    table, cards = (True, [True]), (False, [True])
    assert seen == {1200: table, 390: cards if columns > 1 else table, 320: cards if columns > 1 else table}
