"""Published services of the cloud, based on `cloud.domain`: one class per subject."""
