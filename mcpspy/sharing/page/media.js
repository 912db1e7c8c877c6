/**
 * What an image, a sound or a document is, told by its bytes, as `mcpspy.reading.media` tells it.
 *
 * `mimeType` is what the sender says; it is never believed here. Bytes are strings of characters up to U+00FF, because
 * `atob` returns them so.
 */

import { sizeText, visibleText } from "./text.js";

/**
 * @typedef {object} MediaFile
 * @property {string} form the name for people, such as PNG; empty if the bytes are of no known form
 * @property {string[]} types the media types of the form, the registered one first
 * @property {number} size in bytes
 * @property {string} detail dimensions or length
 * @property {number} pixels of a picture; 0 if they are not known
 * @property {boolean} empty whether it has no pixels or no samples
 */

const HEAD = 256 << 10; // characters of base64 that are decoded to find dimensions
const LONGEST_TYPE = 60; // characters of a `mimeType`
const FORM_HEAD = 512; // characters that show the form
const BASE64 = /^[\w+/\-\s]*(?:={1,2}\s*)?$/; // one way to match blanks: else the time is quadratic
const DATA_URL = /^data:([\w.+-]+\/[\w.+-]+)?(?:;[\w.+-]+=[^;,]*)*;base64,/i;

/** @type {[form: string, types: string, pattern: RegExp][]} as in `mcpspy.wire.media_bytes` */
const MEDIA_FORMS = [
  ["PNG", "image/png image/apng image/x-png", /^\x89PNG\r\n\x1a\n/],
  ["JPEG", "image/jpeg image/pjpeg", /^\xff\xd8\xff/],
  ["GIF", "image/gif", /^GIF8[79]a/],
  ["WebP", "image/webp", /^RIFF.{4}WEBP/s],
  ["AVIF", "image/avif image/avif-sequence", /^.{4}ftypavi[fs]/s],
  ["HEIF", "image/heic image/heif image/heif-sequence", /^.{4}ftyp(?:hei[cxs]|hevc|m[is]f1)/s],
  ["TIFF", "image/tiff", /^(?:II\*\0|MM\0\*)/],
  ["BMP", "image/bmp image/x-bmp image/x-ms-bmp", /^BM.{4}\0{4}/s],
  ["ICO", "image/vnd.microsoft.icon image/x-icon", /^\0\0\x01\0[\x01-\x20]\0/],
  ["HTML", "text/html", /^(?:[ \t\n\r\f\v]*<!doctype html|[ \t\n\r\f\v]*<html[ \t\n\r\f\v>])/i],
  ["SVG", "image/svg+xml", /^(?=[ \t\n\r\f\v\xef\xbb\xbf]*<)[^\0]*?<svg[ \t\n\r\f\v>]/],
  ["PDF", "application/pdf", /^%PDF-/],
  ["WAV", "audio/wav audio/wave audio/x-wav audio/vnd.wave", /^RIFF.{4}WAVE/s],
  ["MP3", "audio/mpeg audio/mp3 audio/mpeg3 audio/x-mp3 audio/x-mpeg", /^(?:ID3|\xff[\xf2\xf3\xfa\xfb])/],
  ["Ogg", "audio/ogg audio/opus audio/vorbis audio/x-ogg application/ogg video/ogg", /^OggS/],
  ["FLAC", "audio/flac audio/x-flac", /^fLaC/],
  ["MP4", "audio/mp4 audio/m4a audio/x-m4a audio/aac video/mp4", /^.{4}ftyp(?:M4[ABV]|mp4|iso|dash|avc1)/s],
  ["WebM", "audio/webm audio/x-matroska video/webm video/x-matroska", /^\x1aE\xdf\xa3/],
  ["AAC", "audio/aac audio/aacp audio/x-aac", /^\xff[\xf0\xf1\xf8\xf9]/],
  ["AIFF", "audio/aiff audio/x-aiff", /^FORM.{4}AIF[FC]/s],
];

