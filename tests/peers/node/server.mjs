// The stdio server of the TypeScript SDK: the features of `features.json`, every answer fixed by its request.

import { InMemoryTaskStore, Server, StdioServerTransport, readJson, types } from './sdk.mjs';

const FEATURES = readJson('features.json');
const FIXED_TIME = '2025-11-25T00:00:00Z';
const RESOURCE_NOT_FOUND = -32002;
const tools = [...FEATURES.tools, FEATURES.later];

// The SDK's store with counted ids and one time for every task.
class FixedTaskStore extends InMemoryTaskStore {
    count = 0;

    generateTaskId() {
        this.count += 1;
        return `task-${this.count}`;
    }

    async createTask(...args) {
        return atFixedTime(await super.createTask(...args));
    }

    async getTask(...args) {
        const task = await super.getTask(...args);
        return task && atFixedTime(task);
    }

    async listTasks(...args) {
        const page = await super.listTasks(...args);
        return { ...page, tasks: page.tasks.map(atFixedTime) };
    }
}

const atFixedTime = (task) => ({ ...task, createdAt: FIXED_TIME, lastUpdatedAt: FIXED_TIME });

const taskStore = new FixedTaskStore();
const server = new Server(
    { name: FEATURES.name, version: FEATURES.version },
    {
        instructions: FEATURES.instructions,
        taskStore,
        capabilities: {
            completions: {},
            logging: {},
            prompts: {},
            resources: { subscribe: true },
            tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } },
            tools: { listChanged: true },
        },
    }
);

const text = (value, members = {}) => ({ content: [{ type: 'text', text: value }], ...members });
const sorted = (value) => {
    if (Array.isArray(value)) return value.map(sorted);
    if (value === null || typeof value !== 'object') return value;
    return Object.fromEntries(Object.keys(value).sort().map((key) => [key, sorted(value[key])]));
};
const compact = (value) => JSON.stringify(sorted(value));
const refused = (what) => text(`the client ${what}`, { isError: true });

// --- tools

async function progress(extra, done, total, message) {
    const progressToken = extra._meta?.progressToken;
    if (progressToken === undefined) return;
    const params = { progressToken, progress: done, total, message };
    await extra.sendNotification({ method: 'notifications/progress', params });
}

async function elicit(extra) {
    const params = { mode: 'form', ...FEATURES.elicitation };
    return compact(await server.elicitInput(params, { relatedRequestId: extra.requestId }));
}

const calls = {
    add: ({ a, b }) => text(compact({ sum: a + b }), { structuredContent: { sum: a + b } }),
    echo: (args) => text(args.text),
    repeat: (args) => text(args.text.repeat(args.times)),
    gallery: () => ({ content: FEATURES.gallery }),
    fail: () => text('failed as asked', { isError: true }),

    async slow({ steps }, extra) {
        for (let step = 1; step <= steps; step += 1) await progress(extra, step, steps, `step ${step}`);
        return text(`${steps} steps`);
    },

    async hang(_, extra) {
        await progress(extra, 0, 1, 'waiting');
        return new Promise((resolve) => extra.signal.addEventListener('abort', () => resolve(text('cancelled'))));
    },

    async log({ level }) {
        await server.sendLoggingMessage({ level, logger: 'peer', data: { note: 'as asked' } });
        return text('logged');
    },

    async ask(_, extra) {
        if (!server.getClientCapabilities().elicitation) return refused('does not elicit');
        return text(await elicit(extra));
    },

    async ask_twice(_, extra) {
        if (!server.getClientCapabilities().elicitation) return refused('does not elicit');
        return text(`${await elicit(extra)} ${await elicit(extra)}`);
    },

    async visit(_, extra) {
        if (!server.getClientCapabilities().elicitation?.url) return refused('does not visit pages');
        const options = { relatedRequestId: extra.requestId };
        const answer = await server.elicitInput({ mode: 'url', ...FEATURES.visit }, options);
        await server.createElicitationCompletionNotifier(FEATURES.visit.elicitationId, options)();
        return text(compact(answer));
    },

    async sample() {
        if (!server.getClientCapabilities().sampling) return refused('does not sample');
        return text(compact(await server.createMessage(FEATURES.sampling)));
    },

    async roots() {
        if (!server.getClientCapabilities().roots) return refused('has no roots');
        return text(compact(await server.listRoots()));
    },

    async touch() {
        await server.sendResourceUpdated({ uri: 'peer://counter' });
        return text('touched');
    },

    async grow() {
        if (!tools.includes(FEATURES.grown)) tools.push(FEATURES.grown);
        await server.sendToolListChanged();
        return text('grown');
    },

    grown: (args) => text(args.text),

    async later(args, extra) {
        const task = await extra.taskStore.createTask({ ttl: extra.taskRequestedTtl, pollInterval: 50 });
        if (!args.wait) await extra.taskStore.storeTaskResult(task.taskId, 'completed', text('done later'));
        return { task };
    },
};

server.setRequestHandler(types.ListToolsRequestSchema, () => ({ tools }));

server.setRequestHandler(types.CallToolRequestSchema, ({ params }, extra) => {
    if (!tools.some((tool) => tool.name === params.name)) {
        throw new types.McpError(types.ErrorCode.InvalidParams, `Unknown tool: ${params.name}`);
    }
    if ((params.name === 'later') !== (params.task !== undefined)) {
        throw new types.McpError(types.ErrorCode.MethodNotFound, 'later, and nothing else, runs as a task');
    }
    return calls[params.name](params.arguments ?? {}, extra);
});

// --- resources, prompts, completion

server.setRequestHandler(types.ListResourcesRequestSchema, ({ params }) =>
    params?.cursor === 'page-2'
        ? { resources: FEATURES.resources.slice(2) }
        : { resources: FEATURES.resources.slice(0, 2), nextCursor: 'page-2' }
);

server.setRequestHandler(types.ListResourceTemplatesRequestSchema, () => ({
    resourceTemplates: FEATURES.resourceTemplates,
}));

server.setRequestHandler(types.ReadResourceRequestSchema, ({ params: { uri } }) => {
    const city = 'peer://city/';
    if (uri.startsWith(city)) return { contents: [{ uri, mimeType: 'text/plain', text: uri.slice(city.length) }] };
    const contents = FEATURES.contents[uri];
    if (!contents) throw new types.McpError(RESOURCE_NOT_FOUND, 'Resource not found', { uri });
    return { contents: [contents] };
});

server.setRequestHandler(types.SubscribeRequestSchema, () => ({}));
server.setRequestHandler(types.UnsubscribeRequestSchema, () => ({}));

server.setRequestHandler(types.ListPromptsRequestSchema, () => ({ prompts: FEATURES.prompts }));

server.setRequestHandler(types.GetPromptRequestSchema, ({ params: { name, arguments: args = {} } }) => {
    if (!FEATURES.prompts.some((prompt) => prompt.name === name)) {
        throw new types.McpError(types.ErrorCode.InvalidParams, `Unknown prompt: ${name}`);
    }
    const content = { type: 'text', text: compact({ [name]: args }) };
    return { description: name, messages: [{ role: 'user', content }] };
});

server.setRequestHandler(types.CompleteRequestSchema, ({ params: { argument } }) => {
    const words = FEATURES.completions[argument.name] ?? [];
    const values = words.filter((word) => word.startsWith(argument.value));
    return { completion: { values, total: values.length, hasMore: false } };
});

process.stderr.write('node server: ready\n');
process.stdin.on('end', () => taskStore.cleanup()); // its timers would keep the process alive
await server.connect(new StdioServerTransport());
