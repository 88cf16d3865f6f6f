#!/usr/bin/env python3
"""Installs each package in a fresh place, runs the demo and one turn, removes it, and prints the times.

    packaging/test.py [NAME …]

NAME is archive, installer, wheel, npm, deb, image or recipes; without one, all run. The turn uses a model on this
machine that always says the same. What a check needs and is not installed makes the check fail.
"""

import contextlib
import functools
import hashlib
import http.server
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import urllib.parse
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

from build import ROOT, version
from scripted_model import REPLY, ScriptedModel

OUT = ROOT / "target" / "packages"
# The release workflow adds 3.14, which Debian has not yet.
PYTHONS = os.environ.get("CROW_TEST_PYTHONS", "3.10 3.11 3.12 3.13").split()
# The oldest and the newest release of Debian with a Python that the wheel supports, and one that is older than both.
SUITES = ["bullseye", "bookworm", "trixie"]


class Failure(Exception):
    """A check found something wrong."""


def expect(condition: object, message: str) -> None:
    if not condition:
        raise Failure(message)


def package(pattern: str) -> Path:
    found = sorted(OUT.glob(pattern))
    expect(len(found) == 1, f"{OUT} has {len(found)} files {pattern}")
    return found[0]


def run(*command: str | Path, check: bool = True, timeout: int = 600, **settings) -> str:
    """Runs a command and returns what it printed, both streams."""
    words = [str(word) for word in command]
    done = subprocess.run(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout, **settings
    )
    if check and done.returncode != 0:
        raise Failure(f"{' '.join(words)} ended with {done.returncode}:\n{done.stdout[-4000:]}")
    return done.stdout


def exercise(program: list[str | Path], home: Path, model: ScriptedModel, in_root: str = "") -> None:
    """Runs the version, the demo and one turn of an installed program with an empty home directory."""
    environment = {"HOME": in_root or str(home), "PATH": os.environ["PATH"], "TERM": "dumb", "LANG": "C.UTF-8"}
    settings = {"env": environment} if in_root else {"env": environment, "cwd": home}
    expect(version() in run(*program, "--version", **settings), "another version")
    expect("done: the tests pass" in run(*program, "demo", **settings), "the demo did not reach its end")
    model.write_config(home)
    # The image runs as another user.
    os.chown(home / ".crow", home.stat().st_uid, home.stat().st_gid)
    expect(REPLY in run(*program, "run", "Say hello", **settings), "the model's reply is not in the output")


def check_links(page: str) -> None:
    """A page of a package is read away from the repository, so its links are whole, and to files that exist."""
    for link in re.findall(r"\]\(([^)]*)\)", page):
        expect(link.startswith("https://"), f"{link} leads nowhere from a package")
        if found := re.match(r"https://github\.com/crow-cli/crow-cli/blob/main/([^#]*)", link):
            expect((ROOT / found[1]).is_file(), f"{found[1]} does not exist")


def check_archive(model: ScriptedModel, scratch: Path) -> None:
    with tarfile.open(package("crow-cli-linux-x86_64.tar.gz")) as archive:
        names = archive.getnames()
        archive.extractall(scratch, filter="data")
    for name in ["crow-cli", "LICENSE", "THIRD-PARTY-LICENSES.txt", "man/crow-cli.1", "completions/_crow-cli"]:
        expect(name in names, f"{name} is not in the archive")
    check_links((scratch / "README.md").read_text())
    run("bash", "-n", scratch / "completions" / "crow-cli.bash")
    exercise([scratch / "crow-cli"], make_directory(scratch / "home"), model)
    symbols = run("objdump", "-T", scratch / "crow-cli")
    needed = max(tuple(int(part) for part in found.split(".")) for found in re.findall(r"GLIBC_([0-9.]+)", symbols))
    expect(needed <= (2, 17), f"the program needs glibc {needed}")


def make_directory(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    return path


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_arguments) -> None:
        pass


