"""A device behind the portal, for tests: it stores what is entered."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import msgspec
import trio

from netmgr.portal.access import Lock
from netmgr.portal.state import CredentialsEntry, NetworkEntry, PortalAttempt, PortalState, SeenNetwork
from schema.errors import ErrorKind, MachineError

HOME = SeenNetwork(ssid=b"home", cipher="wpa2", percent=78)
EVIL = SeenNetwork(ssid=b'"><script>alert(1)</script>', cipher="open", percent=20)
BYTES = SeenNetwork(ssid=b"caf\xe9\x00", cipher="wpa3", percent=5)
STATE = PortalState(
    name="rover-7",
    manufacturer="machine",
    model="custom",
    agent_version="1.2.3",
    configured=False,
    online=False,
    networks=(HOME, EVIL, BYTES),
    scanned_ago=4.2,
)
DEVICE_SECRET, PART_SECRET = "label-1234", "secret of the part"


@dataclass
class Device:
    """Backend of the portal."""

    shown: PortalState = STATE
    file: str = ""
    networks: list[NetworkEntry] = field(default_factory=list)
    credentials: list[bytes] = field(default_factory=list)
    interactions: int = 0
    left: int = 0
    scans: int = 0

    def __post_init__(self) -> None:
        self.lock = Lock(
            configured=lambda: self.shown.configured,
            secrets=lambda: (DEVICE_SECRET, PART_SECRET, ""),
            opened=lambda: self.file,
        )

    def show(self, **changes: object) -> None:
        self.shown = msgspec.structs.replace(self.shown, **changes)

    def fail(self, text: str) -> None:
        self.show(attempt=PortalAttempt(ssid=b"home", progress="failed", text=text, ago=1.0))

    def state(self) -> PortalState:
        return self.shown

    def interacted(self) -> None:
        self.interactions += 1

    def enter_network(self, entry: NetworkEntry) -> None:
        self.networks.append(entry)

    async def enter_credentials(self, entry: CredentialsEntry) -> None:
        self.lock.check(entry.proof, trio.current_time())
        try:
            json.loads(entry.document)["cloud"]["id"]
        except (ValueError, KeyError, TypeError):
            raise MachineError("the credentials cannot be used", kind=ErrorKind.INVALID) from None
        self.credentials.append(entry.document)

    def leave(self) -> None:
        self.left += 1

    def scan(self) -> None:
        self.scans += 1
