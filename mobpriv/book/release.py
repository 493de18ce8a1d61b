"""A release in ``dist/``: wheel, source archive, the book as zip and PDF, a certificate for each paper, the hashes of all.

A certificate says what ran, on which data, with which code and versions, what came out and which verdicts follow, as a
CODECHECK does; a person signs it. All of it is read from the records of the runs.
"""

import io
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from mobpriv import __version__
from mobpriv.base.numbers import counted, shown
from mobpriv.book import ledger, pdf, provenance, sums, verdicts
from mobpriv.book.build import BUILT, Evaluation, evaluation
from mobpriv.book.results import ROOT

_TO_DO = """A person still has to:
- before the last "make release": write version and date in place of "Unreleased" in CHANGELOG.md, and date-released in CITATION.cff;
- repeat a part of what each certificate names, on another computer, and sign it;
- tag the commit: git tag -s v{version} {commit} && git push origin v{version}
- upload the wheel and the source archive to a package index;
- deposit book, PDF, certificates and SHA256SUMS in an archive that gives a DOI, and write the DOI into CITATION.cff;
- with a public address: write it into pyproject.toml and CITATION.cff, and offer the book on Binder (.binder/);
- raise __version__ in mobpriv/__init__.py."""


def checked_commit(root: Path) -> str:
    """The commit to release. ValueError, one line, with changes that are not committed or the book of another commit."""
    commit = provenance.commit(root, ".")
    if commit == "unknown":
        raise ValueError("a release is made from a git repository, which this folder is not: git clone it")
    if commit.endswith("changes"):
        raise ValueError(
            f"a release needs a clean tree, and files differ from commit {commit.split()[0]}: git status, then commit"
        )
    built = (root / BUILT).read_text(encoding="utf-8") if (root / BUILT).is_file() else "no commit"
    if built != commit:
        raise ValueError(f"the book is stale, it was built from {built} and the tree is at {commit}: make book")
    return commit


def write(commit: str, book: Evaluation, root: Path = ROOT) -> list[Path]:
    """Write the release of a commit into the folder ``dist`` of its project; returns the files. A failure keeps the old ``dist``."""
    with tempfile.TemporaryDirectory(prefix=".dist-", dir=root) as made:
        folder = Path(made) / "dist"
        folder.mkdir()
        packages(root, folder)
        name = f"mobpriv-book-{__version__}"
        shutil.make_archive(str(folder / name), "zip", root / "_build" / "html")
        pdf.write(folder / f"{name}.pdf", root)
        days = dates(root)
        for paper in book.registry.papers:
            text = certificate(paper, book, root, commit, days)
            (folder / f"certificate_{paper}.md").write_text(text, encoding="utf-8")
        files = sorted(folder.iterdir())
        hashes = "".join(f"{provenance.file_hash(file)}  {file.name}\n" for file in files)
        (folder / "SHA256SUMS").write_text(hashes, encoding="utf-8")
        shutil.rmtree(root / "dist", ignore_errors=True)
        folder.replace(root / "dist")
    return sorted((root / "dist").iterdir())


def packages(root: Path, folder: Path) -> None:
    """Build the source archive and the wheel from what the commit holds."""
    build = "import sys; from setuptools import build_meta as b; to = sys.argv[1]; b.build_sdist(to); b.build_wheel(to)"
    tracked = subprocess.run(["git", "-C", root, "archive", "HEAD"], capture_output=True, check=True).stdout
    with tempfile.TemporaryDirectory() as source:
        with tarfile.open(fileobj=io.BytesIO(tracked)) as archive:
            archive.extractall(source, filter="data")
        subprocess.run([sys.executable, "-c", build, folder.resolve()], cwd=source, capture_output=True, check=True)


def dates(root: Path) -> dict[str, str]:
    """File of a result on real data -> day on which it was last committed."""
    command = ["git", "-C", root, "log", "--format=on %cs", "--name-only", "--", "book/results"]
    dates, day = {}, ""
    for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines():
        if line.startswith("on "):
            day = line[3:]
        elif line:
            dates.setdefault(line, day)
    return dates


