"""Decoding of JSON text to typed values, with a report of all errors.

Public, in the order in which to read them:

* `regex`: Regular expressions with a search time proportional to pattern size times text size, and a step limit
* `report`: Report of problems and warnings in a document, which are collected instead of raised
* `conversion`: Conversion of decoded JSON values to a Python type, with a report of all errors
* `depth`: Limit of nesting in configured JSON
* `syntax`: JSON parser with errors that show the position and suggest a remedy
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from schema.decoding.conversion import conform as conform
    from schema.decoding.conversion import wrong_type as wrong_type
    from schema.decoding.depth import DEPTH_REMEDY as DEPTH_REMEDY
    from schema.decoding.depth import MAX_DEPTH as MAX_DEPTH
    from schema.decoding.depth import TOO_DEEP as TOO_DEEP
    from schema.decoding.depth import check_depth as check_depth
    from schema.decoding.depth import nested_too_deeply as nested_too_deeply
    from schema.decoding.regex import MAX_STEPS as MAX_STEPS
    from schema.decoding.regex import MAX_TEXT as MAX_TEXT
    from schema.decoding.regex import Effort as Effort
    from schema.decoding.regex import Pattern as Pattern
    from schema.decoding.regex import PatternError as PatternError
    from schema.decoding.regex import StepLimit as StepLimit
    from schema.decoding.report import DecodingReport as DecodingReport
    from schema.decoding.report import detached as detached
    from schema.decoding.report import did_you_mean as did_you_mean
    from schema.decoding.report import join as join
    from schema.decoding.report import nearest as nearest
    from schema.decoding.report import shown as shown
    from schema.decoding.syntax import JSONSyntaxError as JSONSyntaxError
    from schema.decoding.syntax import parse_json as parse_json
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "regex": ["MAX_STEPS", "MAX_TEXT", "Effort", "Pattern", "PatternError", "StepLimit"],
            "report": ["DecodingReport", "detached", "did_you_mean", "join", "nearest", "shown"],
            "conversion": ["conform", "wrong_type"],
            "depth": ["DEPTH_REMEDY", "MAX_DEPTH", "TOO_DEEP", "check_depth", "nested_too_deeply"],
            "syntax": ["JSONSyntaxError", "parse_json"],
        },
    )
