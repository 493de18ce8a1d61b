"""The browser of the tests: which it is, and how it is started. CI must have one."""

import os
import shutil

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update "
    "--disable-sync"
).split()
MISSING = None if CHROMIUM else "needs chromium (from the distribution's packages)"
if MISSING and os.environ.get("CI"):
    raise RuntimeError(f"in CI pages must be tested in a browser, and it {MISSING}")
