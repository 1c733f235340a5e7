"""Simulated radios and the devices that use them: home routers, a phone, and a small Internet behind the routers.

All programs are the kernel's (mac80211_hwsim) and Debian's (hostapd, wpa_supplicant, dnsmasq, busybox). Each radio that
is not the machine's is in a separate network namespace, so it is connected with the machine only by radio.
"""

from __future__ import annotations

import itertools
import json
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import trio

from rpc.access import proof
from tests.hil.guest.control import Control
from tests.hil.guest.namespaces import Answer, Namespace, command, end
from tests.hil.guest.probes import PROBES

RADIOS = Path("/sys/class/ieee80211")
DEBUG = Path("/sys/kernel/debug/ieee80211")
FOLDER = Path("/run/air")
RUNS_SYSTEMD = Path("/run/systemd/system").exists()
INTERNET = "203.0.113.1"  # TEST-NET-3: every name of the simulated Internet resolves to it
NOBODY = "203.0.113.77"  # an address there that nobody has: what is sent to it is not answered
CLOUD = "cloud.example"  # it answers with proofs of the key CLOUD_KEY
CLOUD_KEY = "hil"
HEARD, AWAY = "1", "2"  # groups of mac80211_hwsim: radios of different groups do not hear each other
CHANNELS = " ".join(str(2407 + 5 * channel) for channel in range(1, 14))  # MHz; a scan of all others would take 8 s
SENT = 20  # transmit power in dBm, to which mac80211_hwsim adds `rx_rssi`
PORTAL = "http://portal.home.example/"
JOIN_EVENTS = ("CTRL-EVENT-CONNECTED", "CTRL-EVENT-SSID-TEMP-DISABLED", "CTRL-EVENT-AUTH-REJECT")
REFUSED = ("reason=WRONG_KEY", "auth_type=3")  # by WPA2, by SAE

DNSMASQ = """user=root
pid-file={folder}/dnsmasq.pid
log-facility={folder}/dnsmasq.log
no-resolv
no-hosts
bind-dynamic
"""
"""The common configuration of every dnsmasq here."""

LEASES = """interface={device}
dhcp-leasefile={folder}/leases
dhcp-range={net}.10,{net}.99,1h
dhcp-authoritative
no-ping
"""

UPLINKS = {
    "internet": f"server={INTERNET}\n",
    "none": f"server={INTERNET}\n",
    "portal": "address=/#/{net}.1\n",
    "silent-names": f"server={NOBODY}\n",
    "no-names": "address=/#/\n",
    "wrong-names": f"address=/#/{NOBODY}\n",
}
"""The configuration of a router's name server, by its uplink. Without an uplink it has no server to query."""
UNCONNECTED = ("none", "portal")
"""Uplinks without a route to the Internet."""

HOSTAPD = """interface={device}
ctrl_interface={folder}
driver=nl80211
ssid2={ssid}
hw_mode=g
channel={channel}
ignore_broadcast_ssid={hidden}
"""

SECURITY = {
    "open": "",
    "wpa2": "wpa=2\nwpa_key_mgmt=WPA-PSK\nrsn_pairwise=CCMP\nwpa_passphrase={passphrase}\n",
    "wpa3": "wpa=2\nwpa_key_mgmt=SAE\nrsn_pairwise=CCMP\nieee80211w=2\nsae_password={passphrase}\n",
}

WPA = f"""ctrl_interface={{folder}}
freq_list={CHANNELS}
bss_expiration_scan_count=1
"""

LEASE_SCRIPT = """#!/bin/sh
[ "$1" = bound ] && env > {folder}/lease
exit 0
"""


@dataclass
class Radio:
    """A radio, and its namespace."""

    phy: str
    device: str
    namespace: Namespace
    folder: Path = field(init=False)

    def __post_init__(self) -> None:
        self.folder = FOLDER / self.namespace.name

    def tune(self, name: str, value: str) -> None:
        """Write a setting of mac80211_hwsim."""
        (DEBUG / self.phy / "hwsim" / name).write_text(value)


