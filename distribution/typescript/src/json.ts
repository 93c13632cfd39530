/**
 * Strict JSON: what is approved is exactly what runs.
 *
 * Integers beyond 2^53 are kept: they are read as `bigint`, and a `bigint` is written in full. A `number` of that size is
 * refused, because it may have been rounded. Duplicate keys, lone surrogates and NaN are refused in both directions.
 */

import { InvalidJson, TooLarge } from "./errors.js";

export type Json = null | boolean | number | bigint | string | Json[] | JsonObject;
export type JsonObject = { [name: string]: Json };

const MAX_DEPTH = 32;
const MAX_DIGITS = 4000;
const READ_DEPTH = 200;
const NUMBER = /-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?/y;
const LITERALS: readonly [string, Json][] = [["null", null], ["true", true], ["false", false]];

/** Return a value as JSON. A property that is undefined is left out; `toJSON` is called, as of a Date. */
export function writeJson(value: unknown, path = "the value", depth = 0): string {
  if (depth > MAX_DEPTH) throw new TooLarge(`${path} is nested deeper than ${MAX_DEPTH} levels. Flatten it.`);
  if (value === null || typeof value === "boolean") return String(value);
  if (typeof value === "string") return writeText(value, path);
  if (typeof value === "number") return writeNumber(value, path);
  if (typeof value === "bigint") {
    const text = value.toString();
    if (text.length <= MAX_DIGITS) return text;
    throw new InvalidJson(`${path} has more than ${MAX_DIGITS} digits. Send fewer digits.`);
  }
  if (typeof value !== "object") throw new InvalidJson(`${path} is ${typeof value}, which JSON does not have.`);
  if ("toJSON" in value && typeof value.toJSON === "function") return writeJson(value.toJSON(), path, depth + 1);
  if (Array.isArray(value)) {
    // Array.from also visits holes, which are refused as undefined
    return `[${Array.from(value, (member, index) => writeJson(member, `${path}[${index}]`, depth + 1)).join(",")}]`;
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== null && Object.getPrototypeOf(prototype) !== null) {
    throw new InvalidJson(`${path} is a ${value.constructor.name}, not a plain object. Give plain JSON.`);
  }
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  const written = members.map(([name, member]) => {
    return `${writeText(name, `a key of ${path}`)}:${writeJson(member, `${path}.${name}`, depth + 1)}`;
  });
  return `{${written.join(",")}}`;
}

function writeText(text: string, path: string): string {
  if (text.isWellFormed()) return JSON.stringify(text);
  throw new InvalidJson(`${path} has a lone surrogate, which no UTF-8 text can have. Remove it.`);
}

function writeNumber(value: number, path: string): string {
  if (!Number.isFinite(value)) throw new InvalidJson(`${path} is ${value}, which JSON does not have.`);
  if (Number.isInteger(value) && !Number.isSafeInteger(value)) {
    throw new InvalidJson(`${path} is an integer beyond 2^53, which a number may have rounded. Give a bigint.`);
  }
  return JSON.stringify(value);
}

/** Return the one JSON value in a text. Integers beyond 2^53 become `bigint`. */
export function parseJson(text: string): Json {
  const reader = new Reader(text);
  const value = reader.readValue(0);
  reader.end();
  return value;
}

class Reader {
  private at = 0;

  constructor(private readonly text: string) {}

  end(): void {
    this.skipBlanks();
    if (this.at < this.text.length) throw this.fault();
  }

  readValue(depth: number): Json {
    if (depth > READ_DEPTH) throw new TooLarge(`The JSON is nested deeper than ${READ_DEPTH} levels.`);
    this.skipBlanks();
    const sign = this.text[this.at];
    if (sign === "{") return this.readObject(depth);
    if (sign === "[") return this.readArray(depth);
    if (sign === '"') return this.readText();
    for (const [word, value] of LITERALS) {
      if (this.text.startsWith(word, this.at)) {
        this.at += word.length;
        return value;
      }
    }
    return this.readNumber();
  }

  private readObject(depth: number): JsonObject {
    const members: JsonObject = {};
    for (let open = !this.begins("}"); open; open = this.continues("}")) {
      this.skipBlanks();
      const name = this.readText();
      if (Object.hasOwn(members, name)) throw new InvalidJson(`The JSON has the key ${JSON.stringify(name)} twice.`);
      if (!this.takes(":")) throw this.fault();
      const value = this.readValue(depth + 1);
      Object.defineProperty(members, name, { value, writable: true, enumerable: true, configurable: true });
    }
    return members;
  }

  private readArray(depth: number): Json[] {
    const values: Json[] = [];
    for (let open = !this.begins("]"); open; open = this.continues("]")) values.push(this.readValue(depth + 1));
    return values;
  }

  private readText(): string {
    const start = this.at;
    if (this.text[start] !== '"') throw this.fault();
    for (this.at += 1; this.text[this.at] !== '"'; this.at += this.text[this.at] === "\\" ? 2 : 1) {
      if (this.at >= this.text.length) throw this.fault();
    }
    this.at += 1;
    let text: string;
    try {
      text = JSON.parse(this.text.slice(start, this.at)) as string;
    } catch {
      throw this.fault();
    }
    if (!text.isWellFormed()) throw new InvalidJson("The JSON has a lone surrogate.");
    return text;
  }

  private readNumber(): number | bigint {
    NUMBER.lastIndex = this.at;
    const match = NUMBER.exec(this.text);
    if (match === null) throw this.fault();
    this.at = NUMBER.lastIndex;
    const [digits, fraction, exponent] = match;
    const value = Number(digits);
    if (fraction === undefined && exponent === undefined) {
      return Number.isSafeInteger(value) ? value || 0 : BigInt(digits); // || 0: there is one zero
    }
    if (!Number.isFinite(value)) throw new InvalidJson(`The JSON has the number ${digits}, which is too large.`);
    return value || 0;
  }

  /** Enter an object or array, and return whether it ends at once. */
  private begins(end: string): boolean {
    this.at += 1;
    return this.takes(end);
  }

  /** Return whether another member follows. */
  private continues(end: string): boolean {
    if (this.takes(",")) return true;
    if (this.takes(end)) return false;
    throw this.fault();
  }

  private takes(sign: string): boolean {
    this.skipBlanks();
    if (this.text[this.at] !== sign) return false;
    this.at += 1;
    return true;
  }

  private skipBlanks(): void {
    while (" \t\n\r".includes(this.text[this.at] ?? "end")) this.at += 1;
  }

  private fault(): InvalidJson {
    return new InvalidJson(`The text is not JSON at position ${this.at}.`);
  }
}
