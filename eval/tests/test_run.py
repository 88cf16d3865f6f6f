"""Crow on two tasks, with a model that says what a script says. Needs the SDK of the Python package and a built `crow-cli`."""

import importlib.util
import os
import signal
import socket
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness.agent import ROOT, AgentDefinition
from harness.runner import RunOptions, RunRecord, run_task
from harness.task import load_tasks
from harness.workspace import Workspace
from harness.world import WORLDS, find_confinement_fault

sys.path.insert(0, str(ROOT / "packaging"))

from scripted_model import ScriptedModel, call

SEED = 1

IS_CONFINED = find_confinement_fault() is None

PROGRAM = os.environ.get("CROW_CLI_PROGRAM", "")


@unittest.skipUnless(importlib.util.find_spec("acp") and PROGRAM, "needs the ACP SDK, and a crow-cli in CROW_CLI_PROGRAM")
class RunTest(unittest.TestCase):
    def run_script(self, name: str, script: list, keep: Path | None = None, is_confined: bool = IS_CONFINED) -> RunRecord:
        (task,) = load_tasks([name])
        with ScriptedModel(script) as model:
            options = RunOptions(model.url, "scripted", seconds=60, is_confined=is_confined, keep=keep)
            return run_task(AgentDefinition(f"crow:program={PROGRAM}"), task, SEED, options)

    def draw_values(self, name: str) -> dict:
        (task,) = load_tasks([name])
        with tempfile.TemporaryDirectory() as directory:
            return task.prepare(Workspace(Path(directory)), SEED)[0]

    def test_file_is_written_and_the_answer_read(self) -> None:
        values = self.draw_values("create-file")
        write = call("write", {"file_path": values["name"], "content": values["line"]})
        with tempfile.TemporaryDirectory() as directory:
            record = self.run_script("create-file", [write, "Created."], keep=Path(directory))
            (kept,) = Path(directory).iterdir()
            self.assertEqual((kept / "answer.txt").read_text(), "Created.\n")
            self.assertTrue((kept / "project" / values["name"]).is_file())
            self.assertEqual(len(list((kept / "recorded").iterdir())), 2)
        self.assertEqual((record.fault, record.error), (None, None))
        self.assertTrue(record.done and record.ended)
        self.assertEqual((record.requests, record.calls, record.refused), (2, 1, 0))

    def test_wrong_answer_is_not_done(self) -> None:
        record = self.run_script("add-2", ["7"])
        self.assertFalse(record.done)
        self.assertTrue(record.ended)
        self.assertIn("the answer has the numbers [7]", record.fault or "")

    def test_run_without_confinement(self) -> None:
        record = self.run_script("add-2", ["7"], is_confined=False)
        self.assertEqual((record.requests, record.stop), (1, "end_turn"))

    def test_permission_is_rejected_by_policy(self) -> None:
        name = self.draw_values("refused-call")["name"]
        delete = call("terminal", {"command": f"rm -r {name}"})
        record = self.run_script("refused-call", [delete, "I was not allowed to."])
        self.assertEqual((record.fault, record.refused), (None, 1))

    def test_signal_ends_the_run_and_its_directories(self) -> None:
        for stop in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(stop.name), tempfile.TemporaryDirectory() as directory, socket.create_server(("127.0.0.1", 0)) as model:
                before = set(WORLDS.glob("crow-eval-*"))
                url = f"http://127.0.0.1:{model.getsockname()[1]}/v1"
                arguments = ["--agent", f"crow:program={PROGRAM}", "--task", "add-2", "--url", url, "--model", "silent"]
                arguments += ["--out", f"{directory}/results.jsonl", *([] if IS_CONFINED else ["--unconfined"])]
                command = [sys.executable, str(ROOT / "eval/run.py"), "run", *arguments]
                with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as runner:
                    # The agent has sent its request, which is never answered.
                    model.settimeout(60)
                    connection, _ = model.accept()
                    during = set(WORLDS.glob("crow-eval-*")) - before
                    runner.send_signal(stop)
                    _, errors = runner.communicate(timeout=60)
                    connection.close()
                self.assertTrue(during)
                self.assertEqual([path for path in during if path.exists()], [])
                self.assertEqual((runner.returncode, errors.splitlines()[-1]), (130, "error: interrupted"))

    def test_guard_is_no_end(self) -> None:
        record = self.run_script("add-2", [call("read", {"file_path": "notes.txt"})])
        self.assertFalse(record.ended)
        self.assertTrue(record.guarded or record.nudged or record.stop != "end_turn")


if __name__ == "__main__":
    unittest.main()
