from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator

import pytest

from tests.e2e.micro.build import why_not_ready


@pytest.fixture(scope="session", autouse=True)
def _micropython() -> None:
    """Build MicroPython here, where the time limit of a test does not count; tests that need it skip without it."""
    why_not_ready()


@pytest.fixture(autouse=True)
def _sockets_of_the_sdk() -> Iterator[None]:
    """Collect the channels that the SDK leaves open after a refusal here, not during an unrelated test."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
