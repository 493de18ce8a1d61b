"""Notebooks and their parameters.

Conventions of every notebook in ``notebooks/``:

* One cell is tagged ``parameters``: one parameter per line, annotated, with unit, meaning and range (:mod:`mobpriv.book.allowed`)::

      cell: float = 800.0  # m, side of a heat-map cell, > 0

  It contains ``dataset: str`` (a name or a file; the default is an embedded data set), ``seed: int`` and ``quick: bool = False``.
* One cell tagged ``quick`` shortens a quick run, one parameter per line: ``shifts = 2 if quick else shifts``. The record of a run
  thus has the values used.
* A cell tagged ``input`` reads the data with ``mobpriv.datasets.load(dataset)`` or a prepare function of :mod:`mobpriv.experiments`.
  Its errors are mistakes of the reader: one line without traceback.
* A cell that only draws or prints is tagged ``figure``. No later cell uses its names, so no number depends on it.
* A notebook ``<chapter>_lesson`` contains exercises. A cell tagged ``solution`` belongs to a solution and shows its code and output.
  A cell tagged ``check`` belongs to an exercise and tells a reader whether her number is right (:mod:`mobpriv.book.self_checks`).
* ``book.save({...}, data)`` passes on the numbers that the pages print and the claims test.
"""

import ast
from pathlib import Path
from typing import Any, NamedTuple

import nbformat
import numpy as np

from mobpriv.book import allowed
from mobpriv.book.results import ROOT

_PARAMETER_UNITS = {"m", "km", "s", "min", "h", "days", "1/m", "per POI", "per visit", "share", "users", "degrees", "records"}
_MISSING = object()


class Parameter(NamedTuple):
    name: str
    type: str  # as annotated: str, int, float, bool, list[…], dict[…]
    default: Any
    unit: str  # "" if it has none
    meaning: str
    allowed: str = ""  # range of its values, "" without limits


def find(notebook: str | Path, root: Path = ROOT) -> Path:
    """The file of a notebook, given by path or by short name in ``notebooks/``."""
    for path in (Path(notebook), root / "notebooks" / f"{notebook}.ipynb", root / "notebooks" / notebook):
        if path.suffix == ".ipynb" and path.is_file():
            return path
    names = sorted(p.stem for p in (root / "notebooks").glob("*.ipynb"))
    raise FileNotFoundError(f"there is no notebook {str(notebook)!r}; notebooks: {', '.join(names) or 'none'}")


def read_notebook(path: Path) -> nbformat.NotebookNode:
    """Read a notebook; one-line ValueError if the file is not one, or has no cell tagged ``parameters``."""
    try:
        notebook = nbformat.read(path, as_version=4)
        tags = [tag for cell in notebook.cells for tag in cell.metadata.get("tags", [])]
    except (ValueError, AttributeError, KeyError, nbformat.ValidationError) as error:
        raise ValueError(f"{path} is not a notebook ({str(error).partition(chr(10))[0][:100]})") from None
    if "parameters" not in tags:
        raise ValueError(f"{path} is not a notebook of this book: it has no cell tagged parameters")
    if not notebook.metadata.get("kernelspec", {}).get("name"):
        raise ValueError(f"{path} names no kernel: choose the kernel Python 3 in Jupyter and save it")
    return notebook


def title(notebook: str | Path, root: Path = ROOT) -> str:
    """The first heading of a notebook."""
    lines = read_notebook(find(notebook, root)).cells[0].source.splitlines()
    return next((line.removeprefix("# ") for line in lines if line.startswith("# ")), Path(notebook).stem)


def parameters(notebook: str | Path, root: Path = ROOT) -> dict[str, Parameter]:
    """The parameters of a notebook, read from its cell tagged ``parameters``."""
    import papermill  # imported here: a notebook that calls save() saves half a second

    path = find(notebook, root)
    read_notebook(path)
    parsed = {}
    for name, entry in papermill.inspect_notebook(str(path)).items():
        unit, _, meaning = entry["help"].partition(",")
        if unit.strip() not in _PARAMETER_UNITS:
            unit, meaning = "", entry["help"]
        try:
            default = ast.literal_eval(entry["default"])
        except (ValueError, SyntaxError):
            raise ValueError(f"{path.name}: the default of {name} must be a plain value (it is {entry['default']})") from None
        parsed[name] = Parameter(name, entry["inferred_type_name"], default, unit.strip(), *allowed.split(meaning))
    return parsed


