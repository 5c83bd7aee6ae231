"""`python -m duetime.demo`, on the port in the variable PORT."""

from __future__ import annotations

import os
import sys

from duetime.demo import DEFAULT_PORT, run

if __name__ == "__main__":
    sys.exit(run(os.environ.get("PORT") or DEFAULT_PORT))
