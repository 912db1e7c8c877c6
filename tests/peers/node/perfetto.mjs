/* Reads traces with the trace processor of Perfetto, compiled to WebAssembly, as ui.perfetto.dev does.

   node perfetto.mjs ENGINE_FOLDER     on each line of stdin {"path": FILE, "queries": [SQL…]}
   prints for each line what the queries gave, [[[value…]…]…], or {"error": …}

   The engine is the script of a worker that is sent protobuf messages (TraceProcessorRpcStream in Perfetto's
   protos/perfetto/trace_processor/trace_processor.proto); the few fields that are needed are written by hand here. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import vm from "node:vm";

const folder = process.argv[2];
const script = new vm.Script(readFileSync(join(folder, "engine_bundle.js"), "utf8"));
const [APPEND, FINALIZE, QUERY] = [1, 2, 3]; // TraceProcessorMethod

function varint(number) {
  const bytes = [];
  for (; number > 127; number = Math.floor(number / 128)) bytes.push((number % 128) | 128);
  return Buffer.from([...bytes, number]);
}

const bytesField = (field, payload) => Buffer.concat([varint(field * 8 + 2), varint(payload.length), payload]);
const numberField = (field, number) => Buffer.concat([varint(field * 8), varint(number)]);

/* The fields of a message as [number, value] pairs. */
function fields(bytes) {
  const found = [];
  let place = 0;
  const next = () => {
    let [value, shift] = [0n, 0n];
    for (let byte = 128; byte > 127; shift += 7n) {
      byte = bytes[place++];
      value |= BigInt(byte & 127) << shift;
    }
    return value;
  };
  while (place < bytes.length) {
    const tag = Number(next());
    if (tag % 8 === 0) found.push([tag >> 3, next()]);
    else {
      const size = tag % 8 === 2 ? Number(next()) : tag % 8 === 1 ? 8 : 4;
      found.push([tag >> 3, bytes.subarray(place, (place += size))]);
    }
  }
  return found;
}

/* The numbers of a packed field: each is read as the first field of a message. */
function packed(bytes) {
  const found = [];
  for (let start = 0, place = 0; place < bytes.length; place++)
    if (bytes[place] < 128) {
      const [[, value]] = fields(Buffer.concat([Buffer.from([8]), bytes.subarray(start, place + 1)]));
      found.push(Number(BigInt.asIntN(64, value)));
      start = place + 1;
    }
  return found;
}

/* What a worker loads its WebAssembly with. */
class WasmRequest {
  open(method, url) {
    this.response = readFileSync(join(folder, url.split("/").pop()));
  }
  send() {}
}

class Engine {
  constructor() {
    this.sequence = 0;
    this.port = { postMessage: (bytes) => this.replied(Buffer.from(bytes)) };
    const self = { location: { href: "http://engine/engine_bundle.js" } };
    const quiet = () => {};
    const context = vm.createContext({
      self, URL, TextDecoder, TextEncoder, performance, setTimeout, clearTimeout, crypto,
      console: { log: quiet, warn: quiet, error: quiet },
      importScripts: quiet,
      location: self.location,
      WorkerGlobalScope: class {},
      XMLHttpRequest: WasmRequest,
    });
    script.runInContext(context);
    this.Bytes = vm.runInContext("Uint8Array", context); // by which the engine knows a message
    self.onmessage({ data: this.port });
  }

  /* Sends a message; resolves with the fields of its replies. */
  ask(method, ...more) {
    const message = Buffer.concat([numberField(1, ++this.sequence), numberField(2, method), ...more]);
    return new Promise((resolve, reject) => {
      const found = [];
      this.replied = (bytes) => {
        for (const [, reply] of fields(bytes))
          for (const [field, value] of fields(reply)) {
            if (field === 5) reject(new Error(String(value)));
            found.push([field, value]);
            const last = field === 203 && fields(value).some(([it, batch]) => it === 3 && isLast(batch));
            if (method === QUERY && (last || (field === 203 && failure(value)))) resolve(found);
          }
        if (method !== QUERY) resolve(found);
      };
      try {
        this.port.onmessage({ data: new this.Bytes(bytesField(1, message)) });
      } catch (error) {
        reject(error);
      }
    });
  }

  async load(bytes) {
    for (let place = 0; place < bytes.length; place += 1 << 22) {
      const replies = await this.ask(APPEND, bytesField(101, bytes.subarray(place, place + (1 << 22))));
      for (const [field, result] of replies)
        if (field === 201) for (const [it, text] of fields(result)) if (it === 2) throw new Error(String(text));
    }
    await this.ask(FINALIZE);
  }

  /* The rows of a query. */
  async query(sql) {
    let columns = 0;
    const cells = [];
    for (const [field, result] of await this.ask(QUERY, bytesField(103, bytesField(1, Buffer.from(sql))))) {
      if (field !== 203) continue;
      if (failure(result)) throw new Error(failure(result));
      const parts = fields(result);
      columns += parts.filter(([it]) => it === 1).length;
      for (const [it, batch] of parts) if (it === 3) cells.push(...cellsOf(batch));
    }
    return Array.from({ length: cells.length / columns }, (_, row) => cells.slice(row * columns, (row + 1) * columns));
  }
}

const isLast = (batch) => fields(batch).some(([field, value]) => field === 6 && value === 1n);
const failure = (result) => String(fields(result).find(([field]) => field === 2)?.[1] ?? "");

/* CellsBatch: the kinds of all cells, and then the values of each kind in their order. */
function cellsOf(batch) {
  const parts = fields(batch);
  const all = (field) => Buffer.concat(parts.filter(([it]) => it === field).map(([, value]) => value));
  const [kinds, numbers, floats, strings] = [packed(all(1)), packed(all(2)), all(3), all(5).toString().split("\0")];
  let at = 0;
  return kinds.map((kind) => {
    if (kind === 2) return numbers.shift();
    if (kind === 3) return floats.readDoubleLE(8 * at++);
    return kind === 4 ? strings.shift() : null;
  });
}

for await (const line of createInterface({ input: process.stdin })) {
  const { path, queries } = JSON.parse(line);
  try {
    const engine = new Engine();
    await new Promise(setImmediate); // the engine has been set up by promises that are kept already
    await engine.load(readFileSync(path));
    const found = [];
    for (const sql of queries) found.push(await engine.query(sql));
    console.log(JSON.stringify(found));
  } catch (error) {
    console.log(JSON.stringify({ error: String(error) }));
  }
}
process.exit(0);
