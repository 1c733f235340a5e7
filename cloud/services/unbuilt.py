"""Explanations for published calls that are not supported. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_APP: Final = "viam.app.v1.AppService"
_NO_SECOND: Final = "a key belongs to one organization and could not own a second; start another machine-cloud instead"
_NO_TRANSFER: Final = (
    "an item stays with its organization; make one of the same name in the other and upload its versions"
)
_NO_OAUTH: Final = "nobody signs in by OAuth here; use API keys"
_NO_BILLING: Final = "nothing is billed here"
_NO_PHONES: Final = "there is no mobile application to send messages to; use webhooks or mail"
_NO_BRAND: Final = "organizations have no logo, support address or pages of applications here"

_METHODS: Final[Mapping[str, tuple[str, ...]]] = {
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
_NO_MQL: Final = "MongoDB's query language is not spoken here; ask with TabularDataBySQL, or ExportTabularData"
_NO_DATABASE: Final = "no MongoDB stands behind this cloud; ask with TabularDataBySQL"
_NO_INDEX: Final = "indexes cannot be made here: the cloud makes its own"
_NO_SEQUENCES: Final = "sequences are not kept here; put files into datasets, and tag them"

_OF_DATA: Final[Mapping[str, tuple[str, ...]]] = {
    _NO_MQL: (
        "TabularDataByMQL",
        "CreateSavedQuery",
        "UpdateSavedQuery",
        "GetSavedQuery",
        "DeleteSavedQuery",
        "ListSavedQueries",
    ),
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
_OF_DATASETS: Final[Mapping[str, tuple[str, ...]]] = {
    _NO_SEQUENCES: ("StartSequenceDatasetExport", "GetSequenceDatasetExport"),
}
_SENTENCES: Final = {
    f"{service}/{method}": text
    for service, refused in ((_APP, _METHODS), (_DATA, _OF_DATA), (_DATASETS, _OF_DATASETS))
    for text, methods in refused.items()
    for method in methods
}

_SERVICES: Final[Mapping[str, str]] = {
    "viam.app.v1.BillingService": _NO_BILLING,
    "viam.app.v1.EndUserService": "nobody accepts terms or registers applications here; use API keys",
    "viam.app.mltraining.v1.MLTrainingService": "training is not built yet",
    "viam.app.datapipelines.v1.DataPipelinesService": "data pipelines are not built; query with TabularDataBySQL",
    "viam.app.cloudslam.v1.CloudSLAMService": "maps are not made here; run a mapping module on the machine",
    "proto.rpc.webrtc.v1.SignalingService": "WebRTC is not built; reach the machine at its address",
}


def sentence(path: str, served: frozenset[str]) -> str | None:
    """Return why `/package.Service/Method` is not supported; None if it is not published. `served` are our services."""
    service, _, method = path.strip("/").partition("/")
    text = _SENTENCES.get(f"{service}/{method}") or _SERVICES.get(service)
    if text is not None:
        return f"{method}: {text}"
    return f"{method} of {service} is not built in this cloud" if service in served and method.isidentifier() else None
