#!/usr/bin/env python3
"""Writes the tasks in the form of Harbor, which also runs Terminal-Bench 2.0: `eval/adapters/harbor_tasks.py DIRECTORY`."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path
from typing import Any

EVAL = Path(__file__).resolve().parent.parent

sys.path.insert(0, str(EVAL))

from harness.task import TASKS, Task, load_tasks
from harness.workspace import Workspace

PACKAGES = {"cc": "gcc libc6-dev", "make": "make", "rustc": "rustc", "go": "golang-go", "node": "nodejs", "javac": "default-jdk-headless"}
"""Debian's packages of the programs that tasks need; `java` comes with `javac`."""

SETTINGS = """schema_version = "1.1"

[task]
name = "crow/{name}"
description = "{description}"

[metadata]
category = "{group}"

[verifier]
timeout_sec = 300.0

[agent]
timeout_sec = 900.0

[environment]
build_timeout_sec = 1200.0
cpus = 1
memory_mb = 2048
storage_mb = 10240
"""

DOCKERFILE = """FROM debian:12-slim
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates git python3 {packages}
{more}COPY workspace /workspace
WORKDIR /workspace
"""

ANSWER = "/tmp/answer.txt"

TEST = f"""#!/bin/sh
mkdir -p /logs/verifier
python3 /tests/act.py check /workspace {ANSWER} /logs/verifier/reward.txt
"""

SOLUTION = f"""#!/bin/sh
python3 /solution/act.py solve /workspace {ANSWER}
"""

ACT = '''"""Checks or solves the task beside this file."""

import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from harness.task import Outcome, load_task
from harness.workspace import Workspace

action, directory, answer = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
drawn = json.loads((HERE / "drawn.json").read_text())
task = load_task(HERE / "task")
workspace = Workspace(directory)
if action == "solve":
    answer.write_text(task.solve(workspace, drawn["values"]))
else:
    text = answer.read_text() if answer.is_file() else ""
    fault = task.find_fault(Outcome(workspace, drawn["values"], drawn["before"], answer=text))
    print(fault or "done")
    Path(sys.argv[4]).write_text("0" if fault else "1")
'''


def write_task(task: Task, directory: Path, seed: int) -> None:
    shutil.rmtree(directory, ignore_errors=True)
    workspace = Workspace(directory / "environment" / "workspace")
    workspace.path.mkdir(parents=True)
    values, prompt = task.prepare(workspace, seed)
    drawn = {"values": values, "before": workspace.hashes()}
    (directory / "instruction.md").write_text(f"{prompt}\n\nWrite your answer to `{ANSWER}` as well.\n")
    (directory / "task.toml").write_text(SETTINGS.format(name=task.name, description=task.description.replace('"', "'"), group=task.group))
    packages = " ".join(PACKAGES[program] for program in task.needs if program in PACKAGES)
    more = "RUN apt-get install -y --no-install-recommends npm && npm install --global typescript@5\n" if "tsc" in task.needs else ""
    (directory / "environment" / "Dockerfile").write_text(DOCKERFILE.format(packages=packages, more=more))
    write_actions(task, directory / "tests", "test.sh", TEST, drawn)
    write_actions(task, directory / "solution", "solve.sh", SOLUTION, drawn)


def write_actions(task: Task, directory: Path, script: str, text: str, drawn: dict[str, Any]) -> None:
    shutil.copytree(TASKS / task.name, directory / "task", ignore=shutil.ignore_patterns("__pycache__"))
    (directory / "harness").mkdir()
    for name in ("__init__.py", "task.py", "workspace.py"):
        shutil.copy(EVAL / "harness" / name, directory / "harness" / name)
    (directory / "act.py").write_text(ACT)
    (directory / "drawn.json").write_text(json.dumps(drawn))
    (directory / script).write_text(text)
    (directory / script).chmod(0o755)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--seed", type=int, default=1, help="from which names and numbers are drawn (default: %(default)s)")
    options = parser.parse_args()
    for task in load_tasks():
        # Harbor allows all requests or rejects all of a job.
        if task.permission == "allow":
            write_task(task, options.directory / task.name, options.seed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
