/**
 * The content of a message as lines: what a person reads, in place of the JSON on the wire.
 *
 * The lines are those of `mcpspy.reading.content`, which describes them. Here a line that opens a value makes the lines
 * inside it when they are wanted, so what is folded costs nothing, and a large message costs no more than what is shown.
 */

import { innerJson, keyText, memberOf, nodeText } from "./json.js";
import { disagreementText, mediaOf, mediaText } from "./media.js";
import { countText, pluralText } from "./text.js";

/** @typedef {import("./json.js").JsonNode} JsonNode */

/**
 * The way to a value, from the last step back to the first: a value can be deep.
 * @typedef {{step: string | number, before: ContentPath} | null} ContentPath
 */

/**
 * One line of a message.
 * @typedef {object} ContentLine
 * @property {number} depth
 * @property {string} label the name of the member, or what an element is; empty for a line of text
 * @property {string} text
 * @property {"text" | "string" | "number" | "literal" | "media" | "note"} kind
 * @property {ContentPath} path of its value in the message
 * @property {JsonNode} node its value
 * @property {JsonNode[]} blocks the content blocks that it stands for: its value is their main member
 * @property {boolean} opens whether the lines inside belong to it
 * @property {boolean} folded whether these are hidden at first
 * @property {number} start for a line of a text: the position of its first character in the whole text
 * @property {ContentLine | null} above the line that it is inside
 * @property {import("./media.js").MediaFile | null} media
 * @property {(() => IterableIterator<ContentLine>) | null} inside makes the lines inside it
 */

/** The methods whose messages are shown in this form, unless the user chooses another one. */
export const READ = [
  "tools/call",
  "tools/list",
  "prompts/get",
  "prompts/list",
  "resources/read",
  "sampling/createMessage",
  "notifications/message",
  "completion/complete",
  "elicitation/create",
  "initialize",
  "server/discover",
];

const LEAST_MEDIA = 64; // characters of a string that is taken for base64 by its bytes alone
const SHORT_TEXT = 80; // characters of a text that stays on the line of its label
const LONGEST_TEXT_LINE = 1000; // characters of one line; a longer line of a text continues on the next one
const TITLES = ["role", "name", "uri", "uriTemplate", "title", "id"];
const FOLDED = ["_meta", "inputSchema", "outputSchema", "icons", "annotations", "execution"];
/** @type {Record<string, string>} the types of content blocks, with the member that is shown as the block itself */
const BLOCKS = { text: "text", image: "data", audio: "data", resource: "resource" };
const ENVELOPE = ["jsonrpc", "id", "method"];
const NO_NAMES = ["-", "content"]; // labels that say less than the type of a content block
const NAMELESS = ["", "-"]; // labels of what has no name: a member with such a name is labelled in quotes
const WRAPPED = "result"; // the member in which SDKs return what is no object
const INNER_STEP = "\0"; // of a path: from a string into the JSON that it holds

/**
 * A value that is to be shown.
 * @typedef {object} ContentValue
 * @property {number} depth
 * @property {string} label
 * @property {ContentPath} path
 * @property {JsonNode} node
 * @property {string | null} said the `mimeType` beside it
 * @property {string} [note] what is shown in place of the value, and was not sent
 */

/**
 * The outermost lines of a message, or of any JSON value.
 * @param {JsonNode} root
 * @returns {IterableIterator<ContentLine>}
 */
export function* outerLines(root) {
  const same = sameAsText(root);
  let empty = true;
  for (const value of partsOf(root)) {
    empty = false;
    yield lineOfValue(value, null, same);
  }
  if (empty) yield lineWith({ depth: 0, label: "", path: null, node: root, said: null }, "no params", "note");
}

/**
 * All lines of a message, folded or not.
 * @param {JsonNode} root
 */
export function* contentLines(root) {
  const open = [outerLines(root)];
  while (open.length) {
    const { value: line, done } = open[open.length - 1].next();
    if (done) open.pop();
    else {
      yield/** @type {ContentLine} */ (line);
      if (line.inside) open.push(line.inside());
    }
  }
}

/**
 * The steps of a way, from the first to the last.
 * @param {ContentPath} path
 */
export function stepsOf(path) {
  const found = [];
  for (let at = path; at; at = at.before) found.push(at.step);
  return found.reverse();
}

