/** `gate`: a function that runs only with a permit, at most once for each key, and exactly as approved. */

import { Client, type Suspension } from "./client.js";
import { Denied, InvalidInput } from "./errors.js";
import { newKey, runAs } from "./holders.js";
import type { JsonObject } from "./json.js";
import * as permits from "./permits.js";

const REPORT_WITHIN_S = 86_400;
const LONGEST_WAIT_S = 30 * 86_400;

/** What a gated function receives beside its arguments. */
export interface Call {
  /** The same key for every attempt of this call. Pass it to the systems that the call changes. */
  idempotencyKey: string;
  runId: string;
  suspensionId: string;
  itemId: string;
  attempt: number;
}

export interface GateOptions<A> {
  /** By default one that reads SAYSO_URL and SAYSO_KEY. */
  client?: Client;
  /** What the tool does; reviewers and models read it. */
  description?: string;
  /** The JSON Schema of the arguments: reviewers edit them in a form. */
  schema?: object;
  /** Whether a second run of a call that may have run does no harm. */
  idempotent?: boolean;
  /** The identity of the call with its tool: text such as `refund-{order}`, or a function of the arguments. */
  key?: string | ((args: A) => string);
  /** What reviewers read above the call; by default the tool's name. */
  title?: string;
  /** What the agent says about the call; rules read it as `claimed`. */
  context?: object;
  /** Seconds to wait before `Suspended` is thrown: by default until the deadline, 0 does not wait. */
  waitS?: number;
  /** For a call that an earlier process started and never reported: `raise` throws `InDoubt`, `ask` asks a person. */
  onDoubt?: "raise" | "ask";
  /** With `return` a denied call returns `Denied.forModel`, a sentence for the model. */
  onDenied?: "raise" | "return";
  /** Seconds within which a started call must report; after that its run ends as failed. */
  reportWithinS?: number;
  /** The name of the conversation. */
  threadId?: string;
  /** The number of the model's turn. */
  step?: number;
  /** Ask once more under a key whose item nobody decided in time, or whose approved call did not start in time. */
  again?: boolean;
  /** A signed token that names the person for whom the agent acts, or a function that returns it. */
  onBehalfOf?: string | (() => string | null | undefined | Promise<string | null | undefined>);
  /** Print nothing while the call waits; otherwise one line with the item's link goes to standard error. */
  quiet?: boolean;
}

/** A gated function. */
export interface Gated<A, R> {
  (args: A): Promise<R>;
  /** Ask about the call without running it; its status `pending` says that people have still to decide. */
  ask(args: A): Promise<Suspension>;
  /** Return the same function under a key, such as that in the facts of `Suspended`. */
  withKey(key: string): Gated<A, R>;
  /** Return the same function for a new version of a call: of `ChangesRequested.item`. It needs a new key. */
  revising(item: string): Gated<A, R>;
}

type Run<A, R> = (args: A, call: Call) => R | Promise<R>;

/** Require a permit for a function of one object of arguments. */
export function gate<A extends object, R>(
  name: string,
  run: Run<A, R>,
  options: GateOptions<A> & { onDenied: "return" },
): Gated<A, R | string>;
export function gate<A extends object, R>(name: string, run: Run<A, R>, options?: GateOptions<A>): Gated<A, R>;
export function gate<A extends object, R>(name: string, run: Run<A, R>, options: GateOptions<A> = {}): Gated<A, unknown> {
  return buildGated(name, run, options);
}

