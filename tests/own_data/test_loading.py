"""A mechanism by its name in text: what is found, and one line for what is not."""

import sys

import pytest
from conftest import refuses

from mobpriv.own_data import loading

TEXT = """
from dataclasses import dataclass
import beside

@dataclass(frozen=True)
class Mine:
    alpha: float = 1.0
    def __post_init__(self):
        if self.alpha < 0:
            raise ValueError("alpha must not be negative")
    def protect(self, traces, rng):
        return traces

class Useless:
    pass

function = len
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    (tmp_path / "of_a_stranger.py").write_text(TEXT)
    (tmp_path / "beside.py").write_text("")
    (tmp_path / "broken_one.py").write_text("import numpy\ndef f(:\n")
    (tmp_path / "ends_one.py").write_text("import sys\nsys.exit('bye')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    return tmp_path


@pytest.mark.parametrize("text", ["of_a_stranger:Mine", "of_a_stranger.py:Mine", "{folder}/of_a_stranger.py:Mine(alpha=2)"])
def test_a_class_is_found_by_module_and_by_file(folder, text):
    path = list(sys.path)
    assert loading.names_a_class(text)
    assert loading.from_class(text.format(folder=folder)).alpha == (2 if "=" in text else 1)
    assert sys.path == path


@pytest.mark.parametrize("text", ["out.csv", "folder/out.parquet", "geolife", "out.csv:", "a b:C"])
def test_a_table_is_no_class(text):
    assert not loading.names_a_class(text)


def test_a_file_of_that_name_is_a_table(folder):
    (folder / "odd:Name").write_text("")
    assert not loading.names_a_class("odd:Name")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("no_module_here:Mine", "no_module_here must be importable .ModuleNotFoundError"),
        ("broken_one.py:Mine", r"broken_one.py must be importable \(SyntaxError: .*line 2"),
        ("ends_one.py:Mine", "ends_one.py must be importable .SystemExit: bye"),
        ("of_a_stranger:Other", r"must define the class Other \(its classes with protect: Mine\)"),
        ("of_a_stranger:function", "must define the class function"),
        ("of_a_stranger:Useless", "Useless must have a method protect"),
        ("of_a_stranger:Mine(1)", r"Mine takes numbers and words, written as Mine\(name=value\) \(got 1 in"),
        ("of_a_stranger:Mine(alpha=len)", "Mine takes numbers and words"),
        ("of_a_stranger:Mine(beta=1)", r"cannot be made \(TypeError: .*beta"),
        ("of_a_stranger:Mine(alpha=-1)", r"cannot be made \(ValueError: alpha must not be negative\)"),
    ],
)
def test_refused(text, words):
    refuses(words, loading.from_class, text)


def test_a_missing_file():
    with pytest.raises(FileNotFoundError, match=r"there is no file none.py with a mechanism"):
        loading.from_class("none.py:Mine")
