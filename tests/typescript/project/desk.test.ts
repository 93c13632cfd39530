/** Gated functions and the client's methods with the desk at SAYSO_URL. */

import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";

import * as sayso from "@sayso/client";
import { decide, findPending } from "./reviewer.js";

interface Payment {
  to: string;
  amount: number | bigint;
}

const paid: Payment[] = [];

function pay(to: string, options: sayso.GateOptions<Payment> = {}): Promise<string> {
  const run = (args: Payment, call: sayso.Call): string => {
    paid.push(args);
    assert.match(call.idempotencyKey, /^sus_.*:i1$/);
    return `paid ${args.amount} to ${args.to}`;
  };
  return sayso.gate("send_money", run, { quiet: true, key: "pay-{to}", ...options })({ to, amount: 250 });
}

function paidTo(to: string): unknown[] {
  return paid.filter((payment) => payment.to === to).map((payment) => payment.amount);
}

test("an approved call runs once, and its result is replayed", async () => {
  const waiting = pay("anna");
  await decide(await findPending("send_money", "anna"), { action: "approve" });
  assert.equal(await waiting, "paid 250 to anna");
  assert.equal(await pay("anna"), "paid 250 to anna");
  assert.deepEqual(paidTo("anna"), [250]);
});

test("a denied call does not run, and says who denied it and why", async () => {
  const waiting = pay("ben");
  const denied = assert.rejects(waiting, (error) => {
    assert.ok(error instanceof sayso.Denied);
    assert.match(error.message, /send_money was denied by admin: Never delivered/);
    assert.deepEqual([error.decidedBy, error.mayAskAgain, error.code], ["person", false, "denied"]);
    return true;
  });
  await decide(await findPending("send_money", "ben"), { action: "deny", message: "Never delivered" });
  await denied;
  const text = await sayso.gate("send_money", () => assert.fail("it ran"), {
    key: "pay-ben",
    onDenied: "return",
    quiet: true,
  })({ to: "ben", amount: 250 });
  assert.equal(text, "send_money was denied by admin: Never delivered. It did not run. Continue without it.");
  assert.deepEqual(paidTo("ben"), []);
});

test("a call that is returned for changes does not run, and names what to change", async () => {
  const waiting = pay("dan");
  const returned = assert.rejects(waiting, (error) => {
    assert.ok(error instanceof sayso.ChangesRequested && error instanceof sayso.Denied);
    assert.deepEqual([error.paths, error.decidedBy, error.mayAskAgain], [["args.amount"], "person", false]);
    assert.match(error.forModel, /returned by admin: Changes requested \(1 of 3\): Less\. .* It did not run\.$/);
    return true;
  });
  const changes = { paths: ["args.amount"] };
  await decide(await findPending("send_money", "dan"), { action: "deny", message: "Less.", changes });
  await returned;
  assert.deepEqual(paidTo("dan"), []);
});

test("a new version of a returned call names the version before", async () => {
  const send = sayso.gate("send_money", (args: Payment) => args.amount, { key: "pay-{to}-{amount}", quiet: true });
  const returned = assert.rejects(send({ to: "eve", amount: 250 }), (error) => {
    assert.ok(error instanceof sayso.ChangesRequested);
    assert.equal(error.item, `${first.id}/i1`);
    return true;
  });
  const first = await findPending("send_money", "eve");
  await decide(first, { action: "deny", message: "Less.", changes: {} });
  await returned;
  assert.throws(() => send.revising("i1"), sayso.InvalidInput);
  const less = send.revising(`${first.id}/i1`)({ to: "eve", amount: 25 });
  const second = await findPending("send_money", "eve");
  assert.deepEqual(second.items[0]?.revises, { suspension_id: first.id, item_id: "i1", round: 1 });
  await decide(second, { action: "approve" });
  assert.equal(await less, 25);
});

test("edited arguments are used, exactly, also beyond 2^53", async () => {
  const waiting = pay("carl");
  const amount = 9007199254740993n;
  await decide(await findPending("send_money", "carl"), { action: "approve", args: { to: "carl", amount } });
  assert.equal(await waiting, "paid 9007199254740993 to carl");
  assert.deepEqual(paidTo("carl"), [amount]);
});

test("a bigint arrives exactly, and a rounded number is refused before anybody is asked", async () => {
  const echo = sayso.gate("look_up", ({ id }: { id: bigint | number }) => id, { quiet: true });
  assert.equal(await echo({ id: 123456789012345678901n }), 123456789012345678901n);
  await assert.rejects(echo({ id: 2 ** 60 }), sayso.InvalidJson);
});

test("a requested value is put into its argument", async () => {
  const waiting = pay("ask");
  await decide(await findPending("send_money", "ask"), { action: "value", value: 75 });
  assert.equal(await waiting, "paid 75 to ask");
});