function buildGated<A extends object, R>(
  name: string,
  run: Run<A, R>,
  options: GateOptions<A>,
  revises?: string,
): Gated<A, unknown> {
  checkOptions(options);
  if (revises !== undefined && !/^.+\/.+$/.test(revises)) {
    throw new InvalidInput(`revising: ${revises} is no item. Give ChangesRequested.item.`);
  }
  const gated = async (args: A): Promise<unknown> => {
    const client = options.client ?? new Client();
    const call = await buildCall(name, args, options, revises);
    let permit: permits.Permit | permits.EarlierResult;
    try {
      permit = await permits.obtainPermit(client, call);
    } catch (error) {
      if (error instanceof Denied && options.onDenied === "return") return error.forModel;
      throw error;
    }
    if (!("holder" in permit)) return permits.replay(call, permit);
    const redeemed = permit;
    return runAs(redeemed.holder, () => runOnce(client, redeemed, run));
  };
  return Object.assign(gated, {
    ask: async (args: A) => permits.submit(options.client ?? new Client(), await buildCall(name, args, options, revises)),
    withKey: (key: string) => buildGated(name, run, { ...options, key: () => key }, revises),
    revising: (item: string) => buildGated(name, run, options, item),
  });
}

async function runOnce<A, R>(client: Client, permit: permits.Permit, run: Run<A, R>): Promise<R> {
  const call: Call = {
    idempotencyKey: permit.idempotency_key,
    runId: permit.runId,
    suspensionId: permit.suspension_id,
    itemId: permit.item_id,
    attempt: permit.attempt,
  };
  let result: R;
  try {
    result = await run(permit.args as A, call);
  } catch (error) {
    await permits.report(client, permit, permits.describeFailure(error));
    throw error;
  }
  await permits.report(client, permit, permits.describeResult(result));
  return result;
}

async function buildCall<A extends object>(
  name: string,
  args: A,
  options: GateOptions<A>,
  revises: string | undefined,
): Promise<permits.GatedCall> {
  const { description = "", schema: parameters = { type: "object" }, idempotent = false, onBehalfOf } = options;
  return {
    definition: { name, description, parameters, idempotent },
    args,
    label: fillKey(name, args, options.key),
    title: options.title || name,
    context: options.context ?? {},
    waitS: options.waitS,
    onDoubt: options.onDoubt ?? "raise",
    reportWithinS: options.reportWithinS ?? REPORT_WITHIN_S,
    threadId: options.threadId,
    step: options.step,
    again: options.again ?? false,
    revises,
    onBehalfOf: typeof onBehalfOf === "function" ? await onBehalfOf() : onBehalfOf,
    notify: options.quiet ? undefined : (line) => process.stderr.write(`sayso: ${line}\n`),
  };
}

function fillKey<A extends object>(name: string, args: A, key: GateOptions<A>["key"]): string {
  if (key === undefined) return newKey();
  if (typeof key === "function") return key(args);
  return key.replace(/\{(\w*)\}/g, (field, argument: string) => {
    const value = (args as JsonObject)[argument];
    if (typeof value === "string" || typeof value === "bigint" || Number.isSafeInteger(value)) return String(value);
    throw new InvalidInput(
      `The key ${key} of ${name} cannot be filled: ${field} is no text or integer of the arguments. Give a function.`,
    );
  });
}

/** Throw `InvalidInput` for a wrong option before anybody is asked. */
function checkOptions(options: GateOptions<never>): void {
  const { waitS, reportWithinS: withinS, step, onDoubt = "raise", onDenied = "raise" } = options;
  if (waitS !== undefined && !(waitS >= 0)) {
    throw new InvalidInput(`waitS: ${waitS} is not a waiting time. Give seconds, 0 or more, or leave it out.`);
  }
  if (withinS !== undefined && !(Number.isInteger(withinS) && withinS >= 1 && withinS <= LONGEST_WAIT_S)) {
    throw new InvalidInput(`reportWithinS: ${withinS} is not 1 to ${LONGEST_WAIT_S} whole seconds.`);
  }
  if (step !== undefined && !(Number.isInteger(step) && step >= 1 && step <= 1_000_000)) {
    throw new InvalidInput(`step: ${step} is not the number of a turn. Give 1 to 1000000, or leave it out.`);
  }
  if (!["raise", "ask"].includes(onDoubt)) throw new InvalidInput(`onDoubt: ${onDoubt} is unknown. Give raise or ask.`);
  if (!["raise", "return"].includes(onDenied)) {
    throw new InvalidInput(`onDenied: ${onDenied} is unknown. Give raise or return.`);
  }
}
