"""Which program an agent is, and how it is told where its model is."""

from __future__ import annotations

import os
import re
import shutil
import string
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]

AGENTS = ROOT / "eval" / "agents"


@dataclass(frozen=True)
class ModelAddress:
    """A model behind the proxy, as an agent sees it."""

    base_url: str
    name: str
    window: int


class AgentDefinition:
    """A file of `agents`, named as `NAME` or `NAME:KEY=VALUE,KEY=VALUE`.

    Keys are `program`, `label` (the name in results), and those of the file's `settings`. Raises ValueError for others.
    """

    def __init__(self, label: str) -> None:
        self.label = label
        name, _, rest = label.partition(":")
        path = Path(name) if name.endswith(".toml") else AGENTS / f"{name}.toml"
        if not path.is_file():
            names = ", ".join(sorted(path.stem for path in AGENTS.glob("*.toml")))
            raise ValueError(f"unknown agent {name}; agents are {names}, or the path of a .toml file")
        self._table: dict[str, Any] = tomllib.loads(path.read_text())
        self.settings: dict[str, str] = dict(self._table.get("settings", {}))
        self._program = self._table["program"]
        for pair in filter(None, rest.split(",")):
            key, _, value = pair.partition("=")
            if key == "program":
                self._program = [str(Path(value).resolve())]
            elif key == "label":
                self.label = value
            elif key in self.settings:
                self.settings[key] = value
            else:
                raise ValueError(f"{label}: {key} is no setting; settings are program, label, {', '.join(self.settings)}")
        guard = self._table.get("guard")
        self.guard = re.compile(guard) if guard else None

    def find_program(self) -> str:
        """Returns the path of the first program that is there. Raises ValueError if none is."""
        places = {"root": str(ROOT), "agents": os.environ.get("AGENTS", str(ROOT / "tests/clients/agents"))}
        candidates = [string.Template(candidate).substitute(places) for candidate in self._program]
        for candidate in candidates:
            if found := shutil.which(candidate):
                return found
        raise ValueError(f"{self.label} is not installed: looked for {', '.join(candidates)}")

    def command(self) -> list[str]:
        return [self.find_program(), *self._table.get("arguments", [])]

    def environment(self, home: Path) -> dict[str, str]:
        variables = self._table.get("environment", {})
        return {name: string.Template(value).substitute(home=home) for name, value in variables.items()}

    def mcp_servers(self) -> list[dict[str, Any]]:
        """Returns the MCP servers that a client of this agent has to name, as the protocol writes them."""
        program = self.find_program()
        return [
            {
                "name": server["name"],
                "command": string.Template(server["command"]).substitute(program=program),
                "args": server.get("arguments", []),
                "env": [],
            }
            for server in self._table.get("mcp_servers", [])
        ]

    def write_files(self, home: Path, model: ModelAddress) -> None:
        """Writes the configuration into a fresh home."""
        values = {**self.settings, "base_url": model.base_url, "model": model.name, "window": model.window, "home": home}
        for name, content in self._table.get("files", {}).items():
            path = home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(string.Template(content).substitute(values).lstrip())
