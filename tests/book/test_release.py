"""A release: only from a clean tree and its own book; a certificate that says what ran, what came out, and which verdicts follow."""

import json
import subprocess
import tarfile
import zipfile

import pytest
from conftest import refuses
from notebook_making import RUNS, publish

from mobpriv.book import build, provenance, release

CLAIMS = """
paper: p
claims:
  - {id: A1.1, place: "§2, Figure 1", claim: "The attack | succeeds.", notebook: p_one, quantity: rate, printed: {cabspotting: 0.45}, tolerance: 0.01, why: other cabs, datasets: [cabspotting]}
  - {id: A1.2, place: §3, claim: It seldom fails., notebook: p_one, relation: "rate > 0.4", datasets: [cabspotting]}
"""
QUANTITIES = "quantities: {p_one: {rate: [share, the rate]}}"
RECORD = {
    "notebook": "p_one",
    "data": {"name": "cabs", "sha256": "ab" * 32, "synthetic": False},
    "selection": "",
    "parameters": {},
    "command": "mobpriv run p_one --data cabs.parquet",
    "mobpriv": "0.1.0",
    "commit": "0123456789ab",
    "packages": {"numpy": "2.4.6"},
    "seconds": 61.0,
    "content_hash": "",
}


def git(root, *arguments):
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    return subprocess.run(["git", "-C", root, *identity, *arguments], check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def project(tmp_path):
    """A project with a result on real data, committed, and its built book."""
    publish(tmp_path, RUNS, CLAIMS, QUANTITIES, {})
    (tmp_path / "book" / "errata").mkdir()
    (folder := tmp_path / "book" / "results" / "cabspotting").mkdir()
    (folder / "p_one.json").write_text(
        json.dumps({"provenance": RECORD, "results": {"rate": {"value": 0.452, "low": 0.41, "high": 0.49, "n": 500}}})
    )
    (tmp_path / ".gitignore").write_text("_build/\ndist/\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-q", "-m", "All")
    (tmp_path / "_build").mkdir()
    (tmp_path / build.BUILT).write_text(provenance.commit(tmp_path, "."))
    return tmp_path


def test_a_release_is_of_a_clean_tree_and_of_its_own_book(project):
    commit = release.checked_commit(project)
    assert git(project, "rev-parse", "HEAD").startswith(commit)
    (project / "new").touch()
    refuses(
        f"^a release needs a clean tree, and files differ from commit {commit}: git status, then commit$",
        release.checked_commit,
        project,
    )
    git(project, "add", "-A")
    git(project, "commit", "-q", "-m", "More")
    refuses(
        f"^the book is stale, it was built from {commit} and the tree is at .*: make book$", release.checked_commit, project
    )
    (project / build.BUILT).write_text("a quick run")
    refuses("^the book is stale, it was built from a quick run", release.checked_commit, project)


def test_without_a_repository_there_is_no_release(tmp_path):
    refuses("^a release is made from a git repository", release.checked_commit, tmp_path)


def test_a_certificate_says_what_ran_what_came_out_and_what_follows(project):
    book, commit = build.evaluation(project), release.checked_commit(project)
    text = release.certificate("p", book, project, commit, release.dates(project))
    result = project / "book" / "results" / "cabspotting" / "p_one.json"
    today = git(project, "show", "-s", "--format=%cs")
    assert text.startswith("# Certificate of reproduction: P 2020, a paper\n")
    assert f"commit {commit} |" in text
    assert "| claims of the paper | 2 agree |" in text
    assert f"Data (real): cabs (SHA-256 {'ab' * 32})." in text
    assert "Versions: numpy 2.4.6." in text
    assert f"| `mobpriv run p_one --data cabs.parquet` | {today} | 0123456789ab | 61 s |" in text
    assert f"`{provenance.file_hash(result)}`" in text
    assert "| A1.1 | §2, Figure 1 | The attack \\| succeeds. | holds (Cabspotting) |" in text
    assert "| date and signature |  |" in text


def test_the_packages_are_made_from_the_commit(project):
    (project / "pyproject.toml").write_text(
        '[project]\nname = "small"\nversion = "1"\n[tool.setuptools]\npy-modules = ["small"]\n[build-system]\nrequires = []\nbuild-backend = "setuptools.build_meta"\n'
    )
    (project / "small.py").write_text("")
    git(project, "add", "-A")
    git(project, "commit", "-q", "-m", "A package")
    (project / "small.py").write_text("changed")
    (folder := project / "dist").mkdir()
    release.packages(project, folder)
    assert sorted(file.name for file in folder.iterdir()) == ["small-1-py3-none-any.whl", "small-1.tar.gz"]
    with zipfile.ZipFile(folder / "small-1-py3-none-any.whl") as wheel, tarfile.open(folder / "small-1.tar.gz") as source:
        assert wheel.read("small.py") == source.extractfile("small-1/small.py").read() == b""
    assert not (project / "build").exists()
