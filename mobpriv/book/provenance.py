"""Provenance of results: fingerprints, commit, and the record of every run.

A record is a JSON file ``{"provenance": {...}, "results": {...}}``. Its ``content_hash`` covers everything that the result
depends on; a notebook with the same hash is not run again. Its ``code_hash`` covers the code that computes the numbers.
"""

import hashlib
import importlib.metadata
import json
import os
import shlex
import subprocess
from collections.abc import Iterable
from pathlib import Path

from threadpoolctl import threadpool_info

RECORDED = (
    "notebook",
    "data",
    "selection",
    "parameters",
    "command",
    "mobpriv",
    "commit",
    "packages",
    "seconds",
    "content_hash",
)
_PACKAGES = ("numpy", "pandas", "scipy", "numba", "scikit-learn")


def fingerprint(parts: Iterable[str | bytes]) -> str:
    """SHA-256 of the parts in order, each preceded by its length, so that different lists have different fingerprints."""
    digest = hashlib.sha256()
    for part in parts:
        part = part.encode() if isinstance(part, str) else part
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


def file_hash(path: Path) -> str:
    """SHA-256 of a file; for a folder, of its file names, sizes and modification times (reading gigabytes takes a minute)."""
    if path.is_dir():
        files = sorted(f for f in path.rglob("*") if f.is_file())
        return fingerprint(f"{f.relative_to(path)} {f.stat().st_size} {f.stat().st_mtime_ns}" for f in files)
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def commit(root: Path, *folders: str) -> str:
    """The current commit, with "+ changes" if files in ``folders`` (default: code) differ from it; "unknown" outside a repository."""

    def git(*arguments):
        return subprocess.run(["git", "-C", root, *arguments], capture_output=True, text=True, check=True).stdout.strip()

    try:
        return git("rev-parse", "--short=12", "HEAD") + (
            " + changes" if git("status", "--porcelain", "--", *(folders or ("mobpriv", "notebooks"))) else ""
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def versions() -> dict[str, str]:
    """The versions of packages; of the linear algebra also the processor that its code is for, which decides on last digits."""
    linear_algebra = {
        library["internal_api"]: f"{library['version']} for {library['architecture']}"
        for library in threadpool_info()
        if "architecture" in library
    }
    return {name: importlib.metadata.version(name) for name in _PACKAGES} | linear_algebra


def without_path(parameters: dict) -> dict:
    """The parameters with the data set's path reduced to its file name, because paths are private."""
    if "dataset" not in parameters:
        return parameters
    return {**parameters, "dataset": Path(str(parameters["dataset"])).name or parameters["dataset"]}


def command(notebook: str, parameters: dict, defaults: dict) -> str:
    """The command that repeats a run; it names the parameters that differ from the notebook's defaults."""
    words = ["mobpriv", "run", notebook]
    for name, value in without_path(parameters).items():
        if name == "dataset":
            words += ["--data", str(value)] if value != defaults.get(name) else []
        elif value != defaults.get(name):
            text = json.dumps(value) if isinstance(value, list | dict) else str(value)
            words += ["--quick"] if (name, value) == ("quick", True) else ["-p", f"{name}={text}"]
    return shlex.join(words)


def write_atomically(path: Path, text: str) -> None:
    """Write to a temporary file and move it, so that nobody reads half a file."""
    write_all({path: text})


def write_all(files: dict[Path, str]) -> None:
    """Write several files, all or none: to temporary files first, moved when all are complete. OSError names the file."""
    parts = {path: path.with_name(f".{path.name}.{os.getpid()}.part") for path in files}
    writing = next(iter(files))
    try:
        for writing, part in parts.items():
            writing.parent.mkdir(parents=True, exist_ok=True)
            part.write_text(files[writing], encoding="utf-8")
        for writing, part in parts.items():
            part.replace(writing)
    except OSError as error:
        raise OSError(error.errno, f"not written, and nothing of it was kept ({error.strerror})", str(writing)) from None
    finally:
        for part in parts.values():
            part.unlink(missing_ok=True)


class BrokenRecord(ValueError):
    """A result file without a record of a run."""


def read_record(path: Path) -> dict | None:
    """A result with its provenance; None without a file. Raises :class:`BrokenRecord`, one line, for an incomplete or other file."""
    if not path.is_file():
        return None
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise BrokenRecord(f"{path} is broken ({error}): delete it and run its notebook again") from None
    missing = [key for key in RECORDED if not isinstance(record, dict) or key not in record.get("provenance", {})]
    if missing or "results" not in record:
        raise BrokenRecord(f"{path} is no record of a run (its provenance lacks {', '.join(missing)}): run its notebook again")
    return record
