"""The version of this code, for the package as well: reading it back from there takes a megabyte of every worker."""

from __future__ import annotations

from typing import Final

VERSION: Final = "0.1.0"
