#!/usr/bin/env python3
"""Lets Crow solve instances of SWE-bench in their images, and writes predictions for its evaluation.

eval/adapters/swebench.py --instances instances.jsonl --model PROVIDER/MODEL --out predictions.jsonl
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from adapters.crow_setup import PROGRAM, ModelChoice, find_program

REPOSITORY = "/testbed"

TURN_SECONDS_MAX = 3600

IMAGE_SECONDS_MAX = 3600
"""An image has some gigabytes, which the first use fetches."""

TEST_PATH = re.compile(r"(^|/)(tests?|testing|e2e)/|(^|/)(test_[^/]*|[^/]*_tests?|conftest)\.py$")

PROMPT = """Solve this issue of the repository in {repository}. Change the program only, not its tests, and check your change.

{issue}"""


def image_name(instance: dict[str, Any]) -> str:
    """Returns the image of an instance: its own `image_name`, or the one of SWE-bench."""
    name = instance["instance_id"].replace("__", "_1776_").lower()
    return str(instance.get("image_name") or f"swebench/sweb.eval.x86_64.{name}:latest")


def remove_tests(patch: str) -> str:
    """Returns the patch without files of tests: the evaluation brings its own."""
    parts = re.split(r"(?m)^(?=diff --git )", patch)
    kept = []
    for part in parts:
        header = re.match(r"diff --git a/(.*) b/(.*)\n", part)
        if header and not TEST_PATH.search(header[2]):
            kept.append(part)
    return "".join(kept)


class Container:
    """A container of an instance; removed when the context ends. `engine` is `docker` or `podman`."""

    def __init__(self, engine: str, image: str, model: ModelChoice) -> None:
        self.engine, self.image, self.model = engine, image, model

    def __enter__(self) -> Container:
        key = ["--env", self.model.key_variable]
        command = [self.engine, "run", "--detach", "--rm", *key, "--env", "PAGER=cat", "--env", "BASH_ENV=/root/.bashrc", self.image]
        done = subprocess.run([*command, "sleep", "infinity"], capture_output=True, text=True, timeout=IMAGE_SECONDS_MAX, check=True)
        self.name = done.stdout.strip().splitlines()[-1]
        return self

    def __exit__(self, *_error: object) -> None:
        subprocess.run([self.engine, "rm", "--force", self.name], capture_output=True, check=False)

    def copy(self, source: Path, target: str) -> None:
        subprocess.run([self.engine, "cp", str(source), f"{self.name}:{target}"], capture_output=True, check=True)

    def run(self, *argv: str, seconds: float = 600) -> subprocess.CompletedProcess[str]:
        command = [self.engine, "exec", "--workdir", REPOSITORY, self.name, *argv]
        return subprocess.run(command, capture_output=True, text=True, timeout=seconds, stdin=subprocess.DEVNULL, check=False)


def solve(instance: dict[str, Any], model: ModelChoice, engine: str) -> str:
    """Returns the patch that Crow makes for an instance."""
    with Container(engine, image_name(instance), model) as container, tempfile.TemporaryDirectory() as directory:
        config = Path(directory) / "config.yaml"
        config.write_text(model.config())
        container.copy(find_program(), PROGRAM)
        container.run("mkdir", "-p", "/root/.crow")
        container.copy(config, "/root/.crow/config.yaml")
        prompt = PROMPT.format(repository=REPOSITORY, issue=instance["problem_statement"])
        try:
            done = container.run(PROGRAM, "run", "--plain", "--yes", "--", prompt, seconds=TURN_SECONDS_MAX)
            print(f"{instance['instance_id']}: crow-cli ended with {done.returncode}", file=sys.stderr)
        except subprocess.TimeoutExpired:
            print(f"{instance['instance_id']}: no end in {TURN_SECONDS_MAX} s", file=sys.stderr)
        container.run("git", "add", "--all")
        start = instance.get("base_commit") or "HEAD"
        return remove_tests(container.run("git", "diff", "--cached", "--no-color", "--no-ext-diff", start).stdout)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--instances", type=Path, required=True, help="the data set as JSON lines")
    parser.add_argument("--model", required=True, help="PROVIDER/MODEL")
    parser.add_argument("--out", type=Path, required=True, help="predictions, appended; instances in it are not run again")
    parser.add_argument("--only", action="append", help="an instance ID; repeatable")
    parser.add_argument("--engine", default="docker", help="docker or podman (default: %(default)s)")
    options = parser.parse_args()
    model = ModelChoice(options.model)
    if shutil.which(options.engine) is None:
        parser.error(f"{options.engine} is not installed")
    done = {json.loads(line)["instance_id"] for line in options.out.read_text().splitlines()} if options.out.exists() else set()
    for line in options.instances.read_text().splitlines():
        instance = json.loads(line)
        if instance["instance_id"] in done or (options.only and instance["instance_id"] not in options.only):
            continue
        prediction = {"instance_id": instance["instance_id"], "model_name_or_path": f"crow-cli {options.model}"}
        with options.out.open("a") as file:
            file.write(json.dumps({**prediction, "model_patch": solve(instance, model, options.engine)}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
