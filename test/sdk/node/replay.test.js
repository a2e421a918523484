// Answers from the cache, to the official OpenAI SDK for Node.js: HOLDFAST_BASE_URL is a server in cache mode front.
import assert from 'node:assert/strict';
import { before, test } from 'node:test';

import OpenAI from 'openai';

const client = new OpenAI({
  baseURL: process.env.HOLDFAST_BASE_URL, apiKey: process.env.HOLDFAST_API_KEY || 'none-needed', maxRetries: 0, timeout: 20_000,
});
const content = `Please repeat for Node: ${'arches carry bridges, 桥梁 rest on piers. '.repeat(60)}`;
const question = { model: 'auto', messages: [{ role: 'user', content }] };
let text;

before(async () => {
  let first;
  for (let i = 0; i < 20 && first?.holdfast.tier !== 'cache'; i++) { // what is kept is kept after the answer
    first = await client.chat.completions.create(question);
  }
  text = first.choices[0].message.content;
  assert.ok(text.length > 1024);
});

test('json', async () => {
  const { data, response } = await client.chat.completions.create(question).withResponse();
  assert.equal(data.choices[0].message.content, text);
  assert.equal(data.choices[0].finish_reason, 'stop');
  assert.equal(data.model, 'auto');
  assert.equal(data.usage.total_tokens, 0);
  assert.equal(data.holdfast.tier, 'cache');
  assert.equal(data.holdfast.cache.rule, 'exact');
  assert.deepEqual(data.holdfast.attempts, []);
  assert.match(response.headers.get('holdfast-cache'), /^exact; age=\d+$/);
  assert.equal(response.headers.get('holdfast-candidate'), null);
});

for (const usage of [false, true]) {
  test(`stream, usage ${usage}`, async () => {
    const chunks = [];
    const options = usage ? { stream_options: { include_usage: true } } : {};
    for await (const chunk of await client.chat.completions.create({ ...question, stream: true, ...options })) chunks.push(chunk);
    const choices = chunks.flatMap((c) => c.choices);
    assert.equal(choices.map((c) => c.delta.content ?? '').join(''), text);
    assert.ok(choices.length > 3, 'a long answer in one piece');
    assert.equal(new Set(chunks.map((c) => c.id)).size, 1);
    assert.deepEqual(choices.map((c) => c.delta.role).filter(Boolean), ['assistant']);
    assert.equal(choices[0].delta.role, 'assistant');
    assert.deepEqual(choices.map((c) => c.finish_reason).filter(Boolean), ['stop']);
    assert.deepEqual(chunks.filter((c) => c.usage).map((c) => c.usage.total_tokens), usage ? [0] : []);
    assert.equal(chunks[0].holdfast.tier, 'cache');
    assert.equal(chunks.at(-1).holdfast.tier, 'cache');
  });
}

test('stream helper', async () => {
  const stream = client.chat.completions.stream(question);
  assert.equal(await stream.finalContent(), text);
});