def _internet_answer(host: str, path: str) -> Answer:
    if host == CLOUD:
        nonce = path.partition(f"?{proof.NONCE}=")[2]
        return 200, {}, json.dumps(proof.answer(CLOUD_KEY, nonce, int(time.time())))
    for probe in PROBES.values():
        if (probe.host, probe.path) == (host, path):
            return probe.status, {}, probe.body
    return 200, {}, f"{host}{path} of the Internet\n"


def _make_folder() -> None:
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    Path("/etc/resolv.conf").touch()  # `ip netns exec` mounts the file of a namespace over it


def _radios() -> list[tuple[str, str]]:
    """Return the radios in the machine's namespace and their devices, in the order of their numbers."""
    phys = sorted((path.name for path in RADIOS.iterdir()), key=lambda name: int(name.removeprefix("phy")))
    return [(phy, next((RADIOS / phy / "device" / "net").iterdir()).name) for phy in phys]


class Air:
    """The radios: the first `machine` ones belong to the machine, the others are available for `take`."""

    def __init__(self, radios: int = 3, machine: int = 1) -> None:
        self._counts = (radios, machine)
        self._free: list[Radio] = []
        self.numbers = itertools.count(1)  # of home networks
        self.devices: list[str] = []
        self.internet = Namespace("internet")
        self._namespaces = [self.internet]

    async def run(self, task_status: trio.TaskStatus[None]) -> None:
        count, machine = self._counts
        _make_folder()
        await command("sh", "-c", f"mountpoint -q {DEBUG.parent} || mount -t debugfs debugfs {DEBUG.parent}")
        await command("modprobe", "-r", "mac80211_hwsim")
        await command("modprobe", "mac80211_hwsim", f"radios={count}")
        await command("udevadm", "settle")
        radios = _radios()
        self.devices = [device for _, device in radios[:machine]]
        for phy, device in radios[machine:]:
            namespace = Namespace(f"radio-{device}")
            await self._open(namespace)
            await command("iw", "phy", phy, "set", "netns", "name", namespace.name)
            self._free.append(Radio(phy, device, namespace))
        await self._open_internet()
        async with trio.open_nursery() as nursery:
            await nursery.start(self.internet.serve_web, INTERNET, _internet_answer)
            task_status.started()

    async def _open(self, namespace: Namespace) -> None:
        await namespace.open()
        (FOLDER / namespace.name).mkdir()
        self._namespaces.append(namespace)

    async def _open_internet(self) -> None:
        await self._open(self.internet)
        await self.internet.ip(f"address add {INTERNET}/32 dev lo")
        self.internet.resolve_by([INTERNET])
        settings = FOLDER / "internet" / "dnsmasq.conf"
        settings.write_text(f"{DNSMASQ.format(folder=settings.parent)}address=/#/{INTERNET}\n")
        await self.internet.run("dnsmasq", f"--conf-file={settings}")

    def take(self) -> Radio:
        """Return a radio for a device at the other end."""
        if not self._free:
            raise ValueError(f"all {self._counts[0]} radios are in use: make the air with more")
        return self._free.pop(0)

    async def close(self) -> None:
        """Remove the radios and everything that used them, including NetworkManager."""
        if RUNS_SYSTEMD:
            await command("systemctl", "stop", "NetworkManager", "wpa_supplicant")
        for namespace in reversed(self._namespaces):
            await namespace.close()
        await command("modprobe", "-r", "mac80211_hwsim")


