"""`StdioToWsBridge`, under its name of before 1.0."""

from .._bridge import StdioToWsBridge

__all__ = ["StdioToWsBridge"]
