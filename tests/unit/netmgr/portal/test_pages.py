"""The pages of the portal, and requests that must be refused."""

from __future__ import annotations

import re
from urllib.parse import urlencode

import pytest
import trio
import trio.testing

from netmgr.portal.access import ENTRIES, LOCKOUT, TOKEN_LIFETIME, WRONG_PROOFS, Visitors
from netmgr.portal.pages import MAX_FORM, PortalPages
from tests.unit.netmgr.portal.support import BYTES, DEVICE_SECRET, HOME, PART_SECRET, Device
from tests.unit.runtime.parts.web.client import HTML, Browser, Reply

ADDRESS = "10.42.0.1"
CREDENTIALS = '{"cloud": {"id": "p1", "app_address": "https://cloud.example", "secret": "s"}}'


class Phone:
    """A phone in the hotspot, with its own address."""

    def __init__(self, pages: PortalPages, address: str = "10.42.0.17") -> None:
        self.browser = Browser(pages.application(), client=(address, 50000), host=ADDRESS)

    async def open(self) -> Reply:
        return await self.browser.get("/")

    async def token(self) -> str:
        page = await self.open()
        token = re.search(r'name="token" value="([^"]+)"', page.text)
        assert token is not None
        return token[1]

    async def submit(self, path: str = "/save", *, origin: str = f"http://{ADDRESS}", **form: str) -> Reply:
        headers = {**HTML, **({"origin": origin} if origin else {})}
        return await self.browser.post(path, form, headers)

    async def save(self, **form: str) -> Reply:
        return await self.submit(token=await self.token(), **form)


@pytest.fixture
def device() -> Device:
    return Device()


@pytest.fixture
def pages(device: Device) -> PortalPages:
    return PortalPages(device, Visitors(b"k" * 32, (ADDRESS, "machine.setup")))


@pytest.fixture
def phone(pages: PortalPages) -> Phone:
    return Phone(pages)


async def test_the_page_lists_the_networks_and_escapes_their_names(phone: Phone) -> None:
    page = await phone.open()
    assert page.status == 200
    assert 'value="686f6d65"' in page.text  # home
    assert "78 %" in page.text
    assert ">4</span> seconds ago" in page.text
    assert "<script>alert" not in page.text
    assert "caf\\xe9\\x00" in page.text
    assert "script-src 'self'" in page.headers["content-security-policy"]


async def test_a_network_from_the_list_is_entered(device: Device, phone: Phone) -> None:
    reply = await phone.save(network=HOME.ssid.hex(), password="correct horse", ssid="")
    assert (reply.status, reply.headers["location"]) == (303, "/status")
    (entry,) = device.networks
    assert (entry.ssid, entry.passphrase, entry.hidden) == (b"home", "correct horse", False)
    assert (device.left, device.interactions) == (1, 1)


async def test_a_typed_network_is_hidden_and_comes_before_the_list(device: Device, phone: Phone) -> None:
    await phone.save(network=HOME.ssid.hex(), ssid="Café", password="")
    (entry,) = device.networks
    assert (entry.ssid, entry.passphrase, entry.hidden) == ("Café".encode(), "", True)


async def test_an_ssid_that_is_not_text_is_entered_from_the_list(device: Device, phone: Phone) -> None:
    await phone.save(network=BYTES.ssid.hex(), password="12345678")
    assert device.networks[0].ssid == BYTES.ssid


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ({"network": "686f6d65", "password": "short"}, "The password has 5 characters"),
        ({"network": "686f6d65", "password": "x" * 64}, "The password has 64 characters"),
        ({"network": "686f6d65", "password": "pässwort1"}, "characters that no wifi password has"),
        ({"ssid": "x" * 33, "password": ""}, "The name of the network has 33 bytes"),
        ({"network": "zz", "password": ""}, "cannot be read"),
        ({"password": "12345678"}, "The name of the network is missing"),
        ({"viamconfig": "x" * 17_000}, "The credentials have 17000 bytes"),
        ({"viamconfig": "[]"}, "The credentials cannot be used"),
    ],
)
async def test_invalid_entries_are_refused_with_a_remedy(
    device: Device, phone: Phone, form: dict[str, str], text: str
) -> None:
    reply = await phone.save(**form)
    assert reply.status == 400
    assert text in reply.text
    assert form.get("password", "") == "" or form["password"] not in reply.text
    assert (device.networks, device.credentials, device.left) == ([], [], 0)


async def test_credentials_and_network_are_entered_together(device: Device, phone: Phone) -> None:
    await phone.save(network="686f6d65", password="correct horse", viamconfig=CREDENTIALS)
    assert device.credentials == [CREDENTIALS.encode()]
    assert len(device.networks) == 1


async def test_with_refused_credentials_the_network_is_not_entered_either(device: Device, phone: Phone) -> None:
    device.show(configured=True)
    reply = await phone.save(network="686f6d65", password="correct horse", viamconfig=CREDENTIALS)
    assert reply.status == 403
    assert (device.networks, device.credentials, device.left) == ([], [], 0)


@pytest.mark.parametrize("proof", [DEVICE_SECRET, PART_SECRET, f"  {PART_SECRET}\n"])
async def test_a_configured_device_accepts_credentials_with_a_proof(device: Device, phone: Phone, proof: str) -> None:
    device.show(configured=True)
    assert (await phone.save(viamconfig=CREDENTIALS, proof=proof)).status == 303
    assert device.credentials == [CREDENTIALS.encode()]


async def test_a_file_of_the_owner_opens_the_lock(device: Device, phone: Phone) -> None:
    device.show(configured=True)
    device.file = "the owner allows it"
    assert (await phone.save(viamconfig=CREDENTIALS)).status == 303


