"""Obfuscation as a channel p(o|s) from secrets to observables (Shokri, *Privacy Games*, PETS 2015).

Arrays only, indexed by the secret first; metres and 1/m. ``inference`` attacks a channel, ``distances`` makes the metrics,
``rivals`` holds mechanisms that need no optimisation, ``checks`` what every function asks of its arguments.
"""
