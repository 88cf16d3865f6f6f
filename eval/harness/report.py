"""Tables of results, and the comparison of two agents or revisions."""

from __future__ import annotations

import json
import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

Record = dict[str, Any]


def read_records(paths: Iterable[Path]) -> list[Record]:
    return [json.loads(line) for path in paths for line in path.read_text().splitlines() if line.strip()]


def format_table(rows: Sequence[Sequence[str]]) -> str:
    """Returns a table of Markdown whose columns are aligned."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    aligned = [[cell.ljust(width) if i == 0 else cell.rjust(width) for i, (cell, width) in enumerate(zip(row, widths))] for row in rows]
    ruler = ["-" * width if i == 0 else "-" * (width - 1) + ":" for i, width in enumerate(widths)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [aligned[0], ruler, *aligned[1:]])


def share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "-"


def summarize(records: Sequence[Record]) -> str:
    """Returns a row for each agent, in the order of their first results."""
    by_agent: dict[str, list[Record]] = {}
    for record in records:
        by_agent.setdefault(record["agent"], []).append(record)
    rows = [
        ["agent", "runs", "done", "ended", "both", "requests", "tokens in", "tokens out", "cached", "2nd session cached", "seconds", "both per 100k tokens"]
    ]
    for agent, runs in by_agent.items():
        both = sum(run["done"] and run["ended"] for run in runs)
        tokens = sum(run["tokens_in"] + run["tokens_out"] for run in runs)
        # The first run of an agent finds the cache of another.
        later = runs[1:]
        rows.append(
            [
                agent,
                f"{len(runs)}",
                f"{sum(run['done'] for run in runs)}",
                f"{sum(run['ended'] for run in runs)}",
                f"{both}",
                f"{sum(run['requests'] for run in runs)}",
                f"{sum(run['tokens_in'] for run in runs)}",
                f"{sum(run['tokens_out'] for run in runs)}",
                share(sum(run["tokens_cached"] for run in runs), sum(run["tokens_in"] for run in runs)),
                share(sum(run["first_cached"] for run in later), sum(run["first_in"] for run in later)),
                f"{sum(run['seconds'] for run in runs):.0f}",
                f"{100_000 * both / tokens:.2f}" if tokens else "-",
            ]
        )
    return format_table(rows)


def list_runs(records: Sequence[Record]) -> str:
    """Returns a row for each task, with each agent's runs: `+` done and ended, `~` done only, `-` not done."""
    agents = list(dict.fromkeys(record["agent"] for record in records))
    signs: dict[tuple[str, str], str] = defaultdict(str)
    for record in records:
        signs[record["task"], record["agent"]] += "+" if record["done"] and record["ended"] else "~" if record["done"] else "-"
    tasks = dict.fromkeys(record["task"] for record in records)
    return format_table([["task", *agents], *([task, *(signs[task, agent] for agent in agents)] for task in tasks)])


def sign_test(wins: int, losses: int) -> float:
    """Returns the two-sided probability of a difference at least as large if none is better."""
    n = wins + losses
    tail = sum(math.comb(n, k) for k in range(min(wins, losses) + 1)) / 2**n
    return min(1.0, 2 * tail)


def compare(old: Sequence[Record], new: Sequence[Record]) -> str:
    """Pairs runs of the same task and seed, and says which side has more that are done and ended."""
    pairs = pair_runs(old, new)
    if not pairs:
        return "no run of one side has the task and seed of a run of the other"
    wins = [b for a, b in pairs if is_success(b) and not is_success(a)]
    losses = [b for a, b in pairs if is_success(a) and not is_success(b)]
    both = [(a, b) for a, b in pairs if is_success(a) and is_success(b)]
    lines = [
        f"pairs: {len(pairs)} of {len({b['task'] for _, b in pairs})} tasks",
        f"done and ended: {sum(is_success(a) for a, _ in pairs)} before, {sum(is_success(b) for _, b in pairs)} after",
        f"better: {len(wins)} ({', '.join(sorted({run['task'] for run in wins})) or 'none'})",
        f"worse: {len(losses)} ({', '.join(sorted({run['task'] for run in losses})) or 'none'})",
        f"sign test: p = {sign_test(len(wins), len(losses)):.3f}",
    ]
    if both:
        ratios = [(b["tokens_in"] + b["tokens_out"]) / max(1, a["tokens_in"] + a["tokens_out"]) for a, b in both]
        lines.append(f"tokens after / before, where both succeed: median {statistics.median(ratios):.2f}")
    return "\n".join(lines)


def is_success(record: Record) -> bool:
    return bool(record["done"] and record["ended"])


def pair_runs(old: Sequence[Record], new: Sequence[Record]) -> list[tuple[Record, Record]]:
    waiting: dict[tuple[str, int], list[Record]] = defaultdict(list)
    for record in old:
        waiting[record["task"], record["seed"]].append(record)
    pairs = []
    for record in new:
        if candidates := waiting[record["task"], record["seed"]]:
            pairs.append((candidates.pop(0), record))
    return pairs
