"""Access keys, permissions and certificates: refusals give a reason, and secrets are never disclosed."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import trio
import trustme

from cloud.blobs import sizes
from cloud.blobs.s3 import S3Blobs
from cloud.blobs.s3_location import BucketLocation
from schema.errors import ErrorKind, MachineError
from tests.e2e.files.proxy import Proxy, Way, proxy
from tests.helpers.blobs import content_of, put
from tests.s3 import S3Server

NEEDED = ("s3:PutObject", "s3:GetObject", "s3:DeleteObject", "s3:ListBucket", "s3:ListBucketMultipartUploads")


async def refused(place: BucketLocation) -> MachineError:
    with pytest.raises(MachineError) as caught:
        async with S3Blobs(place).opened():
            pass
    assert caught.value.kind is ErrorKind.PRECONDITION
    return caught.value


async def test_a_wrong_secret_is_refused_and_not_disclosed(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", s3.key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong" + s3.secret)
    error = await refused(s3.place())
    assert "SignatureDoesNotMatch" in str(error)
    assert "AWS_SECRET_ACCESS_KEY" in error.remedy
    assert s3.secret not in str(error)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIANOBODY")
    assert "InvalidAccessKeyId" in str(await refused(s3.place()))
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    assert "no credentials" in str(await refused(s3.place()))


@pytest.mark.parametrize(
    ("missing", "word"),
    [
        ("s3:PutObject", "written"),
        ("s3:GetObject", "read"),
        ("s3:ListBucket", "listed"),
        ("s3:ListBucketMultipartUploads", "uploads"),
        ("s3:DeleteObject", "deleted"),
    ],
)
async def test_a_missing_permission_is_named(
    s3: S3Server, monkeypatch: pytest.MonkeyPatch, missing: str, word: str
) -> None:
    key, secret = s3.user(f"without-{word}", *(item for item in NEEDED if item != missing))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", secret)
    error = await refused(s3.place())
    assert f"cannot be {word}" in error.message.replace("searched for incomplete ", "")
    assert missing in error.remedy


async def test_the_documented_permissions_suffice(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    key, secret = s3.user("enough", *NEEDED, "s3:AbortMultipartUpload")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", secret)
    async with S3Blobs(s3.place(), part=1000).opened() as blobs:
        blob = await put(blobs, bytes(2500))
        assert await content_of(blobs, blob.key, 2000) == bytes(500)
        await blobs.delete(blob.key)
        assert await sizes(blobs) == {}


@pytest.mark.usefixtures("_owner")
async def test_a_missing_bucket(s3: S3Server) -> None:
    error = await refused(s3.place("s3://no-such-bucket/x"))
    assert "NoSuchBucket" in str(error)
    assert "create the bucket" in error.remedy


@pytest.mark.usefixtures("_owner")
async def test_an_address_without_a_store(s3: S3Server) -> None:
    error = await refused(replace(s3.place(), base="/moto-api/", bucket="moto-api"))
    assert "cannot be written" in str(error)


@pytest.mark.usefixtures("_owner")
async def test_the_check_leaves_nothing_and_touches_no_other_objects(s3: S3Server) -> None:
    place = s3.place()
    for name in ("notes.txt", "ab/notes.txt", "ab/cd"):
        s3.ask("PUT", f"/{place.prefix}{name}", b"theirs")
    s3.ask("POST", f"/{place.prefix}theirs?uploads=")
    async with S3Blobs(place).opened() as blobs:
        assert await sizes(blobs) == {}
        assert await blobs.tidy(-60.0) == 0
    objects, uploads = s3.there(place)
    assert (len(objects), len(uploads)) == (3, 1)


async def test_expired_credentials_are_read_again_from_their_file(s3: S3Server, tmp_path: Path) -> None:
    file = tmp_path / "credentials"

    def write(key: str, secret: str) -> None:
        file.write_text(f"[default]\naws_access_key_id={key}\naws_secret_access_key={secret}\n")

    async with proxy(s3.port) as front:
        write(s3.key, s3.secret)
        place = replace(s3.place(endpoint=front.endpoint), credentials_file=file)
        async with S3Blobs(place).opened() as blobs:
            front.faults = [("PUT", Way.EXPIRED)]
            with pytest.raises(MachineError, match="ExpiredToken"):
                await put(blobs, b"x")  # there are no other credentials yet
            write(*s3.user("renewed", "s3:*"))
            front.faults = [("PUT", Way.EXPIRED)]
            blob = await put(blobs, b"x")
            assert await content_of(blobs, blob.key) == b"x"


@asynccontextmanager
async def over_tls(front: Proxy, issuer: trustme.CA) -> AsyncIterator[str]:
    """Serve the proxy over TLS; yield its address."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    issuer.issue_cert("localhost").configure_cert(context)
    listeners = await trio.open_ssl_over_tcp_listeners(0, context, host="127.0.0.1")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, front.serve, listeners)
        yield f"https://localhost:{listeners[0].transport_listener.socket.getsockname()[1]}"
        nursery.cancel_scope.cancel()


@pytest.mark.usefixtures("_owner")
async def test_over_tls_with_a_private_authority(s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    issuer = trustme.CA()
    issuer.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    async with proxy(s3.port) as front, over_tls(front, issuer) as endpoint:
        monkeypatch.setattr("cloud.blobs.s3_client.FIRST_WAIT", 0.01)
        error = await refused(s3.place(endpoint=endpoint))
        assert "certificate verify failed" in error.message
        assert "SSL_CERT_FILE" in error.remedy
        assert front.asked == []
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
        async with S3Blobs(s3.place(endpoint=endpoint)).opened() as blobs:
            blob = await put(blobs, bytes(100_000))
            assert await content_of(blobs, blob.key) == bytes(100_000)
