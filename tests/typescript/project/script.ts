/** A program with a gated function, to be killed: `node script.js FILE ORDER [idempotent|ask] [slow]`. */

import { appendFileSync, readFileSync } from "node:fs";

import { Denied, gate } from "@sayso/client";

const [, , file = "", order = "", mode = "", fifo = ""] = process.argv;
const refund = gate(
  "refund",
  (args: { order: string; amount: number }) => {
    appendFileSync(file, `${args.order} ${args.amount}\n`);
    if (fifo !== "") readFileSync(fifo);
    return `paid ${args.amount} for ${args.order}`;
  },
  { key: "refund-{order}", idempotent: mode === "idempotent", onDoubt: mode === "ask" ? "ask" : "raise" },
);
try {
  console.log(await refund({ order, amount: 250 }));
} catch (error) {
  if (!(error instanceof Error)) throw error;
  console.log(error instanceof Denied ? error.forModel : error.name);
}
