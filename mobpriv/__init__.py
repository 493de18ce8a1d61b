"""mobpriv: the experiments of five papers on mobility privacy, run again."""

__version__ = "0.1.0"
