"""Client for training: submits jobs to a cloud, follows them, and downloads models. `training` exports its names.

    async with training.connect("cloud.example.org", key_id=..., key=...) as cloud:
        job = await cloud.submit_training_job(org_id, dataset_id, "parts", tags=["ok", "bad"])
        await job.wait(show=True)
        await job.download("parts/")

It works on Trio and on asyncio; `training.connect_blocking` is the same for programs without an event loop.
"""
