"""What every kernel of a build needs, imported and read once, in the process from which :mod:`mobpriv.book.warm_kernels` forks.

No threads may run in this process, because a fork does not copy them, and nothing may be drawn: a kernel sets up its own drawing.
"""

import gc
from importlib import import_module

from numba.core.registry import cpu_target

from mobpriv.book.warm_kernels import read_texts

for _name in (
    "ipykernel.kernelapp",
    "ipykernel.ipkernel",
    "ipykernel.zmqshell",
    "mobpriv.attacks.ill",
    "mobpriv.channels.optimal",
    "mobpriv.channels.rivals",
    "mobpriv.datasets",
    "mobpriv.experiments.dchi",
    "mobpriv.experiments.joint",
    "mobpriv.experiments.primule_sociometer",
    "mobpriv.experiments.pulp",
    "mobpriv.experiments.thesis_6",
    "mobpriv.plot.maps",
    "sklearn.cluster",
    "sklearn.ensemble",
):
    import_module(_name)

cpu_target.typing_context.refresh()  # numba's tables of types and functions, a fifth of a second
cpu_target.target_context.refresh()
read_texts()
gc.freeze()  # nothing of this is ever garbage: a kernel that looked for some here would copy all of it
