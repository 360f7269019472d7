"""Creates queues, functions and mappings for the examples on LocalStack.

In the container LocalStack runs it when it is ready. Without Docker `localstack/up` does.

    LAMBDA_INBOX_FUNCTIONS   the folder of scripts/package with the zips
    LAMBDA_INBOX_DATABASES   URL of the server, without a database: postgres://user:password@host:port
"""

import json
import os
import pathlib
import platform

import boto3

# Name, binary, database, whether the queue is a FIFO queue, messages in a batch.
EXAMPLES = [
    ("payments", "payments", "payments", False, 10),
    ("invoic", "edi-invoic", "invoic", False, 10),
    ("stock", "stock-bulk", "stock", False, 100),
    ("commands", "fifo", "commands", True, 10),
]
TIMEOUT = 10
MAX_RECEIVE_COUNT = 5
ROLE = "arn:aws:iam::000000000000:role/function"

endpoint = os.environ.get("AWS_ENDPOINT_URL", "http://localhost:4566")
session = boto3.Session("test", "test", region_name=os.environ.get("AWS_REGION", "eu-central-1"))
sqs = session.client("sqs", endpoint_url=endpoint)
lambdas = session.client("lambda", endpoint_url=endpoint)
functions = pathlib.Path(os.environ["LAMBDA_INBOX_FUNCTIONS"])


def queue(name: str, fifo: bool) -> tuple[str, str]:
    """Returns its URL and ARN."""
    suffix = ".fifo" if fifo else ""
    kind = {"FifoQueue": "true"} if fifo else {}
    dead = sqs.create_queue(
        QueueName=f"{name}-dead{suffix}", Attributes={**kind, "MessageRetentionPeriod": "1209600"}
    )
    policy = {"deadLetterTargetArn": arn(dead["QueueUrl"]), "maxReceiveCount": MAX_RECEIVE_COUNT}
    made = sqs.create_queue(
        QueueName=f"{name}{suffix}",
        Attributes={
            **kind,
            "VisibilityTimeout": str(6 * TIMEOUT),
            "RedrivePolicy": json.dumps(policy),
        },
    )
    return made["QueueUrl"], arn(made["QueueUrl"])


def arn(url: str) -> str:
    answer = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
    return answer["Attributes"]["QueueArn"]


def function(name: str, binary: str, database: str, **variables: str):
    url = f"{os.environ['LAMBDA_INBOX_DATABASES']}/{database}?sslmode=disable"
    lambdas.create_function(
        FunctionName=name,
        Runtime="provided.al2023",
        Handler="bootstrap",
        Role=ROLE,
        Timeout=TIMEOUT,
        Architectures=["arm64" if platform.machine() in ("aarch64", "arm64") else "x86_64"],
        Environment={"Variables": {"DATABASE_URL": url, **variables}},
        Code={"ZipFile": (functions / f"{binary}.zip").read_bytes()},
    )
    lambdas.get_waiter("function_active_v2").wait(FunctionName=name)


def invoke(name: str) -> dict:
    answer = lambdas.invoke(FunctionName=name, Payload=b"{}")
    value = json.load(answer["Payload"])
    if "FunctionError" in answer:
        raise RuntimeError(f"{name}: {value}")
    return value


def deploy(name: str, binary: str, database: str, fifo: bool, batch: int):
    url, queue_arn = queue(name, fifo)
    # Tables first: the mapping would deliver at once.
    function(f"{name}-migrate", "lambda-inbox-migrate", database)
    invoke(f"{name}-migrate")
    function(f"{name}-prune", "lambda-inbox-prune", database, LAMBDA_INBOX_QUEUES=queue_arn, LAMBDA_INBOX_RETENTION="28d")
    function(name, binary, database)
    lambdas.create_event_source_mapping(
        FunctionName=name,
        EventSourceArn=queue_arn,
        BatchSize=batch,
        FunctionResponseTypes=["ReportBatchItemFailures"],
        **({"MaximumBatchingWindowInSeconds": 1} if batch > 10 else {}),
    )
    print(f"  {name:<10} {url}", flush=True)


print("queues, each mapped to the function of the same name:", flush=True)
for example in EXAMPLES:
    deploy(*example)