# ------------------------------------------------------------------------------------------------------------- certificates
def certificate(paper: str, book: Evaluation, root: Path, commit: str, days: dict[str, str]) -> str:
    """The certificate of a paper, in Markdown; ``days``: of :func:`dates`."""
    on_paper = [verdict for verdict in book.verdicts if verdict.claim.paper == paper]
    runs = {
        run: {name: r for name, r in records.items() if name.startswith(f"{paper}_")} for run, records in book.records.items()
    }
    parts = [
        f"# Certificate of reproduction: {book.registry.paper(paper).title}",
        _table(
            ("", ""),
            [
                ("program", f"mobpriv {__version__}, commit {commit}"),
                ("certificate written", f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, by the program"),
                ("claims of the paper", sums.in_words(sums.counts(on_paper)).partition(": ")[2]),
                ("checked by (name, affiliation)", ""),
                ("what was repeated, on which computer", ""),
                ("date and signature", ""),
            ],
        ),
        "The program writes this certificate from the records of its runs. It is valid when a person has repeated a part of it "
        "and signed it. Verdicts are computed from the results; nobody writes them by hand.",
        "## What ran",
        *(_ran(run, records, book, root, days) for run, records in runs.items() if records),
        "## Verdicts",
        _table(
            ("claim", "in the paper", "statement", "verdicts"), [_verdict(cells, book) for cells in ledger.by_claim(on_paper)]
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _ran(run: str, records: dict[str, dict], book: Evaluation, root: Path, days: dict[str, str]) -> str:
    """The runs of a paper's notebooks on one data set."""
    data = {name: record["provenance"]["data"] for name, record in records.items()}
    used = sorted({f"{d['name']} (SHA-256 {d['sha256']})" for d in data.values() if d})
    packages = sorted({", ".join(f"{p} {v}" for p, v in r["provenance"]["packages"].items()) for r in records.values()})
    folder, rows = book.registry.runs[run].folder(root), []
    for name, record in records.items():
        origin, file = record["provenance"], folder / f"{name}.json"
        day = days.get(file.relative_to(root).as_posix()) or f"{datetime.fromtimestamp(file.stat().st_mtime, UTC):%Y-%m-%d}"
        state = "older than the code" if (run, name) in book.stale else "as the code"
        rows.append(
            (
                f"`{origin['command']}`",
                day,
                origin["commit"],
                shown(origin["seconds"], "s"),
                state,
                f"`{provenance.file_hash(file)}`",
            )
        )
    kind = (
        "synthetic" if book.registry.runs[run].synthetic else "made up in part" if book.registry.runs[run].made_up else "real"
    )
    return "\n\n".join(
        [
            f"### {book.registry.title(run)}",
            f"Data ({kind}): {'; '.join(used) or 'none'}.",
            f"Versions: {'; '.join(packages)}.",
            _table(("command", "date of the record", "commit of the code", "time", "result", "SHA-256 of the result"), rows),
        ]
    )


def _verdict(cells: Sequence[verdicts.Verdict], book: Evaluation) -> tuple[str, ...]:
    claim, by_wording = cells[0].claim, {}
    for dataset, of in ledger.grouped_by(lambda verdict: verdict.dataset, cells).items():
        worst = ledger.worst_verdict(of)
        words = verdicts.wording(worst, book.registry) or "no number in the paper"
        by_wording.setdefault(words, []).append(verdicts.data_set_title(book.registry, dataset))
    found = "; ".join(f"{words} ({', '.join(names)})" for words, names in by_wording.items())
    return claim.id, claim.place, claim.claim.strip(), found


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in line) + " |" for line in lines)


def main() -> int:
    try:
        commit = checked_commit(ROOT)
        book = evaluation(ROOT)
        files = write(commit, book)
    except (ValueError, OSError) as error:
        print(f"make release: {error}", file=sys.stderr)
        return 2
    for file in files:
        print(f"{file.relative_to(ROOT)}  {file.stat().st_size / 1000:,.0f} kB")
    if book.stale:
        print(f"{counted(len(book.stale), 'result')} on real data older than the code: the certificates say which")
    print(_TO_DO.format(version=__version__, commit=commit))
    return 0


if __name__ == "__main__":
    sys.exit(main())
