"""The linter of the book's prose: what counts as a sentence, and which rules it breaks."""

import re

import nbformat
import pytest

from mobpriv.book import prose

RULES = prose.Rules({re.compile(r"\bbeside\b", re.IGNORECASE): "next to"}, {"allowed here": "a quotation"}, frozenset())


def texts(markdown: str) -> list[str]:
    return [sentence.text for sentence in prose.sentences(markdown, "a.md")]


def faults(text: str) -> list[str]:
    return prose.faults(prose.Sentence("a.md", text), RULES)


@pytest.mark.parametrize(
    ("markdown", "found"),
    [
        ("# A title\n\nOne. Two!\n\n- An entry\n- Another", ["A title", "One.", "Two!", "An entry", "Another"]),
        ("See [the page](a.md), e.g. `x.y`. It *holds*.", ["See the page, e.g Code.", "It holds."]),
        ("It is {city.rate} of {{ claims_all }} at $ε = 1$.", ["It is 12 of 12 at x."]),
        ("```bash\nmake book. Now.\n```\n| a | b. C |\n:::{div} x\nText.\n:::", ["Text."]),
        ("```{glossary}\nterm\n  Its meaning.\n```", ["term Its meaning."]),
    ],
)
def test_what_a_sentence_is(markdown, found):
    assert texts(markdown) == found


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("The users " + "call often " * 15 + "are few.", "34 words, at most 30"),
        ("The risk is high for who calls much.", "'who' without a noun"),
        ("Of the cabs 43 % are found.", "begins with 'Of'"),
        ("It stands beside the number.", "'beside': say next to"),
        ("The rate is 0.09975 of all.", "digits without meaning: 0.09975"),
        ("A user who calls much is unique.", None),
        ("Who is re-identified?", None),
        ("AP-Attack re-identifies 43 %.", None),
        ("Beside is allowed here.", None),
    ],
)
def test_what_breaks_a_rule(text, fault):
    assert [fault in message for message in faults(text)] == ([True] if fault else [])


def test_texts_of_a_notebook_and_of_the_ledger(tmp_path):
    drawn = 'plot.show(axes, f"Users {n} by attack, as shares.", "a", "b c")'
    cells = [
        nbformat.v4.new_markdown_cell("A question."),
        nbformat.v4.new_code_cell('"""A docstring that nobody reads."""'),
        nbformat.v4.new_code_cell(drawn, metadata={"tags": ["figure"]}),
    ]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "a.ipynb")
    explained = "explanations: [{runs: [city], why: The cause.}], quantity: a.b"
    (tmp_path / "b.yml").write_text(f"claims: [{{id: T1, notebook: nb, claim: It holds., {explained}}}]")
    assert list(prose.written([tmp_path / "a.ipynb", tmp_path / "b.yml"], tmp_path)) == [
        *(("a.ipynb cell 0", "A question."), ("a.ipynb cell 2", "Users 12 by attack, as shares.")),
        *(("b.yml T1", "It holds."), ("b.yml T1", "The cause.")),
    ]


def test_texts_of_a_program(tmp_path):
    """Docstrings without their examples, and messages; no other text."""
    path = tmp_path / "a.py"
    path.write_text(
        '"""How traces are read.\n\n    >>> read("a b c d e f")\n    1\n\nA second sentence of :func:`read`."""\n'
        'def read(file):\n    """Read a file."""\n    raise ValueError(f"{file}: rows must be sorted by time (got row {file})")\n'
        'QUERY = "select a, b from t where c = 1 group by a"\n'
    )
    assert [one.text for one in prose.written([path], tmp_path)] == [
        "How traces are read.",
        "A second sentence of Code.",
        "Read a file.",
        "rows must be sorted by time (got row 12)",
    ]


def test_a_general_linter_reads_the_same_sentences(tmp_path, capsys):
    path = tmp_path / "a.md"
    path.write_text("This is fine. It is very very unique.\n")
    assert prose.main([str(path)]) == 1
    assert "a.md: " in capsys.readouterr().out
