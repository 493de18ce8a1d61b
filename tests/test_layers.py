"""The picture of the package in ``book/package.md`` is true: a module imports only what stands in rows below its own."""

import ast
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import mobpriv
from mobpriv import attacks, mechanisms

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "mobpriv"


def module(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def modules_in(package: str) -> set[str]:
    """The modules and sub-packages of a package."""
    folder = ROOT / package.replace(".", "/")
    files = {path.stem for path in folder.glob("*.py")} - {"__init__", "__main__"}
    return files | {path.parent.name for path in folder.glob("*/__init__.py")}


def picture() -> dict[str, dict[str, int]]:
    """Package -> module -> row, counted from the ground up."""
    text = re.search(r"```text\n(mobpriv\n.*?)```", (ROOT / "book" / "package.md").read_text(encoding="utf-8"), re.DOTALL)[1]
    drawn = {}
    for block in text.strip().split("\n\n"):
        package, *rows = block.splitlines()
        drawn[package] = {name: level for level, row in enumerate(reversed(rows)) for name in row.split()}
        if "*" in drawn[package]:
            drawn[package] = dict.fromkeys(modules_in(package), drawn[package].pop("*")) | drawn[package]
            continue
        assert len(drawn[package]) == sum(len(row.split()) for row in rows), f"{package}: a module stands twice"
    return drawn


PICTURE = picture()


def imported(path: Path) -> set[str]:
    """The modules of the package that a file imports, also inside its functions."""
    modules = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} imports relatively"
            # "from a.b import c": c is a module of the package a.b, or a name in the module a.b
            folder = (ROOT / node.module.replace(".", "/")).is_dir()
            modules |= {f"{node.module}.{alias.name}" if folder else node.module for alias in node.names}
    return {name for name in modules if name.startswith("mobpriv.") and name != "mobpriv.__version__"}


@pytest.mark.parametrize("package", PICTURE)
def test_the_picture_shows_every_module(package):
    assert set(PICTURE[package]) ^ modules_in(package) == set(), (
        f"the picture of {package} in book/package.md lacks a module or has one too many"
    )


def test_every_package_with_more_than_a_face_is_drawn():
    packages = {module(path) for path in PACKAGE.rglob("__init__.py")}
    assert packages == set(PICTURE)


@pytest.mark.parametrize("package", PICTURE)
def test_imports_point_downwards(package):
    """Within each package, at its own level; a package's face (``__init__``) may know all of its rooms, none of them knows it."""
    level, wrong = PICTURE[package], []
    for path in sorted((ROOT / package.replace(".", "/")).rglob("*.py")):
        subpackage = module(path).removeprefix(package).lstrip(".").partition(".")[0]
        if subpackage in ("", "__main__"):
            continue
        for name in imported(path):
            other = name.removeprefix(package + ".").partition(".")[0] if name.startswith(package + ".") else ""
            if other in level and other != subpackage and level[other] >= level[subpackage]:
                wrong.append(f"{module(path)} imports {name}")
            if name.startswith(package + ".") and other not in level:
                wrong.append(f"{module(path)} imports {name} from the face of its own package")
    assert wrong == []


def test_only_plot_draws_with_matplotlib():
    drawing = {
        module(path)
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Import | ast.ImportFrom) and "matplotlib" in ast.unparse(node)
    }
    assert {name.rpartition(".")[0] for name in drawing} <= {"mobpriv.plot"}


def test_mechanisms_and_attacks_load_no_solver_and_nothing_that_draws():
    """In a process of its own: other tests have loaded it all."""
    script = """
import sys, llvmlite.binding, mobpriv.attacks, mobpriv.traces.areas
from mobpriv.mechanisms import GeoI
wanted = ("highspy", "matplotlib", "geopandas", "mobpriv.channels.programs")
print([name for name in sys.modules if name.startswith(wanted)], llvmlite.binding.address_of_symbol("mobpriv_dpotrf"))
"""
    completed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert completed.stdout == "[] None\n"


def test_the_face_of_the_package_names_what_others_define_and_loads_nothing():
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    shown = {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert shown - {"import_module", "TYPE_CHECKING"} == set(mobpriv.__all__)
    assert {*mechanisms.__all__, *attacks.__all__} - {*mobpriv.__all__} == set(), (
        "both lists of mobpriv/__init__.py need the class"
    )
    assert set(mobpriv.__all__).isdisjoint(modules_in("mobpriv"))
    assert mobpriv.GeoI is mechanisms.GeoI
    with pytest.raises(AttributeError, match="module 'mobpriv' has no attribute 'GeoJ'"):
        mobpriv.GeoJ  # noqa: B018
    script = "import sys, mobpriv; print([name for name in sys.modules if name.startswith(('mobpriv.', 'numpy', 'numba'))])"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "[]\n"


def defined(tree: ast.Module) -> set[str]:
    """The functions and constants of a module; classes are types that others hold."""
    names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    targets = [target for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign) for target in ast.walk(node)]
    return names | {t.id for t in targets if isinstance(t, ast.Name) and isinstance(t.ctx, ast.Store)}


def test_what_only_its_own_module_uses_begins_with_an_underscore():
    used = {path: set(re.findall(r"\w+", path.read_text(encoding="utf-8"))) for path in PACKAGE.rglob("*.py")}
    outside = [
        *ROOT.glob("tests/**/*.py"),
        *ROOT.glob("notebooks/*.ipynb"),
        *ROOT.glob("b*/*.py"),
        *ROOT.glob("book/_ext/*.py"),
    ]
    elsewhere = {word for path in outside for word in re.findall(r"\w+", path.read_text(encoding="utf-8"))}
    times = Counter(word for words in used.values() for word in words)
    for path in sorted(used):
        if path.name not in ("__init__.py", "cli.py"):  # the command line's functions are commands
            names = {name for name in defined(ast.parse(path.read_text(encoding="utf-8"))) if not name.startswith("_")}
            assert not {name for name in names if times[name] == 1 and name not in elsewhere}, path.relative_to(ROOT)
