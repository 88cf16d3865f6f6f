"""Runs an agent on a task in a fresh world, over ACP, and checks what it left."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from .agent import ROOT, AgentDefinition, ModelAddress
from .model_proxy import ModelProxy, count_conversations, has_nudge
from .task import Outcome, Task
from .workspace import Workspace
from .world import MODEL_PORT, World

sys.path.insert(0, str(ROOT / "python"))


@dataclass
class RunOptions:
    """What all runs have in common. `hidden` are directories that no agent may read."""

    model_url: str
    model_name: str
    key: str = ""
    window: int = 128000
    seconds: float = 600
    is_confined: bool = True
    keep: Path | None = None
    hidden: list[Path] = field(default_factory=list)


@dataclass
class RunRecord:
    """A line of the results."""

    agent: str
    task: str
    group: str
    seed: int
    model: str
    done: bool = False
    fault: str | None = None
    ended: bool = False
    """The turn ended with `end_turn`, without a guard and without a nudge."""
    stop: str = ""
    """The stop reason, or `timeout` or `error`."""
    error: str | None = None
    guarded: bool = False
    nudged: bool = False
    refused: int = 0
    calls: int = 0
    requests: int = 0
    tokens_in: int = 0
    tokens_cached: int = 0
    tokens_out: int = 0
    first_in: int = 0
    first_cached: int = 0
    """Of the first request: what the previous run, in another directory, left in the model's cache."""
    seconds: float = 0.0


@dataclass
class Conversation:
    """What the client sees of a turn."""

    answer: str = ""
    """The text after the last call."""
    calls: int = 0
    refused: int = 0
    guarded: bool = False
    updates: list[Any] = field(default_factory=list)


def run_task(agent: AgentDefinition, task: Task, seed: int, options: RunOptions) -> RunRecord:
    record = RunRecord(agent.label, task.name, task.group, seed, options.model_name)
    with World(options.hidden, options.is_confined) as world:
        workspace = Workspace(world.project, world.command)
        values, prompt = task.prepare(workspace, seed)
        before = workspace.hashes()
        socket_path = world.model_socket if options.is_confined else None
        with ModelProxy(options.model_url, socket_path, options.key) as proxy:
            base_url = f"http://127.0.0.1:{proxy.port or MODEL_PORT}/v1"
            agent.write_files(world.home, ModelAddress(base_url, options.model_name, options.window))
            conversation = Conversation()
            started = time.monotonic()
            record.stop, record.error = asyncio.run(converse(agent, task, world, prompt, options.seconds, conversation))
            record.seconds = round(time.monotonic() - started, 1)
        count(record, proxy, conversation)
        outcome = Outcome(
            workspace,
            values,
            before,
            answer=conversation.answer,
            n_refused=conversation.refused,
            n_conversations=count_conversations(proxy.exchanges),
            n_requests=record.requests,
            model_input="\n".join(json.dumps(exchange.request) for exchange in proxy.exchanges),
        )
        record.fault = task.find_fault(outcome)
        record.done = record.fault is None
        if options.keep:
            keep_run(options.keep, record, world, proxy, conversation, prompt)
    return record


async def converse(
    agent: AgentDefinition, task: Task, world: World, prompt: str, seconds: float, conversation: Conversation
) -> tuple[str, str | None]:
    """Runs one turn; returns why it ended, and the error if it did not end by itself."""
    from acp.schema import McpServerStdio
    from crow_cli import Agent, AgentError, Done, PermissionRequest, Text, ToolStarted

    def decide(request: PermissionRequest) -> str:
        if agent.guard and agent.guard.search(request.title):
            conversation.guarded = True
            return "deny"
        conversation.refused += task.permission == "deny"
        return task.permission

    command = world.command(agent.command(), world.project, agent.environment(world.home), has_model=True)
    servers = [McpServerStdio.model_validate(server) for server in agent.mcp_servers()]
    try:
        async with asyncio.timeout(seconds):
            async with Agent(*command, cwd=world.project, permission=decide, mcp_servers=servers) as session:
                async for event in session.prompt(prompt):
                    conversation.updates.append(event.raw)
                    if agent.guard and agent.guard.search(str(event.raw)):
                        conversation.guarded = True
                    if isinstance(event, Text):
                        conversation.answer += event.text
                    elif isinstance(event, ToolStarted):
                        conversation.calls += 1
                        conversation.answer = ""
                    elif isinstance(event, Done):
                        return event.stop_reason, None
    except TimeoutError:
        return "timeout", f"the turn did not end in {seconds:.0f} s"
    except AgentError as error:
        return "error", str(error)[:2000]
    return "error", "the turn had no end"


def count(record: RunRecord, proxy: ModelProxy, conversation: Conversation) -> None:
    exchanges = [exchange for exchange in proxy.exchanges if exchange.status == 200]
    record.requests = len(proxy.exchanges)
    record.tokens_in = sum(exchange.tokens_in for exchange in exchanges)
    record.tokens_cached = sum(exchange.tokens_cached for exchange in exchanges)
    record.tokens_out = sum(exchange.tokens_out for exchange in exchanges)
    if exchanges:
        record.first_in, record.first_cached = exchanges[0].tokens_in, exchanges[0].tokens_cached
    record.calls, record.refused = conversation.calls, conversation.refused
    record.guarded = conversation.guarded
    record.nudged = has_nudge(proxy.exchanges)
    record.ended = record.stop == "end_turn" and not record.guarded and not record.nudged


def keep_run(
    keep: Path, record: RunRecord, world: World, proxy: ModelProxy, conversation: Conversation, prompt: str
) -> None:
    """Writes the whole conversation, for people who want to know why a run failed."""
    agent = re.sub(r"[^\w.=-]+", "_", record.agent)
    directory = keep / f"{agent}-{record.task}-{record.seed}"
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    (directory / "result.json").write_text(json.dumps(asdict(record), indent=1) + "\n")
    (directory / "prompt.txt").write_text(prompt + "\n")
    (directory / "answer.txt").write_text(conversation.answer + "\n")
    with (directory / "exchanges.jsonl").open("w") as file:
        for exchange in proxy.exchanges:
            line = {"request": exchange.request, "status": exchange.status, "response": exchange.response.decode(errors="replace")}
            file.write(json.dumps(line) + "\n")
    with (directory / "updates.jsonl").open("w") as file:
        for update in conversation.updates:
            file.write(update.model_dump_json(exclude_none=True, by_alias=True) + "\n")
    shutil.copytree(world.project, directory / "project", symlinks=True, ignore_dangling_symlinks=True)
    if (world.home / "recorded").is_dir():
        shutil.copytree(world.home / "recorded", directory / "recorded")
