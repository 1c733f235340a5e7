"""USB devices and serial ports, from sysfs without libusb."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from hal.inventory.findings import SerialFinding, UsbFinding
from hal.inventory.sysfs import MACHINE, ROOT, driver, entries, links, number, text

_HUB: Final = "09"  # bDeviceClass (usb.org, Defined Class Codes)


def usb_devices(root: Path = ROOT) -> tuple[UsbFinding, ...]:
    """Return all devices except hubs, in the order of their sockets."""
    return tuple(
        _device(device)
        for device in entries(root / "sys/bus/usb/devices")
        if (device / "idVendor").exists() and text(device / "bDeviceClass") != _HUB
    )


def _device(device: Path) -> UsbFinding:
    bus, address = number(device / "busnum"), number(device / "devnum")
    interfaces = entries(device, f"{device.name}:*")
    return UsbFinding(
        text(device / "idVendor"),
        text(device / "idProduct"),
        device.name,
        text(device / "serial"),
        text(device / "manufacturer"),
        text(device / "product"),
        f"/dev/bus/usb/{bus:03d}/{address:03d}" if bus is not None and address is not None else "",
        tuple(dict.fromkeys(name for name in map(driver, interfaces) if name)),
    )


def serial_findings(root: Path = ROOT) -> tuple[SerialFinding, ...]:
    """Return all ports that belong to hardware; stable names are the system's links, then those of our udev rules."""
    from hal.inventory.serial_port import serial_ports

    own = links(root, [f"{MACHINE}/serial"])
    findings = []
    for port in serial_ports(root):
        identity = port.identity
        findings.append(
            SerialFinding(
                port.path,
                (*port.stable, *own.get(Path(port.path).name, ())),
                f"{identity.vendor:04x}" if identity is not None and identity.vendor is not None else "",
                f"{identity.product:04x}" if identity is not None and identity.product is not None else "",
                identity.serial if identity is not None else "",
                identity.interface if identity is not None else None,
                port.title,
            )
        )
    return tuple(findings)
