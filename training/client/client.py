"""The client of a cloud for training, on Trio and on asyncio."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from rpc.api import ApiClient
from rpc.client import WebChannel
from schema import ErrorKind, MachineError
from training.client.errors import SubmissionRefused
from training.client.http import AsyncHttp, Http
from training.client.job import Job
from training.client.operations import ML_TRAINING, Operations
from training.jobs.submission import ModelType, shortfalls_of

_CLOSING = 5.0  # seconds


class TrainingClient(Operations):
    """The operations, and those that return a `Job`, whose `id` is the one that the published calls return."""

    def job(self, id: str) -> Job:  # noqa: A002 - name of the published parameter
        """Return the job with an id, without asking the cloud."""
        return Job(self, id)

    async def submit_training_job(
        self,
        org_id: str,
        dataset_id: str,
        model_name: str,
        model_version: str | None = None,
        model_type: ModelType = ModelType.SINGLE_LABEL_CLASSIFICATION,
        tags: Sequence[str] = (),
    ) -> Job:
        """Queue a job and return it. Without a version, the cloud uses the time.

        Raises SubmissionRefused, with everything that the dataset lacks, or for example if the version is used.
        """
        return await self._submitted(
            "submit_training_job",
            organization_id=org_id,
            dataset_id=dataset_id,
            model_name=model_name,
            model_version=model_version or "",
            model_type=ModelType(model_type).name,
            tags=list(tags),
        )

    async def submit_custom_training_job(
        self,
        org_id: str,
        dataset_id: str,
        registry_item_id: str,
        registry_item_version: str,
        model_name: str,
        model_version: str | None = None,
        arguments: Mapping[str, str] | None = None,
    ) -> Job:
        """Queue a run of a training script from the registry and return the job. Raises SubmissionRefused."""
        return await self._submitted(
            "submit_custom_training_job",
            organization_id=org_id,
            dataset_id=dataset_id,
            registry_item_id=registry_item_id,
            registry_item_version=registry_item_version,
            model_name=model_name,
            model_version=model_version or "",
            arguments=dict(arguments or {}),
        )

    async def _submitted(self, method: str, **fields: Any) -> Job:
        try:
            return self.job(await self.call(ML_TRAINING, method, **fields))
        except MachineError as error:
            if error.kind in (ErrorKind.UNAVAILABLE, ErrorKind.INTERNAL, ErrorKind.UNAUTHENTICATED):
                raise
            missing = shortfalls_of(str(error))
            raise SubmissionRefused(str(error), kind=error.kind, missing=missing) from None


def client_over(http: Http, key_id: str, key: str) -> TrainingClient:
    """Return a client that makes its calls with `http`."""
    return TrainingClient(ApiClient(WebChannel(http, key_id, key)), http)


@asynccontextmanager
async def connect(
    address: str, *, key_id: str = "", key: str = "", ca: str | Path | None = None
) -> AsyncIterator[TrainingClient]:
    """Provide a client of the cloud at `address`, a URL; without a scheme, https. Works on Trio and on asyncio.

    `ca` is a PEM file of certificates to trust in addition to the system's. The first call connects and logs in.
    ValueError for an address that is none.
    """
    http = AsyncHttp(address, Path(ca) if ca is not None else None)
    try:
        yield client_over(http, key_id, key)
    finally:
        with anyio.move_on_after(_CLOSING, shield=True):
            await http.close()
