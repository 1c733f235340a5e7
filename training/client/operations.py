"""Operations on training jobs, by the names of the published API, and those of datasets that training needs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from rpc.api import TRAINING, ApiClient
from training.client.http import Http
from training.client.records import EventsPage, TrainingJob, event_of, job_of
from training.jobs.lifecycle import JobState

ML_TRAINING: Final = "viam.app.mltraining.v1.MLTrainingService"
DATASETS: Final = "viam.app.dataset.v1.DatasetService"
DATA: Final = "viam.app.data.v1.DataService"
PACKAGES: Final = "viam.app.packages.v1.PackageService"
WAIT: Final = 20  # seconds that a call waits for an event


class Operations:
    """Calls of a cloud. Every method raises MachineError with the kind and the text of the cloud.

    UNAVAILABLE means that the cloud did not answer: a changing call may have been carried out nevertheless.
    """

    def __init__(self, api: ApiClient, http: Http) -> None:
        self.api = api
        self.http = http

    async def call(self, service: str, method: str, **fields: Any) -> Any:
        """Call any other unary method of the cloud, such as `call("viam.app.v1.AppService", "list_organizations")`."""
        return await self.api.call(service, "", method, **fields)

    async def get_training_job(self, id: str) -> TrainingJob:  # noqa: A002 - name of the published parameter
        """Return a job; NOT_FOUND."""
        return job_of(await self.call(ML_TRAINING, "get_training_job", id=id))

    async def list_training_jobs(self, org_id: str, training_status: JobState | None = None) -> list[TrainingJob]:
        """Return all jobs of an organization, newest first, or those in one state; reads page by page."""
        jobs: list[TrainingJob] = []
        before = 0
        while True:
            page, before = await self.list_training_jobs_page(org_id, training_status, before)
            jobs += page
            if not before:
                return jobs

    async def list_training_jobs_page(
        self, org_id: str, training_status: JobState | None = None, before: int = 0, limit: int = 0
    ) -> tuple[list[TrainingJob], int]:
        """Return a page of jobs, newest first, at most `limit` (200, also for 0), and the `before` of the next page.

        `before` is 0 for the first page, and is returned as 0 with the last one.
        """
        status = training_status.name if training_status is not None else ""
        fields = {"organization_id": org_id, "status": status, "before": before, "limit": limit}
        reply = await self.call(TRAINING, "list_jobs", **fields)
        return [job_of(job) for job in reply["jobs"]], int(reply["next"])

    async def cancel_training_job(self, id: str) -> None:  # noqa: A002 - name of the published parameter
        """Cancel a job. A running one gets time to end. PRECONDITION if it has ended."""
        await self.call(ML_TRAINING, "cancel_training_job", id=id)

    async def delete_completed_training_job(self, id: str) -> None:  # noqa: A002 - name of the published parameter
        """Delete a job that has ended, with its log. Its model stays. PRECONDITION if it has not ended."""
        await self.call(ML_TRAINING, "delete_completed_training_job", id=id)

    async def get_training_job_logs(self, id: str) -> list[tuple[datetime, str, str]]:  # noqa: A002 - published name
        """Return time, level and message of all lines of a job's log, oldest first."""
        lines: list[tuple[datetime, str, str]] = []
        token: str | None = None
        while token != "":
            page = await self.call(ML_TRAINING, "get_training_job_logs", id=id, page_token=token)
            lines += [(entry["time"], entry["level"], entry["message"]) for entry in page["logs"]]
            token = page["next_page_token"]
        return lines

    async def events_page(
        self,
        id: str,  # noqa: A002 - name of the published parameter
        after: int = 0,
        *,
        wait: int = WAIT,
    ) -> EventsPage:
        """Return events of a job after a number, at most 500; wait for one for up to `wait` seconds (at most 20)."""
        reply = await self.call(TRAINING, "wait_for_events", id=id, after=after, wait=wait)
        last = reply["events"][-1]["number"] if reply["events"] else after
        events = [event for fields in reply["events"] if (event := event_of(fields)) is not None]
        return EventsPage(events, last, JobState[reply["status"]], reply["reason"], reply["ended"])

    # ---- datasets

    async def create_dataset(self, name: str, organization_id: str) -> str:
        """Create an empty dataset and return its id."""
        return str(await self.call(DATASETS, "create_dataset", name=name, organization_id=organization_id))

    async def list_datasets_by_organization_id(self, organization_id: str) -> list[dict[str, Any]]:
        """Return the datasets of an organization: id, name, organization_id, time_created."""
        return [*await self.call(DATASETS, "list_datasets_by_organization_id", organization_id=organization_id)]

    async def rename_dataset(self, id: str, name: str) -> None:  # noqa: A002 - name of the published parameter
        """Rename a dataset."""
        await self.call(DATASETS, "rename_dataset", id=id, name=name)

    async def delete_dataset(self, id: str) -> None:  # noqa: A002 - name of the published parameter
        """Delete a dataset. Its files stay."""
        await self.call(DATASETS, "delete_dataset", id=id)

    async def add_binary_data_to_dataset_by_ids(self, binary_ids: Sequence[str], dataset_id: str) -> None:
        """Add files to a dataset."""
        fields = {"binary_data_ids": list(binary_ids), "dataset_id": dataset_id}
        await self.call(DATA, "add_binary_data_to_dataset_by_ids", **fields)

    async def remove_binary_data_from_dataset_by_ids(self, binary_ids: Sequence[str], dataset_id: str) -> None:
        """Remove files from a dataset."""
        fields = {"binary_data_ids": list(binary_ids), "dataset_id": dataset_id}
        await self.call(DATA, "remove_binary_data_from_dataset_by_ids", **fields)

    async def add_tags_to_binary_data_by_ids(self, tags: Sequence[str], binary_ids: Sequence[str]) -> None:
        """Add tags to files: the labels of whole pictures."""
        fields = {"tags": list(tags), "binary_data_ids": list(binary_ids)}
        await self.call(DATA, "add_tags_to_binary_data_by_ids", **fields)
