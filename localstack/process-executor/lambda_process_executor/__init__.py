"""LocalStack runs functions in containers. This runs them as processes, where there is no Docker."""
