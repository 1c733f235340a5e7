"""The connection of a program on this computer to its cloud: address, configuration, logs, certificates, downloads.

Public, in the order in which to read them:

* `authorities`: Certificate authorities that this machine trusts: those in `ca_file` of the credentials, and those sent
  by the cloud
* `files`: The machine document from a file: read at the start and again whenever it changes
* `http`: HTTP/1.1 requests for files on Trio
* `platforms`: The platform and tags of this computer, by which a registry selects packages: `linux/aarch64` and
  `name:value`
* `releases` (module): Releases of programs: names, limits and metadata that cloud, agent and commands share
* `watch`: Whether a user watches this machine in the cloud, so that live data is sent only then
* `dial`: The address of the cloud, and the connections to it: RPC channels and the push channel
* `downloads`: Resumable HTTP downloads of files whose SHA-256 is known: packages and releases
* `certificate`: The machine's TLS certificate: requested from the cloud, cached on disk, and used by the port once it
  arrives
* `configuration`: The machine document from the cloud: first the cached one, then each one that the cloud sends
* `log_upload`: Upload log messages to the cloud from the queue on disk, in order, each until it is acknowledged
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from uplink import releases as releases
    from uplink.authorities import CloudAuthorities as CloudAuthorities
    from uplink.authorities import authorities_path as authorities_path
    from uplink.certificate import CloudCertificate as CloudCertificate
    from uplink.certificate import certificate_path as certificate_path
    from uplink.configuration import CloudSource as CloudSource
    from uplink.dial import HERE as HERE
    from uplink.dial import HTTP1 as HTTP1
    from uplink.dial import CloudAddress as CloudAddress
    from uplink.dial import CloudUnavailable as CloudUnavailable
    from uplink.dial import TokenRefused as TokenRefused
    from uplink.dial import address_of as address_of
    from uplink.dial import connected as connected
    from uplink.dial import shared_channel as shared_channel
    from uplink.dial import token_headers as token_headers
    from uplink.dial import with_channel as with_channel
    from uplink.downloads import PARTS as PARTS
    from uplink.downloads import DownloadProgress as DownloadProgress
    from uplink.downloads import DownloadSource as DownloadSource
    from uplink.downloads import Expected as Expected
    from uplink.downloads import IncompleteDownload as IncompleteDownload
    from uplink.downloads import Stopped as Stopped
    from uplink.downloads import digest_of as digest_of
    from uplink.downloads import download as download
    from uplink.downloads import part_of as part_of
    from uplink.files import FileReading as FileReading
    from uplink.files import FileSource as FileSource
    from uplink.files import decode_text as decode_text
    from uplink.http import Headers as Headers
    from uplink.http import error_text as error_text
    from uplink.http import headers_of as headers_of
    from uplink.http import read_body as read_body
    from uplink.http import read_up_to as read_up_to
    from uplink.http import responding as responding
    from uplink.log_upload import upload_logs as upload_logs
    from uplink.platforms import platform as platform
    from uplink.platforms import system as system
    from uplink.platforms import tags as tags
    from uplink.watch import Send as Send
    from uplink.watch import Watch as Watch
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "authorities": ["CloudAuthorities", "authorities_path"],
            "files": ["FileReading", "FileSource", "decode_text"],
            "http": ["Headers", "error_text", "headers_of", "read_body", "read_up_to", "responding"],
            "platforms": ["platform", "system", "tags"],
            "watch": ["Send", "Watch"],
            "dial": [
                "HERE",
                "HTTP1",
                "CloudAddress",
                "CloudUnavailable",
                "TokenRefused",
                "address_of",
                "connected",
                "shared_channel",
                "token_headers",
                "with_channel",
            ],
            "downloads": [
                "PARTS",
                "DownloadProgress",
                "DownloadSource",
                "Expected",
                "IncompleteDownload",
                "Stopped",
                "digest_of",
                "download",
                "part_of",
            ],
            "certificate": ["CloudCertificate", "certificate_path"],
            "configuration": ["CloudSource"],
            "log_upload": ["upload_logs"],
        },
        modules=["releases"],
    )
