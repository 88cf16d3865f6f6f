"""A default that a second file overrides."""

GROUP = "explain"


def make(workspace, draw):
    key, other, third = draw.words(3)
    numbers = draw.sample(range(100, 999), 4)
    first, second, fallback, profile = numbers
    workspace.write("defaults.py", f"BASE = {{'{key}': {first}, '{other}': {second}, '{third}': {fallback}}}\n\nRELEASE = {{'{key}': {profile}}}\n")
    workspace.write(
        "settings.py",
        f'''import os

from defaults import BASE, RELEASE


def load(file_values=None):
    """Later values win: base, release, file, environment."""
    values = {{**BASE, **RELEASE, **(file_values or {{}})}}
    for name in values:
        if found := os.environ.get(name.upper()):
            values[name] = int(found)
    return values


def example():
    # A file may say {key} = {second}.
    return load({{"{key}": {second}}})
''',
    )
    return {"key": key, "value": profile}


def check(outcome):
    outcome.require_unchanged()
    outcome.require_number(outcome.values["value"])


def solve(workspace, values):
    return f"{values['value']}"


def spoil_by_base(workspace, values):
    return workspace.read("defaults.py").split(": ")[1].split(",")[0]
