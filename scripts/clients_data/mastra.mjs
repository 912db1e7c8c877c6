// Run a Mastra agent once, with the server in mcp.json.

import { readFileSync } from "node:fs";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { Agent } from "@mastra/core/agent";
import { MCPClient } from "@mastra/mcp";

const entry = JSON.parse(readFileSync("mcp.json", "utf8")).mcpServers.plain;
const servers = { plain: entry.url ? { url: new URL(entry.url) } : entry };
const client = new MCPClient({ servers });
try {
  const local = createOpenAICompatible({ name: "local", baseURL: process.env.OPENAI_BASE_URL });
  const agent = new Agent({
    id: "a",
    name: "a",
    instructions: "Use tools.",
    model: local("scripted"),
    tools: await client.listTools(),
  });
  console.log((await agent.generate("Use the tools of the server plain.")).text);
} finally {
  await client.disconnect();
}
