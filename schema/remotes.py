"""Remote entries: other machines whose resources this one uses."""

from __future__ import annotations

from typing import Any

from schema.durations import Duration
from schema.errors import ConfigError, ConfigErrors
from schema.frames import Frame, decode_frame
from schema.names import check_name
from schema.report import Report
from schema.section import Section


class RemoteCredentials(Section, frozen=True, kw_only=True):
    """How this machine proves who it is."""

    type: str = ""
    """`api-key` or `robot-location-secret`."""
    payload: str = ""
    """The secret itself."""


class RemoteAuth(Section, frozen=True, kw_only=True):
    """Who this machine is to the remote."""

    credentials: RemoteCredentials | None = None
    """Proof."""
    entity: str = ""
    """Identity: for an API key its id."""


class Remote(Section, frozen=True, kw_only=True):
    """Another machine."""

    name: str
    """Unique among remotes; its resources are called `<name>:<resource>`."""
    address: str
    """`host` (port 8080) or `host:port`, by TLS if it speaks that; `https://host`, `http://host:port`, `unix:/path`."""
    prefix: str = ""
    """Put before the names of its resources: `<name>:<prefix><resource>`."""
    secret: str = ""
    """Older form of auth: a location secret."""
    auth: RemoteAuth | None = None
    """Who this machine is to the remote."""
    insecure: bool = False
    """Connect in plain text, with a key too."""
    frame: dict[str, Any] | None = None
    """Where its world stands in this one's; same form as a resource's frame. Not used yet."""
    managed_by: str = ""
    """Who manages the remote."""
    connection_check_interval: Duration = 10.0
    """Time between two looks at what it has."""
    reconnect_interval: Duration = 1.0
    """Time until the first attempt to connect again; the pause grows to 10 s."""
    service_configs: tuple[dict[str, Any], ...] = ()
    """What services should do with its resources."""

    def __post_init__(self) -> None:
        check_name(self.name, path="name")
        if not self.address:
            raise ConfigError("address", "is empty", remedy="write the remote machine's host name")
        report = Report()
        if self.frame is not None and decode_frame(self.frame, "frame", report) is None:
            raise ConfigErrors(report.problems)

    @property
    def place(self) -> Frame | None:
        """`frame`, read: where the remote's world stands in this machine's."""
        return None if self.frame is None else decode_frame(self.frame, "frame", Report())
