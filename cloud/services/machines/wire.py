"""A machine document as a published message, for machines that poll. Pure.

The message has no fields for some settings (limits of modules, the id of a frame): machine-server reads the document
itself instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from rpc.access.auth import API_KEY, LOCATION_SECRET, PART_SECRET
from schema.document.machine import MachineDocument, ResourceEntry
from schema.document.modules import Module
from schema.document.packages import PackageSource
from schema.document.remotes import Remote
from schema.frames import Frame

CREDENTIALS: Final[Mapping[str, int]] = {API_KEY: 2, PART_SECRET: 3, LOCATION_SECRET: 4}
"""Numbers of `RemoteAuth.CredentialsType`; all other types are 0 (unspecified)."""


def robot_config(document: MachineDocument, revision: str, cloud: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of `viam.app.v1.RobotConfig`; `cloud` has those of its CloudConfig."""
    components = [entry for entry in document.resources if entry.api.type == "component"]
    services = [entry for entry in document.resources if entry.api.type != "component"]
    network, tracing = document.network, document.tracing
    return {
        "cloud": dict(cloud),
        "components": [{**_resource(one), "frame": _frame(one.frame)} for one in components],
        "services": [_resource(one) for one in services],
        "remotes": [_remote(one) for one in document.remotes],
        "modules": [_module(one) for one in document.modules],
        "packages": [
            *(_package(one.name, one.package, one.version, one.type, one.source) for one in document.packages),
            *(
                _package(one.name, one.module_id, one.version, "module", one.source)
                for one in document.modules
                if one.type == "registry"
            ),
        ],
        "network": {
            "fqdn": network.fqdn,
            "bind_address": network.bind_address,
            "tls_cert_file": network.tls_cert_file,
            "tls_key_file": network.tls_key_file,
            "no_tls": network.no_tls,
            "sessions": {"heartbeat_window": timedelta(seconds=network.sessions.heartbeat_window)},
            "traffic_tunnel_endpoints": [
                {"port": one.port, "connection_timeout": timedelta(seconds=one.connection_timeout)}
                for one in network.traffic_tunnel_endpoints
            ],
        },
        "auth": {"tls_auth_entities": list(document.auth.tls_auth_entities)},
        "debug": document.debug,
        "enable_web_profile": document.enable_web_profile,
        "log": [{"pattern": one.pattern, "level": one.level} for one in document.log],
        "revision": revision,
        "disable_log_deduplication": document.disable_log_deduplication,
        "jobs": [
            {
                "name": one.name,
                "schedule": one.schedule,
                "resource": one.resource,
                "method": one.method,
                "command": one.command,
            }
            for one in document.jobs
        ],
        "tracing": {
            "enabled": tracing.enabled,
            "disk": tracing.disk,
            "console": tracing.console,
            "otlp_endpoint": tracing.otlp_endpoint,
        },
        "maintenance": _maintenance(document),
    }


def _resource(entry: ResourceEntry) -> dict[str, Any]:
    level = entry.log_configuration
    return {
        "name": entry.name.name,
        "namespace": entry.api.namespace,
        "type": entry.api.subtype,
        "api": str(entry.api),
        "model": str(entry.model),
        "attributes": dict(entry.attributes),
        "depends_on": list(entry.depends_on),
        "service_configs": [{"type": one.type, "attributes": one.attributes} for one in entry.service_configs],
        "log_configuration": {"level": level.level} if level is not None else None,
    }


def _frame(frame: Frame | None) -> dict[str, Any] | None:
    if frame is None:
        return None
    at, turn = frame.translation, frame.orientation
    return {
        "parent": frame.parent,
        "translation": {"x": at.x, "y": at.y, "z": at.z},
        "orientation": {"vector_degrees": {"x": turn.o_x, "y": turn.o_y, "z": turn.o_z, "theta": turn.theta}},
        "geometry": frame.geometry,
    }


def _remote(one: Remote) -> dict[str, Any]:
    auth = one.auth
    return {
        "name": one.name,
        "address": one.address,
        "prefix": one.prefix,
        "insecure": one.insecure,
        "secret": one.secret,
        "managed_by": one.managed_by,
        "frame": _frame(one.place),
        "auth": {
            "entity": auth.entity,
            "credentials": {"type": CREDENTIALS.get(auth.credentials.type, 0), "payload": auth.credentials.payload},
        }
        if auth is not None and auth.credentials is not None
        else None,
    }


def _package(name: str, package: str, version: str, kind: str, source: PackageSource | None) -> dict[str, Any]:
    """Return a package with its resolved version, so that machines download it again when that changes."""
    found = source or PackageSource()
    status = {"error": found.error} if found.error else None
    package = package.replace(":", "/")
    return {"name": name, "package": package, "version": found.version or version, "type": kind, "status": status}


def _module(one: Module) -> dict[str, Any]:
    return {
        "name": one.name,
        "path": one.executable_path if one.type != "registry" else f"${{packages.module.{one.name}}}",
        "log_level": one.log_level,
        "type": one.type,
        "module_id": one.module_id,
        "env": dict(one.env),
        "first_run_timeout": timedelta(seconds=one.first_run_limit),
        "tcp_mode": one.tcp_mode,
    }


def _maintenance(document: MachineDocument) -> dict[str, Any] | None:
    window = document.maintenance
    if window is None:
        return None
    sensor = window.sensor
    name = {
        "namespace": sensor.api.namespace,
        "type": sensor.api.type,
        "subtype": sensor.api.subtype,
        "name": sensor.short,
    }
    return {"sensor_name": name, "maintenance_allowed_key": window.maintenance_allowed_key}
