"""Rules of access to the portal: host names, pages of other sites, tokens of forms, rates, and the lock. Pure.

Everybody who knows the password of the hotspot can reach the portal. That is not enough to give a configured device to
another cloud: see `Lock`.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from rpc.access import Attempts, host_of
from schema import ErrorKind, MachineError

TOKEN_LIFETIME: Final = 3600.0  # seconds; a page that is open for longer must be loaded again
ENTRIES: Final = 10  # forms and calls that enter something, for each client per minute
WRONG_PROOFS: Final = 5  # of all clients together, per LOCKOUT
LOCKOUT: Final = 900.0  # seconds
PROOF_BYTES: Final = 512  # of a proof; a longer one is wrong


@dataclass(slots=True)
class Visitors:
    """Tokens and rates of the clients of one portal. `key` is random for each start of the hotspot."""

    key: bytes = field(repr=False)
    hosts: tuple[str, ...]
    """Names under which the portal is served: its address, and names below `.setup`."""
    _entries: Attempts = field(default_factory=lambda: Attempts(failures=ENTRIES, period=60.0, max_peers=256))

    def token(self, client: str, now: float) -> str:
        """Return the token of a form for this client. Pages of other sites cannot read it."""
        end = int(now + TOKEN_LIFETIME)
        return f"{end}.{self._mac(client, end)}"

    def check_form(self, client: str, token: str, host: str, origin: str | None, now: float) -> None:
        """Check that a form comes from a page of this portal. PERMISSION, EXHAUSTED."""
        if not self.serves(host) or (origin is not None and origin.lower() != f"http://{host}".lower()):
            raise MachineError(
                "this form comes from a page of another site", kind=ErrorKind.PERMISSION,
                remedy=f"open http://{self.hosts[0]}/",
            )  # fmt: skip
        end, _, mac = token.partition(".")
        valid = end.isascii() and end.isdigit() and len(end) <= 12
        if not valid or not hmac.compare_digest(mac.encode(), self._mac(client, int(end)).encode()) or now > int(end):
            raise MachineError(
                "this page is too old, or was loaded by another device", kind=ErrorKind.PERMISSION,
                remedy="load the page again, and enter the values once more",
            )  # fmt: skip
        self.count(client, now)

    def count(self, client: str, now: float) -> None:
        """Count an entry of a client. EXHAUSTED after ENTRIES in a minute."""
        if wait := self._entries.wait(client, now):
            raise MachineError(
                "too many entries from this device", kind=ErrorKind.EXHAUSTED, remedy=f"wait {wait:.0f} seconds"
            )
        self._entries.failed(client, now)

    def serves(self, host: str) -> bool:
        """Return whether requests for this host name are for the portal. All others are sent there."""
        return host_of(host).lower() in self.hosts

    def _mac(self, client: str, end: int) -> str:
        return hmac.digest(self.key, f"{client}\n{end}".encode(), "sha256").hex()


@dataclass(slots=True)
class Lock:
    """Decision whether credentials of another cloud may replace those of the device.

    `secrets` returns what proves that a person may do so: the device's own secret, and the secrets of the present
    credentials; empty texts prove nothing. `opened` returns why no proof is needed, such as a file that the owner has
    created; empty if one is.
    """

    configured: Callable[[], bool]
    secrets: Callable[[], tuple[str, ...]] = field(repr=False)
    opened: Callable[[], str]
    _wrong: Attempts = field(default_factory=lambda: Attempts(failures=WRONG_PROOFS, period=LOCKOUT))

    def check(self, proof: str, now: float) -> None:
        """Check that new credentials may be stored. PERMISSION, or EXHAUSTED after WRONG_PROOFS."""
        if not self.configured() or self.opened():
            return
        if wait := self._wrong.wait("", now):
            raise MachineError(
                "too many wrong proofs: new credentials are locked", kind=ErrorKind.EXHAUSTED,
                remedy=f"wait {wait / 60:.0f} minutes",
            )  # fmt: skip
        entered = proof.encode(errors="replace")
        matches = [hmac.compare_digest(entered, secret.encode()) for secret in self.secrets() if secret]
        if len(entered) <= PROOF_BYTES and any(matches):
            return
        if proof:
            self._wrong.failed("", now)
        raise MachineError(
            "this device belongs to a cloud already" + (", and the proof is wrong" if proof else ""),
            kind=ErrorKind.PERMISSION,
            remedy="enter the secret of the device or the secret of its present credentials, or run "
            "`machine agent provision --new-credentials` on the device",
        )
