// Asks Crow one question and prints its answer: `node --experimental-strip-types ask.ts QUESTION`.
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";

const program = spawn("crow-cli", ["acp"], { stdio: ["pipe", "pipe", "inherit"] });
const stream = acp.ndJsonStream(
  Writable.toWeb(program.stdin),
  Readable.toWeb(program.stdout) as ReadableStream<Uint8Array>,
);

await acp
  .client({ name: "ask" })
  .onRequest(acp.methods.client.session.requestPermission, ({ params }) => {
    // Found by its kind: the order of options is the agent's.
    const reject = params.options.find((option) => option.kind === "reject_once");
    if (!reject) return { outcome: { outcome: "cancelled" } };
    return { outcome: { outcome: "selected", optionId: reject.optionId } };
  })
  .connectWith(stream, async (agent) => {
    await agent.request(acp.methods.agent.initialize, {
      protocolVersion: acp.PROTOCOL_VERSION,
      clientCapabilities: {},
    });
    await agent.buildSession(process.cwd()).withSession(async (session) => {
      const turn = session.prompt(process.argv[2] ?? "What does this project do?");
      console.log(await session.readText());
      await turn;
    });
  });
program.stdin.end();
