"""Parsing of responses from S3-compatible stores: lists, and errors with their remedies. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from urllib.parse import unquote
from xml.etree import ElementTree

_RETRIED_STATUSES: Final = frozenset({408, 429, 500, 502, 503, 504})
_RETRIED_CODES: Final = frozenset({"InternalError", "RequestTimeout", "ServiceUnavailable", "SlowDown", "Throttling"})
_ALLOW: Final = (
    "allow this access key s3:GetObject, s3:PutObject, s3:DeleteObject and s3:AbortMultipartUpload on the objects, "
    "s3:ListBucket and s3:ListBucketMultipartUploads on the bucket"
)
_REGION: Final = "set --s3-region to the bucket's region"
_KEY: Final = "correct AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the file of --s3-credentials"
REMEDIES: Final = {
    "AccessDenied": _ALLOW,
    "AllAccessDisabled": _ALLOW,
    "AuthorizationHeaderMalformed": _REGION,
    "ExpiredToken": "renew the credentials",
    "IllegalLocationConstraintException": _REGION,
    "InvalidAccessKeyId": _KEY,
    "InvalidToken": "set AWS_SESSION_TOKEN to the token of this access key, or unset it",
    "NoSuchBucket": "create the bucket, or correct --files, --s3-endpoint and --s3-region",
    "PermanentRedirect": _REGION,
    "QuotaExceeded": "free space in the store, or raise its quota",
    "RequestTimeTooSkewed": "correct this computer's clock",
    "SignatureDoesNotMatch": _KEY,
    "TemporaryRedirect": _REGION,
    "XMinioStorageFull": "free space in the store, or raise its quota",
}
"""Remedies by error code."""

_BY_STATUS: Final = {301: "PermanentRedirect", 307: "TemporaryRedirect", 403: "AccessDenied", 404: "NoSuchKey"}
"""Error codes for responses without a body."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error response of the store."""

    status: int
    code: str
    message: str
    retryable: bool

    @property
    def remedy(self) -> str:
        """Advice for the administrator; "" if unknown."""
        return REMEDIES.get(self.code, "")

    def __str__(self) -> str:
        return f"HTTP status {self.status}" + (f" {self.code}" if self.code else "") + self._more

    @property
    def _more(self) -> str:
        return f" ({self.message})" if self.message else ""


@dataclass(frozen=True, slots=True)
class ListedObject:
    """One object in a list."""

    name: str
    size: int
    modified: datetime
    in_parts: bool  # multipart upload: `modified` may be the time when it began


@dataclass(frozen=True, slots=True)
class IncompleteUpload:
    """One multipart upload that is neither complete nor aborted."""

    name: str
    id: str
    begun: datetime


def refusal(status: int, body: bytes) -> Refusal | None:
    """Return the error in a response; None on success. After long operations, errors may have status 200."""
    if status < 300 and b"<Error>" not in body[:400]:
        return None
    code, message, region = (_element(body, name) for name in ("Code", "Message", "Region"))
    code = code or _BY_STATUS.get(status, "")
    message = f"{message}; the bucket is in {region}" if region and region not in message else message
    return Refusal(status, code, message, status in _RETRIED_STATUSES or code in _RETRIED_CODES)


def objects(body: bytes) -> tuple[list[ListedObject], str]:
    """Parse a page of ListObjectsV2; return its objects and the next token ("" after the last page).

    ValueError if it is not such a page.
    """
    root = _root(body, "ListBucketResult")
    listed = [
        ListedObject(
            unquote(_text(element, "Key")),
            int(_text(element, "Size")),
            datetime.fromisoformat(_text(element, "LastModified")),
            "-" in _text(element, "ETag"),
        )
        for element in root.iterfind("{*}Contents")
    ]
    more = root.findtext("{*}IsTruncated") == "true"
    return listed, _text(root, "NextContinuationToken") if more else ""


def uploads(body: bytes) -> tuple[list[IncompleteUpload], tuple[str, str] | None]:
    """Parse a page of ListMultipartUploads; return its uploads and the next markers (None after the last page).

    ValueError if it is not such a page.
    """
    root = _root(body, "ListMultipartUploadsResult")
    incomplete = [
        IncompleteUpload(
            unquote(_text(element, "Key")),
            _text(element, "UploadId"),
            datetime.fromisoformat(_text(element, "Initiated")),
        )
        for element in root.iterfind("{*}Upload")
    ]
    if root.findtext("{*}IsTruncated") != "true":
        return incomplete, None
    return incomplete, (unquote(_text(root, "NextKeyMarker")), _text(root, "NextUploadIdMarker"))


def upload_id(body: bytes) -> str:
    """Return the id of a new multipart upload. ValueError if the response is not as expected."""
    return _text(_root(body, "InitiateMultipartUploadResult"), "UploadId")


def completion(etags: list[str]) -> bytes:
    """Return the request body that completes a multipart upload from the tags of its parts, beginning with part 1."""
    root = ElementTree.Element("CompleteMultipartUpload", xmlns="http://s3.amazonaws.com/doc/2006-03-01/")
    for number, etag in enumerate(etags, 1):
        part = ElementTree.SubElement(root, "Part")
        ElementTree.SubElement(part, "PartNumber").text = str(number)
        ElementTree.SubElement(part, "ETag").text = etag
    return ElementTree.tostring(root)


def _root(body: bytes, name: str) -> ElementTree.Element:
    try:
        root = ElementTree.fromstring(body)
    except ElementTree.ParseError as error:
        raise ValueError(f"expected {name}, but the response is not valid XML: {error}") from None
    if root.tag.rpartition("}")[2] != name:
        raise ValueError(f"expected {name}, got {root.tag[:60]}")
    return root


def _text(element: ElementTree.Element, name: str) -> str:
    text = element.findtext(f"{{*}}{name}")
    if text is None:
        raise ValueError(f"{element.tag.rpartition('}')[2]} has no {name}")
    return text


def _element(body: bytes, name: str) -> str:
    """Return the text of an element in an error response, which may not be well-formed."""
    match = re.search(rb"<%b>([^<]{0,300})" % name.encode(), body)
    return match[1].decode(errors="replace").strip() if match is not None else ""
