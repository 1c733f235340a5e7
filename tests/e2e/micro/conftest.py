from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _sockets_of_the_sdk() -> Iterator[None]:
    """Collect the channels that the SDK leaves open after a refusal here, not during an unrelated test."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
