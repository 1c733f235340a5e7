"""What users see who cannot train: without the libraries, without jobs, or without the role of an owner."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.browser.chromium import browser, needs_chromium
from tests.e2e.browser.page import Page
from tests.e2e.browser.signing import sign_in
from tests.e2e.browser.test_training_pages import filled
from tests.e2e.cloud.process import cloud

pytestmark = needs_chromium
APP: Final = "viam.app.v1.AppService"
HIDDEN: Final = "import sys\nsys.modules['onnxruntime'] = None\n"
"""A sitecustomize.py with which Python does not find the library."""


def without_library(folder: Path) -> dict[str, str]:
    """Return the environment of a cloud in which onnxruntime is not installed."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(HIDDEN)
    return {"PYTHONPATH": os.pathsep.join([str(folder), *sys.path])}


async def refused_form(page: Page, home: str, dataset: str, reason: str) -> None:
    """Check that the form shows a reason before and after it is sent."""
    await page.goto(f"{home}/training/new?dataset={dataset}")
    await page.until_text(reason, "#missing")
    page.expect("409")
    await page.click("button.primary")
    await page.until_text(reason, "[role=alert]")


@pytest.mark.parametrize(
    ("options", "hidden", "reason"),
    [
        (("--training-jobs=0",), False, "start machine-cloud with --training-jobs 1 or more"),
        ((), True, "run `python -m pip install onnxruntime`, and start machine-cloud again"),
    ],
)
async def test_users_see_what_to_do(tmp_path: Path, options: tuple[str, ...], hidden: bool, reason: str) -> None:
    environ = without_library(tmp_path / "python") if hidden else {}
    async with cloud(tmp_path / "cloud", *options, environ=environ) as running:
        dataset, _ = await filled(running)
        home = f"http://{running.address}"
        async with browser(tmp_path) as page:
            await sign_in(page, running, path=f"/datasets/{dataset}")
            await refused_form(page, home, dataset, reason)
        if hidden:
            log = (tmp_path / "cloud" / "cloud.log").read_text()
            assert "-m pip install onnxruntime" in log
            return
        organization = running.facts["organization"]
        grant = {
            "authorization_id": "organization_operator",
            "resource_type": "organization",
            "resource_id": organization,
        }
        async with running.client() as client:
            operator = await client.call(APP, "", "create_key", authorizations=[grant], name="operator")
        os.mkdir(tmp_path / "operator")
        async with browser(tmp_path / "operator") as page:
            await sign_in(page, running, (operator["id"], operator["key"]), path=f"/datasets/{dataset}")
            await page.until_text("Only owners of the organization train models")
            page.expect("403")
            await page.goto(f"{home}/training/new?dataset={dataset}")
            await page.until_text("This needs the role of an owner")
