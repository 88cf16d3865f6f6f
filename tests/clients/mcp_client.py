"""Calls the tools of `crow-cli mcp` with the Python MCP SDK: `run.sh mcp-client`. The table of checks is at the end."""

import asyncio
import json
import logging
import os
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import mcp
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
from mcp.types import ElicitResult

CROW = os.environ["CROW"]
PROJECT = Path(os.environ["PROJECT"])
HOME = os.environ["HOME"]
ONLY = os.environ.get("ONLY", "")
# What is waited for comes at once or never.
PATIENCE_S = 20


@asynccontextmanager
async def on_pipes(**options):
    env = {"HOME": HOME, "PATH": os.environ["PATH"]}
    params = mcp.StdioServerParameters(command=CROW, args=["mcp"], env=env, cwd=str(PROJECT))
    async with mcp.Client(stdio_client(params), **options) as client:
        yield client


@asynccontextmanager
async def over_http(token=None, **options):
    server = subprocess.Popen([CROW, "mcp", "--http", "127.0.0.1:0"], stdout=subprocess.PIPE, cwd=PROJECT)
    try:
        said = json.loads(server.stdout.readline())
        token = token or Path(said["token_file"]).read_text()
        async with create_mcp_http_client(headers={"Authorization": f"Bearer {token}"}) as http:
            async with mcp.Client(streamable_http_client(said["url"], http_client=http), **options) as client:
                yield client
    finally:
        server.terminate()
        assert server.wait(PATIENCE_S) == 0, "it ended badly"


async def call(client, name, **arguments):
    result = await client.call_tool(name, arguments)
    return ("failed" if result.is_error else "done"), "\n".join(block.text for block in result.content)


async def works(opened):
    (PROJECT / "a.txt").write_text("one\ntwo\n")
    async with opened as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert {"read", "write", "edit", "terminal", "grep", "glob"} <= tools.keys(), tools.keys()
        assert tools["read"].annotations.read_only_hint
        assert await call(client, "read", file_path="a.txt") == ("done", "     1\tone\n     2\ttwo\n")
        how, _ = await call(client, "edit", file_path="a.txt", old_string="two", new_string="three")
        assert how == "done" and (PROJECT / "a.txt").read_text() == "one\nthree\n"
        assert await call(client, "terminal", command="echo hi; exit 3") == ("failed", "hi\nexit code 3")
        how, why = await call(client, "read", file_path="missing")
        assert how == "failed" and "does not exist" in why, why


async def works_on_pipes():
    await works(on_pipes())


async def works_on_pipes_as_before():
    await works(on_pipes(mode="legacy"))


async def works_over_http():
    await works(over_http())


async def works_over_http_as_before():
    await works(over_http(mode="legacy"))


async def wants_its_token():
    try:
        async with over_http(token="wrong") as client:
            await client.list_tools()
    except Exception:  # noqa: BLE001 - the SDK has several ways to say that it was turned away
        return
    raise AssertionError("it let a stranger in")


async def refuses_what_nobody_allows():
    async with on_pipes() as client:
        how, why = await call(client, "write", file_path="../beside.txt", content="")
        assert how == "failed" and "needs permission" in why, why
    assert not (PROJECT.parent / "beside.txt").exists()


async def asks(mode):
    asked = []

    async def answer(_, params):
        asked.append(params.message)
        return ElicitResult(action="accept" if len(asked) == 1 else "decline", content={})

    async with on_pipes(elicitation_callback=answer, mode=mode) as client:
        how, why = await call(client, "write", file_path="../beside.txt", content="allowed")
        assert how == "done", why
        how, why = await call(client, "write", file_path="../beside.txt", content="refused")
        assert how == "failed" and "rejected" in why, why
    assert (PROJECT.parent / "beside.txt").read_text() == "allowed"
    assert len(asked) == 2 and "beside.txt" in asked[0], asked


async def asks_now():
    await asks("auto")


async def asks_as_before():
    await asks("legacy")


async def tells_progress_and_is_cancelled():
    started = asyncio.Event()

    async def progress(_done, _total, message):
        if "started" in (message or ""):
            started.set()

    async with on_pipes() as client:
        arguments = {"command": "echo started; exec sleep 1000"}
        running = asyncio.create_task(client.call_tool("terminal", arguments, progress_callback=progress))
        await started.wait()
        running.cancel()
        assert await call(client, "terminal", command="echo on") == ("done", "on\n")


CHECKS = {
    "tools on pipes": works_on_pipes,
    "tools on pipes, the older handshake": works_on_pipes_as_before,
    "tools over HTTP": works_over_http,
    "tools over HTTP, the older handshake": works_over_http_as_before,
    "HTTP wants its token": wants_its_token,
    "what nobody allows is refused": refuses_what_nobody_allows,
    "the person is asked": asks_now,
    "the person is asked, the older handshake": asks_as_before,
    "progress, and a call that is cancelled": tells_progress_and_is_cancelled,
}


async def main():
    status = 0
    for name, check in CHECKS.items():
        if ONLY not in name:
            continue
        try:
            async with asyncio.timeout(PATIENCE_S):
                await check()
            print(f"ok mcp-client: {name}", flush=True)
        except BaseException as error:  # noqa: BLE001 - whatever it is, the next check can run
            status = 1
            while isinstance(error, BaseExceptionGroup):
                error = error.exceptions[0]
            why = str(error) or type(error).__name__
            print(f"FAILED mcp-client: {name}: {why}".replace("\n", " "), flush=True)
    return status


logging.getLogger().setLevel(logging.CRITICAL)
sys.exit(asyncio.run(main()))
