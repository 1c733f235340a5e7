"""Request signatures (AWS version 4) with botocore, an optional library, so this module is imported only if needed."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest

if TYPE_CHECKING:
    from cloud.blobs.s3_location import S3Credentials

logging.getLogger("botocore.auth").setLevel(logging.WARNING)  # would log session tokens at debug level


class _Auth(S3SigV4Auth):  # type: ignore[misc]
    """Signer that uses the known digest of the body instead of reading the body again."""

    def payload(self, request: AWSRequest) -> str:
        """Return the SHA-256 of the body."""
        return str(request.context["digest"])


def signed(
    method: str, url: str, headers: Mapping[str, str], digest: str, credentials: S3Credentials, region: str
) -> dict[str, str]:
    """Return the headers with a signature, which is valid for a quarter of an hour.

    `digest` is the SHA-256 of the body in hexadecimal digits; the store refuses a body with a different digest.
    """
    request = AWSRequest(method=method, url=url, headers=dict(headers))
    request.context["digest"] = digest
    _Auth(credentials, "s3", region).add_auth(request)
    return dict(request.headers.items())
