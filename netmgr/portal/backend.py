"""What the portal needs from the rest of the device."""

from __future__ import annotations

from typing import Protocol

from netmgr.portal.state import CredentialsEntry, NetworkEntry, PortalState


class PortalActions(Protocol):
    """Receiver of what people enter. All methods return at once; progress appears in `state`."""

    def state(self) -> PortalState:
        """Return what to show."""
        ...

    def interacted(self) -> None:
        """Note that a person is active, so that provisioning is not interrupted."""
        ...

    def enter_network(self, entry: NetworkEntry) -> None:
        """Store a network, and join it as soon as the answer has left (`leave`)."""
        ...

    async def enter_credentials(self, entry: CredentialsEntry) -> None:
        """Store the credentials of the cloud.

        PERMISSION if the device is configured and there is no valid proof, EXHAUSTED after too many wrong ones, INVALID
        if they cannot be used. Nothing has changed then.
        """
        ...

    def leave(self) -> None:
        """Use what was entered: the hotspot may end."""
        ...

    def scan(self) -> None:
        """Listen for networks again, if the radio can do so now."""
        ...