/**
 * What of a message is shown without indentation.
 * @param {JsonNode} root
 */
function* partsOf(root) {
  if (!root.keys) {
    yield { depth: 0, label: "", path: null, node: root, said: null };
    return;
  }
  for (const name of ["params", "result", "error"]) {
    const node = memberOf(root, name);
    if (!node?.keys) continue;
    yield* membersOf(0, root, null, root.keys.map(keyText));
    if (!node.children.length) yield { depth: 0, label: name, path: { step: name, before: null }, node, said: null };
    for (const value of membersOf(0, node, { step: name, before: null })) {
      const { label, node: list, note } = value;
      const blocks = ["content", "contents"].includes(label) && list.type === "array" && list.children.length > 0;
      if (blocks && note === undefined) yield* valuesInside(value, 0);
      else yield value;
    }
    return;
  }
  yield* membersOf(0, root, null, ENVELOPE);
}

/**
 * The members of an object, and which of its names are repeated; `_meta` comes last.
 * @param {number} depth
 * @param {JsonNode} node
 * @param {ContentPath} path
 * @param {string[]} [without]
 * @returns {ContentValue[]}
 */
function membersOf(depth, node, path, without = []) {
  /** @type {Map<string, JsonNode[]>} */
  const members = new Map();
  for (const [at, key] of (node.keys ?? []).entries()) {
    const child = node.children[at];
    const name = keyText(key);
    const before = members.get(name);
    if (before) before.push(child);
    else members.set(name, [child]);
  }
  const meta = members.get("_meta");
  if (meta && members.delete("_meta")) members.set("_meta", meta);
  const said = textOf(members.get("mimeType")?.at(-1));
  const left = new Set(without);
  return [...members].flatMap(([name, values]) => {
    const label = NAMELESS.includes(name) ? `"${name}"` : name;
    const last = { depth, label, path: { step: name, before: path }, node: values[values.length - 1], said };
    const note = `${countText(values.length)} members have this name; only the last one is shown`;
    return [...(values.length > 1 ? [{ ...last, note }] : []), ...(left.has(name) ? [] : [last])];
  });
}

/**
 * The members or elements of a value, to be shown at a depth.
 * @param {ContentValue} value
 * @param {number} depth
 * @returns {Iterable<ContentValue>}
 */
function* valuesInside({ label, path, node }, depth) {
  if (node.keys) {
    const titled = typeof path?.step === "number" && namesOf(node).size > 1; // else nothing would be inside
    const told = titled ? TITLES.filter((name) => textOf(memberOf(node, name)) === label) : [];
    yield* membersOf(depth, node, path, told.slice(0, 1));
    return;
  }
  for (const [at, child] of node.children.entries())
    yield { depth, label: titleOf(child), path: { step: at, before: path }, node: child, said: null };
}

/**
 * The different names of the members of an object.
 * @param {JsonNode} node
 */
function namesOf(node) {
  return new Set(node.keys?.map(keyText));
}

/**
 * The label of an element of an array: the text that names it. A number would look like an index.
 * @param {JsonNode} node
 */
function titleOf(node) {
  for (const name of node.keys ? TITLES : []) {
    const found = memberOf(node, name);
    if (found?.type === "string" && found.end - found.start > 2) return nodeText(found);
  }
  return "-";
}

/**
 * The text of a string, or the digits of a number; null for any other value.
 * @param {JsonNode | undefined} node
 */
function textOf(node) {
  return node?.type === "string" || node?.type === "number" ? nodeText(node) : null;
}

/**
 * @param {ContentValue} value
 * @param {string} text
 * @param {ContentLine["kind"]} kind
 * @param {Partial<ContentLine>} [more]
 * @returns {ContentLine}
 */
function lineWith({ depth, label, path, node }, text, kind, more = {}) {
  const rest = { blocks: [], opens: false, folded: false, start: 0, above: null, media: null, inside: null };
  return { depth, label, path, node, text, kind, ...rest, ...more };
}

/**
 * The line of a value.
 * @param {ContentValue} value
 * @param {ContentLine | null} above
 * @param {string} [same] what to tell of structured content
 */