class AccessPoint:
    """A home router: an access point, DHCP and DNS, and a link to the Internet."""

    def __init__(self, air: Air, settings: Mapping[str, Any]) -> None:
        self._internet = air.internet
        self._radio = air.take()
        self._number = next(air.numbers)
        self._settings = dict(settings)
        self._net = f"192.168.{50 + self._number}"
        self._home = self._radio.namespace
        self.namespace = self._home.name
        self.address = f"{self._net}.1"

    async def run(self, task_status: trio.TaskStatus[None]) -> None:
        link, device = f"100.64.{self._number}", self._radio.device
        self._forward()
        await self._home.ip(
            f"address add {self.address}/24 dev {device}",
            f"link add wan type veth peer name home{self._number} netns {self._internet.name}",
            f"address add {link}.2/30 dev wan",
        )
        await self._internet.ip(
            f"address add {link}.1/30 dev home{self._number}",
            f"link set home{self._number} up",
            f"route add {self._net}.0/24 via {link}.2",
        )
        await self.up()
        async with trio.open_nursery() as nursery:
            await nursery.start(self._home.serve_web, self.address, self._answer)
            task_status.started()

    def _forward(self) -> None:
        with self._home.inside():
            Path("/proc/sys/net/ipv4/ip_forward").write_text("1")

    async def up(self, **changed: Any) -> None:
        """Switch it on, with changed settings."""
        self._settings |= changed
        settings, folder = self._settings, self._radio.folder
        security = settings["security"] or ("wpa2" if settings["passphrase"] else "open")
        lines = [*(f"{key}={value}\n" for key, value in settings["hostapd"].items())]
        text = (HOSTAPD + SECURITY[security]).format(
            device=self._radio.device,
            folder=folder,
            ssid=settings["ssid"].encode().hex(),
            channel=settings["channel"],
            hidden=int(settings["hidden"]),
            passphrase=settings["passphrase"],
        )
        (folder / "hostapd.conf").write_text(text + "".join(lines))
        self._radio.tune("group", HEARD)
        await self._serve(settings["uplink"])
        await self._home.run("hostapd", "-B", folder / "hostapd.conf")

    async def down(self, *, says_goodbye: bool = False) -> None:
        """Cut its power without notice; `says_goodbye` disconnects its stations first, as a restart does."""
        if says_goodbye:
            async with Control(self._radio.folder / self._radio.device) as control:
                await control.do("TERMINATE")
                await control.event("CTRL-EVENT-TERMINATING")
        self._radio.tune("group", AWAY)
        await self._home.kill()
        await self._home.ip(f"link set {self._radio.device} down")

    async def uplink(self, kind: str) -> None:
        """Change its uplink: one of UPLINKS."""
        self._settings["uplink"] = kind
        await end((self._radio.folder / "dnsmasq.pid").read_text())
        await self._serve(kind)

    async def _serve(self, kind: str) -> None:
        folder, settings = self._radio.folder, self._settings
        text = DNSMASQ + (LEASES if settings["dhcp"] else "no-dhcp-interface={device}\n") + UPLINKS[kind]
        text = text.format(folder=folder, device=self._radio.device, net=self._net)
        (folder / "dnsmasq.conf").write_text(text + "".join(f"{line}\n" for line in settings["dnsmasq"]))
        if kind not in UNCONNECTED:
            await self._home.ip("link set wan up", f"route replace default via 100.64.{self._number}.1")
        else:
            await self._home.ip("link set wan down")
        await self._home.run("dnsmasq", f"--conf-file={folder / 'dnsmasq.conf'}")

    def signal(self, strength: int) -> None:
        """Set the signal strength at the receivers, in dBm from -80 to -10."""
        # debugfs accepts no sign, and mac80211_hwsim reads the number as a signed one
        self._radio.tune("rx_rssi", str(strength - SENT + (1 << 64)))

    def away(self, away: bool = True) -> None:
        """Move it out of reach, or back: it keeps running, but no radio receives it."""
        self._radio.tune("group", AWAY if away else HEARD)

    async def stations(self) -> list[str]:
        """Return the hardware addresses of the connected stations."""
        output = await self._home.run("iw", "dev", self._radio.device, "station", "dump")
        return [line.split()[1] for line in output.splitlines() if line.startswith("Station ")]

    def _answer(self, host: str, path: str) -> Answer:
        if self._settings["uplink"] == "portal" and host not in (self.address, PORTAL.split("/")[2]):
            return 302, {"Location": PORTAL}, ""
        return 200, {}, f"the page of the router {self._settings['ssid']}\n"


