"""A machine document as a published message, for machines that poll. Pure.

The message has no fields for some settings (limits of modules, the id of a frame): machine-server reads the document
itself instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from rpc.access import API_KEY, LOCATION_SECRET, PART_SECRET
from schema import Frame
from schema.document import MachineDocument, Module, PackageSource, Remote, ResourceEntry

CREDENTIALS: Final[Mapping[str, int]] = {API_KEY: 2, PART_SECRET: 3, LOCATION_SECRET: 4}
"""Numbers of `RemoteAuth.CredentialsType`; all other types are 0 (unspecified)."""


def robot_config(document: MachineDocument, revision: str, cloud: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of `viam.app.v1.RobotConfig`; `cloud` has those of its CloudConfig."""
    components = [entry for entry in document.resources if entry.api.type == "component"]
    services = [entry for entry in document.resources if entry.api.type != "component"]
    network, tracing = document.network, document.tracing
    return {
        "cloud": dict(cloud),
        "components": [{**_resource(entry), "frame": _frame(entry.frame)} for entry in components],
        "services": [_resource(entry) for entry in services],
        "remotes": [_remote(remote) for remote in document.remotes],
        "modules": [_module(module) for module in document.modules],
        "packages": [
            *(_package(each.name, each.package, each.version, each.type, each.source) for each in document.packages),
            *(
                _package(module.name, module.module_id, module.version, "module", module.source)
                for module in document.modules
                if module.type == "registry"
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
                {"port": endpoint.port, "connection_timeout": timedelta(seconds=endpoint.connection_timeout)}
                for endpoint in network.traffic_tunnel_endpoints
            ],
        },
        "auth": {"tls_auth_entities": list(document.auth.tls_auth_entities)},
        "debug": document.debug,
        "enable_web_profile": document.enable_web_profile,
        "log": [{"pattern": rule.pattern, "level": rule.level} for rule in document.log],
        "revision": revision,
        "disable_log_deduplication": document.disable_log_deduplication,
        "jobs": [
            {
                "name": job.name,
                "schedule": job.schedule,
                "resource": job.resource,
                "method": job.method,
                "command": job.command,
            }
            for job in document.jobs
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
        "service_configs": [{"type": config.type, "attributes": config.attributes} for config in entry.service_configs],
        "log_configuration": {"level": level.level} if level is not None else None,
    }


def _frame(frame: Frame | None) -> dict[str, Any] | None:
    if frame is None:
        return None
    position, rotation = frame.translation, frame.orientation
    return {
        "parent": frame.parent,
        "translation": {"x": position.x, "y": position.y, "z": position.z},
        "orientation": {
            "vector_degrees": {"x": rotation.o_x, "y": rotation.o_y, "z": rotation.o_z, "theta": rotation.theta}
        },
        "geometry": frame.geometry,
    }


def _remote(remote: Remote) -> dict[str, Any]:
    auth = remote.auth
    return {
        "name": remote.name,
        "address": remote.address,
        "prefix": remote.prefix,
        "insecure": remote.insecure,
        "secret": remote.secret,
        "managed_by": remote.managed_by,
        "frame": _frame(remote.place),
        "auth": {
            "entity": auth.entity,
            "credentials": {"type": CREDENTIALS.get(auth.credentials.type, 0), "payload": auth.credentials.payload},
        }
        if auth is not None and auth.credentials is not None
        else None,
    }


def _package(name: str, package: str, version: str, kind: str, source: PackageSource | None) -> dict[str, Any]:
    """Return a package with its resolved version, so that machines download it again when that changes."""
    resolved = source or PackageSource()
    status = {"error": resolved.error} if resolved.error else None
    package = package.replace(":", "/")
    return {"name": name, "package": package, "version": resolved.version or version, "type": kind, "status": status}


def _module(module: Module) -> dict[str, Any]:
    return {
        "name": module.name,
        "path": module.executable_path if module.type != "registry" else f"${{packages.module.{module.name}}}",
        "log_level": module.log_level,
        "type": module.type,
        "module_id": module.module_id,
        "env": dict(module.env),
        "first_run_timeout": timedelta(seconds=module.first_run_limit),
        "tcp_mode": module.tcp_mode,
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
