"""The one function that raises an error; others catch it or mention it."""

GROUP = "explain"


def make(workspace, draw):
    name, functions = draw.word(), draw.words(5)
    error = draw.word().capitalize() + "Error"
    a, b, c, d, e = functions
    workspace.write(
        f"{name}.py",
        f'''class {error}(Exception):
    """Raised when there is no room."""


class OtherError(Exception):
    pass


def {a}(items):
    """May end with {error}."""
    return [{d}(item, 10) for item in items]


def {b}(item):
    try:
        return {d}(item, 5)
    except {error}:
        return None


def {c}(item):
    if item < 0:
        raise OtherError("negative, not {error}")
    return item


def {d}(item, limit):
    if item > limit:
        raise {error}(item)
    return item


def {e}(items):
    return {a}({c}(item) for item in items)
''',
    )
    return {"name": name, "error": error, "functions": functions}


def check(outcome):
    functions = outcome.values["functions"]
    outcome.require_unchanged()
    outcome.require_words([functions[3]], functions)


def solve(workspace, values):
    return f"`{values['functions'][3]}`"


def spoil_name(workspace, values):
    return values["functions"][2]


def spoil_by_all_names(workspace, values):
    return ", ".join(values["functions"])
