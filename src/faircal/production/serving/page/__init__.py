"""The page at ``/``: two faces in, an answer in words; the model's card, live counters."""

from __future__ import annotations

import re
from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

from fastapi import APIRouter, Request
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.responses import HTMLResponse, JSONResponse, Response

from faircal._version import __version__
from faircal.production.serving.access import Access
from faircal.production.serving.bodies import BodyReader, Refused
from faircal.production.serving.page.answer import (
    answer,
    decimals,
    live,
    one_in,
    probability,
    rule,
    sentence,
    share_in_words,
    times,
)
from faircal.production.serving.page.form import (
    CARD,
    COMPARE,
    KINDS,
    LOOK,
    MOST_TEXT,
    SIDES,
    FormErrors,
    PageForm,
    compare,
    groups_needed,
    read_form,
)
from faircal.production.serving.service import Service

__all__ = ["page_router"]

#: Files beside this one that the page asks for, with their types.
_STATIC = {
    "page.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
#: Forms of the largest size that are read or answered at a time.
_FORMS = 4

#: Titles for codes of refusals; the message stands below, for people as for machines.
_TITLES = {
    "too_large": "The files are too large",
    "rate": "Too many requests",
    "busy": "Much is going on",
    "slow": "That took too long",
    "host": "Not under this name",
    "origin": "This form was sent from another site",
    "no_form": "This is not the page's form",
    "broken_form": "The form did not arrive whole",
    "no_key": "A key is needed",
    "no_file": "There is no such file",
}
_NO_KEY = Refused(401, "no_key", "fill in your API key on the page, and ask for the card there")
_NO_FILE = Refused(404, "no_file", "go back to the page")


def page_router(service: Service, access: Access | None = None) -> APIRouter:
    """Return the routes of a service's page; none of them is in the OpenAPI description.

    `access` is the application's own, so that the form is no way round its rate limit.
    """
    router = APIRouter(include_in_schema=False)
    pages, gate = _Pages(service), access or Access(service)
    settings = service.settings
    most_bytes = min(settings.max_body, 2 * settings.max_picture + 2 * MOST_TEXT)
    # Not the API's: forms are read before their keys are known, and must not fill its memory.
    bodies = BodyReader(_FORMS * most_bytes)

    @router.get("/")
    def show() -> Response:
        kind = "photo" if service.takes_pictures else "numbers"  # photos first, where taken
        empty = PageForm({f"{side}_kind": kind for side in SIDES})
        return pages.form(empty, has_key=not service.has_keys)

    @router.post("/")
    async def verify(request: Request) -> Response:
        try:
            _check_origin(request.headers)
            async with bodies.body(request, most_bytes) as body:
                return await pages.respond(request, await read_form(request, body), gate)
        except Refused as refused:
            return pages.declined(refused)

    @router.get("/card")
    def card(request: Request) -> Response:
        return pages.card() if _has_key(service, request) else pages.declined(_NO_KEY)

    @router.get("/live")
    def now(request: Request) -> Response:
        if not _has_key(service, request):
            return JSONResponse({}, 401, {"WWW-Authenticate": "Bearer"})
        return JSONResponse(live(service), headers={"Cache-Control": "no-store"})

    @router.get("/static/{name}")
    def static(name: str) -> Response:
        # Names are looked up in a table, never joined to a path: nothing else can be read.
        if name not in _STATIC:
            return pages.declined(_NO_FILE)
        headers = {
            # Its address has a hash of it: another version is another address.
            "Cache-Control": "public, max-age=31536000, immutable",
            "X-Content-Type-Options": "nosniff",
        }
        return Response(_content(name), media_type=_STATIC[name], headers=headers)

    return router


def _has_key(service: Service, request: Request) -> bool:
    """Tell whether a key is not needed, or came with the request and is valid."""
    return not service.has_keys or service.who(request.headers.get("x-api-key")) is not None


class _Pages:
    """Makes pages of one service."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._environment = Environment(
            loader=PackageLoader("faircal.production.serving.page"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters |= {
            each.__name__: each
            for each in (sentence, one_in, rule, share_in_words, decimals, times, probability)
        }
        self._environment.globals |= {"version": __version__, "static": _address, "sides": SIDES}

    async def respond(self, request: Request, filled: PageForm, gate: Access) -> Response:
        """Answer who asks by the form, where the key is good for it; count as the service does.

        Raises
        ------
        Refused
            Where it is too often, or under a name that is not the service's.
        """
        scope = "verify" if filled.action == COMPARE else None
        try:
            who = gate.admit(request, scope, filled.text("key") or None).name
        except Refused as refused:
            key_needed = "a key is needed; ask whoever runs the service"
            words = {
                "key": "this key is not known here" if filled.text("key") else key_needed,
                "scope": "this key is not good for verifying; use another",
            }
            # Only what another key would change is shown beside the field of the key.
            if refused.code not in words:
                raise
            wrong = FormErrors(refused.status, key=words[refused.code])
            return await run_in_threadpool(self.form, filled, wrong, has_key=False)
        return await run_in_threadpool(self.act, filled, who)

    def act(self, filled: PageForm, who: str) -> Response:
        """Do what was asked for, and show what comes of it."""
        if filled.action == CARD:
            return self.card()
        if filled.action == LOOK:
            return self.form(filled, looked=True)
        in_use = self._service.in_use  # the answer and its histogram are of one model
        try:
            verified = compare(self._service, in_use, filled, who)
        except FormErrors as wrong:
            return self.form(filled, wrong)
        return self.form(filled, answer=answer(verified, in_use.judge))

    def form(
        self,
        filled: PageForm,
        wrong: FormErrors | None = None,
        *,
        has_key: bool = True,
        looked: bool = False,
        **more: Any,
    ) -> Response:
        """Return the page, with what was filled in and what is wrong with it.

        `has_key` says whether who asks has a key, where keys are needed: others see neither model
        nor counters. `looked`: they were asked for, and come into view.
        """
        service, in_use = self._service, self._service.in_use
        verdict = service.monitor.verdict if has_key else None
        offered = {"photo": service.takes_pictures, "name": service.store is not None}
        context = {
            "service": service,
            "in_use": in_use,
            "filled": filled,
            "wrong": {} if wrong is None else wrong.fields,
            "kinds": {kind: words for kind, words in KINDS.items() if offered.get(kind, True)},
            "groups": groups_needed(in_use),
            "has_key": has_key,
            "looked": looked,
            "due": verdict.words if verdict is not None and verdict.due else "",
            "counters": live(service) if has_key else {},
            "answer": None,
        }
        status = 200 if wrong is None else wrong.status
        return self._render("page.html", status, **(context | more))

    def card(self) -> Response:
        """Return the card of the model in use."""
        from faircal.report.card import card_html

        page = card_html(self._service.in_use.model)
        inline = {name: _hashes(page, name) for name in ("style", "script")}
        return HTMLResponse(page, headers=_policy(**inline))

    def declined(self, refused: Refused) -> Response:
        """Return a page that says why there is nothing else."""
        title = _TITLES.get(refused.code, "This can't be answered")
        words = sentence(refused.message)
        return self._render("declined.html", refused.status, title=title, words=words)

    def _render(self, name: str, status: int, **context: Any) -> Response:
        text = self._environment.get_template(name).render(context)
        return HTMLResponse(text, status, headers=_policy())


@cache
def _content(name: str) -> bytes:
    return files("faircal.production.serving.page").joinpath(name).read_bytes()


@cache
def _address(name: str) -> Markup:
    return Markup("/static/{}?v={}").format(name, sha256(_content(name)).hexdigest()[:12])


def _policy(*, style: str = "'self'", script: str = "'self'") -> dict[str, str]:
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
        # A page may hold an embedding that was filled in: no cache, shared or not, may keep it.
        "Cache-Control": "no-store",
    }


def _hashes(page: str, element: str) -> str:
    """Return what a policy must say for the inline ``<style>`` or ``<script>`` of a page of ours.

    Examples
    --------
    >>> _hashes("<style>a{}</style>", "style")
    "'sha256-X1RutGBrXCt9KkSaXMK7tHftWiRscFHOhxsS8tv8hBk='"
    >>> _hashes("<p>", "script")
    "'none'"
    """
    texts = re.findall(rf"<{element}(?:\s[^>]*)?>(.*?)</{element}>", page, re.DOTALL)
    digests = (b64encode(sha256(text.encode()).digest()).decode() for text in texts)
    return " ".join(f"'sha256-{digest}'" for digest in digests) or "'none'"


def _check_origin(headers: Headers) -> None:
    """Refuse a form that a browser sent from another site.

    There is no cookie to abuse; but who runs the service without keys on his own machine has a
    browser that other sites speak to, too. What is not a browser sends neither header.
    """
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site is not None:
        elsewhere = site not in ("same-origin", "none")
    else:
        host = headers.get("host", "").lower()
        elsewhere = origin is not None and urlsplit(origin).netloc.lower() != host
    if elsewhere:
        raise Refused(403, "origin", "open this page itself, fill in its form, and send that")
