"""The adapters, without the harnesses that they are for."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from adapters import harbor_tasks, swebench
from adapters.crow_setup import ModelChoice
from harness.task import load_tasks

DOCKER = """#!/usr/bin/env python3
# Runs "containers" as processes in the directory CONTAINER.
import os, subprocess, sys
root, arguments = os.environ["CONTAINER"], sys.argv[1:]
if arguments[0] == "run":
    print("container-1")
elif arguments[0] == "exec":
    argv = arguments[arguments.index("container-1") + 1 :]
    argv[0] = os.environ["AGENT"] if argv[0].endswith("crow-cli") else argv[0]
    sys.exit(subprocess.run(argv, cwd=root).returncode if argv[0] != "mkdir" else 0)
"""

AGENT = """#!/bin/sh
echo fixed > program.py
mkdir tests
echo test > tests/test_program.py
echo new > more.py
"""


class HarborTasksTest(unittest.TestCase):
    def test_written_task_is_checked_and_solved(self) -> None:
        (task,) = load_tasks(["edit-word"])
        with tempfile.TemporaryDirectory() as directory:
            root = Path(directory)
            harbor_tasks.write_task(task, root, 3)
            self.assertIn("/tmp/answer.txt", (root / "instruction.md").read_text())
            workspace, answer, reward = str(root / "environment/workspace"), str(root / "answer.txt"), str(root / "reward.txt")

            def act(where: str, *arguments: str) -> None:
                subprocess.run([sys.executable, str(root / where / "act.py"), *arguments], check=True, capture_output=True)

            act("tests", "check", workspace, answer, reward)
            self.assertEqual(Path(reward).read_text(), "0")
            act("solution", "solve", workspace, answer)
            act("tests", "check", workspace, answer, reward)
            self.assertEqual(Path(reward).read_text(), "1")


class ModelChoiceTest(unittest.TestCase):
    def test_key_is_not_in_the_configuration(self) -> None:
        model = ModelChoice("openrouter/qwen/qwen3-coder", {"OPENROUTER_API_KEY": "sk-secret"})
        config = json.loads(model.config())
        self.assertEqual(config["providers"]["eval"]["api_key"], "${OPENROUTER_API_KEY}")
        self.assertEqual(config["models"]["openrouter/qwen/qwen3-coder"]["model"], "qwen/qwen3-coder")
        self.assertNotIn("sk-secret", model.config())

    def test_unknown_provider(self) -> None:
        for name in ("nobody/model", "model"):
            with self.assertRaises(ValueError):
                ModelChoice(name, {})
        other = ModelChoice("mine/m", {"CROW_EVAL_BASE_URL": "http://127.0.0.1:8080/v1"})
        self.assertEqual((other.base_url, other.api), ("http://127.0.0.1:8080/v1", "chat"))


class SweBenchTest(unittest.TestCase):
    def test_image_is_the_one_of_the_evaluation(self) -> None:
        self.assertEqual(swebench.image_name({"instance_id": "django__django-11099"}), "swebench/sweb.eval.x86_64.django_1776_django-11099:latest")

    def test_prediction_is_the_diff_without_tests(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            root = Path(directory)
            repository = root / "repository"
            repository.mkdir()
            (repository / "program.py").write_text("broken\n")
            for arguments in (["init", "-q"], ["add", "."], ["-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qm", "a"]):
                subprocess.run(["git", *arguments], cwd=repository, check=True)
            for name, text in (("docker", DOCKER), ("agent", AGENT)):
                (root / name).write_text(text)
                (root / name).chmod(0o755)
            (root / "instances.jsonl").write_text(json.dumps({"instance_id": "a__b-1", "problem_statement": "It is broken."}) + "\n")
            out = root / "predictions.jsonl"
            variables = {
                **os.environ,
                "PATH": f"{root}:{os.environ['PATH']}",
                "CONTAINER": str(repository),
                "AGENT": str(root / "agent"),
                "CROW": str(root / "agent"),
                "OPENAI_API_KEY": "sk",
            }
            with mock.patch.dict(os.environ, variables):
                command = [sys.executable, str(swebench.__file__), "--instances", str(root / "instances.jsonl")]
                for _ in range(2):
                    subprocess.run([*command, "--model", "openai/gpt-5", "--out", str(out)], check=True, capture_output=True)
            (prediction,) = [json.loads(line) for line in out.read_text().splitlines()]
            self.assertEqual((prediction["instance_id"], prediction["model_name_or_path"]), ("a__b-1", "crow-cli openai/gpt-5"))
            self.assertIn("+fixed", prediction["model_patch"])
            self.assertIn("+new", prediction["model_patch"])
            self.assertNotIn("tests/", prediction["model_patch"])
            subprocess.run(["git", "reset", "-q", "--hard"], cwd=repository, check=True)
            subprocess.run(["git", "apply", "--check"], cwd=repository, input=prediction["model_patch"].encode(), check=True)


if __name__ == "__main__":
    unittest.main()
