"""``python -m mobpriv.datasets.city FOLDER``: generate the embedded city."""

import sys

from mobpriv.datasets.city import make_city, write_city

if len(sys.argv) != 2:
    sys.exit("usage: python -m mobpriv.datasets.city FOLDER")
for file in write_city(sys.argv[1], make_city()):
    print(f"{file}: {file.stat().st_size:,} bytes")
