"""Every board table is complete and free of contradictions, and agrees with samples taken from its sources."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from hal.boards.catalogue import boards, named
from hal.boards.definition import BoardDefinition
from hal.boards.header import BCM, POWER
from schema.errors import ErrorKind, MachineError

BOARDS = pytest.mark.parametrize("board", boards(), ids=lambda board: board.name)
FORTY = [board for board in boards() if board.name not in ("beaglebone-black", "raspberry-pi-cm3")]


@BOARDS
def test_no_line_is_at_two_pins_and_no_name_means_two(board: BoardDefinition) -> None:
    lines = Counter(pin.line for pin in board.pins if pin.line is not None)
    assert [line for line, count in lines.items() if count > 1] == []
    names = Counter(name.lower() for pin in board.pins for name in pin.names)
    assert [name for name, count in names.items() if count > 1] == []


@pytest.mark.parametrize("board", FORTY, ids=lambda board: board.name)
def test_every_pin_of_the_40_pin_header_is_listed_and_power_is_not_a_line(board: BoardDefinition) -> None:
    assert [pin.names[0] for pin in board.pins] == [str(place) for place in range(1, 41)]
    for pin in board.pins:
        place = int(pin.names[0])
        if place in POWER:
            assert pin.line is None
            assert pin.note == POWER[place]
        else:
            assert f"BCM{BCM[place]}" in pin.names
            assert pin.line is not None or "not a GPIO line" in pin.note


def test_every_place_of_the_beaglebones_headers_is_there() -> None:
    places = {pin.names[0] for pin in named("beaglebone-black").pins}
    assert {f"{head}_{place}" for head in ("P8", "P9") for place in range(1, 47)} <= places
    assert places - {f"{head}_{place}" for head in ("P8", "P9") for place in range(1, 47)} == {"P9_41A", "P9_42B"}


@BOARDS
def test_power_and_ground_are_listed_and_carry_no_signal(board: BoardDefinition) -> None:
    for pin in board.pins:
        if pin.line is None:
            assert pin.note
            assert pin.pwm is None


@BOARDS
def test_pins_of_a_bus_belong_to_a_bus_that_is_named(board: BoardDefinition) -> None:
    buses = {**board.i2c, **board.spi, **board.serial}
    for pin in board.pins:
        for bus in re.findall(r"\b(I2C\d|SPI\d|UART\d?)\b", pin.note):
            if bus == "UART":  # Raspberry Pi: whichever UART is on the header
                assert any(name.startswith("UART") for name in board.serial)
            elif not (bus.startswith("UART") and "unverified" not in bus and board.name.startswith("jetson")):
                assert bus in buses, f"{pin.names}: {bus}"


@BOARDS
def test_an_i2c_bus_on_the_pins_has_data_and_clock(board: BoardDefinition) -> None:
    for bus in board.i2c:
        roles = [pin.note for pin in board.pins if f"{bus} S" in pin.note]
        if board.name != "raspberry-pi-cm3" or roles:
            assert any(f"{bus} SDA" in note for note in roles)
            assert any(f"{bus} SCL" in note for note in roles)


@BOARDS
def test_pwm_is_in_the_note_and_a_channel_is_not_negative(board: BoardDefinition) -> None:
    for pin in board.pins:
        assert (pin.pwm is not None) == ("PWM" in pin.note), pin
        if pin.pwm is not None:
            assert 0 <= pin.pwm.channel < 4
            assert pin.pwm.chip.endswith(".pwm")


@BOARDS
def test_paths_are_devices_and_facts_have_a_source(board: BoardDefinition) -> None:
    for path in (*board.i2c.values(), *board.spi.values(), *board.serial.values()):
        assert path.startswith("/dev/")
    assert board.sources
    assert board.compatible


def test_no_two_boards_have_a_name_or_a_device_tree_in_common() -> None:
    names = [board.name for board in boards()]
    trees = [compatible for board in boards() for compatible in board.compatible]
    assert len(set(names)) == len(names)
    assert len(set(trees)) == len(trees)


@pytest.mark.parametrize(
    ("board", "pin", "chip", "offset"),
    [
        ("raspberry-pi-3", "11", "pinctrl-bcm2835", 17),
        ("raspberry-pi-zero-2", "GPIO26", "pinctrl-bcm2835", 26),
        ("raspberry-pi-4", "physical 40", "pinctrl-bcm2711", 21),
        ("raspberry-pi-4", "SDA1", "pinctrl-bcm2711", 2),
        ("raspberry-pi-5", "CE0", "pinctrl-rp1", 8),
        ("raspberry-pi-500", "BCM4", "pinctrl-rp1", 4),
        ("raspberry-pi-cm3", "GPIO45", "pinctrl-bcm2835", 45),
        ("jetson-nano", "7", "tegra-gpio", 216),
        ("jetson-nano", "SPI1_MOSI", "tegra-gpio", 12),  # the module's names precede the processor's
        ("jetson-xavier-nx", "15", "tegra194-gpio-aon", 16),
        ("jetson-xavier-nx", "PQ.05", "tegra194-gpio", 105),
        ("jetson-orin-nano", "BCM12", "tegra234-gpio", 41),
        ("jetson-agx-orin", "32", "tegra234-gpio-aon", 8),
        ("jetson-agx-orin", "GPIO17", "tegra234-gpio", 96),  # header pin 22, by the module's name
        ("beaglebone-black", "P8_3", "4804c000.gpio", 6),
        ("beaglebone-black", "p9.12", "4804c000.gpio", 28),
        ("beaglebone-black", "P8.07", "481ac000.gpio", 2),
        ("beaglebone-black", "GPIO3_19", "481ae000.gpio", 19),
    ],
)
def test_samples_from_the_sources(board: str, pin: str, chip: str, offset: int) -> None:
    line = named(board).pin(pin).line
    assert line is not None
    assert (line.chip, line.offset) == (chip, offset)


@pytest.mark.parametrize(
    ("board", "channels"),
    [
        ("raspberry-pi-3", {"12": 0, "32": 0, "33": 1, "35": 1}),
        ("raspberry-pi-5", {"32": 0, "33": 1, "8": 2, "10": 3, "12": 2, "35": 3}),
        ("jetson-nano", {"32": 0, "33": 2}),
        ("jetson-orin-nano", {"15": 0, "32": 0, "33": 0}),
    ],
)
def test_hardware_pwm_of_the_sources(board: str, channels: dict[str, int]) -> None:
    values = {pin.names[0]: pin.pwm.channel for pin in named(board).pins if pin.pwm is not None}
    assert values == channels


def test_a_beaglebone_line_is_where_the_device_tree_says() -> None:
    """Samples of gpio-line-names in am335x-boneblack.dts, from every bank."""
    board = named("beaglebone-black")
    said = {"P9_22": (0, 2), "P8_35": (0, 8), "P9_11": (0, 30), "P8_25": (1, 0), "P8_20": (1, 31), "P9_23": (1, 17)}
    said |= {"P8_18": (2, 1), "P8_30": (2, 25), "P8_46": (2, 7), "P9_31": (3, 14), "P9_25": (3, 21), "P9_28": (3, 17)}
    chips = ("44e07000.gpio", "4804c000.gpio", "481ac000.gpio", "481ae000.gpio")
    for place, (bank, offset) in said.items():
        line = board.pin(place).line
        assert line is not None
        assert (line.chip, line.offset) == (chips[bank], offset)


@BOARDS
def test_a_wrong_pin_is_refused_with_right_ones(board: BoardDefinition) -> None:
    for wrong in ("99", "GPIO99x", "", "nonsense"):
        with pytest.raises(MachineError) as caught:
            board.pin(wrong)
        assert caught.value.kind is ErrorKind.NOT_FOUND
        named_there = re.findall(r"[^ ?=]+", caught.value.remedy.removeprefix("did you mean "))
        right = [name for name in named_there if name != "or"]
        assert right
        for name in right:
            assert board.pin(name).line is not None
