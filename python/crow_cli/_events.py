"""What an agent reports during a turn."""

from dataclasses import dataclass
from typing import Any, Union


@dataclass(frozen=True)
class Text:
    """A part of the reply."""

    text: str
    raw: Any


@dataclass(frozen=True)
class Thought:
    """A part of the reasoning before the reply."""

    text: str
    raw: Any


@dataclass(frozen=True)
class ToolStarted:
    """A call of a tool that begins."""

    id: str
    title: str
    kind: "str | None"
    raw: Any


@dataclass(frozen=True)
class ToolUpdated:
    """News of a call. `status` is `pending`, `in_progress`, `completed`, `failed`, or None if it did not change."""

    id: str
    title: "str | None"
    status: "str | None"
    raw: Any


@dataclass(frozen=True)
class PlanEntry:
    """A step of a plan. `status` is `pending`, `in_progress` or `completed`."""

    text: str
    status: str


@dataclass(frozen=True)
class Plan:
    """The whole plan, each time a part of it changes."""

    entries: "tuple[PlanEntry, ...]"
    raw: Any


@dataclass(frozen=True)
class Usage:
    """How full the context window is, in tokens."""

    used: int
    size: int
    raw: Any


@dataclass(frozen=True)
class Other:
    """An update without a type of its own here, as the SDK's model."""

    raw: Any


@dataclass(frozen=True)
class Done:
    """The end of a turn.

    `stop_reason` is the protocol's: `end_turn`, `max_tokens`, `max_turn_requests`, `refusal` or `cancelled`. `text` is the
    whole reply. `usage` is the SDK's model with the tokens of the session so far, or None if the agent does not say.
    """

    stop_reason: str
    text: str
    usage: Any
    raw: Any


Event = Union[Text, Thought, ToolStarted, ToolUpdated, Plan, Usage, Other, Done]


def to_event(update: Any) -> Event:
    """Converts an update of the SDK."""
    kind = update.session_update
    if kind in ("agent_message_chunk", "agent_thought_chunk") and update.content.type == "text":
        make = Text if kind == "agent_message_chunk" else Thought
        return make(update.content.text, update)
    if kind == "tool_call":
        return ToolStarted(update.tool_call_id, update.title, update.kind, update)
    if kind == "tool_call_update":
        return ToolUpdated(update.tool_call_id, update.title, update.status, update)
    if kind == "plan":
        return Plan(tuple(PlanEntry(entry.content, entry.status) for entry in update.entries), update)
    if kind == "usage_update":
        return Usage(update.used, update.size, update)
    return Other(update)
