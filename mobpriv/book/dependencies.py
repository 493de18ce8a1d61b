"""What a result depends on: the code it imports, however far down, its own data, the results it reads, its packages.

Two hashes say so. :func:`page_hash` covers all that an executed page shows, whole files; a run with the same one need not be run
again. :func:`code_hash` covers the code behind the *numbers* alone, down to the single definition (:mod:`mobpriv.book.definitions`): no prose, no comments, nothing
that only draws, no neighbour in the same file. A result on real data whose code hash is no longer today's is stale.
"""

import ast
import json
import re
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import NamedTuple

import nbformat

from mobpriv.book import definitions
from mobpriv.book.provenance import fingerprint

PACKAGE = Path(__file__).parents[1]
DRAWS = ("book", "maps.py", "numbers.py", "palette.py", "plot")  # what shows numbers does not make them
ONLY_SHOWN = {"figure", "parameters", "quick"}  # cells that make no number; of the parameters the values count
READERS = ("compared", "published")  # of mobpriv.book: their first argument names a notebook


class Source(NamedTuple):
    normal: str  # the program without comments, layout and docstrings
    imports: tuple[tuple[str, str], ...]  # module and name ("" for the module as a whole), also those inside functions
    handed_on: dict[str, tuple[str, str]]  # names that the file imports at its top
    reads: frozenset[
        str
    ]  # notebooks whose published results or printed numbers it reads; "*" where it names none in so many words


def source(text: str) -> Source:
    """What a Python program says and needs."""
    tree = ast.parse(text)
    imports, reads = [], set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imports += [(alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            imports += [(node.module or "", alias.name) for alias in node.names]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in READERS:
            first = node.args[0] if node.args else None
            reads.add(first.value if isinstance(first, ast.Constant) else "*")
    top = [(node.module or "", alias) for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    handed_on = {alias.asname or alias.name: (module, alias.name) for module, alias in top}
    return Source(definitions.normal(tree), tuple(imports), handed_on, frozenset(reads))


def _source_of(path: Path) -> Source:
    return _read(path, path.stat().st_mtime_ns)


@cache
def _read(path: Path, changed: int) -> Source:
    return source(path.read_text(encoding="utf-8"))


def code_cells(notebook: Path) -> list[tuple[Source, set[str]]]:
    """A notebook's code cells with their tags."""
    cells = nbformat.read(notebook, as_version=4).cells
    return [(source(cell.source), set(cell.metadata.get("tags", []))) for cell in cells if cell.cell_type == "code"]


def reads(notebook: Path) -> set[str]:
    """The notebooks whose results a notebook shows beside its own; "*": any."""
    return {name for cell, _ in code_cells(notebook) for name in cell.reads}


def page_hash(notebook: Path, parameters: dict, root: Path, others: Iterable[str] = ()) -> str:
    """What the executed page depends on; ``others``: fingerprints of its data and of the results that it shows beside its own."""
    cells = nbformat.read(notebook, as_version=4).cells
    programs = [cell for cell, _ in code_cells(notebook)]
    files = closure(programs)
    parts = [json.dumps([(c.cell_type, c.source, c.metadata.get("tags", [])) for c in cells]), _as_text(parameters)]
    parts += _sources(files) + _packages(programs, files, root)
    return fingerprint([*parts, *others])


def code_hash(notebook: Path, parameters: dict, root: Path) -> str:
    """What the notebook's numbers depend on beside its data: its computing cells, the package below them, the packages they use.

    ``parameters``: those of the run, all of them; the name of the data set does not count.
    """
    cells = [cell for cell in nbformat.read(notebook, as_version=4).cells if cell.cell_type == "code"]
    texts = [cell.source for cell in cells if not set(cell.metadata.get("tags", [])) & ONLY_SHOWN]
    programs = [source(text) for text in texts]
    found = definitions.used(texts, lambda name: next(iter(_file(name)), None), _draws)
    files = {path for path, _ in found}
    said = [f"{path.relative_to(PACKAGE).as_posix()} {name} {lines}" for (path, name), lines in found.items()]
    parts = [_as_text({name: value for name, value in parameters.items() if name != "dataset"})]
    return fingerprint([*parts, *(cell.normal for cell in programs), *said, *_packages(programs, files, root)])


def _draws(path: Path) -> bool:
    return path.relative_to(PACKAGE).parts[0] in DRAWS


def _as_text(parameters: dict) -> str:
    return json.dumps(parameters, sort_keys=True)


def _sources(files: Iterable[Path]) -> list[str]:
    return [f"{path.relative_to(PACKAGE).as_posix()} {_source_of(path).normal}" for path in sorted(files)]


def closure(programs: Iterable[Source]) -> set[Path]:
    """The files of the package that programs import, directly or through one another.

    A name that a package's ``__init__`` only hands on leads to the module that defines it, not to all its neighbours.
    """
    found, waiting = set(), [path for program in programs for path in _imported(program)]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting += _imported(_source_of(path))
    return found


def _imported(program: Source) -> Iterator[Path]:
    for module, name in program.imports:
        yield from _defining(module, name)


def _defining(module: str, name: str) -> list[Path]:
    """The file that ``from module import name`` leads to; none outside the package."""
    if not name:
        return _file(module)
    inner, outer = _file(f"{module}.{name}"), _file(module)
    if inner or not outer:
        return inner
    if outer[0].name == "__init__.py" and name in _source_of(outer[0]).handed_on:
        return _defining(*_source_of(outer[0]).handed_on[name])
    return outer


def _file(module: str) -> list[Path]:
    first, *rest = module.split(".")
    place = PACKAGE.joinpath(*rest)
    candidates = (place / "__init__.py", place.with_suffix(".py")) if first == PACKAGE.name else ()
    return [path for path in candidates if path.is_file()]


_distributions = cache(packages_distributions)  # some tenths of a second


def _packages(programs: Iterable[Source], files: Iterable[Path], root: Path) -> list[str]:
    """The lines of requirements.lock for the packages that the programs and files import."""
    lock = root / "requirements.lock"
    lines = lock.read_text(encoding="utf-8").splitlines() if lock.is_file() else []
    names = [(re.split(r"[=<>! ;\[]", line)[0].lower(), line) for line in lines if line and line[0].isalpha()]
    every = [*programs, *(_source_of(path) for path in files)]
    tops = {module.partition(".")[0] for program in every for module, _ in program.imports}
    used = {name.lower().replace("_", "-") for top in tops for name in _distributions().get(top, [top])}
    return sorted(line for name, line in names if name in used)  # one package may have a line for each version of Python
