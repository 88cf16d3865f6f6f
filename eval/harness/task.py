"""A task: a prompt, a workspace that is drawn anew for each run, and a check that the agent never sees."""

from __future__ import annotations

import importlib.util
import re
import shutil
import string
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from .workspace import Draw, Workspace

TASKS = Path(__file__).resolve().parent.parent / "tasks"

GROUPS = ("smallest", "explain", "search", "edit", "tests", "data", "git", "judgement")


class CheckFailed(Exception):
    """The task is not done; the message says what is missing."""


@dataclass
class Outcome:
    """What an agent left: its workspace, its answer, and what was seen of it."""

    workspace: Workspace
    values: dict[str, Any]
    before: dict[str, str]
    """The hashes of the files before the agent began."""
    answer: str = ""
    """The text after the last tool call."""
    n_refused: int | None = None
    """Permission requests that were rejected, or None if they were not counted."""
    n_conversations: int | None = None
    """Conversations that the model had, those of child agents included, or None if they were not counted."""
    n_requests: int | None = None
    model_input: str = ""
    """The bodies of all requests to the model."""

    def require(self, is_met: bool, message: str) -> None:
        if not is_met:
            raise CheckFailed(message)

    def require_unchanged(self, *changed: str) -> None:
        """Requires that all files are as before, and none is new, except those that are named."""
        after = self.workspace.hashes()
        for name in sorted(self.before.keys() | after.keys()):
            if name not in changed and self.before.get(name) != after.get(name):
                raise CheckFailed(f"{name} was {'removed' if name not in after else 'changed' if name in self.before else 'added'}")

    def require_bytes(self, name: str, expected: str | bytes) -> None:
        expected = expected.encode() if isinstance(expected, str) else expected
        actual = self.workspace.read_bytes(name)
        self.require(actual == expected, f"{name} has {shorten(actual)}, not {shorten(expected)}")

    def require_words(self, expected: list[str], among: list[str]) -> None:
        """Requires that of all words in `among` the answer has the expected ones and no others."""
        found = [word for word in among if has_word(self.answer, word)]
        self.require(sorted(found) == sorted(expected), f"the answer names {found}, not {expected}")

    def require_number(self, expected: int, *asked: int) -> None:
        """Requires that the answer has this number and no other, except those of the question."""
        numbers = {int(number.replace(",", "")) for number in re.findall(r"(?<![\w.])-?\d+(?:,\d{3})*(?![\w])", self.answer)}
        self.require(expected in numbers, f"the answer has the numbers {sorted(numbers)}, not {expected}")
        others = numbers - {expected, *asked}
        self.require(not others, f"the answer has also the numbers {sorted(others)}")

    def run_python(self, code: str, *arguments: str) -> str:
        """Runs a driver that prints values, which the check compares: an exit code could be made up by the workspace."""
        return self.workspace.run("python3", "-c", code, *arguments).stdout


def has_word(text: str, word: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None


def shorten(data: bytes) -> str:
    return repr(data if len(data) <= 120 else data[:60] + b" ... " + data[-60:])


@dataclass
class Task:
    """A directory of `tasks`: `instruction.md` and `task.py`."""

    name: str
    module: ModuleType = field(repr=False)
    instruction: str = field(repr=False)

    @property
    def group(self) -> str:
        return str(self.module.GROUP)

    @property
    def needs(self) -> tuple[str, ...]:
        """Programs that the workspace or the check uses, besides Python and git."""
        return tuple(getattr(self.module, "NEEDS", ()))

    @property
    def permission(self) -> str:
        return str(getattr(self.module, "PERMISSION", "allow"))

    @property
    def bad_solutions(self) -> dict[str, Callable[[Workspace, dict[str, Any]], str]]:
        return {name: getattr(self.module, name) for name in dir(self.module) if name.startswith("spoil")}

    @property
    def description(self) -> str:
        return (self.module.__doc__ or "").strip().splitlines()[0]

    def missing_programs(self) -> list[str]:
        return [program for program in self.needs if shutil.which(program) is None]

    def prepare(self, workspace: Workspace, seed: int) -> tuple[dict[str, Any], str]:
        """Fills the workspace; returns the drawn values and the prompt."""
        values = self.module.make(workspace, Draw(seed))
        return values, string.Template(self.instruction).substitute(values).strip()

    def solve(self, workspace: Workspace, values: dict[str, Any]) -> str:
        """Does the task as it should be done; returns the answer."""
        return str(self.module.solve(workspace, values) or "")

    def find_fault(self, outcome: Outcome) -> str | None:
        """Returns why the task is not done, or None if it is."""
        try:
            self.module.check(outcome)
        except CheckFailed as failure:
            return str(failure)
        except (ValueError, KeyError, IndexError, TypeError, AttributeError, OSError, RecursionError) as error:
            # What an agent wrote is not what the check could read.
            return f"{type(error).__name__}: {error}"
        return None


def load_task(directory: Path) -> Task:
    spec = importlib.util.spec_from_file_location(f"task_{directory.name.replace('-', '_')}", directory / "task.py")
    if spec is None or spec.loader is None:
        raise ImportError(f"{directory} has no task.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return Task(directory.name, module, (directory / "instruction.md").read_text())


def load_tasks(names: list[str] | None = None, root: Path = TASKS) -> list[Task]:
    """Loads the tasks with these names or groups, or all, in the order of their groups.

    Raises ValueError for a name that is neither.
    """
    tasks = [load_task(path) for path in sorted(root.iterdir()) if (path / "task.py").is_file()]
    tasks.sort(key=lambda task: (GROUPS.index(task.group), task.name))
    if not names:
        return tasks
    known = {task.name for task in tasks} | set(GROUPS)
    if unknown := [name for name in names if name not in known]:
        raise ValueError(f"unknown task {', '.join(unknown)}; tasks and groups are {', '.join(sorted(known))}")
    return [task for task in tasks if task.name in names or task.group in names]
