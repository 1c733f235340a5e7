"""Response messages of the registry: one dataclass per published message, with its field names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum
from typing import Any


class PackageType(IntEnum):
    """Content of a package."""

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
    """A model that a module provides."""

    api: str = ""
    model: str = ""
    markdown_documentation: str | None = None
    description: str | None = None
    supported_hardware: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Uploads:
    """A file of a version."""

    platform: str
    uploaded_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class DeprecatedStatus:
    """Time and reason of a deprecation."""

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
    """Additional fields of an item that is a module."""

    models: list[Model]
    versions: list[Version]
    entrypoint: str
    first_run: str | None = None
    markdown_description: str | None = None


@dataclass(frozen=True, slots=True)
class VersionOf:
    """A version of a model or a training script."""

    version: str
    created_on: datetime | None = None


@dataclass(frozen=True, slots=True)
class MLModelMetadata:
    """Additional fields of an item that is a model. `model_type` and `model_framework` are protocol constants."""

    versions: list[str]
    model_type: int = 0
    model_framework: int = 0
    detailed_versions: list[VersionOf] = field(default_factory=list)
    deployment_modular_resources: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class MLTrainingMetadata:
    """Additional fields of an item that is a training script."""

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
    """Changes of a module's metadata."""

    models: list[Model] = field(default_factory=list)
    entrypoint: str = ""


@dataclass(frozen=True, slots=True)
class UpdateMLModelMetadata:
    """Changes of a model's metadata."""

    model_type: int = 0
    model_framework: int = 0
    deployment_modular_resources: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class UpdateMLTrainingMetadata:
    """Changes of a training script's metadata."""

    model_type: int = 0
    model_framework: int = 0
    draft: bool = False
    deployment_modular_resources: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class NewModule:
    """A new module and the URL of its page."""

    module_id: str
    url: str


@dataclass(frozen=True, slots=True)
class FileInfo:
    """A file in a package, as its uploader listed it."""

    name: str = ""
    size: int = 0
    is_directory: bool | None = None


@dataclass(frozen=True, slots=True)
class PackageInfo:
    """Properties of an uploaded package."""

    organization_id: str
    name: str
    version: str
    type: PackageType
    platform: str | None = None
    files: list[FileInfo] = field(default_factory=list)
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Package:
    """A package. `checksum` is its SHA-256 in hexadecimal; `url` is valid for one hour."""

    info: PackageInfo
    url: str
    created_on: datetime
    checksum: str
    id: str


@dataclass(frozen=True, slots=True)
class NewPackage:
    """A newly uploaded package."""

    id: str
    version: str
