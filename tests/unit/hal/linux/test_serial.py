"""Serial ports on ptys, for both families."""

from __future__ import annotations

import array
import fcntl
import os
from pathlib import Path

import pytest
import trio

from hal.errors import Fault, HalError
from hal.inventory.serial_port import find_serial_port, is_stable, serial_port_paths, serial_ports
from hal.linux.serial import LONGEST_DRAIN, SerialStream, open_serial
from hal.ports.serial import SerialIdentity, SerialSettings
from hal.sim.serial import serial_line


async def test_bytes_go_both_ways() -> None:
    with serial_line() as line:
        async with open_serial(line.path, SerialSettings(9600, parity="even", stop_bits=2)) as port:
            await line.far.send_all(b"hello \x00\xff\r\n")
            assert await port.receive_some() == b"hello \x00\xff\r\n"
            await port.send_all(b"answer")
            assert await line.far.receive_some() == b"answer"


async def test_more_than_the_kernel_holds_is_sent_while_it_is_read() -> None:
    data = os.urandom(200_000)
    with serial_line() as line:
        async with open_serial(line.path, SerialSettings()) as port, trio.open_nursery() as nursery:
            nursery.start_soon(port.send_all, data)
            received = bytearray()
            while len(received) < len(data):
                received += await line.far.receive_some()
    assert bytes(received) == data


async def test_an_unplugged_device_is_gone_and_wakes_its_reader() -> None:
    with serial_line() as line:
        async with open_serial(line.path, SerialSettings()) as port, trio.open_nursery() as nursery:

            async def read() -> None:
                with pytest.raises(HalError) as caught:
                    await port.receive_some()
                assert caught.value.fault is Fault.GONE

            nursery.start_soon(read)
            await trio.testing.wait_all_tasks_blocked()
            line.far.close()


async def test_closing_wakes_the_reader_and_is_idempotent() -> None:
    with serial_line() as line:
        port = open_serial(line.path, SerialSettings())
        async with trio.open_nursery() as nursery:

            async def read() -> None:
                with pytest.raises(trio.ClosedResourceError):
                    await port.receive_some()

            nursery.start_soon(read)
            await trio.testing.wait_all_tasks_blocked()
            await port.aclose()
        await port.aclose()
        with pytest.raises(trio.ClosedResourceError):
            await port.send_all(b"x")


async def test_cancelling_a_read_loses_nothing() -> None:
    with serial_line() as line:
        async with open_serial(line.path, SerialSettings()) as port:
            with trio.CancelScope() as scope:
                scope.cancel()
                await port.receive_some()
            await line.far.send_all(b"kept")
            assert await port.receive_some() == b"kept"


async def test_opening_twice_is_a_busy_error() -> None:
    with serial_line() as line:
        async with open_serial(line.path, SerialSettings()):
            with pytest.raises(HalError) as caught:
                open_serial(line.path, SerialSettings())
            assert caught.value.fault is Fault.BUSY
        await open_serial(line.path, SerialSettings()).aclose()


def test_a_missing_port_is_gone_and_a_file_is_not_a_port(tmp_path: Path) -> None:
    with pytest.raises(HalError) as caught:
        open_serial(str(tmp_path / "ttyNONE"), SerialSettings())
    assert caught.value.fault is Fault.GONE
    plain = tmp_path / "plain"
    plain.write_bytes(b"")
    with pytest.raises(HalError, match="plain"):
        open_serial(str(plain), SerialSettings())


TCGETS2 = 0x802C542A  # asm-generic/ioctls.h; the speeds are at the end of struct termios2


@pytest.mark.parametrize("baud", [9600, 250_000, 31_250, 123_456])
async def test_any_rate_of_baud(baud: int) -> None:
    with serial_line() as line:
        stream = open_serial(line.path, SerialSettings(baud))
        assert isinstance(stream, SerialStream)
        async with stream:
            raw = array.array("i", [0] * 64)
            fcntl.ioctl(stream.fileno(), TCGETS2, raw)
            assert (raw[9], raw[10]) == (baud, baud)


class Held(SerialStream):
    """A port that sends nothing, as if held by flow control; a pty would send everything at once."""

    unsent = 1200

    def _unsent(self) -> int:
        return self.unsent if self.fileno() >= 0 else 0


async def test_closing_gives_the_wire_the_time_it_needs_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        await trio.lowlevel.checkpoint()
        slept.append(seconds)

    monkeypatch.setattr(trio, "sleep", sleep)
    for unsent, baud, seconds in ((1200, 115200, 0.125), (50_000, 9600, LONGEST_DRAIN)):
        with serial_line() as line:
            port = Held(os.open(line.path, os.O_RDWR | os.O_NOCTTY), line.path, baud)
            port.unsent = unsent
            with trio.CancelScope() as scope:
                scope.cancel()  # as if the driver were being stopped
                await port.aclose()
            assert slept.pop() == pytest.approx(seconds)
            assert slept == []
            assert port.fileno() == -1
            with pytest.raises(HalError):  # the port is really closed
                await line.far.receive_some()


# ---- by identity, in a tree like that of sysfs and udev


