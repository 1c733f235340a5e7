"""Unplug and plug simulated radios of mac80211_hwsim: `python3 -m tests.hil.guest.radios unplug DEVICE`, or `plug`.

A radio that is plugged in has a new number, and the first free name of a device, as with a USB adapter.
"""

from __future__ import annotations

import socket
import struct
import sys
from pathlib import Path

GENERIC, CONTROLLER = 16, 16  # NETLINK_GENERIC, GENL_ID_CTRL
GET_FAMILY, FAMILY_NUMBER, FAMILY_NAME = 3, 1, 2  # linux/genetlink.h
NEW_RADIO, DEL_RADIO, RADIO_NAME = 4, 5, 17  # drivers/net/wireless/virtual/mac80211_hwsim.h
REQUEST_ACK = 5  # NLM_F_REQUEST | NLM_F_ACK
ERROR = 2  # NLMSG_ERROR


def attribute(number: int, value: bytes) -> bytes:
    return (struct.pack("HH", 4 + len(value), number) + value).ljust((4 + len(value) + 3) & ~3, b"\0")


def ask(family: int, command: int, attributes: bytes = b"") -> bytes:
    """Send a request and return the payload of the first answer; OSError with the number of the kernel."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, GENERIC) as kernel:
        body = struct.pack("BBH", command, 1, 0) + attributes
        kernel.sendto(struct.pack("IHHII", 16 + len(body), family, REQUEST_ACK, 1, 0) + body, (0, 0))
        data = kernel.recv(65536)
    kind = struct.unpack_from("H", data, 4)[0]
    error = struct.unpack_from("i", data, 16)[0]
    if kind == ERROR and error < 0:
        raise OSError(-error, "mac80211_hwsim refuses")
    return data[20:]


def family() -> int:
    """Return the number of the family of mac80211_hwsim."""
    data = ask(CONTROLLER, GET_FAMILY, attribute(FAMILY_NAME, b"MAC80211_HWSIM\0"))
    while data:
        length, number = struct.unpack_from("HH", data)
        if number == FAMILY_NUMBER:
            return int(struct.unpack_from("H", data, 4)[0])
        data = data[(length + 3) & ~3 :]
    raise OSError("no family")


def unplug(device: str) -> None:
    """Remove the radio of a device."""
    name = Path(f"/sys/class/net/{device}/phy80211/name").read_text().strip()
    ask(family(), DEL_RADIO, attribute(RADIO_NAME, name.encode() + b"\0"))


def plug() -> None:
    """Add a radio."""
    ask(family(), NEW_RADIO)


if __name__ == "__main__":
    if sys.argv[1] == "unplug":
        unplug(sys.argv[2])
    else:
        plug()
