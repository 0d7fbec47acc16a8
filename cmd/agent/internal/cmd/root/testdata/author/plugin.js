'use strict';

const fs = require('node:fs');
const path = require('node:path');
const { fail, prompt, result, serve } = require('./agent-plugin.js');

const schema = (properties = {}, required = []) => ({ type: 'object', properties, required, additionalProperties: false });

const ask = async (call) => {
  const sure = await call.confirm('Sure?');
  const way = await call.choose('Which?', ['left', 'right']);
  const name = await call.askText('Name?', '', 'v1');
  const form = await call.askForm('Where?', schema({ host: { type: 'string' }, stage: { type: 'string', enum: ['test', 'live'] } }, ['host']));
  return `${sure} ${way} ${name} ${form.host} ${form.stage}`;
};

const consult = async (call) => {
  const answer = await call.askModel('hi', { system: 'Be brief.' });
  return `${answer.text} ${answer.model}`;
};

const keep = async (call, { text }) => {
  const at = path.join(call.dataDir, 'kept');
  fs.writeFileSync(at, text);
  return fs.readFileSync(at, 'utf8');
};

const large = async (call) => {
  call.write('live ');
  return result({ text: `${'x'.repeat(3 << 20)} end`, images: [{ mediaType: 'image/png', data: Buffer.from('png') }] });
};

const wait = (call) => new Promise((_, reject) => {
  const end = () => reject(fail('CANCELLED', 'cancelled'));
  if (call.signal.aborted) end();
  call.signal.addEventListener('abort', end);
});

const grow = async () => {
  const name = `grown${Object.keys(plugin.tools).length}`;
  served.setTools({ ...plugin.tools, [name]: { description: 'New.', schema: schema(), run: async () => 'new' } });
  return 'grown';
};

const plugin = {
  name: 'author',
  dynamic: true,
  version: '0.1.0',
  tools: {
    settings: { description: 'Show the settings.', schema: schema(), run: async (call) => call.settings },
    keep: { description: 'Keep a text.', schema: schema({ text: { type: 'string' } }, ['text']), run: keep },
    ask: { description: 'Ask the user.', schema: schema(), run: ask },
    consult: { description: 'Ask the model.', schema: schema(), run: consult, asksModel: true },
    sneak: { description: 'Ask the model undeclared.', schema: schema(), run: consult },
    repeat: {
      description: 'Repeat a text.',
      schema: schema({ text: { type: 'string' }, times: { type: 'integer', default: 2 } }, ['text']),
      run: async (call, { text, times }) => result({ text: text.repeat(times), structured: { times } }),
    },
    large: { description: 'Return much.', schema: schema(), run: large },
    lose: { description: 'Fail.', schema: schema(), run: async () => { throw fail('NOT_FOUND', 'no such ticket'); } },
    wait: { description: 'Wait.', schema: schema(), run: wait },
    grow: { description: 'Get a tool.', schema: schema(), run: grow },
  },
  commands: {
    say: { args: 'TEXT', description: 'Say it', run: async (call, args) => args },
    plan: { args: 'TEXT', description: 'Plan it', run: async (call, args) => prompt(`Plan ${args}.`) },
  },
  contexts: {
    ticket: { description: 'The ticket', run: async (call, request) => `ticket 1 about ${request.input}, ${request.maxTokens}` },
  },
  hooks: {
    guard: { event: 'PreToolUse', condition: 'Bash(rm *)', run: async (call, event) => ({ verdict: 'deny', reason: `no ${event.tool_input.command}` }) },
    note: { event: 'PostToolUse', run: async () => ({ context: 'noted', message: 'seen' }) },
    block: { event: 'UserPromptSubmit', run: async (call, event) => (event.prompt === 'block me' ? { verdict: 'deny', reason: 'not now' } : undefined) },
  },
};

const served = serve(plugin);
