// A client of @modelcontextprotocol/client that takes tasks with @modelcontextprotocol/ext-tasks.
//
// `node tasks.mjs FILE PROGRAM …` starts the proxy, makes a held call, saves its task in FILE and waits. With a task in
// FILE it goes on with that instead. It prints the outcome.
import { existsSync, readFileSync, writeFileSync } from "node:fs";

import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { createTaskSessionFromClient } from "@modelcontextprotocol/ext-tasks/client";

const [, , file, command, ...args] = process.argv;
const clientInfo = { name: "tasks", version: "1" };
const clientCapabilities = { extensions: { "io.modelcontextprotocol/tasks": {} } };
const client = new Client(clientInfo, { capabilities: clientCapabilities, versionNegotiation: { mode: "auto" } });
const transport = new StdioClientTransport({ command, args, env: process.env, stderr: "inherit" });
await client.connect(transport);

const raw = new Map();
const deliver = transport.onmessage;
transport.onmessage = (message, extra) => {
  const answer = raw.get(message.id);
  raw.delete(message.id);
  if (answer === undefined) deliver(message, extra);
  else answer("error" in message ? { kind: "error", error: message.error } : { kind: "result", result: message.result });
};
const rawDispatch = (request) =>
  new Promise((answer) => {
    const id = `raw-${raw.size}-${performance.now()}`;
    raw.set(id, answer);
    void transport.send({ jsonrpc: "2.0", id, ...request });
  });

const protocolVersion = client.getNegotiatedProtocolVersion();
const session = createTaskSessionFromClient(client, {
  endpointId: "bank",
  rawDispatch,
  v2RequestFraming: { protocolVersion, clientInfo, clientCapabilities },
});
const execution = existsSync(file)
  ? await session.resumeTask(JSON.parse(readFileSync(file, "utf8")))
  : await session.callTool("send_money", { to: "ann", amount: 7 });
if (!existsSync(file)) writeFileSync(file, JSON.stringify(execution.serializeReference()));
const { outcome } = await execution.settle();
console.log(JSON.stringify(outcome));
await session.close();
await client.close();
