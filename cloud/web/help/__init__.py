"""The documentation as pages of the cloud: available without the internet, in the version of its programs."""
