/** The start of the page: it unpacks the session, shows it, and then unpacks the capture with the messages. */

import { pageActions, textActions, treeActions } from "./actions.js";
import { Capture } from "./capture.js";
import { Detail } from "./detail.js";
import { offerCapture, showHeader, turnTheme } from "./header.js";
import { answerKeys, hideHelp, showHelp, writeHelp } from "./keys.js";
import { canUnpack, nextTurn, unpackElement } from "./load.js";
import { preparePrint } from "./print.js";
import { Search } from "./search.js";
import { Session } from "./session.js";
import { makeSplitter } from "./split.js";
import { State } from "./state.js";
import { byId } from "./text.js";
import { Views } from "./views.js";
import { markWords } from "./words.js";

const NOTICE_TIME = 4000; // milliseconds

async function startPage() {
  if (!canUnpack()) {
    refuse(
      "This browser is too old to unpack this page. Open it in Chrome or Edge 105, Firefox 121, Safari 16.4, or a newer one.",
    );
    return;
  }
  let session;
  try {
    session = new Session(JSON.parse(new TextDecoder().decode(await unpackElement(byId("session")))));
  } catch {
    refuse("This page is damaged: the session in it cannot be read. Ask for the file again.");
    return;
  }
  const capture = loadCapture(session);
  const state = new State(session);
  showHeader(session);
  offerCapture(session.about, capture);
  const views = new Views(state);
  const detail = new Detail(state, capture, showNotice);
  const search = new Search(state, capture);
  const parts = { state, views, detail, search, notice: showNotice };
  const general = pageActions(parts);
  const inTree = treeActions(detail);
  const inText = textActions(detail);
  answerKeys(() => {
    if (detail.focusedText()) return [inText, general];
    return detail.focusedLines() ? [inTree, general] : [general];
  });
  writeHelp([
    ...general,
    ...inTree.filter(({ keys }) => !["k", "j", "g", "G", "PageUp", "PageDown"].some((key) => keys.includes(key))),
  ]);
  byId("theme").addEventListener("click", turnTheme);
  byId("help-button").addEventListener("click", showHelp);
  byId("help-close").addEventListener("click", hideHelp);
  markWords(state, byId("cards"));
  makeSplitter();
  preparePrint(state);
  addEventListener("hashchange", () => state.follow());
  search.box.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== "ArrowDown") return;
    event.preventDefault();
    views.focus();
  });
  byId("loading").hidden = true;
  document.body.dataset.ready = "rows";
  views.show();
  await capture.catch(() => null);
  document.body.dataset.ready = "all";
}

/**
 * Unpack the capture after the first rows are drawn.
 * @param {Session} session
 */
async function loadCapture(session) {
  await nextTurn();
  const capture = new Capture(await unpackElement(byId("capture")));
  await capture.index(new Set(session.rows.filter(({ kind }) => kind === "gap").map(({ n }) => n)));
  return capture;
}

/**
 * Show why nothing can be shown.
 * @param {string} why
 */
function refuse(why) {
  byId("loading").textContent = why;
  byId("loading").classList.add("error");
}

let noticeTimer = 0;

/**
 * Show the user a text for a while.
 * @param {string} text
 */
function showNotice(text) {
  clearTimeout(noticeTimer);
  byId("notice").textContent = text;
  noticeTimer = setTimeout(() => {
    byId("notice").textContent = "";
  }, NOTICE_TIME);
}

startPage();
