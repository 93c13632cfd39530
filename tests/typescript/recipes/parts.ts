// What the recipes share: a tool that notes what it paid, and models that ask for it once and then say its result.
import { appendFileSync, renameSync, writeFileSync } from "node:fs";

import type { Model } from "@openai/agents";
import { Usage } from "@openai/agents";
import { MockLanguageModelV4 } from "ai/test";

const [, , , paid = "", order = ""] = process.argv;

export const callId = `call-${order}`;
export const request = { order, amount: 250 };

export type Payment = typeof request;

export function pay({ order, amount }: Payment): string {
  appendFileSync(paid, `${amount}\n`);
  return `paid ${amount} for ${order}`;
}

/** Replace a file in one step. A service keeps this in its database. */
export function save(file: string, content: string | Uint8Array): void {
  writeFileSync(`${file}.new`, content);
  renameSync(`${file}.new`, file);
}

const tokens = { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0, text: 1, reasoning: 0 };

/** A model of the AI SDK. */
export const aiModel = new MockLanguageModelV4({
  doGenerate: async ({ prompt }) => {
    const result = prompt.at(-1)?.role === "tool" ? prompt.at(-1) : undefined;
    const call = { type: "tool-call" as const, toolCallId: callId, toolName: "refund", input: JSON.stringify(request) };
    return {
      content: [result === undefined ? call : { type: "text", text: JSON.stringify(result.content) }],
      finishReason: { unified: result === undefined ? "tool-calls" : "stop", raw: undefined },
      usage: { inputTokens: tokens, outputTokens: tokens },
      warnings: [],
    };
  },
});

/** A model of the OpenAI Agents SDK. */
export const agentsModel: Model = {
  async getResponse({ input }) {
    const last = typeof input === "string" ? undefined : input.at(-1);
    const call = { type: "function_call" as const, callId, name: "refund", status: "completed" as const, arguments: JSON.stringify(request) };
    const text = { type: "output_text" as const, text: JSON.stringify(last) };
    const message = { type: "message" as const, role: "assistant" as const, status: "completed" as const, content: [text] };
    return { usage: new Usage(), output: [last?.type === "function_call_result" ? message : call] };
  },
  getStreamedResponse() {
    throw new Error("nothing streams here");
  },
};
