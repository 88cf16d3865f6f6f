"""What Crow needs in a container of another harness: its program and a configuration."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = "/usr/local/bin/crow-cli"

PROVIDERS = {
    "anthropic": ("https://api.anthropic.com/v1", "ANTHROPIC_API_KEY", "messages"),
    "dashscope": ("https://dashscope-intl.aliyuncs.com/compatible-mode/v1", "DASHSCOPE_API_KEY", "chat"),
    "deepseek": ("https://api.deepseek.com/v1", "DEEPSEEK_API_KEY", "chat"),
    "gemini": ("https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY", "chat"),
    "groq": ("https://api.groq.com/openai/v1", "GROQ_API_KEY", "chat"),
    "mistral": ("https://api.mistral.ai/v1", "MISTRAL_API_KEY", "chat"),
    "openai": ("https://api.openai.com/v1", "OPENAI_API_KEY", "responses"),
    "openrouter": ("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", "chat"),
    "xai": ("https://api.x.ai/v1", "XAI_API_KEY", "chat"),
    "zai": ("https://api.z.ai/api/paas/v4", "ZAI_API_KEY", "chat"),
}
"""The base URL of a provider, the variable with its key, and its API."""


class ModelChoice:
    """A model as other harnesses name it, `PROVIDER/MODEL`.

    `CROW_EVAL_BASE_URL`, `CROW_EVAL_KEY_VARIABLE` and `CROW_EVAL_API` describe a provider that is not known, and
    `CROW_EVAL_WINDOW` is the context window. Raises ValueError if the provider is unknown.
    """

    def __init__(self, name: str, environment: Mapping[str, str] = os.environ) -> None:
        provider, separator, model = name.partition("/")
        if not separator or not model:
            raise ValueError(f"{name!r} is not of the form PROVIDER/MODEL")
        if base_url := environment.get("CROW_EVAL_BASE_URL"):
            key_variable = environment.get("CROW_EVAL_KEY_VARIABLE", "CROW_EVAL_API_KEY")
            self.base_url, self.key_variable, self.api = base_url, key_variable, environment.get("CROW_EVAL_API", "chat")
        elif provider in PROVIDERS:
            self.base_url, self.key_variable, self.api = PROVIDERS[provider]
        else:
            raise ValueError(f"unknown provider {provider}; known are {', '.join(PROVIDERS)}, and CROW_EVAL_BASE_URL for another")
        self.name, self.model = name, model
        self.window = int(environment.get("CROW_EVAL_WINDOW", "128000"))
        self.key = environment.get(self.key_variable, "")

    def config(self) -> str:
        """Returns a configuration for a container, which is its own sandbox. It names the key's variable; JSON is YAML."""
        provider = {"base_url": self.base_url, "api_key": f"${{{self.key_variable}}}", "api": self.api}
        model = {"provider": "eval", "model": self.model, "context_window": self.window}
        permissions = {"mode": "auto", "sandbox": "off"}
        config = {"providers": {"eval": provider}, "models": {self.name: model}, "permissions": permissions}
        return json.dumps(config, indent=2) + "\n"


def find_program() -> Path:
    """Returns the program to copy into containers: `CROW`, or that of the packages, or the release build.

    A container may have an older glibc than this machine: the program of `just packages` needs 2.17, the musl build none.
    Raises FileNotFoundError if there is none.
    """
    chosen = [Path(os.environ["CROW"])] if "CROW" in os.environ else []
    for candidate in [*chosen, *sorted((ROOT / "target").glob("*/release/crow-cli")), ROOT / "target/release/crow-cli"]:
        if candidate.is_file():
            return candidate
    raise FileNotFoundError("there is no crow-cli to copy: set CROW, or run `just packages`")
