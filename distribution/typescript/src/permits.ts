/**
 * Permits of gated calls: submit the call, wait for a decision, redeem the permit once.
 *
 * The same key continues the same call, after a restart or days later. The permit is redeemed before the call starts,
 * by a holder that is unique to the attempt. If that attempt is lost, the next one finds the redeemed permit: the call
 * may have run, and only an idempotent call starts again.
 */

import { createHash } from "node:crypto";

import type { Client, Item, Outcome, Redeemed, Suspension } from "./client.js";
import { hasEnded } from "./client.js";
import * as errors from "./errors.js";
import * as holders from "./holders.js";
import { type Json, writeJson } from "./json.js";
import { fits } from "./shapes.js";

const CHECK_S = 5; // how often a wait for another process of this machine checks that it still runs
const MAX_OUTPUT_BYTES = 100_000;
const MAX_ERROR_CHARS = 2000;

export interface Definition {
  name: string;
  description: string;
  parameters: object;
  idempotent: boolean;
}

/** A call that requires a permit, and how to wait for it. */
export interface GatedCall {
  definition: Definition;
  args: object;
  label: string;
  title: string;
  context: object;
  waitS: number | undefined;
  onDoubt: "raise" | "ask";
  reportWithinS: number;
  threadId: string | undefined;
  step: number | undefined;
  again: boolean;
  revises: string | undefined;
  onBehalfOf: string | null | undefined;
  notify: ((line: string) => void) | undefined;
}

/** A permit redeemed for one attempt: run exactly `args`, then report the result. */
export type Permit = Redeemed & { runId: string; holder: string };

/** The result of an earlier attempt of the call, under the caller's key. */
export interface EarlierResult {
  success: boolean;
  output: Json;
  error: string | null;
}

/**
 * Submit a call, wait for its decision, and redeem its permit once.
 *
 * If another attempt under this key runs the call, its report is awaited. Throws `Suspended` if nobody decides within
 * `waitS`, `Denied`, `InDoubt`, `DeadlinePassed`, `IdempotencyConflict`, `Withdrawn`, and the errors of the desk.
 */
export async function obtainPermit(client: Client, call: GatedCall): Promise<Permit | EarlierResult> {
  let suspension = await submit(client, call);
  const { definition } = itemOf(suspension).tool;
  const waited = new Set<string>();
  for (;;) {
    if (suspension.status === "pending") suspension = await wait(client, call, suspension);
    if (suspension.following_id != null) {
      suspension = await client.get(suspension.following_id);
      checkDefinition(call, suspension, definition);
      continue;
    }
    const item = checkItem(call, suspension);
    const earlier = findReport(item);
    if (earlier !== undefined) return earlier;
    checkOutcome(call, suspension, item);
    if (item.permit != null && call.waitS !== 0 && mayReport(call, item, waited)) {
      waited.add(item.permit.holder);
      suspension = await awaitReport(client, call, suspension, item);
    } else if (item.permit != null && !mayRunTwice(call, item)) {
      if (call.onDoubt === "raise" || suspension.end != null) throw describeDoubt(call, suspension, item);
      suspension = await client.markInDoubt(suspension.id, item.item_id);
    } else {
      const redeemed = await redeem(client, call, suspension, item);
      if ("holder" in redeemed) return redeemed;
      suspension = redeemed;
    }
  }
}

/** Ask about a call, or find what was asked under its key. */
export async function submit(client: Client, call: GatedCall): Promise<Suspension> {
  const { name, ...definition } = call.definition;
  const request = {
    mode: "poll" as const,
    calls: [{ tool: name, args: call.args, definition, ...(call.revises === undefined ? {} : { revises: call.revises }) }],
    title: call.title,
    context: call.context,
    ...(call.threadId === undefined ? {} : { thread_id: call.threadId }),
    ...(call.step === undefined ? {} : { step: call.step }),
    ...(call.again ? { again: true } : {}),
  };
  // a digest, because a label may have any length and characters
  const key = createHash("sha256").update(writeJson([name, call.label])).digest("hex");
  try {
    return await client.ask(request, { key, onBehalfOf: call.onBehalfOf });
  } catch (error) {
    throw error instanceof errors.IdempotencyConflict ? describeConflict(call, error) : error;
  }
}

