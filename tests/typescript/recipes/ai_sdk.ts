// Vercel AI SDK 7: `node ai_sdk.ts FILE` continues the conversation in FILE, in whatever process.
import { existsSync, readFileSync } from "node:fs";

import { gate } from "@sayso/client";
import { generateText, isStepCount, type ModelMessage, tool } from "ai";
import { z } from "zod";

import { aiModel as model, pay, type Payment, save } from "./parts.ts";

const refund = gate("refund", pay, { onDenied: "return" });
const tools = {
  refund: tool({
    description: "Pay a customer back.",
    inputSchema: z.object({ order: z.string(), amount: z.number() }),
    needsApproval: async (args: Payment, { toolCallId }) =>
      (await refund.withKey(toolCallId).ask(args)).status === "pending",
    execute: (args: Payment, { toolCallId }) => refund.withKey(toolCallId)(args),
  }),
};

const [, , file = ""] = process.argv;
const messages: ModelMessage[] = existsSync(file)
  ? JSON.parse(readFileSync(file, "utf8"))
  : [{ role: "user", content: "Refund order A-1." }];
for (;;) {
  const turn = await generateText({ model, tools, messages, stopWhen: isStepCount(5) });
  messages.push(...turn.responseMessages);
  const requests = turn.content.filter((part) => part.type === "tool-approval-request");
  if (requests.length === 0) {
    console.log(turn.text);
    break;
  }
  // The SDK may run the tool: its gate waits for the decision, and returns a denial.
  const content = requests.map(({ approvalId }) => ({ type: "tool-approval-response" as const, approvalId, approved: true }));
  messages.push({ role: "tool", content });
  save(file, JSON.stringify(messages));
}
