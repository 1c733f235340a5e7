"""A fake /sys, /dev and /proc in a folder, laid out as kernels do."""

from __future__ import annotations

from pathlib import Path


class Computer:
    """A computer in a folder; each method adds a device or a file."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, path: str, text: str | bytes = "") -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return file

    def link(self, path: str, target: str) -> None:
        """Create a symbolic link to another path of the same computer."""
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        (self.root / target).mkdir(parents=True, exist_ok=True) if not (self.root / target).exists() else None
        place.symlink_to(self.root / target)

    def firmware(self, model: str, *compatible: str) -> None:
        self.write("proc/device-tree/model", model.encode() + b"\0")
        self.write("proc/device-tree/compatible", b"".join(name.encode() + b"\0" for name in compatible))

    def gpio(self, number: int, label: str, lines: int, device: str) -> None:
        chip = f"sys/devices/platform/{device}/gpiochip{number}"
        self.write(f"{chip}/dev", "254:0")
        self.write(f"sys/devices/platform/{device}/gpio/gpiochip{number + 512}/label", f"{label}\n")
        self.write(f"sys/devices/platform/{device}/gpio/gpiochip{number + 512}/ngpio", f"{lines}\n")
        self.link(f"sys/devices/platform/{device}/gpio/gpiochip{number + 512}/device", f"sys/devices/platform/{device}")
        self.link(
            f"sys/class/gpio/gpiochip{number + 512}", f"sys/devices/platform/{device}/gpio/gpiochip{number + 512}"
        )
        self.link(f"sys/bus/gpio/devices/gpiochip{number}", chip)
        self.write(f"dev/gpiochip{number}")

    def i2c(self, number: int, name: str, *, node: bool = True) -> None:
        device = f"sys/devices/platform/soc/i2c-{number}"
        self.write(f"{device}/name", f"{name}\n")
        self.link(f"sys/bus/i2c/devices/i2c-{number}", device)
        if node:
            self.write(f"dev/i2c-{number}")

    def i2c_driver(self, number: int, address: int, driver: str) -> None:
        client = f"sys/devices/platform/soc/i2c-{number}/{number}-{address:04x}"
        self.write(f"{client}/name", driver)
        self.link(f"{client}/driver", f"sys/bus/i2c/drivers/{driver}")

    def usb(self, port: str, vendor: str, product: str, *, serial: str = "", driver: str = "", kind: str = "00") -> str:
        """Plug a device into the USB port `port`; return the folder of its first interface."""
        device = f"sys/devices/pci0000:00/usb1/{port}"
        values = {"idVendor": vendor, "idProduct": product, "bDeviceClass": kind, "busnum": "1", "devnum": "4"}
        values |= {"manufacturer": "Acme", "product": "Widget"} | ({"serial": serial} if serial else {})
        for name, value in values.items():
            self.write(f"{device}/{name}", f"{value}\n")
        interface = f"{device}/{port}:1.0"
        self.write(f"{interface}/bInterfaceNumber", "00\n")
        if driver:
            self.link(f"{interface}/driver", f"sys/bus/usb/drivers/{driver}")
        self.link(f"sys/bus/usb/devices/{port}", device)
        self.write("dev/bus/usb/001/004")
        return interface

    def tty(self, name: str, device: str, by_id: str = "") -> None:
        self.write(f"{device}/tty/{name}/dev", "188:0")
        self.link(f"{device}/tty/{name}/device", device)
        self.link(f"sys/class/tty/{name}", f"{device}/tty/{name}")
        self.node(f"dev/{name}", f"dev/serial/by-id/{by_id}" if by_id else "")

    def node(self, path: str, stable: str = "", mode: int = 0o660) -> None:
        self.write(path).chmod(mode)
        if stable:
            self.link(stable, path)

    def camera(self, number: int, name: str, index: int = 0, by_id: str = "") -> None:
        self.write(f"sys/class/video4linux/video{number}/name", f"{name}\n")
        self.write(f"sys/class/video4linux/video{number}/index", f"{index}\n")
        self.node(f"dev/video{number}", f"dev/v4l/by-id/{by_id}" if by_id else "")

    def input(self, number: int, name: str, ev: str, key: str, by_id: str = "") -> None:
        device = f"sys/class/input/event{number}/device"
        self.write(f"{device}/name", f"{name}\n")
        self.write(f"{device}/capabilities/ev", f"{ev}\n")
        self.write(f"{device}/capabilities/key", f"{key}\n")
        self.node(f"dev/input/event{number}", f"dev/input/by-id/{by_id}" if by_id else "")
