from __future__ import annotations

from ipaddress import IPv4Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from micro.wire.mdns import Zone
from rpc.network import mdns

SERVICE = ("_rpc", "_tcp", "local")
INSTANCE = ("rover-main", *SERVICE)
HOST = ("rover-main", "local")


def zone() -> Zone:
    return Zone("rover-main", "192.168.1.7", 8080)


def ask(*questions: tuple[tuple[str, ...], int]) -> dict[tuple[tuple[str, ...], int], object]:
    query = mdns.Message(questions=tuple(mdns.Question(*question) for question in questions))
    data = zone().answer(mdns.encode(query))
    if not data:
        return {}
    message = mdns.decode(data)
    assert message.response
    return {(record.name, record.type): record.data for record in message.answers}


def test_questions_of_clients_are_answered() -> None:
    answers = ask((SERVICE, mdns.PTR))
    assert answers[SERVICE, mdns.PTR] == INSTANCE
    assert answers[INSTANCE, mdns.SRV] == mdns.Service(8080, HOST)
    assert answers[INSTANCE, mdns.TXT] == (b"grpc",)
    assert answers[HOST, mdns.A] == IPv4Address("192.168.1.7")
    assert set(ask((("ROVER-main", "_rpc", "_TCP", "local"), mdns.SRV))) == {(INSTANCE, mdns.SRV), (HOST, mdns.A)}
    assert set(ask((HOST, mdns.A))) == {(HOST, mdns.A)}
    assert ask((("_services", "_dns-sd", "_udp", "local"), mdns.PTR))


def test_a_question_from_another_port_gets_its_id_and_itself_back() -> None:
    query = mdns.encode(mdns.Message(questions=(mdns.Question(SERVICE, mdns.PTR, unicast=True),), id=77))
    message = mdns.decode(zone().answer(query, once=True))
    assert (message.id, message.response, len(message.answers)) == (77, True, 4)
    assert message.questions == (mdns.Question(SERVICE, mdns.PTR),)


def test_several_questions_with_compressed_names_get_each_record_once() -> None:
    answers = ask((SERVICE, mdns.PTR), (INSTANCE, mdns.ANY), (HOST, mdns.A))
    assert len(answers) == 4


def test_other_questions_and_answers_of_others_are_ignored() -> None:
    assert ask((("_http", "_tcp", "local"), mdns.PTR)) == {}
    assert ask((HOST, mdns.AAAA)) == {}
    assert zone().answer(zone().announcement()) == b""


@given(st.binary(max_size=200))
def test_noise_is_ignored(data: bytes) -> None:
    assert zone().answer(data) == b""
    assert isinstance(zone().answer(b"\0\0\0\0\0\1\0\0\0\0\0\0" + data), bytes)


@pytest.mark.parametrize("data", [b"\xc0\x0c", b"\xc0\x0e\xc0\x0c", b"\x3f" + b"a" * 63, b"\1a" * 200])
def test_names_that_never_end_are_ignored(data: bytes) -> None:
    assert zone().answer(b"\0\0\0\0\xff\xff\0\0\0\0\0\0" + data * 50) == b""


def test_names_of_machines_are_labels() -> None:
    message = mdns.decode(Zone("rover.of.acme" * 9, "10.0.0.1", 1).announcement())
    assert all(len(label.encode()) <= 63 for record in message.answers for label in record.name)
