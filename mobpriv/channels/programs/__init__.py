"""The linear programs behind optimal channels, in three concepts; `relaxations.solve(problem)` is the way in.

- A program with its certificate: `problem` is what is asked, `certificate` one program, its lower bound, what a channel is worth.
- Reductions: `reductions` says what can be left out exactly, `relaxations` takes in again what turns out to matter.
- `solvers` of one program: none of them is believed.

`written` has the programs as the paper writes them, which all of this is held against.
"""
