"""Authentication with keys and part secrets, which are held in memory and updated by database events.

Before an unknown key is refused, the database is asked once, because another replica may have just created it. A key
that another replica has rotated or deleted may be accepted for a moment; such a call fails when its role is looked up
(cloud.domain.permissions.credentials.require_in_force).
"""

from __future__ import annotations

import base64
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import trio
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from grpclib.exceptions import GRPCError

from cloud.domain.permissions import credentials
from cloud.store.events import EVERY, Events
from cloud.store.sql import Sql, Store, inserted
from cloud.values.author import Author
from rpc import Identity, Peer
from rpc.access import PAGES_AUDIENCE, Authenticator, Claims, Credential, Signer, Ticket, bearer
from schema import ErrorKind, MachineError

RETRY: Final = 1.0  # seconds until a retry while the database is unavailable
PAUSE: Final = 0.02  # seconds between lookups of unknown keys: all requests share 50 queries a second
MAX_ASKED: Final = 4096  # unknown keys that wait for one lookup; more are refused without a lookup
MAX_ID: Final = 64  # characters; ids of the cloud are shorter
_CREDENTIAL: Final = "credential"  # claim of an identity: digest of the credential that was used
_SETTING: Final = "signing key"


@dataclass(frozen=True, slots=True)
class Unconfirmed(Identity):
    """Identity in a valid token of this cloud whose key is not known in memory: it is new, or was deleted."""

    token: str = field(default="", repr=False)


class _Round:
    """One read of the database, and the callers that wait for it."""

    def __init__(self) -> None:
        self.entities: set[str] = set()
        self.done = trio.Event()


