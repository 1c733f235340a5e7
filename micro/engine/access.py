"""Who may call: API keys of the configuration or of the cloud, and tokens for those who have presented one. Pure."""

from micro.wire.faults import UNAUTHENTICATED, CallFailure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

MAX_TOKENS = 16  # live tokens; a further one replaces the oldest


class Access:
    """Keys and tokens. Without keys, every peer that reaches the port may call, as with the full server."""

    def __init__(self, random: "Callable[[int], bytes]", digest: "Callable[[bytes], bytes]") -> None:
        self._random = random
        self._digest = digest
        self._keys: dict[str, str] = {}  # id -> SHA-256 in hexadecimal digits
        self._tokens: list[tuple[str, str, str]] = []  # token, key id, digest of its key
        self.closed = False  # no key is accepted: the cloud has not sent its keys yet

    @property
    def open(self) -> bool:
        """Whether calls need no key."""
        return not self._keys and not self.closed

    def set_keys(self, keys: "dict[str, str]") -> None:
        """Replace the keys, by their ids; a value is the key itself or `sha256:` and its digest."""
        table = {}
        for entity in list(keys)[:32]:
            key = keys[entity]
            table[entity] = key[7:] if key.startswith("sha256:") else self._digest(key.encode()).hex()
        self._keys = table
        self._tokens = [entry for entry in self._tokens if table.get(entry[1]) == entry[2]]

    def sign_in(self, entity: str, kind: str, key: str) -> str:
        """Return a token; UNAUTHENTICATED for a wrong key."""
        if self.open:
            return self._new_token("", "")
        digest = self._digest(key.encode()).hex()
        expected = self._keys.get(entity, "")
        if kind != "api-key" or not equal(digest, expected or "0" * 64) or not expected:
            raise CallFailure(UNAUTHENTICATED, "the API key is not valid for this machine")
        return self._new_token(entity, digest)

    def _new_token(self, entity: str, digest: str) -> str:
        token = self._random(16).hex()
        self._tokens.append((token, entity, digest))
        if len(self._tokens) > MAX_TOKENS:
            self._tokens.pop(0)
        return token

    def caller(self, authorization: bytes) -> str:
        """Return the id of the key of a caller, "" without keys; UNAUTHENTICATED if its token is not valid."""
        if self.open:
            return ""
        presented = str(authorization, "utf-8")
        for token, entity, _ in self._tokens:
            if equal(presented, "Bearer " + token):
                return entity
        raise CallFailure(UNAUTHENTICATED, "call AuthService.Authenticate with an API key first")


def equal(left: str, right: str) -> bool:
    """Compare two texts in a time that does not depend on where they differ."""
    first, second = left.encode(), right.encode()
    if len(first) != len(second):
        return False
    difference = 0
    for index in range(len(first)):
        difference |= first[index] ^ second[index]
    return difference == 0
