from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cloud.server.memory import MemoryCloud
from tests.unit.cloud.services.reverse.site import Site, site


@pytest.fixture
async def opened(cloud: MemoryCloud, tmp_path: Path) -> AsyncIterator[Site]:
    async with site(cloud, tmp_path) as open_site:
        yield open_site
