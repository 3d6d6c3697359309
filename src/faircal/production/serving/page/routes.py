"""The routes of the page: itself, its form, the model's card, live counters, static files."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any

from fastapi import APIRouter, Request
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, JSONResponse, Response

from faircal._version import __version__
from faircal.production.serving.access import Access
from faircal.production.serving.bodies import BodyReader
from faircal.production.serving.page.answer import answer, sentence
from faircal.production.serving.page.compare import FormErrors, PageContent, compare, live
from faircal.production.serving.page.form import (
    CARD,
    COMPARE,
    LOOK,
    MOST_TEXT,
    Declined,
    PageForm,
    read_form,
)
from faircal.production.serving.page.guard import (
    admit,
    check_origin,
    declined,
    hashes,
    knows_key,
    policy,
)
from faircal.production.serving.problems import Refused
from faircal.production.serving.service import Service

#: Files beside this one that the page asks for, with their types.
_STATIC = {
    "page.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
#: Forms of the largest size that are read or answered at a time.
_FORMS = 4

_NO_KEY = Declined(
    401, "A key is needed", "Fill in your API key on the page, and ask for the card there."
)


def page_router(service: Service, access: Access | None = None) -> APIRouter:
    """Return the routes of a service's page; none of them is in the OpenAPI description.

    Parameters
    ----------
    service : Service
    access : Access, optional
        The application's own, so that the form is no way round its rate limit.
    """
    router = APIRouter(include_in_schema=False)
    draw, gate = _Drawing(service), access or Access(service)
    settings = service.settings
    most_bytes = min(settings.max_body, 2 * settings.max_picture + 2 * MOST_TEXT)
    # Not the API's: forms are read before their keys are known, and must not fill its memory.
    bodies = BodyReader(_FORMS * most_bytes)

    @router.get("/")
    def show() -> Response:
        empty = PageForm.empty(service.takes_pictures)
        return draw.page(empty, PageContent(service.in_use.judge, known=not service.has_keys))

    @router.post("/")
    async def verify(request: Request) -> Response:
        try:
            check_origin(request.headers)
            async with bodies.body(request, most_bytes) as body:
                return await draw.asked(request, await read_form(request, body), gate)
        except Refused as refused:
            return draw.declined(declined(refused))
        except Declined as why:
            return draw.declined(why)

    @router.get("/card")
    def card(request: Request) -> Response:
        return draw.card() if knows_key(service, request) else draw.declined(_NO_KEY)

    @router.get("/live")
    def now(request: Request) -> Response:
        if not knows_key(service, request):
            return JSONResponse({}, 401, {"WWW-Authenticate": "Bearer"})
        texts = {one.name: one.text for one in live(service)}
        return JSONResponse(texts, headers={"Cache-Control": "no-store"})

    @router.get("/static/{name}")
    def static(name: str) -> Response:
        if name not in _STATIC:
            return draw.declined(Declined(404, "There is no such file", "Go back to the page."))
        headers = {
            # Its address has a hash of it: another version is another address.
            "Cache-Control": "public, max-age=31536000, immutable",
            "X-Content-Type-Options": "nosniff",
        }
        return Response(_content(name), media_type=_STATIC[name], headers=headers)

    return router


class _Drawing:
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
        self._environment.filters["sentence"] = sentence
        self._environment.globals |= {"version": __version__, "static": _address}

    async def asked(self, request: Request, filled: PageForm, gate: Access) -> Response:
        """Answer who asks by the form, where the key is good for it."""
        try:
            scope = "verify" if filled.wanted == COMPARE else None
            who = admit(gate, request, filled.key, scope)
        except FormErrors as wrong:
            page = PageContent(
                self._service.in_use.judge, None, wrong.fields, wrong.status, known=False
            )
            return await run_in_threadpool(self.page, filled, page)
        return await run_in_threadpool(self.wanted, filled, who)

    def wanted(self, filled: PageForm, who: str) -> Response:
        """Do what was asked for, and show what comes of it."""
        if filled.wanted == CARD:
            return self.card()
        if filled.wanted == LOOK:
            return self.page(filled, PageContent(self._service.in_use.judge), looked=True)
        content = compare(self._service, filled, who)
        if content.said is None:
            return self.page(filled, content)
        return self.page(filled, content, answer=answer(content.said, content.judge))

    def page(self, filled: PageForm, shown: PageContent, **more: Any) -> Response:
        """Return the page, with what was filled in and what is wrong with it."""
        context = shown.context(self._service, filled) | {"answer": None, "looked": False} | more
        return self._render("page.html", shown.status, **context)

    def card(self) -> Response:
        """Return the card of the model in use."""
        from faircal.report.card import card_html

        page = card_html(self._service.in_use.judge.model)
        inline = {name: hashes(page, name) for name in ("style", "script")}
        return HTMLResponse(page, headers=policy(**inline))

    def declined(self, why: Declined) -> Response:
        """Return a page that says why there is nothing else."""
        return self._render("declined.html", why.status, title=why.title, words=why.words)

    def _render(self, name: str, status: int, **context: Any) -> Response:
        text = self._environment.get_template(name).render(context)
        return HTMLResponse(text, status, headers=policy())


@cache
def _content(name: str) -> bytes:
    return files("faircal.production.serving.page").joinpath(name).read_bytes()


@cache
def _address(name: str) -> Markup:
    return Markup("/static/{}?v={}").format(name, sha256(_content(name)).hexdigest()[:12])
