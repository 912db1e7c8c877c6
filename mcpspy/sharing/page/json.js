/**
 * JSON as source text: it keeps digits, the order of members and repeated names, which a parsed value loses.
 *
 * It works without recursion, because a message can be nested more deeply than a stack allows. What is inside an object
 * or array is found when it is wanted, so that the first screen of megabytes does not wait for the rest.
 */

const [BLANK, QUOTE, COMMA, COLON, BRACKET, BACKSLASH, BRACE] = Array.from(' ",:[\\{', (letter) =>
  letter.charCodeAt(0),
);
const CLOSING = 2; // from the code of an opening bracket to that of the closing one

/** @typedef {{keys: string[] | null, children: JsonNode[]}} JsonParts */

/** @type {JsonParts} */
const NO_PARTS = { keys: null, children: [] };

/** A value and its position in its source. */
export class JsonNode {
  /**
   * @param {"object" | "array" | "string" | "number" | "word"} type
   * @param {string} source the text that it is part of
   * @param {number} start
   * @param {number} end
   * @param {Int32Array} ends where each object and array ends, by its start
   */
  constructor(type, source, start, end, ends) {
    this.type = type;
    this.source = source;
    this.start = start;
    this.end = end;
    this.ends = ends;
    /** @type {JsonParts | null} */
    this.parts = type === "object" || type === "array" ? null : NO_PARTS;
  }

  /** Of an object: the names as written, with their quotes; else null. */
  get keys() {
    this.parts ??= partsIn(this);
    return this.parts.keys;
  }

  /** The values in an object or array. */
  get children() {
    this.parts ??= partsIn(this);
    return this.parts.children;
  }
}

