/**
 * Text for people: captured text made safe to show, quantities, and elements that contain text.
 *
 * Captured text is hostile. It never becomes markup, because elements get it only as text. Invisible characters
 * (controls, changes of direction, piles of accents) are shown as escapes, as on a terminal (`mcpspy.text`). Joiners stay
 * where they join: letters of scripts that need them, and emoji; they stay invisible where a text is shortened.
 */

// The scripts whose letters change their form beside a joiner (Unicode Standard, 23.2).
const JOINING =
  "\\p{scx=Arab}\\p{scx=Syrc}\\p{scx=Mong}\\p{scx=Nkoo}\\p{scx=Deva}\\p{scx=Beng}\\p{scx=Guru}\\p{scx=Gujr}\\p{scx=Orya}\\p{scx=Taml}\\p{scx=Telu}\\p{scx=Knda}\\p{scx=Mlym}\\p{scx=Sinh}\\p{scx=Khmr}\\p{scx=Mymr}\\p{scx=Tibt}";
const JOINED = [
  `(?<=[${JOINING}])[\\u200c\\u200d](?=[${JOINING}…])`,
  "(?<=\\p{ExtPict}[\\ufe0f\\u{1f3fb}-\\u{1f3ff}]?)\\u200d(?=[\\p{ExtPict}…])",
  "(?<=\\p{ExtPict})\\ufe0f",
  "(?<=[0-9#*])\\ufe0f(?=\\u20e3)",
].join("|");

// Controls, format characters, unpaired surrogates, separators; invisible characters; and marks piled on marks.
const UNSEEN = new RegExp(
  `(?:(?!${JOINED})(?:\\p{Cc}|\\p{Cf}|\\p{Cs}|\\p{Zl}|\\p{Zp}|\\u034f|\\u115f|\\u1160|\\u2800|\\u3164|\\ufe0f|\\uffa0|[\\u{e0000}-\\u{e0fff}]|(?<=[\\p{Mn}\\p{Me}]{4})[\\p{Mn}\\p{Me}]))+`,
  "gu",
);
const PLAIN = /^[\x20-\x7e]*$/;
const NAMED_ESCAPES = new Map([
  ["\n", "\\n"],
  ["\r", "\\r"],
  ["\t", "\\t"],
  ["\x1b", "\\e"],
]);

/**
 * The escapes of invisible characters.
 * @param {string} text
 */
function escapeUnseen(text) {
  let found = "";
  for (const character of text) {
    const code = character.codePointAt(0) ?? 0;
    const [letter, length] = code < 0x100 ? ["x", 2] : code < 0x10000 ? ["u", 4] : ["U", 8];
    found += NAMED_ESCAPES.get(character) ?? `\\${letter}${code.toString(16).padStart(length, "0")}`;
  }
  return found;
}

/**
 * A text with escapes for invisible characters, for attributes.
 * @param {string} text
 */
export function visibleText(text) {
  return PLAIN.test(text) ? text : text.replace(UNSEEN, escapeUnseen);
}

/**
 * A text of at most `limit` characters; a shortened text ends in an ellipsis.
 * @param {string} text
 * @param {number} limit
 */
export function clipText(text, limit) {
  return text.length <= limit ? text : `${text.slice(0, limit - 1).replace(/[\ud800-\udbff]$/, "")}…`;
}

/**
 * Append a text to an element, with escapes in elements of their own. `lines`: keep line ends and tabs.
 * @param {Node} parent
 * @param {string} text
 * @param {boolean} [lines]
 */
export function appendText(parent, text, lines = false) {
  if (PLAIN.test(text)) {
    parent.appendChild(document.createTextNode(text));
    return;
  }
  let at = 0;
  for (const match of text.matchAll(UNSEEN)) {
    if (lines && /^[\n\t]+$/.test(match[0])) continue;
    parent.appendChild(document.createTextNode(text.slice(at, match.index)));
    for (const part of lines ? match[0].split(/([\n\t]+)/) : [match[0]]) {
      if (lines && /^[\n\t]/.test(part)) parent.appendChild(document.createTextNode(part));
      else if (part) parent.appendChild(escapeElement(part));
    }
    at = match.index + match[0].length;
  }
  parent.appendChild(document.createTextNode(text.slice(at)));
}

const SHOWN_AT_A_TIME = 1 << 18; // characters: a browser lays out this many without a delay

/**
 * Append a text: its beginning is shown, and more of it at each press of a button.
 * @param {Node} parent
 * @param {string} text
 * @param {number} first characters that are shown at first
 * @param {boolean} [lines] as for `appendText`
 * @param {number} [from] where the rest of the text begins
 */
