"""What every operating system must measure of a process. Real processes."""

from __future__ import annotations

import os

from engine.metrics.system import measure_host, measure_process
from runtime.parts.modules.limits import MIB, usage


def test_this_process_uses_memory_and_time() -> None:
    values: dict[str, float] = {}
    measure_process(values, "process")
    assert 5 < values["process.RssMB"] < 2000
    assert values["process.VssMB"] > 1
    assert values["process.UserCPUSecs"] + values["process.SystemCPUSecs"] > 0.01
    assert 0 <= values["process.ElapsedTimeSecs"] < 86_400


def test_a_process_that_does_not_exist_has_no_values() -> None:
    values: dict[str, float] = {}
    measure_process(values, "process", 2**22 + 1)
    assert values == {}


def test_the_usage_of_a_process_agrees_with_its_metrics() -> None:
    values: dict[str, float] = {}
    measure_process(values, "process")
    used = usage(os.getpid())
    assert 0.5 < used.memory / MIB / values["process.RssMB"] < 2
    assert used.processes >= 1


def test_the_computer_is_measured() -> None:
    values: dict[str, float] = {}
    measure_host(values)
    assert 0 < values["host.MemoryUsedPct"] < 100
