"""Networks that the device may use, with their credentials. Pure."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Interface
from typing import Final, Literal

import msgspec

Kind = Literal["wired", "wifi"]
Source = Literal["cloud", "portal", "console", "adopted"]
"""Where a network comes from: the configuration in the cloud, the portal or app of provisioning, the command line on
the device, or another program that managed the network before."""

USUAL_METRIC: Final[dict[Kind, int]] = {"wired": 100, "wifi": 600}
"""Route metrics where the configuration has 0, as in the specification and in NetworkManager."""
HIGHEST_PRIORITY: Final = 999
"""Priority of the network that was entered during provisioning."""


class Secret(msgspec.Struct, frozen=True):
    """Base of records with a secret: their text form has no values, so that no log or error shows one."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"

    __str__ = __repr__


class Open(Secret, frozen=True, tag="open"):
    """No authentication, or none that needs a credential (OWE)."""


class Personal(Secret, frozen=True, kw_only=True, tag="personal"):
    """WPA2 or WPA3 with a password, whichever the access point offers; WPA3 if it offers both."""

    passphrase: str
    """8 to 63 printable ASCII characters, or the key itself as 64 hexadecimal digits, which only WPA2 can use."""


class Enterprise(Secret, frozen=True, kw_only=True, tag="enterprise"):
    """WPA2 or WPA3 Enterprise: EAP-PEAP with MSCHAPv2, or EAP-TLS."""

    method: Literal["peap", "tls"]
    identity: str
    anonymous_identity: str = ""
    """Outer identity of EAP-PEAP, which anybody can read; empty sends `identity`."""
    password: str = ""
    """Password of EAP-PEAP."""
    ca_certificate: str = ""
    """Certificates of the authorities that may have issued the server's certificate, PEM; empty accepts only those that
    the system trusts, and then `server_name` is needed."""
    server_name: str = ""
    """Name, or end of the name, that the certificate of the authentication server must have."""
    client_certificate: str = ""
    """Certificate of EAP-TLS, PEM."""
    private_key: str = ""
    """Key of EAP-TLS, PEM."""
    private_key_password: str = ""
    """Password of the key, if it is encrypted."""


Security = Open | Personal | Enterprise


class StaticAddress(msgspec.Struct, frozen=True, kw_only=True):
    """IPv4 address that is set without DHCP."""

    address: IPv4Interface
    gateway: IPv4Address | None = None


class UsableNetwork(msgspec.Struct, frozen=True, kw_only=True):
    """Network that the device may use."""

    label: str
    """Name of the network, unique on the device: in the configuration the key of `additional_networks`."""
    kind: Kind
    source: Source
    interface: str = ""
    """Interface that it is for; empty means any of its kind."""
    ssid: bytes = b""
    """Name of a wifi network: 1 to 32 bytes, which need not be text."""
    security: Security = Open()
    hidden: bool = False
    """The access point does not announce the SSID: it is asked for by name."""
    priority: int = 0
    """Order in which networks are tried, -999 to 999; higher comes first."""
    static: StaticAddress | None = None
    """IPv4 address; None asks DHCP. IPv6 addresses come from router advertisements in both cases."""
    dns: tuple[IPv4Address, ...] = ()
    """IPv4 name servers, before those of DHCP and router advertisements."""
    metric: int = 0
    """Metric of the routes; 0 means USUAL_METRIC."""

    @property
    def route_metric(self) -> int:
        """Metric of the routes, with the default of the kind."""
        return self.metric or USUAL_METRIC[self.kind]


def same_connection(first: UsableNetwork, second: UsableNetwork) -> bool:
    """Return whether both are joined in the same way, so that a change from one to the other needs no new attempt."""
    return (first.ssid, first.security, first.hidden) == (second.ssid, second.security, second.hidden)


def ssid_text(ssid: bytes) -> str:
    """Return an SSID for people: as text, with bytes that are not printable UTF-8 as `\\xNN`."""
    text = ssid.decode("utf-8", errors="backslashreplace")
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
