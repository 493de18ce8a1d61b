"""A mechanism from its name in text: one of this package, or a class in a stranger's file or module."""

import ast
import importlib.util
import re
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

_PLACE = re.compile(r"(?P<place>.+?\.py|\w[\w.]*):(?P<name>[A-Za-z_]\w*)(?P<rest>\(.*\))?", re.DOTALL)


def keywords(rest: str, rule: str, text: str) -> dict:
    """The keyword arguments, numbers and words, of the call ``rest``, such as "(alpha=100)"; "" has none.

    ValueError with the ``rule`` and the whole ``text`` for anything else.

    >>> keywords("(alpha=100, plane='ground')", "", "")
    {'alpha': 100, 'plane': 'ground'}
    """
    try:
        call = ast.parse(f"f{rest or '()'}", mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or "#" in text:
            raise ValueError
        given = {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords}
        if len(given) < len(call.keywords):
            raise ValueError
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        raise ValueError(f"{rule} (got {text!r})") from None
    if call.args:
        raise ValueError(f"{rule} (got {ast.unparse(call.args[0])} in {text!r})")
    return given


def names_a_class(text: str) -> bool:
    """Whether the text has the form of a class in a file or module, and is no file itself.

    >>> names_a_class("mine.py:Mine(alpha=100)"), names_a_class("my.package:Mine"), names_a_class("protected.csv")
    (True, True, False)
    """
    return bool(_PLACE.fullmatch(text)) and not Path(text).exists()


def from_class(text: str):
    """The mechanism that ``text`` names, as in "my_module:MyMechanism" or "path/to/file.py:MyMechanism(alpha=100)".

    It runs the code of the file or module. ValueError if the class cannot be found or made.
    """
    place, name, rest = _PLACE.fullmatch(text).group("place", "name", "rest")
    given = keywords(rest or "", f"{name} takes numbers and words, written as {name}(name=value)", text)
    module = _imported(place)
    kind = getattr(module, name, None)
    if not isinstance(kind, type):
        classes = ", ".join(key for key, value in vars(module).items() if isinstance(value, type) and hasattr(value, "protect"))
        raise ValueError(f"{place} must define the class {name} (its classes with protect: {classes or 'none'})")
    if not callable(getattr(kind, "protect", None)):
        raise ValueError(f"{name} must have a method protect(traces, rng), which returns the protected traces")
    try:
        return kind(**given)
    except Exception as error:  # a stranger's code may raise anything
        raise ValueError(f"{text} cannot be made ({_in_words(error)}): give its parameters as {name}(name=value)") from error


def _imported(place: str) -> ModuleType:
    """The module of a name, searched in the current folder first, or of a file, which finds the modules of its folder."""
    file = Path(place)
    if is_file := place.endswith(".py"):
        if not file.is_file():
            raise FileNotFoundError(f"there is no file {place} with a mechanism")
        sys.path.insert(0, str(file.resolve().parent))
    else:
        sys.path.insert(0, str(Path.cwd()))
    writes_nothing = sys.dont_write_bytecode
    sys.dont_write_bytecode = True  # else Python leaves a __pycache__ beside the stranger's file
    try:
        if not is_file:
            return import_module(place)
        spec = importlib.util.spec_from_file_location(file.stem, file)
        # where dataclasses look for it
        module = sys.modules[file.stem] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    except (Exception, SystemExit) as error:
        raise ValueError(f"{place} must be importable ({_in_words(error)})") from error
    finally:
        sys.dont_write_bytecode = writes_nothing
        sys.path.pop(0)


def _in_words(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