class CloudAuthenticator(Authenticator):
    """Authenticator with the credentials in the database. Rotated or deleted keys are void at the next call."""

    def __init__(self, signer: Signer, store: Store, events: Events, names: tuple[str, ...] = ("localhost",)) -> None:
        self._digests: dict[str, str] = {}  # by fingerprint
        super().__init__(signer, audience=names, instance=signer.instance)
        self._store = store
        self._events = events
        self._news = events.listening("key", also=["secret"])
        self._round = _Round()

    @property
    def enabled(self) -> bool:
        """True: every call to the cloud needs a key."""
        return True

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Follow the database until cancelled; ready when all keys are loaded.

        While the database is unavailable, the keys that were loaded last are used.
        """
        with self._news:
            self.configure(await self._store.read(credentials.every))
            task_status.started()
            changed: dict[str, None] = {}  # entities to read
            while True:
                with trio.move_on_after(RETRY if changed else math.inf):
                    changed.update(dict.fromkeys(await self._news.all()))
                finished_round, self._round = self._round, _Round()
                if await self._read(changed):
                    changed = {}
                finished_round.done.set()
                if finished_round.entities:
                    await trio.sleep(PAUSE)

    async def _read(self, entities: Collection[str]) -> bool:
        """Load the credentials of these entities; return False if the database is unavailable."""
        try:
            if EVERY in entities:
                self.configure(await self._store.read(credentials.every))
            else:
                self.update(entities, await self._store.read(lambda sql: credentials.some(sql, entities)))
        except MachineError as error:
            if error.kind is not ErrorKind.UNAVAILABLE:
                raise
            return False
        return True

    async def load(self) -> None:
        """Return when all credentials now in the database are loaded; at once if it is unavailable."""
        await self._look(EVERY)

    async def _look(self, entity: str) -> None:
        """Look up an entity in the database. Concurrent lookups share a query; too many return without one."""
        current_round = self._round
        if len(entity) > MAX_ID or (len(current_round.entities) >= MAX_ASKED and entity not in current_round.entities):
            return
        current_round.entities.add(entity)
        self._news.notify(entity)
        await current_round.done.wait()

    # ---- callers

    async def sign_in(self, entity: str, type: str, payload: str, *, peer: Peer, life: int = 0) -> str:  # noqa: A002 - the word of the wire
        """Return a token for valid credentials, by the current content of the database."""
        if entity and payload and self._accepts(type):
            await self._look(entity)
        return self.authenticate(entity, type, payload, peer=peer, life=life)

    async def sign_out(self, identity: Identity) -> None:
        """Revoke the token of `identity`. The token is void at the next call, at every replica and after a restart."""
        jti, ends = str(identity.claims["jti"]), int(identity.claims["exp"])
        await self._store.write(lambda sql: credentials.sign_out(sql, identity.entity, jti, ends))
        await super().sign_out(identity)

    async def _keep_ticket(self, ticket: Ticket, now: int) -> None:
        await self._store.write(lambda sql: credentials.keep_ticket(sql, ticket, now))

    async def _take_ticket(self, digest: str) -> Ticket | None:
        return await self._store.write(lambda sql: credentials.take_ticket(sql, digest))

    async def _is_in_force(self, ticket: Ticket) -> bool:
        await self._look(ticket.entity)
        return await super()._is_in_force(ticket)

    async def identified(self, token: str) -> Identity | None:
        """Return the identity of a token; None if it is invalid.

        The database is asked before a token of this cloud is refused.
        """
        identity = self.identify(token)
        if identity is None and (claims := self._signed(token)) is not None:
            await self._look(claims.sub)
            identity = self.identify(token)
        return identity

    def authorize(self, method: str, metadata: Mapping[str, str | bytes]) -> Identity | None:
        """Return the caller of a method; None on an open server, for Authenticate, and for health without a token.

        Return Unconfirmed for a token that only the database can confirm or refuse.
        """
        try:
            return super().authorize(method, metadata)
        except GRPCError:
            token = bearer(str(metadata.get("authorization", "")))
            if (claims := self._signed(token)) is None or claims.aud[:1] == (PAGES_AUDIENCE,):
                raise
            return Unconfirmed(claims.sub, claims.rpc_creds_type, token=token)

    async def confirmed(self, identity: Identity | None) -> Author:
        """Return the author for the result of `authorize`; UNAUTHENTICATED if its key is void."""
        if isinstance(identity, Unconfirmed):
            identity = await self.identified(identity.token)
            if identity is None:
                raise credentials.void()
        if identity is None:
            raise MachineError("this call needs a key", kind=ErrorKind.UNAUTHENTICATED)
        return author_of(identity)

    def _signed(self, token: str) -> Claims | None:
        """Return the claims of a token that this cloud signed and that was not revoked; None for all others."""
        if not token:
            return None
        try:
            claims = self._signer.verify(token)
        except MachineError:
            return None
        return claims if self._accepts(claims.rpc_creds_type) and claims.jti not in self._revoked else None

    # ---- hooks of Authenticator

    def _accepts(self, type: str) -> bool:  # noqa: A002
        return type in credentials.SOURCES

    def _register(self, item: Credential, digest: str) -> str:
        fingerprint = super()._register(item, digest)
        self._digests[fingerprint] = digest
        return fingerprint

    def _forget(self, fingerprints: Collection[str]) -> None:
        for fingerprint in fingerprints:
            self._digests.pop(fingerprint, None)

    def _identity(self, claims: Claims, fingerprint: str) -> Identity:
        identity = super()._identity(claims, fingerprint)
        return replace(identity, claims={**identity.claims, _CREDENTIAL: self._digests[fingerprint]})


def author_of(identity: Identity | None) -> Author:
    """Return the caller, with the digest of its credential; an anonymous author if there is no identity."""
    if identity is None:
        return Author("", "")
    credential, token = (str(identity.claims.get(name, "")) for name in (_CREDENTIAL, "jti"))
    return Author(identity.kind, identity.entity, credential, token)


async def open_signer(store: Store) -> Signer:
    """Return the key that signs tokens. It is created at the first start and shared by replicas in the database."""

    def stored_key(sql: Sql) -> str:
        row = sql.row("SELECT value FROM settings WHERE name = ?", _SETTING)
        if row is None:
            private_key = Ed25519PrivateKey.generate().private_bytes(
                serialization.Encoding.Raw, serialization.PrivateFormat.Raw, serialization.NoEncryption()
            )
            inserted(sql, "settings", {"name": _SETTING, "value": base64.b64encode(private_key).decode()})
            return base64.b64encode(private_key).decode()
        return str(row["value"])

    private_bytes = base64.b64decode(await store.write(stored_key))
    return Signer(Ed25519PrivateKey.from_private_bytes(private_bytes))
