"""Connectivity tests of phones and computers: a request, and the answer that the real Internet gives.

A different answer means that a portal intercepts requests; the user is shown that portal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Verdict = Literal["online", "portal", "none"]


@dataclass(frozen=True, slots=True)
class Probe:
    """A connectivity test, and its answer without a portal."""

    host: str
    path: str
    status: int
    body: str

    @property
    def url(self) -> str:
        return f"http://{self.host}{self.path}"

    def verdict(self, status: int, body: str) -> Verdict:
        """Return the conclusion from an answer; status 0 means that there was no answer."""
        if status == 0:
            return "none"
        return "online" if (status, body) == (self.status, self.body) else "portal"


APPLE_BODY: Final = "<HTML><HEAD><TITLE>Success</TITLE></HEAD><BODY>Success</BODY></HTML>"
PROBES: Final = {
    "android": Probe("connectivitycheck.gstatic.com", "/generate_204", 204, ""),
    "apple": Probe("captive.apple.com", "/hotspot-detect.html", 200, APPLE_BODY),
    "windows": Probe("www.msftconnecttest.com", "/connecttest.txt", 200, "Microsoft Connect Test"),
    "firefox": Probe("detectportal.firefox.com", "/success.txt", 200, "success\n"),
    "networkmanager": Probe("nmcheck.gnome.org", "/check_network_status.txt", 200, "NetworkManager is online\n"),
}
"""Tests by vendor and program."""
