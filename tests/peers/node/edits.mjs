// A client of the TypeScript SDK that does what edits.py does, and prints the same: `edits.mjs COUNT FILE COMMAND…`.

import { readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { Client, StdioClientTransport } from './sdk.mjs';
import { types } from './sdk.mjs';

const [count, path, command, ...args] = process.argv.slice(2);
const came = { hanging: 0, changed: 0, watching: 0 };
const waiting = {};
const tell = (what) => { came[what] += 1; waiting[what]?.(); };
const next = async (what) => {
  while (came[what] === 0) await new Promise((resolve) => { waiting[what] = resolve; });
  came[what] = 0;
};
// The times of files lag behind the clock. An edit that seems older than the server's start counts as its own.
const save = (version) => {
  const source = readFileSync(path, 'utf-8').replace(/VERSION = .*/, `VERSION = ${version}`);
  const now = performance.timeOrigin + performance.now();
  do writeFileSync(`${path}~`, source); while (statSync(`${path}~`).mtimeMs <= now);
  renameSync(`${path}~`, path);
};
const fails = async (name) => {
  try {
    const result = await client.callTool({ name, arguments: {} });
    return name === 'version' ? null : `it was answered: ${JSON.stringify(result)}`;
  } catch (error) {
    return error.message;
  }
};

const client = new Client({ name: 'edits', version: '1' });
client.setNotificationHandler(types.LoggingMessageNotificationSchema, () => tell('hanging'));
client.setNotificationHandler(types.ToolListChangedNotificationSchema, () => tell('changed'));
const transport = new StdioClientTransport({ command, args, env: process.env, stderr: 'pipe' });
let errors = '';
transport.stderr.on('data', (chunk) => {
  errors += chunk;
  if (errors.includes('watching')) { errors = ''; tell('watching'); }
});
await client.connect(transport);
await next('watching');
const versions = [], refused = [];
let broken = null;
for (let number = 2; number <= Number(count) + 1; number += 1) {
  const running = fails('hang');
  await next('hanging');
  save(number);
  await next('changed');
  refused.push(await running);
  versions.push((await client.callTool({ name: 'version', arguments: {} })).content[0].text);
  if (number === Math.floor(count / 2) + 1) {
    save('(');
    while (!(broken = await fails('version')));
    save(number);
    await next('changed');
  }
}
console.log(JSON.stringify({ versions, refused, broken }));
await client.close();
