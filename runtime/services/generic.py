"""Generic service: whatever fits no other API."""

from __future__ import annotations

from typing import ClassVar

from runtime.resource import Service
from schema.names import API


class GenericService(Service):
    """Has its own commands (`do_command`) and nothing else."""

    API: ClassVar[API] = API("rdk", "service", "generic")
