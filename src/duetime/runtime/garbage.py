"""The garbage collector, for whose looks every job has to wait."""

from __future__ import annotations

import gc


def leave_out_code() -> None:
    """Let it look through everything once, and from then on only through what comes later.

    All that is loaded by then stays as long as the process, and to look through it again takes some 30 milliseconds.
    """
    gc.collect()
    gc.freeze()
