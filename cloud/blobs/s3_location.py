"""Location and credentials of a bucket, as plain data from the command line."""

from __future__ import annotations

import configparser
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from schema import ErrorKind, MachineError

REGION: Final = "us-east-1"  # default of stores without regions
ADDRESSING: Final = ("auto", "path", "host")
_BUCKET: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,61}[A-Za-z0-9]")
_PREFIX: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*")
_KEYS: Final = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")


@dataclass(frozen=True, slots=True)
class S3Credentials:
    """An access key of the store. Only its id may be logged."""

    access_key: str
    secret_key: str = field(repr=False)
    token: str = field(default="", repr=False)  # for credentials that expire


@dataclass(frozen=True, slots=True)
class BucketLocation:
    """A bucket, and the prefix of this cloud in it."""

    origin: str  # such as https://bucket.s3.eu-west-1.amazonaws.com
    base: str  # path before an object's name: "/" or "/bucket/"
    bucket: str
    prefix: str  # prefix of object names: "", or ends with a slash
    region: str
    credentials_file: Path | None = None  # None: use the environment

    @property
    def root(self) -> str:
        """Path of the bucket itself."""
        return self.base if self.base == "/" else self.base.rstrip("/")

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.prefix}".rstrip("/") + f" at {self.origin}"


def is_bucket(text: str) -> bool:
    """Return whether `text` refers to a bucket, not to a folder."""
    return text.startswith("s3:")


def parse_location(
    text: str,
    *,
    endpoint: str = "",
    region: str = "",
    addressing: str = "auto",
    credentials_file: Path | None = None,
    environ: Mapping[str, str],
) -> BucketLocation:
    """Parse `s3://BUCKET/PREFIX`; ValueError says what is wrong and what to write.

    Without `endpoint`, Amazon's endpoint of the region is used. By default the bucket is part of the host name at
    Amazon, and part of the path elsewhere.
    """
    if "@" in text:
        raise ValueError("--files must not contain keys: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY instead")
    bucket, _, prefix = text.removeprefix("s3://").partition("/")
    prefix = prefix.strip("/")
    if not text.startswith("s3://") or not _BUCKET.fullmatch(bucket) or (prefix and not _PREFIX.fullmatch(prefix)):
        raise ValueError(
            f"{text!r} is not a valid location for files: expected s3://BUCKET/PREFIX, such as s3://my-bucket/cloud"
        )
    region = region or environ.get("AWS_REGION", "") or environ.get("AWS_DEFAULT_REGION", "") or REGION
    if not re.fullmatch(r"[a-z0-9-]+", region):
        raise ValueError(f"{region!r} is not a valid region: set --s3-region to a region such as eu-west-1")
    parts = urlsplit(endpoint or f"https://s3.{region}.amazonaws.com")
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/") or parts.query:
        raise ValueError(
            f"--s3-endpoint {endpoint!r} is not a valid URL: expected one such as https://minio.example:9000"
        )
    if parts.username is not None:
        raise ValueError("--s3-endpoint must not contain keys: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY instead")
    amazon = parts.hostname.endswith((".amazonaws.com", ".amazonaws.com.cn"))
    in_path = addressing == "path" or (addressing == "auto" and (not amazon or "." in bucket))
    host = parts.netloc if in_path else f"{bucket}.{parts.netloc}"
    for port in (":443",) if parts.scheme == "https" else (":80",):
        host = host.removesuffix(port)  # the Host header, which is signed, omits default ports
    return BucketLocation(
        f"{parts.scheme}://{host}",
        f"/{bucket}/" if in_path else "/",
        bucket,
        f"{prefix}/" if prefix else "",
        region,
        credentials_file,
    )


def credentials_of(location: BucketLocation, environ: Mapping[str, str]) -> S3Credentials:
    """Return the credentials for signing requests; MachineError if there are none."""
    if location.credentials_file is None:
        values = [environ.get(name.upper(), "") for name in _KEYS]
        where = "the environment"
        remedy = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or set --s3-credentials to a file"
    else:
        values = _from_file(location.credentials_file, environ.get("AWS_PROFILE", "") or "default")
        where = str(location.credentials_file)
        remedy = "add aws_access_key_id and aws_secret_access_key to the section [default] of the file"
    if not values[0] or not values[1]:
        raise MachineError(f"{where} has no credentials for {location}", kind=ErrorKind.PRECONDITION, remedy=remedy)
    return S3Credentials(*values)


def _from_file(path: Path, profile: str) -> list[str]:
    parser = configparser.RawConfigParser()
    try:
        parser.read_string(path.read_text())
    except OSError as error:
        raise MachineError(f"{path} cannot be read: {error.strerror}", kind=ErrorKind.PRECONDITION) from error
    except (configparser.Error, UnicodeDecodeError):  # the original message would contain secrets from the file
        raise MachineError(
            f"{path} is not a valid credentials file",
            kind=ErrorKind.PRECONDITION,
            remedy="write it in the format of ~/.aws/credentials",
        ) from None
    return [parser.get(profile, name, fallback="") for name in _KEYS]
