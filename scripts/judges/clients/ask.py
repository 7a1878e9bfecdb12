"""Makes the requests listed on stdin with aiohttp, httpx or requests, and prints the results (scripts/judges/cases.mjs)."""

import asyncio
import hashlib
import sys

LIBRARY, BASE = sys.argv[1:]


def cases():
    for line in sys.stdin:
        name, method, path, upload, flags, headers = line.rstrip("\n").split("\t")
        fields = dict(field.split(": ", 1) for field in headers.split("|") if field)
        yield name, method, path, None if upload == "-" else int(upload), flags.split(","), fields


def tell(name, status, fields, body):
    lines = "\x01".join(f"{key}: {value}" for key, value in fields)
    print(name, status, len(body), hashlib.sha256(body).hexdigest(), lines, sep="\t")


def tell_error(name, error):
    print(name, f"error: {type(error).__name__}", sep="\t")


def pieces(size):
    while size > 0:
        yield b"x" * min(size, 10_000)
        size -= 10_000


def body_of(upload, flags):
    if upload is None:
        return None
    return pieces(upload) if "chunked" in flags else b"x" * upload


async def with_aiohttp():
    import aiohttp

    async def slowly(size):
        for piece in pieces(size):
            yield piece

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=False)) as session:
        for name, method, path, upload, flags, fields in cases():
            options = {"headers": fields, "allow_redirects": "follow" in flags, "expect100": "expect" in flags}
            if upload is not None:
                options["data"] = slowly(upload) if "chunked" in flags else b"x" * upload
            try:
                async with session.request(method, BASE + path, **options) as answer:
                    tell(name, answer.status, answer.headers.items(), await answer.read())
            except aiohttp.ClientError as error:
                tell_error(name, error)


def with_httpx():
    import httpx

    with httpx.Client(http1=True, http2=BASE.startswith("https:"), verify=False) as client:
        for name, method, path, upload, flags, fields in cases():
            if "expect" in flags:
                print(name, "skipped", sep="\t")
                continue
            body = body_of(upload, flags)
            try:
                answer = client.request(
                    method, BASE + path, headers=fields, content=body, follow_redirects="follow" in flags
                )
                tell(name, answer.status_code, answer.headers.multi_items(), answer.content)
            except httpx.HTTPError as error:
                tell_error(name, error)


def with_requests():
    import requests
    import urllib3

    urllib3.disable_warnings()
    session = requests.Session()
    for name, method, path, upload, flags, fields in cases():
        # requests cannot wait for a 100, and takes a 103 for the final response.
        if "expect" in flags or "interim" in flags:
            print(name, "skipped", sep="\t")
            continue
        body = body_of(upload, flags)
        try:
            answer = session.request(
                method, BASE + path, headers=fields, data=body, allow_redirects="follow" in flags, verify=False
            )
            tell(name, answer.status_code, answer.raw.headers.items(), answer.content)
        except requests.RequestException as error:
            tell_error(name, error)


if LIBRARY == "aiohttp":
    asyncio.run(with_aiohttp())
elif LIBRARY == "httpx":
    with_httpx()
else:
    with_requests()
