"""The YAML files of the book: a page asks them for the words of each of its rows, and a text is parsed once."""

from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the compiled one is several times as fast, where there is one


def content(path: Path) -> Any:
    """What a file holds, None for an empty one. All who ask share it: it must not be changed."""
    return _parsed(path.read_text(encoding="utf-8"))


@lru_cache(maxsize=256)
def _parsed(text: str) -> Any:
    return yaml.load(text, _LOADER)
