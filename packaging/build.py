#!/usr/bin/env python3
"""Builds the packages of one target from one program.

    packaging/build.py [--target TRIPLE] [--out DIRECTORY] [--program FILE]

Without --program the wheel is compiled first and the other packages take its program. With it, that program is packed
and no wheel is built: that is how a target is packed whose compiler does not run here.
"""

import argparse
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import zipfile
from dataclasses import dataclass
from pathlib import Path

import function_order
from licenses import third_party_licenses

ROOT = Path(__file__).resolve().parent.parent
PACKAGING = ROOT / "packaging"
SHELLS = {"bash": "crow-cli.bash", "zsh": "_crow-cli", "fish": "crow-cli.fish", "powershell": "_crow-cli.ps1"}


@dataclass(frozen=True)
class Target:
    """A system that Crow is built for, and its name in each kind of package."""

    triple: str
    archive: str
    npm: str
    npm_os: str
    npm_cpu: str
    libc: str | None = None
    deb: str | None = None
    wheel: str | None = None

    @property
    def program(self) -> str:
        return "crow-cli.exe" if self.npm_os == "win32" else "crow-cli"


TARGETS = {
    target.triple: target
    for target in [
        Target("x86_64-unknown-linux-gnu", "linux-x86_64", "linux-x64", "linux", "x64", "glibc", "amd64", "manylinux2014"),
        Target("aarch64-unknown-linux-gnu", "linux-aarch64", "linux-arm64", "linux", "arm64", "glibc", "arm64", "manylinux2014"),
        Target("x86_64-unknown-linux-musl", "linux-x86_64-musl", "linux-x64-musl", "linux", "x64", "musl", None, "musllinux_1_2"),
        Target(
            "aarch64-unknown-linux-musl",
            "linux-aarch64-musl",
            "linux-arm64-musl",
            "linux",
            "arm64",
            "musl",
            None,
            "musllinux_1_2",
        ),
        Target("x86_64-apple-darwin", "darwin-x86_64", "darwin-x64", "darwin", "x64"),
        Target("aarch64-apple-darwin", "darwin-aarch64", "darwin-arm64", "darwin", "arm64"),
        Target("x86_64-pc-windows-msvc", "windows-x86_64", "win32-x64", "win32", "x64"),
    ]
}


def version() -> str:
    return tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]


def run(*command: str | Path, **settings) -> None:
    subprocess.run([str(part) for part in command], check=True, **settings)


def build_wheel(target: Target, out: Path) -> Path:
    """Compiles the program, makes the wheel of it, and returns the program."""
    (ROOT / "python" / "crow_cli" / "THIRD-PARTY-LICENSES.txt").write_text(third_party_licenses(target.triple))
    directory = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / target.triple / "release"
    program = directory / target.program
    if not function_order.can_trace(target.triple):
        run_maturin(target, out, {})
        return program
    # Not stripped by Cargo, but by the linker at the end: another profile would give the functions other names.
    settings = {"CARGO_PROFILE_RELEASE_STRIP": "none"}
    script = directory / "function-order.ld"
    with tempfile.TemporaryDirectory() as unordered:
        run_maturin(target, Path(unordered), settings)
    n_functions = function_order.write_linker_script(program, script)
    print(f"functions that a start and a first turn run: {n_functions}", flush=True)
    run_maturin(target, out, settings | {"CROW_LINKER_SCRIPT": str(script)})
    if function_order.SECTION.encode() not in program.read_bytes():
        raise ValueError(f"{program} was linked without {script}")
    return program


def run_maturin(target: Target, out: Path, settings: dict[str, str]) -> None:
    arguments = ["--release", "--target", target.triple, "--out", str(out)]
    if target.npm_os == "linux":
        arguments += ["--zig", "--compatibility", target.wheel]
    run("maturin", "build", *arguments, cwd=ROOT, env=os.environ | settings)


def collect_files(target: Target, program: Path, files: Path) -> None:
    """Puts what an archive holds into a directory."""
    shutil.rmtree(files, ignore_errors=True)
    (files / "man").mkdir(parents=True)
    (files / "completions").mkdir()
    shutil.copy2(program, files / target.program)
    shutil.copy2(ROOT / "LICENSE", files)
    shutil.copy2(PACKAGING / "about.md", files / "README.md")
    (files / "THIRD-PARTY-LICENSES.txt").write_text(third_party_licenses(target.triple))
    # A program of another system cannot run here; its pages and completions are those of a program that can.
    runnable = os.environ.get("CROW_PACKAGES_RUNNABLE", str(files / target.program))
    for shell, name in SHELLS.items():
        with open(files / "completions" / name, "wb") as file:
            run(runnable, "completions", shell, stdout=file)
    run(runnable, "man-pages", files / "man")


def file_names(files: Path) -> list[str]:
    return sorted(str(path.relative_to(files)) for path in files.rglob("*") if path.is_file())


