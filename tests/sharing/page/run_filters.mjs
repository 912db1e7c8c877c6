// Answers filters with the page's own filter.js: JSON on stdin and stdout, see test_filter_js.py.

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const { compileFilter, FilterMistake } = await import(pathToFileURL(process.argv[2]));
const { sessions, questions } = JSON.parse(readFileSync(0, "utf-8"));

const answers = questions.map(([name, filter]) => {
  const { started, rows, texts } = sessions[name];
  try {
    const { test, words } = compileFilter(filter, started);
    return { rows: rows.flatMap((row, place) => (test(row, () => texts[place]) ? [place] : [])), words };
  } catch (mistake) {
    if (!(mistake instanceof FilterMistake)) return { bug: String(mistake.stack) };
    return { error: mistake.message, column: mistake.column };
  }
});
process.stdout.write(JSON.stringify(answers));