/** Redeem the permit, or return the suspension as it is once another attempt or another item came first. */
async function redeem(
  client: Client,
  call: GatedCall,
  suspension: Suspension,
  item: Item,
): Promise<Permit | Suspension> {
  const holder = holders.begin();
  try {
    const redeemed = await client.redeem(suspension.id, item.item_id, holder, call.reportWithinS);
    return { ...redeemed, runId: suspension.run.id, holder };
  } catch (refused) {
    holders.end(holder);
    if (refused instanceof errors.DeadlinePassed) throw describeLateness(call, suspension);
    const isIllegal = refused instanceof errors.IllegalTransition;
    if (!isIllegal && !(refused instanceof errors.AlreadyRedeemed)) throw refused;
    const now = await client.get(suspension.id);
    if (isIllegal && now.following_id == null) throw refused;
    return now;
  }
}

async function wait(client: Client, call: GatedCall, suspension: Suspension): Promise<Suspension> {
  if (call.waitS !== 0) {
    notifyOnce(call, describeWait(client, call, suspension));
    suspension = await client.wait(suspension.id, call.waitS);
  }
  if (suspension.status !== "pending") return suspension;
  const message = `${describeWait(client, call, suspension)}. Make the call again with the same key to continue.`;
  throw new errors.Suspended(message, {
    suspension_id: suspension.id,
    tool: call.definition.name,
    key: call.label,
    link: buildLink(client, suspension),
  });
}

/**
 * Whether to wait for the report of the attempt that started the call.
 *
 * On another machine it may run or be lost. Then a call that may run twice starts again, and with `ask` a person says.
 */
function mayReport(call: GatedCall, item: Item, waited: ReadonlySet<string>): boolean {
  if (item.permit == null || waited.has(item.permit.holder)) return false;
  return holders.isRunning(item.permit.holder) ?? (!mayRunTwice(call, item) && call.onDoubt === "raise");
}

/** Whether the tool was approved as idempotent, and still is. */
function mayRunTwice(call: GatedCall, item: Item): boolean {
  return item.tool.idempotent === true && call.definition.idempotent;
}

/** Wait until another attempt of the call reports or is lost, for at most `waitS`, and read the suspension again. */
async function awaitReport(client: Client, call: GatedCall, suspension: Suspension, item: Item): Promise<Suspension> {
  const { holder, redeemed_at } = item.permit!;
  notifyOnce(
    call,
    `${call.definition.name} runs under the same key since ${redeemed_at}; this call waits for its result ` +
      `(${buildLink(client, suspension)})`,
  );
  await client.awaitRun(
    suspension.run.id,
    call.waitS,
    (run) => hasEnded(run) || run.suspension_id !== suspension.id || holders.isRunning(holder) === false,
    CHECK_S,
  );
  return client.get(suspension.id);
}

function notifyOnce(call: GatedCall, line: string): void {
  call.notify?.(line);
  call.notify = undefined;
}

function describeWait(client: Client, call: GatedCall, suspension: Suspension): string {
  const at = suspension.deadline_at;
  const until = at == null ? "" : ` until ${at.slice(0, 10)} ${at.slice(11, 16)} UTC`;
  const hold = itemOf(suspension).freeze;
  const scope = hold?.scope === "all" ? "everything" : hold?.scope;
  const frozen = hold == null ? "" : `; ${scope} is frozen by ${hold.by} since ${hold.at}: ${hold.reason}`;
  return `${call.definition.name} waits for a person${until} (${buildLink(client, suspension)})${frozen}`;
}

function buildLink(client: Client, suspension: Suspension): string {
  return `${client.url}/items/${suspension.id}/${itemOf(suspension).item_id}`;
}

