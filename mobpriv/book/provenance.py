"""Where a result comes from: fingerprints, the commit, and the record that is kept beside every result.

A record is one JSON file ``{"provenance": {...}, "results": {...}}``. Its ``content_hash`` covers everything the result
depends on, so that an unchanged notebook is not run again; its ``code_hash`` only the code behind the numbers.
"""

import hashlib
import importlib.metadata
import json
import os
import shlex
import subprocess
from collections.abc import Iterable
from pathlib import Path

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
PACKAGES = ("numpy", "pandas", "scipy", "numba", "scikit-learn")


def fingerprint(parts: Iterable[str | bytes]) -> str:
    """SHA-256 of the parts in order; each is preceded by its length, so no two lists of parts share a fingerprint by joining."""
    digest = hashlib.sha256()
    for part in parts:
        part = part.encode() if isinstance(part, str) else part
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


def file_hash(path: Path) -> str:
    """SHA-256 of a file; of a folder: of its file names, sizes and times of change (reading gigabytes would cost a minute)."""
    if path.is_dir():
        files = sorted(f for f in path.rglob("*") if f.is_file())
        return fingerprint(f"{f.relative_to(path)} {f.stat().st_size} {f.stat().st_mtime_ns}" for f in files)
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def commit(root: Path) -> str:
    """The commit the project stands at, with "+ changes" where files differ from it; "unknown" outside a repository."""

    def git(*arguments):
        return subprocess.run(["git", "-C", root, *arguments], capture_output=True, text=True, check=True).stdout.strip()

    try:
        return git("rev-parse", "--short=12", "HEAD") + (
            " + changes" if git("status", "--porcelain", "--", "mobpriv", "notebooks") else ""
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def versions() -> dict[str, str]:
    return {name: importlib.metadata.version(name) for name in PACKAGES}


def without_path(parameters: dict) -> dict:
    """The parameters with a file name in place of a data set's path: where a file lies on somebody's machine is nobody's business."""
    if "dataset" not in parameters:
        return parameters
    return {**parameters, "dataset": Path(str(parameters["dataset"])).name or parameters["dataset"]}


def command(notebook: str, parameters: dict, defaults: dict) -> str:
    """The command line that repeats a run: what differs from the notebook's defaults."""
    words = ["mobpriv", "run", notebook]
    for name, value in without_path(parameters).items():
        if name == "dataset":
            words += ["--data", str(value)] if value != defaults.get(name) else []
        elif value != defaults.get(name):
            text = json.dumps(value) if isinstance(value, list | dict) else str(value)
            words += ["--quick"] if (name, value) == ("quick", True) else ["-p", f"{name}={text}"]
    return shlex.join(words)


def write_atomically(path: Path, text: str) -> None:
    """Write beside the path and move: a reader, or the next run after an interruption, never sees half a file."""
    write_all({path: text})


def write_all(files: dict[Path, str]) -> None:
    """Write several files, all or none: each beside its path first, moved when the last one is whole. OSError names the file."""
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
    """A result file that holds no record of a run."""


def read_record(path: Path) -> dict | None:
    """A result with its provenance; None where there is none. Raises :class:`BrokenRecord`, one line, for half a file or another's."""
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
