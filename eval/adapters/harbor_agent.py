"""Crow as an agent of Harbor, which runs Terminal-Bench 2.0: `--agent adapters.harbor_agent:CrowAgent`.

Harbor drives it over ACP and writes its trajectory; this only brings the program and a configuration into the container.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from harbor.agents.installed.acp import AcpAgent
from harbor.environments.base import BaseEnvironment

from .crow_setup import PROGRAM, ModelChoice, find_program

LAUNCHER = "/installed-agent/crow-acp"

CONFIG = "/installed-agent/crow-config.yaml"

LAUNCHER_SCRIPT = f"""#!/bin/sh
mkdir -p "$HOME/.crow" && cp {CONFIG} "$HOME/.crow/config.yaml" && exec {PROGRAM} acp
"""

REGISTRY_ENTRY = {
    "id": "crow-cli",
    "name": "Crow",
    "version": "local",
    "description": "A coding agent that speaks ACP",
    "distribution": {"local": {"cmd": LAUNCHER, "env": {"PAGER": "cat", "BASH_ENV": "/root/.bashrc"}}},
}


class CrowAgent(AcpAgent):
    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, registry_entry=REGISTRY_ENTRY, auth_policy="disabled", **options)

    @staticmethod
    def name() -> str:
        return "crow-cli"

    async def install(self, environment: BaseEnvironment) -> None:
        await super().install(environment)
        await environment.upload_file(find_program(), PROGRAM)
        await self.exec_as_root(environment, f"chmod 755 {PROGRAM}")

    async def configure(self, environment: BaseEnvironment) -> None:
        await super().configure(environment)
        model = ModelChoice(self.model_name or "")
        with tempfile.TemporaryDirectory() as directory:
            for target, text in ((CONFIG, model.config()), (LAUNCHER, LAUNCHER_SCRIPT)):
                source = Path(directory) / Path(target).name
                source.write_text(text)
                await environment.upload_file(source, target)
        await self.exec_as_root(environment, f"chmod 755 {LAUNCHER} && chmod 644 {CONFIG}")
