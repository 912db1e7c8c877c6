// Shows messages with the page's own content.js: JSON on stdin and stdout, see test_content_js.py.

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const folder = pathToFileURL(`${process.argv[2]}/`);
const { contentLines, READ, stepsOf } = await import(new URL("content.js", folder));
const { nodeText, parseJson, readableJson } = await import(new URL("json.js", folder));
const { mediaFile, mediaOf, mediaText, mediaUrl } = await import(new URL("media.js", folder));
const { messages, media, written } = JSON.parse(readFileSync(0, "utf-8"));

const answers = {
  read: READ,
  messages: messages.map((text) => {
    const root = parseJson(text);
    if (root === null) return null;
    return Array.from(contentLines(root), (line) => [
      line.depth,
      line.label,
      line.text,
      line.kind,
      stepsOf(line.path),
      line.opens,
      line.folded,
      Array.from(nodeText(line.node).slice(0, line.start)).length,
    ]);
  }),
  media: media.map((text) => {
    const found = mediaOf(text);
    if (found === null) return null;
    const { bytes, extension } = mediaFile(found, text);
    return [mediaText(found), found.empty, extension, Buffer.from(bytes).toString("base64"), mediaUrl(found, text)];
  }),
  written: written.map(readableJson),
};
process.stdout.write(JSON.stringify(answers));
