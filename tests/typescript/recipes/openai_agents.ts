// OpenAI Agents SDK: `node openai_agents.ts FILE` continues the run whose state is in FILE.
import { existsSync, readFileSync } from "node:fs";

import { Agent, run, RunState, setTracingDisabled, tool } from "@openai/agents";
import { gate } from "@sayso/client";
import { z } from "zod";

import { agentsModel as model, pay, save } from "./parts.ts";

setTracingDisabled(true);
const refund = gate("refund", pay, { onDenied: "return" });
const agent = new Agent({
  name: "shop",
  model,
  tools: [
    tool({
      name: "refund",
      description: "Pay a customer back.",
      parameters: z.object({ order: z.string(), amount: z.number() }),
      needsApproval: async (_context, args, callId = "") => (await refund.withKey(callId).ask(args)).status === "pending",
      execute: (args, _context, details) => refund.withKey(details?.toolCall?.callId ?? "")(args),
    }),
  ],
});

const [, , file = ""] = process.argv;
const state = existsSync(file) ? await RunState.fromString(agent, readFileSync(file, "utf8")) : "Refund order A-1.";
let result = await run(agent, state);
while (result.interruptions.length > 0) {
  save(file, result.state.toString());
  // The SDK may run the tool: its gate waits for the decision, and returns a denial.
  for (const interruption of result.interruptions) result.state.approve(interruption);
  result = await run(agent, result.state);
}
console.log(result.finalOutput);
