/**
 * JSON as source text: it keeps digits, the order of members and repeated names, which a parsed value loses.
 *
 * It works without recursion, because a message can be nested more deeply than a stack allows.
 */

/**
 * A value and its position in its source.
 * @typedef {object} JsonNode
 * @property {"object" | "array" | "string" | "number" | "word"} type
 * @property {string} source the text that it is part of
 * @property {number} start
 * @property {number} end
 * @property {string[] | null} keys of an object: the names as written, with their quotes
 * @property {JsonNode[]} children of an object or array
 */

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
  const outside = jsonNode("array", source, 0, source.length, null, []);
  const stack = [outside];
  let inside = outside;
  let at = 0;
  while (at < source.length) {
    const code = source.charCodeAt(at);
    if (code === QUOTE) {
      const end = endOfString(source, at);
      if (inside.keys && inside.keys.length === inside.children.length) inside.keys.push(source.slice(at, end));
      else inside.children.push(jsonNode("string", source, at, end, null, NO_CHILDREN));
      at = end;
    } else if (code <= BLANK || code === COMMA || code === COLON) {
      at += 1;
    } else if (code === BRACE || code === BRACKET) {
      const node = jsonNode(code === BRACE ? "object" : "array", source, at, at, code === BRACE ? [] : null, []);
      inside.children.push(node);
      stack.push(node);
      inside = node;
      at += 1;
    } else if (code === BRACE + 2 || code === BRACKET + 2) {
      at += 1;
      inside.end = at;
      stack.pop();
      inside = stack[stack.length - 1];
    } else {
      const end = endOfToken(source, at);
      const type = /[-\dNI]/.test(source[at]) ? "number" : "word";
      inside.children.push(jsonNode(type, source, at, end, null, NO_CHILDREN));
      at = end;
    }
  }
  return outside.children[0];
}

const [BLANK, QUOTE, COMMA, COLON, BRACKET, BACKSLASH, BRACE] = Array.from(' ",:[\\{', (letter) =>
  letter.charCodeAt(0),
);
/** @type {JsonNode[]} */
const NO_CHILDREN = [];

/**
 * @param {JsonNode["type"]} type
 * @param {string} source
 * @param {number} start
 * @param {number} end
 * @param {string[] | null} keys
 * @param {JsonNode[]} children
 * @returns {JsonNode}
 */
function jsonNode(type, source, start, end, keys, children) {
  return { type, source, start, end, keys, children };
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
    if (code <= BLANK || code === COMMA || code === BRACKET + 2 || code === BRACE + 2) break;
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
