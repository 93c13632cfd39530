/** The client of a desk's API for agents. */

import type { components } from "./api.js";
import type { Json, JsonObject } from "./json.js";
import { Connection, type ConnectionOptions, segment } from "./requests.js";
import { REDEEMED, RUN, SUSPENSION } from "./shapes.js";

type Schemas = components["schemas"];
export type Suspension = Schemas["SuspensionView"];
export type Item = Schemas["ItemView"];
export type Run = Schemas["RunView"];
export type Redeemed = Omit<Schemas["RedeemedItem"], "args"> & { args: JsonObject };
export type SuspensionRequest = Omit<Schemas["SuspensionRequest"], "calls" | "context"> & {
  calls: { tool: string; args: object; definition?: { description?: string; parameters?: object; idempotent?: boolean } }[];
  context?: object;
};

export interface WriteOptions {
  /** The idempotency key: the same request with the same key has its effect once. */
  key: string;
  onBehalfOf?: string | null | undefined;
}

/** The result of a call, as its owner reports it. */
export interface Outcome {
  success: boolean;
  output?: Json;
  error?: string | null;
}

export class Client {
  readonly #connection: Connection;

  constructor(options: ConnectionOptions = {}) {
    this.#connection = new Connection(options);
  }

  get url(): string {
    return this.#connection.url;
  }

  /** Ask about calls. The same key leads to the same suspension. */
  ask(request: SuspensionRequest, { key, onBehalfOf }: WriteOptions): Promise<Suspension> {
    return this.#send({ method: "POST", path: "/api/v1/suspensions", body: request, key, onBehalfOf });
  }

  /** Read a suspension. */
  get(suspensionId: string): Promise<Suspension> {
    return this.#send({ method: "GET", path: suspensionPath(suspensionId) });
  }

  /** Return a suspension once it is decided, or its current state after `waitS`. */
  wait(suspensionId: string, waitS?: number): Promise<Suspension> {
    const path = suspensionPath(suspensionId);
    const isDone = (suspension: Suspension) => suspension.status !== "pending";
    return this.#connection.poll((pollS) => ({ method: "GET", path, pollS }), SUSPENSION, isDone, waitS);
  }

  /** Redeem the permit of an approved call for one holder. Run exactly the `args` of the answer. */
  redeem(suspensionId: string, itemId: string, holder: string, reportWithinS?: number): Promise<Redeemed> {
    const body = { report_within_s: reportWithinS };
    return this.#connection.send(
      { method: "POST", path: itemPath(suspensionId, itemId, "redeem"), body, key: holder },
      REDEEMED,
    );
  }

  /** Report the result of a call whose permit the holder redeemed. */
  report(suspensionId: string, itemId: string, holder: string, outcome: Outcome): Promise<Suspension> {
    return this.#send({ method: "POST", path: itemPath(suspensionId, itemId, "outcome"), body: outcome, key: holder });
  }

  /** Ask a person whether a started call has run. */
  markInDoubt(suspensionId: string, itemId: string): Promise<Suspension> {
    return this.#send({ method: "POST", path: itemPath(suspensionId, itemId, "in-doubt") });
  }

  /** Return a run once `isDone`, or its current state after `waitS`. By default it is done when it has ended. */
  awaitRun(runId: string, waitS?: number, isDone = hasEnded, longestS = Infinity): Promise<Run> {
    const path = `/api/v1/runs/${segment(runId)}`;
    const build = (pollS: number) => ({ method: "GET", path, pollS: Math.min(pollS, longestS) }) as const;
    return this.#connection.poll(build, RUN, isDone, waitS);
  }

  #send(request: Parameters<Connection["send"]>[0]): Promise<Suspension> {
    return this.#connection.send(request, SUSPENSION);
  }
}

/** Whether a run does nothing more. */
export function hasEnded(run: Run): boolean {
  return run.status !== "running" && run.status !== "suspended";
}

function suspensionPath(suspensionId: string): string {
  return `/api/v1/suspensions/${segment(suspensionId)}`;
}

function itemPath(suspensionId: string, itemId: string, verb: string): string {
  return `${suspensionPath(suspensionId)}/items/${segment(itemId)}/${verb}`;
}
