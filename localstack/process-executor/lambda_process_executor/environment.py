"""An execution environment: a function's bootstrap as a process, and the Runtime API that it talks to."""

import collections
import contextlib
import os
import pathlib
import signal
import subprocess
import threading

from lambda_process_executor.exchange import Exchange
from lambda_process_executor.runtime_api import RuntimeApi

# What a function gets between being told to end and being ended. Lambda's is as long, where there is an
# extension.
GRACE_SECONDS = 0.5
LOG_LINES_MAX = 10_000

# A folder that gets a file `<function>/<pid>` for every process that runs, so that one can be killed to see
# what becomes of its messages.
PROCESSES = os.environ.get("LAMBDA_PROCESS_FOLDER")


class Environment:
    def __init__(self, function: str, bootstrap: pathlib.Path, variables: dict[str, str]):
        """Raises OSError where the file cannot be run."""
        self.exchange = Exchange()
        self._lines: collections.deque[str] = collections.deque(maxlen=LOG_LINES_MAX)
        self._written = threading.Condition()
        self._count = 0
        self._taken = 0
        self._api = RuntimeApi(self.exchange)
        try:
            self._process = subprocess.Popen(
                [str(bootstrap)],
                cwd=bootstrap.parent,
                env={**variables, "AWS_LAMBDA_RUNTIME_API": self._api.address},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                # A terminal's Ctrl-C is for LocalStack, which then ends its functions.
                start_new_session=True,
            )
        except OSError:
            self._api.close()
            raise
        self._mark = _mark(function, self._process.pid)
        threading.Thread(target=self._watch, daemon=True).start()

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def end(self, grace: float = GRACE_SECONDS):
        """Returns when the process, and all that it started, is gone."""
        for number, patience in ((signal.SIGTERM, grace), (signal.SIGKILL, None)):
            if patience == 0:
                continue
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(patience)
                return

    def new_lines(self) -> list[str]:
        """What was written since the last call. The last line may still be on its way, hence the wait."""
        with self._written:
            self._written.wait(0.02)
            kept = list(self._lines)
            new = self._count - self._taken
            self._taken = self._count
            return kept[max(0, len(kept) - new) :]

    def all_lines(self) -> list[str]:
        return list(self._lines)

    def _watch(self):
        for line in self._process.stdout:
            with self._written:
                self._lines.append(line.decode("utf-8", "replace").rstrip("\n"))
                self._count += 1
                self._written.notify_all()
        code = self._process.wait()
        how = f"exit status {code}" if code >= 0 else f"signal: {signal.Signals(-code).name}"
        self.exchange.end(how)
        if self._mark:
            self._mark.unlink(missing_ok=True)
        self._api.close()


def _mark(function: str, pid: int) -> pathlib.Path | None:
    if not PROCESSES:
        return None
    mark = pathlib.Path(PROCESSES) / function / str(pid)
    mark.parent.mkdir(parents=True, exist_ok=True)
    mark.touch()
    return mark
