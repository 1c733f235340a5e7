"""The address of a bucket for each combination of command-line options."""

from __future__ import annotations

from pathlib import Path

import pytest

from cloud.blobs.s3_location import BucketLocation, S3Credentials, credentials_of, is_bucket, parse_location
from schema.errors import MachineError

AMAZON = "https://s3.eu-west-1.amazonaws.com"


@pytest.mark.parametrize(
    ("text", "endpoint", "addressing", "origin", "base", "prefix"),
    [
        ("s3://b-1/x/y", "", "auto", "https://b-1.s3.eu-west-1.amazonaws.com", "/", "x/y/"),
        ("s3://b-1/x/", "", "auto", "https://b-1.s3.eu-west-1.amazonaws.com", "/", "x/"),
        ("s3://b-1", "", "path", AMAZON, "/b-1/", ""),
        ("s3://b.dots", "", "auto", AMAZON, "/b.dots/", ""),  # a wildcard certificate does not cover a name with dots
        ("s3://b-1/", "https://minio.example:9000", "auto", "https://minio.example:9000", "/b-1/", ""),
        ("s3://b-1/", "https://minio.example:9000/", "host", "https://b-1.minio.example:9000", "/", ""),
        ("s3://b-1/", "http://[::1]:9000", "auto", "http://[::1]:9000", "/b-1/", ""),
        ("s3://b-1/", "https://minio.example:443", "auto", "https://minio.example", "/b-1/", ""),
        ("s3://b-1/", "http://minio.example:80", "auto", "http://minio.example", "/b-1/", ""),
        ("s3://b-1/", "http://minio.example:443", "auto", "http://minio.example:443", "/b-1/", ""),
        ("s3://b-1/", "https://s3.eu-west-1.amazonaws.com.example", "auto", f"{AMAZON}.example", "/b-1/", ""),
    ],
)
def test_a_bucket_location_is_parsed(
    text: str, endpoint: str, addressing: str, origin: str, base: str, prefix: str
) -> None:
    parsed = parse_location(text, endpoint=endpoint, region="eu-west-1", addressing=addressing, environ={})
    assert (parsed.origin, parsed.base, parsed.prefix, parsed.region) == (origin, base, prefix, "eu-west-1")
    assert parsed.root in ("/", f"/{parsed.bucket}")


@pytest.mark.parametrize(
    "text",
    [
        "s3:/b",
        "s3:b",
        "s3://",
        "s3://a",
        "s3:///x",
        "s3://b_/x",
        "s3://bucket/x//y",
        "s3://bucket/../x",
        "s3://bucket/x y",
    ],
)
def test_invalid_bucket_locations_are_refused(text: str) -> None:
    assert is_bucket(text)
    with pytest.raises(ValueError, match="s3://my-bucket/cloud"):
        parse_location(text, environ={})


@pytest.mark.parametrize(
    "endpoint", ["minio:9000", "ftp://minio", "https://", "https://minio/path", "https://minio?x=1"]
)
def test_invalid_endpoints_are_refused(endpoint: str) -> None:
    with pytest.raises(ValueError, match=r"https://minio\.example:9000"):
        parse_location("s3://bucket", endpoint=endpoint, environ={})


def test_keys_in_addresses_are_refused_and_not_repeated() -> None:
    for item in (
        {"text": "s3://AKIA:SECRET@bucket/x"},
        {"text": "s3://bucket", "endpoint": "https://AKIA:SECRET@minio"},
    ):
        with pytest.raises(ValueError, match=r"environment|AWS_ACCESS_KEY_ID") as caught:
            parse_location(**item, environ={})
        assert "SECRET" not in str(caught.value).replace("AWS_SECRET_ACCESS_KEY", "")


def test_the_region_is_given_or_from_the_environment() -> None:
    environ = {"AWS_DEFAULT_REGION": "eu-north-1"}
    assert parse_location("s3://bucket", environ={}).region == "us-east-1"
    assert parse_location("s3://bucket", environ=environ).region == "eu-north-1"
    assert parse_location("s3://bucket", environ={**environ, "AWS_REGION": "eu-west-3"}).region == "eu-west-3"
    assert parse_location("s3://bucket", region="x", environ=environ).region == "x"
    with pytest.raises(ValueError, match="--s3-region"):
        parse_location("s3://bucket", region="x/../y", environ={})


def test_a_folder_is_not_a_bucket() -> None:
    assert not any(map(is_bucket, ("files", "/s3", "./s3:", "s3/x")))


# ---- credentials


def at(file: Path | None = None) -> BucketLocation:
    return parse_location("s3://bucket", credentials_file=file, environ={})


def test_credentials_from_the_environment() -> None:
    environ = {"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "hush"}
    assert credentials_of(at(), environ) == S3Credentials("id", "hush")
    assert credentials_of(at(), {**environ, "AWS_SESSION_TOKEN": "tok"}) == S3Credentials("id", "hush", "tok")
    for missing in environ:
        with pytest.raises(MachineError, match="--s3-credentials") as caught:
            credentials_of(at(), {name: value for name, value in environ.items() if name != missing})
        assert "hush" not in str(caught.value)


def test_credentials_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "credentials"
    file.write_text(
        "[default]\naws_access_key_id = id\naws_secret_access_key = hu%sh\n"
        "[other]\naws_access_key_id = o\naws_secret_access_key = p\naws_session_token = q\n"
    )
    assert credentials_of(at(file), {"AWS_ACCESS_KEY_ID": "x"}) == S3Credentials("id", "hu%sh")
    assert credentials_of(at(file), {"AWS_PROFILE": "other"}) == S3Credentials("o", "p", "q")
    with pytest.raises(MachineError, match=r"\[default\]"):
        credentials_of(at(file), {"AWS_PROFILE": "none"})
    with pytest.raises(MachineError, match="cannot be read"):
        credentials_of(at(tmp_path / "none"), {})
    file.write_text("aws_secret_access_key = hush\n")
    with pytest.raises(MachineError, match="not a valid credentials file") as caught:
        credentials_of(at(file), {})
    assert "hush" not in str(caught.value)


def test_secrets_are_in_no_repr() -> None:
    assert "hush" not in repr(S3Credentials("id", "hush", "hush"))
