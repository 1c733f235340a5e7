"""SPI through spidev: the bytes of its ioctls, on a fake driver that reads and writes the buffers they point to."""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from hal.errors import Fault, HalError
from hal.linux import spi
from hal.linux.spi import SpiBuses, find_node, message_limit, message_request, pack_message
from hal.ports.spi import SpiDevice, SpiSettings


class Transfer(ctypes.Structure):
    """struct spi_ioc_transfer, transcribed from linux/spi/spidev.h."""

    _fields_ = [
        ("tx_buf", ctypes.c_uint64),
        ("rx_buf", ctypes.c_uint64),
        ("len", ctypes.c_uint32),
        ("speed_hz", ctypes.c_uint32),
        ("delay_usecs", ctypes.c_uint16),
        ("bits_per_word", ctypes.c_uint8),
        ("cs_change", ctypes.c_uint8),
        ("tx_nbits", ctypes.c_uint8),
        ("rx_nbits", ctypes.c_uint8),
        ("word_delay_usecs", ctypes.c_uint8),
        ("pad", ctypes.c_uint8),
    ]


class Driver:
    """A fake spidev whose device answers each message with `answer`; nodes are files below `root`."""

    def __init__(self, root: Path) -> None:
        self.dev = root
        self.answer: Callable[[bytes], bytes] = bytes
        self.requests: list[tuple[int, bytes]] = []
        self.messages: list[list[bytes]] = []
        self.fail: dict[int, int] = {}  # errno by request
        self.threads: set[str] = set()
        self.buses = SpiBuses(sys=root / "sys", dev=root, ioctl=self.ioctl)

    def plug(self, *names: str) -> None:
        for name in names:
            (self.dev / name).touch()

    def ioctl(self, fd: int, request: int, argument: bytearray) -> None:
        os.fstat(fd)  # fails if the descriptor is closed
        self.threads.add(threading.current_thread().name)
        self.requests.append((request, bytes(argument)))
        if number := self.fail.pop(request & 0xFFFF, 0):
            raise OSError(number, os.strerror(number))
        if request & 0xFF:
            return
        assert request >> 16 & 0x3FFF == len(argument)
        transfers = (Transfer * (len(argument) // ctypes.sizeof(Transfer))).from_buffer(argument)
        sent = [ctypes.string_at(item.tx_buf, item.len) for item in transfers]
        self.messages.append(sent)
        answer = self.answer(b"".join(sent))
        for transfer in transfers:
            ctypes.memmove(transfer.rx_buf, answer, transfer.len)
            answer = answer[transfer.len :]


@pytest.fixture
def driver(tmp_path: Path) -> Driver:
    driver = Driver(tmp_path)
    driver.plug("spidev0.0", "spidev0.1", "spidev1.0")
    return driver


def test_request_numbers_are_those_of_the_header() -> None:
    # Values printed by a C program that includes linux/spi/spidev.h, on x86-64 and aarch64.
    assert spi.SPI_IOC_WR_MODE32 == 0x40046B05
    assert spi.SPI_IOC_WR_MAX_SPEED_HZ == 0x40046B04
    assert spi.SPI_IOC_WR_BITS_PER_WORD == 0x40016B03
    assert message_request(1) == 0x40206B00
    assert message_request(2) == 0x40406B00
    assert message_request(spi.MOST_PARTS) == 0x7FE06B00


def test_a_transfer_has_the_layout_of_the_header() -> None:
    packed = pack_message([(0x1122334455667788, 0x99AABBCCDDEEFF00, 3)], 500_000)
    assert len(packed) == ctypes.sizeof(Transfer) == 32
    first = Transfer.from_buffer(packed)
    assert (first.tx_buf, first.rx_buf, first.len, first.speed_hz) == (
        0x1122334455667788,
        0x99AABBCCDDEEFF00,
        3,
        500_000,
    )
    assert (first.delay_usecs, first.bits_per_word, first.cs_change) == (0, 8, 0)
    assert (first.tx_nbits, first.rx_nbits, first.word_delay_usecs, first.pad) == (0, 0, 0, 0)


async def test_sent_and_received_bytes(driver: Driver) -> None:
    driver.answer = lambda sent: bytes(byte ^ 0xFF for byte in sent)
    async with driver.buses.open("0", 1, SpiSettings()) as device:
        port: SpiDevice = device
        assert await port.transfer(b"\x01\x80\x00") == [b"\xfe\x7f\xff"]
        assert await port.transfer(b"\x9f", b"\x00\x00\x00") == [b"\x60", b"\xff\xff\xff"]
    assert driver.messages == [[b"\x01\x80\x00"], [b"\x9f", b"\x00\x00\x00"]]  # one ioctl each: chip select stays
    assert driver.threads == {"spi-0"}


@pytest.mark.parametrize(
    ("settings", "mode"),
    [(SpiSettings(), 0), (SpiSettings(mode=3), 3), (SpiSettings(mode=1, lsb_first=True), 9)],
)
async def test_settings_are_passed_to_the_driver_once(driver: Driver, settings: SpiSettings, mode: int) -> None:
    async with driver.buses.open("0", 0, settings) as device:
        await device.transfer(b"x")
        await device.transfer(b"y")
    assert driver.requests[:3] == [
        (spi.SPI_IOC_WR_MODE32, struct.pack("=I", mode)),
        (spi.SPI_IOC_WR_BITS_PER_WORD, b"\x08"),
        (spi.SPI_IOC_WR_MAX_SPEED_HZ, struct.pack("=I", 1_000_000)),
    ]
    assert [request for request, _ in driver.requests[3:]] == [message_request(1)] * 2


async def test_devices_on_one_bus_share_a_thread_and_those_on_another_do_not(driver: Driver) -> None:
    async with (
        driver.buses.open("0", 0, SpiSettings()) as first,
        driver.buses.open("0", 1, SpiSettings()) as second,
        driver.buses.open("1", 0, SpiSettings()) as other,
    ):
        names = {thread.name for thread in threading.enumerate()}
        assert {"spi-0", "spi-1"} <= names
        async with trio.open_nursery() as nursery:
            for device in (first, second, other):
                nursery.start_soon(device.transfer, b"x")
    assert driver.threads == {"spi-0", "spi-1"}
    assert not {"spi-0", "spi-1"} & {thread.name for thread in threading.enumerate()}


async def test_a_device_can_be_opened_only_once(driver: Driver) -> None:
    async with driver.buses.open("0", 0, SpiSettings()):
        with pytest.raises(HalError, match="is already open in this program") as caught:
            async with driver.buses.open(str(driver.dev / "spidev0.0"), 0, SpiSettings()):
                raise AssertionError
        assert caught.value.fault is Fault.BUSY
    async with driver.buses.open("0", 0, SpiSettings()) as device:
        assert await device.transfer(b"x") == [b"x"]


async def test_leaving_closes_the_descriptor(driver: Driver) -> None:
    before = len(os.listdir("/proc/self/fd"))
    async with driver.buses.open("0", 0, SpiSettings()):
        assert len(os.listdir("/proc/self/fd")) == before + 1
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize(
    ("request_number", "words"),
    [(spi.SPI_IOC_WR_MODE32, "mode 2 LSB first"), (spi.SPI_IOC_WR_MAX_SPEED_HZ, "1000000 Hz")],
)
async def test_settings_that_the_controller_refuses_are_named(driver: Driver, request_number: int, words: str) -> None:
    driver.fail[request_number & 0xFFFF] = errno.EINVAL
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(HalError, match=f"spidev0.0: the controller does not support {words}") as caught:
        async with driver.buses.open("0", 0, SpiSettings(mode=2, lsb_first=True)):
            raise AssertionError
    assert caught.value.fault is Fault.UNSUPPORTED
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize(
    ("number", "fault"),
    [
        (errno.ESHUTDOWN, Fault.GONE),
        (errno.ETIMEDOUT, Fault.TIMEOUT),
        (errno.EIO, Fault.BUS),
        (errno.EMSGSIZE, Fault.UNSUPPORTED),
    ],
)
async def test_kernel_errors_map_to_faults(driver: Driver, number: int, fault: Fault) -> None:
    async with driver.buses.open("0", 0, SpiSettings()) as device:
        driver.fail[message_request(1) & 0xFFFF] = number
        with pytest.raises(HalError) as caught:
            await device.transfer(b"x")
        assert caught.value.fault is fault
        assert await device.transfer(b"x") == [b"x"]


async def test_a_device_that_was_gone_is_opened_again_with_its_settings(driver: Driver) -> None:
    async with driver.buses.open("0", 0, SpiSettings(mode=3)) as device:
        driver.fail[message_request(1) & 0xFFFF] = errno.ESHUTDOWN
        with pytest.raises(HalError):
            await device.transfer(b"x")
        (driver.dev / "spidev0.0").unlink()
        with pytest.raises(HalError, match="there is no such node"):
            await device.transfer(b"x")
        driver.plug("spidev0.0")
        driver.fail[spi.SPI_IOC_WR_MAX_SPEED_HZ & 0xFFFF] = errno.EINVAL
        with pytest.raises(HalError, match="1000000 Hz"):
            await device.transfer(b"x")
        driver.requests.clear()
        assert await device.transfer(b"x") == [b"x"]
        assert driver.requests[0] == (spi.SPI_IOC_WR_MODE32, struct.pack("=I", 3))


async def test_more_than_spidev_takes_is_refused_before_anything_is_sent(driver: Driver) -> None:
    async with driver.buses.open("0", 0, SpiSettings()) as device:
        assert len((await device.transfer(bytes(3840), bytes(96)))[0]) == 3840
        # On arm64 the kernel rounds each part up to 128 bytes.
        for parts in ((bytes(4097),), (bytes(3841), bytes(128), bytes(1)), (b"x",) * 512):
            with pytest.raises(HalError, match="is more than spidev supports") as caught:
                await device.transfer(*parts)
            assert caught.value.fault is Fault.UNSUPPORTED
    assert len(driver.messages) == 1


async def test_nothing_to_send_is_nothing(driver: Driver) -> None:
    async with driver.buses.open("0", 0, SpiSettings()) as device:
        assert await device.transfer() == []


def test_the_limit_is_the_drivers_own(tmp_path: Path) -> None:
    assert message_limit(tmp_path) == 4096
    parameters = tmp_path / "module/spidev/parameters"
    parameters.mkdir(parents=True)
    (parameters / "bufsiz").write_text("65536\n")
    assert message_limit(tmp_path) == 65536


def test_a_bus_is_a_number_a_node_or_a_link_to_one(driver: Driver, tmp_path: Path) -> None:
    link = tmp_path / "converter"
    link.symlink_to(driver.dev / "spidev0.0")
    for bus in ("0", "spi0", str(driver.dev / "spidev0.0"), str(link)):
        assert find_node(bus, 0, driver.dev).name == "spidev0.0"
        assert find_node(bus, 1, driver.dev).name == "spidev0.1"
    assert find_node(str(driver.dev / "spidev0.1"), 1, driver.dev).name == "spidev0.1"


def test_a_node_of_another_chip_select_is_refused(driver: Driver) -> None:
    with pytest.raises(HalError, match="is chip select 1, not 0: use chip select 1, or the number"):
        find_node(str(driver.dev / "spidev0.1"), 0, driver.dev)


def test_an_error_for_a_missing_device_lists_the_present_ones(driver: Driver, tmp_path: Path) -> None:
    with pytest.raises(HalError, match=r"there is no .*spidev0.2: use one of .*: spidev0.0, spidev0.1, spidev1.0"):
        find_node("0", 2, driver.dev)
    with pytest.raises(HalError, match="is not an SPI bus"):
        find_node("/dev/null", 0, driver.dev)
    with pytest.raises(HalError, match="enable SPI") as caught:
        find_node("0", 0, tmp_path / "empty")
    assert caught.value.fault is Fault.GONE
