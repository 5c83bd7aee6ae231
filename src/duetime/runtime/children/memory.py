"""How much memory this process holds."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def resident() -> int:
    """Return the resident set in bytes; where the system does not tell, the largest there has been."""
    try:
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    except OSError:
        return _peak()
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def _peak() -> int:
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
