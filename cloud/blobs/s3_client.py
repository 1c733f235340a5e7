"""Requests to one bucket: signed, limited in size and time, and retried where useful."""

from __future__ import annotations

import hashlib
import random
import re
import ssl
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

import httpcore
import trio

from cloud.blobs.s3_answers import Refusal, refusal
from cloud.blobs.s3_location import BucketLocation, S3Credentials
from schema import ErrorKind, MachineError
from support import doubled

PARALLEL: Final = 32  # concurrent requests; others wait
IDLE: Final = 15.0  # seconds before an idle connection is closed
STALL: Final = 30.0  # seconds without data after which a connection is considered lost
ATTEMPTS: Final = 6
FIRST_WAIT: Final = 0.2  # maximum seconds before the second attempt; doubled for each further one
LONGEST_WAIT: Final = 5.0  # maximum seconds between two attempts
CHUNK: Final = 256 * 1024  # bytes of a body to send at once
MAX_RESPONSE: Final = 8 * 1024 * 1024  # bytes of a response without content: a list of 1,000 objects has half a MiB
_LIMITS: Final = {"timeout": {"connect": STALL, "read": STALL, "write": STALL}}
_RANGE: Final = re.compile(r"bytes (\d+)-(\d+)/(\d+)")

Sign = Callable[[str, str, Mapping[str, str], str, S3Credentials, str], dict[str, str]]
"""Type of cloud.blobs.s3_signing.signed."""


class StoreRefused(MachineError):
    """The store responded with an error. Callers of the cloud get UNAVAILABLE, because it is not their mistake."""

    kind = ErrorKind.UNAVAILABLE

    def __init__(self, location: BucketLocation, response: Refusal) -> None:
        super().__init__(f"the file store {location} answered with {response}", remedy=response.remedy)
        self.code = response.code


class Lost(MachineError):
    """No complete response was received."""

    kind = ErrorKind.UNAVAILABLE


class Body:
    """Body of a request. It may be sent several times and is not copied: do not change `data` in the meantime."""

    def __init__(self, data: bytes | bytearray = b"", digest: str = "") -> None:
        self.data = data
        self.digest = digest or hashlib.sha256(data).hexdigest()


class _Chunks:
    """Iterator over chunks. A generator would stay open if a broken connection kept it from being exhausted."""

    def __init__(self, data: bytes | bytearray) -> None:
        self._data = data
        self._at = 0

    def __aiter__(self) -> _Chunks:
        return self

    async def __anext__(self) -> bytes:
        if self._at >= len(self._data):
            raise StopAsyncIteration
        with memoryview(self._data) as view:
            chunk = bytes(view[self._at : self._at + CHUNK])
        self._at += CHUNK
        return chunk


EMPTY: Final = Body()


@dataclass(frozen=True, slots=True)
class Answer:
    """A successful response."""

    status: int
    headers: Mapping[str, str]  # with names in lower case
    body: bytes


