"""Which values are secret, judged by the key they stand under, and how to show a document without them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

MASK: Final = "***"
"""What is shown instead of a secret. It tells nothing about the value, not even its length."""

_SECRET_WORDS: Final = frozenset(
    {
        "apikey",
        "authorization",
        "bearer",
        "credential",
        "credentials",
        "passcode",
        "passphrase",
        "passwd",
        "password",
        "passwords",
        "payload",
        "private",
        "psk",
        "pwd",
        "secret",
        "secrets",
        "token",
        "tokens",
    }
)
_HARMLESS_KEYS: Final = frozenset(
    {"maintenance_allowed_key", "public_key", "public_keys", "tls_key_file", "key_file", "id", "type"}
)
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_URL_PASSWORD = re.compile(r"(?P<before>[a-zA-Z][a-zA-Z0-9+.-]*://[^/\s:@\"']*:)[^/\s\"']+(?=@)")


_ASSIGNED = re.compile(r"(?P<key>[A-Za-z][\w.-]*)=(?P<value>[^\s&\"']+)")
_BEARER = re.compile(r"\b(?P<before>(?:Bearer|Basic) +)[^\s\"',]+")


def is_secret(key: str) -> bool:
    """True if a value under `key` must not be shown: `secret`, `api_key`, `wifiPassword`, `MY_TOKEN`, ..."""
    if key.lower() in _HARMLESS_KEYS:
        return False
    words = [word.lower() for word in _WORDS.findall(key)]
    if not words:
        return False
    # A lone `keys` lists the ids of keys, or public ones.
    return words[-1] == "key" or words[1:][-1:] == ["keys"] or not _SECRET_WORDS.isdisjoint(words)


def is_secret_path(path: Sequence[str]) -> bool:
    """True if the value at `path`, or anything it lies in, is secret.

    `auth.handlers.<n>.config` maps key ids to keys: there the value is secret whatever its key is called.
    """
    if any(is_secret(part) for part in path):
        return True
    for start in range(len(path) - 3):
        if path[start] == "handlers" and path[start + 2] == "config" and path[start + 3] != "keys":
            return True
    return False


def mask_text(text: str) -> str:
    """`text` with what can be told to be secret replaced: passwords of URLs, `api_key=...`, `Bearer ...`."""
    text = _URL_PASSWORD.sub(lambda match: f"{match['before']}{MASK}", text)
    text = _BEARER.sub(lambda match: f"{match['before']}{MASK}", text)
    return _ASSIGNED.sub(lambda match: f"{match['key']}={MASK}" if is_secret(match["key"]) else match[0], text)


def masked(value: Any, path: Sequence[str] = ()) -> Any:
    """A copy of a JSON-like value in which every secret is replaced by MASK; empty values and booleans are kept."""
    if isinstance(value, Mapping):
        return {key: masked(item, (*path, str(key))) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        items = [masked(item, (*path, str(index))) for index, item in enumerate(value)]
        return tuple(items) if isinstance(value, tuple) else items
    if value is None or isinstance(value, bool) or value == "":
        return value
    if path and is_secret_path(path):
        return MASK
    return mask_text(value) if isinstance(value, str) else value
