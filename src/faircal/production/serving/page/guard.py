"""What keeps others out of the page: headers of every answer, and forms sent from elsewhere."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request

from faircal.production.serving.access import Access
from faircal.production.serving.page.compare import FormErrors
from faircal.production.serving.page.form import Declined
from faircal.production.serving.problems import Refused
from faircal.production.serving.service import Service

_KEY_HEADERS = (b"x-api-key", b"authorization")
_ELSEWHERE = Declined(
    403,
    "This form was sent from another site",
    "Open this page itself, fill in its form, and send that.",
)


def admit(access: Access, request: Request, key: str, scope: str | None) -> str:
    """Return the name of whose key was filled in, and count the request as the service does.

    Raises
    ------
    Wrong
        Where the key is not known here, or not good for this.
    Refused
        Where it is too often, or under a name that is not the service's.
    """
    headers = request.scope["headers"]
    if key:
        headers = [pair for pair in headers if pair[0] not in _KEY_HEADERS]
        headers.append((b"x-api-key", key.encode("utf-8", "replace")))
    try:
        name = access.admit(Request({**request.scope, "headers": headers}), scope).name
    except Refused as refused:
        if refused.code not in ("key", "scope"):
            raise
        asked = "a key is needed; ask whoever runs the service"
        words = "this key is not known here" if key else asked
        if refused.code == "scope":
            words = "this key is not good for verifying; use another"
        raise FormErrors(refused.status, key=words) from None
    request.scope["faircal.key"] = name  # for the access log
    return name


def knows_key(service: Service, request: Request) -> bool:
    """Tell whether a key is not needed, or came with the request and is known."""
    return not service.has_keys or service.who(request.headers.get("x-api-key")) is not None


def declined(refused: Refused) -> Declined:
    """Return what people are told where the service refuses a request."""
    title, words = _WORDS.get(refused.code, ("This can't be answered", refused.message))
    return Declined(refused.status, title, words)


_WORDS = {
    "too_large": (
        "The files are too large",
        "Make the photos smaller, or send embeddings; then try again.",
    ),
    "rate": ("Too many requests", "Wait a moment, then try again."),
    "busy": ("Much is going on", "Wait a moment, then try again."),
    "slow": ("That took too long", "The form did not come through in time; try again."),
    "host": (
        "Not under this name",
        "Without keys the service answers to addresses and localhost only.",
    ),
}


def policy(*, style: str = "'self'", script: str = "'self'") -> dict[str, str]:
    """Return the headers of a page: nothing is fetched but from here, nobody may frame it."""
    return {
        "Content-Security-Policy": (
            f"default-src 'none'; script-src {script}; style-src {style}; img-src 'self' blob: "
            "data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
        ),
        # Not no-referrer: with it browsers would send our own form with "Origin: null".
        "Referrer-Policy": "same-origin",
        "X-Content-Type-Options": "nosniff",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
        "Cache-Control": "no-store",
    }


def hashes(page: str, element: str) -> str:
    """Return what a policy must say for the inline ``<style>`` or ``<script>`` of a page of ours.

    Examples
    --------
    >>> hashes("<style>a{}</style>", "style")
    "'sha256-X1RutGBrXCt9KkSaXMK7tHftWiRscFHOhxsS8tv8hBk='"
    >>> hashes("<p>", "script")
    "'none'"
    """
    texts = re.findall(rf"<{element}(?:\s[^>]*)?>(.*?)</{element}>", page, re.DOTALL)
    digests = (b64encode(sha256(text.encode()).digest()).decode() for text in texts)
    return " ".join(f"'sha256-{digest}'" for digest in digests) or "'none'"


def check_origin(headers: Headers) -> None:
    """Refuse a form that a browser sent from another site.

    There is no cookie to abuse; but who runs the service without keys on his own machine has a
    browser that other sites speak to, too. What is not a browser sends neither header.
    """
    site = headers.get("sec-fetch-site")
    if site is not None:
        if site not in ("same-origin", "none"):
            raise _ELSEWHERE
        return
    origin = headers.get("origin")
    if origin is not None and urlsplit(origin).netloc.lower() != headers.get("host", "").lower():
        raise _ELSEWHERE
