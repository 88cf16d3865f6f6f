"""Tests against a real `crow-cli` and a model on loopback.

CROW_CLI_PROGRAM=target/debug/crow-cli python -m unittest discover python/tests
"""

import asyncio
import http.client
import json
import os
import sys
import tempfile
import unittest
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[2] / "packaging"), str(Path(__file__).parents[1])]

import crow_cli  # noqa: E402
import crow_cli.sync  # noqa: E402
from crow_cli import Agent, AgentError, Done, StdioToWsBridge, Text, ToolStarted, ToolUpdated  # noqa: E402
from crow_cli.agent.stdio_to_ws import StdioToWsBridge as OldBridge  # noqa: E402
from scripted_model import REPLY, ScriptedModel, call  # noqa: E402


class Case(unittest.IsolatedAsyncioTestCase):
    """A home directory whose only model says what `script` says, reply by reply."""

    script: list = [REPLY]

    def setUp(self) -> None:
        self.model = self.enterContext(ScriptedModel(self.script)) if hasattr(self, "enterContext") else self.enter()
        home = tempfile.TemporaryDirectory()
        self.addCleanup(home.cleanup)
        self.home = Path(home.name)
        (self.home / ".crow").mkdir(mode=0o700)
        (self.home / ".crow" / "config.yaml").write_text(
            f"providers: {{ here: {{ base_url: '{self.model.url}', api_key: unused }} }}\n"
            "models: { scripted: { provider: here, model: scripted, context_window: 100000 } }\n"
        )
        self.project = self.home / "project"
        self.project.mkdir()
        self.place = {"cwd": self.project, "env": {"HOME": str(self.home)}}

    def enter(self) -> ScriptedModel:
        model = ScriptedModel(self.script).__enter__()
        self.addCleanup(model.__exit__, None, None, None)
        return model


class Turns(Case):
    async def test_a_turn_streams_its_text_and_ends(self) -> None:
        async with Agent(**self.place) as agent:
            events = [event async for event in agent.prompt("Hello")]
        self.assertEqual("".join(event.text for event in events if isinstance(event, Text)), REPLY)
        self.assertIsInstance(events[-1], Done)
        self.assertEqual((events[-1].stop_reason, events[-1].text), ("end_turn", REPLY))

    async def test_run_once(self) -> None:
        done = await crow_cli.run_once("Hello", **self.place)
        self.assertEqual((done.stop_reason, done.text), ("end_turn", REPLY))

    def test_run_once_without_asyncio(self) -> None:
        self.assertEqual(crow_cli.sync.run_once("Hello", **self.place).text, REPLY)

    def test_a_session_without_asyncio_is_continued(self) -> None:
        with crow_cli.sync.Agent(**self.place) as agent:
            first = list(agent.prompt("One"))[-1]
            session = agent.session_id
        with crow_cli.sync.Agent(resume=session, **self.place) as agent:
            second = list(agent.prompt("Two"))[-1]
        self.assertEqual((first.text, second.text), (REPLY, REPLY))
        said = [message["content"] for message in self.model.requests[-1]["messages"] if message["role"] == "user"]
        self.assertTrue(any("One" in str(text) for text in said) and any("Two" in str(text) for text in said), said)


class Calls(Case):
    script = [
        call("write", {"file_path": "new.txt", "content": "text\n"}),
        "Written.",
        call("write", {"file_path": "b", "content": ""}),
        "No.",
    ]

    async def test_a_question_is_answered_by_a_function(self) -> None:
        asked = []

        def decide(request: crow_cli.PermissionRequest) -> str:
            asked.append((request.kind, [kind for kind, _ in request.options]))
            return "allow"

        async with Agent(permission=decide, **self.place) as agent:
            events = [event async for event in agent.prompt("Write it")]
        self.assertEqual(asked[0][0], "edit")
        self.assertIn("allow_once", asked[0][1])
        self.assertEqual((self.project / "new.txt").read_text(), "text\n")
        started = next(event for event in events if isinstance(event, ToolStarted))
        statuses = [event.status for event in events if isinstance(event, ToolUpdated) and event.id == started.id]
        self.assertEqual(statuses[-1], "completed")

    async def test_questions_are_rejected_by_default(self) -> None:
        async with Agent(**self.place) as agent:
            events = [event async for event in agent.prompt("Write it")]
        self.assertFalse((self.project / "new.txt").exists())
        self.assertEqual(events[-1].stop_reason, "end_turn")


