// A client of the TypeScript SDK: `answers.mjs CALLS COMMAND…` makes the calls, a JSON array of [tool, arguments].
// It prints what answers.py prints; the SDK has validated the structured content.

import { Client, StdioClientTransport } from './sdk.mjs';

const [calls, command, ...args] = process.argv.slice(2);
const client = new Client({ name: 'answers', version: '1' });
await client.connect(new StdioClientTransport({ command, args, env: process.env }));
const { tools } = await client.listTools();
const taken = [];
for (const [name, given] of JSON.parse(calls)) {
  const result = await client.callTool({ name, arguments: given });
  const text = result.content.map((part) => part.text).join('');
  taken.push([result.isError === true, text, result.structuredContent ?? null]);
}
const resources = (await client.listResources()).resources.length;
const prompts = (await client.listPrompts()).prompts.length;
console.log(JSON.stringify({ tools, taken, resources, prompts }));
await client.close();
