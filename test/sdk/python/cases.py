"""What the dialect suites ask, and what the scripted provider answers."""

import json
import os
import pathlib

import openai

BASE_URL = os.environ["HOLDFAST_BASE_URL"]
API_KEY = os.environ.get("HOLDFAST_API_KEY") or "none-needed"
CASES = json.loads(pathlib.Path(os.environ["HOLDFAST_CASES"]).read_text(encoding="utf-8"))

QUESTION = "What is the weather in Paris and in Oslo?"
SUMMARY = "The tools say Paris: 21 degrees and Oslo: 4 degrees."
SEEN = "I see 1 image of 70 bytes."
PICTURE = "data:image/png;base64," + CASES["picture"]
IMAGE = [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": PICTURE}}]
HTTP_IMAGE = [{"type": "image_url", "image_url": {"url": "http://example.com/picture.png"}}]

PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
TOOLS = [
    {
        "type": "function",
        "function": {"name": "get_weather", "description": "Weather now", "strict": True, "parameters": PARAMETERS},
    }
]
HISTORY = [
    {"role": "user", "content": QUESTION},
    {
        "role": "assistant",
        "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city":"Paris"}'}}
        ],
    },
    {"role": "tool", "tool_call_id": "call_1", "content": "Paris: 21 degrees"},
]


def new_client(max_retries=0):
    return openai.OpenAI(base_url=BASE_URL, api_key=API_KEY, max_retries=max_retries, timeout=20)
