"""Common parts of all web pages: style, static files, security headers, text formatting and graph drawings.

Public, in the order in which to read them:

* `arrangement`: The arrangement of the cards of a page, as its script sends it: `{"hidden": [...], "order": [...]}`
* `closing`: The end of a WebSocket: the reason in its close frame, and the errors of sending after it
* `compression`: Compression of pages and data for browsers
* `graph_layout`: Layered layout of the resource graph: positions of boxes and paths of edges
* `headers`: Response headers of pages, HTTP status of errors, and the content type that a request accepts
* `patches`: Selection of the parts of a page that must be sent again after a change
* `plotting`: Properties of the island of plots, which web/src/plot draws
* `scrape`: Response to a metrics scraper, shared by machine and cloud
* `assets`: Static files, and the Jinja environment, which escapes all values and rejects unknown names
* `graph_drawing`: Drawing of a resource graph as boxes and lines, for templates
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rpc.pages.arrangement import SIZE as SIZE
    from rpc.pages.arrangement import arrangement_of as arrangement_of
    from rpc.pages.assets import Assets as Assets
    from rpc.pages.assets import template_compilers as template_compilers
    from rpc.pages.assets import template_environment as template_environment
    from rpc.pages.closing import DISCONNECTED as DISCONNECTED
    from rpc.pages.closing import close_reason as close_reason
    from rpc.pages.compression import Compress as Compress
    from rpc.pages.graph_drawing import MISSING as MISSING
    from rpc.pages.graph_drawing import Drawing as Drawing
    from rpc.pages.graph_drawing import Vertex as Vertex
    from rpc.pages.graph_drawing import drawing as drawing
    from rpc.pages.graph_drawing import full_name as full_name
    from rpc.pages.graph_drawing import structure as structure
    from rpc.pages.graph_layout import BOX_HEIGHT as BOX_HEIGHT
    from rpc.pages.graph_layout import BOX_WIDTH as BOX_WIDTH
    from rpc.pages.graph_layout import layout as layout
    from rpc.pages.headers import STATUS as STATUS
    from rpc.pages.headers import TITLES as TITLES
    from rpc.pages.headers import Protect as Protect
    from rpc.pages.headers import wants_json as wants_json
    from rpc.pages.headers import wants_page as wants_page
    from rpc.pages.patches import Patcher as Patcher
    from rpc.pages.patches import Piece as Piece
    from rpc.pages.plotting import STATISTICS as STATISTICS
    from rpc.pages.plotting import plot_props as plot_props
    from rpc.pages.scrape import exposed as exposed
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "arrangement": ["SIZE", "arrangement_of"],
            "closing": ["DISCONNECTED", "close_reason"],
            "compression": ["Compress"],
            "graph_layout": ["BOX_HEIGHT", "BOX_WIDTH", "layout"],
            "headers": ["STATUS", "TITLES", "Protect", "wants_json", "wants_page"],
            "patches": ["Patcher", "Piece"],
            "plotting": ["STATISTICS", "plot_props"],
            "scrape": ["exposed"],
            "assets": ["Assets", "template_compilers", "template_environment"],
            "graph_drawing": ["MISSING", "Drawing", "Vertex", "drawing", "full_name", "structure"],
        },
    )
