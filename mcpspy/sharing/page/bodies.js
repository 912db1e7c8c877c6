/** A frame as on the wire: its text, and its bytes as hexadecimal digits. */

import { appendLongText, buttonElement, el, sizeText } from "./text.js";

const TEXT_AT_FIRST = 1 << 16; // characters
const HEX_AT_FIRST = 4096; // bytes
const HEX_AT_A_TIME = 1 << 16;
const HEX_LINE = 16; // bytes
const HEX_WIDE = 560; // pixels from which a line has 16 bytes, else half

/**
 * The text of a frame, with escapes for invisible characters.
 * @param {string} text
 */
export function rawElement(text) {
  const found = el("pre", { class: "raw", tabindex: 0, "aria-label": "raw frame" });
  appendLongText(found, text, TEXT_AT_FIRST, true);
  return found;
}

/**
 * The bytes of a frame: offset, digits, and ASCII.
 * @param {Uint8Array} bytes
 * @param {number} width available pixels
 */
export function hexElement(bytes, width) {
  const found = el("pre", { class: "hex", tabindex: 0, "aria-label": "frame in hexadecimal" });
  addHex(found, bytes, width < HEX_WIDE ? HEX_LINE / 2 : HEX_LINE, 0, HEX_AT_FIRST);
  return found;
}

/**
 * @param {HTMLElement} found
 * @param {Uint8Array} bytes
 * @param {number} line bytes per line
 * @param {number} from
 * @param {number} to
 */
function addHex(found, bytes, line, from, to) {
  const end = Math.min(to, bytes.length);
  for (let at = from; at < end; at += line)
    found.append(...hexLine(bytes.subarray(at, Math.min(at + line, end)), line, at));
  if (end >= bytes.length) return;
  const more = buttonElement(`show more of ${sizeText(bytes.length)}`, () => {
    more.remove();
    addHex(found, bytes, line, end, end + HEX_AT_A_TIME);
  });
  found.append(more);
}

/**
 * @param {Uint8Array} part
 * @param {number} line bytes of a full line
 * @param {number} offset
 */
function hexLine(part, line, offset) {
  const digits = [...part].map((byte) => byte.toString(16).padStart(2, "0"));
  const halves = `${digits.slice(0, 8).join(" ")}  ${digits.slice(8).join(" ")}`;
  const seen = [...part].map((byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : ".")).join("");
  return [
    el("span", { class: "offset" }, `${offset.toString(16).padStart(8, "0")}  `),
    el("span", { class: "number" }, halves.padEnd(3 * line + 1)),
    el("span", { class: "string" }, ` ${seen}`),
    document.createTextNode("\n"),
  ];
}
