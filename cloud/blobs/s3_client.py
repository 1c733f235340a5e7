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
from cloud.blobs.s3_location import BucketLocation, Credentials
from schema.errors import ErrorKind, MachineError

PARALLEL: Final = 32  # concurrent requests; others wait
IDLE: Final = 15.0  # seconds before an idle connection is closed
STALL: Final = 30.0  # seconds without data after which a connection is considered lost
ATTEMPTS: Final = 6
FIRST: Final = 0.2  # maximum seconds before the second attempt; doubled for each further one
LONGEST_WAIT: Final = 5.0  # maximum seconds between two attempts
CHUNK: Final = 256 * 1024  # bytes of a body to send at once
MOST: Final = 8 * 1024 * 1024  # maximum bytes in a response without content: a list of 1,000 objects has half a MiB
_LIMITS: Final = {"timeout": {"connect": STALL, "read": STALL, "write": STALL}}
_RANGE: Final = re.compile(r"bytes (\d+)-(\d+)/(\d+)")

Sign = Callable[[str, str, Mapping[str, str], str, Credentials, str], dict[str, str]]
"""Type of cloud.blobs.s3_signing.signed."""


class Refused(MachineError):
    """The store responded with an error. Callers of the cloud get UNAVAILABLE, because it is not their mistake."""

    kind = ErrorKind.UNAVAILABLE

    def __init__(self, location: BucketLocation, found: Refusal) -> None:
        super().__init__(f"the store of files {location} answers with {found}", remedy=found.remedy)
        self.code = found.code


class Lost(MachineError):
    """No complete response was received."""

    kind = ErrorKind.UNAVAILABLE


class Body:
    """Body of a request. It may be sent several times and is not copied: do not change `data` meanwhile."""

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

    def __init__(self, location: BucketLocation, credentials: Callable[[], Credentials], sign: Sign) -> None:
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
                status, headers = await self._exchange(method, name, query, body, {}, content, MOST)
                found = refusal(status, bytes(content))
                if found is None:
                    return Answer(status, headers, bytes(content))
                if not self._may_go_on(found, attempt):
                    raise Refused(self.location, found)
            except Lost:
                if attempt >= ATTEMPTS:
                    raise
            await _pause(attempt)
            attempt += 1

    async def part_of(self, name: str, start: int, most: int) -> tuple[bytearray, int]:
        """Return at most `most` bytes of an object from `start` on, and the size of the whole object.

        After a lost connection only the missing bytes are requested again. Raise Refused, also if the object does not
        exist, or Lost.
        """
        content = bytearray()
        attempt, total = 1, -1
        while True:
            there = len(content)
            first, last = start + there, (start + most if total < 0 else min(start + most, total)) - 1
            headers: dict[str, str] = {}
            try:
                status, headers = await self._exchange(
                    "GET", name, (), EMPTY, {"range": f"bytes={first}-{last}"}, content, most, first
                )
                if status == 416:  # beyond the end of the object: RFC 9110, 15.5.17
                    return bytearray(), start
                found = refusal(status, bytes(content[there:])) if status >= 300 else None
                if found is None:
                    total = self._total(headers, status, first, len(content) - there, total)
                    if len(content) == min(most, total - start):
                        return content, total
                    raise Lost(f"{self.location} sent {len(content) - there} bytes of {name}, not up to byte {last}")
                del content[there:]
                if not self._may_go_on(found, attempt):
                    raise Refused(self.location, found)
            except Lost:
                if len(content) > there:
                    attempt = 1  # there was progress
                elif attempt >= ATTEMPTS:
                    raise
            await _pause(attempt)
            attempt += 1

    def _total(self, headers: Mapping[str, str], status: int, first: int, count: int, known: int) -> int:
        """Return the size of the object, from the headers of a response with a part of it."""
        found = _RANGE.fullmatch(headers.get("content-range", ""))
        if status == 200 and not first and headers.get("content-length") == str(count):
            return count  # the whole object, because it is small
        if status == 206 and found is not None and int(found[1]) == first and known in (-1, int(found[3])):
            return int(found[3])
        raise MachineError(
            f"{self.location} does not send the part of a file that it is asked for",
            kind=ErrorKind.UNAVAILABLE,
            remedy="use a store that knows Range",
        )

    def _may_go_on(self, found: Refusal, attempt: int) -> bool:
        if attempt >= ATTEMPTS:
            return False
        if found.code == "ExpiredToken":
            before, self._current = self._current, self._credentials()
            return before != self._current
        return found.again

    async def _exchange(
        self,
        method: str,
        name: str | None,
        query: Sequence[tuple[str, str]],
        body: Body,
        more: Mapping[str, str],
        content: bytearray,
        most: int,
        first: int | None = None,
    ) -> tuple[int, dict[str, str]]:
        """Send one request; append the body, up to `most` bytes, to `content`. Return status and headers; Lost.

        With `first`, an incomplete body is kept if it is content from that byte on; otherwise it is discarded.
        """
        location = self.location
        target = location.root if name is None else f"{location.base}{location.prefix}{name}"
        if query:
            target += "?" + "&".join(f"{quote(one, safe='')}={quote(value, safe='')}" for one, value in query)
        url = f"{location.origin}{target}"
        there = len(content)
        keep = False
        headers = {"host": location.origin.partition("://")[2], "content-length": str(len(body.data)), **more}
        headers = self._sign(method, url, headers, body.digest, self._current, location.region)
        try:
            async with self._pool.stream(
                method, url, headers=list(headers.items()), content=_Chunks(body.data), extensions=dict(_LIMITS)
            ) as response:
                known = {one.decode("latin-1").lower(): value.decode("latin-1") for one, value in response.headers}
                begins = _RANGE.fullmatch(known.get("content-range", ""))
                keep = response.status == 206 and begins is not None and int(begins[1]) == first
                # httpcore's nested generators do not close each other: stop the innermost one by cancellation
                with trio.CancelScope() as scope:
                    async for piece in response.aiter_stream():
                        content += piece
                        if len(content) > most:
                            scope.cancel()
                keep = len(content) <= most
            if not keep:
                raise Lost(f"the store of files {location} answers with more than {most} bytes")
            return response.status, known
        except (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError) as error:
            words, remedy = _why(error)
            raise Lost(f"the store of files {location} cannot be reached: {words}", remedy=remedy) from error
        finally:
            if not keep:
                del content[there:]


def _why(error: Exception) -> tuple[str, str]:
    """Return the root cause of an error, and a remedy."""
    words = ""
    cause: BaseException | None = error
    while cause is not None:
        while isinstance(cause, BaseExceptionGroup):
            cause = cause.exceptions[0]
        words = str(cause) or words
        if isinstance(cause, ssl.SSLCertVerificationError):
            return words, "SSL_CERT_FILE may name a file with the certificates of other authorities"
        cause = cause.__cause__ or cause.__context__
    return words or f"nothing came for {STALL:g} s", ""


async def _pause(attempt: int) -> None:
    await trio.sleep(random.uniform(0.0, min(LONGEST_WAIT, FIRST * 2 ** (attempt - 1))))
