"""The same for programs without asyncio: a thread runs the loop.

with Agent() as agent:
    for event in agent.prompt("Explain this project"):
        ...
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Iterator, Sequence
from typing import Any, TypeVar

from . import _agent
from ._agent import AgentError, PermissionRequest
from ._events import Done, Event

__all__ = ["Agent", "AgentError", "PermissionRequest", "run_once"]

T = TypeVar("T")


class Agent:
    """A session of an agent, as `crow_cli.Agent`. A `permission` function is called on the thread of the loop."""

    def __init__(self, *command: str, **settings: Any) -> None:
        self._agent = _agent.Agent(*command, **settings)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="crow_cli", daemon=True)

    @property
    def session_id(self) -> str:
        return self._agent.session_id

    def _wait(self, work: Awaitable[T]) -> T:
        async def wait() -> T:
            return await work

        return asyncio.run_coroutine_threadsafe(wait(), self._loop).result()

    def __enter__(self) -> Agent:
        self._thread.start()
        try:
            self._wait(self._agent.__aenter__())
        except BaseException:
            self._stop_loop()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        try:
            self._wait(self._agent.__aexit__(*error))
        finally:
            self._stop_loop()

    def _stop_loop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def prompt(self, prompt: str | Sequence[Any]) -> Iterator[Event]:
        """Starts a turn and yields its events. Leaving the loop early cancels it."""
        turn = self._agent.prompt(prompt)
        try:
            while True:
                try:
                    yield self._wait(turn.__anext__())
                except StopAsyncIteration:
                    return
        finally:
            self._wait(turn.aclose())

    def cancel(self) -> None:
        """Cancels the running turn."""
        self._wait(self._agent.cancel())


def run_once(prompt: str | Sequence[Any], *command: str, **settings: Any) -> Done:
    """Runs one turn in a new session and returns its end."""
    return asyncio.run(_agent.run_once(prompt, *command, **settings))
