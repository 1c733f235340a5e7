"""Detection of secret values by their keys, and masking of secrets in documents and texts."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

MASK: Final = "***"
"""Text shown instead of a secret. It reveals nothing about the value, not even its length."""

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
_ENVIRONMENTS: Final = ("env", "viam_server_env")  # all values in them may be secret, whatever their names

# Each expression takes time proportional to the text, whatever it contains: a run of characters is entered only at its
# beginning (look-behind) and never given back (possessive quantifiers). tests/unit/texts tries all of them.
_RUN = re.compile(r"[^\s\"']++")
_USER = re.compile(r"[^/:@]*+:")  # up to the password of a URL
_PORT = re.compile(r"\d++(?:/|\Z)")  # a password may contain an unescaped slash; digits before a slash are a port
_ASSIGNED = re.compile(r"(?<![\w.-])(?P<key>[\w.-]++)=(?P<value>[^\s&\"']++)", re.ASCII)
_STRING = r"(?:\"(?:[^\"\\]++|\\(?:.|\Z))*+(?:\"|\Z)|'(?:[^'\\]++|\\(?:.|\Z))*+(?:'|\Z))"
_QUOTED = re.compile(
    rf"(?P<before>(?P<q>[\"'])(?P<key>[\w.-]++)(?P=q)\s*+:\s*+)(?P<value>{_STRING})", re.DOTALL | re.ASCII
)  # "api_key": "...", also in Python syntax
_PAIRED = re.compile(
    r"(?P<before>(?P<q>[\"'])(?:name|key)(?P=q)\s*+:\s*+(?P<n>[\"'])(?P<key>[\w.-]++)(?P=n)\s*+,\s*+"
    rf"(?P=q)value(?P=q)\s*+:\s*+)(?P<value>{_STRING})",
    re.DOTALL | re.ASCII,
)
_BEARER = re.compile(r"\b(?P<before>(?:[Bb]earer|Basic) ++)[^\s\"',]++")
_SHAPED = re.compile(
    r"(?<![\w-])(?=[\w-]*?\beyJ[\w-]{5})[\w-]++\.[\w-]++\.[\w-]*+"  # JSON Web Token, RFC 7519
    r"|(?<=PRIVATE KEY-----)[^-]++(?=-----END|\Z)",  # RFC 7468
    re.ASCII,
)
_LEAVES: Final = (str, int, float, bool, type(None))
PLAIN: Final = frozenset({int, float, bool, type(None)})
"""Types of values that cannot contain text. Checking them first makes walking large lists fast."""

_LONGEST_KEY: Final = 200  # characters of a key that are looked at, its last ones
_AHEAD: Final = 8192  # characters after a cut that are masked, too: longer than keys and tokens
_SHORTEST: Final = 6  # characters of a value that is masked in texts; shorter values occur in too many words
_MOST: Final = 1000  # values that are masked in texts


@functools.lru_cache(4096)
def is_secret(key: str) -> bool:
    """Return True if a value under `key` must not be shown: `secret`, `api_key`, `wifiPassword`, `MY_TOKEN`, ..."""
    if key.lower() in _HARMLESS_KEYS:
        return False
    words = [word.lower() for word in _WORDS.findall(key)]
    if not words:
        return False
    # `keys` alone lists ids of keys, or public keys.
    return words[-1] == "key" or words[1:][-1:] == ["keys"] or not _SECRET_WORDS.isdisjoint(words)


def is_secret_path(path: Sequence[str]) -> bool:
    """Return True if the value at `path`, or a value that contains it, is secret.

    `auth.handlers.<n>.config` maps key ids to keys, so all of its values are secret except `keys`.
    """
    if any(is_secret(part) for part in path):
        return True
    for start in range(len(path) - 3):
        if path[start] == "handlers" and path[start + 2] == "config" and path[start + 3] != "keys":
            return True
    return False


def is_private_path(path: Sequence[str]) -> bool:
    """Return True if the value at `path` must not be shown.

    This includes secrets, environment variables, and the variables of fragments, which may be secret.
    """
    fragment_variable = path[0] == "fragments" and "variables" in path[1:-1] if path else False
    return fragment_variable or any(name in path[:-1] for name in _ENVIRONMENTS) or is_secret_path(path)


def is_secret_pair(value: Mapping[Any, Any]) -> bool:
    """Return True if `value["value"]` is secret because of the other members of the object.

    Examples are `{"name": "API_KEY", "value": ...}` and `{"type": "webhook", "value": URL}`, because knowing the URL of
    a webhook is enough to call it.
    """
    if "value" not in value:
        return False
    name = value.get("name", value.get("key"))
    return (isinstance(name, str) and is_secret(name)) or value.get("type") == "webhook"


def origin_of(url: str) -> str:
    """Return scheme, host and port of a URL, which may be logged, such as `https://example.com`; otherwise MASK."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port is not None else ""
    except ValueError:
        return MASK
    host = f"[{parts.hostname}]" if parts.hostname and ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}{port}" if parts.scheme and host else MASK


