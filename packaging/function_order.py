"""Finds the functions that a start and a first turn run, and writes a linker script that puts them side by side.

A breakpoint stands at the beginning of each function until it is first reached. Linux on x86-64; the program has its
symbols and a fixed address.
"""

import ctypes
import json
import os
import platform
import re
import signal
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import Any

from scripted_model import ScriptedModel, call

# The section that they become.
SECTION = ".text.first"
BREAKPOINT = b"\xcc"
# Numbers of <sys/ptrace.h> and <sys/wait.h>.
TRACE_ME, CONTINUE, GET_REGISTERS, SET_REGISTERS, DETACH, SET_OPTIONS = 0, 7, 12, 13, 17, 0x4200
FOLLOW_FORK, FOLLOW_VFORK, FOLLOW_CLONE, STOP_AT_EXEC, KILL_AT_EXIT = 0x2, 0x4, 0x8, 0x10, 0x100000
EVENT_EXEC = 4
ALL_CHILDREN = 0x40000000
# The place of `rip` among the registers, and how many there are.
INSTRUCTION_POINTER, N_REGISTERS = 16, 27
SECONDS_MAX = 60


def can_trace(triple: str) -> bool:
    """Whether functions of a target's program can be found on this machine."""
    return triple == "x86_64-unknown-linux-gnu" and (platform.system(), platform.machine()) == ("Linux", "x86_64")


def write_linker_script(program: Path, script: Path) -> int:
    """Writes the script for a program, and returns the number of functions in it."""
    names = Tracer(program, read_functions(program)).run()
    # Cold functions, which LLVM marks, have a section of another name.
    lines = [f"    *(.text.{name})\n    *(.text.unlikely.{name})\n" for name in names]
    script.write_text(f"SECTIONS {{\n  {SECTION} : {{\n{''.join(lines)}  }}\n}} INSERT BEFORE .text;\n")
    return len(names)


def read_functions(program: Path) -> dict[int, str]:
    """Returns the functions by their addresses."""
    listed = subprocess.run(["nm", "--defined-only", str(program)], check=True, capture_output=True, text=True).stdout
    functions = {}
    for line in listed.splitlines():
        address, kind, name = line.split(maxsplit=2)
        # Only names that stand for themselves in a linker script.
        if kind in "tTwW" and re.fullmatch(r"[A-Za-z0-9_.$]+", name):
            functions[int(address, 16)] = name
    if not functions:
        raise ValueError(f"{program} has no symbols")
    return functions


