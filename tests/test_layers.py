"""Imports point downwards only: a module knows those below it, never one beside or above it."""

import ast
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "mobpriv"
# from the ground up; modules of one row do not know each other
ROWS = [
    {"ranges"},
    {"geo"},
    {"traces", "grid", "draws", "channels"},
    {"profiles", "priors", "areas", "datasets"},
    {"mechanisms", "attacks", "metrics"},
    {"reidentification", "joint"},
    {"plot", "maps", "claims", "provenance"},
    {"book", "pages"},
    {"site", "webpage"},
    {"cli"},
]
LEVEL = {name: level for level, row in enumerate(ROWS) for name in row}


def imported(path: Path) -> set[str]:
    """The modules of the package that a file imports, also inside its functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} imports relatively"
            found |= {f"{node.module}.{alias.name}" for alias in node.names} if node.module == "mobpriv" else {node.module}
    return {name.split(".")[1] for name in found if name.startswith("mobpriv.")} - {"__version__"}


def modules() -> dict[str, list[Path]]:
    """Each module or sub-package with its files."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if name != "__init__":
            found.setdefault(name, []).append(path)
    return found


def test_every_module_has_its_row():
    assert sorted(set(modules()) - set(LEVEL)) == []


def test_imports_point_downwards():
    wrong = [
        f"{path.relative_to(PACKAGE)} imports {name}"
        for module, paths in modules().items()
        for path in paths
        for name in imported(path) - {module}
        if LEVEL.get(name, 99) >= LEVEL[module]
    ]
    assert wrong == []


def test_only_plot_draws_with_matplotlib():
    drawing = [
        name
        for name, paths in modules().items()
        if any(
            "matplotlib" in ast.unparse(node)
            for p in paths
            for node in ast.walk(ast.parse(p.read_text(encoding="utf-8")))
            if isinstance(node, ast.Import | ast.ImportFrom)
        )
    ]
    assert set(drawing) <= {"plot"}
