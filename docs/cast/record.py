#!/usr/bin/env python3
"""Records docs/cast/terminal.cast and terminal.svg: crow-cli on a pseudo terminal, with a scripted model.

    cargo build -p crow-cli && cargo build -p crow-testkit --example scripted-model
    pip install pyte==0.8.2
    python3 docs/cast/record.py [DIRECTORY OF THE PROGRAMS, target/debug]

The home and the project are temporary directories, and nothing of this machine is recorded.
"""

import fcntl
import html
import json
import os
import pty
import re
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

import pyte

COLUMNS, ROWS = 84, 26
TIMEOUT = 30
# Longer pauses are cut to this.
PAUSE_MAX = 1.6
# Seconds between two frames of the image.
FRAME_MIN = 0.12
CELL_WIDTH, CELL_HEIGHT, MARGIN = 8.4, 18, 12
FOREGROUND, BACKGROUND = "#d4d4d4", "#1e1e2e"
COLORS = {
    "black": "#45475a", "red": "#f38ba8", "green": "#a6e3a1", "brown": "#f9e2af", "blue": "#89b4fa",
    "magenta": "#cba6f7", "cyan": "#94e2d5", "white": "#bac2de", "brightblack": "#7f849c", "brightred": "#f38ba8",
    "brightgreen": "#a6e3a1", "brightbrown": "#f9e2af", "brightyellow": "#f9e2af", "brightblue": "#89b4fa",
    "brightmagenta": "#cba6f7", "brightcyan": "#94e2d5", "brightwhite": "#ffffff",
}
HERE = Path(__file__).resolve().parent
SOURCE = 'def greet(name):\n    return "Hello, " + name\n'


def main():
    programs = Path(sys.argv[1] if len(sys.argv) > 1 else HERE.parent.parent / "target/debug").resolve()
    with tempfile.TemporaryDirectory() as directory:
        output = record_story(programs, Path(directory))
    events = shorten_pauses(output)
    header = {"version": 2, "width": COLUMNS, "height": ROWS, "title": "crow-cli", "env": {"TERM": "xterm-256color"}}
    lines = [json.dumps(header)] + [json.dumps([round(at, 3), "o", text]) for at, text in events]
    (HERE / "terminal.cast").write_text("\n".join(lines) + "\n")
    (HERE / "terminal.svg").write_text(draw_frames(events))