const LARGEST_INNER = 1 << 20; // characters of a string that is tried as JSON
const LONGEST_ESCAPE = 6; // characters
const LIKE_JSON = /^[ \t\r\n]{0,79}[[{]/;
const NO_NUMBERS = /\b(?:NaN|Infinity)\b/;
const TOKENS = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\b(?:NaN|Infinity)\b/g;

/**
 * The value of a JSON text; null if the text is invalid. NaN and Infinity are allowed, because Python writes them.
 * @param {string} source
 * @returns {JsonNode | null}
 */
export function parseJson(source) {
  if (!isJson(source)) {
    if (!NO_NUMBERS.test(source)) return null;
    if (!isJson(source.replace(TOKENS, (token) => (token.startsWith('"') ? token : "0")))) return null;
  }
  const outside = new JsonNode("array", source, -1, source.length, endsIn(source));
  return outside.children[0];
}

/**
 * Find the names and values of an object or array, but not what is inside these.
 * @param {JsonNode} node
 * @returns {JsonParts}
 */
function partsIn({ type, source, start, end, ends }) {
  /** @type {string[] | null} */
  const keys = type === "object" ? [] : null;
  /** @type {JsonNode[]} */
  const children = [];
  for (let at = start + 1; at < end; ) {
    const code = source.charCodeAt(at);
    if (isBetween(code) || code === BRACE + CLOSING || code === BRACKET + CLOSING) {
      at += 1;
      continue;
    }
    const kind = typeOf(code);
    const next = ends[at] || (kind === "string" ? endOfString(source, at) : endOfToken(source, at));
    if (kind === "string" && keys && keys.length === children.length) keys.push(source.slice(at, next));
    else children.push(new JsonNode(kind, source, at, next, ends));
    at = next;
  }
  return { keys, children };
}

/**
 * Whether a character stands between values, or between a name and its value.
 * @param {number} code
 */
function isBetween(code) {
  return code <= BLANK || code === COMMA || code === COLON;
}

/**
 * The type of a value, by its first character.
 * @param {number} code
 * @returns {JsonNode["type"]}
 */
function typeOf(code) {
  if (code === QUOTE) return "string";
  if (code === BRACE) return "object";
  if (code === BRACKET) return "array";
  return /[-\dNI]/.test(String.fromCharCode(code)) ? "number" : "word";
}

/**
 * Find where each object and array ends.
 * @param {string} source
 */
function endsIn(source) {
  const found = new Int32Array(source.length);
  const open = [];
  for (let at = 0; at < source.length; at += 1) {
    const code = source.charCodeAt(at);
    if (code === QUOTE) at = endOfString(source, at) - 1;
    else if (code === BRACE || code === BRACKET) open.push(at);
    else if (code === BRACE + CLOSING || code === BRACKET + CLOSING) found[open.pop() ?? 0] = at + 1;
  }
  return found;
}

/** @param {string} text */
function isJson(text) {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** @type {WeakMap<JsonNode, JsonNode | null>} */
const inners = new WeakMap();

/**
 * The object or array that a string holds as JSON; null if it holds none, or an empty one.
 * @param {JsonNode} node
 * @returns {JsonNode | null}
 */
export function innerJson(node) {
  if (node.type !== "string" || node.end - node.start > LARGEST_INNER * LONGEST_ESCAPE) return null;
  let found = inners.get(node);
  if (found === undefined) {
    const text = nodeText(node);
    const inner = text.length <= LARGEST_INNER && LIKE_JSON.test(text) ? parseJson(text) : null;
    found = inner?.children.length ? inner : null;
    inners.set(node, found);
  }
  return found;
}

/**
 * The position after the string that begins at `start`.
 * @param {string} source
 * @param {number} start
 */
function endOfString(source, start) {
  let at = start;
  for (;;) {
    at = source.indexOf('"', at + 1);
    let slashes = 0;
    while (source.charCodeAt(at - 1 - slashes) === BACKSLASH) slashes += 1;
    if (slashes % 2 === 0) return at + 1;
  }
}

/**
 * The position after the number or word that begins at `start`.
 * @param {string} source
 * @param {number} start
 */
function endOfToken(source, start) {
  let at = start;
  for (; at < source.length; at += 1) {
    const code = source.charCodeAt(at);
    if (isBetween(code) || code === BRACKET + CLOSING || code === BRACE + CLOSING) break;
  }
  return at;
}

const ESCAPES = /\\(?:u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|u[\da-fA-F]{4}|.)/g;
const KEPT = /[\0-\x1f"\\\x7f-\x9f\ud800-\udfff]/u; // controls, what JSON needs, unpaired surrogates

/**
 * The source of a string with the escapes decoded that are not needed to read it: those of letters.
 * @param {string} written
 */
export function readableJson(written) {
  if (!written.includes("\\")) return written;
  return written.replace(ESCAPES, (part) => {
    if (part === "\\/") return "/";
    if (part[1] !== "u") return part;
    const decoded = JSON.parse(`"${part}"`);
    return KEPT.test(decoded) ? part : decoded;
  });
}

/**
 * The content of a string; for any other value its source text.
 * @param {JsonNode} node
 * @returns {string}
 */
export function nodeText(node) {
  const written = node.source.slice(node.start, node.end);
  return node.type === "string" ? JSON.parse(written) : written;
}

/**
 * The member of an object with a name, the last one if there are several; undefined if there is none.
 * @param {JsonNode | undefined} node
 * @param {string} name
 */
export function memberOf(node, name) {
  const place = node?.keys?.findLastIndex((key) => keyText(key) === name) ?? -1;
  return place < 0 ? undefined : node?.children[place];
}

/**
 * The name of a member.
 * @param {string} key as written
 * @returns {string}
 */
export function keyText(key) {
  return key.includes("\\") ? JSON.parse(key) : key.slice(1, -1);
}

/**
 * The values on the path of a JSON Pointer (RFC 6901), as far as they exist, the last one at the end.
 * @param {JsonNode} root
 * @param {string} pointer
 * @returns {JsonNode[]}
 */
export function pointedNodes(root, pointer) {
  const path = [root];
  for (const step of pointer.split("/").slice(1)) {
    const node = path[path.length - 1];
    const name = step.replaceAll("~1", "/").replaceAll("~0", "~");
    const next = node.keys ? memberOf(node, name) : node.children[Number(name)];
    if (!next) break;
    path.push(next);
  }
  return path;
}