/** @type {Record<string, string>} */
const EXTENSIONS = {
  PNG: "png",
  JPEG: "jpg",
  GIF: "gif",
  WebP: "webp",
  WAV: "wav",
  MP3: "mp3",
  SVG: "svg",
  PDF: "pdf",
  AVIF: "avif",
  HEIF: "heic",
  TIFF: "tiff",
  BMP: "bmp",
  ICO: "ico",
  Ogg: "ogg",
  FLAC: "flac",
  MP4: "mp4",
  WebM: "webm",
  AAC: "aac",
  AIFF: "aiff",
};

/** The forms that a browser shows as pictures, and those that it plays. SVG is not among them: it contains code. */
export const PICTURES = ["PNG", "JPEG", "GIF", "WebP", "AVIF", "BMP"];
export const SOUNDS = ["WAV", "MP3", "Ogg", "FLAC", "MP4", "WebM", "AAC"];

/**
 * What a base64 text or a `data:` URL holds; null if it is neither.
 * @param {string} text
 * @returns {MediaFile | null}
 */
export function mediaOf(text) {
  const data = text.slice(DATA_URL.exec(text.slice(0, FORM_HEAD))?.[0].length ?? 0);
  if (!data || !BASE64.test(data.slice(0, HEAD))) return null;
  const head = decodedLetters(data.slice(0, HEAD));
  if (!head) return null;
  const size = Math.floor((lettersIn(data) * 3) / 4);
  const [form, types] = formOf(data) ?? ["", ""];
  const dimensions = DIMENSIONS[form]?.(head) ?? null;
  const known = dimensions?.every((length) => !Number.isNaN(Number(length))) ? dimensions : null;
  const detail = known ? `${known[0]} × ${known[1]}` : lengthOf(form, head, size);
  const pixels = known ? Number(known[0]) * Number(known[1]) : 0;
  const empty = known ? pixels === 0 : form === "WAV" && !hasSamples(head, size);
  return { form, types: types ? types.split(" ") : [], size, detail, pixels, empty };
}

/**
 * What it is, such as `PNG 1280 × 720, 84.2 kB`.
 * @param {MediaFile} media
 */
export function mediaText({ form, detail, size }) {
  return `${form || "bytes"}${detail ? ` ${detail}` : ""}, ${sizeText(size)}`;
}

/**
 * What to tell if a `mimeType` is not that of the bytes, or the form of these is not known; else empty.
 * @param {MediaFile} media
 * @param {string | null} said
 */
export function disagreementText(media, said) {
  if (!said || media.types.includes(said.split(";")[0].trim().toLowerCase())) return "";
  const shown = Array.from(visibleText(said)); // characters, not surrogates
  return `mimeType says ${shown.length > LONGEST_TYPE ? `${shown.slice(0, LONGEST_TYPE - 1).join("")}…` : shown.join("")}`;
}

/**
 * The bytes of a base64 text or a `data:` URL as a URL of their own type; only for pictures and sounds.
 * @param {MediaFile} media
 * @param {string} text
 */
export function mediaUrl({ types }, text) {
  return `data:${types[0]};base64,${base64Of(text)}`;
}

/**
 * The bytes of a base64 text or a `data:` URL, as a file.
 * @param {MediaFile} media
 * @param {string} text
 * @returns {{bytes: Uint8Array<ArrayBuffer>, extension: string}}
 */
export function mediaFile({ form }, text) {
  const letters = decodedLetters(base64Of(text));
  const bytes = new Uint8Array(letters.length);
  for (let at = 0; at < letters.length; at += 1) bytes[at] = letters.charCodeAt(at);
  return { bytes, extension: EXTENSIONS[form] ?? "bin" };
}

/**
 * The letters of a base64 text or a `data:` URL in the common alphabet, without white space and padding.
 * @param {string} text
 */
