"""Generic service: for software that fits no other API."""

from __future__ import annotations

from typing import ClassVar

from engine.resource import Service
from schema import API


class GenericService(Service):
    """A service that has only its own commands (`do_command`)."""

    API: ClassVar[API] = API("rdk", "service", "generic")
