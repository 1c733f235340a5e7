"""The record of whether a peer has closed its connection itself."""

from __future__ import annotations

from rpc.carrier import Farewell


def test_callbacks_are_called_once() -> None:
    farewell, heard = Farewell(), list[bool]()
    farewell.on_said.append(lambda: heard.append(farewell.said))
    farewell.said = False
    assert not farewell.said
    assert heard == []
    farewell.said = True
    farewell.said = True
    assert farewell.said
    assert heard == [True]
