"""Attributes of `mqtt`. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Final
from urllib.parse import urlsplit

import msgspec

from schema import Attributes

PORTS: Final = {"mqtt": 1883, "mqtts": 8883}
"""The ports registered with IANA, by the scheme of the address; `mqtts` is MQTT in TLS."""

_TOPIC = re.compile(r"[^\x00-\x1f\x7f+#$/][^\x00-\x1f\x7f+#]*")
_PIN = re.compile(r"[^\x00-\x1f\x7f+#/]+")
MOST_PINS: Final = 64  # of all boards
LONGEST_PIN: Final = 100  # characters of its name
LONGEST_TOPIC: Final = 200  # characters, so that topics with a name of a resource stay far below MQTT's 65,535 bytes


@dataclass(frozen=True, slots=True)
class BrokerAddress:
    """Where a broker listens, and whether in TLS."""

    host: str
    port: int
    tls: bool

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'mqtts' if self.tls else 'mqtt'}://{host}:{self.port}"


class MqttAttributes(Attributes, kw_only=True, frozen=True):
    """Attributes of the bridge to an MQTT broker."""

    address: str  # of the broker: `mqtt://host`, or `mqtts://host` for TLS; `:port` if it is not 1883 or 8883
    username: str = ""  # empty: log in without a name
    password: str = ""  # of that name
    ca: str = ""  # file with the certificates to trust; empty: those of the computer
    certificate: str = ""  # file with the certificate of this client, if the broker asks for it
    private_key: str = ""  # file with its private key; empty: in the same file as the certificate
    client_id: str = ""  # unique at the broker; empty: made from `topic`
    topic: str = ""  # begins all topics; unique at the broker. Empty: `machines/` and the name of the computer
    discovery: str = "homeassistant"  # where Home Assistant looks for new devices; empty: announce nothing
    publish: tuple[str, ...] = ()  # resources whose readings or states are published
    commands: tuple[str, ...] = ()  # resources that obey the broker; their states are published, too
    do_commands: tuple[str, ...] = ()  # resources whose own commands (`DoCommand`) the broker may run
    pins: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)  # board -> pins, analogs and interrupts
    interval_s: Annotated[float, msgspec.Meta(ge=0.2, le=86_400)] = 10.0  # seconds between two readings

    def __post_init__(self) -> None:
        self.broker()
        for key, value in (("topic", self.topic), ("discovery", self.discovery)):
            if value and (not _TOPIC.fullmatch(value) or value.endswith("/") or len(value) > LONGEST_TOPIC):
                raise ValueError(
                    f"{key} is {value!r}: write at most {LONGEST_TOPIC} characters without + and #, "
                    "with a slash only between two levels, such as home/cellar"
                )
        for name in (*self.names(), *self.do_commands):
            if not name or set(name) & set("/+#"):
                raise ValueError(f"{name!r} is not a name of a resource: write one such as left, or pi:left")
        self._check_pins()
        if not (self.publish or self.commands or self.do_commands or any(self.pins.values())):
            raise ValueError("publish, commands, do_commands and pins are empty: name at least one resource")
        if self.private_key and not self.certificate:
            raise ValueError("private_key is set without certificate")
        if (self.ca or self.certificate) and not self.broker().tls:
            raise ValueError(f"address is {self.address!r}: certificates need mqtts://")

    def _check_pins(self) -> None:
        for board, names in self.pins.items():
            if not board or set(board) & set("/+#"):
                raise ValueError(f"pins: {board!r} is not a name of a board: write one such as pi")
            for index, name in enumerate(names):
                if not _PIN.fullmatch(name) or len(name) > LONGEST_PIN:
                    raise ValueError(
                        f"pins.{board}.{index}: {name[:LONGEST_PIN]!r} is not a name of a pin: "
                        f"write 1 to {LONGEST_PIN} characters without /, + and #, such as 37"
                    )
                if name in names[:index]:
                    raise ValueError(f"pins.{board}.{index}: {name!r} is listed twice: remove one of them")
        count = sum(map(len, self.pins.values()))
        if count > MOST_PINS:
            raise ValueError(f"pins: {count} pins are listed, and {MOST_PINS} are allowed")

    def broker(self) -> BrokerAddress:
        """Return the parsed address. ValueError if it is invalid."""
        example = "write mqtt://host or mqtts://host, with :port if it is not 1883 or 8883"
        try:
            parts = urlsplit(self.address)
            port = parts.port or PORTS.get(parts.scheme, 0)
        except ValueError:
            raise ValueError(f"address is not an address of a broker: {example}") from None
        if parts.username is not None or parts.password is not None:
            raise ValueError("address contains a user: use `username` and `password`")
        if parts.scheme not in PORTS or not parts.hostname or parts.path.strip("/") or parts.query or parts.fragment:
            shown = "not an address of a broker" if "@" in self.address or parts.query else repr(self.address)
            raise ValueError(f"address is {shown}: {example}")  # without what may be a password
        return BrokerAddress(parts.hostname, port, tls=parts.scheme == "mqtts")

    def names(self) -> tuple[str, ...]:
        """Return the resources whose states are published, each once."""
        return tuple(dict.fromkeys((*self.publish, *self.commands)))
