"""Tests that run only on demand: `make test` ends in 40 minutes. Each says so, and which variable makes it run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Final

import pytest

TESTS: Final = "MACHINE_TESTS_ALL"  # simulations and processes
RIG: Final = "MACHINE_HIL_ALL"  # guests of the hardware rig


def selected(variable: str = TESTS) -> bool:
    """Return whether a variable selects the tests that run on demand."""
    return bool(os.environ.get(variable))


def on_demand(seconds: int, variable: str = TESTS) -> pytest.MarkDecorator:
    """Return a mark that skips a test unless a variable is set. `seconds` is what it takes."""
    return pytest.mark.skipif(not selected(variable), reason=f"takes {seconds} s: set {variable}=yes")


def some_of(always: int, values: Sequence[Any], seconds: int) -> list[Any]:
    """Return parameters of which only the first `always` run without MACHINE_TESTS_ALL; each takes `seconds`."""
    mark = on_demand(seconds)
    rest = [value if isinstance(value, tuple) else (value,) for value in values[always:]]
    return [*values[:always], *(pytest.param(*value, marks=mark) for value in rest)]
