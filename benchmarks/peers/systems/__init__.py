"""One file per system; they run inside its own environment and import nothing of ours but `base`."""

from __future__ import annotations
