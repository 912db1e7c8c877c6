// A client of the TypeScript SDK: `lister.mjs COUNT COMMAND…` asks for the tools so many times.
// It prints a JSON array: of each answer the number of tools, or null where the SDK refused it.

import { Client, StdioClientTransport } from './sdk.mjs';

const [count, command, ...args] = process.argv.slice(2);
const client = new Client({ name: 'lister', version: '1' });
await client.connect(new StdioClientTransport({ command, args }));
const taken = [];
for (let n = 0; n < Number(count); n++) {
  taken.push(await client.listTools().then((result) => result.tools.length, () => null));
}
console.log(JSON.stringify(taken));
await client.close();