test("a deadline that nobody keeps denies the call, which may be asked again", async () => {
  const late = (error: unknown) => error instanceof sayso.Denied && error.mayAskAgain && error.decidedBy === "time";
  await assert.rejects(pay("late"), late);
  const asked = pay("late", { again: true });
  await decide(await findPending("send_money", "late"), { action: "approve" });
  assert.equal(await asked, "paid 250 to late");
});

test("rules allow and deny without a person", async () => {
  assert.equal(await sayso.gate("look_up", () => undefined, { quiet: true })({}), undefined);
  const mail = sayso.gate("send_mail", () => assert.fail("it ran"), { quiet: true });
  await assert.rejects(mail({ to: "x" }), (error) => error instanceof sayso.Denied && error.decidedBy === "rule");
});

test("a call that nobody has decided in time is continued under its key", async () => {
  const options = { waitS: 0, key: (args: Payment) => `later-${args.to}` };
  await assert.rejects(pay("dora", options), (error) => {
    assert.ok(error instanceof sayso.Suspended);
    assert.equal(error.facts["key"], "later-dora");
    return true;
  });
  await decide(await findPending("send_money", "dora"), { action: "approve" });
  const run = ({ to }: Payment) => `paid ${to}`;
  const gated = sayso.gate("send_money", run, { waitS: 30, quiet: true });
  assert.equal(await gated.withKey("later-dora")({ to: "dora", amount: 250 }), "paid dora");
});

test("a call is asked without running it, and runs later", async () => {
  const run = ({ to }: Payment) => `paid ${to}`;
  const gated = sayso.gate("send_money", run, { key: "asked-{to}", quiet: true });
  const args = { to: "fritz", amount: 250 };
  const asked = await gated.ask(args);
  assert.deepEqual([asked.status, (await gated.ask(args)).id], ["pending", asked.id]);
  await decide(asked, { action: "approve" });
  assert.equal((await gated.ask(args)).status, "decided");
  assert.equal(await gated(args), "paid fritz");
});

test("a key belongs to its arguments", async () => {
  const look = (what: string) => sayso.gate("look_up", () => what, { key: "same", quiet: true })({ what });
  await look("a");
  await assert.rejects(look("b"), (error) => error instanceof sayso.IdempotencyConflict && /same/.test(error.message));
});

test("a failed call is reported and does not run again", async () => {
  let runs = 0;
  const fail = sayso.gate("look_up", () => { runs += 1; throw new TypeError("no such page"); }, { key: "fails", quiet: true });
  await assert.rejects(fail({}), TypeError);
  await assert.rejects(fail({}), (error) => error instanceof sayso.CallFailed && /TypeError: no such page/.test(error.message));
  assert.equal(runs, 1);
});

test("a result that cannot be stored is returned once", async () => {
  const big = sayso.gate("look_up", () => "x".repeat(200_000), { key: "big", quiet: true });
  assert.equal((await big({})).length, 200_000);
  await assert.rejects(big({}), /its result was not stored: .*too large/);
});

test("a second call under one key waits for the first, and ten at once run once", async () => {
  let runs = 0;
  let release = (): void => undefined;
  const open = new Promise<void>((resolve) => { release = resolve; });
  const slow = sayso.gate("look_up", async () => { runs += 1; await open; return runs; }, { key: "slow", quiet: true });
  const calls = Array.from({ length: 10 }, () => slow({}));
  setTimeout(release, 300);
  assert.deepEqual(await Promise.all(calls), Array(10).fill(1));
});

test("a call within its own run is in doubt, not a deadlock", async () => {
  const nested: sayso.Gated<object, unknown> = sayso.gate("look_up", () => nested({}), { key: "nested", quiet: true });
  await assert.rejects(nested({}), sayso.InDoubt);
});

test("a denial of an inner call passes through an outer one", async () => {
  const mail = sayso.gate("send_mail", () => assert.fail("it ran"), { quiet: true });
  const outer = sayso.gate("look_up", () => mail({}), { onDenied: "return", quiet: true });
  await assert.rejects(outer({}), sayso.Denied);
});

test("options that mean nothing are refused at once", () => {
  for (const options of [{ waitS: -1 }, { waitS: NaN }, { reportWithinS: 0.5 }, { step: 0 }, { onDoubt: "x" }, { onDenied: "x" }]) {
    assert.throws(() => sayso.gate("look_up", () => 1, options as object), sayso.InvalidInput);
  }
});

