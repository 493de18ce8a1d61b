"""Obfuscation as a channel p(o|s) from secrets to observables.

Source: Shokri, *Privacy Games*, PETS 2015.

Functions take arrays only (but those of ``priors`` take traces), indexed by the secret first; lengths are in metres, epsilon in 1/m. This package re-exports nothing,
so that importing one module loads no solver that it does not need. The modules, from the ground up:

| module | content |
|---|---|
| ``checks`` | the conditions on arrays, and the largest problem allowed |
| ``priors`` | the prior of a user over the cells of an area, from her traces |
| ``distances`` | metrics on secrets, and sparse graphs that span them |
| ``programs.problem`` | the complete problem, checked |
| ``programs.certificate`` | a linear program, a bound of its value by weak duality, the certificate of a channel |
| ``programs.reductions`` | what can be left out of it, exactly |
| ``programs.relaxations`` | the complete problem by a sequence of small programs, with one of the solvers |
| ``programs.solvers`` | ``interior`` (``points``, ``blocks``): an interior-point method made for (21), (22), (24); ``highs``: slower, for all of them and the worst case (12); ``generation``: (21) by generating columns and rows; ``minmax``: (28), (29) |
| ``programs.written`` | the programs as the paper writes them, for few cells: the reference for the rest |
| ``inference`` | attacks on a channel |
| ``guarantees`` | which guarantee a channel satisfies, pair by pair: violation, effective epsilon; the certificate of an optimum |
| ``rivals`` | mechanisms that need no optimisation |
| ``games`` | the game behind (21): does the user or the adversary gain by deviating? |
| ``optimal`` | the optimal channels (21) to (24), with their certificates |
| ``area`` | a user's prior and distances, checked once; the optimal channels and attacks of §9 as its methods |
| ``nearby`` | the approximation of Appendix C |
"""
