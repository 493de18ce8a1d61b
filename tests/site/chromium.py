"""The browser of the tests: which it is, how it is started, and what it prints. CI must have one."""

import os
import re
import shutil

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update "
    "--disable-sync --js-flags=--single-threaded-gc"  # several threads that collect take time from the other workers
).split()
MISSING = None if CHROMIUM else "needs chromium (from the distribution's packages)"
if MISSING and os.environ.get("CI"):
    raise RuntimeError(f"in CI pages must be tested in a browser, and it {MISSING}")


def sheets(page) -> list[set[str]]:
    """The page, printed: of each sheet of paper the names of the links http://on/NAME on it."""
    document = page.pdf(format="A4").decode("latin-1")
    objects = dict(re.findall(r"^(\d+) 0 obj\n(.*?)^endobj", document, re.DOTALL | re.MULTILINE))
    annotated = [
        re.search(r"/Annots \[(.*?)\]", page_object) for page_object in objects.values() if "/Type /Page\n" in page_object
    ]
    links = [re.findall(r"(\d+) 0 R", annotations[1]) if annotations else [] for annotations in annotated]
    return [{name[1] for link in sheet if (name := re.search(r"/URI \(http://on/(.*?)\)", objects[link]))} for sheet in links]
