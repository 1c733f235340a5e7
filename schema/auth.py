"""Who may use the machine."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from schema.errors import ConfigError
from schema.secrets import masked
from schema.section import Section

API_KEY = "api-key"


class AuthHandler(Section, frozen=True, kw_only=True):
    """One way to prove who one is."""

    type: str
    """`api-key`, the only kind that a document may set."""
    config: dict[str, Any] = msgspec.field(default_factory=dict)
    """Key ids and their keys: `{"<key id>": "<key>"}`; the member `keys` may list the ids."""

    def __post_init__(self) -> None:
        if self.type != API_KEY:
            raise ConfigError(
                "type", f"{self.type!r} cannot be configured", value=self.type, remedy=f"write {API_KEY!r}"
            )
        for key_id, key in self.config.items():
            if key_id != "keys" and not (isinstance(key, str) and key):
                raise ConfigError(f"config.{key_id}", "is not a key", remedy="write the key as a string")

    def __repr__(self) -> str:
        return f"AuthHandler(type={self.type!r}, config={masked(self.config, ('handlers', '', 'config'))!r})"

    @property
    def keys(self) -> dict[str, str]:
        """Key by key id."""
        return {key_id: key for key_id, key in self.config.items() if key_id != "keys"}


_NOT_BUILT: Final = {
    "tls_auth_entities": "signing in with client certificates",
    "external_auth_config": "tokens of another issuer",
}
"""Keys of the reference that would let more clients in, and the feature that each needs."""


class ExternalAuth(Section, frozen=True, kw_only=True):
    """Tokens of somebody else's, checked by that party's public keys."""

    jwks: dict[str, Any] = msgspec.field(default_factory=dict)
    """JSON Web Key Set; RSA keys for RS256, RS384 and RS512."""


class Auth(Section, frozen=True, kw_only=True):
    """Who may use the machine; without handlers everybody who reaches it may."""

    handlers: tuple[AuthHandler, ...] = ()
    """Ways to prove who one is, at most one of a kind."""
    tls_auth_entities: tuple[str, ...] = ()
    """Names in client certificates that are let in. Not built: refused."""
    external_auth_config: ExternalAuth | None = None
    """Tokens of somebody else's. Not built: refused."""

    def __post_init__(self) -> None:
        for key, feature in _NOT_BUILT.items():
            if getattr(self, key):
                raise ConfigError(key, f"not built: {feature}", remedy="remove the key, and let clients use API keys")
        kinds = [handler.type for handler in self.handlers]
        for index, kind in enumerate(kinds):
            if kind in kinds[:index]:
                first = kinds.index(kind)
                raise ConfigError(
                    f"handlers.{index}", f"is a second {kind!r} handler beside handlers.{first}", remedy="merge the two"
                )

    @property
    def api_keys(self) -> dict[str, str]:
        """Key by key id, of all handlers."""
        return {key_id: key for handler in self.handlers for key_id, key in handler.keys.items()}
