"""Obfuscation as a channel p(o|s) from secrets to observables (Shokri, *Privacy Games*, PETS 2015).

Arrays only, indexed by the secret first; metres and 1/m. ``inference`` attacks a channel, ``distances`` makes the metrics,
``rivals`` holds mechanisms that need no optimisation, ``optimal`` the optimal ones with their certificates, made smaller by
``reductions`` and solved by ``interior``, ``generation`` or ``highs``; ``checks`` is what every function asks of its arguments.
"""

from mobpriv.channels.optimal import Optimum, differential, distortion, joint, within

__all__ = ["Optimum", "differential", "distortion", "joint", "within"]
