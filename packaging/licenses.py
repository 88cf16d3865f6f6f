"""Gathers the licences of the crates that are linked into the program."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PREFIXES = ("license", "licence", "copying", "copyright", "notice", "unlicense")


def linked_crates(triple: str) -> list[dict]:
    """Returns the packages that the program of a target links, by name and version, without Crow's own."""
    command = ["cargo", "metadata", "--format-version=1", "--locked", "--filter-platform", triple]
    metadata = json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    waiting = [identity for identity, package in packages.items() if package["name"] == "crow-cli"]
    linked = set()
    while waiting:
        identity = waiting.pop()
        if identity in linked:
            continue
        linked.add(identity)
        dependencies = nodes[identity]["deps"]
        waiting += [each["pkg"] for each in dependencies if any(kind["kind"] is None for kind in each["dep_kinds"])]
    crates = [packages[identity] for identity in linked if packages[identity]["source"] is not None]
    return sorted(crates, key=lambda crate: (crate["name"], crate["version"]))


def license_texts(crate: dict) -> list[str]:
    """Returns the licence files of a crate; for one that ships none, the general text and its authors."""
    directory = Path(crate["manifest_path"]).parent
    files = sorted(path for path in directory.iterdir() if path.name.lower().startswith(PREFIXES) and path.is_file())
    if files:
        return [path.read_text(errors="replace").strip() for path in files]
    general = ROOT / "packaging" / "licenses" / f"{crate['license']}.txt"
    if crate["license"] == "Apache-2.0":
        general = ROOT / "LICENSE"
    if not general.exists():
        raise SystemExit(f"licenses.py: {crate['name']} ships no licence, and {general} does not exist")
    authors = ", ".join(crate["authors"]) or f"the authors of {crate['name']}"
    return [f"Copyright (c) {authors}\n\n{general.read_text().strip()}"]


def third_party_licenses(triple: str) -> str:
    """Returns all licences as one text. A licence that several crates share is there once."""
    users: dict[str, list[str]] = {}
    for crate in linked_crates(triple):
        for text in license_texts(crate):
            users.setdefault(text, []).append(f"{crate['name']} {crate['version']} ({crate['license']})")
    parts = ["Crow contains the following third-party software.\n"]
    for text, crates in users.items():
        parts.append("=" * 80 + "\n" + "\n".join(crates) + "\n" + "-" * 80 + "\n" + text + "\n")
    return "\n".join(parts)


if __name__ == "__main__":
    print(third_party_licenses(sys.argv[1] if len(sys.argv) > 1 else "x86_64-unknown-linux-gnu"))
