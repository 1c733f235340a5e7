"""viam.app.dataset.v1.DatasetService: collections of captured data."""

from __future__ import annotations

from cloud.services.base import Service, guarded


@guarded({})
class DatasetService(Service):
    """One call. What is not here is UNIMPLEMENTED."""
