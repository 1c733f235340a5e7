"""Remote entries: other machines whose resources this one uses."""

from __future__ import annotations

from typing import Any

from schema.decoding.report import DecodingReport
from schema.document.section import Section
from schema.durations import Duration
from schema.errors import ConfigError, ConfigErrors
from schema.names import check_name
from schema.space.frames import Frame, decode_frame


class RemoteCredentials(Section, frozen=True, kw_only=True):
    """Credentials of this machine for the remote."""

    type: str = ""
    """`api-key` or `robot-location-secret`."""
    payload: str = ""
    """Secret of the credentials."""


class RemoteAuth(Section, frozen=True, kw_only=True):
    """Authentication of this machine to the remote."""

    credentials: RemoteCredentials | None = None
    """Type and secret."""
    entity: str = ""
    """Entity to authenticate as, such as the id of an API key."""


class Remote(Section, frozen=True, kw_only=True):
    """Another machine whose resources this machine uses."""

    name: str
    """Name, unique among remotes; its resources are named `<name>:<resource>`."""
    address: str
    """`host` (port 8080) or `host:port`, with TLS if supported; `https://host`, `http://host:port` or `unix:/path`."""
    prefix: str = ""
    """Prefix of the names of its resources: `<name>:<prefix><resource>`."""
    secret: str = ""
    """Location secret; older form of auth."""
    auth: RemoteAuth | None = None
    """Authentication of this machine to the remote."""
    insecure: bool = False
    """Connect in plain text, even with a key."""
    frame: dict[str, Any] | None = None
    """Pose of the remote's world frame in this machine's, in the form of a resource's frame. Not used yet."""
    managed_by: str = ""
    """Manager of the remote."""
    connection_check_interval: Duration = 10.0
    """Interval between checks of its resources."""
    reconnect_interval: Duration = 1.0
    """Time until the first attempt to reconnect; later intervals grow to 10 s."""
    service_configs: tuple[dict[str, Any], ...] = ()
    """Settings of services for its resources."""

    def __post_init__(self) -> None:
        check_name(self.name, path="name")
        if not self.address:
            raise ConfigError("address", "is empty", remedy="write the remote machine's host name")
        report = DecodingReport()
        if self.frame is not None and decode_frame(self.frame, "frame", report) is None:
            raise ConfigErrors(report.problems)

    @property
    def place(self) -> Frame | None:
        """Decoded `frame`: the pose of the remote's world frame in this machine's."""
        return None if self.frame is None else decode_frame(self.frame, "frame", DecodingReport())
