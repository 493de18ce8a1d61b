"""The book about a reader's own table: which pages it has, what it says of the others, what it keeps."""

import json

import pandas as pd
import pytest
from notebook_making import make, registry

from mobpriv.book import own_book

READS = "from mobpriv import book, datasets\ndata = datasets.load(dataset)"
SAVES = 'book.save({"draw": float(len(data.traces)), "shown": True}, data, "all")\ndata'
TOO_FEW = 'if len(data.traces) < 9:\n    raise ValueError("9 records or more are needed (got 4)")'
CONTENTS = """\
format: jb-book
root: index
chapters:
  - {file: first, title: One, sections: [{file: notebooks/across_traces}, {file: notebooks/good}, {file: notebooks/good_lesson}]}
  - {file: second, title: Two, sections: [{file: notebooks/refuses}, {file: notebooks/breaks}, {file: notebooks/of_calls}]}
  - {file: supplement, title: Supplement, sections: [{file: notebooks/good_more}]}
"""


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "project"
    registry(root)
    for name in ("claims", "errata", "quantities"):
        (root / "book" / name).mkdir()
    (root / "book" / "_toc.yml").write_text(CONTENTS)
    (root / "book" / "quantities" / "x.yml").write_text("")
    for name in ("across_traces", "good", "good_lesson", "good_more", "of_calls"):
        make(root, name, READS, SAVES, title=f"Page {name}", tags={2: "input"})
    calls = root / "notebooks" / "of_calls.ipynb"
    calls.write_text(calls.read_text().replace('\\"city\\"', '\\"region\\"'))
    make(root, "refuses", f"{READS}\n{TOO_FEW}", SAVES, title="Page refuses", tags={2: "input"})
    make(root, "breaks", READS, "1 / 0", title="Page breaks", tags={2: "input"})
    return root


def test_pages_of_the_path_that_take_the_table_and_a_reason_for_each_other_one(root, tmp_path, warm, capsys):
    times = pd.date_range("2020-01-01", periods=4, freq="h", tz="UTC").astype(str)
    table, folder = tmp_path / "my.csv", tmp_path / "pages"
    pd.DataFrame({"user": ["a", "a", "b", "b"], "t": times, "lat": 45.0, "lng": 4.8}).to_csv(table, index=False)

    failed = own_book.write(str(table), folder, "My <table>", workers=1, root=root)
    assert list(failed) == ["breaks"]
    assert sorted(path.name for path in folder.glob("*.html")) == ["across_traces.html", "good.html", "index.html"]
    index = (folder / "index.html").read_text()
    assert index.index('href="across_traces.html"') < index.index("<h2>One</h2>") < index.index('href="good.html"')
    assert "<li>Page refuses (does not run on these data: 9 records or more are needed (got 4))</li>" in index
    assert "ZeroDivisionError" in index.partition("<li>Page breaks (failed: ")[2].partition("</li>")[0]
    assert "2 of 4 experiments ran" in index
    assert "My &lt;table&gt;" in index
    assert not [text for text in ("My <table>", str(tmp_path)) if text in index]
    record = json.loads((folder / "good.json").read_text())
    assert record["results"]["draw"] == 4

    capsys.readouterr()
    own_book.write(str(table), folder, "My <table>", workers=1, root=root)
    assert "2 of 4 notebooks unchanged" in capsys.readouterr().err  # only those that did not run are tried again
