"""Calls to the Jobs API of a Ray cluster that works, and of one that does not."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import trio

from schema.errors import ErrorKind, MachineError
from tests.ray_cluster import TOKEN, Cluster, cluster
from training.engine import ray_client as calls


@pytest.fixture
async def ray() -> AsyncIterator[Cluster]:
    async with cluster() as result:
        yield result


async def until(ray: Cluster, name: str, status: str) -> None:
    with trio.fail_after(10):
        while ray.jobs[name].status != status:  # noqa: ASYNC110 - the stand-in has no events
            await trio.sleep(0.01)


async def test_a_submission_until_its_end(ray: Cluster) -> None:
    async with calls.ray_jobs(ray.url, TOKEN) as jobs:
        assert await jobs.version() == "2.60.0"
        assert await jobs.state("a-1") is None
        await jobs.submit("a-1", "exec true", calls.Placement(2.0, 1.0, 2**30, {"trainer": 1.0}))
        await until(ray, "a-1", "SUCCEEDED")
        state = await jobs.state("a-1")
        assert state is not None
        assert state.status == "SUCCEEDED"
    body = ray.jobs["a-1"].body
    assert (body["entrypoint_num_cpus"], body["entrypoint_num_gpus"], body["entrypoint_memory"]) == (2.0, 1.0, 2**30)
    assert body["entrypoint_resources"] == {"trainer": 1.0}


async def test_a_submission_that_is_stopped(ray: Cluster) -> None:
    async with calls.ray_jobs(ray.url, TOKEN) as jobs:
        await jobs.submit("a-1", "exec sleep 60", calls.Placement())
        await until(ray, "a-1", "RUNNING")
        await jobs.stop("a-1")
        await until(ray, "a-1", "STOPPED")
        await jobs.stop("unknown")


async def test_a_submission_whose_answer_was_lost_is_not_repeated(ray: Cluster) -> None:
    ray.drops = 1
    async with calls.ray_jobs(ray.url, TOKEN) as jobs:
        with pytest.raises(MachineError) as caught:
            await jobs.submit("a-1", "exec sleep 60", calls.Placement())
        assert caught.value.kind is ErrorKind.UNAVAILABLE
        first = ray.jobs["a-1"]
        await jobs.submit("a-1", "exec sleep 60", calls.Placement())
        assert ray.jobs["a-1"] is first


async def test_a_wrong_token_is_refused_and_not_shown(ray: Cluster) -> None:
    async with calls.ray_jobs(ray.url, "wrong-secret") as jobs:
        with pytest.raises(MachineError, match="refuses the token") as caught:
            await jobs.submit("a-1", "exec true", calls.Placement())
    assert caught.value.kind is ErrorKind.PERMISSION
    assert "wrong-secret" not in str(caught.value)
    assert not ray.jobs


async def test_an_endless_answer_is_not_read(ray: Cluster) -> None:
    ray.endless = True
    async with calls.ray_jobs(ray.url, TOKEN) as jobs:
        with trio.fail_after(10), pytest.raises(MachineError, match="longer than") as caught:
            await jobs.version()
    assert caught.value.kind is ErrorKind.UNAVAILABLE


async def test_a_cluster_that_does_not_answer(ray: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "TIME", 0.2)
    ray.silent = True
    async with calls.ray_jobs(ray.url, TOKEN) as jobs:
        with trio.fail_after(10), pytest.raises(MachineError, match=r"no answer within 0\.2 s"):
            await jobs.state("a-1")


async def test_a_cluster_that_is_down() -> None:
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listener.socket.getsockname()[1]
    await listener.aclose()
    async with calls.ray_jobs(f"http://127.0.0.1:{port}", TOKEN) as jobs:
        with pytest.raises(MachineError, match="cannot be reached") as caught:
            await jobs.state("a-1")
    assert caught.value.kind is ErrorKind.UNAVAILABLE


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("ray://head", "http://head:8265"),
        ("ray://10.0.0.1:9000", "http://10.0.0.1:9000"),
        ("ray://[::1]", "http://[::1]:8265"),
        ("ray+https://head", "https://head:443"),
    ],
)
def test_addresses(text: str, url: str) -> None:
    assert calls.parse_address(text) == url


@pytest.mark.parametrize(
    "text", ["", "ray://", "http://head", "ray://head/path", "ray://u:p@head", "ray://head:99999", "ray://head#x"]
)
def test_wrong_addresses(text: str) -> None:
    with pytest.raises(ValueError, match=r"ray://|user or password|[Pp]ort"):
        calls.parse_address(text)


def test_placements() -> None:
    assert calls.parse_placement("CPU=2, GPU=1,memory=8192,trainer=1") == calls.Placement(
        2.0, 1.0, 8192 * 2**20, {"trainer": 1.0}
    )
    assert calls.parse_placement("") == calls.Placement()


@pytest.mark.parametrize("text", ["CPU", "CPU=-1", "CPU=x", "=1", "GPU=nan", "GPU=inf"])
def test_wrong_placements(text: str) -> None:
    with pytest.raises(ValueError, match="is not NAME=NUMBER"):
        calls.parse_placement(text)
