"""Finds the program that was installed with this package."""

import os
import sys
import sysconfig
from pathlib import Path


def find_program() -> str:
    """Returns the path of `crow-cli`. The variable `CROW_CLI_PROGRAM` names another one.

    Raises FileNotFoundError with the directories that were searched.
    """
    if chosen := os.environ.get("CROW_CLI_PROGRAM"):
        return chosen
    name = "crow-cli.exe" if os.name == "nt" else "crow-cli"
    directories = list(dict.fromkeys(_script_directories()))
    for directory in directories:
        if (directory / name).is_file():
            return str(directory / name)
    searched = ", ".join(str(directory) for directory in directories)
    raise FileNotFoundError(f"{name} is not in {searched}; reinstall crow-cli, or set CROW_CLI_PROGRAM")


def _script_directories() -> list[Path]:
    """Returns where installers put programs: this environment, its base, `--target`, `--prefix` and `--user`."""
    bin_name = "Scripts" if os.name == "nt" else "bin"
    package = Path(__file__).resolve().parent
    found = [Path(sysconfig.get_path("scripts")), Path(sysconfig.get_path("scripts", vars={"base": sys.base_prefix}))]
    found.append(package.parent / bin_name)
    # PREFIX/lib/python3.X/site-packages
    if len(package.parents) > 3:
        found.append(package.parents[3] / bin_name)
    found.append(Path(sysconfig.get_path("scripts", scheme=sysconfig.get_preferred_scheme("user"))))
    return found
