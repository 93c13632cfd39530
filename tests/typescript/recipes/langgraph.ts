// LangGraph: `node langgraph.ts FILE` continues the thread whose checkpoints are in FILE.
import { Annotation, Command, END, interrupt, isInterrupted, START, StateGraph } from "@langchain/langgraph";
import { gate } from "@sayso/client";

import { FileSaver } from "./file_saver.ts";
import { callId, pay, request } from "./parts.ts";

const refund = gate("refund", pay, { onDenied: "return" }).withKey(callId);

async function payBack() {
  // A resumed node runs again from its start: the key leads to the same item.
  const { status } = await refund.ask(request);
  if (status === "pending") interrupt("A person decides.");
  return { result: await refund(request) };
}

const [, , file = ""] = process.argv;
const graph = new StateGraph(Annotation.Root({ result: Annotation<string> }))
  .addNode("payBack", payBack)
  .addEdge(START, "payBack")
  .addEdge("payBack", END)
  .compile({ checkpointer: new FileSaver(file) });
const config = { configurable: { thread_id: callId } };
const { next } = await graph.getState(config);
let state = await graph.invoke(next.length > 0 ? new Command({ resume: true }) : {}, config);
// The gate waits for the decision, in this process and in any other that resumes the thread.
while (isInterrupted(state)) state = await graph.invoke(new Command({ resume: true }), config);
console.log(state.result);
