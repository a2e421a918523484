"""Invokes the built functions through SAM, each time in a new container, and judges them by what they answer:
`sam local invoke` exits 0 even when a function fails. scripts/sam-test prepares what this needs.

What one invoke leaves for another went through the containers of Postgres and the DynamoDB API: the processes share
nothing else.
"""

import contextlib
import json
import os
import subprocess
import sys
import time
import unittest
from pathlib import Path

import boto3
from botocore.config import Config

ROOT = Path(__file__).resolve().parents[2]
SAM = os.environ["HOLDFAST_SAM"]
BUILD = Path(os.environ["HOLDFAST_BUILD"])
ARCHITECTURE = os.environ["HOLDFAST_ARCHITECTURE"]
NETWORK = os.environ["HOLDFAST_NETWORK"]
QUESTION = "What is a circuit breaker?"  # of events/chat.json
TABLE = "holdfast"
MACHINES = {"x86_64": 62, "arm64": 183}  # e_machine of an ELF file


def command(*args, config):
    """A `sam local` command line whose functions reach the containers by their names, as events/env.json says."""
    variables = json.loads((ROOT / "events" / "env.json").read_text())
    variables["Parameters"]["HOLDFAST_CONFIG"] = f"/var/task/{config}.yaml"
    path = BUILD.parent / f"{config}.json"
    path.write_text(json.dumps(variables))
    return [SAM, "local", *args, "--template", str(BUILD / "template.yaml"), "--env-vars", str(path), "--docker-network", NETWORK,
            "--skip-pull-image", "--parameter-overrides", f"Architecture={ARCHITECTURE}"]


def environment():
    """No account, no telemetry; and not a child of make."""
    drop = ("AWS_", "HOLDFAST_", "MAKE", "MFLAGS")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(drop)}
    return {**kept, "SAM_CLI_TELEMETRY": "0", "AWS_DEFAULT_REGION": "us-east-1"}


def invoke(function, event, config="healthy"):
    """The function's answer, decoded; its log is shown where there is none."""
    event = event if isinstance(event, dict) else read(event)
    done = subprocess.run(command("invoke", function, "--event", "-", config=config), input=json.dumps(event), text=True,
                          capture_output=True, env=environment(), cwd=BUILD, timeout=120)
    try:
        return json.loads(done.stdout.strip().splitlines()[-1])
    except (IndexError, ValueError):
        raise AssertionError(f"no answer of {function}: {done.stdout[-500:]!r}\n{done.stderr[-2000:]}") from None


def read(name):
    return json.loads((ROOT / "events" / f"{name}.json").read_text())


def asking(question):
    event = read("chat")
    event["body"] = json.dumps({"model": "auto", "messages": [{"role": "user", "content": question}]})
    return event


def opened(answer):
    """Status and decoded body of a buffered answer."""
    if "statusCode" not in answer:
        raise AssertionError(f"no HTTP answer: {answer}")
    return answer["statusCode"], json.loads(answer["body"])


def text_of(body):
    return body["choices"][0]["message"]["content"]


def aws(service, endpoint):
    settings = Config(retries={"max_attempts": 0}, read_timeout=120)
    return boto3.client(service, endpoint_url=endpoint, region_name="us-east-1", aws_access_key_id="holdfast",
                        aws_secret_access_key="holdfast", config=settings)


@contextlib.contextmanager
def started_lambda(config):
    """`sam local start-lambda`, as a client of the AWS SDK; its log on failure."""
    port = os.environ["HOLDFAST_START_LAMBDA_PORT"]
    endpoint = f"http://127.0.0.1:{port}"
    with open(BUILD.parent / "start-lambda.log", "w+") as log:
        server = subprocess.Popen(command("start-lambda", "--port", port, config=config), stdin=subprocess.DEVNULL, stdout=log,
                                  stderr=subprocess.STDOUT, env=environment(), cwd=BUILD)
        try:
            wait_for(lambda: "Press CTRL+C" in Path(log.name).read_text() or server.poll() is not None)
            yield aws("lambda", endpoint)
        except Exception:
            print(Path(log.name).read_text()[-3000:], file=sys.stderr)
            raise
        finally:
            server.terminate()
            server.wait(30)


