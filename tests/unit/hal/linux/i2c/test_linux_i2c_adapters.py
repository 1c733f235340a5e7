"""Lookup of I2C adapters by name in a tree of files."""

from __future__ import annotations

from pathlib import Path

import pytest

from hal.errors import Fault, HalError
from hal.linux.i2c.adapters import Adapter, adapters, find_adapter, kernel_driver
from tests.unit.hal.linux.i2c.i2c_fakes import Kernel

TITLES = {
    1: "bcm2835 (i2c@7e804000)",
    20: "fef04500.i2c",
    3: "i2c-tiny-usb at bus 001 device 004",
    4: "i2c-tiny-usb at 5",
}


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    kernel = Kernel(tmp_path)
    for number, title in TITLES.items():
        kernel.plug(number, title, None)
    return kernel


def refused(name: str, kernel: Kernel) -> HalError:
    with pytest.raises(HalError) as caught:
        find_adapter(name, kernel.sys, kernel.dev)
    return caught.value


def test_all_adapters_by_number_and_nothing_else(kernel: Kernel) -> None:
    kernel.bind(1, 0x48, "lm75")
    (kernel.sys / "bus/i2c/devices/i2c-PRP0001:00").mkdir()  # an ACPI client, not an adapter
    assert [adapter.number for adapter in adapters(kernel.sys)] == [1, 3, 4, 20]
    assert str(adapters(kernel.sys)[0]) == "i2c-1 (bcm2835 (i2c@7e804000))"


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("1", 1),
        ("i2c-20", 20),
        ("fef04500.i2c", 20),
        ("FEF045", 20),
        ("bcm2835", 1),
        ("i2c-tiny-usb at 5", 4),  # the full name, although `at 5` would be enough
        ("device 004", 3),
    ],
)
def test_a_number_a_name_or_a_part_of_one(kernel: Kernel, name: str, number: int) -> None:
    assert find_adapter(name, kernel.sys, kernel.dev) == Adapter(number, TITLES[number])


def test_a_node_and_a_link_to_one(kernel: Kernel, tmp_path: Path) -> None:
    link = tmp_path / "sensors"
    link.symlink_to(kernel.dev / "i2c-20")
    for path in (kernel.dev / "i2c-20", link):
        assert find_adapter(str(path), kernel.sys, kernel.dev).number == 20


def test_a_number_without_sysfs_is_taken_at_its_word(kernel: Kernel) -> None:
    (kernel.dev / "i2c-9").touch()
    assert find_adapter("9", kernel.sys, kernel.dev) == Adapter(9)


def test_several_that_fit_are_named(kernel: Kernel) -> None:
    error = refused("tiny-usb", kernel)
    assert error.fault is Fault.UNSUPPORTED
    assert "i2c-3 (i2c-tiny-usb at bus 001 device 004), i2c-4 (i2c-tiny-usb at 5)" in str(error)


@pytest.mark.parametrize("name", ["7", "i2c-7", "nothing"])
def test_one_that_is_missing_is_answered_with_those_that_are_there(kernel: Kernel, name: str) -> None:
    error = refused(name, kernel)
    assert error.fault is Fault.GONE
    assert "i2c-1 (bcm2835 (i2c@7e804000)), i2c-3" in str(error)


def test_a_path_that_is_missing_or_leads_elsewhere_is_named(kernel: Kernel, tmp_path: Path) -> None:
    assert "there is no /nowhere/bus" in str(refused("/nowhere/bus", kernel))
    assert "there is no /nowhere/i2c-1" in str(refused("/nowhere/i2c-1", kernel))
    other = tmp_path / "null"
    other.touch()
    assert f"{other} is not an I2C node" in str(refused(str(other), kernel))


def test_without_nodes_the_remedy_is_their_driver(kernel: Kernel) -> None:
    for number in TITLES:
        (kernel.dev / f"i2c-{number}").unlink()
    for name in ("1", "bcm2835", str(kernel.dev / "i2c-1")):
        error = refused(name, kernel)
        assert error.fault is Fault.GONE
        assert "sudo modprobe i2c-dev" in error.remedy


def test_without_adapters_the_remedy_is_to_switch_them_on(tmp_path: Path) -> None:
    error = refused("1", Kernel(tmp_path))
    assert error.fault is Fault.GONE
    assert "raspi-config" in error.remedy
    assert "this computer has no I2C adapter" in str(error)


def test_the_kernel_driver_of_an_address(kernel: Kernel) -> None:
    kernel.bind(1, 0x48, "lm75")
    assert kernel_driver(1, 0x48, kernel.sys) == "lm75"
    assert kernel_driver(1, 0x49, kernel.sys) is None
    assert kernel_driver(3, 0x48, kernel.sys) is None
