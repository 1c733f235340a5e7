"""Conversion of registry items to published messages. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import asdict

from cloud.domain.registry import deprecation, versions
from cloud.domain.registry.deprecation import Deprecation
from cloud.domain.registry.files import File
from cloud.domain.registry.items import MODULE, TYPES, VISIBILITIES, RegistryItem
from cloud.services.registry import registry_messages as m


def registry_item(item: RegistryItem, files: Sequence[File]) -> m.RegistryItem:
    """Return an item with its versions, newest first."""
    versions_with_files, data = history(files), item.metadata
    created = [m.VersionOf(version.version, version.files[0].uploaded_at) for version in versions_with_files]
    model_data = {
        key: data[key] for key in ("model_type", "model_framework", "deployment_modular_resources") if key in data
    }
    module = model = training = None
    if item.type == MODULE:
        module = m.ModuleMetadata(
            _models(data), versions_with_files, data.get("entrypoint", ""), data.get("first_run"), data.get("markdown")
        )
    elif item.type == "ml_model":
        model = m.MLModelMetadata(
            [version.version for version in versions_with_files], detailed_versions=created, **model_data
        )
    elif item.type == "ml_training":
        training = m.MLTrainingMetadata(created, draft=bool(data.get("draft")), **model_data)
    return m.RegistryItem(
        item_id=item.wire_id,
        organization_id=item.organization_id,
        public_namespace=item.namespace,
        name=item.name,
        type=package_type(item.type),
        visibility=_visibility(item),
        url=item.url,
        description=item.description,
        created_at=item.created,
        updated_at=item.updated,
        module_metadata=module,
        ml_model_metadata=model,
        ml_training_metadata=training,
        deprecated_status=_status(deprecation.of_item(item)),
    )


def module_of(item: RegistryItem, files: Sequence[File]) -> m.Module:
    """Return a module with its versions, newest first."""
    data = item.metadata
    return m.Module(
        module_id=item.wire_id,
        name=item.name,
        visibility=_visibility(item),
        versions=history(files),
        url=item.url,
        description=item.description,
        models=_models(data),
        organization_id=item.organization_id,
        entrypoint=data.get("entrypoint", ""),
        public_namespace=item.namespace,
        first_run=data.get("first_run"),
        markdown_description=data.get("markdown"),
        deprecated_status=_status(deprecation.of_item(item)),
    )


def history(files: Sequence[File]) -> list[m.Version]:
    """Return the versions of an item with their files, newest first."""
    shown: list[m.Version] = []
    for version in versions.newest_first(dict.fromkeys(file.version for file in files)):
        version_files = [file for file in files if file.version == version]
        data = version_files[-1].metadata
        shown.append(
            m.Version(
                version,
                [m.Uploads(file.platform, file.uploaded) for file in version_files],
                _models(data),
                data.get("entrypoint", ""),
                data.get("first_run"),
                data.get("markdown"),
                _status(deprecation.of_version(version_files)),
            )
        )
    return shown


def _status(deprecated: Deprecation | None) -> m.DeprecatedStatus | None:
    return None if deprecated is None else m.DeprecatedStatus(deprecated.at, deprecated.message)


def package_type(kind: str) -> m.PackageType:
    """Return the protocol constant of a type."""
    return m.PackageType(TYPES.index(kind) + 1)


def _visibility(item: RegistryItem) -> m.Visibility:
    return m.Visibility(VISIBILITIES.index(item.visibility) + 1)


def _models(data: Mapping[str, Any]) -> list[m.Model]:
    return [m.Model(**model) for model in data.get("models", [])]


def update_of_module(change: m.UpdateModuleMetadata | None) -> dict[str, Any]:
    """Return the requested changes of a module's metadata; empty values leave a property unchanged."""
    if change is None:
        return {}
    models = {"models": [asdict(model) for model in change.models]} if change.models else {}
    return {**models, **({"entrypoint": change.entrypoint} if change.entrypoint else {})}


def update_of_model(change: m.UpdateMLModelMetadata | m.UpdateMLTrainingMetadata | None) -> dict[str, Any]:
    """Return the requested changes of a model's or training script's metadata."""
    return asdict(change) if change is not None else {}
