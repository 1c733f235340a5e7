"""Who may call: credentials of the configuration, tokens for them, and the check of every call.

Without credentials the server is open. With them, everything but Authenticate needs a token, reflection included.
Keys are kept as keyed digests only. A token names the digest of the key it was issued for, so removing or changing a
key voids its tokens at the next call, without a list of them; calls that run go on.
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

from rpc.addresses import group_of
from rpc.attempts import ADDRESS_FAILURES, Attempts
from rpc.carrier import Identity, Peer
from rpc.health import CHECK
from schema.errors import ConfigError, MachineError

if TYPE_CHECKING:
    from rpc.tokens import Claims, Signer

_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
AUTHENTICATE: Final = "/proto.rpc.v1.AuthService/Authenticate"
API_KEY: Final = "api-key"
LOCATION_SECRET: Final = "robot-location-secret"
PART_SECRET: Final = "robot-secret"
TYPES: Final = (API_KEY, LOCATION_SECRET, PART_SECRET)
CACHE: Final = 1024  # verified tokens
MAX_CREDENTIAL: Final = 4096  # characters of an entity or a secret; ours have less than 100
PAGES: Final = "pages"  # audience of a session that one signs in to by the form
_FINGERPRINT: Final = "key"  # in the claims' rpc_auth_md


@dataclass(frozen=True, slots=True)
class Credential:
    """One way to prove to be `entity`: the id of an API key, a host name or a part id.

    `payload` is the secret or, so that it need not be written anywhere, its `digest_of`.
    """

    type: str
    entity: str
    payload: str = field(repr=False)


class Authenticator:
    """Issues tokens for credentials and finds out who presents one. `authorize` is what `ServerCore` wants.

    `audience` are the names of this server; the first one is the issuer. `instance` tells it from other servers of the
    same host, after a restart too. `configure` may be called at any time.
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
        self._given = signer
        self.instance = instance
        self._dummy = ""  # what the key of an unknown entity is compared with, so that it takes as long as a known one
        self._audience = tuple(audience)
        self._attempts = attempts or Attempts()  # of an entity from an address
        self._addresses = Attempts(failures=ADDRESS_FAILURES)
        self._clock = clock
        self._revoked: set[str] = set()
        self._cache: dict[str, Identity] = {}
        self._fingerprints: dict[tuple[str, str], frozenset[str]] = {}
        self.configure(credentials)

    def configure(self, credentials: Iterable[Credential]) -> None:
        """Replace all credentials at once. None at all opens the server."""
        former, table = self._fingerprints, self._table(credentials)
        for where, known in former.items():
            self._forget(known - table.get(where, frozenset()))
        self._fingerprints = table
        self._cache.clear()

    def update(self, entities: Collection[str], credentials: Iterable[Credential]) -> None:
        """Replace the credentials of some entities, of whatever type; those of all others stay."""
        table = self._table(credentials)
        for where in [(kind, entity) for entity in entities for kind in TYPES]:
            now = table.pop(where, frozenset())
            self._forget(self._fingerprints.pop(where, frozenset()) - now)
            if now:
                self._fingerprints[where] = now
        if table:
            raise ValueError(f"credentials of others than {', '.join(entities)}")
        self._cache = {token: who for token, who in self._cache.items() if who.entity not in entities}

    def _table(self, credentials: Iterable[Credential]) -> dict[tuple[str, str], frozenset[str]]:
        table: dict[tuple[str, str], frozenset[str]] = {}
        for item in credentials:
            if not item.entity or not item.payload:
                raise ValueError(f"a credential of type {item.type} has no entity or no payload")
            where = (item.type, item.entity)
            digest = item.payload if _DIGEST.fullmatch(item.payload) else digest_of(item.payload)
            table[where] = table.get(where, frozenset()) | {self._known(item, digest)}
        if table and not self._dummy:
            self._dummy = self._signer.fingerprint(secrets.token_hex(16))
        return table

    @property
    def enabled(self) -> bool:
        """Whether calls need a token."""
        return bool(self._fingerprints)

    def authenticate(self, entity: str, type: str, payload: str, *, peer: Peer, life: int = 0) -> str:  # noqa: A002 - the word of the wire
        """A token for whoever shows a credential: for ever, or a session of the pages for `life` seconds.

        Takes the same time whether or not the entity exists. Right credentials are always accepted: they are compared
        first, which costs some microseconds, so that a device with an old key locks out nobody else at its address.

        Raises GRPCError: INVALID_ARGUMENT if something is missing or too long, UNAUTHENTICATED if it is wrong,
        RESOURCE_EXHAUSTED if it is wrong after too many failures of this entity from this address, or of all entities
        from there; UNIMPLEMENTED if the server is open.
        """
        if not self.enabled:
            raise GRPCError(Status.UNIMPLEMENTED, "this server asks for no credentials; connect without")
        if not entity or not type or not payload:
            raise GRPCError(Status.INVALID_ARGUMENT, "entity, type and payload of the credentials must be given")
        if not self._accepts(type):
            raise GRPCError(Status.INVALID_ARGUMENT, f"credentials of type {type[:40]!r} are not accepted here")
        if len(entity) > MAX_CREDENTIAL or len(payload) > MAX_CREDENTIAL:
            text = f"entity and payload of the credentials may have {MAX_CREDENTIAL} characters each"
            raise GRPCError(Status.INVALID_ARGUMENT, text)
        shown = self._fingerprint(type, entity, digest_of(payload))  # of a digest too: to know one is no proof
        known = self._fingerprints.get((type, entity), frozenset((self._dummy,)))
        if not _contains(known, shown):
            raise self._failed(peer, entity)
        return self._signer.issue(
            subject=entity,
            audience=(PAGES, self.instance) if life else self._audience,
            issuer=self._audience[0],
            credential=type,
            metadata={_FINGERPRINT: shown},
            life=life,
        )

    async def sign_in(self, entity: str, type: str, payload: str, *, peer: Peer, life: int = 0) -> str:  # noqa: A002
        """As `authenticate`, for those who can wait: where credentials are kept elsewhere, they are asked for first."""
        return self.authenticate(entity, type, payload, peer=peer, life=life)

    async def sign_out(self, identity: Identity) -> None:
        """Void the token that `identity` was found by. Where others know it too, they are told: MachineError if not."""
        self.revoke(str(identity.claims["jti"]))

    def _failed(self, peer: Peer, entity: str) -> GRPCError:
        """Count a failure, unless it is one of too many; what to answer."""
        address, now = group_of(peer), self._clock()
        both = f"{address} {digest_of(entity)}"
        if wait := max(self._attempts.wait(both, now), self._addresses.wait(address, now)):
            text = f"the credentials are wrong, after too many failed attempts; try again in {wait:.0f} seconds"
            return GRPCError(Status.RESOURCE_EXHAUSTED, text)
        self._attempts.failed(both, now)
        self._addresses.failed(address, now)
        return GRPCError(Status.UNAUTHENTICATED, "the credentials are wrong; check the id and the key")

    def authorize(self, method: str, metadata: Mapping[str, str | bytes]) -> Identity | None:
        """Who makes a call; None on an open server, for Authenticate, and for a question for its health.

        Raises GRPCError UNAUTHENTICATED.
        """
        if not self.enabled:
            return None
        value = metadata.get("authorization")
        if method == CHECK and value is None:
            return None
        if method == AUTHENTICATE:
            if value is not None:
                raise GRPCError(Status.INVALID_ARGUMENT, "Authenticate must come without an authorization header")
            return None
        if value is None:
            raise GRPCError(Status.UNAUTHENTICATED, "this server needs an API key; give its id and the key")
        identity = self.identify(bearer(str(value)))
        if identity is None or of_pages(identity):
            raise GRPCError(Status.UNAUTHENTICATED, "the token is not valid here (any more); authenticate again")
        return identity

    def identify(self, token: str) -> Identity | None:
        """Whom a token stands for; None if it is not (or no longer) valid, and on an open server."""
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
        """As `identify`, for those who can wait, like `sign_in`."""
        return self.identify(token)

    def revoke(self, jti: str) -> None:
        """Void one token now.

        Remembered as long as this process; with a signing key in a file, remove the key itself.
        """
        self._revoked.add(jti)
        self._cache = {token: who for token, who in self._cache.items() if who.claims.get("jti") != jti}

    @cached_property
    def _signer(self) -> Signer:
        """Made with the first key: an open server, which pages ask too, does without 6 MiB of cryptography."""
        from rpc.tokens import Signer

        return self._given or Signer()

    def _valid(self, claims: Claims) -> bool:
        if claims.jti in self._revoked:
            return False
        known = self._fingerprints.get((claims.rpc_creds_type, claims.sub), frozenset())
        return claims.rpc_auth_md.get(_FINGERPRINT) in known

    def _accepts(self, type: str) -> bool:  # noqa: A002
        return any(known == type for known, _ in self._fingerprints)

    def _known(self, item: Credential, digest: str) -> str:
        """Take a credential in; its fingerprint."""
        return self._fingerprint(item.type, item.entity, digest)

    def _forget(self, fingerprints: Collection[str]) -> None:
        """These credentials are void."""

    def _identity(self, claims: Claims, fingerprint: str) -> Identity:
        """Whom valid claims stand for."""
        return Identity(
            claims.sub,
            claims.rpc_creds_type,
            {"jti": claims.jti, "iat": claims.iat, "iss": claims.iss, "aud": claims.aud, "exp": claims.exp},
        )

    def _fingerprint(self, type: str, entity: str, digest: str) -> str:  # noqa: A002
        return self._signer.fingerprint(type, entity, digest)

    def __repr__(self) -> str:
        return f"Authenticator({len(self._fingerprints)} credentials)"


