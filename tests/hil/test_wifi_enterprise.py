"""EAP networks of real hostapd, with certificates that wpa_supplicant gets through its control socket."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from netmgr.model.network import Enterprise
from netmgr.wifi.network import SYSTEM_AUTHORITIES
from tests.hil.rig.guest import Guest
from tests.hil.rig.plant import Plant
from tests.hil.test_wifi import HOME, Wifi, wifi
from tests.scope import RIG, on_demand

__all__ = ["wifi"]

pytestmark = on_demand(60, RIG)

FOLDER = "/run/eap"
SERVER = "radius.example.org"
PASSWORD = 'a "password"'
USERS = f"""* PEAP,TLS
"person" MSCHAPV2 {PASSWORD.encode().hex()} [2]
"""
HOSTAPD = {
    "wpa": "2", "wpa_key_mgmt": "WPA-EAP", "rsn_pairwise": "CCMP", "ieee8021x": "1", "eap_server": "1",
    "eap_user_file": f"{FOLDER}/users", "ca_cert": f"{FOLDER}/authority.pem", "server_cert": f"{FOLDER}/server.pem",
    "private_key": f"{FOLDER}/server.key",
}  # fmt: skip
PEAP = Enterprise(method="peap", identity="person", password=PASSWORD, server_name="example.org")
Pair = tuple[x509.Certificate, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey]


def made(name: str, issuer: Pair | None = None, kind: str = "rsa") -> Pair:
    """Return a certificate and its key, of an authority unless there is an issuer."""
    key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey = ec.generate_private_key(ec.SECP256R1())
    if kind == "rsa":
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    usage = ExtendedKeyUsageOID.SERVER_AUTH if name == SERVER else ExtendedKeyUsageOID.CLIENT_AUTH
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer[0].subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=30))
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
    )
    if issuer is not None:
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
    return builder.sign(issuer[1] if issuer else key, hashes.SHA256()), key


def certificate(pair: Pair) -> str:
    return pair[0].public_bytes(serialization.Encoding.PEM).decode()


def private_key(pair: Pair, password: str = "") -> str:
    protection = serialization.BestAvailableEncryption(password.encode()) if password else serialization.NoEncryption()
    form = serialization.PrivateFormat.PKCS8 if password else serialization.PrivateFormat.TraditionalOpenSSL
    return pair[1].private_bytes(serialization.Encoding.PEM, form, protection).decode()


@pytest.fixture(scope="module")
def authority() -> Pair:
    return made("the authority")


async def access_point(guest: Guest, plant: Plant, authority: Pair) -> None:
    server = made(SERVER, authority)
    await guest.run(f"mkdir -p {FOLDER}")
    texts = {
        "users": USERS,
        "authority.pem": certificate(authority),
        "server.pem": certificate(server),
        "server.key": private_key(server),
    }
    for name, text in texts.items():
        await guest.write(f"{FOLDER}/{name}", text)
    air = await plant.air(radios=2)
    await air.access_point(HOME, hostapd=HOSTAPD)


def changed(base: Enterprise, **fields: Any) -> Enterprise:
    return msgspec.structs.replace(base, **fields)


async def test_peap_and_what_can_be_wrong_with_it(guest: Guest, plant: Plant, wifi: Wifi, authority: Pair) -> None:
    await access_point(guest, plant, authority)
    peap = changed(PEAP, ca_certificate=certificate(authority))
    (heard,) = await wifi.call("scan", interface="wlan0")
    assert heard["cipher"] == "enterprise"
    wrong: Mapping[str, dict[str, str]] = {
        "credentials": {"password": "wrong"},
        "server-certificate": {"server_name": "example.com"},
    }
    for failure, fields in wrong.items():
        assert await wifi.failure(HOME, changed(peap, **fields)) == failure
    other = certificate(made("another authority"))
    assert await wifi.failure(HOME, changed(peap, ca_certificate=other)) == "server-certificate"
    for trusted, result in ((other, "JoinFailed"), (certificate(authority), "Joined")):
        await guest.run("mkdir -p /etc/ssl/certs")
        await guest.write(SYSTEM_AUTHORITIES, trusted)
        kind, report = await wifi.join(HOME, PEAP)
        assert kind == result, report
        assert report.get("failure", "server-certificate") == "server-certificate"
    assert (await wifi.join(HOME, peap))[0] == "Joined"


@pytest.mark.parametrize(("key", "password"), [("rsa", ""), ("rsa", "of the key"), ("ec", ""), ("ec", "of the key")])
async def test_tls(guest: Guest, plant: Plant, wifi: Wifi, authority: Pair, key: str, password: str) -> None:
    await access_point(guest, plant, authority)
    client = made("device", authority, key)
    tls = Enterprise(
        method="tls", identity="device", ca_certificate=certificate(authority), server_name=SERVER,
        client_certificate=certificate(client), private_key=private_key(client, password),
        private_key_password=password,
    )  # fmt: skip
    assert (await wifi.join(HOME, tls))[0] == "Joined"
    stranger = made("device", made("another authority"))
    refused = changed(tls, client_certificate=certificate(stranger), private_key=private_key(stranger, password))
    assert await wifi.failure(HOME, refused) == "credentials"
