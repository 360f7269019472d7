"""One execution environment works on one invocation at a time. Here LocalStack, which has the invocation,
meets the function, which asks for it."""

import threading
from dataclasses import dataclass


@dataclass(frozen=True)
class Invocation:
    request_id: str
    payload: bytes
    # Milliseconds since the epoch, as Lambda tells it.
    deadline_ms: int
    function_arn: str
    trace_id: str


@dataclass(frozen=True)
class Answer:
    body: bytes
    is_error: bool


class Gone(Exception):
    """The process has ended. The text says how."""


class Exchange:
    def __init__(self):
        self._changed = threading.Condition()
        self._polled = False
        self._waiting: Invocation | None = None
        self._running: str | None = None
        self._answers: dict[str, Answer] = {}
        self._init_error: Answer | None = None
        self._gone: str | None = None

    # What LocalStack does.

    def wait_until_ready(self) -> Answer | None:
        """Returns when the function asks for its first invocation, or with what it reports instead."""
        with self._changed:
            self._changed.wait_for(lambda: self._polled or self._init_error or self._gone)
            if self._polled:
                return None
            if self._init_error:
                return self._init_error
            raise Gone(self._gone)

    def invoke(self, invocation: Invocation, timeout: float) -> Answer:
        """Raises TimeoutError or Gone where there is no answer."""
        with self._changed:
            self._waiting = invocation
            self._changed.notify_all()
            answered = self._changed.wait_for(
                lambda: invocation.request_id in self._answers or self._gone, timeout
            )
            self._waiting = None
            self._running = None
            if not answered:
                raise TimeoutError
            if invocation.request_id in self._answers:
                return self._answers.pop(invocation.request_id)
            raise Gone(self._gone)

    # What the function does.

    def next(self) -> Invocation | None:
        """None where there will be no more."""
        with self._changed:
            self._polled = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._waiting or self._gone)
            if self._gone:
                return None
            invocation, self._waiting = self._waiting, None
            self._running = invocation.request_id
            return invocation

    def answer(self, request_id: str, answer: Answer) -> bool:
        """Whether anybody is waiting for it."""
        with self._changed:
            if self._running != request_id:
                return False
            self._answers[request_id] = answer
            self._changed.notify_all()
            return True

    def init_error(self, answer: Answer):
        with self._changed:
            self._init_error = answer
            self._changed.notify_all()

    def end(self, how: str):
        with self._changed:
            self._gone = how
            self._changed.notify_all()