function itemOf(suspension: Suspension): Item {
  const [item] = suspension.items;
  if (item === undefined) throw new errors.Unreachable(`The suspension ${suspension.id} has no item.`);
  return item;
}

function checkItem(call: GatedCall, suspension: Suspension): Item {
  const item = itemOf(suspension);
  if (suspension.erasure != null) {
    throw new errors.Conflict(
      `The contents of the ${item.tool.name} call under the key ${call.label} were erased, also its result. ` +
        "If it ran, only the system that it changes knows.",
    );
  }
  if (suspension.status === "cancelled") {
    const message = `${item.tool.name} must not run: its run was cancelled. ${suspension.end?.error ?? ""}`.trim();
    throw new errors.Denied(message, { verdict: "cancelled", may_have_run: item.permit != null || item.doubt != null });
  }
  return item;
}

/** Throw `Denied` for a call that must not run, and `DeadlinePassed` for one that did not start in time. */
function checkOutcome(call: GatedCall, suspension: Suspension, item: Item): void {
  const { outcome } = item;
  // a verdict that this client does not know is a denial
  const mayRun = outcome != null && (outcome.verdict === "approved" || outcome.verdict === "answered");
  if (!mayRun || readAnswer(item)?.choice === "fail") {
    const by = outcome?.by.id ?? "nobody";
    const why = outcome?.message ? `: ${outcome.message}` : ".";
    const facts = {
      suspension_id: suspension.id,
      key: call.label,
      by,
      may_have_run: item.doubt != null,
      ...(outcome == null ? {} : { verdict: outcome.verdict, by_kind: outcome.by.kind }),
    };
    const paths = outcome?.changes?.paths;
    if (paths !== undefined) {
      const returned = { ...facts, item_id: item.item_id, paths };
      throw new errors.ChangesRequested(`${item.tool.name} was returned by ${by}${why}`, returned);
    }
    throw new errors.Denied(`${item.tool.name} was denied by ${by}${why}`, facts);
  }
  if (suspension.end != null && item.permit == null) throw describeLateness(call, suspension);
}

/** Throw `Withdrawn` for an item that another process asked: its approval is for another definition. */
function checkDefinition(call: GatedCall, suspension: Suspension, definition: string): void {
  const item = itemOf(suspension);
  if (item.tool.definition === definition || item.doubt != null) return;
  throw new errors.Withdrawn(
    `Another process asked about ${item.tool.name} under the key ${call.label} with a changed definition. ` +
      "Call it again to ask with this one.",
    { suspension_id: suspension.id, key: call.label },
  );
}

/** Return the conflict with the key that the caller chose; the desk knows only its digest. */
function describeConflict(call: GatedCall, conflict: errors.IdempotencyConflict): errors.IdempotencyConflict {
  const facts = { ...conflict.facts, idempotency_key: call.label };
  const differs = conflict.facts["differs"] ? `: ${String(conflict.facts["differs"])} differs` : "";
  const advice =
    conflict.facts["may_have_run"] === false
      ? "Make the key of all arguments that tell calls apart."
      : "It may have run. Call it with its own arguments for its result.";
  const problem = `The key ${call.label} belongs to another ${call.definition.name} call${differs}`;
  return new errors.IdempotencyConflict(`${problem}. ${advice}`, facts);
}

function describeLateness(call: GatedCall, suspension: Suspension): errors.DeadlinePassed {
  const { outcome } = itemOf(suspension);
  const until = outcome == null ? "" : ` before ${outcome.start_by}`;
  return new errors.DeadlinePassed(
    `${call.definition.name} was approved under the key ${call.label} and did not start${until}. ` +
      "Call it with again: true to ask once more.",
    { suspension_id: suspension.id, key: call.label },
  );
}

/** Return the result of an item's call, from its owner or from the person who settled its doubt. */
function findReport(item: Item): EarlierResult | undefined {
  if (item.permit != null) return item.permit.report == null ? undefined : readReport(item.permit.report);
  const answer = readAnswer(item);
  if (answer?.choice === "skip") return readReport({ success: true, output: answer.result });
  return answer?.choice === "reported" ? readReport(answer.result) : undefined;
}