def record_story(programs, home):
    model = subprocess.Popen(
        [programs / "examples/scripted-model"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    url = model.stdout.readline().strip()
    for line in story_of_the_model():
        model.stdin.write(line + "\n")
        model.stdin.flush()
        model.stdout.readline()
    project = home / "project"
    project.mkdir()
    (home / ".crow").mkdir(mode=0o700)
    (project / "greet.py").write_text(SOURCE)
    (home / ".crow/config.yaml").write_text(
        f"providers:\n  local: {{ base_url: '{url}' }}\n"
        "models:\n  small: { provider: local, model: scripted, context_window: 32000 }\n"
    )
    try:
        return play_user(programs / "crow-cli", home, project)
    finally:
        model.stdin.close()
        model.wait()


def story_of_the_model():
    edit = {"file_path": "greet.py", "old_string": 'return "Hello, " + name', "new_string": 'return f"Hello, {name}!"'}
    command = {"command": "python3 -c 'from greet import greet; print(greet(\"Crow\"))'"}
    yield 'aside text "Greeting"'
    yield f'text "I read the function first. " | call read {json.dumps({"file_path": "greet.py"})}'
    yield f'text "An f-string is shorter, and the greeting gets its mark. " | call edit {json.dumps(edit)}'
    yield f'text "Now I run it. " | call terminal {json.dumps(command)}'
    yield 'text "Done: `greet` uses an **f-string** and ends with an exclamation mark. I ran it once:\\n\\n- `greet(\\"Crow\\")` is `Hello, Crow!`"'


def play_user(program, home, project):
    terminal, program_end = pty.openpty()
    fcntl.ioctl(program_end, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8"}
    child = subprocess.Popen(
        ["setsid", "-c", program], stdin=program_end, stdout=program_end, stderr=program_end, cwd=project, env=env
    )
    os.close(program_end)
    user = User(terminal)
    user.wait_for("· ask")
    user.watch(0.8)
    user.type_text("use an f-string in greet.py, end with an exclamation mark, and run it")
    user.press("\r")
    user.wait_for("Allow")
    user.watch(2.0)
    user.press("y")
    user.wait_for("print(greet")
    user.wait_for("Allow")
    user.watch(2.0)
    user.press("y")
    user.wait_for("I ran it once")
    user.wait_for("Ask anything")
    user.watch(2.5)
    user.press("\x04")
    user.wait_for("continue  ")
    user.watch(1.5)
    child.wait(TIMEOUT)
    return user.output


class User:
    """Types at a terminal and records what the program writes."""

    def __init__(self, terminal):
        self.terminal, self.output, self.started_at = terminal, [], time.monotonic()
        self.screen = pyte.Screen(COLUMNS, ROWS)
        self.stream = pyte.ByteStream(self.screen)

    def press(self, keys):
        os.write(self.terminal, keys.encode())

    def type_text(self, text):
        for letter in text:
            self.press(letter)
            self.watch(0.035)
        self.watch(0.4)

    def wait_for(self, text):
        deadline = time.monotonic() + TIMEOUT
        while text not in "\n".join(self.screen.display):
            if time.monotonic() > deadline:
                sys.exit(f"waited in vain for {text!r}:\n" + "\n".join(self.screen.display))
            self.watch(0.05)

    def watch(self, seconds):
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            if not select.select([self.terminal], [], [], left)[0]:
                continue
            try:
                data = os.read(self.terminal, 65536)
            except OSError:
                # The program has ended.
                return
            if b"\x1b[6n" in data:
                row, column = self.screen.cursor.y + 1, self.screen.cursor.x + 1
                self.press(f"\x1b[{row};{column}R")
            if b"\x1b[c" in data:
                self.press("\x1b[?62;22c")
            self.output.append((time.monotonic() - self.started_at, data))
            self.stream.feed(without_unknown(data))


def without_unknown(data):
    """Removes sequences that pyte would print: private ones with `>`, `<`, `=` or `?…u`."""
    return re.sub(rb"\x1b\[[<>=?][0-9;]*[a-ln-zA-Z]", lambda m: m[0] if m[0][2:3] == b"?" and m[0][-1:] in b"hl" else b"", data)


def shorten_pauses(output):
    """Joins the output to text, with the first one at zero and no long pause."""
    events, now, last, rest = [], 0.0, output[0][0], b""
    for at, data in output:
        now += min(at - last, PAUSE_MAX)
        last = at
        data = rest + data
        end = len(data)
        while end > 0:
            try:
                text = data[:end].decode()
                break
            except UnicodeDecodeError:
                end -= 1
        rest = data[end:]
        if end:
            events.append((now, text))
    return events


def draw_frames(events):
    screen = pyte.Screen(COLUMNS, ROWS)
    stream = pyte.ByteStream(screen)
    frames, total = [], events[-1][0] + PAUSE_MAX
    for index, (at, text) in enumerate(events):
        stream.feed(without_unknown(text.encode()))
        next_at = events[index + 1][0] if index + 1 < len(events) else total
        if next_at - at >= FRAME_MIN or next_at == total or (frames and at - frames[-1][0] >= FRAME_MIN):
            rows = draw_rows(screen)
            if not frames or frames[-1][1] != rows:
                frames.append((at, rows))
    return compose_image(frames, total)


def draw_rows(screen):
    rows = []
    for y in range(ROWS):
        cells = [screen.buffer[y][x] for x in range(COLUMNS)]
        has_cursor = screen.cursor.y == y and not screen.cursor.hidden
        rows.append(draw_row(cells, screen.cursor.x if has_cursor else None))
    return tuple(rows)


def draw_row(cells, cursor):
    """The shapes of a row, without its position."""
    shapes, x = [], 0
    while x < len(cells):
        style, start = style_of(cells[x]), x
        while x < len(cells) and style_of(cells[x]) == style:
            x += 1
        text = "".join(cell.data for cell in cells[start:x])
        foreground, background, bold, italics, underscore = style
        left = start * CELL_WIDTH
        if background:
            shapes.append(f'<rect x="{left:.1f}" width="{(x - start) * CELL_WIDTH:.1f}" height="{CELL_HEIGHT}" fill="{background}"/>')
        if text.strip():
            marks = f' fill="{foreground}"' if foreground != FOREGROUND else ""
            marks += ' font-weight="bold"' if bold else ""
            marks += ' font-style="italic"' if italics else ""
            marks += ' text-decoration="underline"' if underscore else ""
            left += (len(text) - len(text.lstrip())) * CELL_WIDTH
            width = len(text.strip()) * CELL_WIDTH
            shapes.append(f'<text x="{left:.1f}" y="13.5" textLength="{width:.1f}"{marks}>{html.escape(text.strip(), quote=False)}</text>')
    if cursor is not None:
        shapes.append(f'<rect x="{cursor * CELL_WIDTH:.1f}" width="{CELL_WIDTH}" height="{CELL_HEIGHT}" fill="{FOREGROUND}" opacity="0.6"/>')
    return "".join(shapes)


def style_of(cell):
    foreground, background = color_of(cell.fg, FOREGROUND), color_of(cell.bg, None)
    if cell.reverse:
        foreground, background = background or BACKGROUND, foreground
    return foreground, background, cell.bold, cell.italics, cell.underscore


def color_of(name, default):
    if name == "default":
        return default
    return COLORS.get(name, f"#{name}")


def compose_image(frames, total):
    """Each different row is a symbol; a frame is a group of rows that is visible for its time.

    Where nothing moves, because the viewer cannot or because the reader wishes so, the last frame is visible.
    """
    symbols, groups, styles = {}, [], []
    for index, (at, rows) in enumerate(frames):
        uses = []
        for y, row in enumerate(rows):
            if row:
                name = symbols.setdefault(row, f"r{len(symbols)}")
                uses.append(f'<use href="#{name}" y="{y * CELL_HEIGHT}"/>')
        end = frames[index + 1][0] if index + 1 < len(frames) else total
        begin, stop = 100 * at / total, 100 * end / total
        styles.append(f"@keyframes k{index}{{0%{{visibility:{'visible' if index == 0 else 'hidden'}}}"
                      f"{begin:.2f}%{{visibility:visible}}{stop:.2f}%,100%{{visibility:hidden}}}}"
                      f"#f{index}{{animation:k{index} {total:.1f}s step-end infinite}}")
        groups.append(f'<g id="f{index}" class="f">{"".join(uses)}</g>')
    width, height = COLUMNS * CELL_WIDTH + 2 * MARGIN, ROWS * CELL_HEIGHT + 2 * MARGIN
    defs = "".join(f'<g id="{name}">{row}</g>' for row, name in symbols.items())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" xml:space="preserve" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" height="{height}">'
        f"<style>text{{font:14px ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;white-space:pre}}"
        f".f{{visibility:hidden}}#f{len(frames) - 1}{{visibility:visible}}"
        f"@media(prefers-reduced-motion:no-preference){{{''.join(styles)}}}</style>"
        f'<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>'
        f'<defs>{defs}</defs><g fill="{FOREGROUND}" transform="translate({MARGIN} {MARGIN})">{"".join(groups)}</g></svg>\n'
    )


if __name__ == "__main__":
    main()
