/** From the bytes of a frame to the message of a row: extracts it from an event or from a batch. */

import { frameDecoder } from "./capture.js";
import { parseJson } from "./json.js";

/**
 * The content of a row.
 * @typedef {object} Message
 * @property {Uint8Array} bytes of the whole frame
 * @property {string} text of the frame
 * @property {import("./json.js").JsonNode | null} json the message; null if there is none
 */

const MOST_JSON = 8 << 20; // bytes of a frame that is decoded

/**
 * The message of a row. It never throws: a frame that cannot be parsed has only bytes and text.
 * @param {import("./session.js").Row} row
 * @param {import("./capture.js").Capture} capture
 * @returns {Message}
 */
export function messageOf(row, capture) {
  const framed = row.channel !== null && row.size > 0;
  const bytes = framed ? capture.frameBytes(row.n) : new TextEncoder().encode(row.text ?? "");
  const text = framed ? frameDecoder().decode(bytes) : (row.text ?? "");
  if (!framed || bytes.length > MOST_JSON || row.kind === "stderr") return { bytes, text, json: null };
  const stream = capture.channels.get(row.channel ?? 0)?.framing === "sse";
  const marked = text.startsWith("\ufeff") ? text.slice(1) : text; // mcpspy accepts it
  const json = parseJson(stream ? eventData(marked) : marked);
  const element = json?.type === "array" ? json.children[row.part] : null;
  return { bytes, text, json: element ?? json };
}

/**
 * The data of an event (WHATWG HTML, 9.2.6).
 * @param {string} block
 */
export function eventData(block) {
  return block
    .split(/\r\n|\r|\n/)
    .filter((line) => line === "data" || line.startsWith("data:"))
    .map((line) => line.slice(5).replace(/^ /, ""))
    .join("\n");
}
