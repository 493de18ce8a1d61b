"""Results on real data whose code was rearranged: carried over to the code of today, not run again.

A run of an hour need not be repeated because a function was cut in two. That nothing else happened is shown on the embedded data: every
page that a result belongs to gives there the same numbers, to the last digit, before and after. That is evidence, not a proof (what
only real data meet is not in it). So the record keeps the commit that computed it and says at which one it was carried over, pages
show both, and ``make real`` computes it again.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from mobpriv.book import build, notebooks, provenance, running, runs
from mobpriv.book.results import ROOT

_STALE = """
import json, pathlib
from mobpriv.book import build
root = pathlib.Path.cwd()
print(json.dumps(sorted(build.stale_results(build.all_records(root), root))))
"""
_QUICK = """
import json, pathlib, sys, tempfile
from mobpriv.book import running
root, (name, given) = pathlib.Path.cwd(), json.loads(sys.argv[1])
with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    files = {"output": folder / "out.ipynb", "results": folder / "out.json"}
    print(json.dumps(running.run(name, given, root=root, **files)["results"]))
"""


class Carried(NamedTuple):
    results: list[tuple[str, str]]  # (run, notebook)
    kept_stale: dict[tuple[str, str], str]  # and why


def carry(before: Path, root: Path = ROOT) -> Carried:
    """Carry over the stale results of ``root`` whose embedded results are those of ``before``.

    ``before`` is a checkout of the earlier commit, ``root`` one of today's, both without changes and with their books built. A result
    that was stale there, or is another one, stays stale. A run that reads a paper in another way than the embedded one does is held
    against quick runs of that reading, made here in both.
    """
    if provenance.commit(root).endswith("changes"):
        raise ValueError(f"{root.name} has changes that are not committed: commit them, build the book, then carry over")
    registry, records = runs.read(root), build.all_records(root)
    stale_before = {tuple(pair) for pair in _there(before, _STALE)}
    found = Carried([], {})
    for run, name in sorted(build.stale_results(records, root)):
        of = (run, name)
        reason = "it was stale before" if of in stale_before else _differs(registry, run, name, before, root)
        if reason:
            found.kept_stale[of] = reason
            continue
        record = records[run][name]
        record["provenance"] |= {
            "code_hash": build.code_hash(registry.runs[run], name, root),
            "carried": provenance.commit(root),
        }
        path = root / "book" / "results" / run / f"{name}.json"
        provenance.write_atomically(path, json.dumps(record, indent=1, ensure_ascii=False) + "\n")
        found.results.append(of)
    return found


def _differs(registry: runs.Registry, run: str, name: str, before: Path, root: Path) -> str:
    """Why a result cannot be carried over; "" if it can."""
    file = Path("book", "results", run, f"{name}.json")
    if not (before / file).is_file() or (before / file).read_bytes() != (root / file).read_bytes():
        return "the result before is another one"
    reading = build.given_to(registry.runs[run], name, root).get("reading")
    if reading is not None and reading != notebooks.parameters(name, root)["reading"].default:
        given = json.dumps([name, {"reading": reading, "quick": True}])
        same = _there(before, _QUICK, given) == _there(root, _QUICK, given)
        return "" if same else f"a quick run on the embedded data reads other numbers as the {reading}"
    embedded = [Path("book", "_generated", "results", own, f"{name}.json") for own in registry.embedded]
    pairs = [(provenance.read_record(before / path), provenance.read_record(root / path)) for path in embedded]
    pairs = [pair for pair in pairs if any(pair)]
    if not pairs or not all(map(all, pairs)):
        return "its notebook has no embedded results in both: make book there"
    alike = all(
        one["results"] == other["results"] and one["provenance"]["parameters"] == other["provenance"]["parameters"]
        for one, other in pairs
    )
    return "" if alike else "its notebook gives other numbers on the embedded data"


def _there(checkout: Path, program: str, *arguments: str):
    """What a program prints that runs with the package of a checkout."""
    there = {**os.environ, **running.ONE_THREAD, "PYTHONPATH": str(checkout.resolve())}
    done = subprocess.run([sys.executable, "-c", program, *arguments], cwd=checkout, env=there, capture_output=True, text=True)
    if done.returncode:
        raise ValueError(f"{checkout.name} cannot be asked: {done.stderr.strip().splitlines()[-1]}")
    return json.loads(done.stdout.splitlines()[-1])