def mask_text(text: str) -> str:
    """Mask recognizable secrets in `text`: passwords in URLs, `api_key=...`, `Bearer ...`, and JSON members.

    Takes time proportional to the length of `text`. Use `shortened` for text of strangers on an event loop.
    """
    if "://" in text and "@" in text:
        text = _RUN.sub(_mask_password, text)
    if "earer " in text or "Basic " in text:
        text = _BEARER.sub(_keep_before, text)
    if "=" in text:
        text = _ASSIGNED.sub(
            lambda match: f"{match['key']}={MASK}" if _is_secret_name(match["key"]) else match[0], text
        )
    if ":" in text:
        text = _PAIRED.sub(_mask_quoted, _QUOTED.sub(_mask_quoted, text))
    return _SHAPED.sub(MASK, text) if "eyJ" in text or "PRIVATE KEY" in text else text


def shortened(text: str, most: int, mask: Callable[[str], str] = mask_text) -> str:
    """Mask the secrets at the beginning of `text` and return at most `most` characters, followed by `…` if it was cut.

    Some more characters are looked at, so that a secret at the cut is recognized as a whole.
    """
    whole = len(text) <= most
    masked_start = mask(text if whole else text[: most + min(most, _AHEAD)])
    return masked_start if whole else masked_start[:most] + "…"


def _is_secret_name(key: str) -> bool:
    return is_secret(key[-_LONGEST_KEY:])


def _password_in(run: str) -> tuple[int, int] | None:
    """Return where the password of the first URL with one begins and ends, in a text without spaces and quotes."""
    end = run.rfind("@")
    start = run.find("://")
    while 0 <= start < end:
        user = _USER.match(run, start + 3) if start else None
        if user is not None and user.end() < end and not _PORT.match(run, user.end()):
            return user.end(), end
        start = run.find("://", start + 3)
    return None


def _mask_password(match: re.Match[str]) -> str:
    run = match[0]
    place = _password_in(run)
    return run if place is None else f"{run[: place[0]]}{MASK}{run[place[1] :]}"


def _keep_before(match: re.Match[str]) -> str:
    return f"{match['before']}{MASK}"


def _mask_quoted(match: re.Match[str]) -> str:
    if not _is_secret_name(match["key"]):
        return match[0]
    quote = match["value"][0]
    return f"{match['before']}{quote}{MASK}{quote}"


