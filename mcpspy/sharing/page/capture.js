/**
 * The capture inside the page: its lines, and the bytes of each frame (docs/capture-format.md).
 *
 * A frame in pieces is joined as in mcpspy's reader. Captures can be damaged: a line that cannot be parsed is skipped
 * and ends the open frames.
 */

import { bytesOfBase64, nextTurn } from "./load.js";

const TURN = 12; // milliseconds of work without a pause
const LARGEST_FRAME = 8 << 20; // bytes of a frame that is decoded
const KEPT_TEXT = 1 << 16; // bytes of a larger frame that a filter searches
const SMALL_CAPTURE = 32 << 20; // bytes of a capture whose texts are kept, so a search need not parse them again

/**
 * A line of a capture, if it is an object.
 * @typedef {Record<string, any>} CaptureRecord
 */

/**
 * An HTTP head from an `open` record.
 * @typedef {{method?: string, target?: string, status?: number, reason?: string, headers?: unknown}} HttpHead
 */

export class Capture {
  /** @param {Uint8Array<ArrayBuffer>} bytes of the whole file */
  constructor(bytes) {
    this.bytes = bytes;
    /** Where each line begins, and finally the end of the file. */
    this.starts = [0];
    /** @type {Map<number, number[]>} the lines of the pieces of a frame, by the last line */
    this.joined = new Map();
    /** @type {Map<number, CaptureRecord>} the `open` records by channel */
    this.channels = new Map();
    /** @type {Map<number, number>} the channel of the response, by that of the request */
    this.answers = new Map();
    /** @type {Map<number, CaptureRecord>} the `release` records by the number of the held frame */
    this.releases = new Map();
    this.decoder = frameDecoder();
    /** @type {Map<number, string>} the texts of frames in one piece, by line */
    this.texts = new Map();
  }

  /**
   * Read all lines once, with pauses; call it before anything else.
   * @param {Set<number>} gaps the lines that mcpspy's reader treats as gaps, even if they are JSON
   */
  async index(gaps) {
    /** @type {Map<number, number[]>} the pieces so far, by channel */
    const open = new Map();
    let turn = performance.now();
    for (let n = 1; this.starts[n - 1] < this.bytes.length; n += 1) {
      const end = this.bytes.indexOf(10, this.starts[n - 1]);
      this.starts.push(end < 0 ? this.bytes.length + 1 : end + 1);
      this.indexRecord(n, gaps.has(n) ? null : this.record(n), open);
      if (performance.now() - turn > TURN) {
        await nextTurn();
        turn = performance.now();
      }
    }
    this.cutFrames(open);
  }

  /**
   * @param {number} n
   * @param {CaptureRecord | null} record
   * @param {Map<number, number[]>} open
   */
  indexRecord(n, record, open) {
    if (record === null || record.kind === "gap" || record.kind === "end") {
      this.cutFrames(open);
    } else if (record.kind === "frame") {
      if (typeof record.raw === "string" && this.bytes.length < SMALL_CAPTURE) this.texts.set(n, record.raw);
      const pieces = open.get(record.ch);
      if (record.more || pieces) {
        const lines = [...(pieces ?? []), n];
        if (record.more) open.set(record.ch, lines);
        else {
          this.joined.set(n, lines);
          open.delete(record.ch);
        }
      }
    } else if (record.kind === "open") {
      this.channels.set(record.ch, record);
      if (record.answers) this.answers.set(record.answers, record.ch);
    } else if (record.kind === "release") {
      this.releases.set(record.held, record);
    } else if (record.kind === "close" && open.has(record.ch)) {
      this.cutFrames(new Map([[record.ch, open.get(record.ch) ?? []]]));
      open.delete(record.ch);
    }
  }

  /** @param {Map<number, number[]>} open */
  cutFrames(open) {
    for (const lines of open.values()) this.joined.set(lines[lines.length - 1], lines);
    open.clear();
  }

  /**
   * The record on line `n`; null if there is none or it cannot be parsed.
   * @param {number} n
   * @returns {CaptureRecord | null}
   */
  record(n) {
    if (n < 1 || n >= this.starts.length) return null;
    try {
      const found = JSON.parse(this.decoder.decode(this.bytes.subarray(this.starts[n - 1], this.starts[n] - 1)));
      return typeof found === "object" ? found : null;
    } catch {
      return null;
    }
  }

  /**
   * The bytes of the frame whose last piece is on line `n`; empty if there is no frame.
   * @param {number} n
   */
  frameBytes(n) {
    const lines = this.joined.get(n);
    if (!lines) return pieceBytes(this.record(n));
    const pieces = lines.map((line) => pieceBytes(this.record(line)));
    const whole = new Uint8Array(pieces.reduce((size, piece) => size + piece.length, 0));
    let at = 0;
    for (const piece of pieces) {
      whole.set(piece, at);
      at += piece.length;
    }
    return whole;
  }

  /**
   * The text of a frame that filters search; only the beginning of a frame that is not decoded.
   * @param {number} n
   * @returns {string}
   */
  frameText(n) {
    if (!this.joined.has(n)) {
      const text = this.texts.get(n) ?? this.record(n)?.raw;
      if (typeof text === "string") return text;
    }
    const bytes = this.frameBytes(n);
    return this.decoder.decode(bytes.length > LARGEST_FRAME ? bytes.subarray(0, KEPT_TEXT) : bytes);
  }

  /**
   * What was forwarded instead of a frame: a text, null for nothing, undefined if it was forwarded unchanged.
   * @param {number} n
   * @returns {string | null | undefined}
   */
  forwardedText(n) {
    const record = this.record(this.joined.get(n)?.[0] ?? n);
    const held = record?.held === undefined ? undefined : this.releases.get(record.held);
    const sent = record?.sent === undefined ? held?.sent : record.sent;
    return sent?.b64 === undefined ? sent : this.decoder.decode(pieceBytes(sent));
  }

  /**
   * The heads of the HTTP request and response that a channel belongs to.
   * @param {number | null} channel
   * @returns {{request: HttpHead | null, response: HttpHead | null}}
   */
  heads(channel) {
    const own = channel === null ? undefined : this.channels.get(channel);
    const request = own?.answers ? this.channels.get(own.answers) : own;
    const response = own?.answers ? own : this.channels.get(this.answers.get(channel ?? 0) ?? 0);
    return { request: request?.head ?? null, response: response?.head ?? null };
  }
}

/** The decoder of a frame: it keeps a byte order mark, so that it is visible. */
export function frameDecoder() {
  return new TextDecoder("utf-8", { ignoreBOM: true });
}

/** @param {CaptureRecord | null} record */
function pieceBytes(record) {
  try {
    if (typeof record?.raw === "string") return new TextEncoder().encode(record.raw);
    return typeof record?.b64 === "string" ? bytesOfBase64(record.b64) : new Uint8Array();
  } catch {
    return new Uint8Array();
  }
}
