"""Which addresses are called: every form of a forbidden address, and the addresses that an allow list permits."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triggers.ssrf import Allow, WebhookRefused, check_address, parse_url

# fmt: off
REFUSED_URLS = [
    # other schemes
    "ftp://example.com/", "file:///etc/passwd", "gopher://example.com/", "javascript:alert(1)", "data:text/plain,x",
    "//example.com/", "example.com", "", "https:", "https://", "http:///x", "unix:///run/x", "ws://example.com/",
    # credentials, fragments, characters
    "https://ann@example.com/", "https://ann:x@example.com/", "https://example.com@10.0.0.1/", "https://@example.com/",
    "https://example.com/#x", "https://example.com\\@10.0.0.1/", "https://example.com\r\nHost: x/",
    "https://exa mple.com/",
    "https://example.com/\x00", "https://example.com/ü", "https://ex\tample.com/", "\thttps://example.com/",
    "https://①②⑦.⓪.⓪.①/", "https://127。0。0。1/", "https://%31%32%37.0.0.1/", "https://example.com/" + "a" * 2100,
    # disguised addresses
    "http://2130706433/", "http://0x7f000001/", "http://017700000001/", "http://0177.0.0.1/", "http://0x7f.0.0.1/",
    "http://127.1/", "http://127.0.1/", "http://0/", "http://00.0.0.0/", "http://127.0.0.01/", "http://127.0.0.1./",
    "http://0x/", "http://1.2.3.4.5/", "http://256.0.0.1/", "http://999999999999/", "http://a.b.0x1/", "http://1.2.3.0x04/",
    "http://169.254.43518/", "http://3232235777/", "http://[127.0.0.1]/", "http://[::1%25eth0]/", "http://[fe80::1%25lo]/",
    "http://[::ffff:127.0.0.1/", "http://::1/", "http://[v1.x]/", "http://[]/",
    # invalid names
    "http://-a.example/", "http://a..b/", "http://.a/", "http://a_-.b-/", "http://" + "a" * 64 + ".com/",
    # ports
    "http://example.com:0/", "http://example.com:22/", "http://example.com:25/", "http://example.com:6379/",
    "http://example.com:6000/", "http://example.com:99999/", "http://example.com:-1/", "http://example.com:x/",
    "http://example.com:/", "https://example.com:587/",
]
NEVER = [
    "0.0.0.0", "0.1.2.3", "169.254.169.254", "169.254.0.1", "224.0.0.1", "239.255.255.250", "240.0.0.1",
    "255.255.255.255", "100.100.100.200", "168.63.129.16", "192.0.0.192", "::", "fe80::1", "fe80::1%eth0", "ff02::1",
    "fd00:ec2::254", "fd20:ce::254",
    # the same inside IPv6
    "::ffff:169.254.169.254", "::ffff:0:169.254.169.254", "::169.254.169.254", "64:ff9b::169.254.169.254",
    "2002:a9fe:a9fe::1", "::ffff:0.0.0.0", "::ffff:224.0.0.1", "64:ff9b::a9fe:a9fe", "::ffff:a9fe:a9fe",
]
PRIVATE = [
    "127.0.0.1", "127.255.255.254", "10.0.0.1", "10.255.255.255", "172.16.0.1", "172.31.255.255", "192.168.0.1",
    "192.168.255.255", "100.64.0.1", "100.127.255.255", "192.0.0.1", "192.0.2.1", "198.18.0.1", "198.19.255.255",
    "198.51.100.1", "203.0.113.1", "192.88.99.1", "::1", "fc00::1", "fd12:3456::1", "fdff::1", "fec0::1",
    "2001:db8::1", "2001::1", "2001:0:4136:e378::1", "100::1", "64:ff9b:1::1", "3fff::1", "5f00::1",
    "::ffff:127.0.0.1", "::ffff:7f00:1", "::ffff:10.0.0.1", "::127.0.0.1", "::ffff:0:10.0.0.1", "64:ff9b::10.0.0.1",
    "64:ff9b::7f00:1", "2002:7f00:1::1", "2002:c0a8:1::", "::ffff:192.168.1.1",
]
PUBLIC = [
    "1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.1",
    "169.253.255.255", "169.255.0.1", "172.15.255.255", "172.32.0.0", "192.167.255.255", "192.169.0.0",
    "223.255.255.255",
    "2606:4700::1111", "2a00:1450::1", "2001:4860:4860::8888", "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1",
]
# fmt: on


@pytest.mark.parametrize("url", REFUSED_URLS)
def test_refused_urls(url: str) -> None:
    with pytest.raises(WebhookRefused) as caught:
        parse_url(url)
    assert caught.value.reason


@pytest.mark.parametrize(
    ("url", "host", "port", "path"),
    [
        ("https://example.com", "example.com", 443, "/"),
        ("http://example.com/a/b?c=d&e=%20", "example.com", 80, "/a/b?c=d&e=%20"),
        ("HTTPS://EXAMPLE.com:8443/x", "example.com", 8443, "/x"),
        ("https://example.com.?a", "example.com", 443, "/?a"),
        ("http://xn--bcher-kva.example/", "xn--bcher-kva.example", 80, "/"),
        ("http://localhost:8090/hook", "localhost", 8090, "/hook"),
        ("http://10.0.0.1:81/", "10.0.0.1", 81, "/"),
        ("http://[2001:DB8::1]:81/", "2001:db8::1", 81, "/"),
        ("http://[::ffff:1.2.3.4]/", "::ffff:102:304", 80, "/"),
        ("http://my_host.internal/", "my_host.internal", 80, "/"),
    ],
)
def test_where_a_url_leads(url: str, host: str, port: int, path: str) -> None:
    target = parse_url(url)
    assert (target.host, target.port, target.path) == (host, port, path)


@pytest.mark.parametrize("address", NEVER)
def test_never_called_whatever_is_allowed(address: str) -> None:
    everything = Allow.parse(["0.0.0.0/0", "::/0", "host"])
    for allow in (Allow(), everything):
        with pytest.raises(WebhookRefused, match="may not be called"):
            check_address(address, "host", allow)


@pytest.mark.parametrize("address", PRIVATE)
def test_private_addresses_are_called_only_where_allowed(address: str) -> None:
    with pytest.raises(WebhookRefused, match="administrator"):
        check_address(address, "host")
    with pytest.raises(WebhookRefused):
        check_address(address, "host", Allow.parse(["other", "8.0.0.0/8"]))
    check_address(address, "host", Allow.parse(["HOST."]))
    check_address(address, "host", Allow.parse(["0.0.0.0/0", "::/0"]))


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_called(address: str) -> None:
    check_address(address, "host")


def test_an_allowed_network_opens_what_it_holds_and_no_more() -> None:
    allow = Allow.parse(["192.168.1.0/24", "10.1.2.3", "fd00:1::/64"])
    for address in ("192.168.1.7", "10.1.2.3", "fd00:1::9", "::ffff:192.168.1.7"):
        check_address(address, "x", allow)
    for address in ("192.168.2.7", "10.1.2.4", "fd00:2::9", "127.0.0.1", "::ffff:10.1.2.4"):
        with pytest.raises(WebhookRefused):
            check_address(address, "x", allow)


@pytest.mark.parametrize(
    "entry", ["", "a b", "10.0.0.1/8", "http://x", "x:80", "1.2.3", "0x7f.1", "*.x", "10.0.0.0/99"]
)
def test_entries_that_mean_nothing(entry: str) -> None:
    with pytest.raises(ValueError, match="not a host name, address or network"):
        Allow.parse([entry])


@given(st.ip_addresses())
def test_nothing_that_python_knows_to_be_private_is_called(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    inside = mapped or address
    if inside.is_private or inside.is_loopback or inside.is_link_local or inside.is_multicast or inside.is_reserved:
        if any(address in ipaddress.ip_network(network) for network in ("64:ff9b::/96", "::/96")):
            return  # only the embedded address matters
        with pytest.raises(WebhookRefused):
            check_address(address)


@given(st.ip_addresses(v=4))
def test_an_address_inside_ipv6_is_treated_as_itself(address: ipaddress.IPv4Address) -> None:
    def refused(text: str) -> bool:
        try:
            check_address(text)
        except WebhookRefused:
            return True
        return False

    number = int(address)
    forms = [f"::ffff:{address}", f"64:ff9b::{address}", f"2002:{number >> 16:x}:{number & 0xFFFF:x}::1"]
    assert {refused(form) for form in forms} == {refused(str(address))}


@given(st.text(max_size=40))
def test_every_text_is_a_target_or_refused(text: str) -> None:
    for url in (text, f"https://{text}", f"https://example.com:{text}", f"http://[{text}]/"):
        try:
            target = parse_url(url)
        except WebhookRefused:
            continue
        assert target.host
        assert "@" not in target.host
        assert 0 < target.port < 65536
        assert target.path.startswith("/")


def test_a_host_name_has_up_to_253_characters() -> None:
    name = ".".join(["a" * 61] * 4) + ".abcde"
    assert len(name) == 253
    assert parse_url(f"https://{name}/").host == name
    with pytest.raises(WebhookRefused):
        parse_url(f"https://{name}f/")
