"""The linear programs that compute optimal channels; `relaxations.solve(problem)` is the entry point.

- A program with its certificate: `problem` is the problem as posed, `certificate` one program with its bound.
- Reductions: `reductions` says what can be left out exactly, `relaxations` adds again what turns out to matter.
- `solvers` of one program: no result is used without a check.

`written` has the programs as the paper writes them, the reference for all of this.
"""
