"""IPv6 of the kernel on an interface: router advertisements, and a reset after another program has configured it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from schema import ErrorKind, MachineError

SETTINGS: Final = Path("/proc/sys/net/ipv6/conf")
ALWAYS: Final = "2"
"""Value of accept_ra that also accepts them on a computer that forwards packets, as the hotspot may need."""
EUI64: Final = "0"
"""Value of addr_gen_mode with which the kernel chooses the link-local address; NetworkManager sets another one."""
METRIC: Final = "ra_defrtr_metric"
"""Since Linux 5.12; before, the metric is 1024."""


def accept(interface: str, metric: int | None, settings: Path = SETTINGS) -> None:
    """Accept router advertisements with this metric of the default route; ignore them if it is None.

    Does nothing if the kernel has no IPv6. UNAVAILABLE if a value cannot be written.
    """
    values = {"accept_ra": "0"} if metric is None else {METRIC: str(metric), "accept_ra": ALWAYS}
    for name, value in values.items():
        _set(settings / interface / name, value)


def metric_of(interface: str, settings: Path = SETTINGS) -> int | None:
    """Return the metric of the default routes of router advertisements; None if they are ignored, or without IPv6."""
    try:
        if (settings / interface / "accept_ra").read_text().strip() != ALWAYS:
            return None
        return int((settings / interface / METRIC).read_text())
    except (OSError, ValueError):
        return None


def reset(interface: str, settings: Path = SETTINGS) -> None:
    """Remove all IPv6 addresses and routes of an interface, and let the kernel choose its link-local address.

    Does nothing if the kernel has no IPv6. UNAVAILABLE if a value cannot be written.
    """
    folder = settings / interface
    for name, value in (("addr_gen_mode", EUI64), ("disable_ipv6", "1"), ("disable_ipv6", "0")):
        _set(folder / name, value)


def _set(path: Path, value: str) -> None:
    try:
        if path.read_text().strip() != value:
            path.write_text(f"{value}\n")
    except FileNotFoundError:
        return
    except OSError as error:
        raise MachineError(
            f"{path} cannot be set to {value}: {error.strerror}", kind=ErrorKind.UNAVAILABLE,
            remedy="check whether the file system /proc is writable for machine-agent",
        ) from None  # fmt: skip
