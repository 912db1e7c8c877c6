// The keys of the filter language: what their values mean for a row.
//
// Each key parses one value and returns a test of rows, or throws a RangeError that states what is valid.

import { bounds, byteSize, comparison, duration, sinceStart } from "./amounts.js";
import { closest } from "./closest.js";
import { FILTER_NAMES, FORMER_RULES } from "./names.js";

/** The members of a row that filters use; docs/json.md describes all but two. `token` is the exact id text, if it is
 * null or a number that a browser would write differently. `text` is the text of a row without a frame.
 * @typedef {object} FilterRow
 * @property {string | null} method
 * @property {string | null} name
 * @property {unknown} id
 * @property {string} [token]
 * @property {string} from
 * @property {string} kind
 * @property {string | null} status
 * @property {string | null} outcome
 * @property {boolean} failed
 * @property {string | null} revision
 * @property {string | null} session
 * @property {{rule: string, severity: string}[]} findings
 * @property {number | null} latency
 * @property {number} size
 * @property {number} t
 * @property {string | null} [text]
 */

/** @typedef {(row: FilterRow, rawText: () => string) => boolean} RowTest */

/** A value of a term; in quotes it is literal.
 * @typedef {{text: string, quoted: boolean}} FilterValue */

/** @typedef {(value: FilterValue, started: bigint) => RowTest} KeyReader */

const NUMBER = /^-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?$/;
const SHORT_ESCAPES = { n: "\n", t: "\t", r: "\r", b: "\b", f: "\f" };

/** @type {Record<string, KeyReader>} */
export const filterKeys = Object.assign(Object.create(null), {
  method: wholeText((row) => row.method),
  name: wholeText((row) => row.name),
  id: idTest,
  from: oneOf((row) => row.from, FILTER_NAMES.senders),
  kind: oneOf((row) => row.kind, FILTER_NAMES.kinds),
  status: statusTest,
  revision: oneOf((row) => row.revision, FILTER_NAMES.revisions),
  session: wholeText((row) => row.session),
  rule: ruleTest,
  severity: severityTest,
  latency: amount(
    (row) => nanoseconds(row.latency),
    () => duration,
  ),
  size: amount(
    (row) => row.size,
    () => byteSize,
  ),
  time: amount((row) => nanoseconds(row.t), sinceStart),
  text: textTest,
});

/** @type {KeyReader} */
function textTest({ text }) {
  const fold = smartCase(text);
  const wanted = fold(text);
  return (row, rawText) => {
    const found = row.text ?? rawText();
    return fold(found).includes(wanted) || (found.includes("\\") && fold(withoutEscapes(found)).includes(wanted));
  };
}

/**
 * A key whose value is a whole text.
 * @param {(row: FilterRow) => string | null} get
 * @returns {KeyReader}
 */
function wholeText(get) {
  return (value) => {
    const fits = globTest(value);
    return (row) => {
      const found = get(row);
      return found !== null && fits(found);
    };
  };
}

/**
 * A key whose value is one of a few names.
 * @param {(row: FilterRow) => string | null} get
 * @param {string[]} names
 * @returns {KeyReader}
 */
function oneOf(get, names) {
  return (value) => {
    const chosen = new Set(choose(value, names));
    return (row) => chosen.has(get(row) ?? "");
  };
}

/** @type {KeyReader} */
function statusTest(value) {
  const chosen = new Set(choose(value, FILTER_NAMES.statuses));
  if (chosen.has("error")) chosen.add("tool-error");
  return (row) => chosen.has(row.status ?? "") || chosen.has(row.outcome ?? "") || (chosen.has("failed") && row.failed);
}

/**
 * The names that match a value.
 * @param {FilterValue} value
 * @param {string[]} names
 * @param {string[]} [groups]  other names for hints
 */
function choose(value, names, groups = []) {
  const chosen = names.filter(globTest(value));
  if (chosen.length > 0) return chosen;
  const near = closest(value.text.toLowerCase(), [...names, ...groups]);
  const known = groups.length > 0 ? groups : names;
  throw new RangeError(near ? `did you mean '${near}'?` : `there are ${known.join(", ")}`);
}

