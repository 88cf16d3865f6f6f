"""Runs one program where it can reach nothing but its own world. Started by `world.py`, as root of new namespaces.

The file system is read-only except for the world and a `/tmp` inside it; directories that the program must not see are
empty. There is no network but a loopback of its own, whose one port leads to the model. No process outlives the program.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path

MS_BIND = 4096
MS_REC = 16384
MOUNT_ATTR_RDONLY = 1
AT_FDCWD = -100
AT_RECURSIVE = 0x8000
MOUNT_SETATTR = 442
"""The number of the system call, the same on all architectures; Linux 5.12 or later."""

SIOCSIFFLAGS = 0x8914
IFF_UP_RUNNING = 0x41

LIBC = ctypes.CDLL(None, use_errno=True)


def check_call(result: int, what: str) -> None:
    if result != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")


def mount(source: str, target: str, kind: str | None = None, flags: int = 0, options: str | None = None) -> None:
    names = [None if name is None else name.encode() for name in (source, target, kind, options)]
    check_call(LIBC.mount(names[0], names[1], names[2], ctypes.c_ulong(flags), names[3]), f"could not mount {target}")


def set_read_only(path: str, is_read_only: bool) -> None:
    flags = (MOUNT_ATTR_RDONLY, 0) if is_read_only else (0, MOUNT_ATTR_RDONLY)
    attributes = struct.pack("QQQQ", *flags, 0, 0)
    result = LIBC.syscall(MOUNT_SETATTR, AT_FDCWD, path.encode(), AT_RECURSIVE, attributes, len(attributes))
    check_call(result, f"could not change the mount {path}")


def confine_files(world: Path, hidden: list[str]) -> None:
    set_read_only("/", True)
    # The worlds of other runs are beside this one: it is mounted again on an empty directory.
    kept = os.open(world, os.O_PATH)
    mount("none", str(world.parents[1]), "tmpfs")
    world.mkdir(parents=True)
    mount(f"/proc/self/fd/{kept}", str(world), flags=MS_BIND | MS_REC)
    os.close(kept)
    set_read_only(str(world), False)
    mount(str(world / "tmp"), "/tmp", flags=MS_BIND)
    for directory in hidden:
        if os.path.isdir(directory):
            mount("none", directory, "tmpfs")
            set_read_only(directory, True)


def start_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        fcntl.ioctl(probe, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", IFF_UP_RUNNING))


def copy_stream(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        # One end is gone; the other must not wait for it.
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def serve_model(listener: socket.socket, model_socket: str) -> None:
    while True:
        connection, _ = listener.accept()
        upstream = socket.socket(socket.AF_UNIX)
        upstream.connect(model_socket)
        for ends in ((connection, upstream), (upstream, connection)):
            threading.Thread(target=copy_stream, args=ends, daemon=True).start()


def main() -> int:
    spec = json.loads(Path(sys.argv[1]).read_text())
    world = Path(spec["world"])
    confine_files(world, spec["hidden"])
    start_loopback()
    if spec["port"]:
        listener = socket.create_server(("127.0.0.1", spec["port"]))
        threading.Thread(target=serve_model, args=(listener, str(world / "model.sock")), daemon=True).start()
    program = subprocess.Popen(spec["argv"], cwd=spec["cwd"], env=spec["environment"])
    # The first process of a namespace also inherits processes whose parents have ended.
    while True:
        pid, status = os.wait()
        if pid == program.pid:
            return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    code = main()
    os._exit(code if code >= 0 else 128 - code)
