"""The directory that an agent works in, and the names and numbers that are drawn for it."""

from __future__ import annotations

import hashlib
import os
import random
import resource
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

RUN_SECONDS_MAX = 120
"""A check starts programs that an agent wrote: they may hang. Compilers on a busy machine need most of this."""

OUTPUT_BYTES_MAX = 1 << 20

FILE_BYTES_MAX = 256 << 20
"""A program that never ends to write must not fill the disk; no compiler here writes as much."""

CONSONANTS = "bdfgklmnprstvz"
VOWELS = "aeiou"

Command = Callable[[Sequence[str], Path], list[str]]
"""Converts a command and its working directory into the command that is started, such as one that is confined."""


class Draw(random.Random):
    """Draws what differs between runs, so that no answer can be known before."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._words: set[str] = set()

    def word(self, syllables: int = 3) -> str:
        """Returns a pronounceable word that was not drawn before."""
        while True:
            word = "".join(self.choice(CONSONANTS) + self.choice(VOWELS) for _ in range(syllables))
            if word not in self._words:
                self._words.add(word)
                return word

    def words(self, n: int) -> list[str]:
        return [self.word() for _ in range(n)]


class Workspace:
    """A directory with what a task and its check do there."""

    def __init__(self, path: Path, command: Command | None = None) -> None:
        self.path = path
        self._command = command or (lambda argv, _cwd: list(argv))

    def file(self, name: str) -> Path:
        return self.path / name

    def write(self, name: str, content: str | bytes) -> None:
        path = self.file(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)

    def read_bytes(self, name: str) -> bytes:
        """Returns the content of a regular file; nothing for what is missing, a link or a directory."""
        path = self.file(name)
        if path.is_symlink() or not path.is_file():
            return b""
        return path.read_bytes()

    def read(self, name: str) -> str:
        return self.read_bytes(name).decode(errors="replace")

    def replace(self, name: str, old: str, new: str) -> None:
        text = self.read(name)
        if text.count(old) != 1:
            raise ValueError(f"{name} contains {old!r} {text.count(old)} times")
        self.write(name, text.replace(old, new))

    def names(self) -> list[str]:
        """Returns the names of all files and links, without those of `.git` and of caches."""
        names = []
        for directory, directories, files in os.walk(self.path):
            directories[:] = [name for name in directories if name not in (".git", "__pycache__", ".pytest_cache")]
            names += [str((Path(directory) / name).relative_to(self.path)) for name in files]
        return sorted(names)

    def hashes(self) -> dict[str, str]:
        hashes = {}
        for name in self.names():
            path = self.file(name)
            if path.is_symlink():
                content = os.readlink(path).encode()
            else:
                # A pipe would never end.
                content = path.read_bytes() if path.is_file() else b"special"
            hashes[name] = hashlib.sha256(content).hexdigest()
        return hashes

    def run(self, *argv: str, stdin: str = "", seconds: float = RUN_SECONDS_MAX) -> subprocess.CompletedProcess[str]:
        """Runs a program in the workspace; one that does not end in time has exit code 124."""
        command = self._command(argv, self.path)
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
            try:
                code = subprocess.run(
                    command,
                    cwd=self.path,
                    input=stdin.encode(),
                    stdout=output,
                    stderr=errors,
                    timeout=seconds,
                    env=environment,
                    preexec_fn=_limit_files,
                    check=False,
                ).returncode
            except subprocess.TimeoutExpired:
                code = 124
            return subprocess.CompletedProcess(command, code, _read_start(output), _read_start(errors))

    def git(self, *arguments: str) -> str:
        """Runs git without the configuration of users and systems; returns its output, or nothing if it failed."""
        identity = ["-c", "user.name=Eval", "-c", "user.email=eval@example.org", "-c", "core.hooksPath=/dev/null"]
        done = self.run("git", *identity, "-c", "core.fsmonitor=false", "-c", "commit.gpgsign=false", *arguments)
        return done.stdout if done.returncode == 0 else ""

    def start_repository(self) -> None:
        """Makes a repository whose first commit has all files."""
        self.git("init", "--quiet", "--initial-branch=main")
        # Agents commit as well, and have no configuration of their own.
        self.git("config", "user.name", "Eval")
        self.git("config", "user.email", "eval@example.org")
        self.commit_all("Start")

    def commit_all(self, message: str) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)


def _limit_files() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES_MAX, FILE_BYTES_MAX))


def _read_start(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read(OUTPUT_BYTES_MAX).decode(errors="replace")