export function appendLongText(parent, text, first, lines = false, from = 0) {
  const split = /[\ud800-\udbff]/.test(text[from + first - 1] ?? "") ? 1 : 0; // do not split a surrogate pair
  const end = text.length - from <= first ? text.length : from + first - split;
  appendText(parent, text.slice(from, end), lines);
  if (end === text.length) return;
  const next = Math.min(text.length - end, SHOWN_AT_A_TIME);
  const what = next === text.length - end ? "show all" : `show ${countText(next)} more of`;
  const more = el("span", {}, "… ");
  const press = () => {
    more.remove();
    appendLongText(parent, text, SHOWN_AT_A_TIME, lines, end);
  };
  more.append(buttonElement(`${what} ${countText(text.length)} characters`, press));
  parent.appendChild(more);
}

/** @param {string} part */
function escapeElement(part) {
  const found = document.createElement("span");
  found.className = "escape";
  found.textContent = escapeUnseen(part);
  return found;
}

/**
 * An element. Texts among the children, and the values of attributes, are made visible.
 * @param {string} tag
 * @param {Record<string, string | number | boolean | null | undefined>} [attributes] null, undefined and false: left out
 * @param {...(Node | string | null | undefined | false)} children
 * @returns {HTMLElement}
 */
export function el(tag, attributes = {}, ...children) {
  const found = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) found.setAttribute(name, visibleText(String(value)));
  }
  for (const child of children) {
    if (typeof child === "string") appendText(found, child);
    else if (child) found.appendChild(child);
  }
  return found;
}

/**
 * A button that does something.
 * @param {string} text
 * @param {() => void} press
 * @param {Record<string, string | boolean | null>} [attributes]
 */
export function buttonElement(text, press, attributes = {}) {
  const found = el("button", { type: "button", ...attributes }, text);
  found.addEventListener("click", press);
  return found;
}

const ITEMS = 50; // of a list that are shown at a time

/**
 * Append an element for each item to a list: the first ones, and more of them at each press of a button.
 * @template T
 * @param {HTMLElement} list
 * @param {T[]} items
 * @param {(item: T) => HTMLElement} make
 * @param {number} [from]
 */
export function appendItems(list, items, make, from = 0) {
  list.append(...items.slice(from, from + ITEMS).map(make));
  const rest = items.length - from - ITEMS;
  if (rest <= 0) return;
  const more = el("li", {});
  const press = () => {
    more.remove();
    appendItems(list, items, make, from + ITEMS);
  };
  more.append(buttonElement(`${countText(Math.min(rest, ITEMS))} more of ${countText(rest)}`, press));
  list.append(more);
}

/**
 * A link to a frame of this page.
 * @param {number} n
 * @param {number} [part]
 */
export function frameLink(n, part = 0) {
  const address = part ? `#${n}.${part}` : `#${n}`;
  return el("a", { class: "frame", href: address }, address);
}

/**
 * A link to another site, or a text if the URL is invalid. Nothing is fetched until the user follows it.
 * @param {string} url
 */
export function outsideLink(url) {
  return /^https:\/\//.test(url)
    ? el("a", { href: url, rel: "noreferrer", target: "_blank" }, url)
    : el("span", {}, url);
}

/**
 * An element of the page's template.
 * @param {string} id
 * @returns {HTMLElement}
 */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no #${id}`);
  return found;
}

/**
 * A text of mcpspy with its code words, which are between backticks.
 * @param {string} text
 */
export function proseElement(text) {
  const parts = text.split("`");
  return el("p", {}, ...parts.map((part, at) => (at % 2 ? el("code", {}, part) : part)));
}

/** @param {number} number */
export function countText(number) {
  return number.toLocaleString("en-US");
}

/**
 * `1 frame`, `2 frames`.
 * @param {number} number
 * @param {string} noun
 */
export function pluralText(number, noun) {
  return `${countText(number)} ${noun}${number === 1 ? "" : "s"}`;
}

/**
 * Bytes as people read them, in powers of 1000.
 * @param {number} size
 */
export function sizeText(size) {
  const units = ["B", "kB", "MB", "GB"];
  let power = 0;
  while (size >= 1000 && power < units.length - 1) {
    size /= 1000;
    power += 1;
  }
  return power ? `${size.toFixed(1)} ${units[power]}` : `${Math.round(size)} B`;
}

/**
 * A duration in a suitable unit.
 * @param {number} seconds
 */
export function durationText(seconds) {
  if (seconds < 0.001) return `${Math.round(seconds * 1e6)} µs`;
  if (seconds < 0.99995) return `${(seconds * 1e3).toFixed(1)} ms`;
  if (seconds < 100) return `${seconds.toFixed(2)} s`;
  return seconds < 6000 ? `${countText(Math.round(seconds / 60))} min` : `${countText(Math.round(seconds / 3600))} h`;
}
