"""LangChain's OpenAI integration, through Holdfast, against a provider of every dialect."""

import unittest

from langchain_core.messages import HumanMessage, ToolMessage
from langchain_openai import ChatOpenAI

from cases import API_KEY, BASE_URL, CASES, IMAGE, QUESTION, SEEN, SUMMARY
from test_dialects import Weather

DEGREES = {"Paris": 21, "Oslo": 4}


def get_weather(city: str) -> str:
    """Weather now."""
    return f"{city}: {DEGREES[city]} degrees"


class LangChainTest(unittest.TestCase):
    dialect = ""

    def setUp(self):
        self.model = ChatOpenAI(
            model=self.dialect, base_url=BASE_URL, api_key=API_KEY, max_retries=0, timeout=20, stream_usage=True
        )

    def stream(self, model, messages):
        whole = None
        for chunk in model.stream(messages):
            whole = chunk if whole is None else whole + chunk
        self.assertGreater(whole.usage_metadata["total_tokens"], 0)
        return whole

    def test_chat(self):
        answer = self.model.invoke("Hello?")
        self.assertEqual(answer.content, "Hello from upstream.")
        self.assertEqual(answer.response_metadata["finish_reason"], "stop")
        self.assertGreater(answer.usage_metadata["total_tokens"], 0)

    def test_stream(self):
        answer = self.stream(self.model, "Hello?")
        self.assertEqual(answer.content, "Hello from upstream.")
        self.assertEqual(answer.response_metadata["finish_reason"], "stop")

    def test_tools(self):
        model = self.model.bind_tools([get_weather])
        for ask in (model.invoke, lambda messages: self.stream(model, messages)):
            messages = [HumanMessage(QUESTION)]
            called = ask(messages)
            self.assertEqual([c["args"] for c in called.tool_calls], [{"city": "Paris"}, {"city": "Oslo"}])
            self.assertEqual(called.invalid_tool_calls, [])
            results = [ToolMessage(get_weather(**c["args"]), tool_call_id=c["id"]) for c in called.tool_calls]
            self.assertEqual(ask([*messages, called, *results]).content, SUMMARY)

    def test_structured_output(self):
        model = self.model.with_structured_output(Weather, method="json_schema")
        self.assertEqual(model.invoke(QUESTION), Weather(city="Paris", degrees=21))
        self.assertEqual(list(model.stream(QUESTION))[-1], Weather(city="Paris", degrees=21))

    def test_vision(self):
        self.assertEqual(self.model.invoke([HumanMessage(IMAGE)]).content, SEEN)
        self.assertEqual(self.stream(self.model, [HumanMessage(IMAGE)]).content, SEEN)


def load_tests(loader, _tests, _pattern):
    suite = unittest.TestSuite()
    for dialect in CASES["dialects"]:
        kind = type(f"LangChain_{dialect}", (LangChainTest,), {"dialect": dialect})
        suite.addTests(loader.loadTestsFromTestCase(kind))
    return suite