function lineOfValue(value, above, same = "") {
  /** @type {ContentValue[][]} the other members of content blocks, of the innermost last */
  const others = [];
  const blocks = [];
  for (let block = blockOf(value); block; block = blockOf(value)) {
    others.push(block.others);
    blocks.push(value.node);
    value = block.main;
  }
  const line = lineAlone(value, same);
  line.above = above;
  line.blocks = blocks;
  const rest = others.reverse().flat();
  const inside = line.inside;
  if (rest.length) {
    line.inside = function* () {
      if (inside) yield* inside();
      yield* linesOf(rest, line);
    };
  }
  return line;
}

/**
 * The line of a value that is no content block.
 * @param {ContentValue} value
 * @param {string} same
 */
function lineAlone(value, same) {
  if (value.note !== undefined) return lineWith(value, value.note, "note");
  return value.node.type === "string" ? stringLine(value) : otherLine(value, same);
}

/**
 * The line of a value that is no string.
 * @param {ContentValue} value
 * @param {string} same
 */
function otherLine(value, same) {
  const { node, label, depth, path } = value;
  if (!node.children.length) {
    const text = node.keys ? "{}" : node.type === "array" ? "[]" : nodeText(node);
    return lineWith(value, text, node.type === "number" ? "number" : "literal");
  }
  const note = path?.step === "structuredContent" && path.before?.step === "result" ? same : "";
  const folded = FOLDED.includes(label) || note !== "";
  const count = node.keys ? namesOf(node).size : node.children.length;
  const many = folded ? pluralText(count, node.keys ? "member" : "element") : "";
  const line = lineWith(value, note || many, "note", { opens: true, folded });
  line.inside = () => linesOf(valuesInside(value, depth + 1), line);
  return line;
}

/**
 * @param {Iterable<ContentValue>} values
 * @param {ContentLine} above
 */
function* linesOf(values, above) {
  for (const value of values) yield lineOfValue(value, above);
}

/**
 * What is shown of a content block: its main value, labelled by its type, and its other members.
 * @param {ContentValue} value
 */
function blockOf({ depth, label, path, node, note }) {
  if (note !== undefined) return null;
  const kind = textOf(memberOf(node, "type")) ?? "";
  const name = Object.hasOwn(BLOCKS, kind) ? BLOCKS[kind] : "";
  const shown = name ? memberOf(node, name) : undefined;
  if (!shown || (textOf(shown) === null && !shown.keys)) return null;
  const title = NO_NAMES.includes(label) ? kind : label;
  const said = textOf(memberOf(node, "mimeType"));
  /** @type {ContentValue} */
  const main = { depth, label: title, path: { step: name, before: path }, node: shown, said };
  const without = ["type", name];
  if (mediaIn(main)) without.push("mimeType"); // the line of media has the type
  return { main, others: membersOf(depth + 1, node, path, without) };
}

/**
 * The line of a string.
 * @param {ContentValue} value
 */
function stringLine(value) {
  const { depth, path, node, said } = value;
  const text = nodeText(node);
  const media = mediaIn(value);
  if (media) {
    const told = [mediaText(media), disagreementText(media, said)].filter(Boolean).join("; ");
    return lineWith(value, told, "media", { media });
  }
  const inner = innerJson(node);
  if (inner) {
    const line = lineWith(value, "JSON in a string", "note", { opens: true });
    const within = { ...value, path: { step: INNER_STEP, before: path }, node: inner };
    line.inside = () => linesOf(valuesInside(within, depth + 1), line);
    return line;
  }
  if (!text.includes("\n") && !isLonger(text, SHORT_TEXT)) return lineWith(value, text, "string");
  const line = lineWith(value, "", "text", { opens: true });
  line.inside = () => new TextLines(line, text);
  return line;
}

/**
 * What a string holds, if it is an image, a sound or another file in base64.
 * @param {ContentValue} value
 */
function mediaIn({ path, said, node }) {
  if (node.type !== "string") return null;
  const text = nodeText(node);
  const named = ["data", "blob"].includes(String(path?.step)) && said !== null;
  if (!named && text.length < LEAST_MEDIA && !text.startsWith("data:")) return null;
  const media = mediaOf(text);
  return media && (media.form || named) ? media : null;
}

/** The lines of a text, from a position on; a line that is too long is broken, after a blank if it can be. */
export class TextLines {
  /**
   * @param {ContentLine} owner
   * @param {string} text
   * @param {number} [from] where a line begins
   * @param {number} [to]
   */
  constructor(owner, text, from = 0, to = text.length) {
    this.owner = owner;
    this.text = text;
    this.at = from;
    this.to = to;
    /** Where the next line end is; it is looked for once, because a line can have megabytes. */
    this.newline = -1;
  }