def wait_for(ready, seconds=30):
    end = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > end:
            raise AssertionError("waited in vain")
        time.sleep(0.1)


class SamTest(unittest.TestCase):
    """In the order of their names: later ones find what earlier ones left in the stores."""

    def test_1_build(self):
        for function in ("ChatFunction", "StreamFunction", "UpkeepFunction"):
            head = (BUILD / function / "bootstrap").read_bytes()[:20]
            self.assertEqual((head[:4], head[18]), (b"\x7fELF", MACHINES[ARCHITECTURE]), function)
            self.assertTrue((BUILD / function / "holdfast.yaml").exists(), function)

    def test_2_a_model_answers(self):
        status, body = opened(invoke("ChatFunction", "chat"))
        self.assertEqual((status, body["holdfast"]["tier"], body["holdfast"]["candidate"]), (200, "model", "steady"))
        self.assertIn(QUESTION, text_of(body))

    def test_3_postgres_answers_what_another_process_stored(self):
        status, body = opened(invoke("ChatFunction", "chat", config="failing"))
        self.assertEqual((status, body["holdfast"]["tier"]), (200, "cache"), body["holdfast"])
        self.assertIn(QUESTION, text_of(body))
        self.assertEqual([a.get("status") for a in body["holdfast"]["attempts"]], [503, 500])
        self.assertIn(body["holdfast"]["cache"]["rule"], ("exact", "canonical"))

    def test_4_breakers_are_open_in_the_table(self):
        items = aws("dynamodb", f"http://127.0.0.1:{os.environ['HOLDFAST_DYNAMODB_PORT']}").scan(TableName=TABLE)["Items"]
        keys = json.dumps([[item["pk"], item["sk"]] for item in items])
        self.assertIn("primary", keys)
        self.assertIn("backup", keys)

    def test_5_dynamodb_keeps_another_process_from_calling(self):
        status, body = opened(invoke("ChatFunction", asking("断路器是怎样工作的？"), config="failing"))
        self.assertEqual((status, body["holdfast"]["tier"]), (200, "fallback"), body["holdfast"])
        self.assertEqual(text_of(body), "所有模型都不在。")
        self.assertEqual([a.get("skipped") for a in body["holdfast"]["attempts"]], ["breaker_open"] * 2)

    def test_6_the_callers_mistakes(self):
        for event, want, code in (("unknown-model", 404, "model_not_found"), ("bad-json", 400, None)):
            with self.subTest(event):
                status, body = opened(invoke("ChatFunction", event))
                self.assertEqual(status, want)
                self.assertTrue(code is None or body["error"]["code"] == code, body)

    def test_7_upkeep(self):
        for event, action in (("schedule", "expire"), ("migrate", "migrate")):
            with self.subTest(event):
                answer = invoke("UpkeepFunction", event)
                self.assertEqual(answer.get("action"), action, answer)

    def test_8_through_the_aws_sdk(self):
        with started_lambda("healthy") as client:
            answer = client.invoke(FunctionName="ChatFunction", Payload=json.dumps(read("chat")))
            self.assertNotIn("FunctionError", answer)
            status, body = opened(json.load(answer["Payload"]))
            self.assertEqual((status, body["holdfast"]["tier"]), (200, "model"))
            answer = client.invoke(FunctionName="ChatFunction", Payload=b'{"not": "a request"}')
            self.assertIn("FunctionError", answer)


def main():
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(SamTest)
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(suite)
    bad = len({test.id().split(" ")[0] for test, _ in result.failures + result.errors})
    print(f"sam: {result.testsRun - bad} passed, {bad} failed", flush=True)
    return 1 if bad or not result.testsRun else 0


if __name__ == "__main__":
    sys.exit(main())