/** Return a report; one that cannot be read has failed. */
function readReport(report: unknown): EarlierResult {
  if (!fits(report, { success: "boolean" })) return { success: false, output: null, error: "its report is unreadable" };
  const { success, output = null, error = null } = report as Partial<EarlierResult> & { success: boolean };
  return { success, output, error };
}

/** Return the answer about a call in doubt. One that cannot be read fails the call. */
function readAnswer(item: Item): { choice: string; result: Json } | undefined {
  if (item.doubt == null || item.outcome == null) return undefined;
  const value: unknown = item.outcome.value;
  if (!fits(value, { choice: "string" })) return { choice: "fail", result: null };
  const { choice, result = null } = value as { choice: string; result?: Json };
  return { choice: ["run_again", "skip", "reported"].includes(choice) ? choice : "fail", result };
}

function describeDoubt(call: GatedCall, suspension: Suspension, item: Item): errors.InDoubt {
  const idempotencyKey = item.doubt?.idempotency_key ?? `${suspension.id}:${item.item_id}`;
  const begun = item.permit?.redeemed_at ?? "an unknown time";
  const search = `the call may have run: search for it under the idempotency key ${idempotencyKey}`;
  const advice =
    suspension.end == null
      ? `Another process may still be running it: call again in a moment. If that process died, ${search}, ` +
        "or call it with onDoubt: 'ask' to let a person decide."
      : `Its time to report is over, and ${search}.`;
  return new errors.InDoubt(
    `${call.definition.name} was started at ${begun} under the key ${call.label} and has not reported a result. ${advice}`,
    { suspension_id: suspension.id, key: call.label },
  );
}

/** Report how a call ended. A report that fails is a warning: the call has run, so its result must not be lost. */
export async function report(client: Client, permit: Permit, outcome: Outcome): Promise<void> {
  try {
    await client.report(permit.suspension_id, permit.item_id, permit.holder, outcome);
  } catch (failure) {
    if (!(failure instanceof errors.SaysoError)) throw failure;
    const message = `The outcome of ${permit.idempotency_key} could not be reported: ${failure.message}`;
    process.emitWarning(message, "SaysoWarning");
  }
}

/** Return the outcome of a call that returned a value. A value that cannot be stored is replaced by a note. */
export function describeResult(result: unknown): Outcome {
  if (typeof result === "object" && result !== null && (Symbol.asyncIterator in result || "next" in result)) {
    return { success: true, error: "The call ran; its result can be read only once, so it is not stored." };
  }
  try {
    const size = Buffer.byteLength(writeJson([result ?? null], "the result"));
    if (size <= MAX_OUTPUT_BYTES) return { success: true, output: (result ?? null) as Json };
    return { success: true, error: `The call ran; its result of ${size} bytes is too large to store.` };
  } catch (error) {
    return { success: true, error: `The call ran, but what it returned is not JSON: ${describeError(error)}` };
  }
}

/** Return the outcome of a call that threw. */
export function describeFailure(error: unknown): Outcome {
  return { success: false, error: describeError(error) };
}

function describeError(error: unknown): string {
  const text = error instanceof errors.SaysoError ? error.message : String(error);
  return text.slice(0, MAX_ERROR_CHARS).toWellFormed();
}

/** Return the output of an earlier attempt. Throws `CallFailed` if it failed or its output was not stored. */
export function replay(call: GatedCall, { success, output, error }: EarlierResult): Json {
  const { name } = call.definition;
  if (!success) {
    throw new errors.CallFailed(
      `${name} ran before under the key ${call.label} and failed: ${error}. It does not run again under this key. ` +
        "Check what it has done so far.",
      { key: call.label },
    );
  }
  if (error !== null) throw new errors.CallFailed(`${name} ran before, but its result was not stored: ${error}`);
  return output;
}