def shortened(notebook: str | Path, root: Path = ROOT) -> dict[str, str]:
    """The changes of a quick run: parameter -> its value, as written in the cell tagged ``quick``."""
    cells = [cell for cell in read_notebook(find(notebook, root)).cells if "quick" in cell.metadata.get("tags", [])]
    lines = [line for cell in cells for line in ast.parse(cell.source).body]
    wrong = [ast.unparse(line) for line in lines if not _is_shortening(line)]
    if wrong:
        raise ValueError(
            f"{Path(notebook).stem}: a line of the cell tagged quick reads `name = short if quick else name` (got {wrong[0]})"
        )
    return {line.targets[0].id: ast.unparse(line.value.body) for line in lines}


def quick_values(notebook: str | Path, values: dict[str, Any], root: Path = ROOT) -> dict[str, Any]:
    """The values that a quick run gives to the parameters it shortens; ``values``: of all parameters."""
    return {name: eval(text, {}, dict(values)) for name, text in shortened(notebook, root).items()}


def _is_shortening(line: ast.stmt) -> bool:
    match line:
        case ast.Assign([ast.Name(name)], ast.IfExp(ast.Name("quick"), _, ast.Name(same))):
            return name == same
    return False


def checked_parameters(notebook: str | Path, given: dict[str, Any], root: Path = ROOT) -> dict[str, Any]:
    """``given`` as plain Python values of the types annotated in the notebook; text is converted.

    Raises a one-line ValueError for an unknown name, a value of another type, or a value outside the parameter's range.
    """
    known, plain = parameters(notebook, root), {}
    for name, value in given.items():
        if name not in known:
            listed = ", ".join(f"{p.name} ({p.type})" for p in known.values()) or "none"
            raise ValueError(f"{Path(notebook).stem} has no parameter {name!r}; its parameters: {listed}")
        kind = known[name].type
        plain[name] = as_type(value, kind)
        if plain[name] is _MISSING:
            raise ValueError(f"parameter {name} of {Path(notebook).stem} must be {kind} (got {value!r})")
        if not allowed.within(plain[name], known[name].allowed):
            raise ValueError(f"parameter {name} of {Path(notebook).stem} must be {in_words(known[name])} (got {value!r})")
    short = shortened(notebook, root) if plain.get("quick") else {}
    for name in short.keys() & plain.keys():
        if plain[name] != known[name].default:
            raise ValueError(f"a quick run makes {name} = {short[name]}: leave out --quick, or {name}")
    return plain


def in_words(parameter: Parameter) -> str:
    """The range of a parameter in words: "> 0 (m)"."""
    bounds, optional = parameter.allowed.removesuffix(" or none"), parameter.allowed.endswith(" or none")
    if parameter.type.startswith("list"):
        bounds = f"each {bounds}, or none" if optional else f"one or more, each {bounds}"
    elif optional:
        bounds = f"{bounds} or empty"
    return bounds + (f" ({parameter.unit})" if parameter.unit else "")


def as_type(value: Any, kind: str) -> Any:
    """``value`` as a plain Python value of the annotated type, or the marker ``_MISSING`` if impossible."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    base = kind.partition("[")[0]
    if base == "str":
        return str(value) if isinstance(value, str | Path) else _MISSING
    if isinstance(value, str):
        try:
            value = {"true": True, "false": False}.get(value.lower()) if base == "bool" else ast.literal_eval(value)
        except (ValueError, SyntaxError):
            return _MISSING
    if base == "float" and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if base == "list" and isinstance(value, list | tuple):
        inner = kind.partition("[")[2].removesuffix("]")
        value = [as_type(entry, inner) for entry in value] if inner else list(value)
        return _MISSING if any(entry is _MISSING for entry in value) else value
    types = {"int": int, "bool": bool, "dict": dict}
    fits = base in types and isinstance(value, types[base]) and (base == "bool" or not isinstance(value, bool))
    return value if fits else _MISSING