@contextlib.contextmanager
def serving(handler: Callable[..., http.server.BaseHTTPRequestHandler]) -> Iterator[str]:
    """Serves on a free port of loopback."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def check_installer(model: ScriptedModel, scratch: Path) -> None:
    releases = scratch / "releases"
    for folder in ["latest/download", f"download/v{version()}"]:
        make_directory(releases / folder)
        for name in ["SHA256SUMS", "crow-cli-linux-x86_64.tar.gz"]:
            shutil.copy2(OUT / name, releases / folder)
    home = make_directory(scratch / "home")
    with serving(functools.partial(QuietHandler, directory=releases)) as url:
        environment = {"HOME": str(home), "PATH": os.environ["PATH"], "CROW_INSTALL_URL": url}
        for shell in ["sh", "dash", "bash"]:
            output = run(shell, ROOT / "packaging" / "install.sh", env=environment)
            expect("Add it to your PATH" in output, "the installer does not tell the PATH")
        run("sh", ROOT / "packaging" / "install.sh", version(), env=environment)
        program = home / ".local" / "bin" / "crow-cli"
        exercise([program], home, model)
        program.unlink()
        sums = releases / "latest" / "download" / "SHA256SUMS"
        sums.write_text(re.sub(r"^[0-9a-f]{8}", "00000000", sums.read_text(), flags=re.MULTILINE))
        output = run("sh", ROOT / "packaging" / "install.sh", env=environment, check=False)
        expect("nothing was installed" in output and not program.exists(), f"a wrong checksum: {output}")
        output = run("sh", ROOT / "packaging" / "install.sh", "9.9.9", env=environment, check=False)
        expect("could not download" in output, f"a release that does not exist: {output}")
    left = [path for path in (home / ".local").rglob("*") if path.is_file()]
    expect(not left, f"left behind: {left}")


def check_wheel(model: ScriptedModel, scratch: Path) -> None:
    wheel = package("crow_cli-*.whl")
    with zipfile.ZipFile(wheel) as members:
        metadata = next(name for name in members.namelist() if name.endswith(".dist-info/METADATA"))
        check_links(members.read(metadata).decode())
    for name in PYTHONS:
        started = time.monotonic()
        place = scratch / name
        run(find_python(name), "-m", "venv", place)
        run(place / "bin" / "pip", "install", "--quiet", wheel)
        installed = time.monotonic() - started
        exercise([place / "bin" / "crow-cli"], make_directory(place / "home"), model)
        exercise([place / "bin" / "python", "-m", "crow_cli"], place / "home", model)
        code = (
            "import crow_cli.sync; done = crow_cli.sync.run_once('Say hello');"
            " print(type(done).__name__, done.text, done.stop_reason)"
        )
        output = run(place / "bin" / "python", "-c", code, env=os.environ | {"HOME": str(place / "home")}, cwd=place / "home")
        expect(REPLY in output, f"run_once says {output}")
        run(place / "bin" / "pip", "uninstall", "--quiet", "--yes", "crow-cli")
        left = [path for path in place.rglob("*crow*") if ".crow" not in path.parts and "home" not in path.parts]
        expect(not left, f"left behind: {left}")
        print(f"  Python {name}: installed in {installed:.1f} s")


def find_python(name: str) -> str:
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = [str(path) for path in sorted(versions.glob(f"{name}.*/bin/python3"))]
    # A shim of pyenv runs only versions that were chosen.
    python = found[0] if found else shutil.which(f"python{name}")
    expect(python, f"Python {name} is not installed")
    return python


class Registry(http.server.BaseHTTPRequestHandler):
    """A registry of npm packages, as much of it as an installation reads."""

    tarballs: dict[str, Path] = {}

    def do_GET(self) -> None:
        path = urllib.parse.unquote(self.path).lstrip("/")
        if path.endswith(".tgz"):
            return self.answer(self.tarballs[path.removesuffix(".tgz")].read_bytes(), "application/octet-stream")
        if path not in self.tarballs:
            return self.send_error(404)
        tarball = self.tarballs[path].read_bytes()
        with tarfile.open(self.tarballs[path]) as archive:
            manifest = json.load(archive.extractfile("package/package.json"))
        manifest["dist"] = {
            "tarball": f"http://{self.headers['Host']}/{path}.tgz",
            "shasum": hashlib.sha1(tarball).hexdigest(),
        }
        packument = {"name": path, "dist-tags": {"latest": version()}, "versions": {version(): manifest}}
        self.answer(json.dumps(packument).encode(), "application/json")

    def answer(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments) -> None:
        pass


def check_npm(model: ScriptedModel, scratch: Path) -> None:
    Registry.tarballs = {
        "crow-cli": package(f"crow-cli-npm-{version()}.tgz"),
        "@crow-cli/linux-x64": package(f"crow-cli-linux-x64-{version()}.tgz"),
    }
    home, prefix = make_directory(scratch / "home"), make_directory(scratch / "prefix")
    with serving(Registry) as url:
        npm = ["npm", "--registry", url, "--cache", scratch / "cache", "--prefix", prefix]
        settings = {"env": {"HOME": str(home), "PATH": os.environ["PATH"]}, "cwd": home}
        run(*npm, "install", "--global", "crow-cli", **settings)
        program = prefix / "bin" / "crow-cli"
        exercise([program], home, model)
        check_signals(program, home)
        shutil.rmtree(prefix / "lib" / "node_modules" / "crow-cli" / "node_modules")
        output = run(program, "--version", check=False, **settings)
        expect("@crow-cli/linux-x64 is not installed" in output, f"without its platform: {output}")
        run(*npm, "uninstall", "--global", "crow-cli", **settings)
        expect(not program.is_symlink() and not list((prefix / "lib" / "node_modules").glob("*crow*")), "left behind")


def check_signals(program: Path, home: Path) -> None:
    """A signal to the launcher ends the agent, and the launcher ends as the agent did."""
    environment = {"HOME": str(home), "PATH": os.environ["PATH"]}
    agent = subprocess.Popen([program, "acp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
    request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1, "clientCapabilities": {}}}
    agent.stdin.write(json.dumps(request).encode() + b"\n")
    agent.stdin.flush()
    expect(json.loads(agent.stdout.readline())["id"] == 1, "no answer to initialize")
    agent.send_signal(signal.SIGTERM)
    expect(agent.stdout.read() == b"", "output after the signal")
    status = agent.wait(timeout=20)
    expect(status in (0, -signal.SIGTERM, 143), f"the launcher ended with {status}")


@contextlib.contextmanager
def debian_root(suite: str, scratch: Path, packages: str) -> Iterator[Path]:
    """Makes a root directory with a release of Debian."""
    root = scratch / suite
    run("mmdebstrap", "--quiet", "--variant=apt", f"--include={packages}", suite, root)
    try:
        run("mount", "--bind", "/proc", root / "proc")
        run("mount", "--bind", "/dev", root / "dev")
        yield root
    finally:
        for mount in ["proc", "dev"]:
            run("umount", root / mount, check=False)


def check_deb(model: ScriptedModel, scratch: Path) -> None:
    deb = package("crow-cli_*_amd64.deb")
    for suite in SUITES:
        with debian_root(suite, scratch, "ca-certificates") as root:
            shutil.copy2(deb, root / "root")
            inside = ["chroot", root, "env", "DEBIAN_FRONTEND=noninteractive"]
            started = time.monotonic()
            run(*inside, "apt-get", "install", "--yes", "--no-install-recommends", f"/root/{deb.name}")
            installed = time.monotonic() - started
            exercise(["chroot", root, "crow-cli"], root / "root", model, in_root="/root")
            run(*inside, "apt-get", "purge", "--yes", "crow-cli")
            left = run(*inside, "find", "/usr", "/etc", "-name", "*crow*")
            expect(not left.strip(), f"left behind: {left}")
        print(f"  Debian {suite}: installed in {installed:.1f} s")


def check_image(model: ScriptedModel, scratch: Path) -> None:
    context = make_directory(scratch / "context")
    shutil.copy2(package("crow-cli-linux-x86_64.tar.gz"), context)
    run("mmdebstrap", "--quiet", "--variant=essential", "--include=ca-certificates,git,passwd", "trixie", context / "root.tar")
    storage = ["--root", scratch / "storage", "--runroot", scratch / "run", "--storage-driver", "vfs"]
    buildah = ["buildah", *storage]
    run(
        *buildah,
        "build",
        "--isolation",
        "chroot",
        "--network",
        "host",
        "--tag",
        "crow-cli",
        "--file",
        ROOT / "packaging" / "Containerfile",
        context,
    )
    container = run(*buildah, "from", "--pull-never", "crow-cli").strip().splitlines()[-1]
    home = make_directory(scratch / "home")
    os.chown(home, 1000, 1000)
    mount = f"{home}:/home/crow:rw"
    inside = [*buildah, "run", "--isolation", "chroot", "--network", "host", "--volume", mount, container, "--", "crow-cli"]
    exercise(inside, home, model)
    expect("git version" in run(*inside[:-1], "git", "--version"), "git is not in the image")
    size = run(*buildah, "images", "--format", "{{.Size}}", "crow-cli").strip()
    print(f"  image: {size}")


def check_recipes(_model: ScriptedModel, scratch: Path) -> None:
    run(sys.executable, ROOT / "packaging" / "recipes.py", OUT / "SHA256SUMS", scratch)
    run("ruby", "-c", scratch / "homebrew" / "crow-cli.rb")
    run("nix-instantiate", "--parse", scratch / "nix" / "package.nix")
    info = run(
        "bash",
        "-c",
        'set -eu; . "$1"; type package >/dev/null; echo "$pkgname $pkgver ${sha256sums_x86_64[0]}"',
        "-",
        scratch / "aur" / "PKGBUILD",
    )
    expect(f"crow-cli-bin {version()}" in info, f"PKGBUILD: {info}")
    entry = json.loads((scratch / "acp-registry" / "crow-cli" / "agent.json").read_text())
    target = entry["distribution"]["binary"]["linux-x86_64"]
    expect(
        target["sha256"] == hashlib.sha256(package("crow-cli-linux-x86_64.tar.gz").read_bytes()).hexdigest(), "another checksum"
    )
    expect(target["archive"].endswith("/crow-cli-linux-x86_64.tar.gz"), "the registry replaces only the tag of the address")


CHECKS = {
    "archive": check_archive,
    "installer": check_installer,
    "wheel": check_wheel,
    "npm": check_npm,
    "deb": check_deb,
    "image": check_image,
    "recipes": check_recipes,
}


def main() -> None:
    names = sys.argv[1:] or list(CHECKS)
    if unknown := [name for name in names if name not in CHECKS]:
        raise SystemExit(f"test.py: unknown: {', '.join(unknown)}; known: {', '.join(CHECKS)}")
    failed = []
    with ScriptedModel() as model:
        for name in names:
            started = time.monotonic()
            with tempfile.TemporaryDirectory(prefix="crow-packages-") as scratch:
                try:
                    CHECKS[name](model, Path(scratch))
                    verdict = "ok"
                except (Failure, OSError, subprocess.SubprocessError) as error:
                    verdict = f"FAILED: {error}"
                    failed.append(name)
            print(f"{name}: {verdict} ({time.monotonic() - started:.1f} s)", flush=True)
    if failed:
        raise SystemExit(f"test.py: failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
