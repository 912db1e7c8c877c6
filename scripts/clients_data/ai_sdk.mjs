// Run a loop of the AI SDK once, with the server in mcp.json.

import { readFileSync } from "node:fs";
import { createMCPClient } from "@ai-sdk/mcp";
import { Experimental_StdioMCPTransport } from "@ai-sdk/mcp/mcp-stdio";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, isStepCount } from "ai";

const entry = JSON.parse(readFileSync("mcp.json", "utf8")).mcpServers.plain;
const transport = entry.url ? { type: "http", url: entry.url } : new Experimental_StdioMCPTransport(entry);
const client = await createMCPClient({ transport });
try {
  const local = createOpenAICompatible({ name: "local", baseURL: process.env.OPENAI_BASE_URL });
  const { text } = await generateText({
    model: local("scripted"),
    tools: await client.tools(),
    stopWhen: isStepCount(5),
    prompt: "Use the tools of the server plain.",
  });
  console.log(text);
} finally {
  await client.close();
}
