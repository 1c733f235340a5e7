"""Responses to queries, and the tie-break between simultaneous probes. Pure: times are arguments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from rpc.network.mdns import ANY, PTR, DnsRecord, Message, Question, encode, key
from runtime.parts.mdns.records import Zone

REPEAT_INTERVAL: Final = 1.0  # seconds until a record may be multicast again; RFC 6762 6
LEGACY_TTL: Final = 10  # maximum seconds for resolvers that do not support multicast DNS; RFC 6762 6.7


class Replies:
    """Creates the messages for one interface, and records when each record was last multicast there."""

    def __init__(self, zone: Zone) -> None:
        self.zone = zone
        self._sent: dict[int, float] = {}  # by the index of a record in `zone.all`

    def to(self, query: Message, known_answers: Iterable[DnsRecord], now: float) -> Message | None:
        """Return the multicast response to `query` without the records in `known_answers`; None if it would be empty.

        Records that were multicast less than REPEAT_INTERVAL seconds before `now` are left out.
        """
        answers = self._answers(query, known_answers)
        answers = [
            record
            for record in answers
            if now - self._sent.get(self._index(record), -REPEAT_INTERVAL) >= REPEAT_INTERVAL
        ]
        return self._response(answers, now)

    def alone(self, query: Message, known_answers: Iterable[DnsRecord]) -> Message | None:
        """Return the unicast response to `query` without the records in `known_answers`; None if it would be empty."""
        answers = self._answers(query, known_answers)
        if not answers:
            return None
        return Message(answers=tuple(answers), additionals=tuple(self.zone.additionals(answers)), response=True)

    def legacy(self, query: Message) -> Message | None:
        """Return the response for an ordinary resolver, with its question and id and a short TTL."""
        answers = self._answers(query, query.answers)
        if not answers:
            return None
        return Message(
            query.questions,
            tuple(_short(record) for record in answers),
            additionals=tuple(_short(record) for record in self.zone.additionals(answers)),
            response=True,
            id=query.id,
        )

    def announcement(self, now: float) -> Message:
        """Return an unsolicited response with all records."""
        for record in self.zone.all:
            self._sent[self._index(record)] = now
        return Message(answers=tuple(self.zone.all), response=True)

    def goodbye(self) -> Message:
        """Return a response that withdraws all records; RFC 6762 10.1."""
        gone = tuple(DnsRecord(record.name, record.type, record.data, 0, record.flush) for record in self.zone.all)
        return Message(answers=gone, response=True)

    def probe(self) -> Message:
        """Return a probe for the unique names, with the proposed records; RFC 6762 8.1."""
        names = dict.fromkeys(record.name for record in self.zone.unique)
        questions = tuple(Question(name, ANY, unicast=True) for name in names)
        return Message(questions, authorities=tuple(_plain(record) for record in self.zone.unique))

    def conflict(self, response: Message) -> DnsRecord | None:
        """Return the first record of a response that conflicts with this machine's records, or None."""
        records = (*response.answers, *response.additionals)
        return next((record for record in records if self.zone.contradicts(record)), None)

    def loses(self, probe: Message) -> bool:
        """Return whether a simultaneous probe of another host takes precedence; RFC 6762 8.2."""
        for name in dict.fromkeys(key(record.name) for record in self.zone.unique):
            theirs = sorted(_order(record) for record in probe.authorities if key(record.name) == name)
            mine = sorted(_order(record) for record in self.zone.unique if key(record.name) == name)
            if theirs and mine < theirs:
                return True
        return False

    def _answers(self, query: Message, known_answers: Iterable[DnsRecord]) -> list[DnsRecord]:
        known_records = list(known_answers)
        answers: list[DnsRecord] = []
        for question in query.questions:
            for record in self.zone.answers(question):
                if record not in answers and not any(
                    record.same(have) and have.ttl * 2 >= record.ttl for have in known_records
                ):
                    answers.append(record)
        return answers

    def _response(self, answers: Sequence[DnsRecord], now: float) -> Message | None:
        if not answers:
            return None
        for record in answers:
            self._sent[self._index(record)] = now
        return Message(answers=tuple(answers), additionals=tuple(self.zone.additionals(answers)), response=True)

    def _index(self, record: DnsRecord) -> int:
        everything = self.zone.all
        return everything.index(record) if record in everything else -1 - self.zone.absences.index(record)


def is_shared(response: Message) -> bool:
    """Return whether other hosts may answer the same question: then each waits for a random time; RFC 6762 6."""
    return any(record.type == PTR for record in response.answers)


def _short(record: DnsRecord) -> DnsRecord:
    return DnsRecord(record.name, record.type, record.data, min(record.ttl, LEGACY_TTL))


def _plain(record: DnsRecord) -> DnsRecord:
    return DnsRecord(record.name, record.type, record.data, record.ttl)


def _order(record: DnsRecord) -> tuple[int, bytes]:
    """Return the key for comparing records: the type, then the bytes of the data. All have the same class."""
    empty = len(encode(Message(answers=(DnsRecord(("x",), record.type, b"", 0),))))
    return record.type, encode(Message(answers=(DnsRecord(("x",), record.type, record.data, 0),)))[empty:]
