"""Drives agents that speak the Agent Client Protocol, such as Crow, whose program is part of this package.

    async with Agent() as agent:
        async for event in agent.prompt("Explain this project"):
            if isinstance(event, Text):
                print(event.text, end="")

`crow_cli.sync` has the same names for programs without asyncio.
"""

from ._agent import Agent, AgentError, PermissionRequest, run_once
from ._bridge import StdioToWsBridge
from ._events import Done, Event, Other, Plan, PlanEntry, Text, Thought, ToolStarted, ToolUpdated, Usage
from ._program import find_program

__all__ = [
    "Agent",
    "AgentError",
    "Done",
    "Event",
    "Other",
    "PermissionRequest",
    "Plan",
    "PlanEntry",
    "StdioToWsBridge",
    "Text",
    "Thought",
    "ToolStarted",
    "ToolUpdated",
    "Usage",
    "find_program",
    "run_once",
]
