"""Where a function is defined, among calls and comments with its name."""

import re

GROUP = "smallest"


def make(workspace, draw):
    function = draw.word()
    files = [f"src/{draw.word()}.py" for _ in range(4)]
    for i, name in enumerate(files):
        lines = []
        for _ in range(draw.randint(2, 5)):
            lines += [f"def {draw.word()}(value):", f"    return value + {draw.randint(1, 99)}", ""]
        if i == 2:
            line = len(lines) + 1
            lines += [f"def {function}(value):", "    return value", ""]
        else:
            lines += [f"# Uses {function} of another file.", f"RESULT = {function}({i})", f"def {function}_more(value):", "    return 0"]
        workspace.write(name, "\n".join(lines) + "\n")
    return {"function": function, "path": files[2], "line": line}


def check(outcome):
    outcome.require_unchanged()
    path, line = outcome.values["path"], outcome.values["line"]
    paths = set(re.findall(r"src/\w+\.py", outcome.answer))
    outcome.require(paths == {path}, f"the answer has {sorted(paths)}, not {path}")
    numbers = {int(number) for number in re.findall(r"\d+", re.sub(r"\S*src/\w+\.py", " ", outcome.answer))}
    outcome.require(numbers == {line}, f"the answer has the numbers {sorted(numbers)}, not {line}")


def solve(workspace, values):
    return f"In `./{values['path']}`, on line {values['line']}."


def spoil_line(workspace, values):
    return f"{values['path']}:{values['line'] + 1}"


def spoil_file(workspace, values):
    return f"On line {values['line']} of src/other.py"


def spoil_by_all_places(workspace, values):
    return f"{values['path']}:{values['line']} src/other.py:1"
