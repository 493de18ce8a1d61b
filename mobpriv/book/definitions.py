"""The definitions of the package that a program uses, directly or indirectly: functions, classes and constants.

Modules are parsed, not run. A definition depends on every name of its module that it mentions, and on the definitions of imported names.
A module passed as an object counts as a whole, as does a module whose names cannot be found.
"""

import ast
import sys
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

_PACKAGE = __name__.partition(".")[0]
Place = tuple[Path, str]  # a file and a name at its top level; "" is the whole file


class Statement(NamedTuple):
    """A statement at the top level of a module."""

    normal: str  # without comments, layout and docstrings
    names: frozenset[str]  # mentioned without an attribute
    attributes: frozenset[tuple[str, str]]  # name.attribute


class Module(NamedTuple):
    statements: tuple[Statement, ...]
    defines: dict[str, tuple[int, ...]]  # name -> the statements that bind it
    imports: dict[str, tuple[str, str]]  # name -> module and name in it ("" for the module as a whole)
    always: tuple[int, ...]  # statements that bind no name and may have any effect


def module(text: str) -> Module:
    """The top-level definitions of a Python program, and the names that each mentions."""
    tree = ast.parse(text)
    statements, defines, always, imports = [], {}, [], {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imports |= {alias.asname or alias.name.partition(".")[0]: (alias.name, "") for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imports |= {alias.asname or alias.name: (node.module or "", alias.name) for alias in node.names}
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom) or (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        ):
            continue
        bound = _bound(node)
        for name in bound:
            defines.setdefault(name, []).append(len(statements))
        if not bound:
            always.append(len(statements))
        statements.append(_statement(node))
    return Module(tuple(statements), {name: tuple(at) for name, at in defines.items()}, imports, tuple(always))


def _bound(node: ast.stmt) -> set[str]:
    """The top-level names that a statement binds: its own, or all that it assigns outside functions and classes."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {node.name}
    inside = list(ast.walk(node))
    inner = [child for child in inside if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)]
    stored = {child.id for child in inside if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store)}
    return stored | {child.name for child in inner}


def normal(tree: ast.AST) -> str:
    """A program without comments, layout, docstrings and imports of the package, equal for every Python version.

    A definition that is imported counts by its name and text, and not by the module where it is. Modifies the tree.
    """
    for node in ast.walk(tree):
        if isinstance(getattr(node, "body", None), list):
            node.body = [line for line in node.body if not _is_no_code(line)]
    # as Python 3.11 writes it: otherwise hashes would differ between versions and every result would be stale
    shown = {"show_empty": True} if sys.version_info >= (3, 13) else {}
    return ast.dump(tree, **shown).replace(", type_params=[]", "")


def _is_no_code(line: ast.stmt) -> bool:
    if isinstance(line, ast.ImportFrom):
        return (line.module or "").partition(".")[0] == _PACKAGE
    return isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant)


def _statement(node: ast.stmt) -> Statement:
    inside = list(ast.walk(node))
    attributes = [child for child in inside if isinstance(child, ast.Attribute) and isinstance(child.value, ast.Name)]
    owners = {id(child.value) for child in attributes}
    names = {child.id for child in inside if isinstance(child, ast.Name) and id(child) not in owners}
    return Statement(normal(node), frozenset(names), frozenset((child.value.id, child.attr) for child in attributes))


def used(
    programs: Iterable[str], file: Callable[[str], Path | None], outside: Callable[[Path], bool]
) -> dict[Place, list[str]]:
    """All definitions that programs use, each with its statements, in the order of files and names.

    ``programs``: the cells of a notebook, which share their imports.
    ``file``: gives the file of a module of the package, None for other modules.
    ``outside``: whether a file is not followed.
    """
    cells = [module(text) for text in programs]
    imports = {name: origin for cell in cells for name, origin in cell.imports.items()}
    waiting = [place for cell in cells for s in cell.statements for place in _mentioned(s, {}, imports, file)]
    used_statements: dict[Place, list[str]] = {}
    while waiting:
        path, name = waiting.pop()
        if (path, name) in used_statements or outside(path):
            continue
        parsed = module_of(path)
        if name and name not in parsed.defines:
            target = _target(*parsed.imports[name], file) if name in parsed.imports else (path, "")
            used_statements[path, name] = []
            waiting += [target] if target else []
            continue
        chosen = range(len(parsed.statements)) if not name else (*parsed.defines[name], *parsed.always)
        used_statements[path, name] = [parsed.statements[i].normal for i in chosen]
        for i in chosen:
            waiting += _leads_to(path, path.stat().st_mtime_ns, i, file)
        if not name and path.name == "__init__.py":  # a whole package includes the names that it re-exports
            waiting += [place for origin in parsed.imports.values() if (place := _target(*origin, file))]
    return dict(sorted(used_statements.items()))


@cache
def _leads_to(path: Path, changed: int, at: int, file: Callable[[str], Path | None]) -> list[Place]:
    """The places that a statement of a module mentions; cached, because every notebook needs them."""
    parsed = _read(path, changed)
    places = _mentioned(parsed.statements[at], parsed.defines, parsed.imports, file)
    return [(path, place) if isinstance(place, str) else place for place in places]


def _mentioned(statement: Statement, defines: dict, imports: dict, file) -> list:
    """The places that a statement mentions; a name of its own module stays a name."""
    places = []
    for name, attribute in [*((name, "") for name in statement.names), *statement.attributes]:
        if name in defines:
            places.append(name)
        elif name in imports:
            target = _target(*imports[name], file)
            if target and attribute and not target[1]:  # an attribute of a module
                inner = _in_module(target[0], attribute, file)
                target = inner or target
            places += [target] if target else []
    return places


def _target(module: str, name: str, file) -> Place | None:
    """The place that ``from module import name`` refers to; "" is the name of a whole module."""
    if not name:
        path = file(module)
        return (path, "") if path else None
    inner, outer = file(f"{module}.{name}"), file(module)
    if inner:
        return inner, ""
    return _in_module(outer, name, file) if outer else None


def _in_module(path: Path, name: str, file) -> Place:
    """The place of a name of a module; if the module only re-exports it, the place of its definition."""
    parsed = module_of(path)
    if name in parsed.defines or name not in parsed.imports:
        return path, name
    return _target(*parsed.imports[name], file) or (path, name)


def module_of(path: Path) -> Module:
    """The definitions in a file; each file is read once."""
    return _read(path, path.stat().st_mtime_ns)


@cache
def _read(path: Path, changed: int) -> Module:
    return module(path.read_text(encoding="utf-8"))
