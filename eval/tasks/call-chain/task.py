"""The functions that a call goes through, in order, over four files."""

import re

GROUP = "explain"


def make(workspace, draw):
    chain, others = draw.words(5), draw.words(4)
    modules = ["main", *draw.words(4)]
    for i, module in enumerate(modules):
        lines = []
        if i < 4:
            lines += [f"from {modules[i + 1]} import {chain[i + 1]}", ""]
            lines += [f"def {others[i]}(value):", f'    """Not called by {chain[i]}."""', f"    return {chain[i + 1]}(value) - 1", ""]
            lines += [f"def {chain[i]}(value):", f"    return {chain[i + 1]}(value * {i + 2}) + 1"]
        else:
            lines += [f"def {chain[i]}(value):", "    return abs(value)"]
        workspace.write(f"{module}.py", "\n".join(lines) + "\n")
    return {"first": chain[0], "chain": chain, "others": others}


def check(outcome):
    chain, others = outcome.values["chain"], outcome.values["others"]
    outcome.require_unchanged()
    named = [word for word in re.findall(r"\w+", outcome.answer) if word in chain or word in others]
    # The question may be repeated before the list.
    outcome.require(named in (chain, [chain[0], *chain]), f"the answer is {named}, not {chain}")


def solve(workspace, values):
    return " -> ".join(values["chain"])


def spoil_order(workspace, values):
    chain = values["chain"]
    return " -> ".join([chain[0], chain[2], chain[1], *chain[3:]])


def spoil_end(workspace, values):
    return " -> ".join(values["chain"][:-1])
