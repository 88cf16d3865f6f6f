"""An ACP agent on stdin and stdout, served over WebSocket by `crow-cli acp-bridge`."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from ._agent import AgentError
from ._program import find_program

STOP_SECONDS_MAX = 10


class StdioToWsBridge:
    """Serves an agent over WebSocket, with a process of it for each client.

    `await bridge.run(port)` serves until it is cancelled. As an asynchronous context manager it serves inside the block,
    and `url` and `token` are what a client connects with: a client sends `Authorization: Bearer TOKEN`. `token=False`
    asks for none; every program of every user of this machine can then connect.
    """

    def __init__(
        self,
        command: Sequence[str],
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        *,
        port: int = 0,
        host: str = "127.0.0.1",
        token: bool = True,
    ) -> None:
        self._command = list(command)
        self._cwd = cwd
        # The agent inherits the bridge's variables; on its command line, other users could read them.
        self._env = {**os.environ, **(env or {})}
        self._address = (host, port)
        self._asks_for_token = token
        self._process: asyncio.subprocess.Process | None = None
        self.url = ""
        self.token: str | None = None

    async def run(self, port: int = 8765, host: str = "127.0.0.1") -> None:
        """Serves until it is cancelled. Raises AgentError if the bridge ends by itself."""
        self._address = (host, port)
        async with self:
            status = await cast("asyncio.subprocess.Process", self._process).wait()
        raise AgentError(f"the bridge ended with {status}")

    async def __aenter__(self) -> StdioToWsBridge:
        host, port = self._address
        options = ["--host", "127.0.0.1" if host == "localhost" else host, "--port", str(port)]
        options += ["--cwd", str(Path(self._cwd).resolve())] if self._cwd else []
        options += [] if self._asks_for_token else ["--no-token"]
        process = self._process = await asyncio.create_subprocess_exec(
            find_program(),
            "acp-bridge",
            *options,
            "--",
            *self._command,
            env=self._env,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
        )
        line = await cast("asyncio.StreamReader", process.stdout).readline()
        if not line:
            raise AgentError(f"the bridge ended with {await process.wait()}; its message is above")
        serving = json.loads(line)
        self.url = serving["url"]
        self.token = Path(serving["token_file"]).read_text().strip() if self._asks_for_token else None
        return self

    async def __aexit__(self, *_error: object) -> None:
        process = self._process
        if process is None or process.returncode is not None:
            return
        process.terminate()
        try:
            await asyncio.wait_for(process.wait(), STOP_SECONDS_MAX)
        except asyncio.TimeoutError:
            process.kill()
            await process.wait()
