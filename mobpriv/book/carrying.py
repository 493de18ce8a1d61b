"""Carry over results on real data to code that was only rearranged, without running it again.

A run of an hour need not be repeated because a function was split in two. As evidence that nothing else changed, the notebook of a result must
give the same numbers on the embedded data before and after, to the last digit. This is not a proof: code that only real data reach
is not tested. So the record keeps the commit of the run and the commit of the carrying over, pages show both, and ``make real``
computes the result again.
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
    kept_stale: dict[tuple[str, str], str]  # -> reason


def carry(before: Path, root: Path = ROOT) -> Carried:
    """Carry over the stale results of ``root`` whose embedded results equal those of ``before``.

    ``before`` is a checkout of the earlier commit, ``root`` one of today's; both have no uncommitted changes and a built book.
    A result that was stale in ``before``, or differs from the result there, stays stale. For a run of another variant than the
    embedded one, quick runs of that variant in both checkouts are compared.
    """
    if provenance.commit(root).endswith("changes"):
        raise ValueError(f"{root.name} has changes that are not committed: commit them, build the book, then carry over")
    registry, records = runs.read(root), build.all_records(root)
    stale_before = {tuple(pair) for pair in _run_in(before, _STALE)}
    carried = Carried([], {})
    for run, name in sorted(build.stale_results(records, root)):
        result = (run, name)
        reason = "it was stale before" if result in stale_before else _differs(registry, run, name, before, root)
        if reason:
            carried.kept_stale[result] = reason
            continue
        record = records[run][name]
        record["provenance"] |= {
            "code_hash": build.code_hash(registry.runs[run], name, root),
            "carried": provenance.commit(root),
        }
        path = root / "book" / "results" / run / f"{name}.json"
        provenance.write_atomically(path, json.dumps(record, indent=1, ensure_ascii=False) + "\n")
        carried.results.append(result)
    return carried


def _differs(registry: runs.Registry, run: str, name: str, before: Path, root: Path) -> str:
    """The reason why a result cannot be carried over; "" if it can."""
    file = Path("book", "results", run, f"{name}.json")
    if not (before / file).is_file() or (before / file).read_bytes() != (root / file).read_bytes():
        return "it differs from the result before"
    embedded = [Path("book", "_generated", "results", embedded_run, f"{name}.json") for embedded_run in registry.embedded]
    pairs = [(provenance.read_record(before / path), provenance.read_record(root / path)) for path in embedded]
    pairs = [pair for pair in pairs if any(pair)]
    if pairs and all(map(all, pairs)) and (other := _other_parameters(registry.runs[run], name, pairs[0][1], root)):
        return f"its run had other parameters than today's: {', '.join(other)}"
    variant = build.given_to(registry.runs[run], name, root).get("variant")
    if variant is not None and variant != notebooks.parameters(name, root)["variant"].default:
        given = json.dumps([name, {"variant": variant, "quick": True}])
        same = _numbers(_run_in(before, _QUICK, given)) == _numbers(_run_in(root, _QUICK, given))
        return "" if same else f"a quick run of the variant {variant!r} gives other numbers on the embedded data"
    if not pairs or not all(map(all, pairs)):
        return "its notebook has no embedded results in both: make book there"
    equal = all(
        _numbers(one["results"]) == _numbers(other["results"])
        and one["provenance"]["parameters"] == other["provenance"]["parameters"]
        for one, other in pairs
    )
    return "" if equal else "its notebook gives other numbers on the embedded data"


def _other_parameters(run: runs.Run, name: str, embedded: dict, root: Path) -> list[str]:
    """The parameters that a result on real data was not made with: a run gives a renamed one to nobody, without a word.

    A notebook may save a parameter as it used it (sizes up to that of the data), on the embedded data, too. These are not compared.
    """
    defaults = {p.name: p.default for p in notebooks.parameters(name, root).values()}
    as_given = {key for key, value in defaults.items() if embedded["provenance"]["parameters"].get(key) == value}
    recorded = provenance.read_record(run.folder(root) / f"{name}.json")["provenance"]["parameters"]
    today = {**defaults, **build.given_to(run, name, root)}
    return [f"{key} = {today[key]!r}" for key in sorted(as_given - {"dataset"}) if recorded.get(key) != today[key]]


def _numbers(results: dict) -> dict:
    """The results without the words that say what their intervals are."""
    return {
        name: {key: part for key, part in value.items() if key != "interval"} if isinstance(value, dict) else value
        for name, value in results.items()
    }


def _run_in(checkout: Path, program: str, *arguments: str):
    """Run a program with the package of a checkout and return what it prints as JSON."""
    variables = {**os.environ, **running.ONE_THREAD, "PYTHONPATH": str(checkout.resolve())}
    completed = subprocess.run(
        [sys.executable, "-c", program, *arguments], cwd=checkout, env=variables, capture_output=True, text=True
    )
    if completed.returncode:
        raise ValueError(f"{checkout.name} cannot run the comparison: {completed.stderr.strip().splitlines()[-1]}")
    return json.loads(completed.stdout.splitlines()[-1])
