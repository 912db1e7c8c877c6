// The stdio client of the TypeScript SDK: `client.mjs [--scenario NAME] [--revision R] -- COMMAND ARG...`.
//
// Starts COMMAND with the SDK's own stdio transport, runs a scenario and prints one JSON document of what came back.
// `scenario.py` tells what a step of `scenarios.json` may say.

import { createHash } from 'node:crypto';
import { parseArgs } from 'node:util';

import { Client, StdioClientTransport, StreamableHTTPClientTransport, SSEClientTransport, readJson, types } from './sdk.mjs';

const REVISIONS = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'];
const UNSUPPORTED = 'unsupported';
const PATIENCE = 10_000; // milliseconds until a notification that should have come counts as missing
const SCENARIOS = readJson('scenarios.json');
const ANSWERS = SCENARIOS.answers;

// The SDK's client, asking for another revision than the newest and noting which one was settled.
class RevisionClient extends Client {
    constructor(info, options, revision) {
        super(info, options);
        this.revision = revision;
    }

    async request(request, ...rest) {
        if (request.method !== 'initialize') return super.request(request, ...rest);
        request.params.protocolVersion = this.revision;
        this.initialized = await super.request(request, ...rest);
        return this.initialized;
    }
}

// Resolves to the first value that `find` yields; it looks again after every arrival, and yields null in the end.
class Arrivals {
    items = [];
    waiting = new Set();

    push(item) {
        this.items.push(item);
        for (const look of this.waiting) look();
    }

    until(find) {
        return new Promise((resolve) => {
            const finish = (found) => {
                clearTimeout(timer);
                this.waiting.delete(look);
                resolve(found);
            };
            const look = () => {
                const found = find(this.items);
                if (found !== undefined) finish(found);
            };
            const timer = setTimeout(() => finish(null), PATIENCE);
            this.waiting.add(look);
            look();
        });
    }
}

// Makes the SDK ask for progress. It drops a report that arrives in one chunk with the result, so the inbox keeps them.
const onprogress = () => {};

const takeMethod = (method) => (items) => {
    const index = items.findIndex((item) => item.method === method);
    return index < 0 ? undefined : items.splice(index, 1)[0];
};

class Peer {
    constructor(client, inbox) {
        this.client = client;
        this.inbox = inbox;
    }

    ping() {
        return this.client.ping();
    }

    list_tools() {
        return this.client.listTools();
    }

    async call_tool({ name, arguments: args, progress = 0 }) {
        const answer = await this.client.callTool({ name, arguments: args }, undefined, progress ? { onprogress } : {});
        const reports = [];
        while (reports.length < progress) reports.push(await this.nextProgress());
        return progress ? { answer, progress: reports } : answer;
    }

    async nextProgress() {
        const report = await this.inbox.until(takeMethod('notifications/progress'));
        return report && [report.params.progress, report.params.total, report.params.message];
    }

    call_at_once({ name, count }) {
        const numbers = [...Array(count).keys()];
        return Promise.all(
            numbers.map((number) => this.client.callTool({ name, arguments: { text: `call ${number}` } }))
        );
    }

    async cancel_call({ name }) {
        const controller = new AbortController();
        const options = { onprogress, signal: controller.signal };
        const call = this.client.callTool({ name, arguments: {} }, undefined, options).catch((error) => error);
        const report = await this.nextProgress();
        controller.abort('enough');
        return { cancelled: (await call) instanceof Error, progress: [report] };
    }

    async list_resources() {
        const pages = [await this.client.listResources()];
        while (pages.at(-1).nextCursor) {
            pages.push(await this.client.listResources({ cursor: pages.at(-1).nextCursor }));
        }
        return pages;
    }

    list_resource_templates() {
        return this.client.listResourceTemplates();
    }

    read_resource({ uri }) {
        return this.client.readResource({ uri });
    }

    subscribe({ uri }) {
        return this.client.subscribeResource({ uri });
    }

    unsubscribe({ uri }) {
        return this.client.unsubscribeResource({ uri });
    }

    list_prompts() {
        return this.client.listPrompts();
    }

    get_prompt({ name, arguments: args }) {
        return this.client.getPrompt({ name, arguments: args });
    }

    complete(params) {
        return this.client.complete(params);
    }

    set_log_level({ level }) {
        return this.client.setLoggingLevel(level);
    }

    send_unknown({ method }) {
        return this.client.request({ method }, types.ResultSchema);
    }

    async send_roots_changed() {
        await this.client.sendRootsListChanged();
        return 'sent';
    }

    createTask({ name, arguments: args }) {
        const request = { method: 'tools/call', params: { name, arguments: args } };
        return this.client.request(request, types.CreateTaskResultSchema, { task: { ttl: 60_000 } });
    }

