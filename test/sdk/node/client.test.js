// The official OpenAI SDK for Node.js against HOLDFAST_BASE_URL.
// HOLDFAST_API_KEY is a key that the server knows; without it the server lets anybody in.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import OpenAI from 'openai';

const baseURL = process.env.HOLDFAST_BASE_URL;
assert.ok(baseURL, 'HOLDFAST_BASE_URL is not set');
const apiKey = process.env.HOLDFAST_API_KEY || 'none-needed';

const client = new OpenAI({ baseURL, apiKey, maxRetries: 0, timeout: 20_000 });
const question = { model: 'auto', messages: [{ role: 'user', content: 'hi from Node' }] };

const collect = async (params) => {
  const chunks = [];
  for await (const chunk of await client.chat.completions.create({ ...question, stream: true, ...params })) {
    chunks.push(chunk);
  }
  return chunks;
};

const textOf = (chunks) => chunks.map((c) => c.choices[0]?.delta?.content ?? '').join('');

test('chat', async () => {
  const { data, response } = await client.chat.completions.create(question).withResponse();
  assert.equal(data.object, 'chat.completion');
  assert.equal(data.choices.length, 1);
  assert.equal(data.choices[0].message.role, 'assistant');
  assert.equal(data.choices[0].finish_reason, 'stop');
  assert.match(data.choices[0].message.content, /\S/);
  assert.ok(data.usage.total_tokens > 0);
  assert.equal(data.holdfast.tier, 'model');
  assert.equal(response.headers.get('holdfast-tier'), 'model');
  assert.equal(response.headers.get('holdfast-route-id'), data.holdfast.route_id);
});

test('stream', async () => {
  const chunks = await collect({});
  assert.ok(chunks.length >= 3, `${chunks.length} chunks`);
  assert.ok(chunks.every((c) => c.choices.length === 1), 'a chunk without choices');
  assert.equal(new Set(chunks.map((c) => c.id)).size, 1);
  assert.equal(chunks[0].choices[0].delta.role, 'assistant');
  assert.equal(chunks[0].holdfast.tier, 'model');
  assert.equal(chunks.at(-1).choices[0].finish_reason, 'stop');
  assert.equal(chunks.at(-1).holdfast.tier, 'model');
  assert.match(textOf(chunks), /\S/);
});

test('stream with usage', async () => {
  const chunks = await collect({ stream_options: { include_usage: true } });
  const last = chunks.at(-1);
  assert.deepEqual(last.choices, []);
  assert.ok(last.usage.total_tokens > 0);
  assert.equal(last.holdfast.tier, 'model');
  assert.equal(chunks.filter((c) => c.usage).length, 1);
});

test('stream helper', async () => {
  const stream = client.chat.completions.stream(question);
  let heard = '';
  stream.on('content', (delta) => (heard += delta));
  const final = await stream.finalChatCompletion();
  assert.equal(final.choices[0].message.content, heard);
  assert.equal(final.choices[0].finish_reason, 'stop');
  assert.match(heard, /\S/);
});

test('an abandoned stream leaves the client usable', async () => {
  const stream = await client.chat.completions.create({ ...question, stream: true });
  for await (const chunk of stream) {
    assert.equal(chunk.object, 'chat.completion.chunk');
    break;
  }
  const after = await client.chat.completions.create(question);
  assert.equal(after.holdfast.tier, 'model');
});

test('models', async () => {
  const models = [];
  for await (const model of client.models.list()) models.push(model);
  assert.ok(models.length > 0);
  assert.ok(models.every((m) => m.id && m.object === 'model'));
  const named = await client.chat.completions.create({ ...question, model: models[0].id });
  assert.equal(named.holdfast.tier, 'model');
});

test('unknown model', async () => {
  await assert.rejects(client.chat.completions.create({ ...question, model: 'no-such-model' }), (e) => {
    assert.ok(e instanceof OpenAI.NotFoundError, e.constructor.name);
    assert.equal(e.status, 404);
    assert.equal(e.code, 'model_not_found');
    return true;
  });
});

for (const [name, params, param] of [
  ['no messages', { messages: [] }, /messages/],
  ['two answers', { n: 2 }, /^n$/],
  ['two answers, streamed', { n: 2, stream: true }, /^n$/],
]) {
  test(`bad request: ${name}`, async () => {
    await assert.rejects(client.chat.completions.create({ ...question, ...params }), (e) => {
      assert.ok(e instanceof OpenAI.BadRequestError, e.constructor.name);
      assert.equal(e.status, 400);
      assert.match(e.param, param);
      return true;
    });
  });
}

test('no stored answer', async () => {
  await assert.rejects(client.chat.completions.retrieve('no-such-id'), OpenAI.NotFoundError);
});

test('a key that is not known', async () => {
  const stranger = new OpenAI({ baseURL, apiKey: 'not-a-key', maxRetries: 0 });
  const asked = stranger.chat.completions.create(question);
  if (process.env.HOLDFAST_API_KEY) {
    await assert.rejects(asked, OpenAI.AuthenticationError);
  } else {
    assert.equal((await asked).holdfast.tier, 'model');
  }
});
