// The smallest MCP server on stdio: one tool, `shout`, that says its text in capitals.
import { createInterface } from "node:readline";

const answers = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: "echo", version: "1" },
  }),
  ping: () => ({}),
  "tools/list": () => ({
    tools: [
      {
        name: "shout",
        description: "Says it in capitals",
        inputSchema: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
      },
    ],
  }),
  "tools/call": (params) => ({ content: [{ type: "text", text: params.arguments.text.toUpperCase() }] }),
};

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) continue;
  const answer = answers[method];
  const said = answer ? { result: answer(params) } : { error: { code: -32601, message: `no ${method}` } };
  console.log(JSON.stringify({ jsonrpc: "2.0", id, ...said }));
}
