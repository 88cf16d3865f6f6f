"""A fresh home, workspace and temporary directory for one run, and the commands that are confined to them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

HARNESS = Path(__file__).resolve().parent

WORLDS = Path("/var/tmp")
"""Not /tmp, which is the world's own inside of it."""

MODEL_PORT = 18099
"""Where the model is for the agent. Each world has a loopback of its own, so one number is enough."""

SECRET_DIRECTORIES = (".ssh", ".aws", ".azure", ".gnupg", ".config", ".crow", ".kimi", ".docker", ".kube")
"""Directories of the user's home that usually have keys. Without a network nothing leaves but to the model."""

KEPT_VARIABLES = ("LANG", "LC_ALL", "TERM", "TZ", "SSL_CERT_FILE", "JAVA_HOME", "GOROOT")


class World:
    """The directory of a run; gone when the context ends."""

    def __init__(self, hidden: Sequence[Path] = (), is_confined: bool = True) -> None:
        self.hidden = [HARNESS.parent, *hidden, *(Path.home() / name for name in SECRET_DIRECTORIES)]
        self.is_confined = is_confined

    def __enter__(self) -> World:
        parent = tempfile.mkdtemp(prefix="crow-eval-", dir=WORLDS)
        self._parent = Path(parent)
        self.path = self._parent / "world"
        self.home = self.path / "home"
        self.project = self.path / "project"
        for directory in (self.home, self.project, self.path / "tmp"):
            directory.mkdir(parents=True)
        self.model_socket = self.path / "model.sock"
        return self

    def __exit__(self, *_error: object) -> None:
        shutil.rmtree(self._parent, ignore_errors=True)

    def environment(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """Returns the variables of the programs in this world: none of the caller's, except where programs are."""
        kept = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
        toolchains = {
            name: os.environ.get(name, str(Path.home() / directory))
            for name, directory in (("RUSTUP_HOME", ".rustup"), ("PYENV_ROOT", ".pyenv"))
        }
        return {
            **kept,
            **{name: path for name, path in toolchains.items() if os.path.isdir(path)},
            "HOME": str(self.home),
            "PATH": f"{Path(sys.base_prefix) / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "TMPDIR": "/tmp" if self.is_confined else str(self.path / "tmp"),
            "GOFLAGS": "-mod=mod",
            "PYTHONDONTWRITEBYTECODE": "1",
            **(more or {}),
        }

    def command(
        self, argv: Sequence[str], cwd: Path, variables: Mapping[str, str] | None = None, has_model: bool = False
    ) -> list[str]:
        """Returns the command that runs `argv` in this world."""
        environment = self.environment(variables)
        if not self.is_confined:
            return ["env", "-i", "-C", str(cwd), *(f"{name}={value}" for name, value in environment.items()), *argv]
        spec = {
            "world": str(self.path),
            "hidden": [str(path) for path in self.hidden],
            "port": MODEL_PORT if has_model else 0,
            "argv": list(argv),
            "cwd": str(cwd),
            "environment": environment,
        }
        handle, path = tempfile.mkstemp(suffix=".json", dir=self._parent)
        with os.fdopen(handle, "w") as file:
            json.dump(spec, file)
        return [*NAMESPACES, sys.executable, str(HARNESS / "confinement.py"), path]


NAMESPACES = ["unshare", "--map-root-user", "--net", "--mount", "--pid", "--ipc", "--fork", "--kill-child", "--mount-proc"]


def find_confinement_fault() -> str | None:
    """Returns why programs cannot be confined here, or None if they can."""
    if shutil.which("unshare") is None:
        return "unshare (util-linux) is not installed"
    with World() as world:
        done = subprocess.run(world.command(["true"], world.project), capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else (done.stderr.strip().splitlines() or ["namespaces cannot be made"])[-1]
