"""viam.app.packages.v1.PackageService: archives with versions."""

from __future__ import annotations

from cloud.services.base import Service, guarded


@guarded({})
class PackageService(Service):
    """One call. What is not here is UNIMPLEMENTED."""
