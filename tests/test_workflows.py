"""The files for the forge, for editors and for Binder: they parse, run commands that exist, and have the project's Pythons."""

import json
import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent
WORKFLOWS = {path.name: yaml.safe_load(path.read_text("utf-8")) for path in (ROOT / ".github" / "workflows").glob("*.yml")}
JOBS = {f"{file}: {name}": job for file, workflow in WORKFLOWS.items() for name, job in workflow["jobs"].items()}
FORMS = [path for path in sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")) if path.stem != "config"]
HOOKS = [
    hook for repo in yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))["repos"] for hook in repo["hooks"]
]
CONTAINER = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text("utf-8"))
TARGETS = set(re.findall(r"(?m)^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8")))


def allowed():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return Requirement(f"python{project['requires-python']}").specifier


def commands(job: dict) -> list[str]:
    return [step["run"] for step in job["steps"] if "run" in step]


def test_there_is_a_job_for_each_part_and_a_form_for_each_report():
    assert {name.partition(": ")[2] for name in JOBS} == {"lint", "test", "book", "wheel"}
    assert {yaml.safe_load(form.read_text("utf-8"))["name"] for form in FORMS} == {
        "A number looks wrong",
        "My data are not read",
    }


def test_every_make_target_that_is_named_exists():
    named = [command for job in JOBS.values() for command in commands(job)]
    named += [hook["entry"] for hook in HOOKS] + [CONTAINER["postCreateCommand"]]
    targets = [target for command in named for target in re.findall(r"\bmake ([a-z-]+)", command)]
    assert {"lint", "test", "book", "site-test", "pdf", "environment"} <= set(targets)
    assert set(targets) <= TARGETS
    paths = [path for command in named for path in re.findall(r"ARGS=(\S+)", command)]
    assert all((ROOT / path).exists() for path in paths)


def test_the_tests_run_on_every_python_that_the_project_allows():
    tested = JOBS["checks.yml: test"]["strategy"]["matrix"]["python"]
    assert tested == [f"3.{n}" for n in range(50) if allowed().contains(f"3.{n}.1")]
    assert "${{ matrix.python }}" in JOBS["checks.yml: test"]["container"]
    others = [job["container"] for name, job in JOBS.items() if "matrix" not in str(job)] + [CONTAINER["image"]]
    others.append((ROOT / ".binder" / "runtime.txt").read_text("utf-8"))
    assert all(allowed().contains(re.search(r"python[:-](3\.\d+)", words)[1] + ".1") for words in others)


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_workflow_may_only_read_and_pins_its_actions(name):
    workflow = WORKFLOWS[name]
    assert workflow["permissions"] == {"contents": "read"}
    assert not any("permissions" in job for job in workflow["jobs"].values())
    used = [step["uses"] for job in workflow["jobs"].values() for step in job["steps"] if "uses" in step]
    assert used
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", action) for action in used)
    assert all("timeout-minutes" in job for job in workflow["jobs"].values())


def test_hooks_download_nothing():
    assert {hook["language"] for hook in HOOKS} == {"system"}
    repos = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))["repos"]
    assert {repo["repo"] for repo in repos} == {"local"}


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.stem)
def test_a_form_asks_for_the_version_and_has_each_question_once(form):
    content = yaml.safe_load(form.read_text("utf-8"))
    assert {"name", "description", "body"} <= set(content)
    fields = [field for field in content["body"] if field["type"] != "markdown"]
    assert {field["type"] for field in fields} <= {"input", "textarea", "dropdown", "checkboxes"}
    assert len({field["id"] for field in fields}) == len(fields)
    assert all(field["attributes"]["label"] for field in fields)
    (version,) = (field for field in fields if field["id"] == "version")
    assert version["validations"]["required"]


def test_binder_installs_the_pinned_packages_and_the_project():
    lines = (ROOT / ".binder" / "requirements.txt").read_text("utf-8").split("\n")
    assert lines == ["-r ../requirements.lock", "-e .", ""]


def test_only_one_place_states_the_version():
    import mobpriv

    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert "version" in project["project"]["dynamic"]
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "mobpriv.__version__"}
    assert re.search(rf"(?m)^## \[(Unreleased|{re.escape(mobpriv.__version__)})\]", (ROOT / "CHANGELOG.md").read_text("utf-8"))
