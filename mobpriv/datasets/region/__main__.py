"""``python -m mobpriv.datasets.region FOLDER``: generate the embedded region."""

import sys

from mobpriv.datasets.region import write_region

if len(sys.argv) != 2:
    sys.exit("usage: python -m mobpriv.datasets.region FOLDER")
for file in write_region(sys.argv[1]):
    print(f"{file}: {file.stat().st_size:,} bytes")
