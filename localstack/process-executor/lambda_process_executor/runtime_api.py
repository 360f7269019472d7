"""Lambda's Runtime API, version 2018-06-01, on a free port of 127.0.0.1.

Source: AWS Lambda Developer Guide, "Using the Lambda runtime API for custom runtimes".
"""

import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from lambda_process_executor.exchange import Answer, Exchange

NEXT = "/2018-06-01/runtime/invocation/next"
INIT_ERROR = "/2018-06-01/runtime/init/error"
OUTCOME = re.compile(r"/2018-06-01/runtime/invocation/([^/]+)/(response|error)")

ACCEPTED = b'{"status":"OK"}'
REFUSED = b'{"errorType":"InvalidRequestID","errorMessage":"nobody waits for this answer"}'


class RuntimeApi:
    """Served until `close`."""

    def __init__(self, exchange: Exchange):
        self._server = _Server(("127.0.0.1", 0), _handler(exchange))
        self.address = "127.0.0.1:%d" % self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """A process that is killed drops its connection; that is no error of this server's."""


def _handler(exchange: Exchange):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            if self.path != NEXT:
                return self._reply(404, b"{}")
            invocation = exchange.next()
            if invocation is None:
                self.close_connection = True
                return None
            return self._reply(
                200,
                invocation.payload,
                {
                    "Lambda-Runtime-Aws-Request-Id": invocation.request_id,
                    "Lambda-Runtime-Deadline-Ms": str(invocation.deadline_ms),
                    "Lambda-Runtime-Invoked-Function-Arn": invocation.function_arn,
                    "Lambda-Runtime-Trace-Id": invocation.trace_id,
                },
            )

        def do_POST(self):
            body = self._read()
            if self.path == INIT_ERROR:
                exchange.init_error(Answer(body, is_error=True))
                return self._reply(202, ACCEPTED)
            outcome = OUTCOME.fullmatch(self.path)
            if outcome is None:
                return self._reply(404, b"{}")
            request_id, kind = outcome.groups()
            if exchange.answer(request_id, Answer(body, is_error=kind == "error")):
                return self._reply(202, ACCEPTED)
            return self._reply(400, REFUSED)

        def _read(self) -> bytes:
            if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length", 0)))
            chunks = []
            while size := int(self.rfile.readline().partition(b";")[0], 16):
                chunks.append(self.rfile.read(size))
                self.rfile.readline()
            while self.rfile.readline().strip():
                pass  # Trailers.
            return b"".join(chunks)

        def _reply(self, status: int, body: bytes, headers: dict[str, str] | None = None):
            self.send_response(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            """Every poll would be a line."""

    return Handler