def plug(root: Path, name: str, *, usb: tuple[str, str, str] | None = None, interface: int = 0, link: str = "") -> None:
    """Create what the kernel and udev show for a serial port, on a USB device or on the board."""
    tty = root / "sys/class/tty" / name
    tty.mkdir(parents=True)
    node = root / "dev" / name
    node.parent.mkdir(exist_ok=True)
    node.touch()
    if usb is None:
        place = root / "sys/devices/platform" / name
        place.mkdir(parents=True)
        (tty / "type").write_text("4\n")
    else:
        device = root / "sys/devices/pci0/usb1" / f"1-{name}"
        place = device / f"1-1:1.{interface}" / name
        place.mkdir(parents=True)
        (place.parent / "bInterfaceNumber").write_text(f"{interface:02x}\n")
        for file, text in zip(("idVendor", "idProduct", "serial"), usb, strict=True):
            if text:
                (device / file).write_text(text + "\n")
        (device / "product").write_text("FT232R\n")
    (tty / "device").symlink_to(place)
    if link:
        by_id = root / "dev/serial/by-id"
        by_id.mkdir(parents=True, exist_ok=True)
        (by_id / link).symlink_to(f"../../{name}")


FTDI = "usb-FTDI_FT232R_HIL0001-if00-port0"


@pytest.fixture
def computer(tmp_path: Path) -> Path:
    plug(tmp_path, "ttyUSB1", usb=("0403", "6001", "HIL0001"), link=FTDI)
    plug(tmp_path, "ttyUSB0", usb=("0403", "6001", "HIL0002"))
    plug(tmp_path, "ttyACM0", usb=("1546", "01a8", ""), interface=2)
    plug(tmp_path, "ttyAMA0")
    for virtual in ("tty0", "ptmx"):
        (tmp_path / "sys/class/tty" / virtual).mkdir()
    plug(tmp_path, "ttyS3")
    (tmp_path / "sys/class/tty/ttyS3/type").write_text("0\n")  # a port number without a UART
    return tmp_path


def test_the_ports_of_a_computer(computer: Path) -> None:
    values = {port.path: port for port in serial_ports(computer)}
    assert list(values) == ["/dev/ttyACM0", "/dev/ttyAMA0", "/dev/ttyUSB0", "/dev/ttyUSB1"]
    assert values["/dev/ttyUSB1"].best == f"/dev/serial/by-id/{FTDI}"
    assert values["/dev/ttyUSB1"].identity == SerialIdentity(0x0403, 0x6001, "HIL0001", 0)
    assert values["/dev/ttyUSB1"].title == "FT232R"
    assert values["/dev/ttyACM0"].identity == SerialIdentity(0x1546, 0x01A8, "", 2)
    assert values["/dev/ttyAMA0"].identity is None
    assert serial_port_paths(computer) == [f"/dev/serial/by-id/{FTDI}", "/dev/ttyACM0", "/dev/ttyUSB0"]
    assert serial_port_paths(computer / "nowhere") == []


def test_a_port_is_found_by_what_its_device_says(computer: Path) -> None:
    assert find_serial_port(SerialIdentity(serial="HIL0001"), computer).path == "/dev/ttyUSB1"
    assert find_serial_port(SerialIdentity(0x0403, 0x6001, "HIL0002"), computer).path == "/dev/ttyUSB0"
    assert find_serial_port(SerialIdentity(0x1546, interface=2), computer).path == "/dev/ttyACM0"


def test_a_device_with_another_serial_number_is_not_taken_and_the_others_are_named(computer: Path) -> None:
    with pytest.raises(HalError) as caught:
        find_serial_port(SerialIdentity(0x0403, 0x6001, "HIL0003"), computer)
    assert caught.value.fault is Fault.GONE
    assert f"/dev/serial/by-id/{FTDI} (USB 0403:6001 serial HIL0001 interface 0)" in str(caught.value)
    with pytest.raises(HalError, match=r"2 serial ports match USB 0403:6001.*add a serial number"):
        find_serial_port(SerialIdentity(0x0403, 0x6001), computer)
    with pytest.raises(HalError, match="there are no serial ports"):
        find_serial_port(SerialIdentity(0x0403), computer / "nowhere")


def test_a_missing_path_names_the_ports_there_are(computer: Path) -> None:
    with pytest.raises(HalError, match=f"No such file.*{FTDI}"):
        open_serial("/dev/ttyNONE", SerialSettings(), computer)


def test_which_paths_are_stable() -> None:
    unstable = [
        path
        for path in ("/dev/ttyUSB0", "/dev/ttyACM1", "/dev/ttyAMA0", f"/dev/serial/by-id/{FTDI}")
        if not is_stable(path)
    ]
    assert unstable == ["/dev/ttyUSB0", "/dev/ttyACM1"]


async def test_a_port_that_became_another_device_s_is_not_kept(computer: Path) -> None:
    """The device number is reassigned between lookup and opening: here to a pty, which belongs to no USB device."""
    with serial_line() as line:
        (computer / "dev/ttyUSB1").unlink()
        (computer / "dev/ttyUSB1").symlink_to(line.path)
        with pytest.raises(HalError, match="no longer the port of USB any:any serial HIL0001") as caught:
            open_serial(SerialIdentity(serial="HIL0001"), SerialSettings(), computer)
        assert caught.value.fault is Fault.GONE
        # Once the kernel lists this number for the USB device, it opens.
        device = os.stat(line.path).st_rdev
        place = computer / f"sys/dev/char/{os.major(device)}:{os.minor(device)}"
        place.mkdir(parents=True)
        (place / "device").symlink_to(computer / "sys/class/tty/ttyUSB1/device")
        await open_serial(SerialIdentity(serial="HIL0001"), SerialSettings(), computer).aclose()
