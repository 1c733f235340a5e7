"""The base class of components, and the errors that they share."""

from micro.wire.faults import INVALID, NOT_FOUND, CallFailure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from micro.engine.attributes import Attributes
    from micro.hosts.port import Port

    Request = dict[str, Any]
    Reply = dict[str, Any]

READY = 3
UNCONFIGURED = 1
UNHEALTHY = 5
"""States of the published API."""


class Resource:
    """A component. Its methods have the names of its calls, take the fields of the request, return those of the reply.

    A method may be a coroutine. The constructor raises Unfit, or a CallFailure of the hardware: the component is then
    unhealthy. `deps` are the resources that `requires` has named, by those names.
    """

    def __init__(self, name: str, port: "Port", attributes: "Attributes", deps: "dict[str, Resource]") -> None:
        self.name = name
        self.port = port

    @staticmethod
    def requires(attributes: "Attributes") -> "list[str]":
        """Return the names of the components that this one uses."""
        return []

    def halt(self) -> None:
        """Stop what moves, at once."""

    def close(self) -> None:
        """Stop, and release pins."""
        self.halt()


def not_found(kind: str, name: str, among: "Any") -> CallFailure:
    """Return the error for a name that a request contains."""
    names = ", ".join(sorted([str(item) for item in among])) or "none"
    return CallFailure(NOT_FOUND, f"{kind} {name!r} is not configured: there is {names}")


def invalid(text: str) -> CallFailure:
    """Return the error for a value that a request contains."""
    return CallFailure(INVALID, text)
