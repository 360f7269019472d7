"""What LocalStack asks of whatever runs its functions."""

import json
import os
import pathlib
import time

from localstack import config
from localstack.services.lambda_.invocation.executor_endpoint import StatusErrorException
from localstack.services.lambda_.invocation.lambda_models import FunctionVersion, InvocationResult
from localstack.services.lambda_.invocation.runtime_executor import RuntimeExecutor

from lambda_process_executor.environment import Environment
from lambda_process_executor.exchange import Answer, Gone, Invocation

# All that a function sees of this machine; the rest is what LocalStack gives it.
PASSED_ON = ("PATH", "HOME", "TMPDIR")


class ProcessExecutor(RuntimeExecutor):
    def __init__(self, id: str, function_version: FunctionVersion):
        super().__init__(id, function_version)
        self._environment: Environment | None = None
        self._variables: dict[str, str] = {}

    def start(self, env_vars: dict[str, str]):
        self._variables = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        self._variables |= {name: str(value) for name, value in env_vars.items()}
        self._variables["LAMBDA_TASK_ROOT"] = str(_bootstrap(self.function_version).parent)
        self._begin()

    def stop(self):
        if self._environment:
            self._environment.end()

    def invoke(self, payload: dict[str, str]) -> InvocationResult:
        # As Lambda does after a crash or a timeout.
        if not self._environment or not self._environment.is_alive():
            self._begin()
        began = time.time()
        timeout = self.function_version.config.timeout
        invocation = Invocation(
            request_id=payload["invoke-id"],
            payload=payload["payload"].encode(),
            deadline_ms=int((began + timeout) * 1000),
            function_arn=payload["invoked-function-arn"],
            trace_id=payload.get("trace-id") or "",
        )
        request = f"RequestId: {invocation.request_id}"
        remark = ""
        try:
            answer = self._environment.exchange.invoke(invocation, timeout)
        except TimeoutError:
            self._environment.end(grace=0)
            remark = f"{invocation.request_id} Task timed out after {timeout:.2f} seconds"
            answer = _error("Sandbox.Timedout", f"{request} Error: {remark}")
        except Gone as gone:
            remark = f"{request} Error: Runtime exited with error: {gone}"
            answer = _error("Runtime.ExitError", remark)
        lines = [
            f"START {request} Version: {self.function_version.id.qualifier}",
            *self._environment.new_lines(),
            *filter(None, [remark]),
            f"END {request}",
            f"REPORT {request}\tDuration: {(time.time() - began) * 1000:.2f} ms",
        ]
        logs = "".join(f"{line}\n" for line in lines)
        return InvocationResult(
            invocation.request_id, answer.body, is_error=answer.is_error, logs=logs
        )

    def get_address(self) -> str:
        return "127.0.0.1"

    def get_endpoint_from_executor(self) -> str:
        return "127.0.0.1"

    def get_runtime_endpoint(self) -> str:
        return f"http://127.0.0.1:{config.GATEWAY_LISTEN[0].port}/_localstack_lambda/{self.id}"

    def get_logs(self) -> str:
        return "\n".join(self._environment.all_lines()) if self._environment else ""

    @classmethod
    def prepare_version(cls, function_version: FunctionVersion):
        code = function_version.config.code
        runtime = function_version.config.runtime or ""
        if code is None or not runtime.startswith("provided"):
            raise ValueError("only zip packages with a provided.* runtime can run as processes")
        code.prepare_for_execution()
        if not os.access(_bootstrap(function_version), os.X_OK):
            raise ValueError("the zip package has no executable named bootstrap")

    @classmethod
    def cleanup_version(cls, function_version: FunctionVersion):
        pass

    def _begin(self):
        function = self.function_version.id.function_name
        try:
            self._environment = Environment(
                function, _bootstrap(self.function_version), self._variables
            )
        except OSError as error:
            # Built for another processor, above all.
            raise _not_started(_error("Runtime.InvalidEntrypoint", f"bootstrap: {error}")) from error
        try:
            # LocalStack bounds the wait: it calls stop() where it takes too long.
            reported = self._environment.exchange.wait_until_ready()
        except Gone as gone:
            reported = _error("Runtime.ExitError", f"Error: Runtime exited with error: {gone}")
        if reported:
            self._environment.end()
            raise _not_started(reported)


def _bootstrap(function_version: FunctionVersion) -> pathlib.Path:
    return function_version.config.code.get_unzipped_code_location() / "bootstrap"


def _error(kind: str, message: str) -> Answer:
    body = json.dumps({"errorType": kind, "errorMessage": message}).encode()
    return Answer(body, is_error=True)


def _not_started(answer: Answer) -> StatusErrorException:
    return StatusErrorException("the function did not start", payload=answer.body)
