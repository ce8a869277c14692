// RFC 8785 by the language that it is defined by. Reads one request a line; answers one line each.
//   {"doubles": base64}   little-endian doubles     -> JSON.stringify of them
//   {"read": text}        JSON text of a list       -> base64 of the doubles that it says
//   {"document": any}                               -> its canonical form
"use strict";

function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const members = Object.keys(value).sort().map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`);
  return `{${members.join(",")}}`;
}

function answer(request) {
  if ("doubles" in request) {
    const bytes = Uint8Array.from(Buffer.from(request.doubles, "base64"));
    return JSON.stringify(Array.from(new Float64Array(bytes.buffer)));
  }
  if ("read" in request) return Buffer.from(new Float64Array(JSON.parse(request.read)).buffer).toString("base64");
  return canonical(request.document);
}

const lines = require("fs").readFileSync(0, "utf8").split("\n").filter((line) => line);
process.stdout.write(lines.map((line) => answer(JSON.parse(line)) + "\n").join(""));
