"""Obfuscation as a channel p(o|s) from secrets to observables.

Source: Shokri, *Privacy Games*, PETS 2015.

Functions take arrays only (but those of ``priors`` take traces), indexed by the secret first; lengths are in metres, epsilon in
1/m. This package re-exports nothing, so that importing one module loads no solver that it does not need.

Start with ``area``: a user's prior and distances, checked once, with the optimal channels and attacks of §9 as its methods.
``optimal`` has the channels (21) to (24) for any arrays, ``inference`` the attacks on a channel, ``guarantees`` what a channel
satisfies. ``programs`` computes optimal channels.
"""
