"""Whole experiments on a data set, from the file on disk to the rate: ``python benchmarks/whole.py FILE [name=value …]``.

Each runs in a process of its own, as a reader would start it; the time includes Python's start, imports and reading.
Values are those of mobpriv.experiments.days.choose, for instance leave_out=NAME.
"""

import os
import subprocess
import sys
import time

AP = """
from mobpriv.attacks.policies import reidentified
from mobpriv.experiments.thesis_3 import attacks, prepare
s = prepare({file!r}, **{given!r})
print(reidentified(attacks()[0].fit(s.known).rank(s.secret), s.users).mean())
"""
FIGURE_3_4 = """
import numpy as np
from mobpriv.attacks.policies import reidentified
from mobpriv.experiments.thesis_3 import attacks, mechanisms, prepare
s = prepare({file!r}, **{given!r})
fitted = [attack.fit(s.known) for attack in attacks()]
for name, mechanism in mechanisms().items():
    protected = mechanism.protect(s.secret, np.random.default_rng(1))
    print(name, *(reidentified(attack.rank(protected), s.users).mean() for attack in fitted))
"""
HMC = """
import time
import numpy as np
from mobpriv.experiments import thesis_3, thesis_4
s = thesis_3.prepare({file!r}, **{given!r})
start = time.perf_counter()
hmc = thesis_4.hmc(s)
alteration = hmc.alter(s.secret)
rebuilt = hmc.rebuild(s.secret, alteration, np.random.default_rng(1))
print(f"{{time.perf_counter() - start:.1f}} s after reading;", alteration.users["outcome"].value_counts().to_dict())
"""
HYBRID = """
import time
from mobpriv.experiments import thesis_6
s = thesis_6.prepare({file!r}, active=50, **{given!r})
start = time.perf_counter()
found = thesis_6.trial(s)
safe = thesis_6.of_chosen(thesis_6.fully_protected(found.hits), found.mechanism)
print(f"{{time.perf_counter() - start:.1f}} s after reading; {{safe.mean():.3f}} of {{len(safe)}} days protected")
"""


def measure(program: str) -> tuple[float, float, str]:
    """Seconds, peak memory in GB and what the program printed."""
    start = time.perf_counter()
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    printed = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    if status:
        raise SystemExit(f"the program failed:\n{program}")
    return time.perf_counter() - start, usage.ru_maxrss / 1024**2, printed.strip()


if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    file, given = sys.argv[1], dict(pair.split("=", 1) for pair in sys.argv[2:])
    print("| experiment | seconds | memory (GB) | result |\n|---|---:|---:|---|")
    programs = {
        "AP-Attack, unprotected": AP,
        "Figure 3.4: 4 mechanisms × 3 attacks": FIGURE_3_4,
        "HMC of all users": HMC,
        "Hybrid-LPPM, days of the 50 most active: 4 mechanisms × 3 attacks": HYBRID,
    }
    for name, program in programs.items():
        seconds, memory, printed = measure(program.format(file=file, given=given))
        print(f"| {name} | {seconds:.1f} | {memory:.2f} | {printed.replace(chr(10), '; ')} |", flush=True)
