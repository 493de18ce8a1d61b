"""The reference: every name that ``import mobpriv`` gives, with its parameters, from docstrings and the comments behind parameters."""

import inspect
import re
from importlib import import_module

_SECTIONS = {
    "datasets": "Read a table",
    "mechanisms": "Mechanisms",
    "attacks": "Attacks",
    "attacks.policies": "From an attack's distances to names",
    "metrics": "Utility metrics",
    "base.estimates": "Numbers with intervals",
}
_METHODS = ("protect", "fit", "rank")


def page() -> str:
    """The MyST of the reference, a section for each package."""
    parts = []
    for package, title in _SECTIONS.items():
        module = import_module(f"mobpriv.{package}")
        names = [name for name in import_module("mobpriv").__all__ if hasattr(module, name)] or [
            name for name, thing in vars(module).items() if _defined_in(module, name, thing)
        ]
        parts += [f"## {title}", _in_rst(inspect.getdoc(module)), *(_entry(name, getattr(module, name)) for name in names)]
    return "\n\n".join(parts) + "\n"


def _defined_in(module, name: str, thing) -> bool:
    return callable(thing) and not name.startswith("_") and getattr(thing, "__module__", "") == module.__name__


def _entry(name: str, thing) -> str:
    methods = [getattr(thing, method) for method in _METHODS if isinstance(thing, type) and hasattr(thing, method)]
    listed = "\n".join(f"- `{method.__name__}{_signature(method)}`" for method in methods)
    listed = f"Methods:\n\n{listed}" if listed else ""
    source = _source(inspect.getmodule(thing)) if name in import_module("mobpriv").__all__ else ""
    return "\n\n".join(filter(None, [f"### {name}", _in_rst(inspect.getdoc(thing)), _parameters(thing), listed, source]))


def _source(module) -> str:
    """The works that the docstring of a module names, and the module."""
    words = inspect.getdoc(module)
    works = [
        next(filter(None, found)) for found in re.findall(r"(?ms)^Source[^:\n]*: (.*?)\.?(?:\n\n|\Z)|\((thesis[^)]*)\)", words)
    ]
    return "".join([f"Source: {' '.join('; '.join(works).split())}. " * bool(works), f"Module: `{module.__name__}`."])


def _in_rst(docstring: str) -> str:
    """A docstring, which is reStructuredText; its cross-references are shown as code, and a bar is no substitution."""
    text = re.sub(r":\w+:`~?([^`]*)`", r"``\1``", docstring)
    text = re.sub(r"(?m)^(?! {4}|>>>).*", lambda line: re.sub(r"(``.*?``)|\|", lambda m: m[1] or "\\|", line[0]), text)
    return f"```{{eval-rst}}\n{text}\n```"


def _signature(function) -> str:
    """The parameters and their defaults, without types."""
    shown = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for name, parameter in inspect.signature(function).parameters.items()
        if name != "self"
    ]
    return str(inspect.Signature(shown))


def _parameters(thing) -> str:
    """A line per parameter: name, default, unit and meaning."""
    comments = dict(re.findall(r"(?m)^ {4}(\w+)(?::[^=#\n]*)?(?: ?=[^#\n]*)?,? +# (.*)$", inspect.getsource(thing)))
    lines = []
    for name, p in inspect.signature(thing).parameters.items():
        if not name.endswith("_"):
            default = "" if p.default is p.empty else f" = `{getattr(p.default, '__name__', None) or repr(p.default)}`"
            lines.append(f"- `{name}`{default}" + (f": {comments[name]}" if name in comments else ""))
    return "\n".join(["Parameters:", "", *lines]) if lines else ""
