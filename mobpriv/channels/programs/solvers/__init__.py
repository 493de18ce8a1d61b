"""Solvers of one linear program: `interior` (with `points`, `blocks`), `highs`, `generation`; `minmax` for attacks."""
