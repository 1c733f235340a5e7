"""Listening address, TLS files, sessions and tunnels of the machine."""

from __future__ import annotations

import re
from typing import Annotated, Final

import msgspec

from schema.document.section import Section
from schema.durations import Duration, format_duration
from schema.errors import ConfigError

DEFAULT_BIND_ADDRESS: Final = "localhost:8080"  # of the reference server
MANAGED_BIND_ADDRESS: Final = ":8080"  # every interface, with a cloud and its certificate
HEARTBEAT_WINDOW: Final = (0.03, 60.0)  # seconds, minimum and maximum; as in the reference server

_ORIGIN: Final = re.compile(r"https?://(?:\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::(?:\d{1,5}|\*))?\Z")
_ADDRESS = re.compile(r"(?:\[[0-9a-fA-F:.%\w]*\]|[^:\[\]\s]*):(\d{1,5})\Z")


def check_address(address: str, *, path: str) -> tuple[str, int]:
    """Parse `host:port` into host (without brackets; empty for every interface) and port; ConfigError at `path`."""
    match = _ADDRESS.match(address)
    if match is None or int(match[1]) > 65535:
        raise ConfigError(
            path,
            f"{address!r} is not host:port",
            value=address,
            remedy="write for example localhost:8080, :8080 or [::1]:8080",
        )
    return address[: match.start(1) - 1].strip("[]"), int(match[1])


class Sessions(Section, frozen=True, kw_only=True):
    """Safety of remote control."""

    heartbeat_window: Duration = 2.0
    """Time after which a silent client loses control and its movements are stopped; 30 ms to 1 minute."""

    def __post_init__(self) -> None:
        shortest, longest = HEARTBEAT_WINDOW
        if not shortest <= self.heartbeat_window <= longest:
            raise ConfigError(
                "heartbeat_window",
                f"{format_duration(self.heartbeat_window)} is out of range",
                value=format_duration(self.heartbeat_window),
                remedy=f"write {format_duration(shortest)} to {format_duration(longest)}",
            )


class TunnelEndpoint(Section, frozen=True, kw_only=True):
    """Local port that clients may reach through the machine."""

    port: Annotated[int, msgspec.Meta(ge=1, le=65535)]
    """TCP port on the loopback interface."""
    connection_timeout: Duration = 10.0
    """Time limit for connecting to the port."""


class Network(Section, frozen=True, kw_only=True):
    """Addresses and ports at which the machine can be reached."""

    fqdn: str = ""
    """Name of the machine for clients; set by the cloud, otherwise generated at start."""
    bind_address: str = ""
    """Listening address `host:port`; default `localhost:8080`, or `:8080` with a cloud and its certificate."""
    tls_cert_file: str = ""
    """Certificate chain (PEM); needs tls_key_file."""
    tls_key_file: str = ""
    """Private key (PEM); needs tls_cert_file."""
    no_tls: bool = False
    """Do not use TLS even if there is a certificate."""
    sessions: Sessions = Sessions()
    """Safety of remote control."""
    traffic_tunnel_endpoints: tuple[TunnelEndpoint, ...] = ()
    """Local ports that clients may reach through the machine."""
    allowed_origins: tuple[str, ...] = ()
    """Origins whose web pages may call the machine, such as `https://app.example`; see the network page."""

    def __post_init__(self) -> None:
        if self.bind_address:
            check_address(self.bind_address, path="bind_address")
        for index, origin in enumerate(self.allowed_origins):
            if not _ORIGIN.match(origin):
                raise ConfigError(
                    f"allowed_origins.{index}",
                    f"{origin!r} is not an origin",
                    value=origin,
                    remedy="write scheme and host in lower case and a port unless it is the default, without a path: "
                    "https://app.example, http://localhost:5173 or http://localhost:*",
                )
        if bool(self.tls_cert_file) != bool(self.tls_key_file):
            present, absent = ("cert", "key") if self.tls_cert_file else ("key", "cert")
            raise ConfigError(f"tls_{present}_file", f"is set without tls_{absent}_file", remedy="set both or neither")
