"""Authentication of clients."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from schema.document.section import Section
from schema.errors import ConfigError
from schema.secrets import masked

API_KEY = "api-key"


class AuthHandler(Section, frozen=True, kw_only=True):
    """Authentication method for clients."""

    type: str
    """`api-key`, the only type that a document may set."""
    config: dict[str, Any] = msgspec.field(default_factory=dict)
    """Keys by key id: `{"<key id>": "<key>"}`; the member `keys` may list the ids."""

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
        """Keys by key id."""
        return {key_id: key for key_id, key in self.config.items() if key_id != "keys"}


_NOT_BUILT: Final = {
    "tls_auth_entities": "logging in with client certificates",
    "external_auth_config": "tokens of another issuer",
}
"""Unsupported keys of the reference that would admit more clients, and the missing feature of each."""


class ExternalAuth(Section, frozen=True, kw_only=True):
    """Tokens of another issuer, verified with its public keys."""

    jwks: dict[str, Any] = msgspec.field(default_factory=dict)
    """JSON Web Key Set; RSA keys for RS256, RS384 and RS512."""


class Auth(Section, frozen=True, kw_only=True):
    """Authentication of clients; without handlers, everyone who can reach the machine may use it."""

    handlers: tuple[AuthHandler, ...] = ()
    """Authentication methods, at most one of each type."""
    operators: tuple[str, ...] = ()
    """Ids of keys that may not open shells and tunnels or copy files. The cloud adds those of operators."""
    operator_shells: bool = False
    """Allow operators to open shells and tunnels and to copy files, which is as much as an owner may do."""
    tls_auth_entities: tuple[str, ...] = ()
    """Names in client certificates to admit. Not supported: an error."""
    external_auth_config: ExternalAuth | None = None
    """Tokens of another issuer. Not supported: an error."""

    def __post_init__(self) -> None:
        for key, feature in _NOT_BUILT.items():
            if getattr(self, key):
                raise ConfigError(key, f"not built: {feature}", remedy="remove the key, and let clients use API keys")
        kinds = [handler.type for handler in self.handlers]
        for index, kind in enumerate(kinds):
            if kind in kinds[:index]:
                first = kinds.index(kind)
                raise ConfigError(
                    f"handlers.{index}",
                    f"is a second handler of type {kind!r}, after handlers.{first}",
                    remedy="merge them",
                )

    @property
    def api_keys(self) -> dict[str, str]:
        """Keys of all handlers by key id."""
        return {key_id: key for handler in self.handlers for key_id, key in handler.keys.items()}
