"""Router advertisements: whether the kernel accepts them on an interface, and the metric of its default route."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from schema.errors import ErrorKind, MachineError

SETTINGS: Final = Path("/proc/sys/net/ipv6/conf")
ALWAYS: Final = "2"
"""Value of accept_ra that also accepts them on a computer that forwards packets, as the hotspot may need."""
METRIC: Final = "ra_defrtr_metric"
"""Since Linux 5.12; before, the metric is 1024."""


def accept(interface: str, metric: int | None, settings: Path = SETTINGS) -> None:
    """Accept router advertisements with this metric of the default route; ignore them if it is None.

    Does nothing if the kernel has no IPv6. UNAVAILABLE if a value cannot be written.
    """
    folder = settings / interface
    values = {"accept_ra": "0"} if metric is None else {METRIC: str(metric), "accept_ra": ALWAYS}
    for name, value in values.items():
        path = folder / name
        try:
            if path.read_text().strip() != value:
                path.write_text(f"{value}\n")
        except FileNotFoundError:
            continue
        except OSError as error:
            raise MachineError(
                f"{path} cannot be set to {value}: {error.strerror}", kind=ErrorKind.UNAVAILABLE,
                remedy="check whether the file system /proc is writable for machine-agent",
            ) from None  # fmt: skip
