"""pyproject.toml, requirements.lock and environment.yml name the same packages; the lock names no host."""

import ast
import re
import tomllib
from pathlib import Path

import yaml
from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent
MODULES = {"pillow": "PIL", "pyyaml": "yaml", "scikit-learn": "sklearn"}  # where package and module have two names
CONDA_NAMES = {  # the plain names on conda-forge bring a whole GUI, and a command line
    "matplotlib-base": "matplotlib",
    "python-duckdb": "duckdb",
}


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def wanted() -> dict[str, Requirement]:
    """Every package the project names, in its dependencies and in its extras; without itself."""
    extras = [line for extra in project()["optional-dependencies"].values() for line in extra]
    requirements = [Requirement(line) for line in [*project()["dependencies"], *extras]]
    return {requirement.name: requirement for requirement in requirements if requirement.name != "mobpriv"}


def locked() -> dict[str, list[Requirement]]:
    pins = {}
    for line in (ROOT / "requirements.lock").read_text().splitlines():
        if line and not line.startswith("#"):
            requirement = Requirement(line)
            pins.setdefault(requirement.name, []).append(requirement)
    return pins


def test_the_lock_pins_every_package_within_what_the_project_allows():
    pins = locked()
    for name, requirement in wanted().items():
        assert name in pins, f"{name} is not in requirements.lock: make lock"
        for pin in pins[name]:
            version = str(pin.specifier).removeprefix("==")
            assert requirement.specifier.contains(version), f"{name} {version} is locked, {requirement} is asked for"


def test_the_lock_pins_exactly_and_names_no_host():
    text = (ROOT / "requirements.lock").read_text()
    assert not re.search(r"://|^-|@ ", text, re.MULTILINE)
    assert all(re.fullmatch(r"==[\w.]+", str(pin.specifier)) for pins in locked().values() for pin in pins)


def test_the_package_imports_what_it_depends_on():
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in (ROOT / "mobpriv").rglob("*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    named = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    named += [node.module for node in nodes if isinstance(node, ast.ImportFrom)]
    imported = {name.split(".")[0] for name in named}
    depended = {Requirement(line).name for line in project()["dependencies"]}
    assert [name for name in depended if MODULES.get(name, name) not in imported] == []


def test_conda_users_get_the_same_packages():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    conda = [entry for entry in environment["dependencies"] if isinstance(entry, str)]
    pip = next(entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict))
    named = {}
    for line in [*conda, *pip]:
        requirement = Requirement(line)
        named[CONDA_NAMES.get(requirement.name, requirement.name)] = requirement
    assert str(named.pop("python").specifier) == str(Requirement(f"python{project()['requires-python']}").specifier)
    named.pop("pip")
    assert sorted(named) == sorted(wanted())
    for name, requirement in wanted().items():
        assert str(named[name].specifier) == str(requirement.specifier), name


def test_the_same_pythons_everywhere():
    named = [line.removeprefix("Programming Language :: Python :: ") for line in project()["classifiers"] if ":: 3." in line]
    allowed = Requirement(f"python{project()['requires-python']}").specifier
    minors = [int(version.partition(".")[2]) for version in named]
    assert [n for n in range(50) if allowed.contains(f"3.{n}.1")] == minors
    makefile = (ROOT / "Makefile").read_text()
    assert f"(3, {minors[0]}) <= sys.version_info[:2] <= (3, {minors[-1]})" in makefile
    assert " ".join(f"python{version}" for version in reversed(named)) in makefile
    assert makefile.count(f"{', '.join(named[:-1])} or {named[-1]}") == 2  # at the top, and where none is found
    assert f"Python {named[0]} to {named[-1]}" in (ROOT / "README.md").read_text()


def test_names_stand_in_order():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    names = [entry.split()[0] for entry in environment["dependencies"] if isinstance(entry, str)]
    assert names[1:] == sorted(names[1:])


def test_the_same_licence_and_version_everywhere():
    import mobpriv

    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == mobpriv.__version__
    assert citation["license"] == project()["license"] == "BSD-3-Clause"


def test_the_readmes_pictures_are_there_and_small():
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", (ROOT / "README.md").read_text())
    assert pictures
    for picture in pictures:
        assert 0 < (ROOT / picture).stat().st_size < 300_000
