"""Where a machine listens now."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rpc.network.tls import Context


class Endpoint:
    """The port of a machine: the addresses at which it listens, and the certificate it is served with."""

    def __init__(self) -> None:
        self.addresses: tuple[str, ...] = ()
        self.tls: Context | None = None

    @property
    def secure(self) -> bool:
        """Whether other computers reach the port by TLS."""
        return self.tls is not None and self.tls.context is not None
