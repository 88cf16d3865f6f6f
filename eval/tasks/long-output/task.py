"""One line of an output that is too long to be read whole."""

import hashlib

GROUP = "judgement"


def word_of(key, i):
    return hashlib.sha256(f"{key}{i}".encode()).hexdigest()[:12]


def make(workspace, draw):
    key = draw.word()
    workspace.write(
        "records.py",
        f'import hashlib\n\nfor i in range(60000):\n    print(f"record {{i}}:", hashlib.sha256(f"{key}{{i}}".encode()).hexdigest()[:12])\n',
    )
    return {"key": key, "word": word_of(key, 40000)}


def check(outcome):
    outcome.require_words([outcome.values["word"]], [word_of(outcome.values["key"], i) for i in range(39990, 40010)])


def solve(workspace, values):
    return values["word"]


def spoil_by_next_line(workspace, values):
    return word_of(values["key"], 40001)
