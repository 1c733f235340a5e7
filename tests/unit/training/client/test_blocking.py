"""The blocking client has the methods of the asynchronous one, and needs no event loop."""

from __future__ import annotations

import inspect
import subprocess
import sys
from typing import Any

import pytest

import training
from rpc.client.blocking import run_blocking
from training.client.blocking import BlockingJob, BlockingTrainingClient
from training.client.client import TrainingClient
from training.client.http import AsyncHttp, BlockingHttp
from training.client.job import Job
from training.jobs import submission
from training.jobs.submission import ModelType, TrainingPicture, check_examples, count_examples, shortfalls_of

INTERNAL = {"events_page", "page"}  # building blocks of iterators


def methods(cls: type) -> dict[str, Any]:
    return {
        name: [parameter.replace(annotation="") for parameter in inspect.signature(member).parameters.values()]
        for name, member in inspect.getmembers(cls, inspect.isfunction)
        if not name.startswith("_") and name not in INTERNAL
    }


@pytest.mark.parametrize(("blocking", "other"), [(BlockingTrainingClient, TrainingClient), (BlockingJob, Job)])
def test_both_have_the_same_methods(blocking: type, other: type) -> None:
    assert methods(blocking) == methods(other)


def test_every_operation_of_the_specification_exists() -> None:
    names = {
        "submit_training_job", "submit_custom_training_job", "get_training_job", "list_training_jobs",
        "cancel_training_job", "delete_completed_training_job", "get_training_job_logs",
    }  # fmt: skip
    assert names <= methods(TrainingClient).keys()


def test_a_coroutine_that_waits_is_refused() -> None:
    with pytest.raises(RuntimeError, match="event loop"):
        run_blocking(_waits())


async def _waits() -> None:
    class Wait:
        def __await__(self) -> Any:
            yield

    await Wait()


@pytest.mark.parametrize("kind", [AsyncHttp, BlockingHttp])
def test_addresses(kind: type) -> None:
    assert repr(kind("cloud.example.org")) == f"{kind.__name__}('cloud.example.org:443')"
    assert "localhost:8090" in repr(kind("http://localhost:8090"))
    with pytest.raises(ValueError, match="is not an address"):
        kind("http://user@host/path")
    with pytest.raises(ValueError, match="only to a cloud with TLS"):
        kind("http://localhost:8090", "ca.pem")


def test_the_cloud_does_not_load_the_client() -> None:
    code = "import training.jobs.events, sys; assert not {'anyio', 'httpcore', 'trio'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="nothing"):
        training.nothing  # noqa: B018
    assert {name for name in training.__all__ if getattr(training, name) is None} == set()


def test_the_shortfalls_of_a_refusal() -> None:
    pictures = [TrainingPicture(str(number), frozenset({"ok"})) for number in range(3)]
    classes, labels = ModelType.SINGLE_LABEL_CLASSIFICATION, ["ok", "bad"]
    with pytest.raises(submission.MachineError) as caught:
        check_examples(classes, labels, count_examples(classes, labels, pictures))
    assert shortfalls_of(str(caught.value)) == (
        "the label 'ok' has 3 pictures, 7 more needed",
        "the label 'bad' has 0 pictures, 10 more needed",
    )
    assert shortfalls_of("the version exists") == ()
