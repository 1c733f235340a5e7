"""Targets of the checks. The file in MACHINE_NETWORK_CHECK replaces the defaults, for private networks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final

import msgspec

from schema import ConfigError
from schema.decoding import parse_json

VARIABLE: Final = "MACHINE_NETWORK_CHECK"
OFF: Final = "off"  # instead of a file: no targets
LOCAL_RESOLVER: Final = "127.0.0.53:53"  # systemd-resolved; a target if resolv.conf names it


class Targets(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Targets by kind of check: names in `resolve`, addresses in `ping`, else `host:port`."""

    dns: tuple[str, ...] = ("1.1.1.1:53", "8.8.8.8:53", "208.67.222.222:53")  # resolvers, by TCP
    question: str = "one.one.one.one"  # the name that they are asked for
    resolve: tuple[str, ...] = ("one.one.one.one", "dns.google", "pool.ntp.org", "stun.l.google.com")  # by the system
    stun: tuple[str, ...] = (
        "stun.l.google.com:19302",
        "stun1.l.google.com:19302",
        "stun2.l.google.com:19302",
        "stun3.l.google.com:19302",
        "stun4.l.google.com:19302",
        "stun.cloudflare.com:3478",
        "global.stun.twilio.com:3478",
    )  # by UDP
    stun_tcp: tuple[str, ...] = ("stun.cloudflare.com:3478", "stun.nextcloud.com:443")
    ping: tuple[str, ...] = ("gateway", "1.1.1.1")  # `gateway`: the default route's
    probes: Annotated[int, msgspec.Meta(ge=1, le=100)] = 10  # echo requests to each
    probe_period_s: Annotated[float, msgspec.Meta(gt=0, le=10)] = 1.0  # between requests; also the limit for an answer


def load(environment: Mapping[str, str], *, cloud: str = "") -> Targets:
    """Return the targets from the file in the environment, or the defaults and the host of the cloud.

    Raises ConfigError if the file cannot be read or is invalid.
    """
    name = environment.get(VARIABLE, "")
    if name == OFF:
        return Targets(dns=(), resolve=(), stun=(), stun_tcp=(), ping=())
    if not name:
        defaults = Targets()
        return msgspec.structs.replace(
            defaults,
            dns=(*defaults.dns, *([LOCAL_RESOLVER] if _uses_local_resolver() else [])),
            resolve=(*([cloud] if cloud else []), *defaults.resolve),
        )
    try:
        return msgspec.convert(parse_json(Path(name).read_bytes()), Targets)
    except OSError as error:
        raise ConfigError(VARIABLE, f"{name} cannot be read: {error.strerror}", value=name) from None
    except msgspec.ValidationError as error:
        raise ConfigError(VARIABLE, f"{name}: {error}", value=name) from None


def _uses_local_resolver() -> bool:
    try:
        return LOCAL_RESOLVER.rpartition(":")[0] in Path("/etc/resolv.conf").read_text()
    except (OSError, UnicodeDecodeError):
        return False


def split(address: str) -> tuple[str, int]:
    """Split `host:port` or `[v6]:port`. Raises ValueError for anything else."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit():
        raise ValueError(f"{address!r} is not host:port")
    return host.removeprefix("[").removesuffix("]"), int(port)
