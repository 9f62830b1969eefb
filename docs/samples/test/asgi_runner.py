"""Serves gate.py in front of a page over HTTP/1.1, just enough of ASGI for the tests. Prints its port."""

import asyncio
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
sys.dont_write_bytecode = True
from gate import QueueGate  # noqa: E402


async def page(scope, receive, send):
    headers = [(b"content-type", b"text/html"), (b"cache-control", b"public, max-age=60")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"SECRET"})


app = QueueGate(page, server=os.environ["QM_SERVER"], room=os.environ["QM_ROOM"], key=os.environ["QM_PUBLIC_API_KEY"], site=os.environ["QM_SITE"])


async def serve(reader, writer):
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, target, _ = head[0].split(" ", 2)
    headers = [(n.lower().encode("latin-1"), v.strip().encode("latin-1")) for n, _, v in (line.partition(":") for line in head[1:] if line)]
    raw, _, query = target.partition("?")
    scope = {"type": "http", "method": method, "path": raw, "raw_path": raw.encode("latin-1"), "query_string": query.encode("latin-1"), "headers": headers, "client": writer.get_extra_info("peername")}

    async def send(message):
        if message["type"] == "http.response.start":
            writer.write(f"HTTP/1.1 {message['status']} X\r\n".encode())
            for name, value in message["headers"]:
                writer.write(name + b": " + value + b"\r\n")
            writer.write(b"connection: close\r\n\r\n")
        elif method != "HEAD":
            writer.write(message.get("body", b""))

    try:
        await app(scope, None, send)
    except Exception as error:  # a gate that throws is what the tests look for
        writer.write(f"HTTP/1.1 500 X\r\nconnection: close\r\n\r\n{error!r}".encode())
    writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=1 << 20)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main())
