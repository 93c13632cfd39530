/** Holders of redeemed permits: which process runs a call, and whether it still does. */

import { AsyncLocalStorage } from "node:async_hooks";
import { createHash, randomBytes } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { hostname } from "node:os";
import { isMainThread } from "node:worker_threads";

// Several copies of this package in one process know of each other's calls.
const shared = globalThis as { [name: symbol]: Set<string> | undefined };
const running = (shared[Symbol.for("sayso.holders")] ??= new Set());
const outer = new AsyncLocalStorage<readonly string[]>();
let machine: string | undefined;

export function newKey(): string {
  return randomBytes(24).toString("base64url");
}

/**
 * Return a new holder for one attempt of a call. It counts as running until `end`.
 *
 * Its name tells other processes of the machine, by process id and start time, whether it can still report. Only the
 * main thread has such a name: the threads of a process do not know of each other's calls.
 */
export function begin(): string {
  const unique = newKey().replaceAll("-", "_");
  const holder = `try-${unique}-${findMachine()}-${process.pid}-${isMainThread ? (readStart(process.pid) ?? 0) : "thread"}`;
  running.add(holder);
  return holder;
}

/** Let a holder count as not running: it has reported, or never will. */
export function end(holder: string): void {
  running.delete(holder);
}

/** Run the holder's call, and let the holder end there. */
export async function runAs<T>(holder: string, run: () => Promise<T>): Promise<T> {
  try {
    return await outer.run([...(outer.getStore() ?? []), holder], run);
  } finally {
    end(holder);
  }
}

/**
 * Whether the holder runs its call and can still report it; undefined if only another machine knows.
 *
 * A holder whose call makes this very call counts as not running: it cannot report before this call returns.
 */
export function isRunning(holder: string): boolean | undefined {
  const [, , place, owner, start] = holder.slice(holder.indexOf("try-")).split("-");
  if (place !== findMachine() || !/^[0-9]+$/.test(owner ?? "") || !/^[0-9]+$/.test(start ?? "")) return undefined;
  const pid = Number(owner);
  if (pid === process.pid) {
    if (running.has(holder)) return !(outer.getStore() ?? []).includes(holder);
    return isMainThread ? false : undefined;
  }
  try {
    process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM"; // a process of another user runs
  }
  const now = readStart(pid);
  return Number(start) === 0 || now === undefined || now === Number(start);
}

/** Return a name of this boot of this machine, or of this container: process ids are unique within it. */
function findMachine(): string {
  if (machine === undefined) {
    let place: string;
    try {
      const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
      place = `${boot} ${statSync("/proc/self/ns/pid", { bigint: true }).ino}`;
    } catch {
      place = hostname(); // not Linux
    }
    machine = createHash("sha256").update(place).digest("hex").slice(0, 12);
  }
  return machine;
}

/** Return when a process started, in ticks since the boot; 0 if it has ended, undefined if that cannot be read. */
function readStart(pid: number): number | undefined {
  try {
    const [state = "Z", ...numbers] = readFileSync(`/proc/${pid}/stat`, "utf8").split(")").at(-1)!.trim().split(/\s+/);
    return "ZX".includes(state) ? 0 : Number(numbers[18]);
  } catch {
    return undefined;
  }
}
