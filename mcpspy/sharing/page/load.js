/** The data in the page: the session and the capture, each compressed in an element of its own. */

/**
 * The bytes in an element, as gzip in base64. Rejects if they are damaged.
 * @param {HTMLElement} element emptied, because its text is not needed any more
 * @returns {Promise<Uint8Array<ArrayBuffer>>}
 */
export async function unpackElement(element) {
  const compressed = bytesOfBase64(element.textContent.trim());
  element.textContent = "";
  const stream = new Blob([compressed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/**
 * Whether this browser can open the page.
 */
export function canUnpack() {
  return "DecompressionStream" in globalThis;
}

const BASE64_PIECE = 1 << 20; // characters; a multiple of four

/**
 * The bytes of a base64 text, decoded piece by piece to save memory.
 * @param {string} text
 */
export function bytesOfBase64(text) {
  const padding = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0;
  const bytes = new Uint8Array((text.length / 4) * 3 - padding);
  let at = 0;
  for (let start = 0; start < text.length; start += BASE64_PIECE) {
    const piece = atob(text.slice(start, start + BASE64_PIECE));
    for (let place = 0; place < piece.length; place += 1) bytes[at + place] = piece.charCodeAt(place);
    at += piece.length;
  }
  return bytes;
}

/**
 * Offer bytes as a file to save.
 * @param {Uint8Array<ArrayBuffer>} bytes
 * @param {string} name
 */
export function saveBytes(bytes, name) {
  const url = URL.createObjectURL(new Blob([bytes], { type: "application/octet-stream" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

const turns = new MessageChannel(); // a timer would wait 4 ms each time
/** @type {(() => void)[]} */
const waiting = [];
turns.port1.onmessage = () => waiting.shift()?.();

/**
 * Let the page react to keys and draw; resolves when this task may continue.
 * @returns {Promise<void>}
 */
export function nextTurn() {
  return new Promise((resolve) => {
    waiting.push(resolve);
    turns.port2.postMessage(null);
  });
}
