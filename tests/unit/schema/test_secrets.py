"""Which values are secret, and that nothing of them is left."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema.secrets import MASK, is_secret, is_secret_path, mask_text, masked


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
    ],
)
def test_passwords_in_urls(text: str, safe: str) -> None:
    assert mask_text(text) == safe


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
