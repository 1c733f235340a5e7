"""Credentials, the tokens issued for them, and what revokes the tokens."""

from __future__ import annotations

import hmac
from typing import Any

import pytest
from grpclib.const import Status
from grpclib.exceptions import GRPCError
from hypothesis import given
from hypothesis import strategies as st

import rpc.access.auth
from rpc.access.addresses import allowed_host, group_of, host_of
from rpc.access.attempts import ADDRESS_FAILURES, Attempts
from rpc.access.auth import Authenticator, Credential, bearer, credentials_of, digest_of
from rpc.access.credential_types import API_KEY, AUTHENTICATE
from rpc.access.tokens import Signer
from rpc.carrier import Peer

PEER = Peer(("192.0.2.1", 1))
OTHER = Peer(("192.0.2.2", 1))
FIRST = Credential(API_KEY, "one", "key-1")
TWO = Credential(API_KEY, "two", "key-2")


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def make(*credentials: Credential, **options: Any) -> Authenticator:
    return Authenticator(credentials=credentials, clock=options.pop("clock", Clock()), **options)


def status(call: Any, *arguments: Any, **keywords: Any) -> Status:
    with pytest.raises(GRPCError) as caught:
        call(*arguments, **keywords)
    assert "key-" not in (caught.value.message or "")
    return Status(caught.value.status)


def test_open_server() -> None:
    gate = make()
    assert not gate.enabled
    assert gate.authorize("/a/b", {}) is None
    assert gate.authorize("/a/b", {"authorization": "Basic ZmFrZTpmYWtl"}) is None
    assert gate.authorize(AUTHENTICATE, {"authorization": "Basic ZmFrZTpmYWtl"}) is None
    assert status(gate.authenticate, "one", API_KEY, "key-1", peer=PEER) is Status.UNIMPLEMENTED


def test_a_key_may_be_configured_as_its_digest_which_itself_opens_nothing() -> None:
    gate = make(Credential(API_KEY, "one", digest_of("key-1")))
    token = gate.authenticate("one", API_KEY, "key-1", peer=PEER)
    identity = gate.identify(token)
    assert identity is not None
    assert identity.entity == "one"
    assert status(gate.authenticate, "one", API_KEY, digest_of("key-1"), peer=PEER) is Status.UNAUTHENTICATED
    gate.configure([FIRST])  # the same key in plain text, so its tokens stay valid
    assert gate.identify(token) is not None
    gate.configure([Credential(API_KEY, "one", digest_of("key-2"))])
    assert gate.identify(token) is None


def test_a_token_names_its_entity() -> None:
    gate = make(FIRST, TWO)
    token = gate.authenticate("one", API_KEY, "key-1", peer=PEER)
    identity = gate.authorize("/a/b", {"authorization": f"Bearer {token}"})
    assert identity is not None
    assert (identity.entity, identity.kind) == ("one", API_KEY)
    assert gate.authorize("/a/b", {"authorization": f"bearer {token}"}) is identity  # from the cache


@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer x", "Basic ZmFrZTpmYWtl", "Bearer  ", "bEARER a.b.c"])
def test_calls_without_a_token(header: str | None) -> None:
    gate = make(FIRST)
    metadata = {} if header is None else {"authorization": header}
    assert status(gate.authorize, "/a/b", metadata) is Status.UNAUTHENTICATED
    assert status(gate.authorize, "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", metadata)


def test_authenticate_itself_comes_without_a_header() -> None:
    gate = make(FIRST)
    assert gate.authorize(AUTHENTICATE, {}) is None
    assert status(gate.authorize, AUTHENTICATE, {"authorization": "Bearer x"}) is Status.INVALID_ARGUMENT


@pytest.mark.parametrize(
    ("entity", "kind", "payload", "expected"),
    [
        ("", API_KEY, "key-1", Status.INVALID_ARGUMENT),
        ("one", "", "key-1", Status.INVALID_ARGUMENT),
        ("one", API_KEY, "", Status.INVALID_ARGUMENT),
        ("one", "robot-secret", "key-1", Status.INVALID_ARGUMENT),
        ("one", API_KEY, "key-2", Status.UNAUTHENTICATED),
        ("three", API_KEY, "key-1", Status.UNAUTHENTICATED),
        ("one", API_KEY, "key-1 ", Status.UNAUTHENTICATED),
    ],
)
def test_wrong_credentials(entity: str, kind: str, payload: str, expected: Status) -> None:
    assert status(make(FIRST, TWO).authenticate, entity, kind, payload, peer=PEER) is expected


