"""How LocalStack finds the executor: LAMBDA_RUNTIME_EXECUTOR=process."""

from localstack.services.lambda_.invocation.plugins import RuntimeExecutorPlugin


class ProcessExecutorPlugin(RuntimeExecutorPlugin):
    name = "process"

    def load(self, *args, **kwargs):
        # Not at the top: plugins are listed by every command of LocalStack's.
        from lambda_process_executor.executor import ProcessExecutor

        return ProcessExecutor