  [Symbol.iterator]() {
    return this;
  }

  /** @returns {IteratorResult<ContentLine, undefined>} */
  next() {
    const { owner, text, at: start, to } = this;
    if (start >= to) return { done: true, value: undefined };
    if (this.newline < start) {
      const found = text.indexOf("\n", start);
      this.newline = found < 0 ? text.length : found;
    }
    const limit = positionAfter(text, start, LONGEST_TEXT_LINE);
    let end = this.newline;
    if (end >= limit && limit < text.length) {
      const blank = text.slice(start + 1, limit).lastIndexOf(" ");
      end = blank < 0 ? limit : start + blank + 2;
      this.at = end;
    } else this.at = end + 1;
    const line = text.slice(start, end);
    const shown = this.at > end && line.endsWith("\r") ? line.slice(0, -1) : line;
    const place = { depth: owner.depth + 1, label: "", path: owner.path, node: owner.node, said: null };
    return { done: false, value: lineWith(place, shown, "text", { start, above: owner }) };
  }

  /**
   * Cut the lines some characters before the line that begins at a position.
   * @param {number} position
   * @param {number} before
   * @returns {{skipped: TextLines | null, rest: TextLines}}
   */
  cutBefore(position, before) {
    const { owner, text, at, to } = this;
    const line = text.lastIndexOf("\n", Math.max(position - before, at)) + 1;
    const cut = line > at ? line : position;
    if (cut <= at || cut >= to) return { skipped: null, rest: this };
    return { skipped: new TextLines(owner, text, at, cut), rest: new TextLines(owner, text, cut, to) };
  }
}

/**
 * Whether a text has more characters than a limit; a surrogate pair is one character.
 * @param {string} text
 * @param {number} limit
 */
function isLonger(text, limit) {
  return positionAfter(text, 0, limit) < text.length;
}

/**
 * The position behind some characters of a text, at most its end; a surrogate pair is one character.
 * @param {string} text
 * @param {number} start
 * @param {number} count
 */
function positionAfter(text, start, count) {
  const part = text.slice(start, start + 2 * count);
  if (!/[\ud800-\udbff]/.test(part)) return start + Math.min(part.length, count);
  let at = 0;
  for (let passed = 0; passed < count && at < part.length; passed += 1)
    at += (part.codePointAt(at) ?? 0) > 0xffff ? 2 : 1;
  return start + at;
}

/**
 * What to tell if the structured content of a result repeats the only text of the result; else empty.
 * @param {JsonNode} root
 */
function sameAsText(root) {
  const result = memberOf(root, "result");
  const content = memberOf(result, "content");
  const structured = memberOf(result, "structuredContent");
  if (content?.type !== "array" || content.children.length !== 1 || !structured?.children.length) return "";
  const text = memberOf(content.children[0], "text");
  if (text?.type !== "string") return "";
  const wrapped = structured.children.length === 1 ? textOf(memberOf(structured, WRAPPED)) : null;
  if (wrapped === nodeText(text)) return "the same as the text";
  const told = innerJson(text);
  return told && isSameJson(told, structured) ? "the same as the JSON in the text" : "";
}

/**
 * Whether two values are the same; the order of members is not part of a value. Objects with repeated names are not.
 * @param {JsonNode} one
 * @param {JsonNode} other
 */
function isSameJson(one, other) {
  const waiting = [[one, other]];
  for (let pair = waiting.pop(); pair; pair = waiting.pop()) {
    const [left, right] = pair;
    if (left.type !== right.type || left.children.length !== right.children.length) return false;
    if (!left.children.length && nodeText(left) !== nodeText(right) && left.type !== "object" && left.type !== "array")
      return false;
    const places = right.keys ? new Map(right.keys.map((key, at) => [keyText(key), at])) : null;
    if (places && (places.size < right.children.length || namesOf(left).size < left.children.length)) return false;
    for (const [at, child] of left.children.entries()) {
      const place = places && left.keys ? places.get(keyText(left.keys[at])) : at;
      if (place === undefined) return false;
      waiting.push([child, right.children[place]]);
    }
  }
  return true;
}