async def test_guesses_of_all_clients_together_are_limited(
    device: Device, pages: PortalPages, autojump_clock: trio.testing.MockClock
) -> None:
    device.show(configured=True)
    statuses = [
        (await Phone(pages, f"10.42.0.{number}").save(viamconfig=CREDENTIALS, proof=f"guess {number}")).status
        for number in range(10, 10 + WRONG_PROOFS + 1)
    ]
    assert statuses == [403] * WRONG_PROOFS + [429]
    owner = Phone(pages, "10.42.0.99")
    locked = await owner.save(viamconfig=CREDENTIALS, proof=DEVICE_SECRET)
    assert locked.status == 429  # guessing does not become cheaper with the right one at last
    await trio.sleep(LOCKOUT)
    assert (await owner.save(viamconfig=CREDENTIALS, proof=DEVICE_SECRET)).status == 303


async def test_an_empty_secret_proves_nothing(device: Device, phone: Phone) -> None:
    device.show(configured=True)
    assert (await phone.save(viamconfig=CREDENTIALS, proof="")).status == 403
    assert (await phone.save(viamconfig=CREDENTIALS, proof="x" * 600)).status == 403


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://10.42.0.1", "http://10.42.0.1.evil.example"]
)
async def test_forms_of_other_sites_are_refused(device: Device, phone: Phone, origin: str) -> None:
    reply = await phone.submit(origin=origin, token=await phone.token(), network="686f6d65", password="correct horse")
    assert reply.status == 403
    assert device.networks == []


async def test_a_form_needs_the_token_of_its_client(
    device: Device, pages: PortalPages, phone: Phone, autojump_clock: trio.testing.MockClock
) -> None:
    other = await Phone(pages, "10.42.0.66").token()
    for token in ("", "1.2", other, f"99999999999.{other.partition('.')[2]}", "é.é"):
        assert (await phone.submit(token=token, network="686f6d65", password="correct horse")).status == 403
    token = await phone.token()
    await trio.sleep(TOKEN_LIFETIME + 1)
    assert (await phone.submit(token=token, network="686f6d65")).status == 403
    assert device.networks == []


async def test_entries_of_a_client_are_limited_and_others_go_on(
    device: Device, pages: PortalPages, phone: Phone
) -> None:
    statuses = [(await phone.save(ssid=f"net {number}")).status for number in range(ENTRIES + 1)]
    assert statuses == [303] * ENTRIES + [429]
    assert (await Phone(pages, "10.42.0.18").save(ssid="mine")).status == 303


async def test_large_forms_are_refused(device: Device, phone: Phone) -> None:
    body = urlencode({"token": await phone.token(), "viamconfig": "x" * MAX_FORM}).encode()
    assert (await phone.browser.send("POST", "/save", HTML, body)).status >= 400
    many = "&".join(f"f{number}=1" for number in range(100)).encode()
    assert (await phone.browser.send("POST", "/save", HTML, many)).status >= 400
    assert device.interactions == 0


@pytest.mark.parametrize(
    ("host", "path"),
    [
        ("connectivitycheck.gstatic.com", "/generate_204"),
        ("captive.apple.com", "/hotspot-detect.html"),
        ("www.msftconnecttest.com", "/connecttest.txt"),
        ("detectportal.firefox.com", "/success.txt"),
        ("nmcheck.gnome.org", "/check_network_status.txt"),
        ("evil.example", "/save"),
    ],
)
async def test_tests_of_phones_are_sent_to_the_portal(device: Device, phone: Phone, host: str, path: str) -> None:
    reply = await phone.browser.send("GET", path, {**HTML, "host": host})
    assert (reply.status, reply.headers["location"]) == (302, f"http://{ADDRESS}/")
    assert reply.headers["cache-control"] == "no-store"
    assert device.interactions == 0  # a test is not a person


async def test_a_page_whose_name_points_here_cannot_read_a_token(phone: Phone) -> None:
    rebound = await phone.browser.send("GET", "/", {**HTML, "host": "evil.example"})
    assert (rebound.status, rebound.text) == (302, "")


async def test_the_portal_has_a_name_of_its_own(phone: Phone) -> None:
    assert (await phone.browser.send("GET", "/", {**HTML, "host": "Machine.setup:80"})).status == 200


async def test_failures_stay_on_the_page(device: Device, phone: Phone) -> None:
    device.fail("the password is wrong")
    for _ in range(3):  # the tests of a phone load pages too
        assert "the password is wrong" in (await phone.open()).text


@pytest.mark.parametrize(("progress", "refreshes"), [("joining", True), ("joined", True), ("failed", False)])
async def test_the_status_refreshes_itself_while_something_happens(
    device: Device, phone: Phone, progress: str, refreshes: bool
) -> None:
    device.fail("text")
    assert device.shown.attempt is not None
    device.show(attempt=type(device.shown.attempt)(ssid=b"home", progress=progress, text="text", ago=0.0))  # type: ignore[arg-type]
    page = await phone.browser.get("/status")
    assert ('http-equiv="refresh"' in page.text) is refreshes


async def test_the_api_for_captive_portals(phone: Phone) -> None:
    reply = await phone.browser.get("/captive-portal/api")
    assert reply.headers["content-type"] == "application/captive+json"
    assert reply.json() == {"captive": True, "user-portal-url": f"http://{ADDRESS}/"}


async def test_the_script_gets_the_networks(phone: Phone) -> None:
    state = (await phone.browser.get("/state")).json()
    assert state["networks"][0]["name"] == "home"
    assert state["scanned"] == 4.2


async def test_a_search_is_an_interaction(device: Device, phone: Phone) -> None:
    assert (await phone.submit("/scan", token=await phone.token())).status == 303
    assert (device.scans, device.interactions) == (1, 1)
    assert (await phone.submit("/scan", token="")).status == 403
    assert device.scans == 1
