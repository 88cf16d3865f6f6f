"""The harness itself: the confinement, the proxy, the records of a run, and their tables. Needs no model."""

import http.server
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness import report
from harness.agent import ROOT, AgentDefinition, ModelAddress
from harness.model_proxy import Exchange, count_conversations, has_nudge, read_usage
from harness.task import load_tasks
from harness.world import World, find_confinement_fault
from harness.workspace import Workspace

CONFINEMENT_FAULT = find_confinement_fault()


def make_record(agent: str, task: str, seed: int, is_success: bool, tokens: int = 100) -> report.Record:
    return {
        "agent": agent,
        "task": task,
        "seed": seed,
        "done": is_success,
        "ended": True,
        "requests": 2,
        "tokens_in": tokens,
        "tokens_cached": tokens // 2,
        "tokens_out": 10,
        "first_in": tokens,
        "first_cached": tokens // 4,
        "seconds": 1.5,
    }


@unittest.skipIf(CONFINEMENT_FAULT, f"programs cannot be confined here: {CONFINEMENT_FAULT}")
class ConfinementTest(unittest.TestCase):
    def run_confined(self, script: str) -> str:
        with World() as world:
            done = Workspace(world.project, world.command).run("sh", "-c", script)
            return done.stdout + done.stderr

    def test_only_the_world_can_be_written(self) -> None:
        output = self.run_confined(f"echo a > a; echo b > ~/b; echo c > /tmp/c; cat a ~/b /tmp/c; echo d > {ROOT}/d")
        self.assertIn("a\nb\nc\n", output)
        self.assertIn("Read-only file system", output)

    def test_tasks_and_other_worlds_cannot_be_read(self) -> None:
        with World() as other:
            output = self.run_confined(f"ls {ROOT}/eval; ls -d {other.path}; ls /var/tmp | wc -l")
        self.assertNotIn("tasks", output)
        self.assertIn("No such file or directory", output)
        self.assertIn("1\n", output)

    def test_no_network_but_the_loopback(self) -> None:
        with http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as server:
            code = f"import socket; socket.create_connection(('127.0.0.1', {server.server_port}), 5)"
            self.assertIn("Connection refused", self.run_confined(f'python3 -c "{code}"'))

    def test_no_process_outlives_the_command(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            pipe = Path(directory) / "pipe"
            os.mkfifo(pipe)
            reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
            with World() as world, open(pipe, "w") as held:
                command = world.command(["sh", "-c", "setsid sleep 1000 & echo started"], world.project)
                subprocess.run(command, stdout=held, stderr=held, check=True)
            # The end of the pipe is only seen when no process has it open.
            data = b""
            while chunk := os.read(reader, 100):
                data += chunk
            os.close(reader)
            self.assertEqual(data, b"started\n")


class ProxyTest(unittest.TestCase):
    def check_usage(self, response: str, expected: tuple[int, int, int]) -> None:
        exchange = Exchange({}, 200, response.encode())
        read_usage(exchange)
        self.assertEqual((exchange.tokens_in, exchange.tokens_cached, exchange.tokens_out), expected)

    def test_usage_of_each_api(self) -> None:
        usage = '{"prompt_tokens": 90, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 40}}'
        self.check_usage(f'data: {{"choices": []}}\n\ndata: {{"choices": [], "usage": {usage}}}\n\ndata: [DONE]\n\n', (90, 40, 7))
        self.check_usage(f'{{"usage": {usage}}}', (90, 40, 7))
        usage = '{"input_tokens": 50, "output_tokens": 6, "input_tokens_details": {"cached_tokens": 20}}'
        self.check_usage(f'event: x\ndata: {{"type": "response.completed", "response": {{"usage": {usage}}}}}\n\n', (50, 20, 6))
        start = '{"type": "message_start", "message": {"usage": {"input_tokens": 5, "cache_read_input_tokens": 30, "output_tokens": 1}}}'
        delta = '{"type": "message_delta", "usage": {"output_tokens": 9}}'
        self.check_usage(f"data: {start}\n\ndata: {delta}\n\n", (35, 30, 9))
        self.check_usage("not JSON", (0, 0, 0))

    def test_conversations_and_nudges(self) -> None:
        def request(*messages: tuple[str, str], tools: bool = True) -> Exchange:
            named = [{"role": role, "content": content} for role, content in messages]
            return Exchange({"messages": named, "tools": [{}] if tools else []})

        first = request(("system", "s"), ("user", "a"))
        second = request(("system", "s"), ("user", "a"), ("assistant", ""), ("tool", "result"))
        title = request(("user", "a title for a"), tools=False)
        child = request(("system", "s"), ("user", "b"))
        self.assertEqual(count_conversations([first, title, second, child]), 2)
        self.assertFalse(has_nudge([first, title, second, child]))
        self.assertTrue(has_nudge([request(("user", "a"), ("assistant", ""), ("tool", "result"), ("user", "go on"))]))


class ReportTest(unittest.TestCase):
    def test_tables(self) -> None:
        records = [make_record("a", "x", 1, True), make_record("a", "y", 1, False, 300), make_record("b", "x", 1, True, 0)]
        table = report.summarize(records).splitlines()
        self.assertEqual([cell.strip() for cell in table[2].split("|")[1:-1]], ["a", "2", "1", "2", "1", "4", "400", "20", "50 %", "25 %", "3", "238.10"])
        self.assertIn("| x    | + | + |", report.list_runs(records))

    def test_comparison_pairs_by_task_and_seed(self) -> None:
        old = [make_record("a", name, 1, False) for name in "uvwxyz"] + [make_record("a", "t", 2, True)]
        new = [make_record("b", name, 1, True, 50) for name in "uvwxyz"] + [make_record("b", "t", 2, True, 50)]
        text = report.compare(old, [*new, make_record("b", "t", 3, False)])
        self.assertIn("pairs: 7 of 7 tasks", text)
        self.assertIn("better: 6 (u, v, w, x, y, z)", text)
        self.assertIn("p = 0.031", text)
        self.assertIn("median 0.55", text)

    def test_sign_test(self) -> None:
        self.assertEqual(report.sign_test(0, 0), 1.0)
        self.assertAlmostEqual(report.sign_test(5, 0), 0.0625)
        self.assertAlmostEqual(report.sign_test(2, 8), 0.109375)


class DefinitionTest(unittest.TestCase):
    def test_files_and_settings(self) -> None:
        agent = AgentDefinition(f"crow:tools=core,label=small,program={sys.executable}")
        self.assertEqual((agent.label, agent.command()), ("small", [str(Path(sys.executable).resolve()), "acp"]))
        with tempfile.TemporaryDirectory() as home:
            agent.write_files(Path(home), ModelAddress("http://127.0.0.1:1/v1", "small", 16000))
            text = (Path(home) / ".crow/config.yaml").read_text()
        self.assertIn("model: \"small\", context_window: 16000, tools: core", text)

    def test_wrong_names_are_errors(self) -> None:
        for label in ("nobody", "crow:colour=red"):
            with self.assertRaises(ValueError):
                AgentDefinition(label)
        with self.assertRaises(ValueError):
            load_tasks(["no-task"])


if __name__ == "__main__":
    unittest.main()
