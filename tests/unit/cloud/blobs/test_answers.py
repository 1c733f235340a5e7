"""Parsing of responses: those of S3, those of compatible stores, and malformed ones."""

from __future__ import annotations

from datetime import UTC, datetime
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloud.blobs import key_of, name_of, new_key
from cloud.blobs import s3_answers as answers

SPACE = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'


def refused(status: int, code: str = "", more: str = "") -> answers.Refusal:
    body = f"<?xml version='1.0'?>\n<Error><Code>{code}</Code><Message>words</Message>{more}</Error>".encode()
    result = answers.refusal(status, body if code else b"")
    assert result is not None
    return result


@pytest.mark.parametrize(
    ("status", "code", "again"),
    [
        (500, "InternalError", True),
        (503, "SlowDown", True),
        (503, "", True),
        (502, "", True),
        (429, "", True),
        (400, "RequestTimeout", True),
        (501, "NotImplemented", False),
        (400, "InvalidArgument", False),
        (403, "AccessDenied", False),
        (403, "RequestTimeTooSkewed", False),
        (404, "NoSuchBucket", False),
        (416, "InvalidRange", False),
    ],
)
def test_retried_requests(status: int, code: str, again: bool) -> None:
    assert refused(status, code).retryable is again


def test_every_refusal_names_a_remedy() -> None:
    for code in answers.REMEDIES:
        assert refused(400, code).remedy
    assert refused(403).code == "AccessDenied"  # a response to HEAD has no body
    assert refused(404).code == "NoSuchKey"
    assert not refused(404).remedy
    assert str(refused(404, "NoSuchBucket")) == "HTTP status 404 NoSuchBucket (words)"
    assert "eu-west-1" in str(refused(400, "AuthorizationHeaderMalformed", "<Region>eu-west-1</Region>"))


def test_errors_do_not_repeat_signatures() -> None:
    result = refused(403, "SignatureDoesNotMatch", "<StringToSign>hush</StringToSign><Token-0>hush</Token-0>")
    assert "hush" not in f"{result} {result!r}"


def test_a_refusal_with_status_200_is_recognized() -> None:
    result = answers.refusal(200, b"<?xml version='1.0'?>   \n<Error><Code>InternalError</Code></Error>")
    assert result is not None
    assert result.retryable
    assert answers.refusal(200, b"<CompleteMultipartUploadResult/>") is None
    assert answers.refusal(204, b"") is None


@pytest.mark.parametrize("space", ["", SPACE])
def test_a_page_of_objects(space: str) -> None:
    body = (
        f"<ListBucketResult {space}><IsTruncated>true</IsTruncated><NextContinuationToken>a/b=</NextContinuationToken>"
        "<Contents><Key>p%2Fab/ab1</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>&quot;x&quot;</ETag>"
        "<Size>5</Size></Contents><Contents><Key>p/ab/ab2</Key><LastModified>2026-01-01T00:00:00Z</LastModified>"
        "<ETag>&quot;x-2&quot;</ETag><Size>0</Size></Contents></ListBucketResult>"
    ).encode()
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    first, second = (
        answers.ListedObject("p/ab/ab1", 5, moment, False),
        answers.ListedObject("p/ab/ab2", 0, moment, True),
    )
    assert answers.objects(body) == ([first, second], "a/b=")
    assert answers.objects(body.replace(b"true", b"false"))[1] == ""


def test_a_page_of_uploads() -> None:
    body = (
        f"<ListMultipartUploadsResult {SPACE}><IsTruncated>true</IsTruncated><NextKeyMarker>k</NextKeyMarker>"
        "<NextUploadIdMarker>u</NextUploadIdMarker><Upload><Key>ab/ab1</Key><UploadId>i</UploadId>"
        "<Initiated>2026-01-01T00:00:00.000Z</Initiated></Upload></ListMultipartUploadsResult>"
    ).encode()
    upload = answers.IncompleteUpload("ab/ab1", "i", datetime(2026, 1, 1, tzinfo=UTC))
    assert answers.uploads(body) == ([upload], ("k", "u"))
    assert answers.uploads(body.replace(b"true", b"false")) == ([upload], None)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html><p>login</html>",
        b"<html/>",
        b"<ListBucketResult><Contents/></ListBucketResult>",
        b"<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
        b"<ListBucketResult><Contents><Key>a</Key><Size>x</Size></Contents></ListBucketResult>",
    ],
)
def test_an_invalid_list_is_refused(body: bytes) -> None:
    for read in (answers.objects, answers.uploads, answers.upload_id):
        with pytest.raises(ValueError):
            read(body)  # type: ignore[operator]


@given(st.binary(max_size=300))
def test_any_answer_is_a_refusal_or_a_value_error(body: bytes) -> None:
    answers.refusal(500, b"<Error>" + body)
    for read in (answers.objects, answers.uploads, answers.upload_id):
        with pytest.raises(ValueError):
            read(body)  # type: ignore[operator]


def test_the_parts_of_an_upload_are_named_in_order() -> None:
    root = ElementTree.fromstring(answers.completion(['"a"', '"<b>"']))
    assert [[each.text for each in part] for part in root] == [["1", '"a"'], ["2", '"<b>"']]


def test_names_and_keys() -> None:
    key = new_key()
    assert key_of(name_of(key)) == key
    for name in ("", "ab", "ab/", "ab/ab.part", "ab/cd1", "abc/abc1", "x/ab/ab1", "ab/ab1/x", ".check-1", "ab/abé"):
        assert key_of(name) is None
    for bad in ("", "a/b", "..", "a.part", "é"):
        with pytest.raises(ValueError, match="is not a valid blob key"):
            name_of(bad)


def test_a_redirection_is_not_a_success() -> None:
    assert answers.refusal(299, b"") is None
    assert answers.refusal(300, b"") is not None