function base64Of(text) {
  return text
    .slice(DATA_URL.exec(text.slice(0, FORM_HEAD))?.[0].length ?? 0)
    .replaceAll("-", "+")
    .replaceAll("_", "/")
    .replace(/[^A-Za-z0-9+/]+/g, "");
}

/**
 * The bytes of a base64 text, with or without padding.
 * @param {string} data
 */
function decodedLetters(data) {
  const letters = base64Of(data);
  return atob(letters.length % 4 === 1 ? letters.slice(0, -1) : letters); // one letter alone has no whole byte
}

/**
 * The letters in a base64 text, without white space and padding; they are counted without a copy of megabytes.
 * @param {string} data
 */
function lettersIn(data) {
  let found = data.length - (data.slice(-4).split("=").length - 1);
  for (const space of ["\n", "\r", " "])
    for (let at = data.indexOf(space); at >= 0; at = data.indexOf(space, at + 1)) found -= 1;
  return found;
}

/** @param {string} data in base64 */
function formOf(data) {
  const head = base64Of(data.slice(0, FORM_HEAD));
  if (data.length <= FORM_HEAD && head.length % 4 === 1) return undefined; // damaged
  const bytes = atob(head.slice(0, head.length - (data.length > FORM_HEAD ? head.length % 4 : 0)));
  return MEDIA_FORMS.find(([, , pattern]) => pattern.test(bytes));
}

/**
 * An unsigned number in some bytes; NaN behind the end.
 * @param {string} bytes
 * @param {number} at
 * @param {number} length
 * @param {boolean} [little] the lowest byte first
 */
function numberAt(bytes, at, length, little = false) {
  let found = 0;
  for (let place = 0; place < length; place += 1)
    found = found * 256 + bytes.charCodeAt(little ? at + length - 1 - place : at + place);
  return found;
}

/**
 * The height in a BMP, which is negative if the first line is the upper one.
 * @param {number} number
 */
function heightOf(number) {
  return number < 2 ** 31 ? number : 2 ** 32 - number;
}

/** @type {Record<string, (head: string) => (number | string)[] | null>} width and height */
const DIMENSIONS = {
  PNG: (head) => [numberAt(head, 16, 4), numberAt(head, 20, 4)],
  GIF: (head) => [numberAt(head, 6, 2, true), numberAt(head, 8, 2, true)],
  BMP: (head) => [numberAt(head, 18, 4, true), heightOf(numberAt(head, 22, 4, true))],
  AVIF: (head) => {
    const at = head.indexOf("ispe"); // the box with the size of the picture
    return at < 0 ? null : [numberAt(head, at + 8, 4), numberAt(head, at + 12, 4)];
  },
  JPEG: jpegDimensions,
  WebP: webpDimensions,
  SVG: svgDimensions,
};

const NO_FRAME = [0xc4, 0xc8, 0xcc]; // markers of JPEG in the range of those that begin a frame

/**
 * Find the segment that begins the frame, going from segment to segment.
 * @param {string} head
 */
function jpegDimensions(head) {
  for (let at = 2; at + 9 <= head.length; ) {
    if (head.charCodeAt(at) !== 0xff) return null;
    const marker = head.charCodeAt(at + 1);
    if (marker >= 0xc0 && marker <= 0xcf && !NO_FRAME.includes(marker))
      return [numberAt(head, at + 7, 2), numberAt(head, at + 5, 2)];
    at += marker === 0xff ? 1 : 2 + numberAt(head, at + 2, 2); // 0xff is padding
  }
  return null;
}

/** @param {string} head */
function webpDimensions(head) {
  const kind = head.slice(12, 16);
  if (kind === "VP8X") return [1 + numberAt(head, 24, 3, true), 1 + numberAt(head, 27, 3, true)];
  if (kind === "VP8 ") return [numberAt(head, 26, 2, true) % 0x4000, numberAt(head, 28, 2, true) % 0x4000];
  if (kind !== "VP8L") return null;
  const bits = numberAt(head, 21, 4, true);
  return [1 + (bits % 0x4000), 1 + (Math.floor(bits / 0x4000) % 0x4000)];
}

