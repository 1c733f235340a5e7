"""Conversion of registry items to published messages. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from cloud.domain.registry import deprecation, versions
from cloud.domain.registry.deprecation import Deprecation
from cloud.domain.registry.files import File
from cloud.domain.registry.items import MODULE, TYPES, VISIBILITIES, Item
from cloud.services.registry import registry_messages as m


def registry_item(found: Item, files: Sequence[File]) -> m.RegistryItem:
    """Return an item with its versions, newest first."""
    there, data = history(files), found.metadata
    created = [m.VersionOf(one.version, one.files[0].uploaded_at) for one in there]
    kept = {key: data[key] for key in ("model_type", "model_framework", "deployment_modular_resources") if key in data}
    module = model = training = None
    if found.type == MODULE:
        module = m.ModuleMetadata(
            _models(data), there, data.get("entrypoint", ""), data.get("first_run"), data.get("markdown")
        )
    elif found.type == "ml_model":
        model = m.MLModelMetadata([one.version for one in there], detailed_versions=created, **kept)
    elif found.type == "ml_training":
        training = m.MLTrainingMetadata(created, draft=bool(data.get("draft")), **kept)
    return m.RegistryItem(
        item_id=found.wire_id,
        organization_id=found.organization_id,
        public_namespace=found.namespace,
        name=found.name,
        type=package_type(found.type),
        visibility=_visibility(found),
        url=found.url,
        description=found.description,
        created_at=found.created,
        updated_at=found.updated,
        module_metadata=module,
        ml_model_metadata=model,
        ml_training_metadata=training,
        deprecated_status=_status(deprecation.of_item(found)),
    )


def module_of(found: Item, files: Sequence[File]) -> m.Module:
    """Return a module with its versions, newest first."""
    data = found.metadata
    return m.Module(
        module_id=found.wire_id,
        name=found.name,
        visibility=_visibility(found),
        versions=history(files),
        url=found.url,
        description=found.description,
        models=_models(data),
        organization_id=found.organization_id,
        entrypoint=data.get("entrypoint", ""),
        public_namespace=found.namespace,
        first_run=data.get("first_run"),
        markdown_description=data.get("markdown"),
        deprecated_status=_status(deprecation.of_item(found)),
    )


def history(files: Sequence[File]) -> list[m.Version]:
    """Return the versions of an item with their files, newest first."""
    shown: list[m.Version] = []
    for version in versions.newest_first(dict.fromkeys(one.version for one in files)):
        of = [one for one in files if one.version == version]
        data = of[-1].metadata
        shown.append(
            m.Version(
                version,
                [m.Uploads(one.platform, one.uploaded) for one in of],
                _models(data),
                data.get("entrypoint", ""),
                data.get("first_run"),
                data.get("markdown"),
                _status(deprecation.of_version(of)),
            )
        )
    return shown


def _status(said: Deprecation | None) -> m.DeprecatedStatus | None:
    return None if said is None else m.DeprecatedStatus(said.at, said.message)


def package_type(kind: str) -> m.PackageType:
    """Return the protocol constant of a type."""
    return m.PackageType(TYPES.index(kind) + 1)


def _visibility(found: Item) -> m.Visibility:
    return m.Visibility(VISIBILITIES.index(found.visibility) + 1)


def _models(data: Mapping[str, Any]) -> list[m.Model]:
    return [m.Model(**one) for one in data.get("models", [])]


def update_of_module(change: m.UpdateModuleMetadata | None) -> dict[str, Any]:
    """Return the requested changes of a module's metadata; empty values leave a property unchanged."""
    if change is None:
        return {}
    models = {"models": [asdict(one) for one in change.models]} if change.models else {}
    return {**models, **({"entrypoint": change.entrypoint} if change.entrypoint else {})}


def update_of_model(change: m.UpdateMLModelMetadata | m.UpdateMLTrainingMetadata | None) -> dict[str, Any]:
    """Return the requested changes of a model's or training script's metadata."""
    return asdict(change) if change is not None else {}
