"""``python -m mobpriv`` is the command ``mobpriv``."""

from mobpriv.cli import app

if __name__ == "__main__":
    app()
