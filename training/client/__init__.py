"""Client for training: submits jobs to a cloud, follows them, and downloads models. `training` exports its names.

    async with training.connect("cloud.example.org", key_id=..., key=...) as cloud:
        job = await cloud.submit_training_job(org_id, dataset_id, "parts", tags=["ok", "bad"])
        await job.wait(show=True)
        await job.download("parts/")

It works on Trio and on asyncio; `training.connect_blocking` is the same for programs without an event loop.

Public, in the order in which to read them:

* `errors`: Errors of the training client
* `http`: HTTP clients of the training client: one for event loops (Trio and asyncio), one that blocks
* `records`: What the cloud returns about training jobs, as records
* `trainers`: The trainers of this project as training scripts of the registry, which anyone can copy and change
* `display`: Events of a job as text for people: lines, and below them a progress bar on a terminal
* `job`: A training job as an object: its events, its end, and its model
* `client`: The client of a cloud for training, on Trio and on asyncio
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from training.client.client import TrainingClient as TrainingClient
    from training.client.display import Display as Display
    from training.client.errors import SubmissionRefused as SubmissionRefused
    from training.client.http import AsyncHttp as AsyncHttp
    from training.client.job import Job as Job
    from training.client.job import display_of as display_of
    from training.client.job import write_text as write_text
    from training.client.records import Numbered as Numbered
    from training.client.records import TrainingJob as TrainingJob
    from training.client.trainers import TRAINERS as TRAINERS
    from training.client.trainers import trainer_archive as trainer_archive
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "errors": ["SubmissionRefused"],
            "http": ["AsyncHttp"],
            "records": ["Numbered", "TrainingJob"],
            "trainers": ["TRAINERS", "trainer_archive"],
            "display": ["Display"],
            "job": ["Job", "display_of", "write_text"],
            "client": ["TrainingClient"],
        },
    )
