"""The HTTP side: an API to see and steer a scheduler, and who may do what. It needs the extra `web`."""

from __future__ import annotations

from duetime.model.stored.credentials import Role
from duetime.web.app import make_api
from duetime.web.users import Authenticate, User

__all__ = ["Authenticate", "Role", "User", "make_api"]
