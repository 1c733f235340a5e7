"""Which values are secret, and that no part of them remains."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema.secrets import (
    MASK,
    Masker,
    is_private_path,
    is_secret,
    is_secret_path,
    mask_text,
    masked,
    origin_of,
    secrets_of,
)


@pytest.mark.parametrize(
    "key",
    [
        "secret", "api_key", "apiKey", "API_KEY", "key", "password", "wifiPassword", "hotspot_password", "psk",
        "payload", "token", "access-token", "client_secret", "MY_SERVICE_TOKEN", "private", "private_key",
        "passphrase", "credentials", "location_secrets", "apikey", "api_keys", "apiKey2", "key_1", "passwords",
        "Authorization",
    ],
)  # fmt: skip
def test_secret_keys(key: str) -> None:
    assert is_secret(key)


@pytest.mark.parametrize(
    "key",
    [
        "name", "maintenance_allowed_key", "key_id", "keys", "keyboard", "monkey", "public_key",
        "tls_key_file", "tls_cert_file", "author", "pskov", "tokenizer", "", "_", "123", "id", "board",
        "secretary", "public_keys",
    ],
)  # fmt: skip
def test_harmless_keys(key: str) -> None:
    assert not is_secret(key)


def test_keys_of_api_key_handlers_are_secret_whatever_their_ids() -> None:
    handler = {"type": "api-key", "config": {"1234": "s", "keys": ["1234"]}}
    assert masked({"auth": {"handlers": [handler]}}) == {
        "auth": {"handlers": [{"type": "api-key", "config": {"1234": MASK, "keys": ["1234"]}}]}
    }
    assert is_secret_path(("auth", "handlers", "0", "config", "1234"))
    assert not is_secret_path(("auth", "handlers", "0", "type"))


def test_everything_under_a_secret_key_is_masked_but_emptiness_and_booleans() -> None:
    assert masked({"secret": {"a": ["x", 1, "", None, True]}}) == {"secret": {"a": [MASK, MASK, "", None, True]}}


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("rtsp://me:pw@host/x", "rtsp://me:***@host/x"),
        ("see http://a:b@c and https://d:e:f@g!", "see http://a:***@c and https://d:***@g!"),
        ("http://host:80/x@y", "http://host:80/x@y"),
        ("me:pw@host", "me:pw@host"),
        ("mqtt://:pw@host", "mqtt://:***@host"),
        ("https://host/hook?room=1&token=pw&x=2", "https://host/hook?room=1&token=***&x=2"),
        ("--api-key=pw --level=3", "--api-key=*** --level=3"),
        ("authorization: Bearer pw", "authorization: Bearer ***"),
        ("rtsp://me:p/w@host/x", "rtsp://me:***@host/x"),  # as people write it
        ("http://host:80 and me@host", "http://host:80 and me@host"),
        ('{"api_key": "p\\"w", "id": "x"}', '{"api_key": "***", "id": "x"}'),
        ("{'password': 'pw', 'n': 1}", "{'password': '***', 'n': 1}"),
        ('line 3: "secret": "pw', 'line 3: "secret": "***"'),  # truncated
        ('{"name": "API_KEY", "value": "pw"}', '{"name": "API_KEY", "value": "***"}'),
        ("{'name': 'COLOUR', 'value': 'red'}", "{'name': 'COLOUR', 'value': 'red'}"),
        ("got eyJhbGciOiJ.eyJzdWIi.c2ln!", "got ***!"),
        ("BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY", "BEGIN PRIVATE KEY-----***-----END PRIVATE KEY"),
        ("the key: left is down", "the key: left is down"),
        ("a Basic", "a Basic"),
    ],
)  # fmt: skip
def test_secrets_in_texts(text: str, safe: str) -> None:
    assert mask_text(text) == safe


def test_the_value_next_to_a_secret_name_is_masked() -> None:
    harmless = {"name": "HOST", "value": "here"}
    pairs = [{"name": "API_KEY", "value": "pw"}, {"value": ["pw"], "key": "token"}, harmless]
    expected = [{"name": "API_KEY", "value": MASK}, {"value": [MASK], "key": MASK}, harmless]
    assert masked({"settings": pairs}) == {"settings": expected}


def test_the_url_of_a_webhook_is_a_secret() -> None:
    url = "https://hooks.example.com/services/T0/B0/xyz"
    entries = [{"type": "webhook", "value": url, "secret": ""}, {"type": "email", "value": "ann@example.com"}]
    expected = [{"type": "webhook", "value": MASK, "secret": ""}, {"type": "email", "value": "ann@example.com"}]
    assert masked({"notifications": entries}) == {"notifications": expected}
    assert Masker().and_those_of(entries).text(f"GET {url}: gone") == "GET ***: gone"


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://example.com/hook?token=x", "https://example.com"),
        ("http://me:pw@Example.com:8080/x#y", "http://example.com:8080"),
        ("http://[::1]:80/x", "http://[::1]:80"),
        ("https://example.com:port/x", MASK),
        ("example.com/x", MASK),
        ("", MASK),
        ("https:///x", MASK),
    ],
)
def test_parts_of_a_url_that_may_be_logged(url: str, origin: str) -> None:
    assert origin_of(url) == origin


def test_environments_are_masked_whole() -> None:
    assert masked({"modules": [{"name": "m", "env": {"LOG": "x", "N": 1, "EMPTY": ""}}], "env": "prod"}) == {
        "modules": [{"name": "m", "env": {"LOG": MASK, "N": MASK, "EMPTY": ""}}],
        "env": "prod",
    }
    assert masked({"agent": {"advanced_settings": {"viam_server_env": {"LOG": "x"}, "debug": True}}}) == {
        "agent": {"advanced_settings": {"viam_server_env": {"LOG": MASK}, "debug": True}}
    }


def test_the_secrets_of_a_document() -> None:
    document = {
        "auth": {"handlers": [{"type": "api-key", "config": {"me": "key-of-me", "keys": ["me"]}}]},
        "cloud": {"secret": "s", "id": "part"},
        "modules": [{"env": {"DB": "mqtt://u:in-url@h", "COLOUR": "red", "MY_TOKEN": "in-env"}}],
        "components": [{"attributes": {"vars": [{"name": "PSK", "value": "in-pair"}], "url": "http://u:in-url-2@h/x"}}],
    }
    assert set(secrets_of(document)) == {"key-of-me", "s", "in-url", "in-env", "in-pair", "in-url-2"}


def test_known_secrets_are_masked_everywhere() -> None:
    first = Masker().and_those_of({"password": "hunter2", "psk": "short", "token": "hunter2-and-more"})
    assert first.text("it said hunter2, hunter2-and-more and short") == "it said ***, *** and short"
    second = first.and_those_of({"password": "(new*one"})
    assert second.text("hunter2 became (new*one; api_key=x") == "*** became ***; api_key=***"
    assert second.value({"a": ["x hunter2"], "b": ("(new*one",), "n": 2, "password": "q"}) == {
        "a": ["x ***"],
        "b": (MASK,),
        "n": 2,
        "password": MASK,
    }
    assert Masker().value({"a": "hunter2"}) == {"a": "hunter2"}
    assert Masker([MASK, "", "12345"]).secrets == ()


def test_the_known_are_bounded_and_the_newest_stay() -> None:
    masker = Masker(f"secret-{number}" for number in range(5000))
    assert masker.text("secret-0 secret-4999!").startswith("secret-0 ***")
    assert len(masker.secrets) == 1000


def test_shape_and_other_values_stay() -> None:
    value: dict[str, Any] = {"a": [1, 2.5, "x", None], "b": {"c": (True, {})}}
    assert masked(value) == value
    assert masked(value) is not value


SECRET = "hunter2hunter2"
trees = st.recursive(
    st.just(SECRET) | st.integers(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "secret", "b_key"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(trees)
def test_no_secret_survives_under_a_secret_key(tree: Any) -> None:
    assert SECRET not in repr(masked({"password": tree}))


@given(st.text(max_size=20), st.text(max_size=20))
def test_mask_text_leaves_no_password(user: str, password: str) -> None:
    text = f"x ftp://u:{SECRET}@h {user}:{password}"
    assert SECRET not in mask_text(text)


@pytest.mark.parametrize(
    ("path", "private"),
    [
        (("fragments", "0", "variables", "rpm"), True),
        (("components", "0", "variables", "rpm"), False),
        (("fragments", "0", "variables"), False),
        (("modules", "0", "env", "LANG"), True),
        ((), False),
    ],
)
def test_variables_of_fragments_and_environments_are_private(path: tuple[str, ...], private: bool) -> None:
    assert is_private_path(path) is private


def test_an_empty_password_of_an_address_is_not_masked() -> None:
    assert mask_text("http://user:@host/") == "http://user:@host/"
    assert mask_text("http://user:x@host/") == f"http://user:{MASK}@host/"
