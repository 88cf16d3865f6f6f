"""An agent as a child process, and its turns."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Union, cast

from ._events import Done, Event, Text, to_event
from ._program import find_program

LINE_BYTES_MAX = 64 << 20
"""The longest message that is read; a file that a tool read is one line."""

CANCEL_SECONDS_MAX = 30
"""How long an agent may take to end a turn that was cancelled."""

UNREAD_UPDATES_MAX = 100_000
"""The updates of a turn that wait for a program that reads slowly; the turn is cancelled when there are more."""

STDERR_LINES_MAX = 50
STDERR_LINE_BYTES_MAX = 2000


class AgentError(Exception):
    """The agent could not start, rejected a request, or ended. The message has the last lines of its stderr."""


@dataclass(frozen=True)
class PermissionRequest:
    """A question of the agent. `options` are pairs of kind, such as `allow_once`, and name."""

    title: str
    kind: str | None
    options: tuple[tuple[str, str], ...]
    raw: Any


Permission = Union[str, Callable[[PermissionRequest], Union[str, Awaitable[str]]]]
"""`"deny"`, `"allow"`, or a function that returns one of them, with or without `await`."""


class Agent:
    """A session of an agent. Use it as an asynchronous context manager.

    `command` starts an ACP agent on stdin and stdout; without one it is `crow-cli acp` of this package. `cwd` is the
    directory that the agent works in. `env` adds variables to those of this process, which the agent inherits. `resume`
    continues the session with this ID. `options` sets configuration options of the session, such as `{"mode": "plan"}`.
    Questions are answered by `permission`, which rejects by default; permanent permissions are never given.
    """

    def __init__(
        self,
        *command: str,
        cwd: str | os.PathLike[str] = ".",
        env: Mapping[str, str] | None = None,
        permission: Permission = "deny",
        mcp_servers: Sequence[Any] = (),
        options: Mapping[str, str] | None = None,
        resume: str | None = None,
    ) -> None:
        self._command = command or ("crow-cli", "acp")
        self._cwd = str(Path(cwd).resolve())
        self._env = {**os.environ, **(env or {})}
        self._permission = permission
        self._mcp_servers = list(mcp_servers)
        self._options = dict(options or {})
        self._resume = resume
        self._stack = contextlib.AsyncExitStack()
        self._stderr: deque[str] = deque(maxlen=STDERR_LINES_MAX)
        self._turn: _Turn | None = None
        self.session_id = ""

    async def __aenter__(self) -> Agent:
        try:
            await self._start()
        except BaseException as error:
            # The connection to an agent that ended is lost once more when it is closed.
            with contextlib.suppress(ConnectionError):
                await self._stack.aclose()
            if isinstance(error, Exception):
                raise self._explain("could not start", error) from error
            raise
        return self

    async def __aexit__(self, *_error: object) -> None:
        try:
            await self._end_turn()
        finally:
            await self._stack.aclose()

    async def _start(self) -> None:
        # The SDK is slow to import, and finding the program needs none of it.
        import acp
        from acp.schema import ClientCapabilities, Implementation

        program, *arguments = self._command
        if program == "crow-cli":
            program = find_program()
        self._connection, process = await self._stack.enter_async_context(
            acp.spawn_agent_process(
                cast("acp.Client", _SessionClient(self)),
                program,
                *arguments,
                env=self._env,
                cwd=self._cwd,
                transport_kwargs={"limit": LINE_BYTES_MAX},
            )
        )
        if process.stderr is not None:
            drain = asyncio.create_task(self._drain(process.stderr))
            self._stack.push_async_callback(_stop, drain)
        await self._connection.initialize(
            protocol_version=acp.PROTOCOL_VERSION,
            client_capabilities=ClientCapabilities(),
            client_info=Implementation(name="crow_cli", version="1"),
        )
        cwd, servers = self._cwd, self._mcp_servers
        if self._resume:
            self.session_id = self._resume
            await self._connection.load_session(cwd=cwd, session_id=self._resume, mcp_servers=servers)
        else:
            self.session_id = (await self._connection.new_session(cwd=cwd, mcp_servers=servers)).session_id
        for name, value in self._options.items():
            await self._connection.set_config_option(config_id=name, session_id=self.session_id, value=value)

    async def _drain(self, stderr: asyncio.StreamReader) -> None:
        """Reads the agent's stderr, so that it never waits for its reader, and keeps the end."""
        while chunk := await stderr.read(65536):
            for line in chunk.decode(errors="replace").splitlines():
                self._stderr.append(line[:STDERR_LINE_BYTES_MAX])

    def _explain(self, what: str, error: Exception) -> AgentError:
        said = "\n".join(self._stderr)
        data = getattr(error, "data", None)
        parts = [f"{self._command[0]} {what}: {error}", str(data) if data else "", said]
        return AgentError("\n".join(part for part in parts if part))

    def prompt(self, prompt: str | Sequence[Any]) -> AsyncGenerator[Event, None]:
        """Starts a turn with a text, or with content blocks of the SDK, and yields its events; the last one is `Done`.

        Leaving the loop early cancels the turn. Raises AgentError if the agent rejects the prompt or ends.
        """
        return self._run_turn(prompt)

    async def _run_turn(self, prompt: str | Sequence[Any]) -> AsyncGenerator[Event, None]:
        import acp

        await self._end_turn()
        blocks = [acp.text_block(prompt)] if isinstance(prompt, str) else list(prompt)
        turn = _Turn(self._connection.prompt(session_id=self.session_id, prompt=blocks))
        self._turn = turn
        text = ""
        try:
            while (update := await turn.updates.get()) is not None:
                event = to_event(update)
                text += event.text if isinstance(event, Text) else ""
                yield event
            try:
                response = turn.answer.result()
            except Exception as error:
                raise self._explain("failed", error) from error
            if turn.lost_updates:
                raise AgentError(f"the turn was cancelled: more than {UNREAD_UPDATES_MAX} updates waited to be read")
            yield Done(response.stop_reason, text, response.usage, response)
        finally:
            if self._turn is turn:
                await self._end_turn()

    async def _end_turn(self) -> None:
        """Cancels the running turn, if there is one, and waits for its end."""
        turn, self._turn = self._turn, None
        if turn is not None and not turn.answer.done():
            with contextlib.suppress(ConnectionError):
                await self.cancel()
            await asyncio.wait([turn.answer], timeout=CANCEL_SECONDS_MAX)

    async def cancel(self) -> None:
        """Cancels the running turn; its last event is then `Done` with `cancelled`."""
        await self._connection.cancel(session_id=self.session_id)

    async def _receive(self, update: Any) -> None:
        """Hands an update to the running turn."""
        turn = self._turn
        if turn is None or turn.lost_updates:
            return
        if turn.updates.qsize() < UNREAD_UPDATES_MAX:
            turn.updates.put_nowait(update)
        else:
            turn.lost_updates = True
            await self.cancel()

    async def _decide(self, request: PermissionRequest) -> str:
        if isinstance(self._permission, str):
            return self._permission
        answer = self._permission(request)
        return await answer if inspect.isawaitable(answer) else answer


