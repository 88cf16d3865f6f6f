#!/usr/bin/env python3
"""Writes what other package collections take: Homebrew, AUR, Nix and the ACP registry.

    packaging/recipes.py SHA256SUMS OUT [--all]

Each recipe names the archives that the checksums list. With --all, a missing archive is an error.
"""

import argparse
import json
import shutil
from pathlib import Path

from build import PACKAGING, TARGETS, Target, version

PROJECT = "https://github.com/crow-cli/crow-cli"
DESCRIPTION = "Coding agent that speaks the Agent Client Protocol"


def archive_name(target: Target) -> str:
    return f"crow-cli-{target.archive}.{'zip' if target.npm_os == 'win32' else 'tar.gz'}"


def address(target: Target) -> str:
    return f"{PROJECT}/releases/download/v{version()}/{archive_name(target)}"


def homebrew(sums: dict[str, str]) -> str:
    blocks = []
    for system, name in [("darwin", "macos"), ("linux", "linux")]:
        for machine, cpu in [("aarch64", "arm"), ("x86_64", "intel")]:
            target = next(each for each in TARGETS.values() if each.archive == f"{system}-{machine}")
            if archive_name(target) in sums:
                blocks.append(
                    f'  on_{name} do\n    on_{cpu} do\n      url "{address(target)}"\n'
                    f'      sha256 "{sums[archive_name(target)]}"\n    end\n  end\n'
                )
    return f"""class CrowCli < Formula
  desc "{DESCRIPTION}"
  homepage "{PROJECT}"
  version "{version()}"
  license "Apache-2.0"

{chr(10).join(blocks)}
  def install
    bin.install "crow-cli"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/crow-cli.bash" => "crow-cli"
    zsh_completion.install "completions/_crow-cli"
    fish_completion.install "completions/crow-cli.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{{bin}}/crow-cli --version")
  end
end
"""


def aur(sums: dict[str, str]) -> str:
    targets = [each for each in TARGETS.values() if each.libc == "glibc" and archive_name(each) in sums]
    machines = [each.archive.removeprefix("linux-") for each in targets]
    sources = "".join(
        f"source_{machine}=(\"crow-cli-$pkgver-{machine}.tar.gz::{address(each)}\")\nsha256sums_{machine}=('{sums[archive_name(each)]}')\n"
        for machine, each in zip(machines, targets)
    )
    return f"""# Maintainer: Crow developers
pkgname=crow-cli-bin
pkgver={version()}
pkgrel=1
pkgdesc="{DESCRIPTION}"
arch=({" ".join(repr(machine) for machine in machines)})
url="{PROJECT}"
license=('Apache-2.0')
depends=('glibc')
optdepends=('git: worktrees and undo in repositories')
provides=('crow-cli')
conflicts=('crow-cli')
options=('!strip')
{sources}
package() {{
  install -Dm755 crow-cli "$pkgdir/usr/bin/crow-cli"
  install -Dm644 -t "$pkgdir/usr/share/man/man1" man/*.1
  install -Dm644 completions/crow-cli.bash "$pkgdir/usr/share/bash-completion/completions/crow-cli"
  install -Dm644 completions/_crow-cli "$pkgdir/usr/share/zsh/site-functions/_crow-cli"
  install -Dm644 completions/crow-cli.fish "$pkgdir/usr/share/fish/vendor_completions.d/crow-cli.fish"
  install -Dm644 -t "$pkgdir/usr/share/licenses/$pkgname" LICENSE THIRD-PARTY-LICENSES.txt
}}
"""


def nix(sums: dict[str, str]) -> str:
    systems = ""
    for target in TARGETS.values():
        if target.npm_os == "win32" or target.libc == "musl" or archive_name(target) not in sums:
            continue
        system, machine = target.archive.split("-")
        systems += f"""    "{machine}-{system}" = {{
      url = "{address(target)}";
      sha256 = "{sums[archive_name(target)]}";
    }};
"""
    return f"""{{ lib, stdenv, fetchurl, autoPatchelfHook, installShellFiles }}:

let
  archives = {{
{systems}  }};
in
stdenv.mkDerivation {{
  pname = "crow-cli";
  version = "{version()}";
  src = fetchurl archives.${{stdenv.hostPlatform.system}};
  sourceRoot = ".";
  nativeBuildInputs = [ installShellFiles ] ++ lib.optional stdenv.hostPlatform.isLinux autoPatchelfHook;
  dontConfigure = true;
  dontBuild = true;
  dontStrip = true;
  installPhase = ''
    install -Dm755 crow-cli $out/bin/crow-cli
    installManPage man/*.1
    installShellCompletion --bash --name crow-cli completions/crow-cli.bash
    installShellCompletion --zsh --name _crow-cli completions/_crow-cli
    installShellCompletion --fish --name crow-cli.fish completions/crow-cli.fish
  '';
  meta = {{
    description = "{DESCRIPTION}";
    homepage = "{PROJECT}";
    license = lib.licenses.asl20;
    mainProgram = "crow-cli";
    platforms = builtins.attrNames archives;
    sourceProvenance = [ lib.sourceTypes.binaryNativeCode ];
  }};
}}
"""


def registry(sums: dict[str, str]) -> str:
    """Returns the entry of the ACP registry. Its systems have the names of our archives; musl has no place in it."""
    listed = {
        target.archive: {
            "archive": address(target),
            "cmd": f"./{target.program}",
            "args": ["acp"],
            "sha256": sums[archive_name(target)],
        }
        for target in TARGETS.values()
        if target.libc != "musl" and archive_name(target) in sums
    }
    entry = {
        "id": "crow-cli",
        "name": "Crow",
        "version": version(),
        "description": DESCRIPTION,
        "repository": PROJECT,
        "authors": ["Crow developers"],
        "license": "Apache-2.0",
        "distribution": {"binary": listed},
    }
    return json.dumps(entry, indent=2) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sums", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    sums = {name: digest for digest, name in (line.split() for line in options.sums.read_text().splitlines())}
    missing = [archive_name(target) for target in TARGETS.values() if archive_name(target) not in sums]
    if options.all and missing:
        raise SystemExit(f"recipes.py: {options.sums} does not list {', '.join(missing)}")
    recipes = {
        "homebrew/crow-cli.rb": homebrew(sums),
        "aur/PKGBUILD": aur(sums),
        "nix/package.nix": nix(sums),
        "acp-registry/crow-cli/agent.json": registry(sums),
    }
    for name, text in recipes.items():
        path = options.out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    shutil.copy2(PACKAGING / "registry" / "icon.svg", options.out / "acp-registry" / "crow-cli")


if __name__ == "__main__":
    main()
