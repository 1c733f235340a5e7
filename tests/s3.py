"""A local S3 server: a moto process on loopback that checks signatures and permissions."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from urllib.parse import quote

import pytest

from cloud.blobs.s3_location import BucketLocation, parse_location

LIMIT = 60.0  # seconds to start, and for a request
BUCKET = "files"
EVERYTHING = "s3:*"
_PORT = re.compile(r"Running on http://127\.0\.0\.1:(\d+)")
_numbers = count(1)


class S3Server:
    """A running server with one bucket, and the access key of an owner with all permissions."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.endpoint = f"http://127.0.0.1:{port}"
        self._ask("s3", method="PUT", path=f"/{BUCKET}")
        self.key, self.secret = self.user("owner", EVERYTHING)

    def environ(self) -> dict[str, str]:
        """Return the environment variables with the owner's access key."""
        return {"AWS_ACCESS_KEY_ID": self.key, "AWS_SECRET_ACCESS_KEY": self.secret}

    def fresh(self) -> str:
        """Return a new, empty place in the bucket, in the form of the option --files."""
        return f"s3://{BUCKET}/t{next(_numbers)}"

    def place(self, files: str = "", endpoint: str = "") -> BucketLocation:
        """Return the BucketLocation for `files` (by default a new one), optionally at another endpoint."""
        return parse_location(files or self.fresh(), endpoint=endpoint or self.endpoint, environ={})

    def user(self, name: str, *actions: str) -> tuple[str, str]:
        """Create an access key with permission for only these actions."""
        policy = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": actions, "Resource": "*"}]}
        self._reset("inf")
        self._ask("iam", Action="CreateUser", UserName=name)
        response = self._ask("iam", Action="CreateAccessKey", UserName=name)
        self._ask(
            "iam", Action="PutUserPolicy", UserName=name, PolicyName="only", PolicyDocument=json.dumps(policy)
        )  # fmt: skip
        self._reset("0")
        key, secret = (re.search(f"<{word}>(.*?)</", response) for word in ("AccessKeyId", "SecretAccessKey"))
        assert key is not None
        assert secret is not None
        return key[1], secret[1]

    def ask(self, method: str, path: str, body: bytes = b"") -> bytes:
        """Send a request as the owner, signed by botocore instead of the product's own client; return the answer."""
        from botocore.auth import S3SigV4Auth
        from botocore.awsrequest import AWSRequest
        from botocore.credentials import Credentials

        request = AWSRequest(method=method, url=f"{self.endpoint}/{BUCKET}{path}", data=body)
        S3SigV4Auth(Credentials(self.key, self.secret), "s3", "us-east-1").add_auth(request)
        headers = dict(request.headers.items())
        plain = urllib.request.Request(request.url, body or None, headers, method=method)
        with urllib.request.urlopen(plain, timeout=LIMIT) as answer:
            return bytes(answer.read())

    def there(self, place: BucketLocation) -> tuple[dict[str, int], list[str]]:
        """Return the size of every object below a place, and the keys of unfinished multipart uploads."""
        listed = self.ask("GET", f"?list-type=2&max-keys=1000&prefix={quote(place.prefix)}").decode()
        assert "<IsTruncated>false<" in listed
        names, sizes = (re.findall(f"<{word}>(.*?)</", listed) for word in ("Key", "Size"))
        begun = self.ask("GET", f"?prefix={quote(place.prefix)}&uploads=").decode()
        return dict(zip(names, map(int, sizes), strict=True)), re.findall("<Key>(.*?)</", begun)

    def _reset(self, free: str) -> None:
        """Set how many requests from now on need no signature."""
        plain = {"Content-Type": "text/plain"}
        request = urllib.request.Request(f"{self.endpoint}/moto-api/reset-auth", free.encode(), plain, method="POST")
        with urllib.request.urlopen(request, timeout=LIMIT):
            pass

    def _ask(self, service: str, method: str = "POST", path: str = "/", **form: str) -> str:
        credential = f"x/20260101/us-east-1/{service}/aws4_request"
        headers = {"Authorization": f"AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders=host, Signature=0"}
        body = urllib.parse.urlencode({**form, "Version": "2010-05-08"}).encode() if form else b""
        request = urllib.request.Request(f"{self.endpoint}{path}", body, headers, method=method)
        with urllib.request.urlopen(request, timeout=LIMIT) as answer:
            return str(answer.read().decode())


@contextmanager
def s3_server(**environ: str) -> Iterator[S3Server]:
    """Yield a running server until the block ends. Skip the test where moto is not installed."""
    pytest.importorskip("moto")
    pytest.importorskip("flask")
    pytest.importorskip("botocore")
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"],
            stdout=log,
            stderr=log,
            env={**os.environ, **environ},
        )
        try:
            yield S3Server(_port(process, log.fileno()))
        finally:
            process.kill()
            process.wait()


def _port(process: subprocess.Popen[bytes], log: int) -> int:
    begin = time.monotonic()
    while True:
        said = os.pread(log, 65536, 0).decode()
        if (match := _PORT.search(said)) is not None:
            return int(match[1])
        assert process.poll() is None, said
        assert time.monotonic() - begin < LIMIT, said
        time.sleep(0.05)  # the server sends no event when it is ready


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """One server for all tests of a run; each test uses a place of its own.

    Its lists have few entries per page, and parts of uploads may be small.
    """
    with s3_server(MOTO_S3_DEFAULT_MAX_KEYS="7", S3_UPLOAD_PART_MIN_SIZE="1") as running:
        yield running
