/* Validates HTTP Archives with har-validator: a path on each line of stdin, "ok" or the errors on each of stdout. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const validate = createRequire(process.argv[2] + "/")("har-validator");
for await (const path of createInterface({ input: process.stdin })) {
  try {
    await validate.har(JSON.parse(readFileSync(path, "utf8")));
    console.log("ok");
  } catch (error) {
    console.log(JSON.stringify(error.errors ?? String(error)));
  }
}
