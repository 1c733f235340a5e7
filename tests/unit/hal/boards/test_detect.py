"""Detection of a computer's board, and the lines that its pins refer to."""

from __future__ import annotations

from pathlib import Path

import pytest

from hal.boards.catalogue import boards, named
from hal.boards.routes import routed
from hal.inventory.board import device_tree, find_board
from hal.ports.digital import Line
from schema.errors import ErrorKind, MachineError
from tests.unit.hal.inventory.computer import Computer


@pytest.fixture
def computer(tmp_path: Path) -> Computer:
    return Computer(tmp_path)


@pytest.mark.parametrize("board", boards(), ids=lambda board: board.name)
def test_each_board_is_found_by_each_of_its_device_trees(board: object, computer: Computer) -> None:
    for compatible in board.compatible:  # type: ignore[attr-defined]
        computer.firmware("whatever it calls itself", compatible, "vendor,processor")
        assert find_board(root=computer.root).name == board.name  # type: ignore[attr-defined]


def test_the_most_specific_name_of_the_device_tree_decides(computer: Computer) -> None:
    computer.firmware("Raspberry Pi 400 Rev 1.0", "raspberrypi,400", "raspberrypi,4-model-b", "brcm,bcm2711")
    assert find_board(root=computer.root).name == "raspberry-pi-400"
    assert device_tree(computer.root).model == "Raspberry Pi 400 Rev 1.0"


def test_a_computer_without_a_device_tree_is_generic(computer: Computer) -> None:
    board = find_board(root=computer.root)
    assert (board.name, board.title, board.pins) == ("generic", "generic computer", ())


def test_an_unknown_board_is_generic_under_its_own_title(computer: Computer) -> None:
    computer.firmware("Acme Board 7", "acme,seven")
    assert find_board(root=computer.root).title == "Acme Board 7"


def test_a_name_goes_before_what_the_computer_is(computer: Computer) -> None:
    computer.firmware("Raspberry Pi 5", "raspberrypi,5-model-b")
    assert find_board("Raspberry Pi 4 Model B", computer.root).name == "raspberry-pi-4"
    assert find_board("raspberry_pi_4", computer.root).name == "raspberry-pi-4"
    assert find_board("generic", computer.root).name == "generic"


@pytest.mark.parametrize(
    ("wrong", "right"),
    [("raspberry-pi-44", "raspberry-pi-4"), ("pi 5", "raspberry-pi-5"), ("orin", "jetson-orin-nano")],
)
def test_a_wrong_name_is_answered_with_near_ones(wrong: str, right: str) -> None:
    with pytest.raises(MachineError) as caught:
        find_board(wrong)
    assert caught.value.kind is ErrorKind.NOT_FOUND
    assert right in caught.value.remedy


def test_a_name_like_nothing_is_answered_with_all() -> None:
    with pytest.raises(MachineError, match=r"the boards are raspberry-pi-3, .*generic"):
        find_board("zzz")


def test_chips_named_by_device_get_the_running_kernels_name(computer: Computer) -> None:
    computer.firmware("TI AM335x BeagleBone Black", "ti,am335x-bone-black", "ti,am33xx")
    computer.gpio(0, "gpio-0-31", 32, "4804c000.gpio")
    computer.gpio(3, "gpio-96-127", 32, "44e07000.gpio")
    board = find_board(root=computer.root)
    assert board.pin("P9_12").line == Line("gpiochip0", 28)
    assert board.pin("P9_22").line == Line("gpiochip3", 2)
    assert board.pin("P8_7").line == Line("481ac000.gpio", 2), "a chip that is not there keeps its name"


def test_another_computers_board_is_the_table_itself(computer: Computer) -> None:
    computer.gpio(0, "x", 32, "4804c000.gpio")
    assert find_board("beaglebone-black", computer.root) is named("beaglebone-black")


def _overlay(computer: Computer, device: str, pins: dict[str, bytes], *, handle: int = 0x7F) -> None:
    """Write the device-tree nodes that dtoverlay=pwm creates."""
    tree = "proc/device-tree/soc"
    computer.write(f"{tree}/pwm/pinctrl-0", handle.to_bytes(4, "big"))
    computer.write(f"{tree}/gpio/pwm_pins/phandle", handle.to_bytes(4, "big"))
    computer.write(f"{tree}/gpio/other_pins/phandle", (handle + 1).to_bytes(4, "big"))
    computer.write(f"{tree}/gpio/other_pins/brcm,pins", (13).to_bytes(4, "big"))
    for name, value in pins.items():
        computer.write(f"{tree}/gpio/pwm_pins/{name}", value)
    computer.link(f"sys/bus/platform/devices/{device}/of_node", f"{tree}/pwm")
    computer.link("sys/bus/gpio/devices/gpiochip0/of_node", f"{tree}/gpio")


def test_pwm_is_offered_only_where_the_device_tree_leads_it(computer: Computer) -> None:
    computer.firmware("Raspberry Pi 4 Model B Rev 1.4", "raspberrypi,4-model-b")
    _overlay(computer, "fe20c000.pwm", {"brcm,pins": (18).to_bytes(4, "big")})
    board = find_board(root=computer.root)
    assert {pin.names[1] for pin in board.pins if pin.pwm is not None} == {"GPIO18"}


def test_pwm_of_two_pins(computer: Computer) -> None:
    computer.firmware("Raspberry Pi 4 Model B Rev 1.4", "raspberrypi,4-model-b")
    _overlay(computer, "fe20c000.pwm", {"brcm,pins": (12).to_bytes(4, "big") + (13).to_bytes(4, "big")})
    assert routed("fe20c000.pwm", computer.root) == {12, 13}


def test_pwm_of_the_raspberry_pi_5_is_led_by_names(computer: Computer) -> None:
    computer.firmware("Raspberry Pi 5 Model B Rev 1.0", "raspberrypi,5-model-b")
    _overlay(computer, "1f00098000.pwm", {"pins": b"gpio12\0gpio19\0"})
    board = find_board(root=computer.root)
    assert {pin.names[1] for pin in board.pins if pin.pwm is not None} == {"GPIO12", "GPIO19"}


def test_without_a_word_about_pwm_the_table_stands(computer: Computer) -> None:
    computer.firmware("Raspberry Pi 4 Model B Rev 1.4", "raspberrypi,4-model-b")
    assert find_board(root=computer.root).pins == named("raspberry-pi-4").pins
