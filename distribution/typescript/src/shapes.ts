/** What a client checks of the desk's responses: the members that it reads. Members that it does not know are ignored. */

export type Shape = "string" | "number" | "boolean" | "object" | "any" | Optional | [Shape] | { [name: string]: Shape };

class Optional {
  constructor(readonly shape: Shape) {}
}

/** A member that may be null or missing. */
function optional(shape: Shape): Optional {
  return new Optional(shape);
}

/** Whether a value has everything that a shape names. */
export function fits(value: unknown, shape: Shape): boolean {
  if (shape instanceof Optional) return value == null || fits(value, shape.shape);
  if (shape === "any") return true;
  if (typeof shape === "string") return typeof value === shape && value !== null;
  if (Array.isArray(shape)) return Array.isArray(value) && value.every((member) => fits(member, shape[0]));
  if (typeof value !== "object" || value === null) return false;
  const members = value as Record<string, unknown>;
  return Object.entries(shape).every(([name, member]) => fits(members[name], member));
}

const END = optional({ error: optional("string") });
const REPORT = optional({ success: "boolean", error: optional("string") });
const OUTCOME = optional({
  verdict: "string",
  message: optional("string"),
  by: { id: "string", kind: "string" },
  start_by: "string",
  changes: optional({ paths: ["string"] }),
});

export const SUSPENSION: Shape = {
  id: "string",
  status: "string",
  deadline_at: optional("string"),
  run: { id: "string" },
  end: END,
  erasure: optional("object"),
  following_id: optional("string"),
  items: [
    {
      item_id: "string",
      tool: { name: "string", args: "object", definition: "string" },
      outcome: OUTCOME,
      doubt: optional({ idempotency_key: "string" }),
      permit: optional({ holder: "string", redeemed_at: "string", report: REPORT }),
      freeze: optional({ scope: "string", by: "string", at: "string", reason: "string" }),
    },
  ],
};

export const REDEEMED: Shape = {
  suspension_id: "string",
  item_id: "string",
  tool: "string",
  args: "object",
  idempotency_key: "string",
  attempt: "number",
};

export const RUN: Shape = { id: "string", status: "string", suspension_id: "string" };