const SVG_TAG = /<svg[ \t\n\r\f\v>][^>]*>?/i;
const SVG_SIZES = ["width", "height"].map(
  (name) => new RegExp(`[ \\t\\n\\r\\f\\v"']${name}\\s*=\\s*["']\\s*(\\d+(?:\\.\\d+)?)(?:px)?\\s*["']`),
);
const SVG_BOX = /\sviewBox\s*=\s*["']\s*[^\s,"']+[\s,]+[^\s,"']+[\s,]+(\d+(?:\.\d+)?)[\s,]+(\d+(?:\.\d+)?)\s*["']/;

/** @param {string} head */
function svgDimensions(head) {
  const tag = SVG_TAG.exec(head)?.[0] ?? "";
  const [width, height] = SVG_SIZES.map((pattern) => pattern.exec(tag)?.[1]);
  if (width && height) return [width, height];
  return SVG_BOX.exec(tag)?.slice(1) ?? null;
}

/**
 * The length of a sound, or the version of a document; empty if its head does not show it.
 * @param {string} form
 * @param {string} head
 * @param {number} size
 */
function lengthOf(form, head, size) {
  if (form === "WAV") return waveLength(head);
  if (form === "MP3") return mpegLength(head, size);
  return form === "PDF" ? (/^%PDF-(\d\.\d)/.exec(head)?.[1] ?? "") : "";
}

/**
 * The length of a sound in RIFF WAVE.
 * @param {string} head
 */
function waveLength(head) {
  let rate = 0;
  for (const { name, at, length } of waveChunks(head)) {
    if (name === "fmt ") rate = numberAt(head, at + 8, 4, true);
    else if (name === "data") return rate ? secondsText(length / rate) : "";
  }
  return "";
}

/**
 * Whether a sound in RIFF WAVE has samples; it may have them if its head does not show it.
 * @param {string} head
 * @param {number} size
 */
function hasSamples(head, size) {
  let end = 12;
  for (const { name, at, length } of waveChunks(head)) {
    if (name === "data") return length > 0 && at < size;
    end = at + length + (length % 2);
  }
  return end < size;
}

/**
 * The chunks of RIFF WAVE, with the positions of their contents.
 * @param {string} head
 */
function* waveChunks(head) {
  for (let at = 12; at + 8 <= head.length; ) {
    const length = numberAt(head, at + 4, 4, true);
    yield { name: head.slice(at, at + 4), at: at + 8, length };
    at += 8 + length + (length % 2);
  }
}

/** @type {Record<string, number[]>} kbit/s, by the bits of version and layer; other versions are not estimated */
const KBITS = {
  33: [0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448],
  32: [0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384],
  31: [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
};

/**
 * The length of a sound in MPEG-1 audio, estimated by the bit rate of its first frame.
 * @param {string} head
 * @param {number} size
 */
function mpegLength(head, size) {
  let at = 0;
  if (head.startsWith("ID3")) {
    at = 10;
    for (let place = 0; place < 4; place += 1) at += (head.charCodeAt(6 + place) & 0x7f) << (7 * (3 - place));
  }
  const [sync, second, third] = [0, 1, 2].map((place) => head.charCodeAt(at + place));
  if (sync !== 0xff || !(second >= 0xe0)) return "";
  const rate = KBITS[`${(second >> 3) & 3}${(second >> 1) & 3}`]?.[third >> 4] ?? 0;
  return rate ? `about ${secondsText(((size - at) * 8) / 1000 / rate)}` : "";
}

/** @param {number} seconds */
function secondsText(seconds) {
  if (seconds < 0.001) return `${(seconds * 1e6).toFixed(0)} µs`;
  return seconds < 1 ? `${(seconds * 1e3).toFixed(1)} ms` : `${seconds.toFixed(2)} s`;
}
