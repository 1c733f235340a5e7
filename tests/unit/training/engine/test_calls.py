"""The filter of system calls, executed by a small interpreter; tests/e2e/training/test_engine.py has the kernel's."""

from __future__ import annotations

import errno
import struct

import pytest

from training.engine.calls import DENIED, MACHINES, filter_for

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
READ_CLONE = {"x86_64": (0, 56), "aarch64": (63, 220)}
ALLOWED, REFUSED, MISSING = 0x7FFF0000, 0x50000 | errno.EPERM, 0x50000 | errno.ENOSYS


def verdict(machine: str, number: int, *, architecture: int = 0, flags: int = 0) -> int:
    """Execute the filter of a processor for a call."""
    code = filter_for(machine)
    assert code is not None
    data = struct.pack("=IIQQ", number, architecture or ARCHITECTURES[machine], 0, flags)
    instructions, at, value = list(struct.iter_unpack("=HBBI", code)), 0, 0
    while True:
        operation, then, otherwise, operand = instructions[at]
        at += 1
        if operation == 0x06:
            return int(operand)
        if operation == 0x20:
            (value,) = struct.unpack_from("=I", data, operand)
        else:
            is_true = {0x15: value == operand, 0x35: value >= operand, 0x45: bool(value & operand)}[operation]
            at += then if is_true else otherwise


@pytest.mark.parametrize("machine", MACHINES)
def test_denied_calls_are_refused(machine: str) -> None:
    for numbers in DENIED.values():
        assert verdict(machine, numbers[MACHINES[machine]]) == REFUSED


@pytest.mark.parametrize("machine", MACHINES)
def test_clone_makes_processes_and_threads_but_no_namespaces(machine: str) -> None:
    read, clone = READ_CLONE[machine]
    assert verdict(machine, read, flags=0x10000000) == ALLOWED
    assert verdict(machine, clone, flags=17) == ALLOWED  # fork
    assert verdict(machine, clone, flags=0x3D0F00) == ALLOWED  # a thread of the C library
    for kind in (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000):
        assert verdict(machine, clone, flags=kind | 17) == REFUSED
    assert verdict(machine, 435) == MISSING  # clone3


@pytest.mark.parametrize("machine", MACHINES)
def test_other_sets_of_calls_are_refused(machine: str) -> None:
    assert verdict(machine, 3, architecture=0x40000003) == REFUSED  # int 0x80
    assert verdict(machine, 0x40000000) == REFUSED  # x32


def test_a_processor_without_a_table_has_no_filter() -> None:
    assert filter_for("armv7l") is None
