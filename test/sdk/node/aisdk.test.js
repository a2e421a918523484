// Vercel's AI SDK, through Holdfast, against a provider of every dialect. HOLDFAST_CASES is the file that names them.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';

import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, Output, stepCountIs, streamText, tool } from 'ai';
import { z } from 'zod';

const cases = JSON.parse(readFileSync(process.env.HOLDFAST_CASES, 'utf8'));
const holdfast = createOpenAICompatible({
  name: 'holdfast',
  baseURL: process.env.HOLDFAST_BASE_URL,
  apiKey: process.env.HOLDFAST_API_KEY || 'none-needed',
  includeUsage: true,
  supportsStructuredOutputs: true,
});

const degrees = { Paris: 21, Oslo: 4 };
const tools = {
  get_weather: tool({
    description: 'Weather now',
    inputSchema: z.object({ city: z.string() }),
    execute: async ({ city }) => `${city}: ${degrees[city]} degrees`,
  }),
};
const prompt = 'What is the weather in Paris and in Oslo?';
const summary = 'The tools say Paris: 21 degrees and Oslo: 4 degrees.';
const output = Output.object({ schema: z.object({ city: z.string(), degrees: z.number() }) });
const messages = [{
  role: 'user',
  content: [{ type: 'text', text: 'What is this?' }, { type: 'image', image: Buffer.from(cases.picture, 'base64') }],
}];

// Both ways to ask, with the same result.
const whole = (params) => generateText(params);
const streamed = async (params) => {
  const failures = [];
  const running = streamText({ ...params, onError: ({ error }) => failures.push(error) });
  let text = '';
  for await (const piece of running.textStream) text += piece;
  assert.deepEqual(failures, []);
  const steps = await running.steps;
  const result = { text, steps, finishReason: await running.finishReason, totalUsage: await running.totalUsage };
  return params.output ? { ...result, output: await running.output } : result;
};

for (const dialect of cases.dialects) {
  describe(`AI SDK, ${dialect}`, () => {
    for (const [way, send] of [['whole', whole], ['streamed', streamed]]) {
      const ask = async (params) => {
        const result = await send({ model: holdfast(dialect), maxRetries: 0, abortSignal: AbortSignal.timeout(20_000), ...params });
        assert.ok(result.totalUsage.totalTokens > 0);
        return result;
      };

      test(`chat, ${way}`, async () => {
        const { text, finishReason } = await ask({ prompt: 'Hello?' });
        assert.equal(text, 'Hello from upstream.');
        assert.equal(finishReason, 'stop');
      });

      test(`tools and their results, ${way}`, async () => {
        const { text, steps } = await ask({ prompt, tools, stopWhen: stepCountIs(3) });
        assert.equal(steps.length, 2);
        assert.equal(steps[0].finishReason, 'tool-calls');
        assert.deepEqual(steps[0].toolCalls.map((c) => c.input.city), ['Paris', 'Oslo']);
        assert.equal(text, summary);
      });

      test(`structured output, ${way}`, async () => {
        assert.deepEqual((await ask({ prompt, output })).output, { city: 'Paris', degrees: 21 });
      });

      test(`vision, ${way}`, async () => {
        assert.equal((await ask({ messages })).text, 'I see 1 image of 70 bytes.');
      });
    }
  });
}