    async run_task(params) {
        const { tasks } = this.client.experimental;
        const created = await this.createTask(params);
        const { taskId } = created.task;
        const result = await tasks.getTaskResult(taskId, types.CallToolResultSchema);
        return [created, result, await tasks.getTask(taskId), await tasks.listTasks()];
    }

    async cancel_task(params) {
        const created = await this.createTask(params);
        return [created, await this.client.experimental.tasks.cancelTask(created.task.taskId)];
    }
}

const describe = (error) =>
    error instanceof types.McpError
        ? { code: error.code, message: error.message, data: error.data }
        : { type: error.name, message: error.message };

const offers = (capabilities, path) => {
    const value = path.split('.').reduce((members, member) => members?.[member], capabilities);
    return value !== undefined && value !== false;
};

// Members in order, and long strings as their length and digest.
function normalised(value) {
    if (Array.isArray(value)) return value.map(normalised);
    if (typeof value === 'string' && [...value].length > 500) {
        const digest = createHash('sha256').update(value).digest('hex');
        return `${[...value].length} characters, sha256 ${digest}`;
    }
    if (value === null || typeof value !== 'object') return value;
    return Object.fromEntries(Object.keys(value).sort().map((key) => [key, normalised(value[key])]));
}

async function runStep(step, peer, connected, inbox) {
    const wrongRevision = step.revisions && !step.revisions.includes(connected.revision);
    const notOffered = step.needs && !offers(connected.capabilities, step.needs);
    if (!peer[step.verb] || wrongRevision || notOffered) return { result: UNSUPPORTED };
    const outcome = {};
    try {
        outcome.result = await peer[step.verb](step.params ?? {});
        if (step.expect) outcome.notification = await inbox.until(takeMethod(step.expect));
    } catch (error) {
        outcome.error = describe(error); // whatever the SDK throws is this step's outcome
    }
    return outcome;
}

function clientCapabilities(revision) {
    const capabilities = { roots: { listChanged: true }, sampling: {} };
    if (revision === '2025-06-18') capabilities.elicitation = {};
    if (revision === '2025-11-25') capabilities.elicitation = { form: {}, url: {} };
    return capabilities;
}

function newClient(revision, inbox) {
    const info = { name: 'node-client', version: '1.0.0' };
    const capabilities = clientCapabilities(revision);
    const client = new RevisionClient(info, { capabilities }, revision);
    client.setRequestHandler(types.CreateMessageRequestSchema, () => ANSWERS.sampling);
    client.setRequestHandler(types.ListRootsRequestSchema, () => ANSWERS.roots);
    if (capabilities.elicitation) {
        client.setRequestHandler(types.ElicitRequestSchema, ({ params }) =>
            params.mode === 'url' ? { action: 'accept' } : ANSWERS.elicitation
        );
    }
    const keep = async ({ method, params }) => inbox.push({ method, params });
    client.setNotificationHandler(types.ProgressNotificationSchema, keep);
    client.fallbackNotificationHandler = keep;
    return client;
}

function newTransport() {
    if (values.http) return new StreamableHTTPClientTransport(new URL(values.http));
    if (values.sse) return new SSEClientTransport(new URL(values.sse));
    return new StdioClientTransport({ command: positionals[0], args: positionals.slice(1) });
}

const { values, positionals } = parseArgs({
    options: {
        scenario: { type: 'string', default: 'basic' },
        revision: { type: 'string' },
        http: { type: 'string' },
        sse: { type: 'string' },
    },
    allowPositionals: true,
});
const parts = { features: ['basic', 'features'], full: ['basic', 'large', 'features'] }[values.scenario];
const steps = parts ? parts.flatMap((part) => SCENARIOS[part]) : SCENARIOS[values.scenario];
const revision = values.revision ?? REVISIONS.at(-1);
if (!steps || !REVISIONS.includes(revision) || !(positionals.length || values.http || values.sse)) {
    process.stderr.write('usage: client.mjs [--scenario basic|features|full|everything] [--revision R] (--http URL | --sse URL | -- COMMAND ARG...)\n');
    process.exit(2);
}

const inbox = new Arrivals();
const client = newClient(revision, inbox);
await client.connect(newTransport());
const connected = { revision: client.initialized.protocolVersion, ...client.initialized };
const outcomes = [{ name: 'connect', result: connected }];
const peer = new Peer(client, inbox);
for (const step of steps) outcomes.push({ name: step.name, ...(await runStep(step, peer, connected, inbox)) });
await client.close();
process.stdout.write(`${JSON.stringify(normalised({ scenario: values.scenario, steps: outcomes }), null, 1)}\n`);
