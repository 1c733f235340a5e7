"""The pages of datasets and the calls of the labeller, through the guard."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest

from cloud.domain.data import labels
from cloud.domain.data.labels import Edges
from cloud.domain.labelling import palette
from cloud.domain.organizations.first import create_owner
from cloud.server.memory import MemoryCloud
from cloud.web.views.labelling_view import PictureQuery
from schema.errors import MachineError
from tests.unit.cloud.captured import DATA, SETS, START, at
from tests.unit.cloud.pages import HOST, post, signed_in
from tests.unit.cloud.services.training.world import Tenant, tenant
from tests.unit.cloud.web.test_web_fleet import key_at
from tests.unit.runtime.parts.web.client import HTML, Browser, Reply

BOX = {
    "id": str(uuid.UUID(int=1)),
    "label": "cat",
    "x_min": 0.1,
    "y_min": 0.2,
    "x_max": 0.5,
    "y_max": 0.6,
    "suggested": False,
}
NOTHING: dict[str, Any] = {"tags": [], "boxes": []}


@pytest.fixture
async def us(cloud: MemoryCloud) -> Tenant:
    return await tenant(cloud)


@pytest.fixture
async def page(cloud: MemoryCloud) -> Browser:
    return await signed_in(cloud)


async def ids_of(us: Tenant) -> list[str]:
    return await us.uploads.ids(dataset_id=us.dataset)


async def get(page: Browser, path: str) -> str:
    reply = await page.send("GET", path, HTML)
    assert reply.status == 200, reply.text
    return reply.text


async def fetch(page: Browser, us: Tenant, subject: str, query: str = "") -> Any:
    return (
        await page.send("GET", f"/datasets/{us.dataset}/pictures/{subject}?{query}", {"accept": "application/json"})
    ).json()


async def save(page: Browser, us: Tenant, subject: str, base: Any, mine: Any) -> Reply:
    headers = {"accept": "application/json", "content-type": "application/json", "origin": f"http://{HOST}"}
    body = json.dumps({"base": base, "mine": mine}).encode()
    return await page.send("POST", f"/datasets/{us.dataset}/pictures/{subject}", headers, body)


def stored_in(reply: Reply) -> Any:
    return reply.json()["annotations"]


# ---- datasets


async def test_a_dataset_is_created_renamed_and_deleted_after_its_name_was_typed(us: Tenant, page: Browser) -> None:
    assert ">set</a>" in await get(page, "/datasets")
    reply = await post(page, "/datasets", organization=us.organization, name="<birds>")
    path = reply.headers["location"]
    assert reply.status == 303
    assert "&lt;birds&gt;" in await get(page, path)
    assert (await post(page, "/datasets", organization=us.organization, name="set")).status == 409
    assert (await post(page, f"{path}/rename", name="set")).status == 409
    assert (await post(page, f"{path}/rename", name="birds")).status == 303
    assert '<h1 id="title">birds</h1>' in await get(page, path)
    reply = await post(page, f"{path}/delete", name="bird")
    assert reply.status == 400
    assert "type birds to delete it" in reply.text
    await post(page, f"{path}/add-label", label="cat")
    assert (await post(page, f"{path}/delete", name="birds")).headers["location"] == "/datasets"
    assert "birds" not in await get(page, "/datasets")
    assert (await post(page, f"/datasets/{us.dataset}/nothing")).status == 404


async def test_the_list_has_pages(us: Tenant, page: Browser) -> None:
    for number in range(100):
        await us.call(SETS, "create_dataset", name=f"a{number:03}", organization_id=us.organization)
    text = await get(page, "/datasets")
    assert "a099" in text
    assert ">set</a>" not in text
    link = text.partition('rel="next"')[0].rpartition('href="')[2].partition('"')[0].replace("&amp;", "&")
    assert ">set</a>" in await get(page, link)


async def test_pictures_are_counted_and_filtered(us: Tenant, page: Browser) -> None:
    await us.add("ok", number=2)
    await us.add("<bad>", number=1)
    await us.add("", number=3)
    subject = (await ids_of(us))[-1]
    await us.call(
        DATA, "add_bounding_box_to_image_by_id", binary_data_id=subject, label="cat",
        x_min_normalized=0.1, y_min_normalized=0.2, x_max_normalized=0.5, y_max_normalized=0.6,
    )  # fmt: skip
    path = f"/datasets/{us.dataset}"
    text = await get(page, path)
    assert "6 pictures, 67 % with labels" in text
    assert '<rect x="10.00" y="20.00" width="40.00" height="40.00"' in text
    assert "&lt;bad&gt;" in text
    assert "<bad>" not in text
    expected = {
        "show=unlabelled": 2, "show=labelled": 4, "label=ok": 2, "label=cat": 1, "label=%3Cbad%3E": 1,
        "show=suspicious": 0,
        "machine=eye": 6, "machine=other": 0, f"start={at(5):%Y-%m-%dT%H:%M:%S}": 2,
        f"end={at(5):%Y-%m-%dT%H:%M:%S}&label=ok": 2,
    }  # fmt: skip
    for query, count in expected.items():
        assert (await get(page, f"{path}?{query}")).count("<figure") == count, query
    for query in ("show=x", "start=x"):
        reply = await page.send("GET", f"{path}?{query}", HTML)
        assert (reply.status, "is not" in reply.text) == (400, True)


async def test_more_pictures_are_on_the_next_page(us: Tenant, page: Browser) -> None:
    await us.add("ok", number=61)
    text = await get(page, f"/datasets/{us.dataset}?label=ok")
    assert text.count("<figure") == 60
    link = text.partition('rel="next"')[0].rpartition('href="')[2].partition('"')[0].replace("&amp;", "&")
    text = await get(page, link)
    assert text.count("<figure") == 1
    assert 'rel="next"' not in text
    assert (await page.send("GET", f"/datasets/{us.dataset}?after=9999999999999999999", HTML)).status == 200


async def test_a_page_of_a_large_dataset_is_small(us: Tenant, page: Browser) -> None:
    await us.add("ok", number=70)

    def add(sql: Any) -> None:
        for number in range(300):
            palette.add(sql, us.dataset, f"label {number:03}")

    await us.cloud.cloud.store.write(add)
    path = f"/datasets/{us.dataset}"
    text = await get(page, path)
    assert len(text) < 100_000
    assert "Change label 029" in text
    assert "Change label 030" not in text
    assert "All 301 labels" in text
    assert "Change label 299" in await get(page, f"{path}?labels=all")


# ---- labels


async def test_labels_are_added_renamed_colored_and_removed(us: Tenant, page: Browser) -> None:
    await us.add("ok", number=2)
    path, subject = f"/datasets/{us.dataset}", (await ids_of(us))[0]
    assert (await save(page, us, subject, {**NOTHING, "tags": ["ok"]}, {"tags": ["ok"], "boxes": [BOX]})).status == 200
    for label in ("dog", "ok"):
        assert (await post(page, f"{path}/add-label", label=label)).status == 303
    assert (await post(page, f"{path}/add-label", label="dog")).status == 409
    for label in ("", "a\nb", "x" * 3000):
        assert (await post(page, f"{path}/add-label", label=label)).status == 400
    labels = (await fetch(page, us, subject))["labels"]
    assert [(label["name"], label["listed"], label["pictures"], label["boxes"]) for label in labels] == [
        ("dog", True, 0, 0), ("ok", True, 2, 0), ("cat", False, 1, 1),
    ]  # fmt: skip
    assert (await post(page, f"{path}/change-label", label="ok", name="good", color="#00ff00")).status == 303
    assert (await post(page, f"{path}/change-label", label="cat", name="lion", color="")).status == 303
    assert (await post(page, f"{path}/change-label", label="good", name="lion")).status == 409
    assert (await post(page, f"{path}/change-label", label="good", color="red;}")).status == 400
    assert (await post(page, f"{path}/remove-label", label="dog")).status == 303
    shown = await fetch(page, us, subject)
    assert (shown["labels"][0]["name"], shown["labels"][0]["color"]) == ("good", "#00ff00")
    assert {label["name"] for label in shown["labels"]} == {"good", "lion"}
    assert shown["annotations"] == {"tags": ["good"], "boxes": [{**BOX, "label": "lion"}]}


async def test_a_script_adds_a_label_and_gets_all(us: Tenant, page: Browser) -> None:
    headers = {"accept": "application/json", "origin": f"http://{HOST}"}
    path = f"/datasets/{us.dataset}/add-label"
    reply = await page.send("POST", path, headers, b"label=cat")
    assert [label["name"] for label in reply.json()["labels"]] == ["cat"]
    reply = await page.send("POST", path, headers, b"label=cat")
    assert (reply.status, "already" in reply.json()["error"]) == (409, True)


# ---- labelling


async def test_the_labeller_goes_through_the_pictures_of_a_filter(us: Tenant, page: Browser) -> None:
    await us.add("", number=3)
    await us.add("ok", number=1)
    first, second, third, last = await ids_of(us)
    path = f"/datasets/{us.dataset}/label"
    reply = await page.send("GET", f"{path}?show=unlabelled", HTML)
    assert reply.headers["location"] == f"{path}/{first}?show=unlabelled"
    assert f'data-picture="{first}"' in await get(page, reply.headers["location"])
    shown = await fetch(page, us, second, "show=unlabelled")
    assert (shown["previous"], shown["next"], shown["position"], shown["count"]) == (first, third, 2, 3)
    await save(page, us, second, NOTHING, {**NOTHING, "tags": ["ok"]})
    shown = await fetch(page, us, second, "show=unlabelled")
    assert (shown["previous"], shown["next"], shown["position"], shown["count"]) == (first, third, 1, 2)
    assert (await fetch(page, us, third, "show=unlabelled"))["next"] == ""
    assert (await fetch(page, us, third))["next"] == last
    reply = await page.send("GET", f"{path}?label=nothing", HTML)
    assert reply.headers["location"] == f"/datasets/{us.dataset}?label=nothing"


async def test_annotations_are_stored_as_the_published_calls_do(us: Tenant, page: Browser) -> None:
    await us.add("ok", number=1)
    (subject,) = await ids_of(us)
    base = {**NOTHING, "tags": ["ok"]}
    reply = await save(page, us, subject, base, {"tags": ["bad"], "boxes": [BOX]})
    assert stored_in(reply) == {"tags": ["bad"], "boxes": [BOX]}
    file = (await us.call(DATA, "binary_data_by_ids", binary_data_ids=[subject]))["data"][0]["metadata"]
    assert file["capture_metadata"]["tags"] == ["bad"]
    assert file["annotations"]["bboxes"][0]["x_max_normalized"] == 0.5
    again = await save(page, us, subject, base, {"tags": ["bad"], "boxes": [BOX]})
    assert (stored_in(again), again.json()["changed"]) == (stored_in(reply), {})  # sent again
    moved = {**BOX, "x_max": 0.7}
    reply = await save(page, us, subject, {"tags": ["bad"], "boxes": [BOX]}, {"tags": [], "boxes": [moved]})
    assert stored_in(reply) == {"tags": [], "boxes": [moved]}
    reply = await save(page, us, subject, {**NOTHING, "boxes": [moved]}, NOTHING)
    assert stored_in(reply) == NOTHING


async def test_suggestions_of_models_are_not_labels_until_a_person_confirms_them(us: Tenant, page: Browser) -> None:
    await us.add("", number=1)
    (subject,) = await ids_of(us)
    edges = {f"{edge}_normalized": BOX[edge] for edge in ("x_min", "y_min", "x_max", "y_max")}
    await us.call(DATA, "add_bounding_box_to_image_by_id", binary_data_id=subject, label="cat", confidence=0.6, **edges)
    await us.cloud.cloud.store.write(lambda sql: labels.add(sql, subject, "ok", None, 0.4))
    shown = await fetch(page, us, subject)
    (box,) = shown["annotations"]["boxes"]
    assert (shown["suggested"], box["suggested"], shown["annotations"]["tags"], shown["labels"]) == (
        ["ok"],
        True,
        [],
        [],
    )
    path = f"/datasets/{us.dataset}"
    counts = {show: (await get(page, f"{path}?show={show}")).count("<figure") for show in ("unlabelled", "suggested")}
    assert counts == {"unlabelled": 1, "suggested": 1}
    base = shown["annotations"]
    reply = await save(page, us, subject, base, {"tags": ["ok"], "boxes": [{**box, "suggested": False}]})
    assert stored_in(reply) == {"tags": ["ok"], "boxes": [{**box, "suggested": False}]}
    assert (await fetch(page, us, subject))["suggested"] == []
    counts = {show: (await get(page, f"{path}?show={show}")).count("<figure") for show in ("unlabelled", "suggested")}
    assert counts == {"unlabelled": 0, "suggested": 0}


async def test_a_save_returns_how_the_counts_of_labels_change(us: Tenant, page: Browser) -> None:
    """The page adds these numbers to the counts that it has, instead of counting all pictures again."""
    await us.add("", number=2)
    subject, other = await ids_of(us)
    await save(page, us, other, NOTHING, {"tags": ["day"], "boxes": []})
    edges = Edges(0.1, 0.1, 0.2, 0.2)
    await us.cloud.cloud.store.write(lambda sql: labels.add(sql, subject, "fog", edges, 0.4))
    twin = {**BOX, "id": str(uuid.UUID(int=7))}
    (fog,) = (await fetch(page, us, subject))["annotations"]["boxes"]
    steps: list[tuple[list[str], list[Any], dict[str, int]]] = [
        (["day"], [fog], {"day": 1}),
        (["day"], [fog], {}),
        (["day"], [fog, BOX, twin], {"cat": 1}),
        (["night", "cat"], [fog, BOX], {"day": -1, "night": 1}),
        (["night"], [{**fog, "suggested": False}], {"cat": -1, "fog": 1}),
        ([], [], {"fog": -1, "night": -1}),
    ]

    async def counted() -> dict[str, int]:
        return {label["name"]: label["pictures"] for label in (await fetch(page, us, subject))["labels"]}

    base: Any = {"tags": [], "boxes": [fog]}
    counts = await counted()
    for tags, boxes, change in steps:
        mine = {"tags": tags, "boxes": boxes}
        answer = (await save(page, us, subject, base, mine)).json()
        assert answer["changed"] == change
        counts = {name: counts.get(name, 0) + change.get(name, 0) for name in {*counts, *change}}
        assert {name: count for name, count in counts.items() if count} == await counted()
        base = answer["annotations"]
    assert "labels" not in await fetch(page, us, subject, "counts=no")


async def test_changes_of_two_people_are_merged_or_refused(us: Tenant, page: Browser) -> None:
    await us.add("", number=1)
    (subject,) = await ids_of(us)
    await save(page, us, subject, NOTHING, {"tags": [], "boxes": [BOX]})
    base = {"tags": [], "boxes": [BOX]}
    theirs = {"tags": ["night"], "boxes": [{**BOX, "label": "lion"}]}
    assert (await save(page, us, subject, base, theirs)).status == 200
    reply = await save(page, us, subject, base, {"tags": ["day"], "boxes": [{**BOX, "x_min": 0.0}]})
    assert reply.status == 409
    assert reply.json()["conflicts"] == [BOX["id"]]
    assert reply.json()["annotations"] == theirs
    assert (await fetch(page, us, subject))["annotations"] == theirs
    reply = await save(page, us, subject, base, {"tags": ["day"], "boxes": [BOX]})
    assert reply.json()["annotations"] == {**theirs, "tags": ["day", "night"]}


@pytest.mark.parametrize(
    "mine",
    [
        b"", b"{}", b"[]", b"\xff", b'{"base": {"tags": [], "boxes": []}, "mine": {"tags": [1], "boxes": []}}',
        {"tags": [""], "boxes": []}, {"tags": ["x" * 3000], "boxes": []},
        {"tags": [], "boxes": [{**BOX, "x_max": 1.1}]}, {"tags": [], "boxes": [{**BOX, "x_max": 0.1}]},
        {"tags": [], "boxes": [BOX, BOX]}, {"tags": [], "boxes": [{**BOX, "id": "1"}]},
        {"tags": [], "boxes": [{**BOX, "label": " "}]},
        {"tags": [], "boxes": [{**BOX, "id": str(uuid.UUID(int=number))} for number in range(1001)]},
    ],
)  # fmt: skip
async def test_invalid_annotations_are_refused_and_change_nothing(us: Tenant, page: Browser, mine: Any) -> None:
    await us.add("", number=1)
    (subject,) = await ids_of(us)
    if isinstance(mine, bytes):
        headers = {"accept": "application/json", "origin": f"http://{HOST}"}
        reply = await page.send("POST", f"/datasets/{us.dataset}/pictures/{subject}", headers, mine)
    else:
        reply = await save(page, us, subject, NOTHING, mine)
    assert reply.status in (400, 429), reply.text
    assert reply.json()["error"]
    assert (await fetch(page, us, subject))["annotations"] == NOTHING


async def test_a_box_of_another_picture_is_not_changed(us: Tenant, page: Browser) -> None:
    await us.add("", number=2)
    first, second = await ids_of(us)
    await save(page, us, first, NOTHING, {**NOTHING, "boxes": [BOX]})
    reply = await save(page, us, second, NOTHING, {**NOTHING, "boxes": [{**BOX, "label": "dog"}]})
    assert reply.status == 409
    assert "already a box" in reply.json()["error"]
    reply = await save(page, us, second, {**NOTHING, "boxes": [BOX]}, NOTHING)
    assert reply.status == 200
    assert (await fetch(page, us, first))["annotations"]["boxes"] == [BOX]


async def test_only_callers_with_a_role_at_the_organization_label(
    us: Tenant, cloud: MemoryCloud, page: Browser
) -> None:
    await us.add("", number=1)
    (subject,) = await ids_of(us)
    other = await cloud.cloud.store.write(lambda sql: create_owner(sql, "Other", START))
    stranger = await signed_in(cloud, (other.id, other.key))
    operator = await signed_in(cloud, await key_at(cloud, "organization", us.organization))
    machine_key = await signed_in(cloud, await key_at(cloud, "location", cloud.first.location))
    mine = {**NOTHING, "tags": ["ok"]}
    for visitor in (stranger, machine_key):
        assert ">set</a>" not in await get(visitor, "/datasets")
        for path in ("", "/label", f"/label/{subject}", f"/pictures/{subject}"):
            assert (await visitor.send("GET", f"/datasets/{us.dataset}{path}", HTML)).status == 404
        assert (await save(visitor, us, subject, NOTHING, mine)).status == 404
        for action in ("rename", "delete", "add-label", "change-label", "remove-label", f"pictures/{subject}/remove"):
            reply = await post(visitor, f"/datasets/{us.dataset}/{action}", name="set", label="ok")
            assert reply.status == 404, action
    assert (await save(operator, us, subject, NOTHING, mine)).status == 200
    assert (await post(operator, f"/datasets/{us.dataset}/delete", name="set")).status == 403
    own = await us.uploads.picture(99)  # not in the dataset
    assert (await save(page, us, own, NOTHING, mine)).status == 404
    assert (await post(operator, f"/datasets/{us.dataset}/pictures/{subject}/remove")).status == 303
    assert await ids_of(us) == []


def test_the_query_of_the_address_is_kept_in_links() -> None:
    query = PictureQuery.of({"show": "labelled", "label": "a&b", "other": "x"})
    assert query.encoded(label="") == "show=labelled"
    assert query.encoded() == "show=labelled&label=a%26b"
    with pytest.raises(MachineError, match="show="):
        PictureQuery.of({"show": "everything"}).filter()
