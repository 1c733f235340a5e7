"""The same client for programs without an event loop.

Its coroutines run on `BlockingHttp`, where they never suspend, so they need neither an event loop nor a thread: one
`send` runs them to their end. This also works inside of a running loop, as in a notebook, which it blocks.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, TextIO, TypeVar

from rpc.client import run_blocking
from training.client.client import TrainingClient, client_over
from training.client.http import BlockingHttp
from training.client.job import PATIENCE, Job
from training.client.records import Numbered, TrainingJob
from training.jobs.events import JobEvent
from training.jobs.lifecycle import JobState
from training.jobs.report import Report
from training.jobs.submission import ModelType

T = TypeVar("T")


def iterate(items: AsyncIterator[T]) -> Iterator[T]:
    """Yield the items of an asynchronous iterator that never suspends."""

    async def following() -> tuple[T] | None:
        try:
            return (await anext(items),)
        except StopAsyncIteration:
            return None

    while (item := run_blocking(following())) is not None:
        yield item[0]


class BlockingJob:
    """A job, without an event loop."""

    def __init__(self, job: Job) -> None:
        self._job = job

    def __repr__(self) -> str:
        return f"BlockingJob({self.id!r})"

    @property
    def id(self) -> str:
        """Id of the job."""
        return self._job.id

    @property
    def position(self) -> int:
        """Number of the last event that an iteration has yielded."""
        return self._job.position

    def get(self) -> TrainingJob:
        """Return what the cloud says about the job now."""
        return run_blocking(self._job.get())

    def cancel(self) -> None:
        """Cancel the job; see `Operations.cancel_training_job`."""
        run_blocking(self._job.cancel())

    def delete(self) -> None:
        """Delete the job, which must have ended; see `Operations.delete_completed_training_job`."""
        run_blocking(self._job.delete())

    def events(self, after: int = 0, *, patience: float = PATIENCE) -> Iterator[JobEvent]:
        """Yield the events of the job as they happen, until it has ended; see `numbered_events`."""
        return iterate(self._job.events(after, patience=patience))

    def numbered_events(self, after: int = 0, *, patience: float = PATIENCE) -> Iterator[Numbered]:
        """Yield the events with higher numbers than `after` as they happen, until the job has ended."""
        return iterate(self._job.numbered_events(after, patience=patience))

    def wait(self, *, show: bool = False, file: TextIO | None = None, patience: float = PATIENCE) -> BlockingJob:
        """Wait until the job has ended, and return it, so that `download` can follow."""
        run_blocking(self._job.wait(show=show, file=file, patience=patience))
        return self

    def download(self, folder: str | Path) -> list[Path]:
        """Unpack the model into `folder`, which is created, and return its files."""
        return run_blocking(self._job.download(folder))

    def report(self) -> Report | None:
        """Return the report of the trainer about the model, None if it has written none; see `download`."""
        return run_blocking(self._job.report())


class BlockingTrainingClient:
    """The methods of `TrainingClient`, without an event loop."""

    def __init__(self, client: TrainingClient) -> None:
        self._client = client

    def job(self, id: str) -> BlockingJob:  # noqa: A002 - name of the published parameter
        """Return the job with an id, without asking the cloud."""
        return BlockingJob(self._client.job(id))

    def call(self, service: str, method: str, **fields: Any) -> Any:
        """Call any other unary method of the cloud, such as `call("viam.app.v1.AppService", "list_organizations")`."""
        return run_blocking(self._client.call(service, method, **fields))

    def submit_training_job(
        self,
        org_id: str,
        dataset_id: str,
        model_name: str,
        model_version: str | None = None,
        model_type: ModelType = ModelType.SINGLE_LABEL_CLASSIFICATION,
        tags: Sequence[str] = (),
    ) -> BlockingJob:
        """Queue a job and return it."""
        client = self._client
        return BlockingJob(
            run_blocking(client.submit_training_job(org_id, dataset_id, model_name, model_version, model_type, tags))
        )

    def submit_custom_training_job(
        self,
        org_id: str,
        dataset_id: str,
        registry_item_id: str,
        registry_item_version: str,
        model_name: str,
        model_version: str | None = None,
        arguments: Mapping[str, str] | None = None,
    ) -> BlockingJob:
        """Queue a run of a training script from the registry and return the job."""
        submitted = self._client.submit_custom_training_job(
            org_id, dataset_id, registry_item_id, registry_item_version, model_name, model_version, arguments
        )
        return BlockingJob(run_blocking(submitted))

    def get_training_job(self, id: str) -> TrainingJob:  # noqa: A002 - name of the published parameter
        """Return a job; NOT_FOUND."""
        return run_blocking(self._client.get_training_job(id))

    def list_training_jobs(self, org_id: str, training_status: JobState | None = None) -> list[TrainingJob]:
        """Return all jobs of an organization, newest first, or those in one state; reads page by page."""
        return run_blocking(self._client.list_training_jobs(org_id, training_status))

    def list_training_jobs_page(
        self, org_id: str, training_status: JobState | None = None, before: int = 0, limit: int = 0
    ) -> tuple[list[TrainingJob], int]:
        """Return a page of jobs, newest first, at most `limit` (200, also for 0), and the `before` of the next page."""
        return run_blocking(self._client.list_training_jobs_page(org_id, training_status, before, limit))

    def cancel_training_job(self, id: str) -> None:  # noqa: A002 - name of the published parameter
        """Cancel a job."""
        run_blocking(self._client.cancel_training_job(id))

    def delete_completed_training_job(self, id: str) -> None:  # noqa: A002 - name of the published parameter
        """Delete a job that has ended, with its log."""
        run_blocking(self._client.delete_completed_training_job(id))

    def get_training_job_logs(self, id: str) -> list[tuple[datetime, str, str]]:  # noqa: A002 - published name
        """Return time, level and message of all lines of a job's log, oldest first."""
        return run_blocking(self._client.get_training_job_logs(id))

    def create_dataset(self, name: str, organization_id: str) -> str:
        """Create an empty dataset and return its id."""
        return run_blocking(self._client.create_dataset(name, organization_id))

    def list_datasets_by_organization_id(self, organization_id: str) -> list[dict[str, Any]]:
        """Return the datasets of an organization: id, name, organization_id, time_created."""
        return run_blocking(self._client.list_datasets_by_organization_id(organization_id))

    def rename_dataset(self, id: str, name: str) -> None:  # noqa: A002 - name of the published parameter
        """Rename a dataset."""
        run_blocking(self._client.rename_dataset(id, name))

    def delete_dataset(self, id: str) -> None:  # noqa: A002 - name of the published parameter
        """Delete a dataset."""
        run_blocking(self._client.delete_dataset(id))

    def add_binary_data_to_dataset_by_ids(self, binary_ids: Sequence[str], dataset_id: str) -> None:
        """Add files to a dataset."""
        run_blocking(self._client.add_binary_data_to_dataset_by_ids(binary_ids, dataset_id))

    def remove_binary_data_from_dataset_by_ids(self, binary_ids: Sequence[str], dataset_id: str) -> None:
        """Remove files from a dataset."""
        run_blocking(self._client.remove_binary_data_from_dataset_by_ids(binary_ids, dataset_id))

    def add_tags_to_binary_data_by_ids(self, tags: Sequence[str], binary_ids: Sequence[str]) -> None:
        """Add tags to files: the labels of whole pictures."""
        run_blocking(self._client.add_tags_to_binary_data_by_ids(tags, binary_ids))


@contextmanager
def connect_blocking(
    address: str, *, key_id: str = "", key: str = "", ca: str | Path | None = None
) -> Iterator[BlockingTrainingClient]:
    """Provide a client whose methods block; see `training.client.client.connect`."""
    http = BlockingHttp(address, Path(ca) if ca is not None else None)
    try:
        yield BlockingTrainingClient(client_over(http, key_id, key))
    finally:
        run_blocking(http.close())
