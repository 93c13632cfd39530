import assert from "node:assert/strict";
import { test } from "node:test";

import { InvalidJson, type Json, parseJson, TooLarge, writeJson } from "@sayso/client";

const EXACT: [string, Json][] = [
  ["9007199254740991", 9007199254740991],
  ["9007199254740993", 9007199254740993n],
  ["-123456789012345678901234567890", -123456789012345678901234567890n],
  ['{"a":[1,2.5,true,null,"\\u0000é😀"],"__proto__":{"x":1},"constructor":"mine"}', null],
  ['""', ""],
  ["[]", []],
  ["{}", {}],
];
for (const [text, value] of EXACT) {
  test(`JSON is read and written exactly: ${text}`, () => {
    const read = parseJson(text);
    if (value !== null) assert.deepEqual(read, value);
    assert.deepEqual(parseJson(writeJson(read)), read);
    assert.equal(writeJson(read), text.replace("\\u0000", "\\u0000"));
  });
}

test("one zero is read, and numbers with a fraction are numbers", () => {
  assert.ok(Object.is(parseJson("-0"), 0) && Object.is(parseJson("-0.0"), 0));
  assert.deepEqual(parseJson(" [ 1.0 , 1e3 ,-2E-1 ] "), [1, 1000, -0.2]);
});

const REFUSED = ['{"a":1,"a":2}', '"\\ud800"', "NaN", "[1,]", "{,}", "01", "1e999", '{"a" 1}', '"\n"', '"', "", "1 2", "tru", "[", '{"a":1', '"\\'];
for (const text of REFUSED) {
  test(`text is refused: ${JSON.stringify(text)}`, () => assert.throws(() => parseJson(text), InvalidJson));
}

const UNWRITABLE: [string, unknown][] = [
  ["NaN", Number.NaN],
  ["a rounded integer", 2 ** 53],
  ["a float that is an integer beyond", 1e300],
  ["undefined", undefined],
  ["a hole", [undefined]],
  ["a function", { run: () => 1 }],
  ["a symbol", Symbol("s")],
  ["a Map", new Map([[1, 2]])],
  ["a lone surrogate", "\ud800"],
  ["a lone surrogate as key", { "\ud800": 1 }],
  ["4001 digits", 10n ** 4000n],
];
for (const [name, value] of UNWRITABLE) {
  test(`value is refused: ${name}`, () => assert.throws(() => writeJson({ value }.value), InvalidJson));
}

test("a date is its text, and an undefined property is left out", () => {
  assert.equal(writeJson({ at: new Date(0), gone: undefined }), '{"at":"1970-01-01T00:00:00.000Z"}');
});

test("what is nested too deep or in a circle is refused", () => {
  const circle: unknown[] = [];
  circle.push(circle);
  assert.throws(() => writeJson(circle), TooLarge);
  assert.throws(() => parseJson("[".repeat(1000)), TooLarge);
});
