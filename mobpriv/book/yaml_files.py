"""Read the YAML files of the book; each text is parsed once, because pages look up labels for every row."""

from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # the compiled loader, if installed, is several times faster
    """Reject a duplicate key; YAML would silently keep only the last one."""

    def construct_mapping(self, node, deep=False):
        mapping = super().construct_mapping(node, deep)
        if len(mapping) < len(node.value):
            seen = set()
            for key, _ in node.value:
                if (name := self.construct_object(key, deep=True)) in seen:
                    raise ValueError(f"line {key.start_mark.line + 1}: {name!r} occurs twice")
                seen.add(name)
        return mapping


def content(path: Path) -> Any:
    """The content of a file, None if empty; shared by all callers, so do not modify it. ValueError for a duplicate key."""
    try:
        return _parsed(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path.name}: {error}") from None


@lru_cache(maxsize=256)
def _parsed(text: str) -> Any:
    return yaml.load(text, _Loader)
