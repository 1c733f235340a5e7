"""Signatures of requests, version 4 of Amazon's, by botocore: a library of its own, so this is imported when used."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest

if TYPE_CHECKING:
    from cloud.blobs.s3_place import Credentials

logging.getLogger("botocore.auth").setLevel(logging.WARNING)  # it would log session tokens when debugging


class _Auth(S3SigV4Auth):  # type: ignore[misc]
    """Takes the digest of the body as it is known, instead of reading the body again."""

    def payload(self, request: AWSRequest) -> str:
        """The SHA-256 of what is sent."""
        return str(request.context["digest"])


def signed(
    method: str, url: str, headers: Mapping[str, str], digest: str, credentials: Credentials, region: str
) -> dict[str, str]:
    """The headers with a signature that is good for a quarter of an hour.

    `digest` is the SHA-256 of the body in hexadecimal digits: the store refuses a body that has another one.
    """
    request = AWSRequest(method=method, url=url, headers=dict(headers))
    request.context["digest"] = digest
    _Auth(credentials, "s3", region).add_auth(request)
    return dict(request.headers.items())
