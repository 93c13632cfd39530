/** The client of Sayso, the self-hosted approval desk for AI agents. */

export type { components, paths } from "./api.js";
export {
  Client,
  type Item,
  type Outcome,
  type Redeemed,
  type Run,
  type Suspension,
  type SuspensionRequest,
  type WriteOptions,
} from "./client.js";
export * from "./errors.js";
export { type Call, gate, type Gated, type GateOptions } from "./gate.js";
export { type Json, type JsonObject, parseJson, writeJson } from "./json.js";
export type { ConnectionOptions } from "./requests.js";
