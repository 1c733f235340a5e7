from __future__ import annotations

import pytest

from cloud.domain.machines.ice import VARIABLE, ice_servers

SECRET = {VARIABLE: "secret"}


@pytest.mark.parametrize("url", ["stun:a.example", "turn:a.example:3478?transport=tcp", "turns:[2001:db8::1]:5349"])
def test_servers_that_machines_accept(url: str) -> None:
    assert ice_servers([url], SECRET).urls == (url,)


@pytest.mark.parametrize("url", ["", "a.example", "http://a", "stun:a?transport=udp", "turn:a:99999", "turn:a:0"])
def test_servers_that_machines_would_refuse(url: str) -> None:
    with pytest.raises(ValueError, match="is not a URL such as"):
        ice_servers([url], SECRET)


def test_a_turn_server_needs_a_secret_and_the_number_is_limited() -> None:
    with pytest.raises(ValueError, match=VARIABLE):
        ice_servers(["turn:a"], {})
    with pytest.raises(ValueError, match="at most 16"):
        ice_servers([f"stun:a{number}" for number in range(17)], {})
