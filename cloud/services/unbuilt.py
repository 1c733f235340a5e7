"""Explanations for published calls that are not supported. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_APP: Final = "viam.app.v1.AppService"
_NO_SECOND: Final = "a key belongs to one organization and cannot own another; start another machine-cloud instead"
_NO_TRANSFER: Final = (
    "an item cannot change its organization; create one of the same name in the other and upload its versions"
)
_NO_OAUTH: Final = "this cloud has no login by OAuth; use API keys"
_NO_BILLING: Final = "this cloud has no billing"
_NO_PHONES: Final = "this cloud sends no messages to mobile applications; use webhooks or mail"
_NO_BRAND: Final = "organizations of this cloud have no logo, support address or application pages"

_APP_METHODS: Final[Mapping[str, tuple[str, ...]]] = {
    _NO_SECOND: ("CreateOrganization",),
    _NO_TRANSFER: ("TransferRegistryItem",),
    _NO_OAUTH: (
        "EnableAuthService",
        "DisableAuthService",
        "CreateOAuthApp",
        "ReadOAuthApp",
        "UpdateOAuthApp",
        "DeleteOAuthApp",
        "ListOAuthApps",
        "CreateOAuthAppUser",
    ),
    _NO_BILLING: (
        "EnableBillingService",
        "DisableBillingService",
        "UpdateBillingService",
        "GetBillingServiceConfig",
        "GetRoverRentalRobots",
    ),
    _NO_PHONES: (
        "UploadDevicePushToken",
        "DeleteDevicePushToken",
        "GetDevicePushTokens",
        "SetFirebaseConfig",
        "GetFirebaseConfig",
        "DeleteFirebaseConfig",
    ),
    _NO_BRAND: (
        "OrganizationSetSupportEmail",
        "OrganizationGetSupportEmail",
        "OrganizationSetLogo",
        "OrganizationGetLogo",
        "GetAppContent",
        "GetAppBranding",
    ),
}
_DATA: Final = "viam.app.data.v1.DataService"
_DATASETS: Final = "viam.app.dataset.v1.DatasetService"
_NO_DATABASE: Final = "this cloud does not use MongoDB; query with TabularDataBySQL"
_NO_INDEX: Final = "this cloud creates its indexes itself"
_NO_SEQUENCES: Final = "this cloud has no sequences; put files into datasets, and tag them"

_DATA_METHODS: Final[Mapping[str, tuple[str, ...]]] = {
    _NO_DATABASE: ("GetDatabaseConnection", "ConfigureDatabaseUser"),
    _NO_INDEX: ("CreateIndex", "ListIndexes", "DeleteIndex"),
    _NO_SEQUENCES: (
        "AddSequencesToDataset",
        "RemoveSequencesFromDataset",
        "CreateSequence",
        "GetSequence",
        "UpdateSequence",
        "DeleteSequence",
        "ListSequences",
        "SequencesByDatasetID",
        "GetSequenceBinaryData",
    ),
}
_DATASET_METHODS: Final[Mapping[str, tuple[str, ...]]] = {
    _NO_SEQUENCES: ("StartSequenceDatasetExport", "GetSequenceDatasetExport"),
}
_TRAINING: Final = "viam.app.mltraining.v1.MLTrainingService"
_NO_CONTAINERS: Final = (
    "this cloud runs training scripts without containers; leave the container out of SubmitCustomTrainingJob"
)
_TRAINING_METHODS: Final[Mapping[str, tuple[str, ...]]] = {
    _NO_CONTAINERS: ("GetContainer", "RegisterCustomTrainingContainer", "DeleteCustomTrainingContainer"),
}
_METHOD_REASONS: Final = {
    f"{service}/{method}": text
    for service, refused in (
        (_APP, _APP_METHODS),
        (_DATA, _DATA_METHODS),
        (_DATASETS, _DATASET_METHODS),
        (_TRAINING, _TRAINING_METHODS),
    )
    for text, methods in refused.items()
    for method in methods
}

_SERVICE_REASONS: Final[Mapping[str, str]] = {
    "viam.app.v1.BillingService": _NO_BILLING,
    "viam.app.v1.EndUserService": "this cloud has no terms to accept and no registered applications; use API keys",
    "viam.app.datapipelines.v1.DataPipelinesService": "this cloud has no data pipelines; query with TabularDataBySQL",
    "viam.app.mlinference.v1.MLInferenceService": "this cloud runs no models; use a vision service of a machine",
    "viam.app.cloudslam.v1.CloudSLAMService": "this cloud does not create maps; run a mapping module on the machine",
}


def reason_unsupported(path: str, served: frozenset[str]) -> str | None:
    """Return why `/package.Service/Method` is not supported; None if it is not published. `served` are our services."""
    service, _, method = path.strip("/").partition("/")
    reason = _METHOD_REASONS.get(f"{service}/{method}") or _SERVICE_REASONS.get(service)
    if reason is not None:
        return f"{method}: {reason}"
    return f"this cloud does not support {method} of {service}" if service in served and method.isidentifier() else None
