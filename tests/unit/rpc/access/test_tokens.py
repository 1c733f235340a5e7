"""Issued tokens are accepted; all others are rejected."""

from __future__ import annotations

import base64
import json

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from rpc.access.tokens import Signer, TokenError

SIGNER = Signer(clock=lambda: 1_700_000_000.5)


def issue(signer: Signer = SIGNER) -> str:
    return signer.issue(subject="id", audience=("a", "b"), issuer="a", credential="api-key", metadata={"k": "v"})


def encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def test_form() -> None:
    header, claims, signature = issue().split(".")
    assert json.loads(decode(header)) == {"alg": "EdDSA", "kid": SIGNER.kid, "typ": "JWT"}
    body = json.loads(decode(claims))
    jti = body.pop("jti")
    assert len(decode(jti)) == 16
    assert body == {
        "sub": "id",
        "aud": ["a", "b"],
        "iss": "a",
        "iat": 1_700_000_000,
        "rpc_creds_type": "api-key",
        "rpc_auth_md": {"k": "v"},
    }
    assert len(decode(signature)) == 64
    assert issue() != issue()


def test_a_token_with_a_lifetime_expires() -> None:
    now = 1_700_000_000.5
    signer = Signer(clock=lambda: now)
    token = signer.issue(subject="id", audience=("a",), issuer="a", credential="api-key", metadata={}, life=60)
    assert signer.verify(token).exp == 1_700_000_060
    now += 59
    signer.verify(token)
    now += 1
    with pytest.raises(TokenError, match="expired"):
        signer.verify(token)


def test_issued_tokens_are_accepted() -> None:
    claims = SIGNER.verify(issue())
    assert (claims.sub, claims.aud, claims.rpc_creds_type, claims.rpc_auth_md) == (
        "id",
        ("a", "b"),
        "api-key",
        {"k": "v"},
    )


def forged() -> dict[str, str]:
    header, claims, signature = issue().split(".")
    none = encode(b'{"alg":"none","typ":"JWT"}')
    hs256 = encode(json.dumps({"alg": "HS256", "kid": SIGNER.kid, "typ": "JWT"}).encode())
    other = json.loads(decode(claims)) | {"sub": "root"}
    return {
        "nothing": "",
        "dots": "..",
        "none with signature": f"{none}.{claims}.{signature}",
        "none without": f"{none}.{claims}.",
        "other algorithm": f"{hs256}.{claims}.{signature}",
        "other claims": f"{header}.{encode(json.dumps(other).encode())}.{signature}",
        "no signature": f"{header}.{claims}.",
        "two parts": f"{header}.{claims}",
        "four parts": f"{header}.{claims}.{signature}.x",
        "padding": f"{header}.{claims}.{signature}==",
        "short signature": f"{header}.{claims}.{signature[:-4]}",
        "not ascii": f"{header}.{claims}.{signature[:-1]}é",
        "white space": f"{header}.{claims}.{signature}\n",
        "too long": f"{header}.{claims * 100}.{signature}",
        "other key": issue(Signer()),
    }


@pytest.mark.parametrize("name", forged())
def test_forged(name: str) -> None:
    with pytest.raises(TokenError):
        SIGNER.verify(forged()[name])


def test_the_unused_bits_of_the_last_character_count() -> None:
    token = issue()
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    other = alphabet[alphabet.index(token[-1]) ^ 1]  # 64 bytes leave 4 bits of the last character unused
    assert decode(token.split(".")[2]) == decode((token[:-1] + other).split(".")[2])
    with pytest.raises(TokenError):
        SIGNER.verify(token[:-1] + other)


@given(st.integers(0, 10_000), st.characters())
def test_any_change_invalidates_a_token(index: int, character: str) -> None:
    token = issue()
    index %= len(token)
    changed = token[:index] + character + token[index + 1 :]
    if changed != token:
        with pytest.raises(TokenError):
            SIGNER.verify(changed)


@given(st.text(max_size=200))
def test_any_text(text: str) -> None:
    with pytest.raises(TokenError):
        SIGNER.verify(text)


def test_fingerprints() -> None:
    assert SIGNER.fingerprint("a", "b") == SIGNER.fingerprint("a", "b")
    assert len({SIGNER.fingerprint(*parts) for parts in (("a", "b"), ("ab",), ("ab", ""), ("", "ab"), ("b", "a"))}) == 5
    assert Signer().fingerprint("a") != SIGNER.fingerprint("a")


def test_signers_with_the_same_key_accept_each_others_tokens() -> None:
    key = Ed25519PrivateKey.generate()
    assert Signer(key).verify(issue(Signer(key))).sub == "id"
    with pytest.raises(TokenError):
        Signer().verify(issue(Signer(key)))


def test_nothing_secret_in_reprs() -> None:
    assert repr(SIGNER) == f"Signer(kid={SIGNER.kid!r})"
