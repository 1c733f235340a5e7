"""Generic component: for hardware that fits no other API."""

from __future__ import annotations

from typing import ClassVar

from engine.resource import Component
from schema import API


class Generic(Component):
    """A component that has only its own commands (`do_command`)."""

    API: ClassVar[API] = API("rdk", "component", "generic")
