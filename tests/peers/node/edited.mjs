// A server of the TypeScript SDK whose VERSION is edited while it runs (edits.mjs); PEERS is the folder of sdk.mjs.

const { Server, StdioServerTransport, types } = await import(`${process.env.PEERS}/sdk.mjs`);

const VERSION = 1
const capabilities = { tools: { listChanged: true }, logging: {} };
const server = new Server({ name: 'edited', version: `${VERSION}` }, { capabilities });
const tools = ['version', 'hang'].map((name) => ({ name, inputSchema: { type: 'object' } }));
server.setRequestHandler(types.ListToolsRequestSchema, () => ({ tools }));
server.setRequestHandler(types.CallToolRequestSchema, async ({ params }) => {
  if (params.name === 'hang') {
    await server.sendLoggingMessage({ level: 'info', data: 'hanging' });
    await new Promise(() => {});
  }
  return { content: [{ type: 'text', text: `version ${VERSION}` }] };
});
await server.connect(new StdioServerTransport());
