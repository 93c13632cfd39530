// Mastra: `node mastra.ts FILE` continues the workflow run that is kept in the database FILE.
import { Mastra } from "@mastra/core";
import { createStep, createWorkflow } from "@mastra/core/workflows";
import { LibSQLStore } from "@mastra/libsql";
import { gate } from "@sayso/client";
import { z } from "zod";

import { callId, pay, request } from "./parts.ts";

const refund = gate("refund", pay, { onDenied: "return" }).withKey(callId);
const inputSchema = z.object({ order: z.string(), amount: z.number() });
const outputSchema = z.object({ result: z.string() });
const resumeSchema = z.object({ resumed: z.boolean() });

const payBack = createStep({
  id: "pay-back",
  inputSchema,
  outputSchema,
  resumeSchema,
  execute: async ({ inputData, resumeData, suspend }) => {
    const { status } = await refund.ask(inputData);
    if (status === "pending" && resumeData === undefined) return suspend({});
    return { result: await refund(inputData) };
  },
});
const workflow = createWorkflow({ id: "refunds", inputSchema, outputSchema }).then(payBack).commit();

const [, , file = ""] = process.argv;
const storage = new LibSQLStore({ id: "runs", url: `file:${file}` });
const refunds = new Mastra({ workflows: { refunds: workflow }, storage, logger: false }).getWorkflow("refunds");
const known = await refunds.getWorkflowRunById(callId);
const run = await refunds.createRun({ runId: callId });
const resume = () => run.resume({ step: payBack, resumeData: { resumed: true } });
let state = await (known?.status === "suspended" ? resume() : run.start({ inputData: request }));
// The gate waits for the decision, in this process and in any other that resumes the run.
while (state.status === "suspended") state = await resume();
console.log(state.status === "success" ? state.result.result : state);
