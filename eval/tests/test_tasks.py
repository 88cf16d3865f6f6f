"""Each check passes a good solution, and fails the untouched workspace and each bad solution."""

import os
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness.task import GROUPS, Outcome, Task, load_tasks
from harness.workspace import Workspace

SEEDS = (1, 2)

SLOW_PROGRAMS = ("rustc", "javac", "go", "tsc")
"""Compilers: their tasks are tested with one seed."""


class TasksTest(unittest.TestCase):
    def test_tasks_are_enough_and_described(self) -> None:
        tasks = load_tasks()
        self.assertGreaterEqual(len(tasks), 40)
        self.assertEqual(len([task for task in tasks if task.group == "smallest"]), 9)
        for task in tasks:
            self.assertIn(task.group, GROUPS, task.name)
            self.assertTrue(task.description.endswith("."), task.name)
            self.assertTrue(task.bad_solutions, f"{task.name} has no bad solution")

    def test_checks(self) -> None:
        for task in load_tasks():
            with self.subTest(task.name):
                if missing := task.missing_programs():
                    print(f"skipped: {task.name} needs {', '.join(missing)}", file=sys.stderr)
                    continue
                for seed in SEEDS[:1] if set(task.needs) & set(SLOW_PROGRAMS) else SEEDS:
                    self.check_task(task, seed)

    def check_task(self, task: Task, seed: int) -> None:
        fault = find_fault(task, seed, lambda _workspace, _values: "")
        self.assertIsNotNone(fault, "the untouched workspace passes")
        self.assertIsNone(find_fault(task, seed, task.solve), "the good solution fails")
        for name, spoil in task.bad_solutions.items():
            fault = find_fault(task, seed, spoil)
            self.assertIsNotNone(fault, f"{name} passes")
            self.assertNotRegex(fault or "", r"^[A-Z]\w+(Error|Exception): ", f"{name} breaks the check")
            if os.environ.get("EVAL_SHOW"):
                print(f"{task.name} {name}: {fault}", file=sys.stderr)

    def test_draws_differ(self) -> None:
        """A prompt that is the same in each run has an answer that can be known before."""
        for task in load_tasks():
            drawn = []
            for seed in SEEDS:
                with tempfile.TemporaryDirectory() as directory:
                    values, _ = task.prepare(Workspace(Path(directory)), seed)
                    drawn.append(values)
            self.assertNotEqual(drawn[0], drawn[1], task.name)


def find_fault(task, seed, act) -> str | None:
    with tempfile.TemporaryDirectory() as directory:
        workspace = Workspace(Path(directory))
        values, _ = task.prepare(workspace, seed)
        before = workspace.hashes()
        answer = act(workspace, values)
        return task.find_fault(Outcome(workspace, values, before, answer=answer or ""))


if __name__ == "__main__":
    unittest.main()
