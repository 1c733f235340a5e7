from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator

import pytest

from tests.postgresql import postgresql

__all__ = ["postgresql"]


@pytest.fixture(autouse=True)
def _sockets_of_the_sdk() -> Iterator[None]:
    """The SDK leaves channels open that were refused: collect them here, not in the middle of somebody else's test."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
