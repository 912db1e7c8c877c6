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

/**
 * The value of a JSON text; null if the text is invalid.
 * @param {string} source
 * @returns {JsonNode | null}
 */
export function parseJson(source) {
  try {
    JSON.parse(source); // the text is valid from here on
  } catch {
    return null;
  }
  /** @type {JsonNode} */
  const outside = { type: "array", source, start: 0, end: source.length, keys: null, children: [] };
  const stack = [outside];
  let at = 0;
  while (at < source.length) {
    const inside = stack[stack.length - 1];
    const character = source[at];
    if (character === "{" || character === "[") {
      const object = character === "{";
      /** @type {JsonNode} */
      const node = {
        type: object ? "object" : "array",
        source,
        start: at,
        end: at,
        keys: object ? [] : null,
        children: [],
      };
      inside.children.push(node);
      stack.push(node);
      at += 1;
    } else if (character === "}" || character === "]") {
      stack.pop();
      inside.end = at + 1;
      at += 1;
    } else if (character === '"') {
      const end = endOfString(source, at);
      if (inside.keys && inside.keys.length === inside.children.length) inside.keys.push(source.slice(at, end));
      else inside.children.push({ type: "string", source, start: at, end, keys: null, children: [] });
      at = end;
    } else if (",: \t\r\n".includes(character)) {
      at += 1;
    } else {
      const end = endOfToken(source, at);
      const type = /[-\d]/.test(character) ? "number" : "word";
      inside.children.push({ type, source, start: at, end, keys: null, children: [] });
      at = end;
    }
  }
  return outside.children[0];
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
    while (source[at - 1 - slashes] === "\\") slashes += 1;
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
  while (at < source.length && !",]} \t\r\n".includes(source[at])) at += 1;
  return at;
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
    const place = node.keys ? node.keys.findLastIndex((key) => JSON.parse(key) === name) : Number(name);
    const next = node.children[place];
    if (!next) break;
    path.push(next);
  }
  return path;
}