@pytest.mark.parametrize(("entity", "key"), [("one", "wrong"), ("nobody", "wrong"), ("one", "key-1")])
def test_the_same_work_for_every_entity(entity: str, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []
    fingerprints = []
    gate = make(FIRST)
    real, fingerprint = hmac.compare_digest, gate._signer.fingerprint
    monkeypatch.setattr(
        rpc.access.auth.hmac, "compare_digest", lambda a, b: compared.append((len(a), len(b))) or real(a, b)
    )
    monkeypatch.setattr(gate._signer, "fingerprint", lambda *parts: fingerprints.append(1) or fingerprint(*parts))
    try:
        gate.authenticate(entity, API_KEY, key, peer=PEER)
    except GRPCError:
        pass
    assert compared == [(22, 22)]
    assert fingerprints == [1]


def test_removing_a_key_voids_its_tokens_and_no_others() -> None:
    gate = make(FIRST, TWO)
    first, second = (gate.authenticate(c.entity, c.type, c.payload, peer=PEER) for c in (FIRST, TWO))
    assert gate.identify(first)
    gate.configure([TWO])
    assert gate.identify(first) is None
    assert gate.identify(second)
    gate.configure([FIRST, TWO])
    assert gate.identify(first)  # valid again because the same key was restored


def test_changing_a_key_voids_its_tokens() -> None:
    gate = make(FIRST)
    token = gate.authenticate("one", API_KEY, "key-1", peer=PEER)
    gate.configure([Credential(API_KEY, "one", "another")])
    assert status(gate.authorize, "/a/b", {"authorization": f"Bearer {token}"}) is Status.UNAUTHENTICATED


def test_a_key_is_not_a_secret_of_another_type() -> None:
    gate = make(FIRST, Credential("robot-secret", "one", "secret"))
    assert status(gate.authenticate, "one", "robot-secret", "key-1", peer=PEER) is Status.UNAUTHENTICATED
    assert gate.identify(gate.authenticate("one", "robot-secret", "secret", peer=PEER))


def test_revoking_one_token() -> None:
    gate = make(FIRST)
    first, second = (gate.authenticate("one", API_KEY, "key-1", peer=PEER) for _ in range(2))
    identity = gate.identify(first)
    assert identity is not None
    gate.revoke(identity.claims["jti"])
    assert gate.identify(first) is None
    assert gate.identify(second) is not None


def test_a_token_that_ends_is_not_kept_alive_by_the_cache() -> None:
    now = 1_700_000_000.0
    gate = make(FIRST, signer=Signer(clock=lambda: now))
    ending, lasting = (gate.authenticate("one", API_KEY, "key-1", peer=PEER, life=life) for life in (60, 0))
    assert gate.identify(ending)
    now += 59
    assert gate.identify(ending)
    now += 1
    assert gate.identify(ending) is None
    assert gate.identify(lasting)


def test_the_cache_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rpc.access.auth, "CACHE", 3)
    gate = make(FIRST)
    tokens = [gate.authenticate("one", API_KEY, "key-1", peer=PEER) for _ in range(5)]
    assert all(gate.identify(token) for token in tokens)
    assert len(gate._cache) == 3
    assert all(gate.identify(token) for token in tokens)


def test_guessing_is_bounded_per_peer() -> None:
    clock = Clock()
    gate = make(FIRST, attempts=Attempts(failures=3, period=60), clock=clock)
    for _ in range(3):
        assert status(gate.authenticate, "one", API_KEY, "guess", peer=PEER) is Status.UNAUTHENTICATED
    assert status(gate.authenticate, "one", API_KEY, "guess", peer=PEER) is Status.RESOURCE_EXHAUSTED
    assert gate.authenticate("one", API_KEY, "key-1", peer=PEER), (
        "a device with a wrong key does not lock out other clients"
    )
    assert status(gate.authenticate, "two", API_KEY, "guess", peer=PEER) is Status.UNAUTHENTICATED, "another entity"
    assert status(gate.authenticate, "one", API_KEY, "guess", peer=OTHER) is Status.UNAUTHENTICATED, "another address"
    clock.now = 59.9
    assert status(gate.authenticate, "one", API_KEY, "guess", peer=PEER) is Status.RESOURCE_EXHAUSTED
    clock.now = 60.0
    assert status(gate.authenticate, "one", API_KEY, "guess", peer=PEER) is Status.UNAUTHENTICATED


def test_guessing_is_bounded_per_address() -> None:
    """A client that changes the entity with each attempt is throttled too, and locks out no other client."""
    gate = make(FIRST, clock=Clock())
    said = [status(gate.authenticate, f"no-{n}", API_KEY, "guess", peer=PEER) for n in range(ADDRESS_FAILURES + 50)]
    assert said == [Status.UNAUTHENTICATED] * ADDRESS_FAILURES + [Status.RESOURCE_EXHAUSTED] * 50
    assert status(gate.authenticate, "one", API_KEY, "guess", peer=PEER) is Status.RESOURCE_EXHAUSTED
    assert gate.authenticate("one", API_KEY, "key-1", peer=PEER)
    assert status(gate.authenticate, "one", API_KEY, "guess", peer=OTHER) is Status.UNAUTHENTICATED


