"""Access control of connections and calls: credentials, tokens, origins, proxies and admission.

Public, in the order in which to read them:

* `addresses`: Grouping of peer addresses for limits, and host names that mean this computer
* `attempts`: Throttling of failed login attempts
* `credential_types`: Types of credentials as they are written on the wire, and the method that exchanges them for a
  token
* `forwarded`: Clients behind reverse proxies, according to X-Forwarded-For
* `installation`: The line that installs machine-agent from a cloud
* `proof` (module): Proof that a cloud answers: an answer to a random number, authenticated with a key of the part
* `tickets`: Tickets that log a browser in: made for a key, valid once and for a short time
* `tokens`: Signed access tokens: JWTs of one fixed form, EdDSA over Ed25519
* `auth`: Authentication: configured credentials, tokens issued for them, and the check of every call
* `origins`: Check which web pages may call a port
* `login`: Login form, which exchanges the id and value of an API key for a token in a cookie
* `guard`: ASGI middleware that protects the pages of a port
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rpc.access import proof as proof
    from rpc.access.addresses import allowed_host as allowed_host
    from rpc.access.addresses import group_of as group_of
    from rpc.access.addresses import host_of as host_of
    from rpc.access.addresses import is_loopback_name as is_loopback_name
    from rpc.access.attempts import ADDRESS_FAILURES as ADDRESS_FAILURES
    from rpc.access.attempts import Attempts as Attempts
    from rpc.access.auth import PAGES_AUDIENCE as PAGES_AUDIENCE
    from rpc.access.auth import Authenticator as Authenticator
    from rpc.access.auth import Credential as Credential
    from rpc.access.auth import bearer as bearer
    from rpc.access.auth import credentials_of as credentials_of
    from rpc.access.auth import digest_of as digest_of
    from rpc.access.credential_types import API_KEY as API_KEY
    from rpc.access.credential_types import AUTHENTICATE as AUTHENTICATE
    from rpc.access.credential_types import CREDENTIAL_TYPES as CREDENTIAL_TYPES
    from rpc.access.credential_types import LOCATION_SECRET as LOCATION_SECRET
    from rpc.access.credential_types import PART_SECRET as PART_SECRET
    from rpc.access.forwarded import NO_PROXIES as NO_PROXIES
    from rpc.access.forwarded import Proxies as Proxies
    from rpc.access.forwarded import behind_proxies as behind_proxies
    from rpc.access.forwarded import parse_network as parse_network
    from rpc.access.guard import METRICS_PATH as METRICS_PATH
    from rpc.access.guard import Guard as Guard
    from rpc.access.guard import identity_of as identity_of
    from rpc.access.installation import CA_FILE as CA_FILE
    from rpc.access.installation import install_line as install_line
    from rpc.access.installation import user_data as user_data
    from rpc.access.login import TOKEN_PATH as TOKEN_PATH
    from rpc.access.login import LoginTexts as LoginTexts
    from rpc.access.origins import Origins as Origins
    from rpc.access.tickets import MAX_WAITING_TICKETS as MAX_WAITING_TICKETS
    from rpc.access.tickets import TICKET_LIFE as TICKET_LIFE
    from rpc.access.tickets import TICKETS_PATH as TICKETS_PATH
    from rpc.access.tickets import Ticket as Ticket
    from rpc.access.tickets import link_with as link_with
    from rpc.access.tickets import ticket_in as ticket_in
    from rpc.access.tickets import too_many_tickets as too_many_tickets
    from rpc.access.tokens import Claims as Claims
    from rpc.access.tokens import Signer as Signer
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "addresses": ["allowed_host", "group_of", "host_of", "is_loopback_name"],
            "attempts": ["ADDRESS_FAILURES", "Attempts"],
            "credential_types": ["API_KEY", "AUTHENTICATE", "CREDENTIAL_TYPES", "LOCATION_SECRET", "PART_SECRET"],
            "forwarded": ["NO_PROXIES", "Proxies", "behind_proxies", "parse_network"],
            "installation": ["CA_FILE", "install_line", "user_data"],
            "tickets": [
                "MAX_WAITING_TICKETS",
                "TICKETS_PATH",
                "TICKET_LIFE",
                "Ticket",
                "link_with",
                "ticket_in",
                "too_many_tickets",
            ],
            "tokens": ["Claims", "Signer"],
            "auth": ["PAGES_AUDIENCE", "Authenticator", "Credential", "bearer", "credentials_of", "digest_of"],
            "origins": ["Origins"],
            "login": ["TOKEN_PATH", "LoginTexts"],
            "guard": ["METRICS_PATH", "Guard", "identity_of"],
        },
        modules=["proof"],
    )
