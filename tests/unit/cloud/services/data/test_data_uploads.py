"""Uploads: stored completely and once, reported to triggers, refused with a clear error."""

from __future__ import annotations

import json
from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest

from cloud.domain.data import readings
from cloud.domain.data.media import EXTENSIONS, TYPES, UNKNOWN, extension_of, mime_of
from cloud.domain.data.readings import new_reading
from cloud.domain.triggering import ingestion
from cloud.server.memory import MemoryCloud
from cloud.services.common.base import UploadLimits
from cloud.services.data import datasync
from cloud.values.limits import UPLOAD_READINGS
from cloud.work.workroom import Workroom
from schema.errors import ErrorKind, MachineError
from tests.unit.cloud.captured import PNG, SETS, START, SYNC, Uploads, at, blobs, piece
from tests.unit.cloud.triggering_help import evaluated, tabular


@pytest.fixture
def up(cloud: MemoryCloud, part: str) -> Uploads:
    return Uploads(cloud, part)


INGESTING = ("cloud.services.data.datasync", "cloud.domain.triggering.upload_groups")


@pytest.fixture
def ingested(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Record what triggers receive."""
    heard: list[Any] = []
    monkeypatch.setattr("cloud.services.data.datasync.uses_data", lambda sql, part: True)
    for module in INGESTING:
        monkeypatch.setattr(f"{module}.ingested", lambda sql, what: heard.append(what))
    return heard


async def test_readings_are_returned_unchanged_with_their_source(up: Uploads, machine: str) -> None:
    value = {"readings": {"t": 21.5, "ok": True, "name": "ü", "list": [1.0, None], "deep": {"x": -0.5}}}
    await up.readings(piece(0, **value), piece(1, readings={}), tags=["b", "a"])
    answer = await up.ask("tabular_data_by_filter")
    first = up.cloud.first
    (metadata,) = answer["metadata"]
    assert metadata == {
        "organization_id": first.organization,
        "location_id": first.location,
        "robot_name": "rover",
        "robot_id": machine,
        "part_name": "rover-main",
        "part_id": up.part,
        "component_type": "sensor",
        "component_name": "s",
        "method_name": "Readings",
        "method_parameters": {},
        "tags": ["a", "b"],
        "mime_type": "",
    }
    assert [item["data"] for item in answer["data"]] == [value, {"readings": {}}]
    assert [element["time_requested"] for element in answer["data"]] == [at(0), at(1)]
    assert [result["time_received"] for result in answer["data"]] == [at(0.5), at(1.5)]
    assert answer["count"] == 2


async def test_a_repeated_upload_of_readings_is_stored_once(up: Uploads, ingested: list[Any]) -> None:
    first = await up.readings(piece(0, x=1.0), piece(1, x=2.0))
    assert await up.readings(piece(0, x=1.0), piece(1, x=2.0)) == first
    assert await up.values() == [{"x": 1.0}, {"x": 2.0}]
    assert len(ingested) == 1


@pytest.mark.parametrize(
    "other",
    [{"component_name": "other"}, {"method_name": "Other"}, {"tags": ["t"]}, {"file_name": "x.capture"}],
)
async def test_readings_that_differ_are_stored_separately(up: Uploads, other: dict[str, Any]) -> None:
    first = await up.readings(piece(0, x=1.0))
    assert await up.readings(piece(0, x=1.0), **other) != first
    assert await up.readings(piece(1, x=1.0)) != first
    assert len(await up.values()) == 3


async def test_readings_without_a_time_are_always_new(up: Uploads) -> None:
    assert await up.readings({"struct": {"x": 1.0}}) != await up.readings({"struct": {"x": 1.0}})
    assert len(await up.values()) == 2


async def test_triggers_get_the_times_of_the_first_and_last_reading(up: Uploads, ingested: list[Any]) -> None:
    subject = await up.readings(piece(5, x=1.0), piece(2, x=2.0))
    (what,) = ingested
    assert (what.part, what.component_type, what.component_name, what.method) == (up.part, "sensor", "s", "Readings")
    assert (what.data_type, what.file_id, what.first, what.last) == ("tabular", subject, at(2.5), at(5.5))
    assert [*what.readings] == [
        new_reading(at(5), at(5.5), {"x": 1.0}),
        new_reading(at(2), at(2.5), {"x": 2.0}),
    ]


async def test_triggers_get_files_once_by_kind(up: Uploads, ingested: list[Any]) -> None:
    ids = [await up.file(), await up.picture(0), await up.file()]
    assert [(message.data_type, message.file_id) for message in ingested] == [("file", ids[0]), ("binary", ids[1])]
    assert ids[2] == ids[0]


async def test_an_upload_is_not_stored_if_its_event_cannot_be_stored(
    up: Uploads, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(sql: object, what: object) -> None:
        raise MachineError("no", kind=ErrorKind.PRECONDITION)

    monkeypatch.setattr("cloud.services.data.datasync.uses_data", lambda sql, part: True)
    for module in INGESTING:
        monkeypatch.setattr(f"{module}.ingested", fail)
    for upload in (up.file(), up.readings(piece(0, x=1.0))):
        with pytest.raises(MachineError):
            await upload
    assert await up.ids() == await up.values() == []
    assert await blobs(up.cloud) == set()
    for module in INGESTING:
        monkeypatch.setattr(f"{module}.ingested", ingestion.ingested)
    await up.readings(piece(0, x=1.0))  # not mistaken for a duplicate
    assert await up.values() == [{"x": 1.0}]


async def test_a_file_in_pieces_is_stored_as_one(up: Uploads) -> None:
    pieces = [b"\xff\xd8\xff", b"a" * 70_000, b"b"]
    sent = await up.machine.call(
        SYNC, "", "file_upload", part_id=up.part, file_name="", contents=[{"data": element} for element in pieces]
    )
    (item,) = (await up.ask("binary_data_by_ids", binary_data_ids=[sent["file_id"]], include_binary=True))["data"]
    assert item["binary"] == b"".join(pieces)
    metadata = item["metadata"]
    assert metadata["file_size_bytes"] == 70_004
    assert (metadata["capture_metadata"]["mime_type"], metadata["file_ext"]) == ("image/jpeg", ".jpg")


async def test_an_empty_file_is_stored(up: Uploads) -> None:
    sent = await up.machine.call(SYNC, "", "file_upload", part_id=up.part, file_name="empty", contents=[])
    (item,) = (await up.ask("binary_data_by_ids", binary_data_ids=[sent["file_id"]], include_binary=True))["data"]
    assert item["binary"] == b""


async def test_a_repeated_file_is_stored_once_and_gets_new_tags(up: Uploads) -> None:
    first = await up.file(tags=["a"])
    assert await up.file(tags=["b"]) == first
    assert await up.file(b"content!") != first
    assert await up.file(name="b.txt") != first
    assert await up.file(file_create_time=at(0)) != first
    assert await up.file(file_create_time=at(0)) != await up.file(file_create_time=at(1))
    (item,) = (await up.ask("binary_data_by_ids", binary_data_ids=[first]))["data"]
    assert item["metadata"]["capture_metadata"]["tags"] == ["a", "b"]
    assert len(await blobs(up.cloud)) == len(await up.ids()) == 5


async def test_several_images_of_one_upload_are_several_files(up: Uploads) -> None:
    metadata = {"part_id": up.part, "type": "BINARY_SENSOR"}
    contents = [{"binary": PNG + bytes([number])} for number in range(3)]
    sent = await up.machine.call(SYNC, "", "data_capture_upload", metadata=metadata, sensor_contents=contents)
    result = await up.ids()
    assert len(result) == 3
    assert sent["file_id"] == result[0]


async def test_a_streamed_image_with_labels(up: Uploads) -> None:
    box = {"label": "cat", "x_min_normalized": 0.1, "y_min_normalized": 0.2, "x_max_normalized": 0.3}
    values = {
        "time_requested": at(3),
        "time_received": at(4),
        "annotations": {"bboxes": [{**box, "y_max_normalized": 0.4}], "classifications": [{"label": "indoors"}]},
    }
    sent = await up.machine.call(
        SYNC,
        "",
        "streaming_data_capture_upload",
        upload_metadata={"part_id": up.part, "type": "BINARY_SENSOR", "file_extension": ".png"},
        sensor_metadata=values,
        pieces=[PNG[:5], PNG[5:]],
    )
    (item,) = (await up.ask("binary_data_by_ids", binary_data_ids=[sent["binary_data_id"]], include_binary=True))[
        "data"
    ]
    assert item["binary"] == PNG
    metadata = item["metadata"]
    assert (metadata["time_requested"], metadata["time_received"]) == (at(3), at(4))
    assert metadata["annotations"]["bboxes"][0]["label"] == "cat"
    assert metadata["annotations"]["bboxes"][0]["x_max_normalized"] == 0.3
    assert metadata["annotations"]["classifications"][0]["label"] == "indoors"


async def test_a_file_above_the_limit_is_refused_and_not_stored(cloud: MemoryCloud, part: str) -> None:
    up = Uploads(MemoryCloud(replace(cloud.cloud, limits=UploadLimits(file=10)), cloud.first), part)
    await up.file(b"x" * 10)
    with pytest.raises(MachineError) as caught:
        await up.file(b"x" * 11, name="large")
    assert caught.value.kind is ErrorKind.INVALID  # machines move such a file to `failed`
    assert "10 bytes" in str(caught.value)
    assert len(await blobs(cloud)) == 1


@pytest.mark.parametrize(
    ("metadata", "contents"),
    [
        ({}, []),
        ({"type": "TABULAR_SENSOR"}, [{"binary": b"x"}]),
        ({"type": "BINARY_SENSOR"}, [{"struct": {}}]),
        ({}, [{"binary": b"x"}, {"struct": {}}]),
        ({"type": "FILE"}, [{"binary": b"x"}]),
    ],
)
async def test_invalid_uploads_are_refused(
    up: Uploads, metadata: dict[str, Any], contents: list[dict[str, Any]]
) -> None:
    with pytest.raises(MachineError) as caught:
        await up.machine.call(
            SYNC, "", "data_capture_upload", metadata={"part_id": up.part, **metadata}, sensor_contents=contents
        )
    assert caught.value.kind is ErrorKind.INVALID
    assert await up.ids() == await up.values() == []


@pytest.mark.parametrize(
    ("metadata", "tags"),
    [
        ({"dataset_ids": ["missing"]}, []),
        ({"tags": ["", " ", "a\0b", "y" * 2000]}, ["ab", "y" * 1000]),
        ({"tags": [str(number) for number in range(101)]}, sorted(str(number) for number in range(101))[:100]),
        ({"component_name": "x" * 1001, "method_name": "\0", "component_type": "y" * 2000}, []),
        ({"file_name": "z\0" * 3000, "file_extension": "e" * 3000}, []),
    ],
)
async def test_odd_facts_about_captured_data_do_not_cost_the_data(
    up: Uploads, metadata: dict[str, Any], tags: list[str]
) -> None:
    await up.readings(piece(0, x=1.0), **metadata)
    assert await up.values() == [{"x": 1.0}]
    subject = await up.picture(0, **metadata)
    (item,) = (await up.ask("binary_data_by_ids", binary_data_ids=[subject], include_binary=True))["data"]
    assert item["binary"] == PNG
    assert item["metadata"]["capture_metadata"]["tags"] == tags
    assert item["metadata"]["dataset_ids"] == []


async def test_odd_annotations_do_not_cost_the_picture(up: Uploads) -> None:
    def box(label: str, edges: tuple[float, ...], confidence: float) -> dict[str, Any]:
        names = ("x_min_normalized", "y_min_normalized", "x_max_normalized", "y_max_normalized")
        return {"label": label, "confidence": confidence, **dict(zip(names, edges, strict=True))}

    annotations = {
        "bboxes": [
            box("over the edge", (-0.15, 0.1, 0.5, 1.1), 0.9),
            box("confident", (0.1, 0.1, 0.5, 0.5), 1.02),
            box("empty", (0.1, 0.1, 0.1, 0.5), 0.9),
            *(box(f"many {number}", (0.0, 0.0, 1.0, 1.0), 0.5) for number in range(1200)),
        ],
        "classifications": [{"label": "", "confidence": 0.5}],
    }
    contents = [{"metadata": {"time_requested": at(0), "annotations": annotations}, "binary": PNG}]
    metadata = {"part_id": up.part, "type": "BINARY_SENSOR"}
    sent = await up.machine.call(SYNC, "", "data_capture_upload", metadata=metadata, sensor_contents=contents)
    (item,) = (await up.ask("binary_data_by_ids", binary_data_ids=[sent["binary_data_id"]]))["data"]
    boxes = {each["label"]: each for each in item["metadata"]["annotations"]["bboxes"]}
    assert len(boxes) == 1000
    assert "empty" not in boxes
    assert (boxes["over the edge"]["x_min_normalized"], boxes["over the edge"]["y_max_normalized"]) == (0.0, 1.0)
    assert boxes["confident"]["confidence"] == 1.0


async def test_a_persons_file_for_a_missing_dataset_is_not_stored(up: Uploads) -> None:
    with pytest.raises(MachineError) as caught:
        await up.owner.call(
            SYNC, "", "file_upload", part_id=up.part, type="FILE", dataset_ids=["nothing"], contents=[{"data": b"x"}]
        )
    assert caught.value.kind is ErrorKind.NOT_FOUND
    assert await blobs(up.cloud) == set()
    dataset = await up.owner.call(SETS, "", "create_dataset", name="d", organization_id=up.cloud.first.organization)
    subject = await up.file(dataset_ids=[dataset])
    assert await up.ids(dataset_id=dataset) == [subject]


async def test_a_machine_uploads_only_for_itself(up: Uploads, machine: str) -> None:
    other = await up.cloud.app("new_robot_part", robot_id=machine, part_name="arm")
    stranger = up.cloud.client(other, "robot-secret")
    with pytest.raises(MachineError) as caught:
        await stranger.call(SYNC, "", "file_upload", part_id=up.part, contents=[])
    assert caught.value.kind is ErrorKind.NOT_FOUND
    contents = [{"struct": {}}]
    with pytest.raises(MachineError) as caught:
        await stranger.call(SYNC, "", "data_capture_upload", metadata={"part_id": up.part}, sensor_contents=contents)
    assert caught.value.kind is ErrorKind.NOT_FOUND


async def test_parameters_of_methods_are_kept_as_plain_values(up: Uploads) -> None:
    values = {
        "n": {"type_url": "type.googleapis.com/google.protobuf.DoubleValue", "value": b"\x09" + bytes(6) + b"\xf0?"},
        "s": {"type_url": "type.googleapis.com/google.protobuf.StringValue", "value": b"\n\x02hi"},
        "odd": {"type_url": "type.googleapis.com/acme.Odd", "value": b"\x01"},
    }
    await up.readings(piece(0, x=1.0), method_parameters=values)
    results = [
        item
        async for item in up.owner.stream(
            "viam.app.data.v1.DataService",
            "",
            "export_tabular_data",
            part_id=up.part,
            resource_name="s",
            resource_subtype="sensor",
            method_name="Readings",
        )
    ]
    assert results[0]["method_parameters"] == {
        "n": 1.0,
        "s": "hi",
        "odd": {"type": "type.googleapis.com/acme.Odd", "value": "AQ=="},
    }
    latest = {"part_id": up.part, "resource_name": "s", "method_name": "Readings"}
    assert (await up.ask("get_latest_tabular_data", **latest, additional_parameters={"n": 2.0})) == {}


async def test_records_of_uploads_are_deleted_after_the_retry_period(up: Uploads) -> None:
    await up.readings(piece(0, x=1.0))
    store = up.cloud.cloud.store
    assert await store.write(lambda sql: readings.forget_uploads(sql, START + readings.REMEMBERED)) == 0
    later = START + 2 * readings.REMEMBERED
    assert await store.write(lambda sql: readings.forget_uploads(sql, later)) == 1


@pytest.mark.parametrize(
    ("said", "extension", "beginning", "mime"),
    [
        ("image/png", ".jpg", b"", "image/png"),
        ("Text/HTML; charset=x", "", b"", "text/html"),
        ("nonsense", ".jpeg", b"", "image/jpeg"),
        ("a/b\nc: d", ".JPG", b"", "image/jpeg"),
        ("", "", PNG, "image/png"),
        ("", "", b"RIFF0000WEBPVP8 ", "image/webp"),
        ("", "", b"\0\0\0\x18ftypmp42", "video/mp4"),
        ("", ".unknown", b"", UNKNOWN),
        ("", "", b"", UNKNOWN),
    ],
)
def test_content_types(said: str, extension: str, beginning: bytes, mime: str) -> None:
    assert mime_of(said, extension, beginning) == mime


def test_extensions() -> None:
    assert extension_of("png", "a.jpg", "") == ".png"
    assert extension_of("", "a.b.tar", "") == ".tar"
    assert extension_of("", "a", "image/jpeg") == ".jpg"
    assert extension_of("", "a", UNKNOWN) == ""
    assert all(TYPES[extension] == mime for mime, extension in EXTENSIONS.items())


async def test_a_file_whose_row_may_be_committed_is_kept(up: Uploads, monkeypatch: pytest.MonkeyPatch) -> None:
    """The database failed during the commit: the row may or may not exist, so the sweep decides."""

    def lost(sql: object, what: object) -> None:
        raise MachineError("the database is away", kind=ErrorKind.UNAVAILABLE)

    monkeypatch.setattr("cloud.services.data.datasync.uses_data", lambda sql, part: True)
    monkeypatch.setattr("cloud.services.data.datasync.ingested", lost)
    with pytest.raises(MachineError):
        await up.file()
    assert len(await blobs(up.cloud)) == 1


@pytest.mark.parametrize(("kind", "fires"), [("UNSPECIFIED", "unspecified"), ("TABULAR_SENSOR", "tabular")])
async def test_readings_have_the_type_that_their_sender_gave(up: Uploads, kind: str, fires: str) -> None:
    triggers = [
        {
            "name": name,
            "event": {"type": "part_data_ingested", "data_ingested": {"data_types": [name]}},
            "notifications": [{"type": "webhook", "value": "https://a.test/"}],
        }
        for name in ("tabular", "unspecified")
    ]
    await up.cloud.app("update_robot_part", id=up.part, name="", robot_config={"triggers": triggers})
    metadata = {"part_id": up.part, "type": kind, "component_type": "sensor", "component_name": "s"}
    contents = [{"struct": {"celsius": 1.0}}]
    await up.machine.call(SYNC, "", "data_capture_upload", metadata=metadata, sensor_contents=contents)
    assert [item.trigger for item in await evaluated(up.cloud, up.part)] == [fires]


async def test_uploads_are_for_the_triggers_of_the_configuration_in_force(up: Uploads) -> None:
    """Whether it has any is remembered for a revision, unless that has fragments, which change without it."""
    number = 0

    async def fired() -> list[str]:
        nonlocal number
        number += 1
        await up.readings(piece(number, x=1.0))
        await up.file(str(number).encode(), f"{number}.txt")
        return sorted(item.trigger for item in await evaluated(up.cloud, up.part))

    async def save(*names: str, **document: Any) -> None:
        triggers = {"triggers": [tabular(name) for name in names]} if names else {}
        await up.cloud.app("update_robot_part", id=up.part, name="", robot_config={**triggers, **document})

    owner = up.cloud.first.organization
    fragment = await up.cloud.app("create_fragment", name="f", config={}, organization_id=owner)
    await fired()
    assert await fired() == []
    await save("first")
    assert await fired() == ["first"]
    await save()
    assert await fired() == ["first"]
    await save(fragments=[{"id": fragment["id"]}])
    assert await fired() == ["first"]
    config = {"triggers": [tabular("second")]}
    await up.cloud.app("update_fragment", id=fragment["id"], name="f", config=config)
    assert await fired() == ["first", "second"]


async def test_many_values_are_processed_in_the_workroom_and_files_are_not(
    up: Uploads, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, offloaded = Workroom.run, list[str]()

    async def counted(self: Workroom, organization: str, function: Any) -> Any:
        offloaded.append(organization)
        return await run(self, organization, function)

    monkeypatch.setattr(Workroom, "run", counted)
    await up.readings(piece(0, x=1.0))
    await up.file(PNG + bytes(100_000))
    assert offloaded == []
    await up.readings(*(piece(number, x=1.0) for number in range(2000)))
    assert offloaded[0] == up.cloud.first.organization  # queued for this organization to decode the request
    assert len(offloaded) == 2  # and once more to encode what is stored


def test_the_key_of_an_upload_is_the_digest_of_its_json() -> None:
    for count in (0, 1, 100, 101, 350):
        parts = ("a", {"b": 1, "a": None}, ["t"])
        rows = [(number, number + 1, f'{{"x":{number}.5,"ü":"\\"😀\x7f\\n"}}') for number in range(count)]
        rows[150:] = [(number, 0, f'{{"nul":"\\u0000\\\\u0000{text}"}}') for number, _, text in rows[150:]]
        expected = sha256(json.dumps([*parts, rows], sort_keys=True).encode()).hexdigest()
        assert datasync._key(*parts, new_readings=rows) == expected
    assert datasync._key("a", ["b"], 1) == sha256(b'["a", ["b"], 1]').hexdigest()


async def test_an_upload_of_too_many_readings_is_refused_before_it_is_read(
    up: Uploads, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cloud.services.target.UPLOAD_READINGS", replace(UPLOAD_READINGS, value=1000))
    pieces = [piece(number, x=1.0) for number in range(1001)]
    await up.readings(*pieces[1:])
    monkeypatch.setattr("cloud.work.workroom.Workroom.run", None)
    with pytest.raises(MachineError, match=r"1,001 readings, more than the limit `upload_readings` of 1,000") as caught:
        await up.readings(*pieces)
    assert caught.value.kind is ErrorKind.INVALID
