"""Hashes of what a result depends on: imported code, direct or indirect, data, results that it reads, packages.

Both hashes cover single definitions (:mod:`mobpriv.book.definitions`), not whole files. :func:`page_hash` covers everything that an
executed page shows; a page with the same hash is not run again. :func:`code_hash` covers only the code that computes the *numbers*:
no text, no comments, no drawing code. It ignores in which module a definition is, so it cannot tell apart two definitions of one name
that swap modules. A result on real data is stale if its code hash differs from today's.
"""

import ast
import json
import re
from collections.abc import Callable, Iterable
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import NamedTuple

import nbformat

from mobpriv.book import definitions
from mobpriv.book.provenance import fingerprint

PACKAGE_FOLDER = Path(__file__).parents[1]
_DRAWING_CODE = ("book", "base/numbers.py", "plot")  # code that shows numbers and does not compute them
_ONLY_SHOWN = {
    "check",
    "figure",
    "parameters",
    "quick",
}  # cells that compute no number; the values of parameters are hashed separately
_RESULT_READERS = ("compared", "published")  # of mobpriv.book: their first argument names a notebook


class Source(NamedTuple):
    normal: str  # the program without comments, layout and docstrings
    imports: frozenset[str]  # modules, also those inside functions
    reads: frozenset[str]  # notebooks whose published results or printed numbers it reads; "*" if the name is computed


def source(text: str) -> Source:
    """A Python program in normal form, with its imports and the notebooks that it reads."""
    tree = ast.parse(text)
    imports, reads = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imports |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imports.add(node.module or "")
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _RESULT_READERS:
            first = node.args[0] if node.args else None
            reads.add(first.value if isinstance(first, ast.Constant) else "*")
    return Source(definitions.normal(tree), frozenset(imports), frozenset(reads))


def reads(notebook: Path) -> set[str]:
    """The other notebooks whose results a notebook shows; "*": any."""
    cells = nbformat.read(notebook, as_version=4).cells
    return {name for cell in cells if cell.cell_type == "code" for name in source(cell.source).reads}


def page_hash(notebook: Path, parameters: dict, root: Path, others: Iterable[str] = ()) -> str:
    """The hash of what an executed page depends on; ``others``: fingerprints of its data and of other results that it shows."""
    cells = nbformat.read(notebook, as_version=4).cells
    parts = [json.dumps([(c.cell_type, c.source, c.metadata.get("tags", [])) for c in cells]), _as_text(parameters)]
    _, dependencies = _programs([cell.source for cell in cells if cell.cell_type == "code"], _nothing, root)
    return fingerprint([*parts, *dependencies, *others])


def code_hash(notebook: Path, parameters: dict, root: Path) -> str:
    """The hash of what a notebook's numbers depend on, except its data: computing cells, package code, other packages.

    ``parameters``: all parameters of the run; the name of the data set is ignored.
    """
    cells = [cell for cell in nbformat.read(notebook, as_version=4).cells if cell.cell_type == "code"]
    texts = [cell.source for cell in cells if not set(cell.metadata.get("tags", [])) & _ONLY_SHOWN]
    programs, dependencies = _programs(texts, _draws, root)
    parts = [_as_text({name: value for name, value in parameters.items() if name != "dataset"})]
    return fingerprint([*parts, *programs, *dependencies])


def _programs(texts: list[str], outside: Callable[[Path], bool], root: Path) -> tuple[list[str], list[str]]:
    """The programs of cells, and the code that they depend on.

    The latter are the definitions of the package that they use, except in files ``outside``, and the lines of requirements.lock
    for the packages that these files import.
    """
    files = [root / "requirements.lock", *PACKAGE_FOLDER.rglob("*.py")]
    return _programs_now(
        tuple(texts), outside, root, tuple((path, path.stat().st_mtime_ns) for path in files if path.is_file())
    )


@cache  # a notebook has the same programs in every run
def _programs_now(texts: tuple[str, ...], outside: Callable[[Path], bool], root: Path, files: tuple):
    programs = [source(text) for text in texts]
    used = definitions.used(texts, _file, outside)
    definition_lines = sorted(f"{name} {lines}" for (_, name), lines in used.items() if lines)
    return [program.normal for program in programs], definition_lines + _packages(programs, {path for path, _ in used}, root)


def _nothing(path: Path) -> bool:
    return False


@cache
def _draws(path: Path) -> bool:
    return any(path.is_relative_to(PACKAGE_FOLDER / place) for place in _DRAWING_CODE)


def _as_text(parameters: dict) -> str:
    return json.dumps(parameters, sort_keys=True)


def _file(module: str) -> Path | None:
    """The file of a module of the package; None for other modules."""
    first, *rest = module.split(".")
    place = PACKAGE_FOLDER.joinpath(*rest)
    candidates = (place / "__init__.py", place.with_suffix(".py")) if first == PACKAGE_FOLDER.name else ()
    return next((path for path in candidates if path.is_file()), None)


_distributions = cache(packages_distributions)  # takes some tenths of a second


def _packages(programs: Iterable[Source], files: Iterable[Path], root: Path) -> list[str]:
    """The lines of requirements.lock for the packages that the programs and files import."""
    lock = root / "requirements.lock"
    lines = lock.read_text(encoding="utf-8").splitlines() if lock.is_file() else []
    names = [(re.split(r"[=<>! ;\[]", line)[0].lower(), line) for line in lines if line and line[0].isalpha()]
    modules = {module for program in programs for module in program.imports}
    modules |= {module for path in files for module, _ in definitions.module_of(path).imports.values()}
    tops = {module.partition(".")[0] for module in modules}
    used = {name.lower().replace("_", "-") for top in tops for name in _distributions().get(top, [top])}
    return sorted(line for name, line in names if name in used)  # a package may have a line for each version of Python
