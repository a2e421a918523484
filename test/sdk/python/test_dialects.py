"""The official OpenAI SDK for Python, through Holdfast, against a provider of every dialect.

HOLDFAST_CASES is the file that names the dialects, each also a candidate, and what they can't carry.
"""

import json
import unittest

import openai
import pydantic

from cases import CASES, HISTORY, HTTP_IMAGE, IMAGE, QUESTION, SEEN, SUMMARY, TOOLS, new_client


class Weather(pydantic.BaseModel):
    city: str
    degrees: int


def say(text):
    return [{"role": "user", "content": text}]


def calls_of(message):
    return [(c.function.name, json.loads(c.function.arguments)["city"]) for c in message.tool_calls]


class DialectTest(unittest.TestCase):
    dialect = ""

    def setUp(self):
        self.client = new_client()
        self.addCleanup(self.client.close)

    def ask(self, messages, **params):
        answer = self.client.chat.completions.create(model=self.dialect, messages=messages, **params)
        self.assertEqual((answer.holdfast["tier"], answer.holdfast["candidate"]), ("model", self.dialect))
        self.assertGreater(answer.usage.total_tokens, 0)
        return answer.choices[0]

    def stream(self, messages, **params):
        """What the SDK's own helper makes of a stream: it is strict about the chunks."""
        options = {"include_usage": True}
        with self.client.chat.completions.stream(
            model=self.dialect, messages=messages, stream_options=options, **params
        ) as stream:
            heard = "".join(e.delta for e in stream if e.type == "content.delta")
            final = stream.get_final_completion()
        self.assertGreater(final.usage.total_tokens, 0)
        return final.choices[0], heard

    def test_chat(self):
        choice = self.ask(say("Hello?"))
        self.assertEqual((choice.message.content, choice.finish_reason), ("Hello from upstream.", "stop"))

    def test_stream(self):
        choice, heard = self.stream(say("Hello?"))
        self.assertEqual((heard, choice.finish_reason), ("Hello from upstream.", "stop"))

    def test_tools(self):
        choice = self.ask(say(QUESTION), tools=TOOLS)
        self.assertEqual(choice.finish_reason, "tool_calls")
        self.assertEqual(calls_of(choice.message), [("get_weather", "Paris"), ("get_weather", "Oslo")])
        self.second_turn(choice.message)

    def test_tools_streamed(self):
        choice, heard = self.stream(say(QUESTION), tools=TOOLS)
        self.assertEqual((heard, choice.finish_reason), ("", "tool_calls"))
        self.assertEqual(calls_of(choice.message), [("get_weather", "Paris"), ("get_weather", "Oslo")])
        self.second_turn(choice.message)

    def second_turn(self, called):
        ids = [c.id for c in called.tool_calls]
        self.assertEqual(len(set(ids)), 2)
        turn = called.model_dump(include={"role": True, "content": True, "tool_calls": {"__all__": {"id", "type", "function"}}})
        for call in turn["tool_calls"]:
            call["function"].pop("parsed_arguments", None)
        results = [
            {"role": "tool", "tool_call_id": ids[0], "content": "Paris: 21 degrees"},
            {"role": "tool", "tool_call_id": ids[1], "content": "Oslo: 4 degrees"},
        ]
        messages = [*say(QUESTION), turn, *results]
        self.assertEqual(self.ask(messages, tools=TOOLS).message.content, SUMMARY)
        self.assertEqual(self.stream(messages, tools=TOOLS)[1], SUMMARY)

    def test_structured_output(self):
        answer = self.client.chat.completions.parse(model=self.dialect, messages=say(QUESTION), response_format=Weather)
        self.assertEqual(answer.choices[0].message.parsed, Weather(city="Paris", degrees=21))

    def test_structured_output_streamed(self):
        choice, _ = self.stream(say(QUESTION), response_format=Weather)
        self.assertEqual(choice.message.parsed, Weather(city="Paris", degrees=21))

    def test_vision(self):
        self.assertEqual(self.ask([{"role": "user", "content": IMAGE}]).message.content, SEEN)
        self.assertEqual(self.stream([{"role": "user", "content": IMAGE}])[1], SEEN)

    def test_refused(self):
        schema = {"type": "json_schema", "json_schema": {"name": "weather", "schema": Weather.model_json_schema()}}
        for case in CASES["refusals"][self.dialect]:
            params = {**case["fields"]}
            if case.get("tools"):
                params["tools"] = TOOLS
            if case.get("schema"):
                params["response_format"] = schema
            messages = HISTORY if case.get("history") else say(QUESTION)
            for stream in (False, True):
                with self.subTest(case["name"], stream=stream):
                    self.refuse(case["names"], messages, stream=stream, **params)

    def test_image_that_is_not_fetched(self):
        self.refuse("image", [{"role": "user", "content": HTTP_IMAGE}])

    def refuse(self, names, messages, **params):
        with self.assertRaises(openai.BadRequestError) as caught:
            self.client.chat.completions.create(model=self.dialect, messages=messages, **params)
        self.assertEqual(caught.exception.code, "unsupported")
        self.assertIn(names, caught.exception.message)

    def test_failing_provider(self):
        """A message in prose for those who read prose, an error for those who parse."""
        fixed = self.client.chat.completions.create(model=self.dialect, messages=say("Please fail."))
        self.assertEqual(fixed.holdfast["tier"], "fallback")
        with new_client(max_retries=2) as client, self.assertRaises(openai.InternalServerError) as caught:
            client.chat.completions.parse(model=self.dialect, messages=say("Please fail."), response_format=Weather)
        self.assertEqual(caught.exception.status_code, 503)
        self.assertEqual(caught.exception.response.headers["x-should-retry"], "false")


def load_tests(loader, _tests, _pattern):
    suite = unittest.TestSuite()
    for dialect in CASES["dialects"]:
        kind = type(f"Dialect_{dialect}", (DialectTest,), {"dialect": dialect})
        suite.addTests(loader.loadTestsFromTestCase(kind))
    return suite
