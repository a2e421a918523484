"""Answers from the cache, to the official OpenAI SDK for Python: HOLDFAST_BASE_URL is a server in cache mode front."""

import unittest

from test_client import new_client, text_of

ASK = {
    "model": "auto",
    "messages": [{"role": "user", "content": "Please repeat for Python: " + "arches carry bridges, 桥梁 rest on piers. " * 60}],
}


class ReplayTest(unittest.TestCase):
    def setUp(self):
        self.client = new_client()
        self.addCleanup(self.client.close)
        for _ in range(20):  # what is kept is kept after the answer
            first = self.client.chat.completions.create(**ASK)
            if first.holdfast["tier"] == "cache":
                break
        self.text = first.choices[0].message.content
        self.assertGreater(len(self.text), 1024)

    def test_json(self):
        raw = self.client.chat.completions.with_raw_response.create(**ASK)
        answer = raw.parse()
        self.assertEqual((answer.object, answer.model), ("chat.completion", "auto"))
        self.assertEqual((answer.choices[0].message.role, answer.choices[0].finish_reason), ("assistant", "stop"))
        self.assertEqual(answer.choices[0].message.content, self.text)
        self.assertEqual(answer.usage.total_tokens, 0)
        self.assertEqual(answer.holdfast["tier"], "cache")
        self.assertEqual((answer.holdfast["cache"]["rule"], answer.holdfast["attempts"]), ("exact", []))
        self.assertRegex(raw.headers["holdfast-cache"], r"^exact; age=\d+$")
        self.assertNotIn("holdfast-candidate", raw.headers)

    def test_stream(self):
        for usage in (False, True):
            with self.subTest(usage=usage):
                options = {"stream_options": {"include_usage": True}} if usage else {}
                with self.client.chat.completions.create(**ASK, stream=True, **options) as stream:
                    chunks = list(stream)
                self.assertEqual(text_of(chunks), self.text)
                self.assertGreater(len(chunks), 3, "a long answer in one piece")
                self.assertEqual({(c.id, c.model) for c in chunks}, {(chunks[0].id, "auto")})
                self.assertEqual([c.choices[0].delta.role for c in chunks if c.choices and c.choices[0].delta.role], ["assistant"])
                self.assertEqual([c.choices[0].finish_reason for c in chunks if c.choices and c.choices[0].finish_reason], ["stop"])
                self.assertEqual([c.usage.total_tokens for c in chunks if c.usage], [0] if usage else [])
                self.assertEqual((chunks[0].holdfast["tier"], chunks[-1].holdfast["tier"]), ("cache", "cache"))

    def test_stream_helper(self):
        with self.client.chat.completions.stream(**ASK) as stream:
            final = stream.get_final_completion()
        self.assertEqual((final.choices[0].message.content, final.choices[0].finish_reason), (self.text, "stop"))


if __name__ == "__main__":
    unittest.main()
