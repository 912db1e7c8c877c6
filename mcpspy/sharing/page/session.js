/** The session that the page shows: the rows of its timeline, and what is computed from them once. */

import { FILTER_NAMES } from "./names.js";

/**
 * @typedef {object} Finding
 * @property {string} rule
 * @property {"error" | "warning" | "info"} severity
 * @property {string} blame
 * @property {number} frame
 * @property {number} part
 * @property {number[]} related
 * @property {string} pointer
 * @property {string} message
 * @property {string | null} revision
 * @property {string} spec
 */

/**
 * A row of the timeline, as docs/json.md describes it.
 * @typedef {object} Row
 * @property {number} n
 * @property {number} part
 * @property {number} t
 * @property {string} time
 * @property {"client" | "server" | "mcpspy"} from
 * @property {number | null} channel
 * @property {string} transport
 * @property {string} kind
 * @property {unknown} id
 * @property {string} [token] the exact text of the id, if JavaScript would write it differently
 * @property {string | null} method
 * @property {string | null} name
 * @property {string | null} revision
 * @property {string | null} session
 * @property {string | null} status
 * @property {string | null} outcome
 * @property {boolean} failed
 * @property {keyof typeof import("./names.js").EXPECTED | null} expected why a failing outcome is normal
 * @property {number | null} request
 * @property {number | null} response
 * @property {number | null} latency
 * @property {number} size
 * @property {string | null} [gate]
 * @property {string | null} [forwarded]
 * @property {number | null} [held]
 * @property {string[]} [extensions]
 * @property {{method: string | null, target: string | null, status: number | null} | null} http
 * @property {{name: string, how: string, lasted: number, idle: number, unanswered: number[]}} [stream]
 * @property {Finding[]} findings
 * @property {string | null} [preview]
 * @property {string | null} [text]
 */

/**
 * @typedef {object} About
 * @property {string} file
 * @property {string} name
 * @property {string} transport
 * @property {string} started
 * @property {string} tool
 * @property {string[] | null} argv
 * @property {string | null} url
 * @property {string} id
 * @property {boolean} live
 * @property {boolean} scrubbed
 * @property {boolean} raw
 * @property {string[]} damage
 * @property {{kind: string, label: string, count: number}[]} replaced
 * @property {string | null} filter
 * @property {string} made
 * @property {string | null} end
 */

/** @typedef {{text: string, certainty: "known" | "likely" | "unknown", rows: number[]}} Cause */

/**
 * What the user lost, with its cause, as docs/json.md describes it.
 * @typedef {object} Problem
 * @property {string} headline
 * @property {string} side
 * @property {Cause} cause
 * @property {Cause[]} further
 * @property {string[]} advice
 * @property {number[]} rows
 */

/** @typedef {{name: string, version: string, revision: string, capabilities: string[], instructions?: number}} Peer */
/** @typedef {{summary: string, explanation: string, fix: string, severity: string, spec: string}} Rule */

/**
 * @typedef {object} Tool
 * @property {string} name
 * @property {number} bytes
 * @property {number} listed
 * @property {number} called
 * @property {number} calls
 * @property {number} errors
 * @property {number} found
 * @property {number | null} p50
 * @property {number | null} p95
 * @property {number | null} max
 */

/** @typedef {{about: About, peers: {client: Peer | null, server: Peer | null}, rows: Row[], problems: Problem[], rules: Record<string, Rule>, tools: Tool[]}} SessionData */

const LINES_OF_CALL = 20; // of stderr
const WITHOUT_END = ["server-exit", "unanswered"]; // outcomes of requests that were open until the session ended

export const SEVERITIES = /** @type {("error" | "warning" | "info")[]} */ (FILTER_NAMES.severities);

export class Session {
  /** @param {SessionData} data */
  constructor(data) {
    this.about = data.about;
    this.peers = data.peers;
    this.rows = data.rows;
    this.problems = data.problems;
    this.rules = data.rules;
    this.tools = data.tools;
    /** @type {Map<string, number>} the indexes of rows by their address */
    this.places = new Map();
    /** @type {Map<number, Map<string, number>>} messages of a batch by kind and id, made on demand */
    this.batches = new Map();
    for (const [place, row] of this.rows.entries()) {
      this.places.set(rowAddress(row), place);
      if (!this.places.has(String(row.n))) this.places.set(String(row.n), place);
    }
  }