def test_credentials_of_any_size_cost_little() -> None:
    gate = make(FIRST)
    for entity, payload in (("one", "x" * 5000), ("x" * 5000, "key-1")):
        assert status(gate.authenticate, entity, API_KEY, payload, peer=PEER) is Status.INVALID_ARGUMENT


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.floats(0, 30)), max_size=60))
def test_attempts_never_exceed_what_they_allow(steps: list[tuple[str, float]]) -> None:
    attempts = Attempts(failures=3, period=60, max_peers=4)
    now = 0.0
    done: dict[str, list[float]] = {}
    for peer, pause in steps:
        now += pause
        if attempts.wait(peer, now) == 0:
            attempts.failed(peer, now)
            done.setdefault(peer, []).append(now)
        assert len(attempts._counts) <= 4
    if len(done) <= 4:
        for times in done.values():
            assert all(times[i + 6] - times[i] >= 60 for i in range(len(times) - 6))


def test_credentials_of_a_document() -> None:
    config = {"a": "key-1", "b": "key-2", "c": "key-3", "keys": ["a", "b"]}
    result, problems = credentials_of([{"type": "api-key", "config": config}])
    assert (result, problems) == ([Credential(API_KEY, "a", "key-1"), Credential(API_KEY, "b", "key-2")], [])
    assert len(credentials_of([{"type": "api-key", "config": {"a": "key-1"}}])[0]) == 1
    secrets = {"type": "robot-location-secret", "config": {"secrets": ["s1", "s2"]}}
    result, problems = credentials_of([secrets], hosts=["x.local", "y.local"])
    assert {(c.entity, c.payload) for c in result} == {(h, s) for h in ("x.local", "y.local") for s in ("s1", "s2")}


@pytest.mark.parametrize(
    ("handler", "path"),
    [
        ({"type": "oauth", "config": {}}, "auth.handlers.0.type"),
        ({"config": {}}, "auth.handlers.0.type"),
        ({"type": "api-key"}, "auth.handlers.0.config"),
        ({"type": "api-key", "config": {}}, "auth.handlers.0.config"),
        ({"type": "api-key", "config": {"keys": ["a"]}}, "auth.handlers.0.config.a"),
        ({"type": "api-key", "config": {"a": 5}}, "auth.handlers.0.config.a"),
        ({"type": "api-key", "config": {"a": "key-1", "keys": "a"}}, "auth.handlers.0.config.keys"),
        ({"type": "robot-secret", "config": {"secret": "key-1"}}, "auth.handlers.0.config.entities"),
    ],
)
def test_mistakes_in_a_document(handler: dict[str, Any], path: str) -> None:
    result, problems = credentials_of([handler])
    assert result == []
    assert [problem.path for problem in problems] == [path]
    assert "key-1" not in str(problems[0])


def test_two_handlers_of_one_type() -> None:
    handler = {"type": "api-key", "config": {"a": "key-1"}}
    result, problems = credentials_of([handler, handler])
    assert len(result) == 1
    assert [problem.path for problem in problems] == ["auth.handlers.1.type"]


def test_nothing_secret_in_reprs() -> None:
    assert "key-1" not in repr(FIRST) + repr(make(FIRST))


def test_bearer() -> None:
    assert bearer("Bearer a.b") == bearer("bearer  a.b ") == "a.b"
    assert bearer("Basic a") == bearer("") == bearer("Bearer") == ""


@pytest.mark.parametrize(
    ("address", "group"),
    [
        (("192.0.2.1", 1), "192.0.2.1"),
        (("::ffff:192.0.2.1", 1, 0, 0), "192.0.2.1"),
        (("2001:db8::1", 1, 0, 0), "2001:db8::/64"),
        (("2001:db8::2", 1, 0, 0), "2001:db8::/64"),
        (("fe80::1%eth0", 1, 0, 2), "fe80::/64"),
        (("::1", 1, 0, 0), "::1"),
        ("/run/x.sock", "local"),
        (None, "local"),
    ],
)
def test_groups_of_peers(address: Any, group: str) -> None:
    assert group_of(Peer(address)) == group


@pytest.mark.parametrize(
    ("authority", "allowed"),
    [
        ("localhost", True),
        ("localhost:8080", True),
        ("LocalHost.:8080", True),
        ("a.localhost", True),
        ("127.0.0.1:8080", True),
        ("127.8.8.8", True),
        ("[::1]:8080", True),
        ("robot.local:8080", True),
        ("evil.example:8080", False),
        ("localhost.evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("0.0.0.0:8080", False),
        ("192.168.1.5", False),
        ("", False),
    ],
)
def test_names_of_a_server_on_loopback(authority: str, allowed: bool) -> None:
    assert allowed_host(authority, ["Robot.local"]) is allowed
    assert host_of(authority) == host_of(authority).lower()
