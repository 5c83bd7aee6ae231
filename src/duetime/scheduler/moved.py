"""Whether the work of a store goes on elsewhere, so that nothing may begin there."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from duetime.errors import StoreMoved

if TYPE_CHECKING:
    from duetime.stores.base import Store

log = logging.getLogger("duetime.store")


def check_not_moved(store: Store) -> None:
    """Raise `StoreMoved` rather than run what runs elsewhere, or store what nobody would run."""
    if store.moved is not None:
        raise StoreMoved(store.moved)


def warn_if_moved(store: Store) -> None:
    """Tell those who open it, who may have come only to read."""
    if store.moved is not None:
        log.warning("%s", StoreMoved(store.moved))
