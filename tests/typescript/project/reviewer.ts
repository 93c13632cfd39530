/** A reviewer over the API: what `@sayso/client` leaves to people. */

import { setTimeout as sleep } from "node:timers/promises";

import { parseJson, type Suspension, writeJson } from "@sayso/client";

const DESK = `${process.env["SAYSO_URL"]}/api/v1`;
let token: Promise<string> | undefined;

async function send(path: string, body?: object, bearer?: string): Promise<any> {
  const response = await fetch(DESK + path, {
    method: body === undefined ? "GET" : "POST",
    headers: {
      "Content-Type": "application/json",
      "Idempotency-Key": crypto.randomUUID(),
      ...(bearer === undefined ? {} : { Authorization: `Bearer ${bearer}` }),
    },
    ...(body === undefined ? {} : { body: writeJson(body) }),
  });
  const answer = parseJson(await response.text());
  if (!response.ok) throw new Error(JSON.stringify(answer));
  return answer;
}

async function act(path: string, body?: object): Promise<any> {
  token ??= send("/sessions", { name: "admin", password: process.env["SAYSO_ADMIN_PASSWORD"] }).then((one) => one.token);
  return send(path, body, await token);
}

/** Return the pending item of a tool whose arguments have a value; waits until it is there. */
export async function findPending(tool: string, order: unknown): Promise<Suspension> {
  for (;;) {
    const { suspensions } = await act("/suspensions?limit=100");
    for (const { id } of suspensions) {
      const suspension = (await act(`/suspensions/${id}`)) as Suspension;
      const call = suspension.items[0]?.tool;
      if (suspension.status === "pending" && call?.name === tool && Object.values(call.args).includes(order)) {
        return suspension;
      }
    }
    await sleep(50);
  }
}

export async function decide(suspension: Suspension, decision: object): Promise<void> {
  const [item] = suspension.items;
  await act(`/suspensions/${suspension.id}/items/${item!.item_id}/decision`, { digest: item!.digest, ...decision });
}