def of_pages(identity: Identity) -> bool:
    """Whether somebody was identified by a session of the pages, which is good for nothing but these."""
    return tuple(identity.claims.get("aud", ()))[:1] == (PAGES,)


def digest_of(payload: str) -> str:
    """What a secret may be kept as. Keys are long and random: nobody finds one by trying, so no salt is needed."""
    return f"sha256:{hashlib.sha256(payload.encode()).hexdigest()}"


def bearer(authorization: str) -> str:
    """The token of an authorization header, "" if it is of another scheme."""
    scheme, _, token = authorization.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def credentials_of(
    handlers: Iterable[Mapping[str, Any]], *, hosts: Iterable[str] = (), path: str = "auth.handlers"
) -> tuple[list[Credential], list[ConfigError]]:
    """What the `auth.handlers` of a machine document configure, and what is wrong with them; a bad one is left out,
    so never open a server for a document that has problems here.

    `{"type": "api-key", "config": {id: key, ..., "keys": [ids]}}`; with `keys` only the ids in it count. The secret
    types take `{"secret": text}` or `{"secrets": [texts]}` and `entities`, by default `hosts`. Errors never show a
    key.
    """
    credentials: list[Credential] = []
    problems: list[ConfigError] = []
    seen: set[str] = set()
    for index, handler in enumerate(handlers):
        where = f"{path}.{index}"
        kind = handler.get("type")
        try:
            if kind not in TYPES:
                raise ConfigError(
                    f"{where}.type",
                    f"{kind!r} is no type of credentials",
                    value=kind,
                    remedy=f"use one of {', '.join(TYPES)}",
                )
            if kind in seen:
                raise ConfigError(
                    f"{where}.type", f"a second handler of type {kind}", value=kind, remedy="put all keys in one"
                )
            config = handler.get("config")
            if not isinstance(config, Mapping):
                raise ConfigError(f"{where}.config", "an object is missing", remedy="write the keys as {id: key}")
            found = _api_keys(config, where) if kind == API_KEY else _secrets(str(kind), config, tuple(hosts), where)
        except ConfigError as error:
            problems.append(error)
            continue
        seen.add(str(kind))
        credentials += found
    return credentials, problems


def _api_keys(config: Mapping[str, Any], where: str) -> list[Credential]:
    ids = config.get("keys", [name for name in config if name != "keys"])
    if not isinstance(ids, list) or not all(isinstance(name, str) and name for name in ids):
        raise ConfigError(f"{where}.config.keys", "this is no list of key ids", remedy='write ["id", ...]')
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
            raise ConfigError(f"{where}.config.{name}", "texts are missing here", remedy="write a list of texts")
    return [Credential(kind, entity, payload) for entity in entities for payload in payloads]


def _contains(known: Iterable[str], shown: str) -> bool:
    found = False
    for item in known:
        found |= hmac.compare_digest(item, shown)
    return found