/** @type {KeyReader} */
function ruleTest(value) {
  const groups = [...new Set(FILTER_NAMES.rules.map((rule) => rule.split("/")[0]))];
  const wanted = groups.includes(value.text) ? { text: `${value.text}/*`, quoted: false } : value;
  const named = choose(wanted, [...FILTER_NAMES.rules, ...Object.keys(FORMER_RULES)], groups);
  const chosen = new Set(named.map((rule) => FORMER_RULES[rule] ?? rule));
  return (row) => row.findings.some((finding) => chosen.has(finding.rule));
}

/** @type {KeyReader} */
function severityTest(value) {
  const [sign, name] = comparison(value.text);
  const worst = FILTER_NAMES.severities; // the first is the worst
  const limits = choose({ text: name, quoted: false }, worst).map((limit) => -worst.indexOf(limit));
  const chosen = new Set(worst.filter((_, place) => limits.some((limit) => compare(sign, -place, limit))));
  return (row) => row.findings.some((finding) => chosen.has(finding.severity));
}

/**
 * @param {string} sign
 * @param {number} a
 * @param {number} b
 */
function compare(sign, a, b) {
  if (a === b) return sign !== ">" && sign !== "<";
  return a > b ? sign.startsWith(">") : sign.startsWith("<");
}

/** @type {KeyReader} */
function idTest(value) {
  if (!value.quoted && value.text === "null") return (row) => row.token === "null";
  if (!value.quoted && NUMBER.test(value.text)) {
    return (row) => (row.token ?? (typeof row.id === "number" ? String(row.id) : "")) === value.text;
  }
  const fits = globTest(value);
  return (row) => typeof row.id === "string" && row.token === undefined && fits(row.id);
}

/**
 * A key whose value is a number.
 * @param {(row: FilterRow) => number | null} get
 * @param {(started: bigint) => import("./amounts.js").AmountReader} reader
 * @returns {KeyReader}
 */
function amount(get, reader) {
  return (value, started) => {
    const allowed = bounds(value.text, reader(started));
    return (row) => {
      const found = get(row);
      if (found === null) return false;
      return allowed.some(([least, most]) => (least === null || least <= found) && (most === null || found <= most));
    };
  };
}

/**
 * Seconds from JSON as whole nanoseconds.
 * @param {number | null} seconds
 */
function nanoseconds(seconds) {
  return seconds === null ? null : Math.round(seconds * 1e9);
}

/**
 * The function that folds texts: lower case, or no change if the text has capitals.
 * @param {string} text
 * @returns {(text: string) => string}
 */
export function smartCase(text) {
  return /\p{Uppercase}/u.test(text) ? (found) => found : folded;
}

/**
 * A text in lower case, except the two letters (kelvin sign, İ) that would become ASCII.
 * @param {string} text
 */
function folded(text) {
  return text.replace(/[^\u0130\u212a]+/g, (run) => run.toLowerCase());
}

/**
 * A text with the escapes of JSON strings decoded (RFC 8259, 7).
 * @param {string} text
 */
function withoutEscapes(text) {
  return text
    .split("\\\\")
    .map((part) =>
      part
        .replace(/\\(["/ntrbf])/g, (_, letter) => SHORT_ESCAPES[/** @type {"n"} */ (letter)] ?? letter)
        .replace(/\\u([0-9a-fA-F]{4})/g, (_, digits) => String.fromCharCode(Number.parseInt(digits, 16))),
    )
    .join("\\");
}

/**
 * A test whether a whole text matches the value; unless quoted, `*` is any text in it and `?` any character.
 * @param {FilterValue} value
 * @returns {(text: string) => boolean}
 */
function globTest({ text, quoted }) {
  const fold = smartCase(text);
  const wanted = fold(text);
  if (quoted || !/[*?]/.test(wanted)) return (found) => fold(found) === wanted;
  const pattern = Array.from(wanted);
  return (found) => fitsGlob(pattern, Array.from(fold(found)));
}

/**
 * Goes back only to the last star, so the time is limited by the product of both lengths.
 * @param {string[]} pattern
 * @param {string[]} text
 */
function fitsGlob(pattern, text) {
  let [at, star, from] = [0, -1, 0];
  for (let place = 0; place < text.length; ) {
    if (pattern[at] === "*") {
      [star, from] = [at, place];
      at += 1;
    } else if (at < pattern.length && (pattern[at] === "?" || pattern[at] === text[place])) {
      at += 1;
      place += 1;
    } else if (star >= 0) {
      from += 1;
      [at, place] = [star + 1, from];
    } else {
      return false;
    }
  }
  return pattern.slice(at).every((letter) => letter === "*");
}
