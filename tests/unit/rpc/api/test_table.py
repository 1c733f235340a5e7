"""The table of services has every published resource API of viam-sdk."""

import importlib
import pkgutil

from rpc.api.messages import load
from rpc.api.table import APIS, SERVICES

EXAMPLE = "viam.component.testecho.v1.TestEchoService"


def published():
    """Return the full names of the services of components and services in the installed viam-sdk."""
    package = importlib.import_module(load("common.v1.common_pb2").__name__.partition(".common.")[0])
    for kind in ("component", "service"):
        paths = [f"{path}/{kind}" for path in package.__path__]
        for module in pkgutil.walk_packages(paths, f"{package.__name__}.{kind}."):
            if module.name.endswith("_pb2"):
                descriptor = importlib.import_module(module.name).DESCRIPTOR
                yield from (service.full_name for service in descriptor.services_by_name.values())


def test_every_published_api_is_in_the_table():
    names = set(published()) - {EXAMPLE}
    assert len(names) > 30
    assert names == {APIS[api].service for api in APIS if SERVICES[APIS[api].service].module}
