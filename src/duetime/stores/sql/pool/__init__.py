"""What databases on a network have in common: connections that are pooled, get lost and collide."""

from __future__ import annotations
