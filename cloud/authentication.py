"""Who calls the cloud: keys and parts' secrets, looked up in memory, kept true by the database's events.

What memory does not know is asked of the database once before it is refused: a key may have been made at another
replica a moment ago. Memory may also know a key for a moment that was rotated or deleted at another replica; such a
call ends where its role is looked up (cloud.credentials.require_in_force).
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

from cloud import credentials
from cloud.author import Author
from cloud.store.events import EVERY, Events, Listener
from cloud.store.sql import Sql, Store, inserted
from rpc.auth import PAGES, Authenticator, Credential, bearer
from rpc.carrier import Identity, Peer
from rpc.tokens import Claims, Signer
from schema.errors import ErrorKind, MachineError

RETRY: Final = 1.0  # seconds until the keys are read again from a database that is away
PAUSE: Final = 0.02  # seconds between two looks for unknown keys: however many ask, they share 50 queries a second
MAX_ASKED: Final = 4096  # unknown keys that wait for one look; more are refused unseen
MAX_ID: Final = 64  # characters; the cloud's ids are shorter
_CREDENTIAL: Final = "credential"  # among the claims of an identity: the digest of what it has shown
_SETTING: Final = "signing key"


@dataclass(frozen=True, slots=True)
class Unconfirmed(Identity):
    """Whom a token names that this cloud has signed, for a key that is not known here (yet, or any more)."""

    token: str = field(default="", repr=False)


class _Round:
    """One reading of the database, and who waits for it."""

    def __init__(self) -> None:
        self.asked: set[str] = set()
        self.done = trio.Event()


class CloudAuthenticator(Authenticator):
    """As Authenticator, with what the database knows. A key that was rotated or deleted is void at the next call."""

    def __init__(self, signer: Signer, store: Store, events: Events, names: tuple[str, ...] = ("localhost",)) -> None:
        self._digests: dict[str, str] = {}  # by fingerprint
        super().__init__(signer, audience=names, instance=signer.instance)
        self._store = store
        self._events = events
        self._news = Listener(EVERY)
        self._round = _Round()

    @property
    def enabled(self) -> bool:
        """Nobody calls the cloud without a key."""
        return True

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Follow the database until cancelled; ready when all keys are known.

        While the database is away those count that were known last.
        """
        with self._events.listening("key", also=["secret"]) as self._news:
            self.configure(await self._store.read(credentials.every))
            task_status.started()
            changed: dict[str, None] = {}  # what is to be read
            while True:
                with trio.move_on_after(RETRY if changed else math.inf):
                    changed.update(dict.fromkeys(await self._news.all()))
                asked, self._round = self._round, _Round()
                if await self._read(changed):
                    changed = {}
                asked.done.set()
                if asked.asked:
                    await trio.sleep(PAUSE)

    async def _read(self, entities: Collection[str]) -> bool:
        """Take what the database knows of these; False if it is away."""
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
        """Return when everything that the database knows now is known here; at once if it is away."""
        await self._look(EVERY)

    async def _look(self, entity: str) -> None:
        """Ask the database for an entity. Many who ask at once share a query, and too many get none."""
        asked = self._round
        if len(entity) > MAX_ID or (len(asked.asked) >= MAX_ASKED and entity not in asked.asked):
            return
        asked.asked.add(entity)
        self._news.tell(entity)
        await asked.done.wait()

    # ---- who calls

    async def sign_in(self, entity: str, type: str, payload: str, *, peer: Peer, life: int = 0) -> str:  # noqa: A002 - the word of the wire
        """As Authenticator, by what the database knows now."""
        if entity and payload and self._accepts(type):
            await self._look(entity)
        return self.authenticate(entity, type, payload, peer=peer, life=life)

    async def sign_out(self, identity: Identity) -> None:
        """As Authenticator: the token is void at the next call, at every replica and after a restart."""
        jti, ends = str(identity.claims["jti"]), int(identity.claims["exp"])
        await self._store.write(lambda sql: credentials.sign_out(sql, identity.entity, jti, ends))
        await super().sign_out(identity)

    async def identified(self, token: str) -> Identity | None:
        """As Authenticator. The database is asked before a token of this cloud is refused."""
        known = self.identify(token)
        if known is None and (claims := self._signed(token)) is not None:
            await self._look(claims.sub)
            known = self.identify(token)
        return known

    def authorize(self, method: str, metadata: Mapping[str, str | bytes]) -> Identity | None:
        """As Authenticator; Unconfirmed instead of refusing a token for which the database is to be asked first."""
        try:
            return super().authorize(method, metadata)
        except GRPCError:
            token = bearer(str(metadata.get("authorization", "")))
            if (claims := self._signed(token)) is None or claims.aud[:1] == (PAGES,):
                raise
            return Unconfirmed(claims.sub, claims.rpc_creds_type, token=token)

    async def confirmed(self, identity: Identity | None) -> Author:
        """The author for an identity that `authorize` gave; UNAUTHENTICATED if its key is void."""
        if isinstance(identity, Unconfirmed):
            identity = await self.identified(identity.token)
            if identity is None:
                raise credentials.void()
        if identity is None:
            raise MachineError("this call needs a key", kind=ErrorKind.UNAUTHENTICATED)
        return author_of(identity)

    def _signed(self, token: str) -> Claims | None:
        """The claims of a token of this cloud that was not revoked by itself; None for all others."""
        if not token:
            return None
        try:
            claims = self._signer.verify(token)
        except MachineError:
            return None
        return claims if self._accepts(claims.rpc_creds_type) and claims.jti not in self._revoked else None

    # ---- what Authenticator asks

    def _accepts(self, type: str) -> bool:  # noqa: A002
        return type in credentials.SOURCES

    def _known(self, item: Credential, digest: str) -> str:
        fingerprint = super()._known(item, digest)
        self._digests[fingerprint] = digest
        return fingerprint

    def _forget(self, fingerprints: Collection[str]) -> None:
        for one in fingerprints:
            self._digests.pop(one, None)

    def _identity(self, claims: Claims, fingerprint: str) -> Identity:
        made = super()._identity(claims, fingerprint)
        return replace(made, claims={**made.claims, _CREDENTIAL: self._digests[fingerprint]})


def author_of(identity: Identity | None) -> Author:
    """Who asks, with the digest of the credential that was shown; nobody without an identity."""
    if identity is None:
        return Author("", "")
    shown, token = (str(identity.claims.get(name, "")) for name in (_CREDENTIAL, "jti"))
    return Author(identity.kind, identity.entity, shown, token)


async def open_signer(store: Store) -> Signer:
    """The key that signs tokens, made at the first start and kept in the database: replicas share it."""

    def kept(sql: Sql) -> str:
        row = sql.row("SELECT value FROM settings WHERE name = ?", _SETTING)
        if row is None:
            made = Ed25519PrivateKey.generate().private_bytes(
                serialization.Encoding.Raw, serialization.PrivateFormat.Raw, serialization.NoEncryption()
            )
            inserted(sql, "settings", {"name": _SETTING, "value": base64.b64encode(made).decode()})
            return base64.b64encode(made).decode()
        return str(row["value"])

    raw = base64.b64decode(await store.write(kept))
    return Signer(Ed25519PrivateKey.from_private_bytes(raw))