class Phone:
    """A phone: it scans, joins a network and gets an address. Its programs run in its namespace."""

    def __init__(self, air: Air) -> None:
        self._radio = air.take()
        self._control: Control
        self.namespace = self._radio.namespace.name

    async def run(self, task_status: trio.TaskStatus[None]) -> None:
        radio = self._radio
        (radio.folder / "wpa.conf").write_text(WPA.format(folder=radio.folder))
        script = radio.folder / "lease.sh"
        script.write_text(LEASE_SCRIPT.format(folder=radio.folder))
        script.chmod(0o755)
        log = radio.folder / "wpa.log"
        await radio.namespace.run(
            "wpa_supplicant", "-B", "-D", "nl80211", "-f", log, "-i", radio.device, "-c", radio.folder / "wpa.conf"
        )
        async with AsyncExitStack() as stack:
            self._control = await stack.enter_async_context(Control(radio.folder / radio.device))
            task_status.started()
            await trio.sleep_forever()

    async def scan(self) -> list[dict[str, Any]]:
        """Return the networks in reach: ssid (empty if hidden), bssid, frequency, signal in dBm, security as flags."""
        # wpa_supplicant refuses while it scans or authenticates by itself, which it does after a network was lost
        while (answer := await self._control.ask("SCAN only_new=1")) == "FAIL-BUSY":
            await self._control.event("")
        if answer != "OK":
            raise OSError(f"wpa_supplicant answers {answer!r} to SCAN")
        await self._control.event("CTRL-EVENT-SCAN-RESULTS")
        networks = []
        for line in (await self._control.ask("SCAN_RESULTS")).splitlines()[1:]:
            bssid, frequency, signal, flags, ssid = [*line.split("\t"), ""][:5]
            networks.append(
                {"ssid": ssid, "bssid": bssid, "frequency": int(frequency), "signal": int(signal), "security": flags}
            )
        return networks

    async def join(self, ssid: str, passphrase: str = "", hidden: bool = False, limit: float = 60.0) -> dict[str, Any]:
        """Wait for a network to appear, join it, and obtain an address.

        Return the lease: address, router, dns, and portal (option 114), empty where not offered. OSError if the
        passphrase is rejected, no address is leased, or it takes more than `limit` seconds.
        """
        with trio.move_on_after(limit):
            return await self._join(ssid, passphrase, hidden)
        raise OSError(f"{ssid} was not joined within {limit:.0f} s")

    async def _join(self, ssid: str, passphrase: str, hidden: bool) -> dict[str, Any]:
        await self.leave()
        control = self._control
        number = await control.ask("ADD_NETWORK")
        keys = {"psk": f'"{passphrase}"', "key_mgmt": "WPA-PSK SAE", "ieee80211w": "1"}
        values = {"ssid": ssid.encode().hex(), "scan_ssid": str(int(hidden))}
        for name, value in {**values, **(keys if passphrase else {"key_mgmt": "NONE"})}.items():
            await control.do(f"SET_NETWORK {number} {name} {value}")
        await control.do("SCAN_INTERVAL 1")
        await control.do(f"SELECT_NETWORK {number}")
        while True:
            event = await control.event(*JOIN_EVENTS)
            if event.startswith("CTRL-EVENT-CONNECTED"):
                return await self._lease()
            if any(word in event for word in REFUSED):
                await self.leave()
                raise OSError(f"{ssid} refuses the passphrase")

    async def _lease(self) -> dict[str, Any]:
        radio, path = self._radio, self._radio.folder / "lease"
        path.unlink(missing_ok=True)
        await radio.namespace.run(
            *("busybox", "udhcpc", "-f", "-n", "-q", "-t", "5", "-T", "1", "-O", "114"),
            *("-i", radio.device, "-s", radio.folder / "lease.sh"),
        )
        options = dict(line.split("=", 1) for line in path.read_text().splitlines() if "=" in line)
        servers: Sequence[str] = options.get("dns", "").split()
        lease = {
            "address": options["ip"],
            "router": options.get("router", ""),
            "dns": list(servers),
            "portal": bytes.fromhex(options.get("opt114", "")).decode(),
        }
        await radio.namespace.ip(
            f"address add {lease['address']}/{options.get('mask', '24')} dev {radio.device}",
            *([f"route add default via {lease['router']}"] if lease["router"] else []),
        )
        radio.namespace.resolve_by(list(servers))
        return lease

    async def leave(self) -> None:
        """Leave the network and forget it."""
        await self._control.do("REMOVE_NETWORK all")
        await self._radio.namespace.ip(f"address flush dev {self._radio.device}")