test("the client asks, gets, waits, redeems and reports", async () => {
  const client = new sayso.Client();
  const calls = [{ tool: "send_money", args: { to: "emil" }, definition: { parameters: { type: "object" } } }];
  const request: sayso.SuspensionRequest = { mode: "poll", calls };
  const asked = await client.ask(request, { key: "emil" });
  assert.equal((await client.ask(request, { key: "emil" })).id, asked.id);
  assert.equal((await client.wait(asked.id, 0)).status, "pending");
  await decide(await findPending("send_money", "emil"), { action: "approve" });
  const decided = await client.wait(asked.id);
  assert.equal(decided.items[0]?.outcome?.verdict, "approved");
  const redeemed = await client.redeem(asked.id, "i1", "try-1");
  assert.deepEqual(redeemed.args, { to: "emil" });
  await assert.rejects(client.redeem(asked.id, "i1", "try-2"), sayso.AlreadyRedeemed);
  const reported = await client.report(asked.id, "i1", "try-1", { success: true, output: "paid" });
  assert.equal(reported.items[0]?.permit?.report?.success, true);
  assert.equal((await client.awaitRun(asked.run.id)).status, "completed");
  await assert.rejects(client.get("sus_unknown"), sayso.NotFound);
  await assert.rejects(client.get("../runs"), sayso.NotFound);
  await assert.rejects(new sayso.Client({ key: "wrong" }).get(asked.id), sayso.NotAuthenticated);
});

/** Serve each request by the next answer; the last one stays. */
async function serve(answers: [number, object | string, Record<string, string>?][]): Promise<[string, () => number]> {
  let seen = 0;
  const server = createServer((_request, response) => {
    const [status, body, headers] = answers[Math.min(seen, answers.length - 1)]!;
    seen += 1;
    response.writeHead(status, headers).end(typeof body === "string" ? body : JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  server.unref();
  return [`http://127.0.0.1:${(server.address() as AddressInfo).port}`, () => seen];
}

test("Retry-After is kept, and beyond the own patience the error is thrown", async () => {
  const busy = { type: "/problems/too-many-requests", detail: "Wait." };
  const [url, count] = await serve([[429, busy, { "Retry-After": "1" }], [200, { unknown: true }]]);
  const began = performance.now();
  await assert.rejects(new sayso.Client({ url }).get("sus_1"), sayso.Unreachable);
  assert.ok(performance.now() - began >= 1000);
  assert.equal(count(), 2);
  const [other, tries] = await serve([[429, busy, { "Retry-After": "60" }]]);
  await assert.rejects(new sayso.Client({ url: other }).get("sus_1"), sayso.TooManyRequests);
  assert.equal(tries(), 1);
});

const FOREIGN: [number, object | string][] = [[200, "<html>"], [200, {}], [302, {}], [404, { detail: "x" }], [500, "oops"]];
for (const [status, body] of FOREIGN) {
  test(`a foreign server is named: ${status} ${JSON.stringify(body)}`, async () => {
    const [url] = await serve([[status, body]]);
    await assert.rejects(new sayso.Client({ url, key: "secret" }).get("sus_1"), (error) => {
      assert.ok(error instanceof sayso.Unreachable);
      assert.match(error.message, /not a Sayso desk/);
      assert.doesNotMatch(error.message, /secret/);
      return true;
    });
  });
}

test("nothing runs under a status, verdict or answer that the client does not know", async () => {
  const by = { id: "x", kind: "human" };
  const outcome = { verdict: "approved", message: null, by, start_by: "2030-01-01T00:00:00Z", value: null };
  const item = { item_id: "i1", tool: { name: "pay", args: {}, definition: "d", idempotent: true }, outcome: null };
  const suspension = { id: "sus_1", status: "decided", run: { id: "run_1" }, items: [item] };
  const doubt = { idempotency_key: "k" };
  for (const changed of [
    { ...suspension, status: "postponed" },
    { ...suspension, items: [{ ...item, outcome: { ...outcome, verdict: "approved_if" } }] },
    { ...suspension, items: [{ ...item, outcome: { ...outcome, value: { choice: "maybe" } }, doubt }] },
    { ...suspension, items: [{ ...item, outcome: { ...outcome, value: "run_again" }, doubt }] },
    { ...suspension, status: "cancelled", items: [{ ...item, outcome }] },
  ]) {
    const [url] = await serve([[200, changed]]);
    const gated = sayso.gate("pay", () => assert.fail("it ran"), { client: new sayso.Client({ url }), quiet: true });
    await assert.rejects(gated({}), sayso.Denied);
  }
});

test("an address without a desk is unreachable", async () => {
  const client = new sayso.Client({ url: "http://127.0.0.1:9", patienceS: 0.3 });
  await assert.rejects(client.get("sus_1"), (error) => error instanceof sayso.Unreachable && /Start the desk/.test(error.message));
  assert.throws(() => new sayso.Client({ url: "ftp://x" }), sayso.InvalidInput);
  assert.throws(() => new sayso.Client({ key: "with blank" }), sayso.InvalidInput);
});
