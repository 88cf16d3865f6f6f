"""Crow as an agent of the first Terminal-Bench: `tb run --agent-import-path adapters.terminal_bench_agent:CrowAgent`."""

from __future__ import annotations

import shlex
import tempfile
from pathlib import Path
from typing import Any

from terminal_bench.agents.base_agent import AgentResult
from terminal_bench.agents.installed_agents.abstract_installed_agent import AbstractInstalledAgent
from terminal_bench.terminal.models import TerminalCommand
from terminal_bench.terminal.tmux_session import TmuxSession

from .crow_setup import ModelChoice, find_program

DIRECTORY = "/installed-agent"

INSTALL_SCRIPT = f"""chmod 755 {DIRECTORY}/crow-cli
mkdir -p "$HOME/.crow"
cp {DIRECTORY}/config.yaml "$HOME/.crow/config.yaml"
{DIRECTORY}/crow-cli --version
"""


class CrowAgent(AbstractInstalledAgent):
    def __init__(self, model_name: str, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._model = ModelChoice(model_name)
        self._files = Path(tempfile.mkdtemp(prefix="crow-terminal-bench-"))

    @staticmethod
    def name() -> str:
        return "crow-cli"

    @property
    def _env(self) -> dict[str, str]:
        return {self._model.key_variable: self._model.key, "PAGER": "cat"}

    @property
    def _install_agent_script_path(self) -> Path:
        path = self._files / "install-agent.sh"
        path.write_text(INSTALL_SCRIPT)
        return path

    def perform_task(self, instruction: str, session: TmuxSession, logging_dir: Path | None = None) -> AgentResult:
        config = self._files / "config.yaml"
        config.write_text(self._model.config())
        session.copy_to_container(config, container_dir=DIRECTORY, container_filename="config.yaml")
        session.copy_to_container(find_program(), container_dir=DIRECTORY, container_filename="crow-cli")
        return super().perform_task(instruction, session, logging_dir)

    def _run_agent_commands(self, instruction: str) -> list[TerminalCommand]:
        command = f"{DIRECTORY}/crow-cli run --plain --yes -- {shlex.quote(instruction)}"
        return [TerminalCommand(command=command, max_timeout_sec=float("inf"), block=True)]
