"""Checks of what the other end signals, made before an engine parses it. Pure."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import replace
from typing import Final

from rpc.peers.port import Description, IceCandidate
from schema import ErrorKind, MachineError

MAX_SDP: Final = 65_536  # bytes in UTF-8; Chromium's offer with audio and video has 7 KiB
MAX_LINES: Final = 2_000  # an offer with 16 media has 1,600; libwebrtc blocks its callers while it parses
MAX_LINE: Final = 2_048  # characters; the time for a group grows with the square of its length
MAX_MEDIA: Final = 16  # media descriptions, each of which costs an engine a transport
MAX_CANDIDATES: Final = 128  # of the other end for each connection; a computer with eight addresses has about 40
MAX_CANDIDATE: Final = 512  # characters; the longest that Chromium makes has about 200
MAX_NAME: Final = 256  # characters of a media identification or user name fragment: RFC 8839, 5.4

_LINE_END: Final = re.compile(r"\r\n|\n")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_CANDIDATE: Final = re.compile(
    r"candidate:[A-Za-z0-9+/]{1,32} (?P<component>\d{1,3}) (?i:udp|tcp) (?P<priority>\d{1,10}) (?P<address>\S+) "
    r"(?P<port>\d{1,5}) typ (?:host|srflx|prflx|relay)(?: .*)?"
)
"""RFC 8839, 5.1, for the transports and types that engines use."""


class Intake:
    """What one connection has accepted from the other end, to bound the number of its candidates."""

    def __init__(self) -> None:
        self._candidates = 0

    def description(self, description: Description) -> Description:
        """Return the description without candidates that have a host name. Raises MachineError."""
        if description.kind not in ("offer", "answer"):
            raise unusable("session description", "its kind is neither offer nor answer")
        try:
            size = len(description.sdp.encode())
        except UnicodeEncodeError:
            raise unusable("session description", "it is not valid Unicode") from None
        if size > MAX_SDP:
            raise unusable("session description", f"it has {size} bytes; at most {MAX_SDP} are accepted")
        if "\0" in description.sdp:
            raise unusable("session description", "it contains a NUL character")
        lines = _LINE_END.split(description.sdp.rstrip("\r\n"))
        if len(lines) > MAX_LINES or max(map(len, lines)) > MAX_LINE:
            raise unusable("session description", f"it has over {MAX_LINES} lines or {MAX_LINE} characters in a line")
        if sum(line.startswith("m=") for line in lines) > MAX_MEDIA:
            raise unusable("session description", f"it has more than {MAX_MEDIA} media descriptions")
        kept = [line for line in lines if not line.startswith("a=candidate:") or self._is_usable(line[2:])]
        return replace(description, sdp="".join(f"{line}\r\n" for line in kept))

    def candidate(self, candidate: IceCandidate) -> IceCandidate | None:
        """Return the candidate, or None if it has a host name, which is ignored. Raises MachineError.

        A name is never looked up: a peer could make this computer resolve any name. Clients that hide their addresses
        with `.local` names are reached all the same: they send the first packet, which shows the address.
        """
        names = (candidate.mid or "", candidate.fragment or "")
        if any(len(name) > MAX_NAME or not name.isascii() or _CONTROL.search(name) for name in names):
            raise unusable("candidate", "its media identification or user name fragment is not valid")
        if candidate.line is not None and not 0 <= candidate.line < MAX_MEDIA:
            raise unusable("candidate", f"its media index is not between 0 and {MAX_MEDIA - 1}")
        text = candidate.text.removeprefix("a=")
        if not text or self._is_usable(text):
            return replace(candidate, text=text)
        return None

    def _is_usable(self, text: str) -> bool:
        """Count a candidate; return whether it has an address."""
        if self._candidates >= MAX_CANDIDATES:
            raise MachineError(
                f"the other end has sent more than {MAX_CANDIDATES} candidates",
                kind=ErrorKind.EXHAUSTED,
                remedy="close the peer connection and connect again",
            )
        self._candidates += 1
        if len(text) > MAX_CANDIDATE:
            raise unusable("candidate", f"it has {len(text)} characters; at most {MAX_CANDIDATE} are accepted")
        fields = _CANDIDATE.fullmatch(text)
        if not text.isascii() or fields is None or _CONTROL.search(text):
            raise unusable("candidate", "it is not a candidate line of RFC 8839")
        if (
            int(fields["port"]) > 65_535
            or int(fields["priority"]) >= 1 << 32
            or not 1 <= int(fields["component"]) < 257
        ):
            raise unusable("candidate", "its component, priority or port is out of range")
        return _is_address(fields["address"])


def unusable(subject: str, reason: str) -> MachineError:
    """Create the error of input that cannot be used. It never quotes the input, which contains passwords."""
    return MachineError(
        f"the {subject} of the other end cannot be used: {reason}",
        kind=ErrorKind.INVALID,
        remedy="connect again; if it fails again, update the software of the other end",
    )


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return "%" not in text  # a zone has a meaning only on the computer that names it
