"""viam.app.datasync.v1.DataSyncService: machines upload what they have captured."""

from __future__ import annotations

from cloud.services.base import Service, guarded


@guarded({})
class DataSyncService(Service):
    """One call. What is not here is UNIMPLEMENTED."""
