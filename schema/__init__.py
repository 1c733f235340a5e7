"""Vocabulary of all other packages: names, documents, validation and differences. Pure.

Public, in the order in which to read them:

* `doors` (module): Public names of a package, which are loaded when they are first used (PEP 562)
* `durations`: Parsing and formatting of durations such as `10s`, `1h30m` and `250ms`
* `errors`: Base classes of all errors that are shown to users
* `hardware`: Which device an entry means, and its settings: values that configurations and the ports of hal share
* `numbers`: Restoration of whole numbers, which the protocol transmits as doubles
* `secrets`: Detection of secret values by their keys, and masking of secrets in documents and texts
* `space.geometry`: Positions, directions and shapes of the resource APIs
* `versions`: Semantic versions with their precedence
* `attributes`: Attributes of drivers: decoding of a free-form object to a driver's typed class, and its JSON Schema
* `diff`: Difference of two machine documents as text that is safe to log: for secrets it says only that they changed
* `names`: Parsing and formatting of API triples, model triples and resource names
* `shares`: Numbers of machines that a person writes as a number, or as a share of all
* `space.orientation`: Conversion of the orientation forms of documents to the form of poses: a direction and an angle
  about it
* `substitution`: Expansion of environment variables in the text of documents, and of placeholders in attributes and
  modules
* `directory`: Resolution of short resource names to full names
* `missing_models`: The error for an unknown model: misspelled, or not implemented
* `space.frames`: Decoding of component frames: pose and shape of a component relative to its parent
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from schema import doors as doors
    from schema.attributes import Attributes as Attributes
    from schema.attributes import decode_attributes as decode_attributes
    from schema.attributes import json_schema as json_schema
    from schema.diff import Difference as Difference
    from schema.diff import difference as difference
    from schema.diff import difference_lines as difference_lines
    from schema.diff import fragments_difference as fragments_difference
    from schema.directory import Directory as Directory
    from schema.directory import NotConfigured as NotConfigured
    from schema.directory import aliases_of as aliases_of
    from schema.durations import format_duration as format_duration
    from schema.durations import parse_duration as parse_duration
    from schema.errors import ConfigError as ConfigError
    from schema.errors import ConfigErrors as ConfigErrors
    from schema.errors import ErrorKind as ErrorKind
    from schema.errors import MachineError as MachineError
    from schema.hardware import Bias as Bias
    from schema.hardware import ControlsIdentity as ControlsIdentity
    from schema.hardware import Parity as Parity
    from schema.hardware import PixelFormat as PixelFormat
    from schema.hardware import SerialIdentity as SerialIdentity
    from schema.hardware import SerialSettings as SerialSettings
    from schema.hardware import UsbIdentity as UsbIdentity
    from schema.hardware import VideoSettings as VideoSettings
    from schema.missing_models import NOT_BUILT as NOT_BUILT
    from schema.missing_models import UnknownModel as UnknownModel
    from schema.missing_models import unknown_model as unknown_model
    from schema.names import API as API
    from schema.names import DEFAULT_NAMESPACE as DEFAULT_NAMESPACE
    from schema.names import INTERNAL_NAMESPACE as INTERNAL_NAMESPACE
    from schema.names import Model as Model
    from schema.names import ResourceName as ResourceName
    from schema.names import check_name as check_name
    from schema.names import composed as composed
    from schema.numbers import whole_numbers as whole_numbers
    from schema.secrets import MASK as MASK
    from schema.secrets import PLAIN as PLAIN
    from schema.secrets import Masker as Masker
    from schema.secrets import is_secret as is_secret
    from schema.secrets import is_secret_path as is_secret_path
    from schema.secrets import masked as masked
    from schema.secrets import masks_in as masks_in
    from schema.secrets import origin_of as origin_of
    from schema.secrets import shortened as shortened
    from schema.shares import CountOrShare as CountOrShare
    from schema.space.frames import WORLD as WORLD
    from schema.space.frames import Frame as Frame
    from schema.space.frames import decode_frame as decode_frame
    from schema.space.geometry import Capsule as Capsule
    from schema.space.geometry import Geometry as Geometry
    from schema.space.geometry import GeoPoint as GeoPoint
    from schema.space.geometry import Orientation as Orientation
    from schema.space.geometry import Pose as Pose
    from schema.space.geometry import PoseInFrame as PoseInFrame
    from schema.space.geometry import RectangularPrism as RectangularPrism
    from schema.space.geometry import Sphere as Sphere
    from schema.space.geometry import Vector3 as Vector3
    from schema.space.orientation import FORMS as FORMS
    from schema.space.orientation import Quaternion as Quaternion
    from schema.space.orientation import to_orientation as to_orientation
    from schema.space.orientation import to_quaternion as to_quaternion
    from schema.substitution import fill_placeholders as fill_placeholders
    from schema.substitution import has_placeholder as has_placeholder
    from schema.substitution import substitute as substitute
    from schema.versions import SemanticVersion as SemanticVersion
    from schema.versions import VersionForm as VersionForm
    from schema.versions import version_form as version_form
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "durations": ["format_duration", "parse_duration"],
            "errors": ["ConfigError", "ConfigErrors", "ErrorKind", "MachineError"],
            "hardware": [
                "Bias",
                "ControlsIdentity",
                "Parity",
                "PixelFormat",
                "SerialIdentity",
                "SerialSettings",
                "UsbIdentity",
                "VideoSettings",
            ],
            "numbers": ["whole_numbers"],
            "secrets": [
                "MASK",
                "PLAIN",
                "Masker",
                "is_secret",
                "is_secret_path",
                "masked",
                "masks_in",
                "origin_of",
                "shortened",
            ],
            "space.geometry": [
                "Capsule",
                "GeoPoint",
                "Geometry",
                "Orientation",
                "Pose",
                "PoseInFrame",
                "RectangularPrism",
                "Sphere",
                "Vector3",
            ],
            "versions": ["SemanticVersion", "VersionForm", "version_form"],
            "attributes": ["Attributes", "decode_attributes", "json_schema"],
            "diff": ["Difference", "difference", "difference_lines", "fragments_difference"],
            "names": [
                "API",
                "DEFAULT_NAMESPACE",
                "INTERNAL_NAMESPACE",
                "Model",
                "ResourceName",
                "check_name",
                "composed",
            ],
            "shares": ["CountOrShare"],
            "space.orientation": ["FORMS", "Quaternion", "to_orientation", "to_quaternion"],
            "substitution": ["fill_placeholders", "has_placeholder", "substitute"],
            "directory": ["Directory", "NotConfigured", "aliases_of"],
            "missing_models": ["NOT_BUILT", "UnknownModel", "unknown_model"],
            "space.frames": ["WORLD", "Frame", "decode_frame"],
        },
        modules=["doors"],
    )
