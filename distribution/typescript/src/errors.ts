/** The errors of Sayso. Each class has the `code` that ends the type of the desk's problem response. */

export type Facts = Readonly<Record<string, unknown>>;

/** Sayso failed. */
export class SaysoError extends Error {
  static code = "something-broke";

  constructor(
    message: string,
    readonly facts: Facts = {},
  ) {
    super(message);
    this.name = new.target.name;
  }

  get code(): string {
    return (this.constructor as typeof SaysoError).code;
  }
}

type ErrorClass = typeof SaysoError;

/** The request is invalid; correct it and send it again. */
export class InvalidInput extends SaysoError { static override code = "invalid-input"; }
/** The text is not strict JSON: a duplicate key, NaN, a lone surrogate, or a value that JSON does not have. */
export class InvalidJson extends InvalidInput { static override code = "invalid-json"; }
export class InvalidHeader extends InvalidInput { static override code = "invalid-header"; }
export class TooLarge extends InvalidInput { static override code = "too-large"; }
export class UnknownName extends InvalidInput { static override code = "unknown-name"; }
export class UnknownHost extends InvalidInput { static override code = "unknown-host"; }
export class UnsupportedMediaType extends InvalidInput { static override code = "unsupported-media-type"; }
/** The request has no valid credential; set SAYSO_KEY. */
export class NotAuthenticated extends SaysoError { static override code = "not-authenticated"; }
export class InvalidSignature extends NotAuthenticated { static override code = "invalid-signature"; }
export class CodeRequired extends NotAuthenticated { static override code = "code-required"; }
export class WrongCode extends NotAuthenticated { static override code = "wrong-code"; }
/** This credential does not allow that. */
export class NotAllowed extends SaysoError { static override code = "not-allowed"; }
export class SelfApproval extends NotAllowed { static override code = "self-approval"; }
export class InvalidPersonToken extends NotAllowed { static override code = "invalid-person-token"; }
export class StepUpRequired extends NotAllowed { static override code = "step-up-required"; }
export class WrongNumber extends NotAllowed { static override code = "wrong-number"; }
export class PolicyForbids extends NotAllowed { static override code = "policy-forbids"; }
/** Nothing with that id is visible to this credential. */
export class NotFound extends SaysoError { static override code = "not-found"; }
/** The record has changed; read it again. */
export class Conflict extends SaysoError { static override code = "conflict"; }
export class AlreadyDecided extends Conflict { static override code = "already-decided"; }
/** The call was approved and did not start in time. */
export class DeadlinePassed extends Conflict { static override code = "deadline-passed"; }
export class StaleDigest extends Conflict { static override code = "stale-digest"; }
/** The key belongs to a call with other arguments. */
export class IdempotencyConflict extends Conflict { static override code = "idempotency-conflict"; }
export class IllegalTransition extends Conflict { static override code = "illegal-transition"; }
export class AlreadyRedeemed extends Conflict { static override code = "already-redeemed"; }
/** The basis of the approval no longer holds; ask again. */
export class Withdrawn extends Conflict { static override code = "withdrawn"; }
export class LeaseHeld extends Conflict { static override code = "lease-held"; }
/** An admin has frozen this; nothing new starts until it is unfrozen. */
export class Frozen extends Conflict { static override code = "frozen"; }
export class ClockInDoubt extends Frozen { static override code = "clock-in-doubt"; }
export class OverLimit extends Conflict { static override code = "over-limit"; }
export class StaleAttempt extends Conflict { static override code = "stale-attempt"; }
export class TooManyRequests extends SaysoError { static override code = "too-many-requests"; }
export class Unreadable extends SaysoError { static override code = "unreadable"; }
export class Altered extends Unreadable { static override code = "altered"; }
export class ModelError extends SaysoError { static override code = "model-error"; }
export class FrameworkFault extends SaysoError { static override code = "framework-fault"; }
export class Unavailable extends SaysoError { static override code = "unavailable"; }
/** No desk answers at this address; start it, or correct SAYSO_URL. */
export class Unreachable extends Unavailable { static override code = "unreachable"; }
/** Nobody has decided yet; make the call again with the same key. */
export class Suspended extends SaysoError { static override code = "suspended"; }
/** The call ran before under this key and failed; it does not run again. */
export class CallFailed extends SaysoError { static override code = "call-failed"; }
/** The call was started before and may have run; check the system that it changes. */
export class InDoubt extends SaysoError { static override code = "in-doubt"; }

const DECIDERS: Readonly<Record<string, "person" | "rule" | "time">> = {
  human: "person",
  agent: "person",
  policy: "rule",
  worker: "rule",
  timeout: "time",
};

/** A person, a rule or the deadline denied the call; continue without it. */
export class Denied extends SaysoError {
  static override code = "denied";

  /** Who denied it; undefined for a cancelled run. */
  get decidedBy(): "person" | "rule" | "time" | undefined {
    return DECIDERS[String(this.facts["by_kind"])];
  }

  /** Whether the same call can be asked about again: nobody decided, and it has not started. */
  get mayAskAgain(): boolean {
    return this.decidedBy === "time" && !this.facts["may_have_run"];
  }

  /** What a model should read instead of the call's result. */
  get forModel(): string {
    const text = this.message.trimEnd().replace(/\.+$/, "");
    const ran = this.facts["may_have_run"] ? "may have run" : "did not run";
    return `${text}. It ${ran}. ${this.mayAskAgain ? "Ask again later if it still matters." : "Continue without it."}`;
  }
}

/** A reviewer wants another version of the call: change it as the message says, and ask again with a new key. */
export class ChangesRequested extends Denied {
  static override code = "changes-requested";

  /** The arguments to change, such as `args.amount`, if the reviewer marked some. */
  get paths(): string[] {
    return (this.facts["paths"] as string[] | undefined) ?? [];
  }

  /** The item of this version; give it to `revising` of the gated function. */
  get item(): string {
    return `${String(this.facts["suspension_id"])}/${String(this.facts["item_id"])}`;
  }

  override get forModel(): string {
    return `${this.message.trimEnd().replace(/\.+$/, "")}. It did not run.`;
  }
}

/** The classes of the desk's problem responses, by code. */
export const BY_CODE: ReadonlyMap<string, ErrorClass> = new Map(
  [
    ...[SaysoError, InvalidInput, InvalidJson, InvalidHeader, TooLarge, UnknownName, UnknownHost, UnsupportedMediaType],
    ...[NotAuthenticated, InvalidSignature, CodeRequired, WrongCode],
    ...[NotAllowed, SelfApproval, InvalidPersonToken, StepUpRequired, WrongNumber, PolicyForbids],
    ...[NotFound, Conflict, AlreadyDecided, DeadlinePassed, StaleDigest, IdempotencyConflict, IllegalTransition],
    ...[AlreadyRedeemed, Withdrawn, LeaseHeld, Frozen, ClockInDoubt, OverLimit, StaleAttempt],
    ...[Unreadable, Altered, TooManyRequests, ModelError, FrameworkFault, Unavailable],
  ].map((kind) => [kind.code, kind]),
);

const BY_STATUS: Readonly<Record<number, ErrorClass>> = {
  401: NotAuthenticated,
  403: NotAllowed,
  404: NotFound,
  409: Conflict,
  413: TooLarge,
  429: TooManyRequests,
  503: Unavailable,
};

/** Return the class of a problem; the status decides for an unknown type. */
export function errorClassOf(type: string, status: number): ErrorClass {
  const code = type.slice(type.lastIndexOf("/") + 1);
  return BY_CODE.get(code) ?? BY_STATUS[status] ?? (status >= 500 ? SaysoError : InvalidInput);
}
