"""Why a network could not be joined, and what a person can do, in words. Pure."""

from __future__ import annotations

from typing import Final

from netmgr.model.events import JoinFailure

WORDS: Final[dict[JoinFailure, tuple[str, str]]] = {
    JoinFailure.NOT_FOUND: (
        "no access point with this name answered",
        "check the name, and whether the access point is on and near; many devices hear only 2.4 GHz",
    ),
    JoinFailure.WRONG_PASSWORD: ("the password is wrong", "enter it again; capital letters matter"),
    JoinFailure.REJECTED: (
        "the access point refuses this device",
        "check its list of allowed devices and how many it accepts, or restart it",
    ),
    JoinFailure.CREDENTIALS: (
        "the server refuses the user name, password or certificate",
        "check them with the administrator of the network",
    ),
    JoinFailure.SERVER_CERTIFICATE: (
        "the server of the network has shown another certificate than expected",
        "check `ca_certificate`, `server_name`, the dates of the certificate and the clock of the device; if they are "
        "right, somebody may imitate the network",
    ),
    JoinFailure.NO_ADDRESS: (
        "the network gives this device no address",
        "check DHCP of the router, or set a static address",
    ),
    JoinFailure.NO_INTERNET: (
        "the cloud does not answer through this network",
        "check the router's connection to the internet and its firewall",
    ),
    JoinFailure.PORTAL: (
        "a page of the network answers in place of the cloud",
        "the network wants a login that this device cannot do: use another network, or have the device allowed there",
    ),
    JoinFailure.NO_NAME: (
        "the name of the cloud cannot be resolved through this network",
        "check the name server (DNS) of the router, or set `ipv4_dns` of the network",
    ),
    JoinFailure.TIMEOUT: ("joining took too long", "move the device nearer to the access point, and try again"),
    JoinFailure.RADIO: (
        "the radio has failed, is switched off, or was removed",
        "check the switch of the radio: rfkill list",
    ),
}
"""Reason and remedy of each failure."""


def explained(failure: JoinFailure, detail: str = "") -> str:
    """Return the reason and the remedy in one text. `detail` is the text of a daemon."""
    reason, remedy = WORDS[failure]
    return f"{reason}{f' ({detail})' if detail else ''}: {remedy}"
