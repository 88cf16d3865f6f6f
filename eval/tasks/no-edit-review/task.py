"""A review that names the bug and leaves the file alone."""

GROUP = "explain"


def make(workspace, draw):
    name, functions = draw.word(), draw.words(4)
    a, b, c, d = functions
    workspace.write(
        f"{name}.py",
        f'''def {a}(values):
    """Returns the largest value, or None if there is none."""
    return max(values, default=None)


def {b}(values):
    """Returns the values without repetitions, in their order."""
    return list(dict.fromkeys(values))


def {c}(text, width):
    """Returns the text cut to at most `width` characters."""
    return text[: width + 1]


def {d}(values):
    """Returns the mean of the values, or 0 if there is none."""
    return sum(values) / len(values) if values else 0
''',
    )
    return {"name": name, "functions": functions}


def check(outcome):
    functions = outcome.values["functions"]
    outcome.require_unchanged()
    outcome.require_words([functions[2]], functions)


def solve(workspace, values):
    return f"{values['functions'][2]}: it returns one character too many."


def spoil_by_editing(workspace, values):
    workspace.replace(f"{values['name']}.py", "width + 1", "width")
    return solve(workspace, values)


def spoil_name(workspace, values):
    return values["functions"][0]
