/** Requests to the desk's API: retries under the same key, long polls, and the errors of problem responses. */

import { setTimeout as sleep } from "node:timers/promises";

import { errorClassOf, InvalidInput, NotAuthenticated, SaysoError, Unavailable, Unreachable } from "./errors.js";
import { type Json, type JsonObject, parseJson, writeJson } from "./json.js";
import { fits, type Shape } from "./shapes.js";

export const DEFAULT_URL = "http://127.0.0.1:8321";
export const VERSION = "0.2.0";

const PATIENCE_S = 30;
const OUTAGE_S = 600; // how long a desk may be unavailable while a client waits for a decision
const LONGEST_POLL_S = 45;
const TIMEOUT_S = 20;
const RETRYABLE: ReadonlySet<number> = new Set([429, 502, 503, 504]); // they changed nothing
const RESERVED: ReadonlySet<string> = new Set(["type", "title", "status", "detail", "instance"]);
const KEY = /^[!-~]{1,200}$/;
const TOKEN = /^[\w-]+\.[\w-]+\.[\w-]+$/;
const warned = new Set<string>();

/** One request. With an idempotency key it has its effect once. */
export interface RequestSpec {
  method: "GET" | "POST";
  path: string;
  body?: object;
  key?: string;
  pollS?: number;
  /** A signed token that names the person for whom the agent acts. */
  onBehalfOf?: string | null | undefined;
}

export interface ConnectionOptions {
  /** The address of the desk; by default SAYSO_URL. */
  url?: string | undefined;
  /** The agent's key; by default SAYSO_KEY. */
  key?: string | undefined;
  /** How long a request is retried while the desk is unavailable. */
  patienceS?: number;
}

interface Received {
  status: number;
  headers: Headers;
  text: string;
}

export class Connection {
  readonly url: string;
  readonly #key: string | undefined;
  readonly #patienceS: number;

  constructor({ url, key, patienceS = PATIENCE_S }: ConnectionOptions = {}) {
    this.url = checkUrl(url || process.env["SAYSO_URL"] || DEFAULT_URL);
    this.#key = key || process.env["SAYSO_KEY"] || undefined;
    this.#patienceS = patienceS;
    if (this.#key !== undefined && !/^[!-~]+$/.test(this.#key)) {
      throw new InvalidInput("The key contains a character that keys never have, such as a space. Copy it again.");
    }
  }

  /** Send a request, and retry it with the same key while the desk is unavailable. Throws the desk's errors. */
  async send<T>(request: RequestSpec, shape: Shape, patienceS = this.#patienceS): Promise<T> {
    const built = this.#build(request);
    const until = performance.now() + patienceS * 1000;
    for (let attempts = 0; ; attempts += 1) {
      const received = await this.#receive(request, built);
      const failed = typeof received === "string";
      let delay = Math.min(100 * 2 ** attempts, 5000);
      if (!failed) delay = Math.max(delay, retryAfterMs(received.headers));
      const retryable = failed || RETRYABLE.has(received.status);
      if (!retryable || performance.now() + delay >= until) {
        if (!failed) return this.#read<T>(received, shape);
        const advice = request.method === "GET" ? "" : " The request may have arrived; send it again with the same key.";
        throw new Unreachable(
          `${this.url} cannot be reached: ${received}. Start the desk, or set SAYSO_URL to its address.${advice}`,
        );
      }
      await sleep(delay);
    }
  }

  /** Repeat a long poll until its response is done, and return the last response after `waitS`. */
  async poll<T>(
    build: (waitS: number) => RequestSpec,
    shape: Shape,
    isDone: (response: T) => boolean,
    waitS: number | undefined,
  ): Promise<T> {
    const until = waitS === undefined ? Infinity : performance.now() + waitS * 1000;
    for (;;) {
      const began = performance.now();
      const leftS = Math.max(0, (until - began) / 1000);
      const response = await this.send<T>(
        build(Math.floor(Math.min(LONGEST_POLL_S, leftS))),
        shape,
        Math.min(OUTAGE_S, leftS),
      );
      if (isDone(response) || leftS <= 0) return response;
      // a desk that shuts down answers long polls at once
      if (performance.now() - began < 50) await sleep(Math.min(200, leftS * 1000));
    }
  }

