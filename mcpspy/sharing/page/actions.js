/** Every key of the page and what it does. */

import { turnTheme } from "./header.js";
import { showHelp } from "./keys.js";
import { showsFailure } from "./session.js";
import { VIEW_KEYS } from "./state.js";
import { byId } from "./text.js";
import { SLOW } from "./timeline.js";

const FAR = 1e9; // rows or pixels
const SCROLL_STEP = 40; // pixels

/**
 * The parts of the page on which keys act.
 * @typedef {object} PageParts
 * @property {import("./state.js").State} state
 * @property {import("./views.js").Views} views
 * @property {import("./detail.js").Detail} detail
 * @property {import("./search.js").Search} search
 * @property {(text: string) => void} notice
 */

/** @typedef {import("./keys.js").KeyAction} KeyAction */

/**
 * The keys everywhere except in the message.
 * @param {PageParts} parts
 * @returns {KeyAction[]}
 */
export function pageActions({ state, views, detail, search, notice }) {
  /**
   * @param {number} step
   * @param {string} where
   */
  const match = (step, where) => () => {
    if (!detail.nextPlace(step) && !search.next(step)) notice(`No more matches ${where}.`);
  };
  return [
    ...Object.entries(VIEW_KEYS).map(([view, key]) => ({
      keys: [key],
      text: view,
      where: "views",
      act: () => state.show(view),
    })),
    { keys: ["ArrowUp", "k"], text: "up", where: "moving, in lists and in the message", act: () => views.move(-1) },
    { keys: ["ArrowDown", "j"], text: "down", act: () => views.move(1) },
    { keys: ["PageUp"], text: "page up", act: () => views.move(-1, "page") },
    { keys: ["PageDown", " "], text: "page down", act: () => views.move(1, "page") },
    { keys: ["Home", "g"], text: "first", act: () => views.move(-FAR) },
    { keys: ["End", "G"], text: "last", act: () => views.move(FAR) },
    {
      keys: ["Enter"],
      text: "open: to the message, or to the frame in the timeline",
      act: () => views.open() && detail.focus(),
    },
    { keys: ["/"], text: "filter", where: "searching", act: () => goToFilter(state) },
    { keys: ["n"], text: "next match in the message, then in the next row", act: match(1, "below") },
    { keys: ["N"], text: "previous match", act: match(-1, "above") },
    { keys: ["Escape"], text: "back to the list; again: no filter", act: () => goBack(views, search) },
    ...rowActions(state, notice),
    {
      keys: ["r"],
      text: "content/tree/raw/hex",
      where: "the message, from the list too",
      act: () => detail.turnForm(),
    },
    { keys: ["b"], text: "pair: the request beside its response", act: () => detail.turnPair() },
    { keys: ["y"], text: "copy the message, or the selected value in it", act: () => detail.copy(true) },
    { keys: ["s"], text: "save the frame, or the selected image or sound", act: () => detail.save(true) },
    { keys: ["ArrowRight", "l"], text: "unfold", where: "findings", act: () => views.foldOne(true) },
    { keys: ["ArrowLeft", "h"], text: "fold", act: () => views.foldOne(false) },
    { keys: ["+"], text: "unfold all", act: () => views.fold(true) },
    { keys: ["-"], text: "fold all", act: () => views.fold(false) },
    { keys: ["S"], text: "sort by the next column", where: "tools", act: () => views.sort() },
    { keys: ["d"], text: "dark or light", where: "the page", act: turnTheme },
    { keys: ["?"], text: "help", act: showHelp },
  ];
}

/**
 * The keys that move from row to row.
 * @param {import("./state.js").State} state
 * @param {(text: string) => void} notice
 * @returns {KeyAction[]}
 */
