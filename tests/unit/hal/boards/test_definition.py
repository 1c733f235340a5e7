"""Lookup of a board's pins by name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hal.boards.catalogue import boards, named
from hal.boards.definition import BoardDefinition, BoardPin
from hal.ports.digital import Line
from schema.errors import ErrorKind, MachineError

PI = named("raspberry-pi-4")


@pytest.mark.parametrize(
    "name", ["11", "pin 11", "physical 11", "Physical:11", "board11", "header 11", "gpio17", " GPIO17 "]
)
def test_the_ways_to_say_a_pin(name: str) -> None:
    assert PI.pin(name).names[0] == "11"


def test_a_power_pin_is_refused_by_its_kind_with_the_nearby_pins() -> None:
    with pytest.raises(MachineError, match=r"pin 6 of Raspberry Pi 4 Model B is ground: use .*5 = GPIO3") as caught:
        PI.pin("6")
    assert caught.value.kind is ErrorKind.INVALID


def test_a_number_beyond_the_header_is_answered_with_the_last_pins() -> None:
    with pytest.raises(MachineError, match=r"has no pin '41': did you mean 40 = GPIO21"):
        PI.pin("41")


def test_a_slip_is_answered_with_the_nearest_names() -> None:
    with pytest.raises(MachineError, match=r"GPIO17"):
        PI.pin("GPI017")


def test_any_line_of_any_chip_can_be_named_on_any_board() -> None:
    assert PI.pin("gpiochip2:4").line == Line("gpiochip2", 4)
    assert PI.pin("/dev/gpiochip0:11").line == Line("/dev/gpiochip0", 11)
    assert BoardDefinition("bare", "Bare").pin("ftdi-cbus:3").line == Line("ftdi-cbus", 3)


def test_a_board_without_pins_says_how_to_name_a_line() -> None:
    with pytest.raises(MachineError, match=r"Bare has no pin '4': name a line as <chip>:<offset>"):
        BoardDefinition("bare", "Bare").pin("4")


def test_a_name_with_a_colon_is_found_before_it_is_taken_for_a_chip() -> None:
    pin = BoardPin(("J8:7",), Line("soc", 4))
    assert BoardDefinition("b", "B", pins=(pin,)).pin("j8:7").line == Line("soc", 4)


@given(st.sampled_from(boards()), st.data())
def test_every_name_of_every_pin_finds_it(board: BoardDefinition, data: st.DataObject) -> None:
    pin = data.draw(st.sampled_from([pin for pin in board.pins if pin.line is not None]))
    name = data.draw(st.sampled_from(pin.names))
    assert board.pin(data.draw(st.sampled_from((name, name.lower(), f" {name} ")))) is pin


@given(st.sampled_from(boards()), st.text(max_size=12))
def test_whatever_is_asked_there_is_a_pin_or_an_error_with_a_remedy(board: BoardDefinition, name: str) -> None:
    try:
        pin = board.pin(name)
    except MachineError as error:
        remedy = error.remedy
    else:
        remedy = str(pin.line or "")
    assert remedy
