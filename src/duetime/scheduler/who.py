"""Who asks: the name that is kept with what somebody did."""

from __future__ import annotations

import getpass
import os
import socket

from duetime.errors import InvalidOption
from duetime.model.names import check_text
from duetime.model.shown import shown

MAX_WHO = 200


def who(by: str | None) -> str:
    """Return the name that was given, else the user and the host of this process."""
    if by is None:
        return f"{_user()}@{socket.gethostname()}"[:MAX_WHO]
    if not isinstance(by, str) or not 0 < len(by) <= MAX_WHO:
        text = f"by must say who asks, in 1 to {MAX_WHO} characters, not {shown(by)}"
        raise InvalidOption(text)
    return check_text(by, what="by")


def this_code() -> str:
    """Return the name for what the code of this process declares."""
    return f"code {socket.gethostname()}:{os.getpid()}"


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        # In a container the user often has a number and no name.
        return f"user-{os.getuid()}"
