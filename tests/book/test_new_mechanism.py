"""A new mechanism is one file and one line: a page shows it at once, and only that page's results on real data become stale."""

import os
import re
import shutil
import subprocess
import sys

from mobpriv.book import build, runs
from mobpriv.book.results import ROOT

ROUNDING = """
from dataclasses import dataclass, field

from mobpriv.traces.table import as_traces


@dataclass(frozen=True)
class Rounding:
    step: float = 0.01
    name: str = field(default="Rounding", init=False)
    random: bool = field(default=False, init=False)

    def protect(self, traces, rng=None):
        return as_traces(traces.assign(**{c: (traces[c] / self.step).round() * self.step for c in ("lat", "lng")}))
"""
PAGE = "thesis_4_privacy"
HERE = "mechanism_by_name = mechanisms(setting, variant)"


def with_line(text: str) -> str:
    assert text.count(HERE) == 1
    return text.replace(HERE, HERE + " | {'Rounding': __import__('rounding').Rounding()}")


def test_only_the_results_of_the_page_become_stale(tmp_path):
    for folder in ("mobpriv", "notebooks", "book", "data"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__", "_generated"))
    for file in ("pyproject.toml", "requirements.lock"):
        shutil.copy(ROOT / file, tmp_path)
    records = build.all_records(ROOT)
    before = build.stale_results(records, ROOT)
    (tmp_path / "mobpriv" / "mechanisms" / "rounding.py").write_text(ROUNDING)
    with (tmp_path / "mobpriv" / "mechanisms" / "__init__.py").open("a") as face:
        face.write("from mobpriv.mechanisms.rounding import Rounding\n")
    notebook = tmp_path / "notebooks" / f"{PAGE}.ipynb"
    notebook.write_text(with_line(notebook.read_text(encoding="utf-8")), encoding="utf-8")
    after = build.stale_results(records, tmp_path)
    real = {(run, PAGE) for run, of in records.items() if PAGE in of and runs.read(ROOT).runs[run].file}
    assert len(real) >= 2
    assert after == before | real


def test_the_page_shows_it_next_to_runs_made_before_it_existed(tmp_path):
    (tmp_path / "rounding.py").write_text(ROUNDING)
    notebook = tmp_path / f"{PAGE}.ipynb"
    notebook.write_text(with_line((ROOT / "notebooks" / notebook.name).read_text(encoding="utf-8")), encoding="utf-8")
    command = [sys.executable, "-m", "mobpriv.cli", "run", str(notebook), "--quick", "--output", str(tmp_path / "out")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    page = next((tmp_path / "out").glob("*.html")).read_text(encoding="utf-8")
    assert "(Rounding)" in page  # in what is read aloud of a figure
    rows = re.findall(r"<th[^>]*>Rounding</th>\s*<td[^>]*><span>(.*?)</span>", page)
    assert [row == "–" for row in rows] == [True, True, False]  # Cabspotting, GeoLife, this run
