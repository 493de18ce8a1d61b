"""Obfuscation as a channel p(o|s) from secrets to observables (Shokri, *Privacy Games*, PETS 2015).

Arrays only, indexed by the secret first; metres and 1/m. This package hands nothing on: who imports one module loads no solver
that it does not need. From the ground up:

| module | what it is |
|---|---|
| ``checks`` | what every function asks of its arrays, and how large a problem may be |
| ``distances`` | metrics on secrets, and sparse graphs that span them |
| ``programs.problem`` | the whole problem as it is asked, checked |
| ``programs.certificate`` | a linear program, a bound of its value by weak duality, the certificate of a channel |
| ``programs.reductions`` | what can be left out of it, exactly |
| ``programs.relaxations`` | the whole problem by a row of small programs, with one of the solvers |
| ``programs.solvers`` | ``interior`` (``points``, ``blocks``): an interior-point method made for (21), (22), (24); ``highs``: slower, for all of them and the worst case (12); ``generation``: (21) by generating columns and rows; ``minmax``: (28), (29) |
| ``programs.written`` | the programs as the paper writes them, for few cells: what the rest is held against |
| ``inference`` | attacks on a channel |
| ``guarantees`` | what a channel keeps, pair by pair: violation, effective epsilon; the certificate of an optimum |
| ``rivals`` | mechanisms that need no optimisation |
| ``optimal`` | the optimal channels (21) to (24), with their certificates |
| ``nearby`` | the approximation of Appendix C |
"""
