"""The contents of the guest, as tables: Debian packages, kernel modules, warm Python imports, disabled units."""

from __future__ import annotations

from typing import Final

HOST_TOOLS: Final = {
    "qemu-system-x86_64": "qemu-system-x86",
    "qemu-img": "qemu-utils",
    "mmdebstrap": "mmdebstrap",
    "modprobe": "kmod",
    "cpio": "cpio",
    "busybox": "busybox-static",
    "make": "make",
    "gcc-12": "gcc-12",
    "bc": "bc",
    "zstd": "zstd",
    "mke2fs": "e2fsprogs",
    "xz": "xz-utils",
}
"""Programs needed to build and run the guest, and the Debian package of each."""

PACKAGES: Final = (
    "systemd",
    "systemd-sysv",
    "udev",
    "dbus",
    "kmod",
    "python3",
    "libusb-1.0-0",
    "iproute2",
    "iw",
    "wireless-regdb",
    "wpasupplicant",
    "hostapd",
    "dnsmasq-base",
    "network-manager",
    "ifupdown",
    "dhcpcd-base",
    "busybox",
    "i2c-tools",
    "gpiod",
    "usbutils",
    "v4l-utils",
    "procps",
    "psmisc",
    "iputils-ping",
    "e2fsprogs",
    "dmsetup",
)

BOOT_MODULES: Final = ("virtio_pci", "virtio_blk", "ext4", "crc32c_generic")
"""Modules that the initial file system loads so that the disk can be mounted."""

DRIVERS: Final = ("i2c-dev", "i2c-tiny-usb", "vhci-hcd", "gpio-sim", "ftdi_sio", "cdc_acm", "uinput")
"""Modules that every guest loads at the beginning of a test."""

WARM_MODULES: Final = ("virtio_console", "virtio_net", "virtio_rng", "9p", "9pnet_virtio", "xhci_pci", *DRIVERS)
"""Modules loaded before the state of the guest in QEMU is saved, so that every test begins with them."""

MODULES: Final = (
    # buses
    *("i2c-stub", "i2c-i801", "hid-cp2112", "hid-mcp2221", "spidev", "w1-gpio", "w1-therm"),
    # chips with a driver in the kernel
    *("lm75", "tmp102", "tmp103", "ina2xx", "ina209", "sht3x", "sht4x", "bmp280", "bmp280-i2c", "ti-ads1015"),
    *("inv-mpu6050", "inv-mpu6050-i2c", "at24", "pwm-pca9685", "mcp320x", "gpio-pca953x", "gpio-mcp23s08", "pca9541"),
    # USB, serial, input, cameras
    *("raw_gadget", "dummy_hcd", "libcomposite", "usb_f_acm", "usb_f_serial", "usb_f_hid", "g_serial", "usbip-host"),
    *("usbserial", "cp210x", "ch341", "pl2303", "usbhid", "hid-generic", "uhid", "joydev", "evdev", "usbmon", "cuse"),
    *("vivid", "uvcvideo", "snd-aloop", "usb-storage", "ehci-pci", "uhci-hcd", "ohci-pci", "gpio-keys", "pwm-gpio"),
    # networks
    *("mac80211_hwsim", "ccm", "cmac", "ctr", "gcm", "ghash-generic", "sha256_generic", "aes_generic", "bluetooth"),
    *("hci_vhci", "dummy", "veth", "wireguard", "bridge", "tun", "nf_tables", "nft_masq", "nft_chain_nat", "sch_netem"),
    # the machine itself
    *("ext4", "overlay", "iTCO_wdt", "i6300esb", "softdog", "iio-trig-hrtimer", "iio-trig-sysfs", "industrialio"),
    *("vcan", "can-raw", "efivarfs", "autofs4", "configfs", "brd", "loop", "dm-flakey"),
)
"""Modules available in the guest, with dependencies. Those that this kernel lacks are listed in missing-modules."""

WARM_IMPORTS: Final = (
    *("trio", "msgspec", "grpclib.server", "h11", "trio_websocket", "starlette.applications", "jinja2", "structlog"),
    *("click", "gpiod", "smbus2", "serial", "usb.core", "usb.backend.libusb1", "cryptography.x509", "PIL.Image"),
    *("viam.proto.robot", "viam.gen.component.sensor.v1.sensor_grpc", "viam.gen.component.board.v1.board_grpc"),
)
"""Modules imported before the state is saved, by the interpreter that forks for each program."""

MASKED_UNITS: Final = (
    *(
        "apt-daily.timer",
        "apt-daily-upgrade.timer",
        "dpkg-db-backup.timer",
        "e2scrub_all.timer",
        "e2scrub_reap.service",
    ),
    *("fstrim.timer", "getty@tty1.service", "serial-getty@ttyS0.service", "getty-static.service"),
    *("console-getty.service", "hostapd.service", "wpa_supplicant.service", "dnsmasq.service", "motd-news.timer"),
    *("NetworkManager.service", "NetworkManager-wait-online.service", "networking.service"),
    *("systemd-pstore.service", "systemd-hwdb-update.service", "systemd-update-utmp.service", "ldconfig.service"),
    *("systemd-update-utmp-runlevel.service", "systemd-journal-flush.service", "systemd-binfmt.service"),
    *("systemd-journal-catalog-update.service", "systemd-ask-password-wall.path", "systemd-networkd.service"),
    *("systemd-ask-password-console.path", "systemd-tmpfiles-clean.timer", "systemd-machine-id-commit.service"),
    *("dev-hugepages.mount", "dev-mqueue.mount", "systemd-firstboot.service", "systemd-timesyncd.service"),
)

USER: Final = ("hil", 1000)
"""An unprivileged account, for tests of permissions."""

SITE: Final = "/opt/site"
"""The folder of the Python packages of requirements/test.lock in the guest."""

INIT: Final = "/usr/local/sbin/rig-init"
"""The first process of a guest of User-Mode Linux without systemd."""

SOURCE: Final = "/opt/machine"
"""The mount point of the project's source in the guest after it has resumed."""

SCENARIO: Final = "/usr/local/sbin/rig-scenario"
"""The program that runs the scenario of a test with time travel: see tests.hil.rig.travel."""

SCENARIO_OPTION: Final = "rig.scenario"
"""On the kernel's command line: the host's folder with a scenario's order, mounted at ORDER. Then no agent runs."""

SOURCE_OPTION: Final = "rig.source"
"""On the kernel's command line, with a scenario: the host's folder to mount at SOURCE."""

ORDER: Final = "/run/rig"
"""The folder with the order of a scenario, and later its result."""
