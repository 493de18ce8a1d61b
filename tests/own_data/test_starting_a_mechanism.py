"""The files of a new mechanism: they keep the contract as written, and replace nothing."""

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mobpriv.cli import app
from mobpriv.own_data import contract, loading


def new(name):
    result = CliRunner().invoke(app, ["new", "mechanism", name])
    return result.exit_code, result.stdout, result.stderr


def test_the_written_mechanism_keeps_the_contract_and_its_test_passes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)  # the counts are read below
    code, out, _ = new("of_mine_2")
    assert (code, sorted(path.name for path in tmp_path.iterdir())) == (0, ["of_mine_2.py", "test_of_mine_2.py"])
    name = out.split()[-1]
    assert name == "of_mine_2.py:OfMine2"
    assert contract.broken_rules(loading.from_class(name)) == []
    run = subprocess.run([sys.executable, "-m", "pytest", "-q"], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout
    assert f"{len(contract.RULES) + 1} passed" in run.stdout
    (tmp_path / "of_mine_2.py").write_text((tmp_path / "of_mine_2.py").read_text().replace("random = False", "random = True"))
    run = subprocess.run([sys.executable, "-m", "pytest", "-q"], capture_output=True, text=True, check=False)
    assert "1 failed" in run.stdout


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("../x", "the name is one of a Python file"),
        ("Mine", "the name is one of a Python file"),
        ("class", "the name is one of a Python file"),
        ("2mine", "the name is one of a Python file"),
        ("numpy", "numpy is the name of an installed module"),
        ("taken", "taken.py exists, and nothing is overwritten"),
        ("tested", "test_tested.py exists, and nothing is overwritten"),
    ],
)
def test_a_refused_name_writes_nothing(tmp_path, monkeypatch, name, words):
    monkeypatch.chdir(tmp_path)
    for file in ("taken.py", "test_tested.py"):
        Path(file).write_text("mine")
    code, out, err = new(name)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert words in err
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"taken.py": "mine", "test_tested.py": "mine"}
