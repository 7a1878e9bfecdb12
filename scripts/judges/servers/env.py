"""Answers every request with its fields as the application sees them, one in a line: by WSGI, ASGI and http.server."""

import sys
from http.server import BaseHTTPRequestHandler, HTTPServer


def wsgi(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    lines = [f"{name}={value}" for name, value in environ.items() if name.startswith("HTTP_")]
    return ["\n".join(lines).encode("latin-1")]


async def asgi(scope, receive, send):
    if scope["type"] != "http":
        return
    body = b"\n".join(name + b"=" + value for name, value in scope["headers"])
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
    await send({"type": "http.response.body", "body": body})


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        body = "\n".join(f"{name}={value}" for name, value in self.headers.items()).encode("latin-1")
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    server = HTTPServer(("127.0.0.1", 0), Handler)
    print(f"listening on port {server.server_port}", file=sys.stderr, flush=True)
    server.serve_forever()
