"""The YAML files of the book: a page asks them for the words of each of its rows, and a text is parsed once."""

from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # the compiled one is several times as fast, where there is one
    """Refuses a key that stands twice: YAML would take the last one and drop the other in silence."""

    def construct_mapping(self, node, deep=False):
        found = super().construct_mapping(node, deep)
        if len(found) < len(node.value):
            seen = set()
            for key, _ in node.value:
                if (name := self.construct_object(key, deep=True)) in seen:
                    raise ValueError(f"line {key.start_mark.line + 1}: {name!r} stands twice")
                seen.add(name)
        return found


def content(path: Path) -> Any:
    """What a file holds, None for an empty one. All who ask share it: it must not be changed. ValueError for a key that stands twice."""
    try:
        return _parsed(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path.name}: {error}") from None


@lru_cache(maxsize=256)
def _parsed(text: str) -> Any:
    return yaml.load(text, _Loader)