class _Turn:
    """A prompt that was sent. `updates` ends with None, when the agent has answered."""

    def __init__(self, request: Awaitable[Any]) -> None:
        # A loop that reads slowly does not hold up the answer to a question, so the queue is limited where it is filled.
        self.updates: asyncio.Queue[Any] = asyncio.Queue()
        self.answer = asyncio.ensure_future(request)
        self.answer.add_done_callback(lambda _: self.updates.put_nowait(None))
        self.lost_updates = False


async def _stop(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


class _SessionClient:
    """The client half of the connection. It offers no files and no terminals: the agent uses those of its machine."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    def on_connect(self, _connection: Any) -> None:
        pass

    async def session_update(self, session_id: str, update: Any, **_more: Any) -> None:
        if session_id == self._agent.session_id:
            await self._agent._receive(update)

    async def request_permission(self, session_id: str, tool_call: Any, options: list[Any], **_more: Any) -> Any:
        from acp.schema import AllowedOutcome, DeniedOutcome, RequestPermissionResponse

        kinds = tuple((option.kind, option.name) for option in options)
        decision = await self._agent._decide(PermissionRequest(tool_call.title or "", tool_call.kind, kinds, tool_call))
        wanted = {"allow": "allow_once", "deny": "reject_once"}.get(decision)
        if wanted is None:
            raise ValueError(f"permission is {decision!r}, not 'allow' or 'deny'")
        chosen = next((option for option in options if option.kind == wanted), None)
        if chosen is None:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=chosen.option_id))

    async def ext_method(self, method: str, _params: dict[str, Any]) -> dict[str, Any]:
        from acp import RequestError

        raise RequestError.method_not_found(method)

    async def ext_notification(self, _method: str, _params: dict[str, Any]) -> None:
        pass


async def run_once(prompt: str | Sequence[Any], *command: str, **settings: Any) -> Done:
    """Runs one turn in a new session and returns its end. The settings are those of `Agent`."""
    async with Agent(*command, **settings) as agent:
        async for event in agent.prompt(prompt):
            if isinstance(event, Done):
                return event
    raise AgentError("the turn had no end")
