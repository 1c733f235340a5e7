"""The filter of system calls, executed by a small interpreter; tests/e2e/training has the kernel's."""

from __future__ import annotations

import errno
import struct

import pytest

from training.engine.calls import DENIED, FAMILIES, MACHINES, UNCOUNTED, filter_for

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
READ_CLONE = {"x86_64": (0, 56), "aarch64": (63, 220)}
SOCKETS = {"x86_64": (41, 53), "aarch64": (198, 199)}
MMAP = {"x86_64": 9, "aarch64": 222}
UNSUPPORTED = 0x50000 | errno.EAFNOSUPPORT
ALLOWED, REFUSED, MISSING = 0x7FFF0000, 0x50000 | errno.EPERM, 0x50000 | errno.ENOSYS


def verdict(
    machine: str, number: int, *, architecture: int = 0, flags: int = 0, fourth: int = 0, uncounted: bool = True
) -> int:
    """Execute the filter of a processor for a call."""
    code = filter_for(machine, uncounted=uncounted)
    assert code is not None
    data = struct.pack("=IIQQQQQ", number, architecture or ARCHITECTURES[machine], 0, flags, 0, 0, fourth)
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
def test_sockets_of_other_families_are_not_supported(machine: str) -> None:
    for call in SOCKETS[machine]:
        verdicts = {family: verdict(machine, call, flags=family) for family in (*range(64), 2**31, 2**32 - 1)}
        assert {family for family, result in verdicts.items() if result == ALLOWED} == set(FAMILIES)
        assert {verdicts[family] for family in verdicts if family not in FAMILIES} == {UNSUPPORTED}


@pytest.mark.parametrize("machine", MACHINES)
def test_memory_that_nothing_counts(machine: str) -> None:
    for numbers in UNCOUNTED.values():
        assert verdict(machine, numbers[MACHINES[machine]]) == ALLOWED
        assert verdict(machine, numbers[MACHINES[machine]], uncounted=False) == REFUSED
    assert verdict(machine, MMAP[machine], fourth=0x21) == ALLOWED
    private, shared, validated, of_file = 0x22, 0x21, 0x23, 0x01
    kinds = {kind: verdict(machine, MMAP[machine], fourth=kind, uncounted=False) for kind in (private, of_file)}
    assert set(kinds.values()) == {ALLOWED}
    for kind in (shared, validated, shared | 0x40000):
        assert verdict(machine, MMAP[machine], fourth=kind, uncounted=False) == REFUSED
    read, clone = READ_CLONE[machine]
    assert verdict(machine, read, uncounted=False) == ALLOWED
    assert verdict(machine, clone, flags=0x10000000, uncounted=False) == REFUSED


@pytest.mark.parametrize("machine", MACHINES)
def test_other_sets_of_calls_are_refused(machine: str) -> None:
    assert verdict(machine, 3, architecture=0x40000003) == REFUSED  # int 0x80
    assert verdict(machine, 0x40000000) == REFUSED  # x32


def test_a_processor_without_a_table_has_no_filter() -> None:
    assert filter_for("armv7l") is None
