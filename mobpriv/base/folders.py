"""Where notebooks, results and embedded data are: in a checkout, or with the installed package."""

import sys
from pathlib import Path

_CHECKOUT = Path(__file__).parents[2]
PROJECT = _CHECKOUT if (_CHECKOUT / "notebooks").is_dir() else Path(sys.prefix) / "share" / "mobpriv"
