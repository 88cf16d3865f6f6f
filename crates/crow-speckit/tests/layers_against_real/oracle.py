"""Asks the real Spec Kit what it makes of projects: one JSON question a line in, one answer a line out."""

import contextlib
import importlib.util
import io
import json
import os
import subprocess
import sys
import types
from pathlib import Path

import specify_cli
from specify_cli.extensions import HookExecutor
from specify_cli.presets import PresetResolver

PACK = Path(specify_cli.__file__).parent / "core_pack"


def load(name, place):
    spec = importlib.util.spec_from_file_location(name, PACK / place)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


common = load("common_oracle", "scripts/python/common.py")
git = load("git_oracle", "extensions/git/scripts/python/create_new_feature_branch.py")
context = load("context_oracle", "extensions/agent-context/scripts/python/update_agent_context.py")


def body(text):
    lines = text.splitlines(keepends=True)
    if lines and lines[0].rstrip("\r\n") == "---":
        for n, line in enumerate(lines[1:], start=1):
            if line.rstrip("\r\n") == "---":
                return "".join(lines[n + 1 :]).removeprefix("\n")
    return text


def page(root, name):
    try:
        return common.resolve_template_content(name, Path(root))
    except common.TemplateResolutionError:
        return None


def page_of_bash(root, name):
    path = os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]
    script = str(PACK / "scripts/bash/resolve-template.sh")
    env = {**os.environ, "SPECIFY_INIT_DIR": root, "PATH": path}
    done = subprocess.run(["bash", script, name, "--json"], capture_output=True, env=env)
    return json.loads(done.stdout)["TEMPLATE_CONTENT"] if done.returncode == 0 else None


def layers(root, name, kind):
    found = PresetResolver(Path(root)).collect_all_layers(name, kind)
    found = [layer for layer in found if layer["source"] != "core (bundled)"]
    return [[os.path.relpath(layer["path"], root), layer["strategy"]] for layer in found]


def command(root, name):
    if not any(layer[1] == "replace" for layer in layers(root, name, "command")):
        return None
    try:
        text = PresetResolver(Path(root)).resolve_content(name, "command")
    except Exception:
        return None
    return None if text is None else body(text)


def hooks(root, event, env):
    os.environ.update(env)
    executor = HookExecutor(Path(root))
    wanted = [hook for hook in executor.get_hooks_for_event(event) if executor.should_execute_hook(hook)]
    for name in env:
        del os.environ[name]
    return [[hook.get("command"), bool(hook.get("optional", True))] for hook in wanted]


def branch(root, branches, author, args):
    def lines(_root, *words, **_more):
        if words == ("branch", "-a"):
            return branches
        return [author] if words == ("config", "user.name") else []

    git._git_lines = lines
    git._local_has_git = lambda _root: True
    git._load_core_common = lambda _root: types.SimpleNamespace(get_repo_root=lambda **_more: root)
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(io.StringIO()):
            code = git.main([*args, "--dry-run", "--json"])
    except SystemExit:
        return None
    return json.loads(said.getvalue())["BRANCH_NAME"] if code == 0 else None


def upsert(root, text, section):
    path = os.path.join(root, "A.md")
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(text)
    context._upsert_section(path, "<<", ">>", section)
    with open(path, encoding="utf-8", newline="") as file:
        return file.read()


def begin(root):
    specify = str(Path(sys.executable).with_name("specify"))
    init = ["init", "--here", "--force", "--script", "sh", "--ignore-agent-tools", "--non-interactive"]
    generic = ["--integration", "generic", "--integration-options=--commands-dir .crow/commands/"]
    for words in [
        init + generic,
        ["extension", "add", "git"],
        ["extension", "add", "agent-context"],
        ["extension", "add", "bug"],
        ["preset", "add", "lean"],
    ]:
        subprocess.run([specify, *words], cwd=root, check=True, stdout=subprocess.DEVNULL)
    said = subprocess.run([specify, "artifact", "list", "--json"], cwd=root, check=True, capture_output=True)
    return json.loads(said.stdout)


for question in sys.stdin:
    asked, *words = json.loads(question)
    print(json.dumps(globals()[asked](*words)), flush=True)
