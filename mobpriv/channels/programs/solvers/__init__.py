"""Solvers of one linear program: `interior` (with `points`, `blocks`), `highs`, `generation`; `minmax` for the attacks (28), (29)."""
