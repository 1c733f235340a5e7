"""Networks as settings of wpa_supplicant."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netmgr.model.network import Enterprise, Open, Personal, Security, UsableNetwork
from netmgr.model.settings import Hotspot
from netmgr.wifi.network import CERTAIN, MAX_BLOB, SYSTEM_AUTHORITIES, Requested, client, hotspot, quietest
from schema.errors import ErrorKind, MachineError


def pem(data: bytes, kind: str = "CERTIFICATE") -> str:
    return f"-----BEGIN {kind}-----\n{base64.encodebytes(data).decode()}-----END {kind}-----\n"


def network(security: Security, ssid: bytes = b"home", hidden: bool = False) -> UsableNetwork:
    return UsableNetwork(label="home", kind="wifi", source="cloud", ssid=ssid, security=security, hidden=hidden)


PEAP = Enterprise(
    method="peap", identity='a"b', password="p\nq", ca_certificate=pem(b"authority"), server_name="r.example"
)
TLS = Enterprise(
    method="tls", identity="device", ca_certificate=pem(b"p", "EC PARAMETERS") + pem(b"a"),
    client_certificate=pem(b"c"),
    private_key=pem(b"k", "ENCRYPTED PRIVATE KEY"), private_key_password="word",
)  # fmt: skip


def values_of(requested: Requested) -> dict[str, str]:
    (values,) = requested.alternatives
    return values


def test_an_open_network_may_have_owe() -> None:
    alternatives = client(network(Open())).alternatives
    assert [values["key_mgmt"] for values in alternatives] == ["OWE", "NONE"]
    assert {(values["ssid"], values["scan_ssid"]) for values in alternatives} == {(b"home".hex(), "0")}


def test_a_password_is_for_wpa2_and_wpa3() -> None:
    values = values_of(client(network(Personal(passphrase='a "b" \\c'), hidden=True)))
    assert values["key_mgmt"].split() == ["WPA-PSK", "WPA-PSK-SHA256", "SAE"]
    assert values["psk"] == '"a "b" \\c"'
    assert bytes.fromhex(values["sae_password"]) == b'a "b" \\c'
    assert (values["ieee80211w"], values["scan_ssid"]) == ("1", "1")


def test_a_radio_without_wpa3_uses_wpa2() -> None:
    values = values_of(client(network(Personal(passphrase="password")), sae=False))
    assert "SAE" not in values["key_mgmt"]
    assert "sae_password" not in values


def test_a_key_is_for_wpa2_only() -> None:
    values = values_of(client(network(Personal(passphrase="ab" * 32))))
    assert (values["psk"], values["key_mgmt"]) == ("ab" * 32, "WPA-PSK WPA-PSK-SHA256")


def test_peap() -> None:
    requested = client(network(PEAP))
    values = values_of(requested)
    assert (values["key_mgmt"], values["eap"], values["phase2"]) == (
        "WPA-EAP WPA-EAP-SHA256",
        "PEAP",
        '"auth=MSCHAPV2"',
    )
    assert bytes.fromhex(values["password"]) == b"p\nq"
    assert bytes.fromhex(values["identity"]) == bytes.fromhex(values["anonymous_identity"]) == b'a"b'
    assert bytes.fromhex(values["domain_suffix_match"]) == b"r.example"
    assert values["ca_cert"] == '"blob://ca-certificate"'
    assert requested.blobs == {"ca-certificate": b"authority"}


def test_dates_of_certificates_are_checked_unless_the_clock_is_certainly_wrong() -> None:
    assert "phase1" not in values_of(client(network(PEAP), now=CERTAIN))
    assert values_of(client(network(PEAP), now=86400.0))["phase1"] == '"tls_disable_time_checks=1"'


def test_tls() -> None:
    requested = client(network(TLS))
    assert values_of(requested)["eap"] == "TLS"
    assert bytes.fromhex(values_of(requested)["private_key_passwd"]) == b"word"
    assert requested.blobs["client-certificate"] == b"c"
    assert requested.blobs["ca-certificate"] == b"a"
    assert requested.blobs["private-key"].startswith(b"-----BEGIN ENCRYPTED")


def test_without_an_authority_the_system_decides_but_only_with_a_name() -> None:
    trusting = Enterprise(method="peap", identity="i", password="p", server_name="r.example")
    assert values_of(client(network(trusting)))["ca_cert"] == f'"{SYSTEM_AUTHORITIES}"'
    with pytest.raises(MachineError, match="ca_certificate") as caught:
        client(network(Enterprise(method="peap", identity="i", password="p")))
    assert caught.value.kind is ErrorKind.INVALID


@pytest.mark.parametrize(
    "security",
    [
        Personal(passphrase="short"),
        Personal(passphrase="with\nnewline"),
        Personal(passphrase="x" * 64),
        Enterprise(method="tls", identity="i", ca_certificate="no certificate"),
        Enterprise(method="tls", identity="i", ca_certificate=pem(b"x") + pem(b"x")),
        Enterprise(method="tls", identity="i", ca_certificate=pem(b"x" * (MAX_BLOB + 1))),
    ],
)
def test_invalid_credentials_are_rejected_without_showing_them(security: Security) -> None:
    with pytest.raises(MachineError) as caught:
        client(network(security))
    assert caught.value.kind is ErrorKind.INVALID
    assert "home" in str(caught.value)
    assert "xxx" not in str(caught.value)
    assert "newline" not in str(caught.value)


@given(
    st.binary(min_size=1, max_size=32), st.text("abc \"'\\", min_size=8, max_size=63), st.text(min_size=1, max_size=40)
)
def test_values_cannot_add_settings(ssid: bytes, passphrase: str, identity: str) -> None:
    enterprise = Enterprise(method="peap", identity=identity, password=identity, server_name=identity)
    for security in (Personal(passphrase=passphrase), enterprise):
        values = values_of(client(network(security, ssid)))
        assert bytes.fromhex(values["ssid"]) == ssid
        assert all("\n" not in value for value in values.values())


def test_requests_have_no_text_form() -> None:
    requested = client(network(Personal(passphrase="the password")))
    assert "password" not in f"{requested} {requested!r}"


def test_a_hotspot_has_wpa2() -> None:
    values = values_of(hotspot(Hotspot(ssid=b"setup", password="password"), 2437))
    assert (values["mode"], values["frequency"], values["key_mgmt"], values["proto"]) == ("2", "2437", "WPA-PSK", "RSN")
    with pytest.raises(MachineError, match="hotspot"):
        hotspot(Hotspot(ssid=b"setup", password="short"), 2437)


def test_the_hotspot_uses_the_quietest_channel() -> None:
    assert quietest([]) == 2437
    assert quietest([2437, 2412, 5180]) == 2462
    assert quietest([2437, 2437, 2412, 2462, 2462]) == 2412
