// Drives crow-cli with the TypeScript SDK: `run.sh typescript`, and over streamable HTTP `run.sh typescript-http`. The
// table of checks is at the end.
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { EventEmitter, once } from "node:events";
import { existsSync, mkdirSync, readFileSync, readSync, symlinkSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";
import { createHttpStream } from "@agentclientprotocol/sdk/experimental/http-client";

const { CLIENTS, CROW, HOME, PROJECT, ONLY = "", WIRE, HTTP } = process.env as Record<string, string>;
const client = HTTP ? "typescript-http" : "typescript";
const { agent: ask, client: offer } = acp.methods;
// What is waited for comes at once or never.
const PATIENCE_MS = 20_000;

// The scripted model behind the agent; run.sh opened 3 and 4 for us.
const model = {
  say(...lines: string[]): string {
    let answer = "";
    for (const line of lines) {
      writeSync(3, `${line}\n`);
      const byte = Buffer.alloc(1);
      const bytes: number[] = [];
      while (readSync(4, byte) === 1 && byte[0] !== 10) bytes.push(byte[0]);
      answer = Buffer.from(bytes).toString();
    }
    return answer;
  },
  // What it was asked since the last time; forgets the answers that are left.
  requests(): any[] {
    return JSON.parse(this.say("requests"));
  },
  // The last thing each of those requests ends with.
  told(): string[] {
    return this.requests().map((request) => String(request.messages.at(-1).content));
  },
};

// A client with files, terminals and a person who answers `choice`, or nothing at all.
class Editor {
  choice: string | null;
  asked: acp.RequestPermissionRequest[] = [];
  heard: any[] = [];
  buffers = new Map<string, string>();
  written = new Map<string, string>();
  terminals: { child: ChildProcess; output: string; ended: Promise<unknown> }[] = [];
  killed: string[] = [];
  released: string[] = [];
  withdrawn = 0;
  changed = new EventEmitter();

  constructor(choice: string | null) {
    this.choice = choice;
  }

  async until(isSo: () => boolean) {
    while (!isSo()) await once(this.changed, "change");
  }

  text(kind = "agent_message_chunk"): string {
    const chunks = this.heard.filter((update) => update.sessionUpdate === kind);
    return chunks.map((update) => update.content.text).join("");
  }

  // The terminals that calls hold.
  shown(): string[] {
    const contents = this.heard.flatMap((update) => (Array.isArray(update.content) ? update.content : []));
    return contents.filter((content) => content.type === "terminal").map((content) => content.terminalId);
  }

  app() {
    return acp
      .client({ name: "checks" })
      .onNotification(offer.session.update, ({ params }) => this.note(this.heard, params.update))
      .onRequest(offer.session.requestPermission, ({ params, signal }) => this.decide(params, signal))
      .onRequest(offer.fs.readTextFile, ({ params }) => this.read(params))
      .onRequest(offer.fs.writeTextFile, ({ params }) => {
        this.buffers.set(params.path, params.content);
        this.written.set(params.path, params.content);
        return {};
      })
      .onRequest(offer.terminal.create, ({ params }) => this.open(params))
      .onRequest(offer.terminal.output, ({ params }) => ({
        output: this.terminal(params).output,
        truncated: false,
      }))
      .onRequest(offer.terminal.waitForExit, async ({ params }) => {
        const { child, ended } = this.terminal(params);
        await ended;
        return { exitCode: child.exitCode, signal: child.signalCode };
      })
      .onRequest(offer.terminal.kill, ({ params }) => {
        this.terminal(params).child.kill("SIGKILL");
        this.note(this.killed, params.terminalId);
        return {};
      })
      .onRequest(offer.terminal.release, ({ params }) => {
        this.terminal(params).child.kill("SIGKILL");
        this.note(this.released, params.terminalId);
        return {};
      });
  }

  private note<T>(notes: T[], note: T) {
    notes.push(note);
    this.changed.emit("change");
  }

  private async decide(params: acp.RequestPermissionRequest, signal: AbortSignal) {
    this.note(this.asked, params);
    const chosen = params.options.find((option) => option.kind === this.choice);
    if (!chosen) {
      if (!signal.aborted) await once(signal, "abort");
      this.withdrawn += 1;
      this.changed.emit("change");
      return { outcome: { outcome: "cancelled" as const } };
    }
    return { outcome: { outcome: "selected" as const, optionId: chosen.optionId } };
  }

  private read({ path, line, limit }: acp.ReadTextFileRequest) {
    const text = this.buffers.get(path) ?? (existsSync(path) ? readFileSync(path, "utf8") : undefined);
    if (text === undefined) throw acp.RequestError.resourceNotFound(path);
    const from = (line ?? 1) - 1;
    const lines = text.split(/(?<=\n)/).slice(from, limit == null ? undefined : from + limit);
    return { content: lines.join("") };
  }

  private open({ command, args, cwd }: acp.CreateTerminalRequest) {
    const child = spawn(command, args ?? [], { cwd: cwd ?? undefined, stdio: ["ignore", "pipe", "pipe"] });
    const terminal = { child, output: "", ended: once(child, "close") };
    for (const stream of [child.stdout, child.stderr]) {
      stream.on("data", (data) => (terminal.output += data));
    }
    this.terminals.push(terminal);
    return { terminalId: `terminal-${this.terminals.length}` };
  }

  private terminal({ terminalId }: { terminalId: string }) {
    return this.terminals[Number(terminalId.split("-")[1]) - 1];
  }
}

type Options = { choice?: string | null; capabilities?: acp.ClientCapabilities };
type Act<T> = (crow: acp.ClientContext, editor: Editor, hello: acp.InitializeResponse) => Promise<T>;

// A new agent process and an editor that has said hello to it.
async function agent<T>(options: Options, act: Act<T>): Promise<T> {
  const { choice = "allow_once", capabilities = {} } = options;
  const editor = new Editor(choice);
  const args = HTTP ? ["acp", "--listen", "127.0.0.1:0"] : ["acp"];
  const child = spawn(CROW, args, { cwd: PROJECT, stdio: ["pipe", "pipe", "inherit"] });
  const ended = once(child, "exit");
  if (WIRE) child.stdout.on("data", (data) => process.stderr.write(data));
  const stream = HTTP
    ? await httpStream(child)
    : acp.ndJsonStream(
        Writable.toWeb(child.stdin) as WritableStream<Uint8Array>,
        Readable.toWeb(child.stdout) as ReadableStream<Uint8Array>,
      );
  try {
    return await editor.app().connectWith(stream, async (crow) => {
      const hello = await crow.request(ask.initialize, {
        protocolVersion: acp.PROTOCOL_VERSION,
        clientCapabilities: capabilities,
      });
      return await act(crow, editor, hello);
    });
  } finally {
    if (HTTP) child.kill("SIGTERM");
    else child.stdin.end();
    await ended;
    assert.equal(child.exitCode, 0, "the agent's exit code");
  }
}

// A connection to a server that has said where it is.
async function httpStream(child: ChildProcess) {
  const [line] = await once(child.stdout!, "data");
  const { url, token_file } = JSON.parse(String(line));
  const token = readFileSync(token_file, "utf8").trim();
  return createHttpStream(url.replace("ws://", "http://"), { headers: { Authorization: `Bearer ${token}` } });
}

const at = (name: string) => join(PROJECT, name);
const here = { cwd: PROJECT, mcpServers: [] };
const words = (text: string) => [{ type: "text" as const, text }];
const open = async (crow: acp.ClientContext) => (await crow.request(ask.session.new, here)).sessionId;
const prompt = async (crow: acp.ClientContext, sessionId: string, text: string) =>
  (await crow.request(ask.session.prompt, { sessionId, prompt: words(text) })).stopReason;
const within = (part: unknown, whole: any) => assert(whole.includes(part), `no ${part} in ${JSON.stringify(whole)}`);
const fails = (request: Promise<unknown>, code: number, kind: string) =>
  assert.rejects(request, (error: any) => {
    assert.deepEqual([error.code, error.data?.kind], [code, kind]);
    return true;
  });

// What a person sees in the end: words joined, each call in its last state.
function settled(updates: any[]): any[] {
  const seen: any[] = [];
  const calls = new Map<string, any>();
  for (const { sessionUpdate: kind, ...fields } of updates) {
    if (kind.endsWith("_chunk")) {
      const last = seen.at(-1);
      if (last?.kind === kind && last.id === fields.messageId) last.text += fields.content.text;
      else seen.push({ kind, id: fields.messageId, text: fields.content.text });
    } else if (kind.startsWith("tool_call")) {
      if (!calls.has(fields.toolCallId)) {
        calls.set(fields.toolCallId, {});
        seen.push(calls.get(fields.toolCallId));
      }
      // Terminals end with their process: what is replayed is their text.
      if (fields.content?.some((content: any) => content.type === "terminal")) delete fields.content;
      Object.assign(calls.get(fields.toolCallId), fields);
    }
  }
  return seen;
}

// A session with a bit of everything, made by a process that has ended, and what was heard of it.
const toldSession = (capabilities = {}) =>
  agent({ capabilities }, async (crow, editor) => {
    const session = await open(crow);
    model.say(
      String.raw`thought "hm" | text "Looking." | call write {"file_path": "told.txt", "content": "a\n"}`,
      'call terminal {"command": "echo b"}',
      'text "Done."',
    );
    assert.equal(await prompt(crow, session, "tell me"), "end_turn");
    return { session, live: editor.heard };
  });

const files = { fs: { readTextFile: true, writeTextFile: true } };

const checks: Record<string, () => Promise<void>> = {
  "a prompt streams": () =>
    agent({}, async (crow, editor) => {
      const session = await open(crow);
      model.say('thought "hm" | text "Hel" | text "lo" | usage 12 3');
      assert.equal(await prompt(crow, session, "hi"), "end_turn");
      assert.deepEqual([editor.text("agent_thought_chunk"), editor.text()], ["hm", "Hello"]);
      within(15, editor.heard.map((update) => update.used));
      assert.deepEqual(model.told(), ["hi"]);
    }),

  "the program of the guide": async () => {
    const bin = join(HOME, "bin");
    mkdirSync(bin);
    symlinkSync(CROW, join(bin, "crow-cli"));
    model.say('text "The answer."');
    const child = spawn(process.execPath, ["--experimental-strip-types", join(CLIENTS, "ask.ts"), "why?"], {
      cwd: PROJECT,
      env: { ...process.env, PATH: `${bin}:${process.env.PATH}`, NODE_NO_WARNINGS: "1" },
      stdio: ["ignore", "pipe", "inherit"],
    });
    let output = "";
    child.stdout.on("data", (data) => (output += data));
    await once(child, "close");
    assert.deepEqual([child.exitCode, output], [0, "The answer.\n"]);
    assert.deepEqual(model.told(), ["why?"]);
  },

  "permission allowed": () =>
    agent({}, async (crow, editor) => {
      const session = await open(crow);
      model.say(String.raw`call write {"file_path": "allowed.txt", "content": "yes\n"}`, 'text "done"');
      assert.equal(await prompt(crow, session, "write"), "end_turn");
      assert.equal(editor.asked.length, 1);
      assert.equal(readFileSync(at("allowed.txt"), "utf8"), "yes\n");
    }),

  "permission denied, and the model knows": () =>
    agent({ choice: "reject_once" }, async (crow, editor) => {
      const session = await open(crow);
      model.say('call write {"file_path": "denied.txt", "content": "no"}', 'text "pity"');
      assert.equal(await prompt(crow, session, "write"), "end_turn");
      assert(!existsSync(at("denied.txt")));
      assert.equal(settled(editor.heard)[0].status, "failed");
      within("rejected", model.told()[1]);
    }),

  "a write goes through the client": () =>
    agent({ capabilities: files }, async (crow, editor) => {
      const session = await open(crow);
      model.say(String.raw`call write {"file_path": "mine.txt", "content": "new\n"}`, 'text "done"');
      assert.equal(await prompt(crow, session, "write"), "end_turn");
      assert.deepEqual([...editor.written], [[at("mine.txt"), "new\n"]]);
      assert(!existsSync(at("mine.txt")));
      const [diff] = settled(editor.heard)[0].content;
      assert.deepEqual([diff.type, diff.newText], ["diff", "new\n"]);
    }),

  "a read sees what is not saved": () =>
    agent({ capabilities: files }, async (crow, editor) => {
      const session = await open(crow);
      writeFileSync(at("open.txt"), "saved\n");
      editor.buffers.set(at("open.txt"), "not saved\n");
      model.say('call read {"file_path": "open.txt"}', 'text "done"');
      assert.equal(await prompt(crow, session, "read"), "end_turn");
      within("not saved", model.told()[1]);
    }),

  "a command runs in the client's terminal": () =>
    agent({ capabilities: { terminal: true } }, async (crow, editor) => {
      const session = await open(crow);
      model.say('call terminal {"command": "echo here; exit 3"}', 'text "done"');
      assert.equal(await prompt(crow, session, "run"), "end_turn");
      await editor.until(() => editor.released.includes("terminal-1"));
      within("terminal-1", editor.shown());
      within("here\nexit code 3", model.told()[1]);
    }),

  "cancel in a reply": () =>
    agent({}, async (crow, editor) => {
      const sessionId = await open(crow);
      model.say('text "part" | hold', 'text "next"');
      const turn = prompt(crow, sessionId, "long");
      await editor.until(() => editor.text() === "part");
      await crow.notify(ask.session.cancel, { sessionId });
      assert.equal(await turn, "cancelled");
      assert.equal(await prompt(crow, sessionId, "again"), "end_turn");
    }),

  "cancel in a question": () =>
    agent({ choice: null }, async (crow, editor) => {
      const sessionId = await open(crow);
      model.say('call terminal {"command": "touch asked.txt"}');
      const turn = prompt(crow, sessionId, "run");
      await editor.until(() => editor.asked.length > 0);
      await crow.notify(ask.session.cancel, { sessionId });
      assert.equal(await turn, "cancelled");
      await editor.until(() => editor.withdrawn === 1);
    }),

  "cancel in a terminal": () =>
    agent({ capabilities: { terminal: true } }, async (crow, editor) => {
      const sessionId = await open(crow);
      model.say('call terminal {"command": "exec tail -f /dev/null"}');
      const turn = prompt(crow, sessionId, "run");
      await editor.until(() => editor.shown().includes("terminal-1"));
      await crow.notify(ask.session.cancel, { sessionId });
      assert.equal(await turn, "cancelled");
      assert.deepEqual(editor.killed, ["terminal-1"]);
      await editor.until(() => editor.released.includes("terminal-1"));
    }),

  "a prompt taken back": () =>
    agent({}, async (crow, editor) => {
      const sessionId = await open(crow);
      model.say('text "part" | hold', 'text "next"');
      const back = new AbortController();
      const taken = { cancellationSignal: back.signal };
      const turn = crow.request(ask.session.prompt, { sessionId, prompt: words("long") }, taken);
      await editor.until(() => editor.text() === "part");
      back.abort();
      assert.equal((await turn).stopReason, "cancelled");
      assert.equal(await prompt(crow, sessionId, "again"), "end_turn");
    }),

  "list in another process": async () => {
    const { session } = await toldSession();
    await agent({}, async (crow) => {
      const { sessions } = await crow.request(ask.session.list, { cwd: PROJECT });
      assert.deepEqual([sessions[0].sessionId, sessions[0].cwd], [session, PROJECT]);
      assert.deepEqual((await crow.request(ask.session.list, { cwd: "/nowhere" })).sessions, []);
    });
  },

  "load replays what was heard": async () => {
    const { session, live } = await toldSession({ ...files, terminal: true });
    await agent({ capabilities: { ...files, terminal: true } }, async (crow, editor) => {
      const loaded = await crow.request(ask.session.load, { ...here, sessionId: session });
      assert.equal(loaded.modes?.currentModeId, "ask");
      const [said, ...replayed] = settled(editor.heard);
      assert.equal(said.text, "tell me");
      const command = replayed.find((seen) => seen.kind === "execute");
      // Live it was a terminal, for which `settled` shows no content.
      within("b\n", command.content[0].content.text);
      delete command.content;
      assert.deepEqual(replayed, settled(live));
    });
  },

  "resume replays nothing": async () => {
    const { session } = await toldSession();
    model.requests();
    await agent({}, async (crow, editor) => {
      await crow.request(ask.session.resume, { ...here, sessionId: session });
      assert.deepEqual(settled(editor.heard), []);
      model.say('text "I know."');
      assert.equal(await prompt(crow, session, "remember?"), "end_turn");
      const said = model.requests()[0].messages.filter((message: any) => message.role === "user");
      assert.deepEqual([said.at(0).content, said.at(-1).content], ["tell me", "remember?"]);
    });
  },

  close: () =>
    agent({}, async (crow, editor) => {
      const sessionId = await open(crow);
      model.say('text "part" | hold');
      const turn = prompt(crow, sessionId, "long");
      await editor.until(() => editor.text() === "part");
      await crow.request(ask.session.close, { sessionId });
      assert.equal(await turn, "cancelled");
      await fails(prompt(crow, sessionId, "hello?"), -32002, "session_not_found");
      await crow.request(ask.session.load, { ...here, sessionId });
    }),

  delete: () =>
    agent({}, async (crow) => {
      const sessionId = await open(crow);
      model.say('text "hi"');
      await prompt(crow, sessionId, "hi");
      await crow.request(ask.session.delete, { sessionId });
      await crow.request(ask.session.delete, { sessionId });
      const { sessions } = await crow.request(ask.session.list, {});
      assert(!sessions.some((info) => info.sessionId === sessionId));
      await fails(crow.request(ask.session.load, { ...here, sessionId }), -32002, "session_not_found");
    }),

  steering: () =>
    agent({}, async (crow, editor, hello) => {
      assert.deepEqual(hello._meta?.steering, { supported: true });
      const sessionId = await open(crow);
      model.say('text "working" | hold | call glob {"pattern": "*.txt"}', 'text "done"');
      const turn = prompt(crow, sessionId, "work");
      await editor.until(() => editor.text() === "working");
      const steering = crow.request("_session/steering", { sessionId, prompt: words("only the first") });
      // Steering is answered when the model gets the words; that they have arrived, the next answer says.
      await crow.request(ask.session.setMode, { sessionId, modeId: "ask" });
      model.say("release");
      assert.deepEqual([await steering, await turn], [{ outcome: "injected" }, "end_turn"]);
      within("only the first", model.told()[1]);
    }),

  options: () =>
    agent({}, async (crow, editor) => {
      const sessionId = await open(crow);
      const set = (configId: string, value: string) =>
        crow.request(ask.session.setConfigOption, { sessionId, configId, value });
      await crow.request(ask.session.setMode, { sessionId, modeId: "accept-edits" });
      await set("thought_level", "high");
      const { configOptions } = await set("model", "other");
      const values = configOptions.map((option) => [option.id, option.currentValue]);
      assert.deepEqual(values, [["mode", "accept-edits"], ["model", "other"], ["thought_level", "high"]]);
      model.say('call write {"file_path": "free.txt", "content": ""}', 'text "done"');
      assert.equal(await prompt(crow, sessionId, "write"), "end_turn");
      assert.deepEqual(editor.asked, []);
      const [request] = model.requests();
      assert.deepEqual([request.model, request.reasoning_effort], ["other", "high"]);
      await fails(set("model", "none"), -32602, "invalid_value");
    }),

  "additional directories": () =>
    agent({}, async (crow, editor) => {
      const beside = at("../beside");
      mkdirSync(beside);
      writeFileSync(join(beside, "far.txt"), "far away\n");
      const { sessionId } = await crow.request(ask.session.new, { ...here, additionalDirectories: [beside] });
      model.say('call read {"file_path": "../beside/far.txt"}', 'text "done"');
      assert.equal(await prompt(crow, sessionId, "read"), "end_turn");
      assert.deepEqual(editor.asked, []);
      within("far away", model.told()[1]);
    }),

  errors: () =>
    agent({}, async (crow) => {
      await fails(prompt(crow, "no-such-session", "hi"), -32002, "session_not_found");
      const relative = { cwd: "relative", mcpServers: [] };
      await fails(crow.request(ask.session.new, relative), -32602, "invalid_value");
      const session = await open(crow);
      model.say('status 401 {"error": {"message": "who?"}}');
      await fails(prompt(crow, session, "hi"), -32603, "provider_auth");
    }),
};

for (const [name, check] of Object.entries(checks)) {
  if (!name.includes(ONLY)) continue;
  model.requests();
  const patience = AbortSignal.timeout(PATIENCE_MS);
  const late = once(patience, "abort").then(() => Promise.reject(new Error("it hung")));
  try {
    await Promise.race([check(), late]);
    console.log(`ok ${client}: ${name}`);
  } catch (error: any) {
    console.log(`FAILED ${client}: ${name}: ${error.message}`.replaceAll("\n", " "));
    process.exitCode = 1;
  }
}
// A check that hung holds the process.
process.exit();
