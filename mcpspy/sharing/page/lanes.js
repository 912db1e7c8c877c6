/**
 * Which exchanges are open at each row, for the sequence diagram.
 *
 * A request opens a bracket on the side that has to answer, and its response closes it. Each bracket uses a lane of its
 * own, the innermost free one; if all lanes are in use, it is not drawn.
 */

export const LANES = 8; // brackets that are drawn on each side at once

/**
 * The brackets that are open around a row, a bit for each lane: before it and after it.
 * @typedef {{before: Uint8Array, after: Uint8Array}} Brackets
 */

/**
 * The brackets of all rows: on the right those of the client's requests, on the left those of the server's.
 * @param {import("./session.js").Session} session
 * @returns {{left: Brackets, right: Brackets}}
 */
export function bracketsOf(session) {
  const size = session.rows.length;
  const empty = () => ({ before: new Uint8Array(size), after: new Uint8Array(size) });
  const found = { left: empty(), right: empty() };
  const open = { left: 0, right: 0 };
  /** @type {Map<number, {side: "left" | "right", bit: number}>} by the index of the response */
  const ends = new Map();
  for (const [place, row] of session.rows.entries()) {
    for (const side of /** @type {const} */ (["left", "right"])) found[side].before[place] = open[side];
    const end = ends.get(place);
    if (end) open[end.side] &= ~end.bit;
    const answer = row.kind === "request" ? session.partnerOf(place) : undefined;
    if (answer !== undefined && answer > place && !ends.has(answer)) {
      const side = row.from === "server" ? "left" : "right";
      const bit = ~open[side] & (open[side] + 1) & ((1 << LANES) - 1); // the lowest free bit
      open[side] |= bit;
      if (bit) ends.set(answer, { side, bit });
    }
    for (const side of /** @type {const} */ (["left", "right"])) found[side].after[place] = open[side];
  }
  return found;
}