  /**
   * The index of a row; undefined if the page has none at that address.
   * @param {string | number} address `17`, or `17.1` for the second message of a batch
   */
  placeOf(address) {
    return this.places.get(String(address));
  }

  /**
   * The index of the response to a request, or of the request that a response answers.
   * @param {number} place
   */
  partnerOf(place) {
    const row = this.rows[place];
    const answer = row.kind !== "request";
    const n = answer ? row.request : row.response;
    if (n === null || n === undefined) return undefined;
    const first = this.placeOf(n);
    const found = this.rows[(first ?? 0) + 1]?.n === n ? this.batch(n, first ?? 0).get(pairKey(row, answer)) : first;
    return (found ?? first) === place ? undefined : (found ?? first);
  }

  /**
   * The indexes of the messages of a batch: the first of each kind and id.
   * @param {number} n
   * @param {number} first index
   */
  batch(n, first) {
    let found = this.batches.get(n);
    if (!found) {
      found = new Map();
      for (let at = first; this.rows[at]?.n === n; at += 1) {
        const key = pairKey(this.rows[at], this.rows[at].kind === "request");
        if (!found.has(key)) found.set(key, at);
      }
      this.batches.set(n, found);
    }
    return found;
  }

  /**
   * The last lines that the server wrote to stderr between a request and its answer, or until the session ended.
   * @param {number} place the index of the answer; of the request if there is none
   */
  stderrOfCall(place) {
    const row = this.rows[place];
    const open = WITHOUT_END.includes(row.outcome ?? "") && row.response === null;
    const first = isAnswer(row) ? this.partnerOf(place) : open ? place : undefined;
    if (first === undefined) return [];
    const during = this.rows.slice(first, isAnswer(row) ? place : undefined);
    return during.filter(({ kind }) => kind === "stderr").slice(-LINES_OF_CALL);
  }

  /** The number of rows of each kind in the session. */
  counts() {
    const frames = new Set();
    const found = {
      frames: 0,
      exchanges: 0,
      failed: 0,
      errors: 0,
      findings: 0,
      error: 0,
      warning: 0,
      info: 0,
      last: 0,
    };
    for (const row of this.rows) {
      if (row.channel !== null && row.kind !== "end-of-stream") frames.add(row.n);
      if (row.kind === "request") {
        found.exchanges += 1;
        found.errors += row.status === "error" || row.status === "tool-error" ? 1 : 0;
      }
      found.failed += row.failed && row.kind !== "result" && row.kind !== "error" ? 1 : 0;
      found.errors += row.kind === "invalid" ? 1 : 0;
      found.findings += row.findings.length;
      for (const finding of row.findings) found[finding.severity] += 1;
      found.last = Math.max(found.last, row.t);
    }
    found.frames = frames.size;
    return found;
  }
}

/** @param {Row} row */
export function rowAddress(row) {
  return row.part ? `${row.n}.${row.part}` : String(row.n);
}

/**
 * The key that finds the other message of an exchange in a batch.
 * @param {Row} row
 * @param {boolean} request whether the other message is the request
 */
function pairKey(row, request) {
  return `${request} ${idText(row)}`;
}

/**
 * The highest severity of a row's findings.
 * @param {Row} row
 */
export function severityOf(row) {
  return SEVERITIES.find((severity) => row.findings.some((finding) => finding.severity === severity));
}

/**
 * The id of a message; empty if it has none.
 * @param {Row} row
 */
export function idText(row) {
  if (row.token !== undefined) return row.token;
  if (row.id === null || row.id === undefined) return "";
  return typeof row.id === "string" ? row.id : JSON.stringify(row.id);
}

/** @param {Row} row */
export function isAnswer({ kind }) {
  return kind === "result" || kind === "error";
}

/**
 * What came of the request of a row; empty if the row has none.
 * @param {Row} row
 */
export function outcomeText(row) {
  return row.outcome ?? row.status ?? "";
}

/**
 * Whether a row looks like an error: its request has failed, or it is an error that answers no request.
 * @param {Row} row
 */
export function isBad(row) {
  return row.failed || (row.outcome === null && row.kind === "error");
}

/**
 * Whether a row shows that its request has failed: its answer does, if it has one, else the request.
 * @param {Row} row
 */
export function showsFailure(row) {
  return row.failed && (row.kind !== "request" || row.response === null);
}

/**
 * The text of a row beside its method: a preview, or the text of a row without a message.
 * @param {Row} row
 */
export function previewText(row) {
  return row.preview ?? row.text ?? "";
}
