"""Authentication: configured credentials, tokens issued for them, and the check of every call.

A server without credentials is open. With credentials, every call needs a token, including reflection; only
Authenticate and a health check of the whole server do not. Keys are stored only as keyed digests. A token names the
digest of the key for which it was issued, so removing or changing a key invalidates its tokens at the next call,
without a list of tokens. Running calls continue.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import trio
from grpclib.const import Status
from grpclib.exceptions import GRPCError

from rpc.access.addresses import group_of
from rpc.access.attempts import ADDRESS_FAILURES, Attempts
from rpc.access.credential_types import API_KEY, AUTHENTICATE, CREDENTIAL_TYPES
from rpc.access.tickets import MAX_TICKET, TICKET_LIFE, Ticket, Tickets, new_ticket
from rpc.carrier import Identity, Peer
from rpc.health import CHECK
from schema import ConfigError, MachineError

if TYPE_CHECKING:
    from rpc.access.tokens import Claims, Signer

_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
CACHE: Final = 1024  # maximum number of cached verified tokens
MAX_CREDENTIAL: Final = 4096  # characters of an entity or a secret; generated ones have fewer than 100
PAGES_AUDIENCE: Final = "pages"  # audience of the sessions of the login form
_FINGERPRINT: Final = "key"  # key in Claims.rpc_auth_md
_TICKETS: Final = "tickets"  # the entity under which wrong tickets are counted
_ENTITY: Final = "entity"  # another one: the entity of the caller, if the credential has another


@dataclass(frozen=True, slots=True)
class Credential:
    """Secret that authenticates `entity`: the id of an API key, a host name or a part id.

    `payload` is the secret itself or its `digest_of`, so that the secret need not be stored.
    """

    type: str
    entity: str
    payload: str = field(repr=False)


class Authenticator:
    """Issuer of tokens for credentials, and check of presented tokens. Pass `authorize` to `ServerCore`.

    `audience` are the names of this server; the first name is the issuer. `instance` distinguishes the server from
    other servers of the same host and stays the same after a restart. `configure` may be called at any time.
    """

    def __init__(
        self,
        signer: Signer | None = None,
        *,
        audience: Sequence[str] = ("localhost",),
        instance: str = "",
        credentials: Iterable[Credential] = (),
        attempts: Attempts | None = None,
        clock: Callable[[], float] = trio.current_time,
    ) -> None:
        self._configured_signer = signer
        self.instance = instance
        self._dummy = ""  # compared with the key of an unknown entity, for equal timing
        self._audience = tuple(audience)
        self._attempts = attempts or Attempts()  # by address and entity
        self._addresses = Attempts(failures=ADDRESS_FAILURES)
        self._clock = clock
        self._tickets = Tickets()
        self._revoked: set[str] = set()
        self._cache: dict[str, Identity] = {}
        self._fingerprints: dict[tuple[str, str], frozenset[str]] = {}
        self.configure(credentials)

    def configure(self, credentials: Iterable[Credential]) -> None:
        """Replace all credentials. Without any, the server is open."""
        previous, table = self._fingerprints, self._table(credentials)
        for entity_key, fingerprints in previous.items():
            self._forget(fingerprints - table.get(entity_key, frozenset()))
        self._fingerprints = table
        self._cache.clear()

    def update(self, entities: Collection[str], credentials: Iterable[Credential]) -> None:
        """Replace all credentials of some entities. ValueError for credentials of other entities."""
        table = self._table(credentials)
        for entity_key in [(kind, entity) for entity in entities for kind in CREDENTIAL_TYPES]:
            fingerprints = table.pop(entity_key, frozenset())
            self._forget(self._fingerprints.pop(entity_key, frozenset()) - fingerprints)
            if fingerprints:
                self._fingerprints[entity_key] = fingerprints
        if table:
            raise ValueError(f"there are credentials of entities other than {', '.join(entities)}")
        self._cache = {token: who for token, who in self._cache.items() if who.entity not in entities}

    def _table(self, credentials: Iterable[Credential]) -> dict[tuple[str, str], frozenset[str]]:
        table: dict[tuple[str, str], frozenset[str]] = {}
        for item in credentials:
            if not item.entity or not item.payload:
                raise ValueError(f"a credential of type {item.type} has no entity or no payload")
            entity_key = (item.type, item.entity)
            digest = item.payload if _DIGEST.fullmatch(item.payload) else digest_of(item.payload)
            table[entity_key] = table.get(entity_key, frozenset()) | {self._register(item, digest)}
        if table and not self._dummy:
            self._dummy = self._signer.fingerprint(secrets.token_hex(16))
        return table

    @property
    def enabled(self) -> bool:
        """True if calls need a token."""
        return bool(self._fingerprints)

    def authenticate(self, entity: str, type: str, payload: str, *, peer: Peer, life: int = 0) -> str:  # noqa: A002 - wire name
        """Return a token for valid credentials: without expiry, or for a session of the pages of `life` seconds.

        Takes the same time whether or not the entity exists. Valid credentials are always accepted, whatever the number
        of failures, so that a device with an old key cannot lock out others at its address.

        Raises GRPCError: INVALID_ARGUMENT if a value is missing, too long or of an unknown type; UNAUTHENTICATED if the
        credentials are wrong; RESOURCE_EXHAUSTED if they are wrong after too many failures of this entity from this
        address, or of all entities from this address; UNIMPLEMENTED if the server is open.
        """
        if not self.enabled:
            raise GRPCError(Status.UNIMPLEMENTED, "this server needs no credentials; connect without them")
        if not entity or not type or not payload:
            raise GRPCError(Status.INVALID_ARGUMENT, "entity, type and payload of the credentials must be given")
        if not self._accepts(type):
            raise GRPCError(Status.INVALID_ARGUMENT, f"credentials of type {type[:40]!r} are not accepted here")
        if len(entity) > MAX_CREDENTIAL or len(payload) > MAX_CREDENTIAL:
            text = f"entity and payload of the credentials may have at most {MAX_CREDENTIAL} characters each"
            raise GRPCError(Status.INVALID_ARGUMENT, text)
        presented = self._fingerprint(type, entity, digest_of(payload))  # hashes a presented digest again
        fingerprints = self._fingerprints.get((type, entity), frozenset((self._dummy,)))
        if not _contains(fingerprints, presented):
            raise self._failed(peer, entity)
        return self._issue(entity, type, presented, life=life, pages=bool(life))

    def _issue(self, entity: str, kind: str, fingerprint: str, *, life: int, pages: bool = False, jti: str = "") -> str:
        return self._signer.issue(
            subject=entity,
            audience=(PAGES_AUDIENCE, self.instance) if pages else self._audience,
            issuer=self._audience[0],
            credential=kind,
            metadata={_FINGERPRINT: fingerprint},
            life=life,
            jti=jti,
        )

    async def sign_in(self, entity: str, type: str, payload: str, *, peer: Peer, life: int = 0) -> str:  # noqa: A002
        """Return a token for valid credentials: without expiry, or for a session of the pages of `life` seconds.

        Subclasses may first fetch credentials that are stored elsewhere.
        """
        return self.authenticate(entity, type, payload, peer=peer, life=life)

    # ---- tickets of links that log in, see rpc.access.tickets

    async def new_ticket(self, token: str) -> str:
        """Return a ticket for the API key of `token`, which is a valid token of a program.

        Sessions of the pages, and the tokens for calls that they get, make no tickets, because they would outlive
        their own end. They are recognized by their expiry: tokens of programs have none.

        GRPCError: PERMISSION_DENIED for other tokens, RESOURCE_EXHAUSTED if too many tickets of the key are waiting.
        """
        identity = await self.identified(token)
        if identity is None or identity.claims["exp"] or identity.kind != API_KEY:
            raise GRPCError(Status.PERMISSION_DENIED, "only API keys make links that log in")
        claims, ticket, now = self._signer.verify(token), new_ticket(), self._signer.now()
        await self._keep_ticket(
            Ticket(digest_of(ticket), claims.sub, claims.rpc_auth_md[_FINGERPRINT], now + TICKET_LIFE), now
        )
        return ticket

    async def redeem_ticket(self, ticket: str, *, peer: Peer, life: int) -> str:
        """Return a token for a session of the pages of `life` seconds, as `sign_in` does. A ticket is valid once.

        GRPCError: UNAUTHENTICATED if the ticket is wrong, used or expired, or if its key is void, and
        RESOURCE_EXHAUSTED after too many failures, as in `authenticate`.
        """
        kept = await self._take_ticket(digest_of(ticket)) if 0 < len(ticket) <= MAX_TICKET else None
        if kept is None or self._signer.ended(kept.ends) or not await self._is_in_force(kept):
            raise self._failed(peer, _TICKETS, "the link is not valid: it was used, has expired, or is incomplete")
        return self._issue(kept.entity, API_KEY, kept.fingerprint, life=life, pages=True)

    async def _keep_ticket(self, ticket: Ticket, now: int) -> None:
        """Store a ticket. Subclasses with several processes store it where all of them find it."""
        self._tickets.add(ticket, now)

    async def _take_ticket(self, digest: str) -> Ticket | None:
        """Remove a ticket and return it; None if there is none. Only one of concurrent callers gets it."""
        return self._tickets.take(digest)

    async def _is_in_force(self, ticket: Ticket) -> bool:
        """Return whether the key of a ticket is still valid. Subclasses may first fetch it, as in `sign_in`."""
        return ticket.fingerprint in self._fingerprints.get((API_KEY, ticket.entity), frozenset())

    def token_for(self, caller: Identity, entity: str = "") -> str | None:
        """Return a token for a caller that a trusted server has authenticated; None if there is no such key here.

        It is valid as long as the key. `entity` is that of the key, by default that of the caller.
        """
        fingerprints = self._fingerprints.get((caller.kind, entity or caller.entity))
        if not fingerprints:
            return None
        return self._signer.issue(
            subject=entity or caller.entity,
            audience=self._audience,
            issuer=self._audience[0],
            credential=caller.kind,
            metadata={_FINGERPRINT: min(fingerprints), **({_ENTITY: caller.entity} if entity else {})},
        )

    def token_for_calls(self, session: Identity, life: int) -> str | None:
        """Return a token for calls of the scripts of a page, for the session of the person who is logged in there.

        It is valid for `life` seconds, while the key is, and until the person logs out. None if the key is void.
        """
        fingerprints = self._fingerprints.get((session.kind, session.entity))
        if not fingerprints:
            return None
        jti = str(session.claims["jti"])
        return self._issue(session.entity, session.kind, min(fingerprints), life=life, jti=jti)

    async def sign_out(self, identity: Identity) -> None:
        """Revoke the token of `identity`.

        Subclasses also revoke it where it is stored elsewhere; MachineError if that fails.
        """
        self.revoke(str(identity.claims["jti"]))

    def _failed(
        self, peer: Peer, entity: str, reason: str = "the credentials are wrong; check the id and the key"
    ) -> GRPCError:
        """Count a failure, unless there were too many already, and return the error to raise."""
        address, now = group_of(peer), self._clock()
        address_and_entity = f"{address} {digest_of(entity)}"
        if wait := max(self._attempts.wait(address_and_entity, now), self._addresses.wait(address, now)):
            what = re.split("[;:]", reason, maxsplit=1)[0]
            text = f"{what}, after too many failed attempts; try again in {wait:.0f} seconds"
            return GRPCError(Status.RESOURCE_EXHAUSTED, text)
        self._attempts.failed(address_and_entity, now)
        self._addresses.failed(address, now)
        return GRPCError(Status.UNAUTHENTICATED, reason)

    def authorize(self, method: str, metadata: Mapping[str, str | bytes]) -> Identity | None:
        """Return the caller of a method; None on an open server, for Authenticate, and for health without a token.

        Raises GRPCError: UNAUTHENTICATED without a valid token, INVALID_ARGUMENT for Authenticate with a token.
        """
        if not self.enabled:
            return None
        value = metadata.get("authorization")
        if method == CHECK and value is None:
            return None
        if method == AUTHENTICATE:
            if value is not None:
                raise GRPCError(Status.INVALID_ARGUMENT, "Authenticate must be called without an authorization header")
            return None
        if value is None:
            raise GRPCError(Status.UNAUTHENTICATED, "this server needs an API key; give its id and the key")
        identity = self.identify(bearer(str(value)))
        if identity is None or of_pages(identity):
            raise GRPCError(Status.UNAUTHENTICATED, "the token is not valid, or is no longer valid; authenticate again")
        return identity

    def identify(self, token: str) -> Identity | None:
        """Return the identity of a token; None if it is invalid or revoked, or if the server is open."""
        identity = self._cache.get(token)
        if identity is not None and not self._signer.ended(identity.claims["exp"]):
            return identity
        if not token or not self.enabled:
            return None
        try:
            claims = self._signer.verify(token)
        except MachineError:
            return None
        if not self._valid(claims):
            return None
        identity = self._identity(claims, claims.rpc_auth_md[_FINGERPRINT])
        if len(self._cache) >= CACHE:
            del self._cache[next(iter(self._cache))]
        self._cache[token] = identity
        return identity

    async def identified(self, token: str) -> Identity | None:
        """Return the identity of a token; None if it is invalid or revoked, or if the server is open.

        Subclasses may first fetch credentials that are stored elsewhere, as in `sign_in`.
        """
        return self.identify(token)

    def holds(self, identity: Identity) -> bool:
        """Return whether there is still a key for an identity of this server, and its token is not revoked.

        For connections that carry no tokens, which are to end with the key or the session. A key that was replaced by
        another with the same id is not noticed.
        """
        return (identity.kind, identity.entity) in self._fingerprints and identity.claims.get(
            "jti"
        ) not in self._revoked

    def revoke(self, jti: str) -> None:
        """Revoke one token immediately.

        The revocation lasts until this process ends. If the signing key is kept longer, remove the API key instead.
        """
        self._revoked.add(jti)
        self._cache = {token: who for token, who in self._cache.items() if who.claims.get("jti") != jti}

    @cached_property
    def _signer(self) -> Signer:
        """Signer, created for the first credential, so that an open server does not load 6 MiB of cryptography."""
        from rpc.access.tokens import Signer

        return self._configured_signer or Signer()

    def _valid(self, claims: Claims) -> bool:
        if claims.jti in self._revoked:
            return False
        fingerprints = self._fingerprints.get((claims.rpc_creds_type, claims.sub), frozenset())
        return claims.rpc_auth_md.get(_FINGERPRINT) in fingerprints

    def _accepts(self, type: str) -> bool:  # noqa: A002
        return any(accepted == type for accepted, _ in self._fingerprints)

    def _register(self, item: Credential, digest: str) -> str:
        """Register a credential and return its fingerprint."""
        return self._fingerprint(item.type, item.entity, digest)

    def _forget(self, fingerprints: Collection[str]) -> None:
        """Handle the removal of credentials. Subclasses override this."""

    def _identity(self, claims: Claims, fingerprint: str) -> Identity:
        """Return the identity of valid claims."""
        return Identity(
            claims.rpc_auth_md.get(_ENTITY, claims.sub),
            claims.rpc_creds_type,
            {"jti": claims.jti, "iat": claims.iat, "iss": claims.iss, "aud": claims.aud, "exp": claims.exp},
        )

    def _fingerprint(self, type: str, entity: str, digest: str) -> str:  # noqa: A002
        return self._signer.fingerprint(type, entity, digest)

    def __repr__(self) -> str:
        return f"Authenticator({len(self._fingerprints)} credentials)"


def of_pages(identity: Identity) -> bool:
    """Return True if the identity comes from a session of the pages, which is valid only for pages."""
    return tuple(identity.claims.get("aud", ()))[:1] == (PAGES_AUDIENCE,)


def digest_of(payload: str) -> str:
    """Return the digest under which a secret may be stored. Unsalted, because keys are long and random."""
    return f"sha256:{hashlib.sha256(payload.encode()).hexdigest()}"


def bearer(authorization: str) -> str:
    """Return the token of an authorization header, "" if it has another scheme."""
    scheme, _, token = authorization.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def credentials_of(
    handlers: Iterable[Mapping[str, Any]], *, hosts: Iterable[str] = (), path: str = "auth.handlers"
) -> tuple[list[Credential], list[ConfigError]]:
    """Return the credentials in the `auth.handlers` of a machine document, and the errors in them.

    Invalid handlers are omitted, so do not open a server for a document with errors here.

    The format is `{"type": "api-key", "config": {id: key, ..., "keys": [ids]}}`; with `keys`, only its ids are used.
    The secret types take `{"secret": text}` or `{"secrets": [texts]}` and `entities`, by default `hosts`. Errors never
    show a key.
    """
    credentials: list[Credential] = []
    problems: list[ConfigError] = []
    seen: set[str] = set()
    for index, handler in enumerate(handlers):
        where = f"{path}.{index}"
        kind = handler.get("type")
        try:
            if kind not in CREDENTIAL_TYPES:
                raise ConfigError(
                    f"{where}.type",
                    f"{kind!r} is not a type of credentials",
                    value=kind,
                    remedy=f"use one of {', '.join(CREDENTIAL_TYPES)}",
                )
            if kind in seen:
                raise ConfigError(
                    f"{where}.type",
                    f"a second handler of type {kind}",
                    value=kind,
                    remedy="put all keys in one handler",
                )
            config = handler.get("config")
            if not isinstance(config, Mapping):
                raise ConfigError(f"{where}.config", "this is not an object", remedy="write the keys as {id: key}")
            handler_credentials = (
                _api_keys(config, where) if kind == API_KEY else _secrets(str(kind), config, tuple(hosts), where)
            )
        except ConfigError as error:
            problems.append(error)
            continue
        seen.add(str(kind))
        credentials += handler_credentials
    return credentials, problems


def _api_keys(config: Mapping[str, Any], where: str) -> list[Credential]:
    ids = config.get("keys", [name for name in config if name != "keys"])
    if not isinstance(ids, list) or not all(isinstance(name, str) and name for name in ids):
        raise ConfigError(f"{where}.config.keys", "this is not a list of key ids", remedy='write ["id", ...]')
    if not ids:
        raise ConfigError(
            f"{where}.config", "no key is configured", remedy="add one, or remove the handler to open the server"
        )
    for name in ids:
        if not isinstance(config.get(name), str) or not config[name]:
            raise ConfigError(f"{where}.config.{name}", "the key of this id is missing", remedy="write it as a text")
    return [Credential(API_KEY, name, config[name]) for name in ids]


def _secrets(kind: str, config: Mapping[str, Any], hosts: tuple[str, ...], where: str) -> list[Credential]:
    payloads = config.get("secrets", [config["secret"]] if "secret" in config else [])
    entities = config.get("entities", list(hosts))
    for name, value in (("secrets", payloads), ("entities", entities)):
        if not isinstance(value, list) or not value or not all(isinstance(item, str) and item for item in value):
            raise ConfigError(f"{where}.config.{name}", "this is not a list of texts", remedy='write ["text", ...]')
    return [Credential(kind, entity, payload) for entity in entities for payload in payloads]


def _contains(fingerprints: Iterable[str], presented: str) -> bool:
    contained = False
    for fingerprint in fingerprints:
        contained |= hmac.compare_digest(fingerprint, presented)
    return contained
