"""The official OpenAI SDK for Python against HOLDFAST_BASE_URL.

HOLDFAST_API_KEY is a key that the server knows; without it the server lets anybody in.
"""

import asyncio
import os
import unittest

import openai

BASE_URL = os.environ["HOLDFAST_BASE_URL"]
API_KEY = os.environ.get("HOLDFAST_API_KEY") or ""
ASK = {"model": "auto", "messages": [{"role": "user", "content": "hi from Python"}]}


def new_client(kind=openai.OpenAI, key=API_KEY or "none-needed"):
    return kind(base_url=BASE_URL, api_key=key, max_retries=0, timeout=20)


def text_of(chunks):
    return "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)


class ClientTest(unittest.TestCase):
    def setUp(self):
        self.client = new_client()
        self.addCleanup(self.client.close)

    def collect(self, **params):
        with self.client.chat.completions.create(**ASK, stream=True, **params) as stream:
            return list(stream)

    def test_chat(self):
        raw = self.client.chat.completions.with_raw_response.create(**ASK)
        answer = raw.parse()
        choice = answer.choices[0]
        self.assertEqual((answer.object, len(answer.choices)), ("chat.completion", 1))
        self.assertEqual((choice.message.role, choice.finish_reason), ("assistant", "stop"))
        self.assertTrue(choice.message.content.strip())
        self.assertGreater(answer.usage.total_tokens, 0)
        self.assertEqual(answer.holdfast["tier"], "model")
        self.assertEqual(raw.headers["holdfast-tier"], "model")
        self.assertEqual(raw.headers["holdfast-route-id"], answer.holdfast["route_id"])

    def test_stream(self):
        chunks = self.collect()
        self.assertGreaterEqual(len(chunks), 3)
        self.assertTrue(all(len(c.choices) == 1 for c in chunks), "a chunk without choices")
        self.assertEqual(len({c.id for c in chunks}), 1)
        self.assertEqual(chunks[0].choices[0].delta.role, "assistant")
        self.assertEqual(chunks[0].holdfast["tier"], "model")
        self.assertEqual(chunks[-1].choices[0].finish_reason, "stop")
        self.assertEqual(chunks[-1].holdfast["tier"], "model")
        self.assertTrue(text_of(chunks).strip())

    def test_stream_with_usage(self):
        chunks = self.collect(stream_options={"include_usage": True})
        self.assertEqual(chunks[-1].choices, [])
        self.assertGreater(chunks[-1].usage.total_tokens, 0)
        self.assertEqual(chunks[-1].holdfast["tier"], "model")
        self.assertEqual(len([c for c in chunks if c.usage]), 1)

    def test_stream_helper(self):
        with self.client.chat.completions.stream(**ASK) as stream:
            heard = "".join(e.delta for e in stream if e.type == "content.delta")
            final = stream.get_final_completion()
        self.assertEqual(final.choices[0].message.content, heard)
        self.assertEqual(final.choices[0].finish_reason, "stop")
        self.assertTrue(heard.strip())

    def test_abandoned_stream_leaves_the_client_usable(self):
        with self.client.chat.completions.create(**ASK, stream=True) as stream:
            self.assertEqual(next(iter(stream)).object, "chat.completion.chunk")
        self.assertEqual(self.client.chat.completions.create(**ASK).holdfast["tier"], "model")

    def test_async(self):
        async def both():
            async with new_client(openai.AsyncOpenAI) as client:
                answer = await client.chat.completions.create(**ASK)
                stream = await client.chat.completions.create(**ASK, stream=True)
                return answer, [chunk async for chunk in stream]

        answer, chunks = asyncio.run(both())
        self.assertEqual(answer.holdfast["tier"], "model")
        self.assertEqual(text_of(chunks), answer.choices[0].message.content)

    def test_models(self):
        models = list(self.client.models.list())
        self.assertTrue(models)
        self.assertTrue(all(m.id and m.object == "model" for m in models))
        named = self.client.chat.completions.create(**{**ASK, "model": models[0].id})
        self.assertEqual(named.holdfast["tier"], "model")

    def test_unknown_model(self):
        with self.assertRaises(openai.NotFoundError) as caught:
            self.client.chat.completions.create(**{**ASK, "model": "no-such-model"})
        self.assertEqual((caught.exception.status_code, caught.exception.code), (404, "model_not_found"))

    def test_bad_request(self):
        for name, params, param in [
            ("no messages", {"messages": []}, "messages"),
            ("two answers", {"n": 2}, "n"),
            ("two answers, streamed", {"n": 2, "stream": True}, "n"),
        ]:
            with self.subTest(name), self.assertRaises(openai.BadRequestError) as caught:
                self.client.chat.completions.create(**{**ASK, **params})
            self.assertEqual((caught.exception.status_code, caught.exception.param), (400, param))

    def test_no_stored_answer(self):
        with self.assertRaises(openai.NotFoundError):
            self.client.chat.completions.retrieve("no-such-id")

    def test_unknown_key(self):
        with new_client(key="not-a-key") as stranger:
            if API_KEY:
                with self.assertRaises(openai.AuthenticationError):
                    stranger.chat.completions.create(**ASK)
            else:
                self.assertEqual(stranger.chat.completions.create(**ASK).holdfast["tier"], "model")


if __name__ == "__main__":
    unittest.main()
