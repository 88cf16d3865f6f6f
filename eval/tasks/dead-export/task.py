"""The one function without a caller, though comments mention it."""

GROUP = "search"


def make(workspace, draw):
    functions = draw.words(6)
    dead = functions[draw.randint(0, 5)]
    workspace.write("library.py", "\n\n".join(f"def {name}(value):\n    return value + {i}" for i, name in enumerate(functions)) + "\n")
    callers = [draw.word() for _ in range(3)]
    for i, caller in enumerate(callers):
        used = [name for name in functions[i * 2 : i * 2 + 2] if name != dead]
        lines = ["import library", f"# No longer needs {dead}." if dead not in functions[i * 2 : i * 2 + 2] else "", ""]
        lines += [f"{caller}_{name} = library.{name}({i})" for name in used]
        workspace.write(f"app/{caller}.py", "\n".join(lines) + "\n")
    return {"functions": functions, "dead": dead}


def check(outcome):
    outcome.require_unchanged()
    outcome.require_words([outcome.values["dead"]], outcome.values["functions"])


def solve(workspace, values):
    return f"`{values['dead']}`"


def spoil_name(workspace, values):
    return next(name for name in values["functions"] if name != values["dead"])
