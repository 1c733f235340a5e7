"""Generic component: whatever fits no other API."""

from __future__ import annotations

from typing import ClassVar

from runtime.resource import Component
from schema.names import API


class Generic(Component):
    """Has its own commands (`do_command`) and nothing else."""

    API: ClassVar[API] = API("rdk", "component", "generic")
