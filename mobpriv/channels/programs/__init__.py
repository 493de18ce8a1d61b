"""The linear programs behind optimal channels: their reductions, the solvers, the bounds that prove an optimum.

`relaxations.solve(problem)` is the way in; what each module is stands in the table of :mod:`mobpriv.channels`.
"""
