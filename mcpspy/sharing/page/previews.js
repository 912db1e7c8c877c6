/** What a row shows of its message: the arguments of a call, the beginning of a result, the reason of an error. */

import { messageOf } from "./message.js";
import { previewText } from "./session.js";
import { pluralText } from "./text.js";

const LARGEST_PREVIEWED = 1 << 16; // bytes of a frame that is parsed for a preview
const LONGEST_PREVIEW = 300; // characters
const KEPT_PREVIEWS = 5000;
const LISTS = ["tools", "prompts", "resources", "resourceTemplates"];

/** Previews of rows, each made when it is first looked at. */
export class Previews {
  constructor() {
    /** @type {import("./capture.js").Capture | null} null until it is unpacked */
    this.capture = null;
    /** @type {Map<import("./session.js").Row, string>} */
    this.made = new Map();
  }

  /** @param {import("./session.js").Row} row */
  of(row) {
    const given = previewText(row);
    if (given || !this.capture || row.size > LARGEST_PREVIEWED) return given;
    let found = this.made.get(row);
    if (found === undefined) {
      if (this.made.size > KEPT_PREVIEWS) this.made.clear();
      found = messagePreview(row, this.capture);
      this.made.set(row, found);
    }
    return found;
  }
}

/**
 * @param {import("./session.js").Row} row
 * @param {import("./capture.js").Capture} capture
 */
function messagePreview(row, capture) {
  const { json } = messageOf(row, capture);
  if (!json) return "";
  const value = JSON.parse(json.source.slice(json.start, json.end));
  const listed = LISTS.find((name) => Array.isArray(value.result?.[name]));
  if (listed) return pluralText(value.result[listed].length, listed.slice(0, -1));
  const text = value.params?.content?.text ?? value.error?.message ?? firstText(value.result);
  const shown = text ?? value.params?.arguments ?? without(value.params ?? value.result);
  return (typeof shown === "string" ? shown : (JSON.stringify(shown) ?? "")).slice(0, LONGEST_PREVIEW);
}

/** @param {any} result */
function firstText(result) {
  const content = result?.content;
  return Array.isArray(content) ? content.find((part) => typeof part?.text === "string")?.text : undefined;
}

/**
 * Members without those that every message has; nothing where no other is left.
 * @param {any} members
 */
function without(members) {
  if (typeof members !== "object" || members === null) return members;
  const { _meta, name, ...others } = members;
  return Object.keys(others).length ? others : undefined;
}
