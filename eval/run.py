#!/usr/bin/env python3
"""Runs agents on small tasks and shows how well they did: see docs/dev/eval.md."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from dataclasses import asdict
from pathlib import Path

from harness import report
from harness.agent import ROOT, AgentDefinition
from harness.runner import RunOptions, run_task
from harness.task import load_tasks
from harness.world import find_confinement_fault


def main(argv: list[str]) -> int:
    arguments = parse_arguments(argv)
    # A shell without job control has what it starts in the background ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # The agent is ended and the directories of the run are removed as after Ctrl-C.
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        return int(arguments.function(arguments))
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("error: interrupted", file=sys.stderr)
        return 130


def parse_arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="eval", description=__doc__)
    commands = parser.add_subparsers(required=True)

    run = commands.add_parser("run", help="run agents on tasks")
    run.set_defaults(function=run_all)
    run.add_argument("--agent", action="append", required=True, help="NAME or NAME:KEY=VALUE,…; repeatable")
    run.add_argument("--task", action="append", help="a task or a group; repeatable; all if none is given")
    run.add_argument("--url", required=True, help="the base URL of the model's API, up to and including /v1")
    run.add_argument("--model", required=True, help="the model's name there")
    run.add_argument("--key-variable", help="the variable with the key; no agent sees it")
    run.add_argument("--window", type=int, default=128000, help="the tokens that the model can read (default: %(default)s)")
    run.add_argument("--times", type=int, default=1, help="runs of each task (default: %(default)s)")
    run.add_argument("--seed", type=int, default=1, help="seed of the first run; the next has the next (default: %(default)s)")
    run.add_argument("--seconds", type=float, default=600, help="until a turn is cancelled (default: %(default)s)")
    run.add_argument("--out", type=Path, default=ROOT / "target/eval/results.jsonl", help="results, appended (default: %(default)s)")
    run.add_argument("--keep", type=Path, help="a directory for the conversations and workspaces")
    run.add_argument("--hide", type=Path, action="append", default=[], help="a directory that no agent may read; repeatable")
    run.add_argument("--unconfined", action="store_true", help="run agents without namespaces, with all that you may do")

    tasks = commands.add_parser("tasks", help="list the tasks")
    tasks.set_defaults(function=list_tasks)

    table = commands.add_parser("table", help="show results")
    table.set_defaults(function=show_table)
    table.add_argument("results", type=Path, nargs="+")

    compare = commands.add_parser("compare", help="compare two agents or revisions, by task and seed")
    compare.set_defaults(function=show_comparison)
    compare.add_argument("old", help="FILE, or FILE@AGENT if the file has several")
    compare.add_argument("new", help="FILE, or FILE@AGENT")
    return parser.parse_args(argv)


def run_all(arguments: argparse.Namespace) -> int:
    if not arguments.unconfined and (fault := find_confinement_fault()):
        raise ValueError(f"agents cannot be confined: {fault}; --unconfined runs them with all that you may do")
    agents = [AgentDefinition(label) for label in arguments.agent]
    options = RunOptions(
        model_url=arguments.url,
        model_name=arguments.model,
        key=os.environ[arguments.key_variable] if arguments.key_variable else "",
        window=arguments.window,
        seconds=arguments.seconds,
        is_confined=not arguments.unconfined,
        keep=arguments.keep,
        hidden=[path.resolve() for path in [*arguments.hide, arguments.out.parent, *([arguments.keep] if arguments.keep else [])]],
    )
    for agent in agents:
        check_program(agent, options)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    records = []
    for agent in agents:
        for task in load_tasks(arguments.task):
            if missing := task.missing_programs():
                print(f"skipped: {task.name} needs {', '.join(missing)}", file=sys.stderr)
                continue
            for seed in range(arguments.seed, arguments.seed + arguments.times):
                record = asdict(run_task(agent, task, seed, options))
                records.append(record)
                with arguments.out.open("a") as file:
                    file.write(json.dumps(record) + "\n")
                print(describe_run(record), file=sys.stderr, flush=True)
    print(report.summarize(records), "", report.list_runs(records), sep="\n")
    return 0


def check_program(agent: AgentDefinition, options: RunOptions) -> None:
    program = Path(agent.find_program())
    if options.is_confined and (hiding := [path for path in options.hidden if program.is_relative_to(path)]):
        raise ValueError(f"{program} is in {hiding[0]}, which no agent may read: put results or programs elsewhere")


def describe_run(record: report.Record) -> str:
    done = "done" if record["done"] else f"not done ({record['fault']})"
    ended = "ended" if record["ended"] else f"not ended ({record['error'] or record['stop']}{', guard' * record['guarded']}{', nudge' * record['nudged']})"
    cost = f"{record['requests']} requests, {record['tokens_in']}+{record['tokens_out']} tokens, {record['seconds']} s"
    return f"{record['agent']} {record['task']} {record['seed']}: {done}, {ended}, {cost}"


def list_tasks(_arguments: argparse.Namespace) -> int:
    rows = [["task", "group", "needs", "what"]]
    rows += [[task.name, task.group, " ".join(task.needs), task.description] for task in load_tasks()]
    print(report.format_table(rows))
    return 0


def show_table(arguments: argparse.Namespace) -> int:
    records = report.read_records(arguments.results)
    if not records:
        raise ValueError("there are no results")
    print(report.summarize(records), "", report.list_runs(records), sep="\n")
    return 0


def show_comparison(arguments: argparse.Namespace) -> int:
    sides = []
    for side in (arguments.old, arguments.new):
        path, _, agent = side.partition("@")
        records = [record for record in report.read_records([Path(path)]) if not agent or record["agent"] == agent]
        if len({record["agent"] for record in records}) > 1:
            raise ValueError(f"{path} has several agents; name one as {path}@AGENT")
        sides.append(records)
    print(report.compare(*sides))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
