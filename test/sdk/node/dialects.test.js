// The official OpenAI SDK for Node.js, through Holdfast, against a provider of every dialect. HOLDFAST_CASES is the
// file that names the dialects, each also a candidate, and what they can't carry.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';

import OpenAI from 'openai';
import { zodResponseFormat } from 'openai/helpers/zod';
import { z } from 'zod';

const cases = JSON.parse(readFileSync(process.env.HOLDFAST_CASES, 'utf8'));
const options = {
  baseURL: process.env.HOLDFAST_BASE_URL, apiKey: process.env.HOLDFAST_API_KEY || 'none-needed', maxRetries: 0, timeout: 20_000,
};
const client = new OpenAI(options);

const question = [{ role: 'user', content: 'What is the weather in Paris and in Oslo?' }];
const summary = 'The tools say Paris: 21 degrees and Oslo: 4 degrees.';
const picture = (url) => [
  { role: 'user', content: [{ type: 'text', text: 'What is this?' }, { type: 'image_url', image_url: { url } }] },
];
const seen = 'I see 1 image of 70 bytes.';
const image = picture(`data:image/png;base64,${cases.picture}`);
const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'], additionalProperties: false };
const tools = [{ type: 'function', function: { name: 'get_weather', strict: true, parameters } }];
const weather = zodResponseFormat(z.object({ city: z.string(), degrees: z.number() }), 'weather');
const history = [
  ...question,
  { role: 'assistant', tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'get_weather', arguments: '{"city":"Paris"}' } }] },
  { role: 'tool', tool_call_id: 'call_1', content: 'Paris: 21 degrees' },
];

for (const dialect of cases.dialects) {
  const ask = async (messages, params) => {
    const answer = await client.chat.completions.create({ model: dialect, messages, ...params });
    assert.equal(answer.holdfast.tier, 'model');
    assert.equal(answer.holdfast.candidate, dialect);
    assert.ok(answer.usage.total_tokens > 0);
    return answer.choices[0];
  };
  // What the SDK's own helper makes of a stream: it is strict about the chunks.
  const stream = async (messages, params) => {
    const running = client.chat.completions.stream({
      model: dialect, messages, stream_options: { include_usage: true }, ...params,
    });
    const final = await running.finalChatCompletion();
    assert.ok(final.usage.total_tokens > 0);
    return final.choices[0];
  };

  describe(`OpenAI SDK, ${dialect}`, () => {
    for (const [way, send] of [['whole', ask], ['streamed', stream]]) {
      test(`chat, ${way}`, async () => {
        const choice = await send([{ role: 'user', content: 'Hello?' }]);
        assert.equal(choice.message.content, 'Hello from upstream.');
        assert.equal(choice.finish_reason, 'stop');
      });

      test(`tools, ${way}`, async () => {
        const { message, finish_reason } = await send(question, { tools });
        assert.equal(finish_reason, 'tool_calls');
        const calls = message.tool_calls.map((c) => [c.function.name, JSON.parse(c.function.arguments).city]);
        assert.deepEqual(calls, [['get_weather', 'Paris'], ['get_weather', 'Oslo']]);
        const [paris, oslo] = message.tool_calls;
        assert.notEqual(paris.id, oslo.id);
        const second = await send([
          ...question,
          { role: 'assistant', content: null, tool_calls: [paris, oslo].map(({ id, type, function: { name, arguments: args } }) => ({ id, type, function: { name, arguments: args } })) },
          { role: 'tool', tool_call_id: paris.id, content: 'Paris: 21 degrees' },
          { role: 'tool', tool_call_id: oslo.id, content: 'Oslo: 4 degrees' },
        ], { tools });
        assert.equal(second.message.content, summary);
      });

      test(`vision, ${way}`, async () => {
        assert.equal((await send(image)).message.content, seen);
      });
    }

    test('structured output', async () => {
      const answer = await client.chat.completions.parse({ model: dialect, messages: question, response_format: weather });
      assert.deepEqual(answer.choices[0].message.parsed, { city: 'Paris', degrees: 21 });
    });

    test('structured output, streamed', async () => {
      const choice = await stream(question, { response_format: weather });
      assert.deepEqual(choice.message.parsed, { city: 'Paris', degrees: 21 });
    });

    const refused = (names, messages, params) => assert.rejects(
      client.chat.completions.create({ model: dialect, messages, ...params }),
      (e) => {
        assert.ok(e instanceof OpenAI.BadRequestError, e.constructor.name);
        assert.equal(e.code, 'unsupported');
        assert.ok(e.message.includes(names), e.message);
        return true;
      },
    );

    for (const c of cases.refusals[dialect]) {
      test(`refused: ${c.name}`, async () => {
        const params = { ...c.fields, ...(c.tools && { tools }), ...(c.schema && { response_format: weather }) };
        await refused(c.names, c.history ? history : question, params);
        await refused(c.names, c.history ? history : question, { ...params, stream: true });
      });
    }

    test('refused: an image that is not fetched', () => refused('image', picture('http://example.com/picture.png')));

    test('a failing provider', async () => {
      const messages = [{ role: 'user', content: 'Please fail.' }];
      const fixed = await client.chat.completions.create({ model: dialect, messages });
      assert.equal(fixed.holdfast.tier, 'fallback');
      const stubborn = new OpenAI({ ...options, maxRetries: 2 });
      await assert.rejects(stubborn.chat.completions.parse({ model: dialect, messages, response_format: weather }), (e) => {
        assert.equal(e.status, 503);
        assert.equal(e.headers.get('x-should-retry'), 'false');
        return true;
      });
    });
  });
}
