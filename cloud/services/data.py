"""viam.app.data.v1.DataService: what machines have captured."""

from __future__ import annotations

from cloud.services.base import Service, guarded


@guarded({})
class DataService(Service):
    """One call. What is not here is UNIMPLEMENTED."""
