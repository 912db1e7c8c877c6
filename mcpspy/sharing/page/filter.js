// The filter language over rows: `method:tools/call status:error latency:>200ms -name:search* "needle"`.
//
// docs/filters.md describes it. It is the language of mcpspy/filters/, with the same meaning and the same errors:
// tests/filters/cases.json contains the results that both must return.
//
//   either = all ("or" all)*
//   all    = one (["and"] one)*
//   one    = ("-" | "not") one | "(" either ")" | term
//   term   = [key ":"] value ("," value)*         a term without a key has one value, its text
//   value  = quoted | word                        a word ends at a space, a bracket, a quote, after a key at a comma

import { moment } from "./amounts.js";
import { closest, quotedText } from "./closest.js";
import { filterKeys } from "./terms.js";

/** @typedef {import("./terms.js").FilterRow} FilterRow */
/** @typedef {import("./terms.js").RowTest} RowTest */

/** What is wrong with a filter; `column` is the position, from 1, in characters. */
export class FilterMistake extends Error {
  /**
   * @param {string} message
   * @param {number} column
   */
  constructor(message, column) {
    super(message);
    this.name = "FilterMistake";
    this.column = column;
  }
}

/**
 * The filter of a text, for a capture that began at `started` (ISO 8601, UTC).
 *
 * `test` takes a row and a function that returns the text of its frame, which is called only if it is needed.
 * `words` are the texts that the filter searches for, to highlight them.
 *
 * @param {string} text
 * @param {string} started
 * @returns {{test: RowTest, words: string[]}}
 * @throws {FilterMistake}
 */
export function compileFilter(text, started) {
  const parser = new FilterParser(text, moment(started));
  return { test: parser.whole(), words: parser.words };
}

const SPACE = "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000"; // as in Python
const ENDS_WORD = `(?=[${SPACE}()"]|$)`;
const NEGATION = new RegExp(`-(?=[^${SPACE}0-9)])|not${ENDS_WORD}`, "iuy"); // a number with a minus is an error code
const AND = new RegExp(`and${ENDS_WORD}`, "iuy");
const OR = new RegExp(`or${ENDS_WORD}`, "iuy");
const KEY = /[A-Za-z]+(?=:)/y;
const QUOTED = /"((?:[^"\\]|\\.)*)"/suy;
const WORD = new RegExp(`[^${SPACE}()"]+`, "uy");
const WORD_OF_KEY = new RegExp(`[^${SPACE}()",]+`, "uy");
const OPEN = /\(/y;
const CLOSE = /\)/y;
const SPACES = new RegExp(`[${SPACE}]*`, "uy");
const DEPTH = 50; // nested brackets and negations

/** Parses from left to right; each method parses what it is named after. */
class FilterParser {
  /**
   * @param {string} text
   * @param {bigint} started
   */
  constructor(text, started) {
    this.text = text;
    this.started = started;
    this.at = 0;
    this.depth = 0;
    this.negations = 0;
    /** @type {string[]} */
    this.words = [];
  }

  /**
   * Parses the whole text; an empty text matches every row.
   * @returns {RowTest}
   */
  whole() {
    this.skipSpaces();
    if (this.at === this.text.length) return () => true;
    const test = this.either();
    if (this.at < this.text.length) throw this.wrong("there is no bracket to close", this.at);
    return test;
  }

  /** @returns {RowTest} */
  either() {
    const parts = [this.all()];
    while (this.take(OR)) parts.push(this.all());
    return (row, rawText) => parts.some((part) => part(row, rawText));
  }

  /** @returns {RowTest} */
  all() {
    const parts = [this.one()];
    while (this.take(AND) || !this.atEnd()) parts.push(this.one());
    return (row, rawText) => parts.every((part) => part(row, rawText));
  }

  /** @returns {RowTest} */
  one() {
    this.depth += 1;
    if (this.depth > DEPTH) {
      throw this.wrong("brackets or negations are nested too deeply", this.at);
    }
    const start = this.at;
    /** @type {RowTest} */
    let found;
    if (this.take(NEGATION)) {
      this.negations += 1;
      const part = this.one();
      this.negations -= 1;
      found = (row, rawText) => !part(row, rawText);
    } else if (this.take(OPEN)) {
      found = this.either();
      if (!this.take(CLOSE)) throw this.wrong("a bracket is not closed", start);
    } else {
      found = this.term();
    }
    this.depth -= 1;
    return found;
  }

  /** @returns {RowTest} */
  term() {
    if (this.atEnd() || this.match(AND)) throw this.wrong("something to look for is missing", this.at);
    const start = this.at;
    const key = this.take(KEY);
    if (key && !(key in filterKeys)) throw this.unknown(key, start);
    this.at += key ? 1 : 0;
    const tests = [this.value(key)];
    while (key && this.text.startsWith(",", this.at)) {
      this.at += 1;
      tests.push(this.value(key));
    }
    return (row, rawText) => tests.some((test) => test(row, rawText));
  }

  /**
   * @param {string} key
   * @returns {RowTest}
   */
  value(key) {
    const start = this.at;
    const quoted = this.match(QUOTED);
    const match = quoted || this.match(key ? WORD_OF_KEY : WORD);
    if (!match) {
      throw this.wrong(this.text.startsWith('"', start) ? "a quote is not closed" : `${key} needs a value`, start);
    }
    this.at += match[0].length;
    const text = quoted ? match[1].replace(/\\(["\\])/g, "$1") : match[0];
    const isText = key === "" || key === "text";
    if (isText && this.negations === 0) this.words.push(text);
    try {
      return filterKeys[key || "text"]({ text, quoted: quoted !== null || isText }, this.started);
    } catch (wrong) {
      if (!(wrong instanceof RangeError)) throw wrong;
      const column = this.column(start);
      const place = `${quotedText(text)} at column ${column}`;
      throw new FilterMistake(`${place} is not a valid ${key}; ${wrong.message}`, column);
    }
  }

  /**
   * The text at this position, if it is the expected one.
   * @param {RegExp} expected
   */
  match(expected) {
    expected.lastIndex = this.at;
    return expected.exec(this.text);
  }

  /**
   * The next token after any spaces, if it is the expected one, else an empty text.
   * @param {RegExp} expected
   */
  take(expected) {
    this.skipSpaces();
    const match = this.match(expected);
    this.at += match ? match[0].length : 0;
    return match ? match[0] : "";
  }

  /** Whether a sequence joined by `and` ends here. */
  atEnd() {
    this.skipSpaces();
    return this.at === this.text.length || this.text[this.at] === ")" || this.match(OR) !== null;
  }

  skipSpaces() {
    this.at += this.match(SPACES)?.[0].length ?? 0;
  }

  /**
   * @param {string} key
   * @param {number} start
   */
  unknown(key, start) {
    const keys = Object.keys(filterKeys);
    const near = closest(key.toLowerCase(), keys);
    const hint = near ? `did you mean '${near}'?` : `there are ${keys.join(", ")}; a text with a colon takes quotes`;
    return this.wrong(`unknown key ${quotedText(key)}`, start, hint);
  }

  /**
   * @param {string} what
   * @param {number} place
   * @param {string} [hint]
   */
  wrong(what, place, hint) {
    const column = this.column(place);
    return new FilterMistake(`${what} at column ${column}${hint ? `; ${hint}` : ""}`, column);
  }

  /**
   * The column of a position, in characters and not in units of UTF-16.
   * @param {number} place
   */
  column(place) {
    return Array.from(this.text.slice(0, place)).length + 1;
  }
}
