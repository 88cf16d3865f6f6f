"""`python -m crow_cli` is the program of this package."""

import os
import subprocess
import sys

from ._program import find_program


def main() -> int:
    program = find_program()
    if os.name == "nt":
        return subprocess.run([program, *sys.argv[1:]], check=False).returncode
    os.execv(program, [program, *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
