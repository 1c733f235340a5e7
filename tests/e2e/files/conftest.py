from __future__ import annotations

import pytest

from tests.e2e.cloud.conftest import _sockets_of_the_sdk
from tests.postgresql import postgresql
from tests.s3 import S3Server, s3

__all__ = ["_sockets_of_the_sdk", "postgresql", "s3"]


@pytest.fixture
def _owner(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give this process and its children the owner's access key."""
    for name, value in s3.environ().items():
        monkeypatch.setenv(name, value)