def masked(value: Any, path: Sequence[str] = ()) -> Any:
    """Copy a JSON-like value with every secret replaced by MASK; empty values and booleans are kept."""
    if isinstance(value, Mapping):
        if is_secret_pair(value):
            value = {**value, "value": masked(value["value"], (*path, "secret"))}
        return {key: masked(item, (*path, str(key))) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        private = is_private_path((*path, "0"))  # the same for every index
        items = [
            _masked_leaf(item, private=private) if isinstance(item, _LEAVES) else masked(item, (*path, str(index)))
            for index, item in enumerate(value)
        ]
        return tuple(items) if isinstance(value, tuple) else items
    return _masked_leaf(value, private=bool(path) and is_private_path(path))


def _masked_leaf(value: Any, *, private: bool) -> Any:
    if value is None or isinstance(value, bool) or value == "":
        return value
    if private:
        return MASK
    return mask_text(value) if isinstance(value, str) else value


def secrets_of(value: Any, path: Sequence[str] = ()) -> Iterator[str]:
    """Yield the texts in a JSON-like value that are secret because of their key or surrounding text."""
    if isinstance(value, Mapping):
        pair = is_secret_pair(value)
        for key, item in value.items():
            if type(item) in PLAIN:
                continue
            yield from secrets_of(item, (*path, "secret" if pair and key == "value" else str(key)))
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            if type(item) not in PLAIN:
                yield from secrets_of(item, (*path, str(index)))
    elif isinstance(value, str):
        if path and is_secret_path(path):
            yield value
        else:
            yield from _secrets_in(value)


def _secrets_in(text: str) -> Iterator[str]:
    """Yield the texts that `mask_text` replaces, except purely alphabetic words after `Bearer` or `Basic`."""
    if "://" in text:
        for match in _RUN.finditer(text):
            if (place := _password_in(match[0])) is not None:
                yield match[0][place[0] : place[1]]
    if "earer " in text or "Basic " in text:
        for match in _BEARER.finditer(text):
            if not (shown := match[0][len(match["before"]) :]).isalpha():
                yield shown
    if "=" in text:
        yield from (match["value"] for match in _ASSIGNED.finditer(text) if _is_secret_name(match["key"]))
    if ":" in text:
        for pattern in (_QUOTED, _PAIRED):
            for match in pattern.finditer(text):
                if _is_secret_name(match["key"]):
                    yield match["value"].strip(match["value"][0])


def masks_in(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the paths in a JSON-like value at which `masked` has replaced a secret by MASK."""
    if isinstance(value, Mapping):
        pair = is_secret_pair(value)
        for key, item in value.items():
            if type(item) in PLAIN or (isinstance(item, str) and MASK not in item):
                continue
            inner_masks = masks_in(item, (*path, "secret" if pair and key == "value" else str(key)))
            yield from ((*path, str(key), *masked_path[len(path) + 1 :]) for masked_path in inner_masks)
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            if type(item) not in PLAIN and not (isinstance(item, str) and MASK not in item):
                yield from masks_in(item, (*path, str(index)))
    elif isinstance(value, str) and MASK in value:
        stands_for = value.replace(MASK, "masked")
        if (value == MASK and path and is_private_path(path)) or mask_text(stands_for) != stands_for:
            yield path


class Masker:
    """Masker of known secret texts anywhere, in addition to secrets recognized by key or form. Immutable."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        texts = dict.fromkeys(text for text in secrets if len(text) >= _SHORTEST and text != MASK)
        self.secrets = tuple(texts)[-_MOST:]
        self._longest_first = sorted(self.secrets, key=len, reverse=True)

    def and_those_of(self, document: Any) -> Masker:
        """Return a masker that also knows the secrets of a JSON-like document."""
        return Masker((*self.secrets, *secrets_of(document)))

    def text(self, text: str) -> str:
        """Return `text` with secrets masked."""
        return mask_text(self._without_secrets(text))

    def shortened(self, text: str, most: int) -> str:
        """Do what the function `shortened` does, and mask the known secrets, too."""
        return shortened(text, most, self.text)

    def value(self, value: Any) -> Any:
        """Return a copy of a JSON-like value with secrets masked."""
        return self._walk(masked(value))

    def _without_secrets(self, text: str) -> str:
        # One alternation of all secrets would be tried at each character, and the interpreter could not be interrupted.
        for secret in self._longest_first:
            if secret in text:
                text = text.replace(secret, MASK)
        return text

    def _walk(self, value: Any) -> Any:
        if not self._longest_first or type(value) in PLAIN:
            return value
        if isinstance(value, str):
            return self._without_secrets(value)
        if isinstance(value, Mapping):
            return {key: self._walk(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            items = [self._walk(item) for item in value]
            return tuple(items) if isinstance(value, tuple) else items
        return value
