/** The head of the page: the session, its contents, what was replaced, and notices for the reader. */

import { saveBytes } from "./load.js";
import { ARROWS } from "./names.js";
import { byId, clipText, countText, durationText, el, pluralText } from "./text.js";

const LONGEST_WORD = 300; // characters
const LONGEST_NAME = 50; // characters
const LONG_FACT = 40; // characters that need a line of their own

/** @param {import("./session.js").Session} session */
export function showHeader(session) {
  const { about } = session;
  const counts = session.counts();
  document.title = clipText(`${about.name} · mcpspy`, 200);
  byId("name").replaceChildren(el("span", {}, clipText(about.name, LONGEST_NAME)));
  byId("counts").replaceChildren(...countElements(counts, about));
  byId("gist").replaceChildren(el("span", {}, gistText(session, counts.last)));
  byId("facts").replaceChildren(...factPairs(session, counts.last));
  byId("notices").replaceChildren(...noticeElements(about));
  byId("replaced").replaceChildren(...replacedElements(about));
  byId("made").textContent = `made by ${about.made}`;
  for (const [view, count] of /** @type {const} */ ([
    ["problems", session.problems.length],
    ["findings", counts.findings],
    ["tools", session.tools.length],
  ])) {
    byId(`tab-${view}`).append(" ", el("span", { class: "badge" }, countText(count)));
  }
}

/**
 * @param {ReturnType<import("./session.js").Session["counts"]>} counts
 * @param {import("./session.js").About} about
 */
function countElements(counts, about) {
  const parts = [
    about.transport,
    about.live ? "live" : "ended",
    pluralText(counts.frames, "frame"),
    pluralText(counts.exchanges, "exchange"),
    el("span", { class: counts.failed ? "error" : "" }, `${countText(counts.failed)} failed`),
    el("span", { class: counts.errors ? "error" : "" }, pluralText(counts.errors, "error")),
    el(
      "span",
      { class: counts.error ? "error" : counts.warning ? "warning" : "" },
      pluralText(counts.findings, "finding"),
    ),
  ];
  return parts.flatMap((part, at) => [el("span", { class: at ? null : "first" }, " · "), part]);
}

/**
 * The two peers, the revision, the start and the duration.
 * @param {import("./session.js").Session} session
 * @param {number} last seconds from the start to the last row
 */
function gistText({ about, peers }, last) {
  const sides = `${peerText(peers.client)} ${ARROWS.client} ${peerText(peers.server)}`;
  return [sides, revisionText(peers), startText(about), durationText(last)].filter(Boolean).join(" · ");
}

/** @param {import("./session.js").Session["peers"]} peers */
function revisionText({ client, server }) {
  const told = [client?.revision, server?.revision].filter(Boolean);
  return [...new Set(told)].join(", ");
}

/**
 * The start in local time, with its time zone.
 * @param {import("./session.js").About} about
 */
function startText(about) {
  const started = new Date(about.started);
  const ahead = -started.getTimezoneOffset();
  const local = new Date(started.getTime() + ahead * 60_000).toISOString();
  const offset = `${ahead < 0 ? "-" : "+"}${new Date(Math.abs(ahead) * 60_000).toISOString().slice(11, 16)}`;
  return `${local.slice(0, 10)} ${local.slice(11, 19)} ${ahead ? offset : "UTC"}`;
}

/**
 * The facts about a session.
 * @param {import("./session.js").Session} session
 * @param {number} last seconds from the start to the last row
 */
function factPairs({ about, peers }, last) {
  /** @type {[string, string | null][]} */
  const facts = [
    ["client", peerText(peers.client)],
    ["server", peerText(peers.server)],
    ["revision", revisionText(peers)],
    ["started", startText(about)],
    ["duration", durationText(last)],
    ["end", about.end],
    [about.url ? "url" : "command", about.url ?? (about.argv ?? []).join(" ")],
    ["recorded by", about.tool],
    ["client offers", peers.client?.capabilities.join(", ") ?? null],
    ["server offers", peers.server?.capabilities.join(", ") ?? null],
  ];
  return facts
    .filter(([, value]) => value)
    .map(([name, value]) =>
      el(
        "div",
        { class: (value ?? "").length > LONG_FACT ? "fact long" : "fact" },
        el("dt", {}, name),
        el("dd", {}, clipText(value ?? "", LONGEST_WORD)),
      ),
    );
}

/** @param {import("./session.js").Peer | null} peer */
function peerText(peer) {
  if (!peer) return "unknown";
  return [clipText(peer.name || "no name", LONGEST_NAME), clipText(peer.version, LONGEST_NAME)]
    .filter(Boolean)
    .join(" ");
}

/**
 * The notices for the reader.
 * @param {import("./session.js").About} about
 */
function noticeElements(about) {
  const found = [];
  if (about.raw) {
    const text =
      " This page holds everything as it was recorded: it may contain secrets and personal data. Do not publish it.";
    found.push(el("p", { class: "notice loud", role: "alert" }, el("b", {}, "Nothing was scrubbed (--raw)."), text));
  }
  if (about.live)
    found.push(
      el("p", { class: "notice" }, "The session was still running when this page was made: later frames are missing."),
    );
  if (about.filter)
    found.push(
      el(
        "p",
        { class: "notice" },
        "Only the rows of the filter ",
        el("code", {}, clipText(about.filter, LONGEST_WORD)),
        " are in this page.",
      ),
    );
  const [first, ...others] = about.damage.map((text) => clipText(text, LONGEST_WORD));
  if (others.length) {
    const list = el("ul", {}, ...[first, ...others].map((text) => el("li", {}, text)));
    const summary = el("summary", {}, "The capture is damaged or incomplete; the rest is shown.");
    found.push(el("details", { class: "notice" }, summary, list));
  } else if (first) {
    found.push(el("p", { class: "notice" }, `The capture is damaged or incomplete; the rest is shown: ${first}`));
  }
  return found;
}

/**
 * What the scrub replaced.
 * @param {import("./session.js").About} about
 */
function replacedElements(about) {
  if (about.raw) return [];
  if (!about.replaced.length) return [el("p", {}, about.scrubbed ? "Scrubbed: nothing had to be replaced." : "")];
  const total = about.replaced.reduce((sum, { count }) => sum + count, 0);
  const head = el("tr", {}, ...["kind", "shown as", "places"].map((title) => el("th", { scope: "col" }, title)));
  const rows = about.replaced.map(({ kind, label, count }) =>
    el("tr", {}, el("td", {}, kind), el("td", {}, el("code", {}, label)), el("td", {}, countText(count))),
  );
  const summary = el(
    "summary",
    {},
    `Scrubbed: ${pluralText(about.replaced.length, "value")} replaced in ${pluralText(total, "place")}`,
  );
  return [el("details", {}, summary, el("table", {}, el("thead", {}, head), el("tbody", {}, ...rows)))];
}

/**
 * Offer the capture for saving as soon as it is unpacked.
 * @param {import("./session.js").About} about
 * @param {Promise<import("./capture.js").Capture>} capture
 */
export function offerCapture(about, capture) {
  const button = /** @type {HTMLButtonElement} */ (byId("save-capture"));
  capture.then(
    ({ bytes }) => {
      button.disabled = false;
      button.addEventListener("click", () => saveBytes(bytes, about.file));
    },
    () => {
      button.title = "the capture in this page is damaged";
    },
  );
}

/** Switch between the system's colours and the other ones. */
export function turnTheme() {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const { dataset } = document.documentElement;
  dataset.theme = (dataset.theme ?? (dark ? "dark" : "light")) === "dark" ? "light" : "dark";
}