class S3Client:
    """`async with S3Client(location, credentials, sign).opened() as client`. Any number of tasks may use it.

    `credentials` is called at the start, and again when the store reports that they have expired.
    """

    def __init__(self, location: BucketLocation, credentials: Callable[[], S3Credentials], sign: Sign) -> None:
        self.location = location
        self._credentials = credentials
        self._current = credentials()
        self._sign = sign
        self._pool: httpcore.AsyncConnectionPool

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[S3Client]:
        """The client is usable while the context is open."""
        tls = ssl.create_default_context() if self.location.origin.startswith("https:") else None
        async with httpcore.AsyncConnectionPool(
            tls,
            max_connections=PARALLEL,
            max_keepalive_connections=PARALLEL,
            keepalive_expiry=IDLE,
            network_backend=httpcore.TrioBackend(),
        ) as self._pool:
            yield self

    async def call(
        self, method: str, name: str | None, query: Sequence[tuple[str, str]] = (), body: Body = EMPTY
    ) -> Answer:
        """Send a request for an object, or for the bucket if `name` is None. It may be executed more than once.

        Raise Refused, or Lost if no attempt received a complete response.
        """
        attempt = 1
        while True:
            try:
                content = bytearray()
                status, headers = await self._exchange(method, name, query, body, {}, content, MAX_RESPONSE)
                refused = refusal(status, bytes(content))
                if refused is None:
                    return Answer(status, headers, bytes(content))
                if not self._may_retry(refused, attempt):
                    raise StoreRefused(self.location, refused)
            except Lost:
                if attempt >= ATTEMPTS:
                    raise
            await _pause(attempt)
            attempt += 1

    async def part_of(self, name: str, start: int, max_bytes: int) -> tuple[bytearray, int]:
        """Return at most `max_bytes` bytes of an object from `start` on, and the size of the whole object.

        After a lost connection only the missing bytes are requested again. Raise Refused, also if the object does not
        exist, or Lost.
        """
        content = bytearray()
        attempt, total = 1, -1
        while True:
            received = len(content)
            first, last = start + received, (start + max_bytes if total < 0 else min(start + max_bytes, total)) - 1
            headers: dict[str, str] = {}
            try:
                status, headers = await self._exchange(
                    "GET", name, (), EMPTY, {"range": f"bytes={first}-{last}"}, content, max_bytes, first
                )
                if status == 416:  # beyond the end of the object: RFC 9110, 15.5.17
                    return bytearray(), start
                refused = refusal(status, bytes(content[received:])) if status >= 300 else None
                if refused is None:
                    total = self._total(headers, status, first, len(content) - received, total)
                    if len(content) == min(max_bytes, total - start):
                        return content, total
                    raise Lost(
                        f"{self.location} sent {len(content) - received} bytes of {name} instead of {first} to {last}"
                    )
                del content[received:]
                if not self._may_retry(refused, attempt):
                    raise StoreRefused(self.location, refused)
            except Lost:
                if len(content) > received:
                    attempt = 1  # there was progress
                elif attempt >= ATTEMPTS:
                    raise
            await _pause(attempt)
            attempt += 1

    def _total(self, headers: Mapping[str, str], status: int, first: int, count: int, expected: int) -> int:
        """Return the size of the object, from the headers of a response with a part of it."""
        content_range = _RANGE.fullmatch(headers.get("content-range", ""))
        if status == 200 and not first and headers.get("content-length") == str(count):
            return count  # the whole object, because it is small
        if (
            status == 206
            and content_range is not None
            and int(content_range[1]) == first
            and expected in (-1, int(content_range[3]))
        ):
            return int(content_range[3])
        raise MachineError(
            f"{self.location} did not send the requested range of a file",
            kind=ErrorKind.UNAVAILABLE,
            remedy="use a store that supports the Range header",
        )

    def _may_retry(self, refused: Refusal, attempt: int) -> bool:
        if attempt >= ATTEMPTS:
            return False
        if refused.code == "ExpiredToken":
            before, self._current = self._current, self._credentials()
            return before != self._current
        return refused.retryable

    async def _exchange(
        self,
        method: str,
        name: str | None,
        query: Sequence[tuple[str, str]],
        body: Body,
        extra_headers: Mapping[str, str],
        content: bytearray,
        max_bytes: int,
        first: int | None = None,
    ) -> tuple[int, dict[str, str]]:
        """Send one request; append the body, up to `max_bytes` bytes, to `content`. Return status and headers; Lost.

        With `first`, an incomplete body is kept if it is content from that byte on; otherwise it is discarded.
        """
        location = self.location
        target = location.root if name is None else f"{location.base}{location.prefix}{name}"
        if query:
            target += "?" + "&".join(f"{quote(key, safe='')}={quote(value, safe='')}" for key, value in query)
        url = f"{location.origin}{target}"
        offset = len(content)
        keep = False
        headers = {"host": location.origin.partition("://")[2], "content-length": str(len(body.data)), **extra_headers}
        headers = self._sign(method, url, headers, body.digest, self._current, location.region)
        try:
            async with self._pool.stream(
                method, url, headers=list(headers.items()), content=_Chunks(body.data), extensions=dict(_LIMITS)
            ) as response:
                response_headers = {
                    key.decode("latin-1").lower(): value.decode("latin-1") for key, value in response.headers
                }
                content_range = _RANGE.fullmatch(response_headers.get("content-range", ""))
                keep = response.status == 206 and content_range is not None and int(content_range[1]) == first
                # httpcore's nested generators do not close each other: stop the innermost one by cancellation
                with trio.CancelScope() as scope:
                    async for piece in response.aiter_stream():
                        content += piece
                        if len(content) > max_bytes:
                            scope.cancel()
                keep = len(content) <= max_bytes
            if not keep:
                raise Lost(f"the file store {location} answered with more than {max_bytes} bytes")
            return response.status, response_headers
        except (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError) as error:
            cause, remedy = _cause_and_remedy(error)
            raise Lost(f"the file store {location} cannot be reached: {cause}", remedy=remedy) from error
        finally:
            if not keep:
                del content[offset:]


def _cause_and_remedy(error: Exception) -> tuple[str, str]:
    """Return the root cause of an error, and a remedy."""
    text = ""
    cause: BaseException | None = error
    while cause is not None:
        while isinstance(cause, BaseExceptionGroup):
            cause = cause.exceptions[0]
        text = str(cause) or text
        if isinstance(cause, ssl.SSLCertVerificationError):
            return text, "to trust a private certificate authority, set SSL_CERT_FILE to a file with its certificate"
        cause = cause.__cause__ or cause.__context__
    return text or f"no data was received for {STALL:g} s", ""


async def _pause(attempt: int) -> None:
    await trio.sleep(random.uniform(0.0, doubled(FIRST_WAIT, LONGEST_WAIT, attempt)))
