"""A wrong boundary in Python."""

import json

GROUP = "edit"


def make(workspace, draw):
    name = draw.word()
    workspace.write(
        f"{name}.py",
        '''def paginate(items, size):
    """Returns the items as a list of pages of `size` items; the last page may have fewer, and is never empty."""
    pages = []
    for i in range(len(items) // size):
        pages.append(items[i * size : (i + 1) * size])
    return pages


def count_pages(items, size):
    """Returns the number of pages."""
    return len(paginate(items, size))
''',
    )
    return {"name": name, "numbers": [draw.randint(1, 99) for _ in range(draw.randint(7, 20))], "size": draw.randint(2, 6)}


def check(outcome):
    name, numbers = outcome.values["name"], outcome.values["numbers"]
    outcome.require_unchanged(f"{name}.py")
    cases = [(numbers, outcome.values["size"]), (numbers[:6], 3), ([], 3), (numbers[:1], 5), (numbers[:7], 3)]
    code = f"""
import json, sys
sys.path.insert(0, '.')
import {name}
print(json.dumps([[{name}.paginate(items, size), {name}.count_pages(items, size)] for items, size in json.loads(sys.argv[1])]))
"""
    pages = [[items[i : i + size] for i in range(0, len(items), size)] for items, size in cases]
    result = json.loads(outcome.run_python(code, json.dumps(cases)) or "null")
    outcome.require(result == [[case, len(case)] for case in pages], f"the pages are {result}")


def solve(workspace, values):
    workspace.replace(f"{values['name']}.py", "range(len(items) // size)", "range((len(items) + size - 1) // size)")
    return "Fixed."


def spoil_by_empty_page(workspace, values):
    workspace.replace(f"{values['name']}.py", "range(len(items) // size)", "range(len(items) // size + 1)")
    return "Fixed."
