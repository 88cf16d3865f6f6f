"""Drives crow-cli with the Python SDK: `run.sh python`, and over streamable HTTP `run.sh python-http`. The table of checks
is at the end."""

import asyncio
import json
import logging
import os
import signal
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import acp
from acp import schema
from acp.http import create_http_stream

CROW = os.environ["CROW"]
PROJECT = Path(os.environ["PROJECT"])
WIRE = "WIRE" in os.environ
HTTP = "HTTP" in os.environ
NAME = "python-http" if HTTP else "python"
ONLY = os.environ.get("ONLY", "")
# What is waited for comes at once or never.
PATIENCE_S = 20


class Model:
    """The scripted model behind the agent; run.sh opened these for us."""

    to_model, from_model = os.fdopen(3, "w"), os.fdopen(4)

    def say(self, *lines):
        for line in lines:
            print(line, file=self.to_model, flush=True)
            answer = self.from_model.readline()
        return answer

    def requests(self):
        """What it was asked since the last time; forgets the answers that are left."""
        return json.loads(self.say("requests"))

    def told(self):
        """The last thing each of those requests ends with."""
        return [str(request["messages"][-1]["content"]) for request in self.requests()]


class Editor(acp.Client):
    """A client with files, terminals and a person who answers `choice`, or nothing at all."""

    def __init__(self, choice):
        self.choice, self.asked = choice, []
        self.heard, self.changed = [], asyncio.Condition()
        self.buffers, self.written = {}, {}
        self.terminals, self.killed, self.released = {}, [], []

    async def until(self, what):
        async with asyncio.timeout(PATIENCE_S), self.changed:
            await self.changed.wait_for(what)

    async def note(self, notes, note):
        async with self.changed:
            notes.append(note)
            self.changed.notify_all()

    async def session_update(self, session_id, update, **_):
        await self.note(self.heard, update)

    def text(self, kind="agent_message_chunk"):
        return "".join(update.content.text for update in self.heard if update.session_update == kind)

    def shown(self):
        """The terminals that calls hold."""
        contents = [getattr(update, "content", None) for update in self.heard]
        of_calls = [content for several in contents if isinstance(several, list) for content in several]
        return [content.terminal_id for content in of_calls if content.type == "terminal"]

    async def request_permission(self, session_id, tool_call, options, **_):
        await self.note(self.asked, tool_call)
        if self.choice is None:
            await asyncio.get_running_loop().create_future()
        chosen = next(option for option in options if option.kind == self.choice)
        outcome = schema.AllowedOutcome(outcome="selected", option_id=chosen.option_id)
        return acp.RequestPermissionResponse(outcome=outcome)

    async def read_text_file(self, session_id, path, line=None, limit=None, **_):
        try:
            text = self.buffers[path] if path in self.buffers else Path(path).read_text()
        except FileNotFoundError:
            raise acp.RequestError.resource_not_found(path) from None
        lines = text.splitlines(keepends=True)[(line or 1) - 1 :]
        return acp.ReadTextFileResponse(content="".join(lines[:limit]))

    async def write_text_file(self, session_id, path, content, **_):
        self.buffers[path] = self.written[path] = content

    async def create_terminal(self, session_id, command, args=None, env=None, cwd=None, **_):
        process = await asyncio.create_subprocess_exec(
            command, *(args or []), cwd=cwd, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        name = f"terminal-{len(self.terminals) + 1}"
        self.terminals[name] = process
        return acp.CreateTerminalResponse(terminal_id=name)

    async def wait_for_terminal_exit(self, session_id, terminal_id, **_):
        code = await self.terminals[terminal_id].wait()
        return acp.WaitForTerminalExitResponse(exit_code=max(code, 0))

    async def terminal_output(self, session_id, terminal_id, **_):
        output = await self.terminals[terminal_id].stdout.read()
        return acp.TerminalOutputResponse(output=output.decode(), truncated=False)

    async def kill_terminal(self, session_id, terminal_id, **_):
        self.terminals[terminal_id].kill()
        await self.note(self.killed, terminal_id)

    async def release_terminal(self, session_id, terminal_id, **_):
        if self.terminals[terminal_id].returncode is None:
            self.terminals[terminal_id].kill()
        await self.note(self.released, terminal_id)


def on_wire(event):
    print("<" if event.direction.value == "incoming" else ">", json.dumps(event.message), file=sys.stderr)


MODEL = Model()
FILES = schema.FileSystemCapabilities(read_text_file=True, write_text_file=True)


@asynccontextmanager
async def served_agent(editor, observers):
    """A new server, and a connection to it over HTTP."""
    process = await asyncio.create_subprocess_exec(
        CROW, "acp", "--listen", "127.0.0.1:0", cwd=PROJECT, stdout=asyncio.subprocess.PIPE
    )
    ready = json.loads(await process.stdout.readline())
    headers = {"Authorization": "Bearer " + Path(ready["token_file"]).read_text().strip()}
    stream = create_http_stream(ready["url"].replace("ws://", "http://"), headers=headers)
    crow = acp.connect_to_agent(editor, stream, observers=observers)
    try:
        yield crow, process
    finally:
        await crow.close()
        process.send_signal(signal.SIGTERM)
        await process.wait()


@asynccontextmanager
async def agent(choice="allow_once", **capabilities):
    """A new agent process and an editor that has said hello to it."""
    editor = Editor(choice)
    observers = [on_wire] if WIRE else []
    spawned = (
        served_agent(editor, observers)
        if HTTP
        else acp.spawn_agent_process(
            editor, CROW, "acp", cwd=PROJECT, transport_kwargs={"stderr": None}, observers=observers
        )
    )
    async with spawned as (crow, process):
        hello = schema.ClientCapabilities(**capabilities)
        editor.hello = await crow.initialize(acp.PROTOCOL_VERSION, hello)
        yield crow, editor
    same(process.returncode, 0)


async def new_session(crow):
    return (await crow.new_session(str(PROJECT), mcp_servers=[])).session_id


async def prompt(crow, session, text):
    return (await crow.prompt(session, [acp.text_block(text)])).stop_reason


def same(seen, wanted):
    assert seen == wanted, f"{seen!r} instead of {wanted!r}"


def within(part, whole):
    assert part in whole, f"no {part!r} in {whole!r}"


async def fails(request, code, kind):
    try:
        answer = await request
    except acp.RequestError as error:
        same((error.code, error.data["kind"]), (code, kind))
    else:
        raise AssertionError(f"{answer!r} instead of an error")


def settled(updates):
    """What a person sees in the end: words joined, each call in its last state."""
    seen, calls = [], {}
    for update in updates:
        kind = update.session_update
        if kind.endswith("_chunk"):
            name = (kind, update.message_id)
            if not seen or seen[-1][0] != name:
                seen.append([name, ""])
            seen[-1][1] += update.content.text
        elif kind.startswith("tool_call"):
            if update.tool_call_id not in calls:
                calls[update.tool_call_id] = {}
                seen.append(["call", calls[update.tool_call_id]])
            fields = update.model_dump(exclude_none=True, exclude={"session_update"})
            # Terminals end with their process: what is replayed is their text.
            if any(content["type"] == "terminal" for content in fields.get("content", [])):
                del fields["content"]
            calls[update.tool_call_id].update(fields)
    return seen


async def streams():
    async with agent() as (crow, editor):
        session = await new_session(crow)
        MODEL.say('thought "hm" | text "Hel" | text "lo" | usage 12 3')
        same(await prompt(crow, session, "hi"), "end_turn")
        same((editor.text("agent_thought_chunk"), editor.text()), ("hm", "Hello"))
        usage = [update.used for update in editor.heard if update.session_update == "usage_update"]
        within(15, usage)
        same(MODEL.told(), ["hi"])


async def allows():
    async with agent() as (crow, editor):
        session = await new_session(crow)
        MODEL.say('call write {"file_path": "allowed.txt", "content": "yes\\n"}', 'text "done"')
        same(await prompt(crow, session, "write"), "end_turn")
        same(len(editor.asked), 1)
        same((PROJECT / "allowed.txt").read_text(), "yes\n")


async def denies():
    async with agent("reject_once") as (crow, editor):
        session = await new_session(crow)
        MODEL.say('call write {"file_path": "denied.txt", "content": "no\\n"}', 'text "pity"')
        same(await prompt(crow, session, "write"), "end_turn")
        assert not (PROJECT / "denied.txt").exists()
        same(settled(editor.heard)[0][1]["status"], "failed")
        within("rejected", MODEL.told()[1])


async def writes_through_client():
    async with agent(fs=FILES) as (crow, editor):
        session = await new_session(crow)
        MODEL.say('call write {"file_path": "mine.txt", "content": "new\\n"}', 'text "done"')
        same(await prompt(crow, session, "write"), "end_turn")
        same(editor.written, {str(PROJECT / "mine.txt"): "new\n"})
        assert not (PROJECT / "mine.txt").exists()
        diff = settled(editor.heard)[0][1]["content"][0]
        same((diff["type"], diff["new_text"]), ("diff", "new\n"))


async def reads_buffers():
    async with agent(fs=FILES) as (crow, editor):
        session = await new_session(crow)
        (PROJECT / "open.txt").write_text("saved\n")
        editor.buffers[str(PROJECT / "open.txt")] = "not saved\n"
        MODEL.say('call read {"file_path": "open.txt"}', 'text "done"')
        same(await prompt(crow, session, "read"), "end_turn")
        within("not saved", MODEL.told()[1])


async def runs_in_terminal():
    async with agent(terminal=True) as (crow, editor):
        session = await new_session(crow)
        MODEL.say('call terminal {"command": "echo here; exit 3"}', 'text "done"')
        same(await prompt(crow, session, "run"), "end_turn")
        await editor.until(lambda: editor.released == ["terminal-1"])
        within("terminal-1", editor.shown())
        told = MODEL.told()[1]
        within("here\n", told)
        within("exit code 3", told)


async def cancels_reply():
    async with agent() as (crow, editor):
        session = await new_session(crow)
        MODEL.say('text "part" | hold')
        turn = asyncio.create_task(prompt(crow, session, "long"))
        await editor.until(lambda: editor.text() == "part")
        await crow.cancel(session)
        same(await turn, "cancelled")
        MODEL.say('text "next"')
        same(await prompt(crow, session, "again"), "end_turn")


async def cancels_question():
    async with agent(None) as (crow, editor):
        session = await new_session(crow)
        MODEL.say('call terminal {"command": "touch asked.txt"}')
        turn = asyncio.create_task(prompt(crow, session, "run"))
        await editor.until(lambda: editor.asked)
        await crow.cancel(session)
        same(await turn, "cancelled")


async def cancels_terminal():
    async with agent(terminal=True) as (crow, editor):
        session = await new_session(crow)
        MODEL.say('call terminal {"command": "exec tail -f /dev/null"}')
        turn = asyncio.create_task(prompt(crow, session, "run"))
        await editor.until(lambda: "terminal-1" in editor.shown())
        await crow.cancel(session)
        same(await turn, "cancelled")
        same(editor.killed, ["terminal-1"])
        await editor.until(lambda: editor.released == ["terminal-1"])


async def told_session(**capabilities):
    """A session with a bit of everything, made by a process that has ended, and what was heard of it."""
    async with agent(**capabilities) as (crow, editor):
        session = await new_session(crow)
        MODEL.say(
            'thought "hm" | text "Looking." | call write {"file_path": "told.txt", "content": "a\\n"}',
            'call terminal {"command": "echo b"}',
            'text "Done."',
        )
        same(await prompt(crow, session, "tell me"), "end_turn")
        return session, editor.heard


async def lists():
    session, _ = await told_session()
    async with agent() as (crow, _):
        page = await crow.list_sessions(cwd=str(PROJECT))
        same((page.sessions[0].session_id, page.sessions[0].cwd), (session, str(PROJECT)))
        same((await crow.list_sessions(cwd="/nowhere")).sessions, [])


async def loads():
    session, live = await told_session(fs=FILES, terminal=True)
    async with agent(fs=FILES, terminal=True) as (crow, editor):
        loaded = await crow.load_session(str(PROJECT), session, mcp_servers=[])
        same(loaded.modes.current_mode_id, "ask")
        replayed = settled(editor.heard)
        same(replayed[0][1], "tell me")
        for seen in replayed:
            # Live it was a terminal, for which `settled` shows no content.
            if seen[0] == "call" and seen[1]["kind"] == "execute":
                within("b\n", seen[1].pop("content")[0]["content"]["text"])
        own = settled(live)
        same(replayed[1:] if own[0][0][0] != "user_message_chunk" else replayed, own)


async def resumes():
    session, _ = await told_session()
    async with agent() as (crow, editor):
        MODEL.requests()
        await crow.resume_session(session, str(PROJECT), mcp_servers=[])
        same(settled(editor.heard), [])
        MODEL.say('text "I know."')
        same(await prompt(crow, session, "remember?"), "end_turn")
        said = [message["content"] for message in MODEL.requests()[0]["messages"] if message["role"] == "user"]
        same([said[0], said[-1]], ["tell me", "remember?"])


async def closes():
    async with agent() as (crow, editor):
        session = await new_session(crow)
        MODEL.say('text "part" | hold')
        turn = asyncio.create_task(prompt(crow, session, "long"))
        await editor.until(lambda: editor.text() == "part")
        await crow.close_session(session)
        same(await turn, "cancelled")
        await fails(prompt(crow, session, "hello?"), -32002, "session_not_found")
        await crow.load_session(str(PROJECT), session, mcp_servers=[])


async def deletes():
    async with agent() as (crow, _):
        session = await new_session(crow)
        MODEL.say('text "hi"')
        await prompt(crow, session, "hi")
        for _ in range(2):
            # The SDK has no name for it yet.
            await crow._conn.send_request("session/delete", {"sessionId": session})
        listed = [info.session_id for info in (await crow.list_sessions()).sessions]
        assert session not in listed
        await fails(crow.load_session(str(PROJECT), session, mcp_servers=[]), -32002, "session_not_found")


async def steers():
    async with agent() as (crow, editor):
        same(editor.hello.field_meta["steering"]["supported"], True)
        session = await new_session(crow)
        MODEL.say('text "working" | hold | call glob {"pattern": "*.txt"}', 'text "done"')
        turn = asyncio.create_task(prompt(crow, session, "work"))
        await editor.until(lambda: editor.text() == "working")
        words = {"sessionId": session, "prompt": [{"type": "text", "text": "only the first"}]}
        steering = asyncio.create_task(crow.ext_method("session/steering", words))
        # Steering is answered when the model gets the words; that they have arrived, the next answer says.
        await asyncio.create_task(crow.set_session_mode(session_id=session, mode_id="ask"))
        MODEL.say("release")
        same((await steering, await turn), ({"outcome": "injected"}, "end_turn"))
        within("only the first", MODEL.told()[1])


async def sets_options():
    async with agent() as (crow, editor):
        session = await new_session(crow)
        await crow.set_session_mode(session_id=session, mode_id="accept-edits")
        await crow.set_config_option("thought_level", session, "high")
        answer = await crow.set_config_option("model", session, "other")
        values = {option.id: option.current_value for option in answer.config_options}
        same(values, {"mode": "accept-edits", "model": "other", "thought_level": "high"})
        MODEL.say('call write {"file_path": "free.txt", "content": ""}', 'text "done"')
        same(await prompt(crow, session, "write"), "end_turn")
        same(editor.asked, [])
        request = MODEL.requests()[0]
        same((request["model"], request["reasoning_effort"]), ("other", "high"))
        await fails(crow.set_config_option("model", session, "none"), -32602, "invalid_value")


async def reads_beside():
    async with agent() as (crow, editor):
        beside = PROJECT.parent / "beside"
        beside.mkdir()
        (beside / "far.txt").write_text("far away\n")
        session = (await crow.new_session(str(PROJECT), [str(beside)], mcp_servers=[])).session_id
        MODEL.say('call read {"file_path": "../beside/far.txt"}', 'text "done"')
        same(await prompt(crow, session, "read"), "end_turn")
        same(editor.asked, [])
        within("far away", MODEL.told()[1])


async def says_errors():
    async with agent() as (crow, _):
        await fails(prompt(crow, "no-such-session", "hi"), -32002, "session_not_found")
        await fails(crow.new_session("relative", mcp_servers=[]), -32602, "invalid_value")
        session = await new_session(crow)
        MODEL.say('status 401 {"error": {"message": "who?"}}')
        await fails(prompt(crow, session, "hi"), -32603, "provider_auth")


CHECKS = {
    "a prompt streams": streams,
    "permission allowed": allows,
    "permission denied, and the model knows": denies,
    "a write goes through the client": writes_through_client,
    "a read sees what is not saved": reads_buffers,
    "a command runs in the client's terminal": runs_in_terminal,
    "cancel in a reply": cancels_reply,
    "cancel in a question": cancels_question,
    "cancel in a terminal": cancels_terminal,
    "list in another process": lists,
    "load replays what was heard": loads,
    "resume replays nothing": resumes,
    "close": closes,
    "delete": deletes,
    "steering": steers,
    "options": sets_options,
    "additional directories": reads_beside,
    "errors": says_errors,
}


async def main():
    status = 0
    for name, check in CHECKS.items():
        if ONLY not in name:
            continue
        MODEL.requests()
        try:
            async with asyncio.timeout(PATIENCE_S):
                await check()
            print(f"ok {NAME}: {name}", flush=True)
        except Exception as error:  # noqa: BLE001 - whatever it is, the next check can run
            status = 1
            why = str(error) or type(error).__name__
            print(f"FAILED {NAME}: {name}: {why}".replace("\n", " "), flush=True)
    return status


# The SDK does not know `$/cancel_request` and complains of it in its log.
logging.getLogger().setLevel(logging.CRITICAL)
sys.exit(asyncio.run(main()))
