// The TypeScript SDK, loaded from the environment that prepare.py built: `.peers/node` at the root of the repository.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const require = createRequire(new URL('../../../.peers/node/package.json', import.meta.url));
const SDK = '@modelcontextprotocol/sdk';

export const types = require(`${SDK}/types.js`);
export const { Client } = require(`${SDK}/client/index.js`);
export const { StdioClientTransport } = require(`${SDK}/client/stdio.js`);
export const { StreamableHTTPClientTransport } = require(`${SDK}/client/streamableHttp.js`);
export const { SSEClientTransport } = require(`${SDK}/client/sse.js`);
export const { Server } = require(`${SDK}/server/index.js`);
export const { StdioServerTransport } = require(`${SDK}/server/stdio.js`);
export const { InMemoryTaskStore } = require(`${SDK}/experimental/tasks`);

export const readJson = (name) => JSON.parse(readFileSync(new URL(`../${name}`, import.meta.url), 'utf-8'));
