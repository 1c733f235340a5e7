"""What the registry answers: one dataclass for each published message, with its field names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum
from typing import Any


class PackageType(IntEnum):
    """What a package holds."""

    UNSPECIFIED = 0
    ARCHIVE = 1
    ML_MODEL = 2
    MODULE = 3
    SLAM_MAP = 4
    ML_TRAINING = 5


class Visibility(IntEnum):
    """Who may read an item."""

    UNSPECIFIED = 0
    PRIVATE = 1
    PUBLIC = 2
    PUBLIC_UNLISTED = 3


class RegistryItemStatus(IntEnum):
    """Whether an item has a version."""

    UNSPECIFIED = 0
    PUBLISHED = 1
    IN_DEVELOPMENT = 2


@dataclass(frozen=True, slots=True)
class Model:
    """A model that a module offers."""

    api: str = ""
    model: str = ""
    markdown_documentation: str | None = None
    description: str | None = None
    supported_hardware: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Uploads:
    """One file of a version."""

    platform: str
    uploaded_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class DeprecatedStatus:
    """Since when something is advised against, and why."""

    deprecated_at: datetime
    message: str


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a module: ModuleVersion, VersionHistory."""

    version: str
    files: list[Uploads]
    models: list[Model] = field(default_factory=list)
    entrypoint: str = ""
    first_run: str | None = None
    markdown_description: str | None = None
    deprecated_status: DeprecatedStatus | None = None


@dataclass(frozen=True, slots=True)
class Module:
    """A module with its versions."""

    module_id: str
    name: str
    visibility: Visibility
    versions: list[Version]
    url: str
    description: str
    models: list[Model]
    organization_id: str
    entrypoint: str
    public_namespace: str
    first_run: str | None = None
    markdown_description: str | None = None
    deprecated_status: DeprecatedStatus | None = None


@dataclass(frozen=True, slots=True)
class ModuleMetadata:
    """What an item that is a module has besides."""

    models: list[Model]
    versions: list[Version]
    entrypoint: str
    first_run: str | None = None
    markdown_description: str | None = None


@dataclass(frozen=True, slots=True)
class VersionOf:
    """A version of a model or of a training script."""

    version: str
    created_on: datetime | None = None


@dataclass(frozen=True, slots=True)
class MLModelMetadata:
    """What an item that is a model has besides. `model_type` and `model_framework` are numbers of the protocol."""

    versions: list[str]
    model_type: int = 0
    model_framework: int = 0
    detailed_versions: list[VersionOf] = field(default_factory=list)
    deployment_modular_resources: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class MLTrainingMetadata:
    """What an item that is a training script has besides."""

    versions: list[VersionOf]
    model_type: int = 0
    model_framework: int = 0
    draft: bool = False
    deployment_modular_resources: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class RegistryItem:
    """An item with its versions."""

    item_id: str
    organization_id: str
    public_namespace: str
    name: str
    type: PackageType
    visibility: Visibility
    url: str
    description: str
    created_at: datetime
    updated_at: datetime
    module_metadata: ModuleMetadata | None = None
    ml_model_metadata: MLModelMetadata | None = None
    ml_training_metadata: MLTrainingMetadata | None = None
    deprecated_status: DeprecatedStatus | None = None


@dataclass(frozen=True, slots=True)
class UpdateModuleMetadata:
    """What may be changed of a module."""

    models: list[Model] = field(default_factory=list)
    entrypoint: str = ""


@dataclass(frozen=True, slots=True)
class UpdateMLModelMetadata:
    """What may be changed of a model."""

    model_type: int = 0
    model_framework: int = 0
    deployment_modular_resources: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class UpdateMLTrainingMetadata:
    """What may be changed of a training script."""

    model_type: int = 0
    model_framework: int = 0
    draft: bool = False
    deployment_modular_resources: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class NewModule:
    """A module that was just made, and the page about it."""

    module_id: str
    url: str


@dataclass(frozen=True, slots=True)
class FileInfo:
    """A file of a package, as its uploader lists it."""

    name: str = ""
    size: int = 0
    is_directory: bool | None = None


@dataclass(frozen=True, slots=True)
class PackageInfo:
    """A package as it was uploaded."""

    organization_id: str
    name: str
    version: str
    type: PackageType
    platform: str | None = None
    files: list[FileInfo] = field(default_factory=list)
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Package:
    """A package. `checksum` is its SHA-256 in hexadecimal digits; `url` works for an hour."""

    info: PackageInfo
    url: str
    created_on: datetime
    checksum: str
    id: str


@dataclass(frozen=True, slots=True)
class NewPackage:
    """A package that was just uploaded."""

    id: str
    version: str