  #build({ method, body, key, onBehalfOf }: RequestSpec): RequestInit {
    if (key !== undefined && !KEY.test(key)) {
      throw new InvalidInput(`The key ${JSON.stringify(key.slice(0, 80))} is not 1 to 200 visible ASCII characters.`);
    }
    if (onBehalfOf != null && !TOKEN.test(onBehalfOf)) {
      throw new InvalidInput("onBehalfOf is not a signed JWT of three parts. Give the token as its issuer made it.");
    }
    const headers: Record<string, string> = { Accept: "application/json", "User-Agent": "sayso-typescript" };
    if (this.#key !== undefined) headers["Authorization"] = `Bearer ${this.#key}`;
    if (key !== undefined) headers["Idempotency-Key"] = key;
    if (onBehalfOf != null) headers["Sayso-On-Behalf-Of"] = onBehalfOf;
    if (body === undefined) return { method, headers, redirect: "manual" };
    headers["Content-Type"] = "application/json";
    return { method, headers, redirect: "manual", body: writeJson(body, "the request") };
  }

  /** Return the response, or why there is none: the request may or may not have arrived. */
  async #receive({ path, pollS = 0 }: RequestSpec, built: RequestInit): Promise<Received | string> {
    const query = pollS > 0 ? `?wait=${pollS}s` : "";
    const timeout = new AbortController();
    const timer = setTimeout(() => timeout.abort(), (TIMEOUT_S + pollS) * 1000);
    try {
      const response = await fetch(this.url + path + query, { ...built, signal: timeout.signal });
      const text = await response.text();
      this.#compareVersions(response.headers.get("sayso-version"));
      return { status: response.status, headers: response.headers, text };
    } catch (error) {
      if (timeout.signal.aborted) return "the request timed out";
      const { cause } = error as { cause?: { message?: string; code?: string } };
      return cause?.message || cause?.code || String(error);
    } finally {
      clearTimeout(timer);
    }
  }

  #read<T>({ status, headers, text }: Received, shape: Shape): T {
    let body: Json | undefined;
    try {
      body = text === "" ? {} : parseJson(text);
    } catch {
      body = undefined;
    }
    if (status >= 400) throw this.#readProblem(status, headers, body);
    if (status >= 300 || body === undefined || !fits(body, shape)) throw this.#describeForeign(status, headers);
    return body as T;
  }

  #readProblem(status: number, headers: Headers, body: Json | undefined): SaysoError {
    if (!fits(body, { type: "string", detail: "string" })) {
      if (!RETRYABLE.has(status)) return this.#describeForeign(status, headers);
      return new Unavailable(`${this.url} answered ${status}: the desk is unavailable. Try again in a moment.`);
    }
    const problem = body as JsonObject & { type: string; detail: string };
    const facts = Object.fromEntries(Object.entries(problem).filter(([name]) => !RESERVED.has(name)));
    const kind = errorClassOf(problem.type, status);
    const advice = kind === NotAuthenticated ? ` Agents take their key for ${this.url} from SAYSO_KEY.` : "";
    return new kind(problem.detail + advice, facts);
  }

  #describeForeign(status: number, headers: Headers): Unreachable {
    const kind = (headers.get("content-type") ?? "no content").split(";")[0];
    const message = `${this.url} answered ${status} with ${kind}, so it is not a Sayso desk that this client knows.`;
    return new Unreachable(`${message} Set SAYSO_URL to the address of a desk, such as ${DEFAULT_URL}.`, { status });
  }

  #compareVersions(version: string | null): void {
    if (version === null || version === VERSION || warned.has(this.url)) return;
    warned.add(this.url);
    process.emitWarning(`The desk at ${this.url} is Sayso ${version}, and this client is ${VERSION}.`, "SaysoWarning");
  }
}

/** Return text as one path segment. An empty one would name another path. */
export function segment(text: string): string {
  return encodeURIComponent(text) || "-";
}

function checkUrl(url: string): string {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (parsed === undefined || !["http:", "https:"].includes(parsed.protocol)) {
    throw new InvalidInput(`${JSON.stringify(url)} is not the URL of a desk. Write it as ${DEFAULT_URL}.`);
  }
  return url.replace(/\/+$/, "");
}

function retryAfterMs(headers: Headers): number {
  const value = headers.get("retry-after") ?? "";
  return /^[0-9]{1,6}$/.test(value) ? Number(value) * 1000 : 0;
}
