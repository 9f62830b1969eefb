"""A waiting room in front of a Python ASGI application. Python 3.9 or newer, standard library only.

    app = QueueGate(app, server="https://queue.example.com", room="checkout",
                    key=os.environ["QM_PUBLIC_API_KEY"], site="https://shop.example.com")

`site` is the origin visitors see. `address(scope)` gives the visitor's address; behind a proxy give your own, and never the
left-most entry of X-Forwarded-For.
"""

import asyncio
import http.client
import json
import logging
import re
import time
from urllib.parse import quote, unquote_plus, urlencode, urlsplit

BUDGET_SECONDS = 2.0
TOKEN = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+", re.ASCII)


def usable(text):
    return text if len(text) <= 1024 and TOKEN.fullmatch(text) else ""


def encoded(raw):
    return quote(raw, safe="!#$%&'()*+,-./0123456789:;=?@[]^_`{|}~")


class QueueGate:
    def __init__(self, app, *, server, room, key, site, address=lambda scope: scope["client"][0]):
        if not key or not key.strip():
            raise ValueError("a key is required: without it the queue lets nobody in")
        self.app, self.room, self.key, self.site, self.address = app, room, key.strip(), site, address
        self.server = urlsplit(server.rstrip("/"))
        self.origin = f"{self.server.scheme}://{self.server.netloc}"

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        extra = []  # headers for the application's answer

        async def send_with_extra(message):
            if message["type"] == "http.response.start":
                taken = {name for name, _ in extra if name != b"set-cookie"}
                kept = [pair for pair in message.get("headers", []) if pair[0].lower() not in taken]
                message = {**message, "headers": kept + extra}
            await send(message)

        reply = await self.decide(scope, extra)
        if reply is None:
            return await self.app(scope, receive, send_with_extra)
        status, headers = reply
        await send({"type": "http.response.start", "status": status, "headers": headers + [(b"cache-control", b"no-store")]})
        await send({"type": "http.response.body", "body": b""})

    async def decide(self, scope, extra):
        """None serves the page, with `extra` headers; else status and headers of the answer."""
        seen = {}
        for name, value in scope["headers"]:
            name = name.lower()
            seen[name] = seen[name] + b"; " + value if name == b"cookie" and name in seen else value
        url, tokens = self.page(scope)
        brought = next((token for token in map(usable, tokens) if token), "")
        stored = self.stored(seen.get(b"cookie", b"").decode("latin-1"))
        purpose = seen.get(b"sec-purpose", b"") + seen.get(b"purpose", b"")
        if brought and (scope["method"] == "HEAD" or b"prefetch" in purpose.lower()):
            return 503, []
        until, clear, answer = time.monotonic() + BUDGET_SECONDS, False, {}
        for token in list(dict.fromkeys(filter(None, [brought, stored]))) or [""]:
            query = {"roomId": self.room, "ip": self.address(scope), "agent": seen.get(b"user-agent", b"").strip()[:256]}
            if token:
                query["token"] = token
            if len(quote(url, safe="")) <= 2000:
                query["url"] = url
            answer = await self.ask(urlencode(query), until)
            if "failover" in answer:
                extra += [(b"x-qm-failover", answer["failover"].encode()), (b"cache-control", b"private, no-store")]
                return None
            if answer.get("action") == "pass":
                cookie = [self.cookie(token, 86400)] if token and token == brought else []
                if tokens and scope["method"] == "GET":
                    return 302, [(b"location", url.encode())] + cookie
                extra += [(b"cache-control", b"private, no-cache")] + cookie
                return None
            if answer.get("busy"):
                return 302, [self.waiting(None, url)]
            clear = clear or (answer.get("clearToken") is True and token != "" and token == stored)
        return 302, [self.waiting(answer.get("waitingRoomUrl"), url)] + ([self.cookie("", 0)] if clear else [])

    def page(self, scope):
        """The page's address without qm_token, and the tokens taken off."""
        path = scope.get("raw_path") or quote(scope["path"]).encode()
        tokens, rest = [], []
        for pair in scope.get("query_string", b"").split(b"&"):
            name, _, value = pair.decode("latin-1").partition("=")
            if unquote_plus(name) == "qm_token":
                tokens.append(unquote_plus(value))
            elif pair:
                rest.append(pair)
        return self.site + encoded(path + (b"?" + b"&".join(rest) if rest else b"")), tokens

    def stored(self, header):
        for pair in header.split(";"):
            name, _, value = pair.strip().partition("=")
            if name == f"qm_{self.room}" and usable(re.sub(r'^"(.*)"$', r"\1", value)):
                return usable(re.sub(r'^"(.*)"$', r"\1", value))
        return ""

    def cookie(self, value, age):
        secure = "; Secure" if self.site.startswith("https:") else ""
        text = f"qm_{self.room}={value}; Max-Age={age}; Path=/; HttpOnly; SameSite=Lax{secure}"
        return b"set-cookie", text.encode()

    def waiting(self, named, url):
        """The waiting page with the way back; only the configured server is a place to send anybody to."""
        page = f"{self.origin}/w/{self.room}"
        if isinstance(named, str):
            named = self.origin + named if re.match(r"/[^/\\]", named) else named
            if re.fullmatch(re.escape(self.origin) + r"/[\x21-\x7e]*", named):
                page = named
        back = quote(url, safe="")
        if len(back) <= 3500:
            page += ("&" if "?" in page else "?") + "qm_return=" + back
        return b"location", page.encode()

    async def ask(self, query, until):
        """The answer to one check, or {"busy"} or {"failover"}."""
        left = max(0.1, until - time.monotonic())
        try:
            status, text = await asyncio.wait_for(asyncio.to_thread(self.request, query, left), left)
        except (asyncio.TimeoutError, TimeoutError):
            return {"failover": "timeout"}
        except (OSError, http.client.HTTPException):
            return {"failover": "unreachable"}
        try:
            body = json.loads(text)
        except (ValueError, RecursionError):
            body = {}
        body = body if isinstance(body, dict) else {}
        if status == 429 or status in (400, 413, 414) or body.get("code") == "server_saturated":
            return {"busy": True}
        if status in (401, 403):
            logging.error("Queue Manager: %s, the key is wrong: room %s is UNPROTECTED", status, self.room)
        if status != 200:
            return {"failover": f"http-{status}"}
        return body if body.get("action") in ("pass", "queue") else {"failover": "invalid-response"}

    def request(self, query, seconds):
        kind = http.client.HTTPSConnection if self.server.scheme == "https" else http.client.HTTPConnection
        connection = kind(self.server.netloc, timeout=seconds)
        try:
            connection.request("GET", f"/api/v1/check?{query}", headers={"Authorization": f"Bearer {self.key}"})
            answer = connection.getresponse()
            return answer.status, answer.read(65537)
        finally:
            connection.close()
