"""Between the network and LitServe: only requests that can be answered come through, the others get a reason.

Both classes plug into published interfaces: ASGI (asgi.readthedocs.io) and uvicorn's `http=` protocol class.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from typing import Any

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from serving.checks import Limits, Refused, check

if sys.version_info >= (3, 11):
    from asyncio import timeout
else:
    from async_timeout import timeout

ROUTES = {"/predict": ("POST",), "/health": ("GET", "HEAD"), "/info": ("GET", "HEAD")}
ALL_ROUTES = "POST /predict, GET /health, GET /info"
ANSWER = 30.0  # seconds a request may wait for its answer


class Gate:
    """Refuses what has no route, is too large, too slow or no JSON with texts; the rest goes on to `app`."""

    def __init__(self, app: ASGIApp, *, limits: Limits, n_parts: int) -> None:
        self.app, self.limits, self.n_parts = app, limits, n_parts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":  # the server's own start and end
            return await self.app(scope, receive, send)
        started = False

        async def watched(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            methods = ROUTES.get(scope["path"])
            if methods is None:
                raise Refused(404, f"no such route: there are {ALL_ROUTES}")
            if scope["method"] not in methods:
                raise Refused(405, f"{scope['path']} takes {methods[0]}: there are {ALL_ROUTES}")
            if methods == ("POST",):
                body = await self.body(receive)
                check(body, self.limits, self.n_parts)
                scope, receive = as_json(scope), replay(body, receive)
            async with timeout(ANSWER):
                await self.app(scope, receive, watched)
        except Refused as refused:
            closing = {"connection": "close"} if refused.status in (408, 413) else {}
            await JSONResponse({"detail": refused.detail}, refused.status, closing)(scope, receive, send)
        except asyncio.TimeoutError:
            if not started:
                detail = f"no answer within {ANSWER:g} seconds: try again later"
                await JSONResponse({"detail": detail}, 503)(scope, receive, send)
        except ConnectionError:
            pass  # the client has gone

    async def body(self, receive: Receive) -> bytes:
        """The request's body; what is beyond the limit is let go of as it comes, so that the client reads the refusal.

        Raises `Refused` where it is too large or not all there in time, `ConnectionError` where the client leaves.
        """
        parts: list[bytes] = []
        size, more = 0, True
        with suppress(asyncio.TimeoutError):
            async with timeout(self.limits.seconds):
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise ConnectionError
                    part = message.get("body", b"")
                    size += len(part)
                    if size <= self.limits.bytes:
                        parts.append(part)
                    more = message.get("more_body", False)
        if size > self.limits.bytes:
            raise Refused(413, f"the body is larger than {self.limits.bytes:,} bytes: send the texts in parts")
        if more:
            raise Refused(408, f"the body was not all there after {self.limits.seconds:g} seconds: send it faster")
        return b"".join(parts)


def as_json(scope: Scope) -> Scope:
    """The request said to be JSON, which `curl -d` leaves out."""
    headers = [(name, value) for name, value in scope["headers"] if name != b"content-type"]
    return {**scope, "headers": [*headers, (b"content-type", b"application/json")]}


def replay(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives the body read before, then what `receive` gives."""
    left = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return left.pop() if left else await receive()

    return again


def patient(seconds: float) -> type[HttpToolsProtocol]:
    """uvicorn's HTTP protocol that hangs up on a client whose request line and headers are not there after `seconds`."""

    class Patient(HttpToolsProtocol):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self.timer = self.loop.call_later(seconds, self.hang_up)

        def on_message_begin(self) -> None:
            super().on_message_begin()
            self.timer.cancel()
            self.timer = self.loop.call_later(seconds, self.hang_up)

        def on_headers_complete(self) -> None:
            self.timer.cancel()
            super().on_headers_complete()

        def connection_lost(self, exc: Exception | None) -> None:
            self.timer.cancel()
            super().connection_lost(exc)

        def hang_up(self) -> None:
            body = b'{"detail":"the request was not all there after %g seconds: send it faster"}' % seconds
            head = b"HTTP/1.1 408 Request Timeout\r\ncontent-type: application/json\r\nconnection: close\r\n"
            self.transport.write(head + b"content-length: %d\r\n\r\n" % len(body) + body)
            self.transport.close()

        def send_400_response(self, msg: str) -> None:
            body = b'{"detail":"this is not HTTP: see GET /info"}'
            head = b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\nconnection: close\r\n"
            self.transport.write(head + b"content-length: %d\r\n\r\n" % len(body) + body)
            self.transport.close()

    return Patient