class Endings(Case):
    script = [call("terminal", {"command": "sleep 600", "description": "waits"}), "late", REPLY]

    async def test_leaving_the_loop_cancels_the_turn(self) -> None:
        async with Agent(permission="allow", **self.place) as agent:
            async for event in agent.prompt("Wait"):
                if isinstance(event, ToolUpdated) and event.status == "in_progress":
                    break
            done = [event async for event in agent.prompt("Again")][-1]
        self.assertEqual(done.stop_reason, "end_turn")

    async def test_an_agent_that_cannot_start_says_why(self) -> None:
        with self.assertRaises(AgentError) as caught:
            async with Agent("crow-cli", "acp", "--no-such-option", **self.place):
                pass
        self.assertIn("no-such-option", str(caught.exception))

    async def test_an_unknown_session_says_so(self) -> None:
        with self.assertRaises(AgentError) as caught:
            async with Agent(resume="no-such-session", **self.place):
                pass
        self.assertIn("no-such-session", str(caught.exception))


class Bridges(Case):
    async def test_a_bridge_serves_until_its_block_ends(self) -> None:
        self.assertIs(StdioToWsBridge, OldBridge)
        program = os.environ["CROW_CLI_PROGRAM"]
        async with StdioToWsBridge([program, "acp"], **self.place) as bridge:
            host = bridge.url.removeprefix("ws://").split("/")[0]
            status = await asyncio.to_thread(handshake, host, bridge.token)
            refused = await asyncio.to_thread(handshake, host, "wrong")
        self.assertEqual((status, refused), (101, 401))
        with self.assertRaises(OSError):
            handshake(host, bridge.token)

    async def test_a_bridge_in_the_background_is_cancelled(self) -> None:
        bridge = StdioToWsBridge([os.environ["CROW_CLI_PROGRAM"], "acp"], **self.place)
        serving = asyncio.create_task(bridge.run(port=0))
        while not bridge.url:
            await asyncio.wait([serving], timeout=0.01)
        serving.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await serving


def handshake(host: str, token: "str | None") -> int:
    connection = http.client.HTTPConnection(host, timeout=20)
    headers = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Authorization": f"Bearer {token}"}
    connection.request("GET", "/acp", headers=headers | {"Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="})
    status = connection.getresponse().status
    connection.close()
    return status


class Programs(Case):
    async def test_the_program_of_the_guide(self) -> None:
        path = {"PYTHONPATH": str(Path(__file__).parents[1]), "HOME": str(self.home)}
        program = await asyncio.create_subprocess_exec(
            sys.executable,
            str(Path(__file__).with_name("ask.py")),
            "Hello",
            cwd=self.project,
            env=os.environ | path,
            stdout=asyncio.subprocess.PIPE,
        )
        output, _ = await program.communicate()
        self.assertEqual((program.returncode, output.decode()), (0, REPLY + "\n"))

    async def test_agent_run_serves_stdin_and_stdout(self) -> None:
        request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1, "clientCapabilities": {}}}
        code = "import asyncio; from crow_cli.agent.main import agent_run; raise SystemExit(asyncio.run(agent_run()))"
        path = {"PYTHONPATH": str(Path(__file__).parents[1]), "HOME": str(self.home)}
        agent = await asyncio.create_subprocess_exec(
            sys.executable, "-c", code, env=os.environ | path, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
        )
        output, _ = await agent.communicate(json.dumps(request).encode() + b"\n")
        self.assertEqual(json.loads(output.splitlines()[0])["id"], 1)
        self.assertEqual(agent.returncode, 0)


if __name__ == "__main__":
    unittest.main()
