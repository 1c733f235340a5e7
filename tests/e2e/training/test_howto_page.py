"""The Python examples of docs/howto/train-a-model.md, run as they are: our client, the official SDK, and a script.

Names that they leave open, such as `org_id`, are arguments. The example with PyTorch is not run, as the page says.
"""

from __future__ import annotations

import random
import sys
import textwrap
from collections.abc import Awaitable, Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import pytest
import trio
from viam.app.viam_client import ViamClient
from viam.proto.app.mltraining import TrainingStatus

from tests.e2e.cloud.process import CloudProcess, cloud
from tests.e2e.cloud.sdk_walk_training import packed, uploaded
from tests.e2e.training.test_loop import PATIENCE, encoded, ended, log_of, part_of, with_sdk
from training.jobs.submission import MIN_EXAMPLES

PAGE: Final = Path(__file__).parents[3] / "docs" / "howto" / "train-a-model.md"
EXAMPLES: Final = [textwrap.dedent(block.partition("```")[0]) for block in PAGE.read_text().split("```python\n")[1:]]
_, OURS, OFFICIAL, SCRIPT = EXAMPLES  # the first one needs PyTorch
LABELS: Final = {"ok": "green", "bad": "red"}

pytestmark = pytest.mark.skipif(
    any(find_spec(name) is None for name in ("numpy", "onnxruntime")), reason="the extra ml is not installed"
)


def source_of(text: str, *arguments: str) -> str:
    """Return an example as the body of a coroutine function, which returns its variables."""
    return f"async def example({', '.join(arguments)}):\n{textwrap.indent(text, '    ')}\n    return locals()\n"


def example(text: str, *arguments: str) -> Callable[..., Awaitable[dict[str, Any]]]:
    """Compile an example."""
    names: dict[str, Any] = {}
    exec(compile(source_of(text, *arguments), str(PAGE), "exec"), names)
    function: Callable[..., Awaitable[dict[str, Any]]] = names["example"]
    return function


def replaced(text: str, changes: dict[str, str]) -> str:
    """Return an example with the values of the test."""
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    return text


async def labelled(client: ViamClient, organization: str, part: str) -> str:
    data, chance = client.data_client, random.Random(5)
    dataset = await data.create_dataset("parts", organization)
    for label, color in LABELS.items():
        files = [
            await data.file_upload(part, encoded(chance, color), file_name=label, file_extension=".png")
            for _ in range(MIN_EXAMPLES)
        ]
        await data.add_tags_to_binary_data_by_ids([label], files)
        await data.add_binary_data_to_dataset_by_ids(files, dataset)
    return str(dataset)


async def in_a_script(running: CloudProcess, organization: str, dataset: str) -> None:
    """Run the example for scripts in a job, which then counts what it has read."""
    code = f"import asyncio, pathlib, sys\n{source_of(SCRIPT)}\n" + textwrap.dedent("""
        names = asyncio.run(example())
        print(len({file.binary for file in names["files"]}), "different pictures")
        folder = next(word.partition("=")[2] for word in sys.argv if "--model_output_directory" in word)
        pathlib.Path(folder, "model.txt").write_text("model")
        """)

    async def run(sdk: ViamClient) -> tuple[Any, list[str]]:
        client, script = sdk.ml_training_client, await uploaded(sdk, organization, packed(code))
        job = await client.submit_custom_training_job(organization, dataset, script, "1", "other", "1")
        return await ended(client, job), await log_of(client, job)

    metadata, log = await with_sdk(running, run)
    assert metadata.status == TrainingStatus.TRAINING_STATUS_COMPLETED, log
    assert f"{2 * MIN_EXAMPLES} different pictures" in log


async def test_the_examples(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = (f"--training-python={sys.executable}", "--training-jobs=2")
    async with cloud(tmp_path / "cloud", *options) as running:
        organization, part = running.facts["organization"], await part_of(running)
        dataset = await with_sdk(running, lambda sdk: labelled(sdk, organization, part["id"]))
        places = {"org_id": organization, "dataset_id": dataset}
        async with trio.open_nursery() as nursery:
            nursery.start_soon(in_a_script, running, organization, dataset)
            key_id, key = running.key
            ours = {
                "cloud.example.org": f"http://{running.address}",
                "key_id=...": f"key_id={key_id!r}",
                "key=...": f"key={key!r}",
                "parts/": str(tmp_path / "parts"),
            }
            with trio.fail_after(PATIENCE):
                report = (await example(replaced(OURS, ours), *places)(**places))["report"]
        assert (sorted(report.labels), report.test.accuracy) == (["bad", "ok"], 1.0)
        assert (tmp_path / "parts" / "model.onnx").exists()
        assert "test_accuracy 1" in capsys.readouterr().out

        async def official(sdk: ViamClient) -> None:
            job = (await example(OFFICIAL, "client", *places)(client=sdk, **places))["job"]
            await sdk.ml_training_client.cancel_training_job(job)
            assert f'id: "{job}"' in capsys.readouterr().out

        await with_sdk(running, official)