def pack_archive(target: Target, files: Path, out: Path) -> None:
    """Packs the files, with the same bytes for the same files."""
    if target.npm_os == "win32":
        with zipfile.ZipFile(out / f"crow-cli-{target.archive}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for name in file_names(files):
                archive.write(files / name, name)
        return
    write_tar(out / f"crow-cli-{target.archive}.tar.gz", {name: files / name for name in file_names(files)}, {target.program})


def write_tar(path: Path, members: dict[str, Path | bytes], programs: set[str]) -> None:
    with open(path, "wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as packed:
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
            for name, content in members.items():
                data = content if isinstance(content, bytes) else content.read_bytes()
                entry = tarfile.TarInfo(name)
                entry.size, entry.mode = len(data), 0o755 if name in programs else 0o644
                archive.addfile(entry, io.BytesIO(data))


def manifest(name: str, description: str, **more) -> bytes:
    common = {
        "name": name,
        "version": version(),
        "description": description,
        "license": "Apache-2.0",
        "repository": {"type": "git", "url": "git+https://github.com/crow-cli/crow-cli.git"},
    }
    return json.dumps(common | more, indent=2).encode() + b"\n"


def pack_npm(target: Target, files: Path, out: Path) -> None:
    """Packs the package with the program of this target, and the one that chooses among all targets."""
    description = "A coding agent that speaks the Agent Client Protocol"
    program = f"package/bin/{target.program}"
    limits = {"os": [target.npm_os], "cpu": [target.npm_cpu]} | ({"libc": [target.libc]} if target.libc else {})
    write_tar(
        out / f"crow-cli-{target.npm}-{version()}.tgz",
        {
            "package/package.json": manifest(
                f"@crow-cli/{target.npm}",
                f"{description}: the program for {target.npm}",
                preferUnplugged=True,
                files=["bin"],
                **limits,
            ),
            "package/LICENSE": files / "LICENSE",
            "package/THIRD-PARTY-LICENSES.txt": files / "THIRD-PARTY-LICENSES.txt",
            program: files / target.program,
        },
        {program},
    )
    platforms = {f"@crow-cli/{each.npm}": version() for each in TARGETS.values()}
    write_tar(
        out / f"crow-cli-npm-{version()}.tgz",
        {
            "package/package.json": manifest(
                "crow-cli",
                description,
                bin={"crow-cli": "crow-cli.js"},
                files=["crow-cli.js"],
                engines={"node": ">=18"},
                optionalDependencies=platforms,
            ),
            "package/README.md": files / "README.md",
            "package/LICENSE": files / "LICENSE",
            "package/crow-cli.js": PACKAGING / "npm" / "crow-cli.js",
        },
        {"package/crow-cli.js"},
    )


def pack_distributions(target: Target, files: Path, out: Path) -> None:
    """Packs for Debian and Arch."""
    variables = {"NFPM_ARCH": target.deb, "NFPM_VERSION": version()}
    for packager in ["deb", "archlinux"]:
        command = ["nfpm", "package", "--config", PACKAGING / "nfpm.yaml", "--packager", packager, "--target", out]
        run(*command, cwd=files, env=os.environ | variables)


def remove_other_versions(out: Path) -> None:
    for path in out.iterdir():
        found = re.search(r"[-_](\d+\.\d+\.\d+)", path.name)
        if found and found[1] != version():
            path.unlink()


def write_checksums(out: Path) -> None:
    names = sorted(path.name for path in out.iterdir() if path.is_file() and path.name != "SHA256SUMS")
    lines = [f"{hashlib.sha256((out / name).read_bytes()).hexdigest()}  {name}\n" for name in names]
    (out / "SHA256SUMS").write_text("".join(lines))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", default="x86_64-unknown-linux-gnu", choices=TARGETS)
    parser.add_argument("--out", type=Path, default=ROOT / "target" / "packages")
    parser.add_argument("--program", type=Path)
    options = parser.parse_args()
    target, out = TARGETS[options.target], options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    remove_other_versions(out)
    files = out.parent / "packages-files" / target.archive

    program = options.program
    steps = {
        "files": lambda: collect_files(target, program, files),
        "archive": lambda: pack_archive(target, files, out),
        "npm": lambda: pack_npm(target, files, out),
    }
    if target.deb:
        steps["distributions"] = lambda: pack_distributions(target, files, out)
    steps["checksums"] = lambda: write_checksums(out)
    if program is None:
        started = time.monotonic()
        program = build_wheel(target, out)
        print(f"wheel: {time.monotonic() - started:.1f} s", flush=True)
    for name, step in steps.items():
        started = time.monotonic()
        step()
        print(f"{name}: {time.monotonic() - started:.1f} s", flush=True)
    for path in sorted(out.iterdir()):
        if path.is_file():
            print(f"{path.stat().st_size / 1e6:8.2f} MB  {path.name}")


if __name__ == "__main__":
    try:
        main()
    except (subprocess.CalledProcessError, FileNotFoundError, ValueError) as error:
        sys.exit(f"build.py: {error}")
