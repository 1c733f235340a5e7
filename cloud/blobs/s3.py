"""Blobs as objects in a bucket of any S3-compatible store.

Small content is sent in one request, larger content in a multipart upload, so objects appear completely or not at all.
The cloud relays all content in both directions, so that it can enforce roles and signed links.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final, TypeVar

import trio

from cloud.blobs import MOST_STAMP, PIECE, STAMP, Blob, ListedBlob, key_of, name_of, new_key
from cloud.blobs import s3_answers as answers
from cloud.blobs.s3_client import Body, S3Client, StoreRefused
from cloud.blobs.s3_location import BucketLocation, credentials_of
from schema import ErrorKind, MachineError

T = TypeVar("T")

PART: Final = 8 * 1024 * 1024  # bytes; at least 5 MiB (Amazon S3 User Guide, "Multipart upload limits")
MOST_PARTS: Final = 10_000  # the same page
FIRST_WINDOW: Final = PIECE  # bytes in the first request: the reader may need only the beginning
WINDOW: Final = 4 * 1024 * 1024  # bytes in later requests; each range is held in memory until it is passed on
LONGEST: Final = 12 * 3600.0  # maximum seconds for a multipart upload
ANSWER: Final = 30.0  # seconds for the check at startup
GRACE: Final = 5.0  # seconds for cancelled requests to end, and as many to remove what they left


class S3Blobs:
    """Objects in a bucket: `async with S3Blobs(location).opened() as blobs`. See Blobs.

    For multipart uploads, some stores report when the upload began instead of when it ended. Completed and incomplete
    ones are therefore assumed to be `longest` seconds younger, and no multipart upload may take longer.
    """

    def __init__(self, location: BucketLocation, *, longest: float = LONGEST, part: int = PART) -> None:
        self.location = location
        self._longest = longest
        self._part = part
        self._client: S3Client

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[S3Blobs]:
        """Check the bucket; the store is usable while the context is open.

        Raise MachineError if the bucket cannot be reached, written, read, listed and deleted from, or if the library
        for signatures is missing.
        """
        try:
            from cloud.blobs.s3_signing import signed
        except ImportError as error:
            raise MachineError(
                f"files in a bucket need a library that is not installed ({error})",
                kind=ErrorKind.PRECONDITION,
                remedy="pip install 'machine-runtime[s3]'",
            ) from error
        async with S3Client(
            self.location, lambda: credentials_of(self.location, os.environ), signed
        ).opened() as self._client:
            with trio.move_on_after(ANSWER) as limit:
                await self._check()
            if limit.cancelled_caught:
                raise MachineError(
                    f"--files: {self.location} does not answer within {ANSWER:g} s",
                    kind=ErrorKind.PRECONDITION,
                    remedy="check --s3-endpoint and the network",
                )
            yield self

    @property
    def where(self) -> str:
        """Folder or bucket, for messages."""
        return str(self.location)

    def path(self, key: str) -> None:
        """Return the absolute path of a blob, whether or not it exists; None if blobs are no files of this computer."""
        return

    async def stamp(self) -> bytes:
        """Return up to MOST_STAMP bytes of the file STAMP; empty if it does not exist."""
        try:
            content, _ = await self._client.part_of(STAMP, 0, MOST_STAMP)
        except StoreRefused as error:
            if error.code == "NoSuchKey":
                return b""
            raise
        return bytes(content)

    async def put_stamp(self, content: bytes, *, replace: bool) -> bool:
        """Write the file STAMP, durable on return."""
        if not replace and await self.stamp():
            return False
        await self._client.call("PUT", STAMP, (), Body(content))
        return True

    async def size(self, key: str) -> int | None:
        """Return the size of a blob in bytes; None if it does not exist."""
        try:
            answer = await self._client.call("HEAD", name_of(key))
        except StoreRefused as error:
            if error.code == "NoSuchKey":
                return None
            raise
        return int(answer.headers.get("content-length", "0"))

    async def put(self, pieces: AsyncIterable[bytes], key: str = "") -> Blob:
        """Store the concatenation of `pieces`; durable on return, and removed after an error.

        At most 8 MiB are held in memory. EXHAUSTED for more than 10,000 such parts (78 GiB).
        """
        key = key or new_key()
        upload = _Upload(self._client, name_of(key), self._longest, self._part)
        try:
            return Blob(key, *await upload.carry_out(pieces))
        except BaseException:
            with trio.move_on_after(GRACE, shield=True):
                await upload.undo()
            raise

    async def read(self, key: str, start: int = 0) -> AsyncGenerator[bytes, None]:
        """Yield the content of a blob from byte `start` on; NOT_FOUND.

        A slow reader does not occupy a connection: each range is a separate request.
        """
        name, offset, window = name_of(key), start, FIRST_WINDOW
        while True:
            try:
                content, size = await self._client.part_of(name, offset, window)
            except StoreRefused as error:
                if error.code == "NoSuchKey":
                    raise MachineError("the file no longer exists", kind=ErrorKind.NOT_FOUND) from None
                raise
            for begin in range(0, len(content), PIECE):
                yield bytes(memoryview(content)[begin : begin + PIECE])
            offset += len(content)
            if offset >= size:
                return
            window = WINDOW

    async def delete(self, key: str) -> None:
        """Delete a blob, if it exists."""
        await _delete(self._client, name_of(key))

    async def listed(self) -> AsyncGenerator[list[ListedBlob], None]:
        """Yield all blobs in batches, grouped by key prefix."""
        token: str | None = None
        while token != "":
            page, token = await self._page(token)
            yield page

    async def tidy(self, age: float) -> int:
        """Remove incomplete uploads that began more than `age` seconds ago; return their number.

        This aborts multipart uploads of killed processes.
        """
        before = datetime.now(UTC) - timedelta(seconds=age + self._longest)
        removed = 0
        markers: tuple[str, str] | None = ("", "")
        while markers is not None:
            uploads, markers = await self._incomplete_uploads(markers)
            for upload in uploads:
                name = upload.name.removeprefix(self.location.prefix)
                if key_of(name) is not None and upload.begun < before:
                    await _abort(self._client, name, upload.id)
                    removed += 1
        return removed

    # ----

    async def _page(self, token: str | None) -> tuple[list[ListedBlob], str]:
        query = [("list-type", "2"), ("encoding-type", "url"), ("prefix", self.location.prefix)]
        query += [("continuation-token", token)] if token else []
        answer = await self._client.call("GET", None, query)
        objects, next_token = _parsed(answers.objects, answer.body, self.location)
        page = []
        for listed in objects:
            key = key_of(listed.name.removeprefix(self.location.prefix))
            if key is not None:
                written = listed.modified.timestamp() + (self._longest if listed.in_parts else 0.0)
                page.append(ListedBlob(key, listed.size, written))
        return page, next_token

    async def _incomplete_uploads(
        self, markers: tuple[str, str]
    ) -> tuple[list[answers.IncompleteUpload], tuple[str, str] | None]:
        query = [("uploads", ""), ("encoding-type", "url"), ("prefix", self.location.prefix)]
        query += [("key-marker", markers[0]), ("upload-id-marker", markers[1])] if markers[0] else []
        try:
            answer = await self._client.call("GET", None, query)
        except StoreRefused as error:
            if error.code != "NotImplemented":
                raise
            return [], None  # such a store removes incomplete uploads itself
        return _parsed(answers.uploads, answer.body, self.location)

    async def _check(self) -> None:
        """Try all operations that are needed later; MachineError says which one fails."""
        client, name, content = self._client, f".check-{secrets.token_hex(8)}", secrets.token_bytes(16)

        async def read() -> None:
            returned, _ = await client.part_of(name, 0, PIECE)
            if returned != content:
                raise MachineError(f"{self.location} returned different bytes than were written to it")

        steps: tuple[tuple[str, Callable[[], Awaitable[object]]], ...] = (
            ("written to", partial(client.call, "PUT", name, (), Body(content))),
            ("read", read),
            ("listed", partial(self._page, None)),
            ("searched for incomplete uploads", partial(self._incomplete_uploads, ("", ""))),
            ("deleted from", partial(_delete, client, name)),
        )
        for action, step in steps:
            try:
                await step()
            except MachineError as error:
                raise MachineError(
                    f"--files: {self.location} cannot be {action}: {error.message}",
                    kind=ErrorKind.PRECONDITION,
                    remedy=error.remedy,
                ) from error


class _Upload:
    """An object that is being uploaded, with the state that is necessary to undo it."""

    def __init__(self, client: S3Client, name: str, longest: float, part: int) -> None:
        self._client = client
        self._name = name
        self._longest = longest
        self._size = part
        self._begun = trio.current_time()
        self._id = ""  # id of the multipart upload, if any
        self._etags: list[str] = []
        self._may_exist = False

    async def carry_out(self, pieces: AsyncIterable[bytes]) -> tuple[int, str]:
        """Upload `pieces`; return size and SHA-256."""
        whole, part = hashlib.sha256(), self._size
        buffer, digest = bytearray(), hashlib.sha256()
        async for piece in pieces:
            offset = 0
            while offset < len(piece):
                if len(buffer) == part:
                    await self._part(Body(buffer, digest.hexdigest()))
                    buffer, digest = bytearray(), hashlib.sha256()
                taken = piece[offset : offset + min(PIECE, part - len(buffer))]
                offset += len(taken)
                buffer += taken
                whole.update(taken)
                digest.update(taken)
                await trio.lowlevel.checkpoint()
        size = len(self._etags) * part + len(buffer)
        if self._id:
            await self._part(Body(buffer, digest.hexdigest()))
            await _settled(partial(self._complete, size))
        else:
            await _settled(partial(self._put_whole, Body(buffer, digest.hexdigest())))
        return size, whole.hexdigest()

    async def undo(self) -> None:
        """Remove what was uploaded. What cannot be removed now is left to the sweep."""
        try:
            if self._id:
                await _abort(self._client, self._name, self._id)
            if self._may_exist:
                await _delete(self._client, self._name)
        except MachineError:
            pass  # the original error is already being raised

    async def _part(self, body: Body) -> None:
        if len(self._etags) >= MOST_PARTS:
            raise MachineError(
                f"the file is larger than {MOST_PARTS * self._size} bytes", kind=ErrorKind.EXHAUSTED, remedy="split it"
            )
        if not self._id:
            await _settled(self._begin)
        query = [("partNumber", str(len(self._etags) + 1)), ("uploadId", self._id)]
        answer = await self._client.call("PUT", self._name, query, body)
        self._etags.append(answer.headers.get("etag", ""))

    async def _begin(self) -> None:
        answer = await self._client.call("POST", self._name, [("uploads", "")])
        self._id = _parsed(answers.upload_id, answer.body, self._client.location)

    async def _complete(self, size: int) -> None:
        if trio.current_time() - self._begun > self._longest:
            raise MachineError(
                f"the upload of the file took more than {self._longest / 3600:g} hours",
                kind=ErrorKind.TIMEOUT,
                remedy="split it into smaller files",
            )
        self._may_exist = True
        try:
            await self._client.call("POST", self._name, [("uploadId", self._id)], Body(answers.completion(self._etags)))
        except StoreRefused as error:
            if error.code != "NoSuchUpload" or not await self._exists(size):
                raise  # otherwise an earlier attempt, whose response was lost, succeeded

    async def _exists(self, size: int) -> bool:
        try:
            answer = await self._client.call("HEAD", self._name)
        except StoreRefused:
            return False
        return answer.headers.get("content-length") == str(size)

    async def _put_whole(self, body: Body) -> None:
        self._may_exist = True
        await self._client.call("PUT", self._name, (), body)


async def _settled(work: Callable[[], Awaitable[None]]) -> None:
    """Execute `work`. If cancelled, it has a few seconds to finish, so that it is known what must be undone."""
    failure: MachineError | None = None
    scope, finished = trio.CancelScope(shield=True), trio.Event()

    async def run() -> None:
        nonlocal failure
        with scope:
            try:
                await work()
            except MachineError as error:
                failure = error
        finished.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        try:
            await finished.wait()
        finally:
            scope.deadline = trio.current_time() + GRACE
    if failure is not None:
        raise failure


async def _delete(client: S3Client, name: str) -> None:
    try:
        await client.call("DELETE", name)
    except StoreRefused as error:
        if error.code != "NoSuchKey":
            raise


async def _abort(client: S3Client, name: str, upload: str) -> None:
    try:
        await client.call("DELETE", name, [("uploadId", upload)])
    except StoreRefused as error:
        if error.code != "NoSuchUpload":
            raise


def _parsed(read: Callable[[bytes], T], body: bytes, location: BucketLocation) -> T:
    try:
        return read(body)
    except ValueError as error:
        raise MachineError(
            f"{location} sent an invalid S3 response: {error}", kind=ErrorKind.UNAVAILABLE, remedy="check --s3-endpoint"
        ) from None
