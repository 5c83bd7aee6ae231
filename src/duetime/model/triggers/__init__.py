"""Triggers: the pure rules that say when something is due."""

from __future__ import annotations

from duetime.model.triggers.at import At, at
from duetime.model.triggers.base import Trigger
from duetime.model.triggers.cron import Cron, cron
from duetime.model.triggers.every import Every, every
from duetime.model.triggers.notes import note
from duetime.model.triggers.specs import from_spec

__all__ = ["At", "Cron", "Every", "Trigger", "at", "cron", "every", "from_spec", "note"]