function rowActions(state, notice) {
  /**
   * @param {number} step
   * @param {string} what
   * @param {(row: import("./session.js").Row, place: number) => boolean} fits
   */
  const seek = (step, what, fits) => () => {
    if (!state.seek(step, fits)) notice(`No ${what} ${step > 0 ? "below" : "above"}.`);
  };
  const partner = () => {
    const place = state.place < 0 ? undefined : state.session.partnerOf(state.place);
    if (place === undefined) notice("No other message belongs to this one.");
    else state.select(place);
  };
  const mark = () => {
    if (!state.marked.delete(state.place)) state.marked.add(state.place);
    state.tell("marks");
  };
  const times = () => {
    state.deltas = !state.deltas;
    state.tell("times");
  };
  return [
    { keys: ["p"], text: "request/response", where: "the timeline", act: partner },
    { keys: ["e"], text: "next failure or finding", act: seek(1, "failure or finding", isFailureOrFinding) },
    { keys: ["E"], text: "previous failure or finding", act: seek(-1, "failure or finding", isFailureOrFinding) },
    {
      keys: ["L"],
      text: "next call that took 1 s or more",
      act: seek(1, "slow call", (row) => row.kind !== "request" && (row.latency ?? 0) >= SLOW),
    },
    { keys: ["m"], text: "mark or unmark", act: mark },
    { keys: ["'"], text: "next marked frame", act: seek(1, "marked frame", (_, place) => state.marked.has(place)) },
    { keys: ["t"], text: "time: since the start, or since the row above", act: times },
  ];
}

/** @param {import("./session.js").Row} row */
function isFailureOrFinding(row) {
  return showsFailure(row) || row.findings.length > 0;
}

/**
 * The keys in a message that is shown as lines that fold.
 * @param {import("./detail.js").Detail} detail
 * @returns {KeyAction[]}
 */
export function treeActions(detail) {
  /** @param {(lines: import("./tree.js").JsonTree | import("./reader.js").Reader) => void} what */
  const on = (what) => () => {
    const lines = detail.focusedLines();
    if (lines) what(lines);
  };
  return [
    { keys: ["ArrowUp", "k"], text: "up", act: on((lines) => lines.move(-1)) },
    { keys: ["ArrowDown", "j"], text: "down", act: on((lines) => lines.move(1)) },
    { keys: ["PageUp"], text: "page up", act: on((lines) => lines.move(-20)) },
    { keys: ["PageDown"], text: "page down", act: on((lines) => lines.move(20)) },
    { keys: ["Home", "g"], text: "first", act: on((lines) => lines.move(-FAR)) },
    { keys: ["End", "G"], text: "last", act: on((lines) => lines.move(FAR)) },
    {
      keys: ["ArrowLeft", "h"],
      text: "fold",
      where: "in the message",
      act: on((lines) => lines.close()),
    },
    { keys: ["ArrowRight", "l"], text: "unfold", act: on((lines) => lines.open()) },
    { keys: ["Enter", " "], text: "fold/unfold", act: on((lines) => lines.turn()) },
    { keys: ["-"], text: "fold all", act: on((lines) => lines.foldAll()) },
    { keys: ["+"], text: "unfold all", act: on((lines) => lines.unfoldAll()) },
    { keys: ["z"], text: "fold all/unfold all", act: on((lines) => lines.turnAll()) },
  ];
}

/**
 * The keys in a message that is shown as text or bytes; other keys scroll by themselves.
 * @param {import("./detail.js").Detail} detail
 * @returns {KeyAction[]}
 */
export function textActions(detail) {
  return [
    { keys: ["k"], text: "up", act: () => detail.scroll(-SCROLL_STEP) },
    { keys: ["j"], text: "down", act: () => detail.scroll(SCROLL_STEP) },
    { keys: ["g"], text: "first", act: () => detail.scroll(-FAR) },
    { keys: ["G"], text: "last", act: () => detail.scroll(FAR) },
  ];
}

/**
 * Focus the filter box, in the view that has it.
 * @param {import("./state.js").State} state
 */
function goToFilter(state) {
  if (!["timeline", "sequence"].includes(state.view)) state.show("timeline");
  byId("filter").focus();
}

/**
 * Leave the box or the message; if neither has the focus, clear the filter.
 * @param {import("./views.js").Views} views
 * @param {import("./search.js").Search} search
 */
function goBack(views, search) {
  const inside = document.activeElement?.closest("#detail, #search");
  if (!inside && search.box.value) search.set("");
  views.focus();
}