class Tracer:
    """Runs a program, and notes the functions that it reaches."""

    def __init__(self, program: Path, functions: dict[int, str]) -> None:
        self.program = program
        self.functions = functions
        self.originals: dict[int, bytes] = {}
        # The number of the phase in which a function was first reached.
        self.reached: dict[int, int] = {}
        self.phase = 0
        self.fault: Exception | None = None
        self.libc = ctypes.CDLL(None)
        self.libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
        self.libc.ptrace.restype = ctypes.c_long

    def run(self) -> list[str]:
        """Returns the functions by phase, each in the order of the program: the order of threads differs between runs."""
        with tempfile.TemporaryDirectory() as home:
            (Path(home) / "file.txt").write_text("text\n")
            # Before the threads of the model: a process with threads should not fork.
            agent = self.start(home)
            with ScriptedModel([call("read", {"file_path": "file.txt"}), "Done."]) as model:
                model.write_config(Path(home))
                status = self.follow_turn(agent, home)
        if self.fault or status != 0:
            raise ValueError(f"{self.program} could not be traced: status {status}, {self.fault!r}")
        addresses = sorted(self.reached, key=lambda address: (self.reached[address], address))
        return list(dict.fromkeys(self.functions[address] for address in addresses))

    def start(self, home: str) -> subprocess.Popen:
        """Starts the program, which stops before its first instruction."""
        settings = {"env": {"HOME": home, "PATH": os.environ["PATH"]}, "cwd": home}
        command, pipe = [self.program, "acp"], subprocess.PIPE
        try:
            agent = subprocess.Popen(command, stdin=pipe, stdout=pipe, preexec_fn=self.trace_me, **settings)
        except subprocess.SubprocessError as error:
            raise ValueError(f"{self.program} cannot be traced: processes may not trace their children here") from error
        os.waitpid(agent.pid, 0)
        self.ptrace(SET_OPTIONS, agent.pid, FOLLOW_FORK | FOLLOW_VFORK | FOLLOW_CLONE | STOP_AT_EXEC | KILL_AT_EXIT)
        self.set_breakpoints(agent.pid)
        return agent

    def trace_me(self) -> None:
        # A process that is not traced would not stop, and be waited for in vain.
        if self.libc.ptrace(TRACE_ME, 0, None, None) != 0:
            raise PermissionError

    def follow_turn(self, agent: subprocess.Popen, home: str) -> int:
        """Follows the program while a client drives it, and returns its exit status."""
        client = threading.Thread(target=self.drive, args=[agent, home])
        limit = threading.Timer(SECONDS_MAX, os.kill, [agent.pid, signal.SIGKILL])
        client.start()
        limit.start()
        self.ptrace(CONTINUE, agent.pid)
        status = self.follow(agent.pid)
        limit.cancel()
        client.join()
        # It is reaped already, which `Popen` does not know.
        agent.returncode = status
        return status

    def drive(self, agent: subprocess.Popen, home: str) -> None:
        """Opens a session and runs a turn with a call."""
        try:
            request(agent, "initialize", {"protocolVersion": 1, "clientCapabilities": {}})
            session = request(agent, "session/new", {"cwd": home, "mcpServers": []})["sessionId"]
            self.phase = 1
            request(agent, "session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": "Read it"}]})
        except (OSError, ValueError, KeyError) as fault:
            self.fault = fault
        finally:
            agent.stdin.close()
            agent.stdout.read()
            agent.stdout.close()

    def set_breakpoints(self, pid: int) -> None:
        with open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
            for address in self.functions:
                memory.seek(address)
                self.originals[address] = memory.read(1)
                memory.seek(address)
                memory.write(BREAKPOINT)

    def follow(self, program_pid: int) -> int:
        """Runs the threads and children until the program has ended, and returns its exit status."""
        while True:
            pid, status = os.waitpid(-1, ALL_CHILDREN)
            if not os.WIFSTOPPED(status):
                if pid == program_pid:
                    return os.waitstatus_to_exitcode(status)
                continue
            stop, event = os.WSTOPSIG(status), status >> 16
            if event == EVENT_EXEC:
                # Another program, without breakpoints.
                self.ptrace(DETACH, pid)
            elif stop == signal.SIGTRAP and event == 0:
                self.pass_breakpoint(pid)
                self.ptrace(CONTINUE, pid)
            else:
                is_own = event != 0 or stop == signal.SIGSTOP
                self.ptrace(CONTINUE, pid, 0 if is_own else stop)

    def pass_breakpoint(self, pid: int) -> None:
        """Removes the breakpoint that a thread has reached, and sets the thread back to it."""
        registers = (ctypes.c_ulong * N_REGISTERS)()
        self.ptrace(GET_REGISTERS, pid, ctypes.addressof(registers))
        address = registers[INSTRUCTION_POINTER] - 1
        if address not in self.originals:
            return
        self.reached.setdefault(address, self.phase)
        # A forked process has a memory of its own.
        with open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
            memory.seek(address)
            memory.write(self.originals[address])
        registers[INSTRUCTION_POINTER] = address
        self.ptrace(SET_REGISTERS, pid, ctypes.addressof(registers))

    def ptrace(self, number: int, pid: int, data: int = 0) -> None:
        # A thread may have been killed meanwhile; it is then reaped.
        self.libc.ptrace(number, pid, None, data)


def request(agent: subprocess.Popen, method: str, params: dict[str, Any]) -> Any:
    """Sends a request and returns its result."""
    agent.stdin.write(json.dumps({"jsonrpc": "2.0", "id": method, "method": method, "params": params}).encode() + b"\n")
    agent.stdin.flush()
    for line in agent.stdout:
        message = json.loads(line)
        if message.get("id") == method:
            return message["result"]
    raise ValueError(f"the program ended before it answered {method}")
