"""Response messages of the registry: one class for each published message, with its field names."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import IntEnum
from typing import Any

from msgspec import Struct


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


class Model(Struct, frozen=True):
    """A model that a module provides."""

    api: str = ""
    model: str = ""
    markdown_documentation: str | None = None
    description: str | None = None
    supported_hardware: list[str] = []


class Uploads(Struct, frozen=True):
    """A file of a version."""

    platform: str
    uploaded_at: datetime | None = None


class DeprecatedStatus(Struct, frozen=True):
    """Time and reason of a deprecation."""

    deprecated_at: datetime
    message: str


class Version(Struct, frozen=True):
    """A version of a module: ModuleVersion, VersionHistory."""

    version: str
    files: list[Uploads]
    models: list[Model] = []
    entrypoint: str = ""
    first_run: str | None = None
    markdown_description: str | None = None
    deprecated_status: DeprecatedStatus | None = None


class Module(Struct, frozen=True):
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


class ModuleMetadata(Struct, frozen=True):
    """Additional fields of an item that is a module."""

    models: list[Model]
    versions: list[Version]
    entrypoint: str
    first_run: str | None = None
    markdown_description: str | None = None


class VersionOf(Struct, frozen=True):
    """A version of a model or a training script."""

    version: str
    created_on: datetime | None = None


class MLModelMetadata(Struct, frozen=True):
    """Additional fields of an item that is a model. `model_type` and `model_framework` are protocol constants."""

    versions: list[str]
    model_type: int = 0
    model_framework: int = 0
    detailed_versions: list[VersionOf] = []
    deployment_modular_resources: list[str] = []


class MLTrainingMetadata(Struct, frozen=True):
    """Additional fields of an item that is a training script."""

    versions: list[VersionOf]
    model_type: int = 0
    model_framework: int = 0
    draft: bool = False
    deployment_modular_resources: list[str] = []


class RegistryItem(Struct, frozen=True):
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


class UpdateModuleMetadata(Struct, frozen=True):
    """Changes of a module's metadata."""

    models: list[Model] = []
    entrypoint: str = ""


class UpdateMLModelMetadata(Struct, frozen=True):
    """Changes of a model's metadata."""

    model_type: int = 0
    model_framework: int = 0
    deployment_modular_resources: list[str] = []


class UpdateMLTrainingMetadata(Struct, frozen=True):
    """Changes of a training script's metadata."""

    model_type: int = 0
    model_framework: int = 0
    draft: bool = False
    deployment_modular_resources: list[str] = []


class NewModule(Struct, frozen=True):
    """A new module and the URL of its page."""

    module_id: str
    url: str


class FileInfo(Struct, frozen=True):
    """A file in a package, as its uploader listed it."""

    name: str = ""
    size: int = 0
    is_directory: bool | None = None


class PackageInfo(Struct, frozen=True):
    """Properties of an uploaded package."""

    organization_id: str
    name: str
    version: str
    type: PackageType
    platform: str | None = None
    files: list[FileInfo] = []
    metadata: Mapping[str, Any] = {}


class Package(Struct, frozen=True):
    """A package. `checksum` is its SHA-256 in hexadecimal; `url` is valid for one hour."""

    info: PackageInfo
    url: str
    created_on: datetime
    checksum: str
    id: str


class NewPackage(Struct, frozen=True):
    """A newly uploaded package."""

    id: str
    version: str
