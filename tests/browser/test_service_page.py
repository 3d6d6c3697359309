"""The service's page in a browser: by keyboard, on a phone, without JavaScript, with photos."""

from __future__ import annotations

import json
import runpy
import threading
from pathlib import Path

import numpy as np
import pytest

import faircal
from faircal.production.describe import describe
from faircal.production.monitoring import survey
from faircal.production.scoring.judging import Judge
from faircal.production.serving.access import KeyRing
from faircal.production.serving.app import make_app
from faircal.production.serving.service import Service, ServiceSettings

PAGES = runpy.run_path(str(Path(__file__).with_name("test_pages.py")))
serious, overflow, PHONE = PAGES["serious"], PAGES["overflow"], PAGES["PHONE"]
DESK = {"viewport": {"width": 1200, "height": 900}, "reduced_motion": "reduce"}
#: What a browser says of an answer that is an error in words: no fault of the page.
EXPECTED = "the server responded with a status of 4"


class Served:
    """A service behind a real server, in a thread."""

    def __init__(self, service):
        import uvicorn

        self.service = service
        told = uvicorn.Config(make_app(service), port=0, log_config=None, log_level="critical")
        self._server = uvicorn.Server(told)
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()
        while not self._server.started:
            if not self._thread.is_alive():
                raise RuntimeError("the server did not start")
            self._thread.join(0.01)
        self.url = f"http://127.0.0.1:{self._server.servers[0].sockets[0].getsockname()[1]}/"

    def stop(self):
        self._server.should_exit = True
        self._thread.join(20)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model file of 128-d embeddings, as dlib's are; and pairs that it never saw."""
    cal, test = faircal.simulate("small", seed=0, people=80, pairs=1200).split(test_fold=5)
    fitted = faircal.FairCal(n_clusters=5).fit(cal)
    describe(fitted, cal, intended_use="trying the page")
    survey(fitted, cal)
    path = tmp_path_factory.mktemp("model") / "m.faircal"
    fitted.save(path)
    pairs, vectors = test.pairs, test.embeddings.vectors
    said = Judge.of(fitted)(test.embeddings, pairs.left, pairs.right).probability
    at = {"same": int(np.argmax(said)), "different": int(np.argmin(said))}
    found = {name: (vectors[pairs.left[i]], vectors[pairs.right[i]]) for name, i in at.items()}
    strange = -fitted.about_.population.centers.sum(axis=0)  # where nobody was
    return path, {**found, "strange": (strange, strange)}


@pytest.fixture(scope="module")
def serve(model, tmp_path_factory):
    """Return a function that starts a service."""
    running = []

    def start(**settings):
        database = str(tmp_path_factory.mktemp("db") / "db.sqlite")
        found = Served(Service(ServiceSettings(model[0], **{"database": database, **settings})))
        running.append(found)
        return found

    yield start
    for one in running:
        one.stop()


@pytest.fixture(scope="module")
def plain(serve):
    """A service that takes no photos and asks for no key."""
    return serve()


@pytest.fixture
def visit(browser):
    """Return a function that opens a service's page; anything odd that happens in it is a fault."""
    contexts, faults = [], []

    def open_page(served, path="", **options):
        context = browser.new_context(**{**DESK, **options})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on("console", lambda said: EXPECTED in said.text or faults.append(said.text))
        page.on("pageerror", lambda error: faults.append(f"error: {error}"))
        page.on(
            "request",
            lambda asked: (
                asked.url.startswith((served.url, f"blob:{served.url}"))
                or faults.append(f"request: {asked.url}")
            ),
        )
        page.goto(served.url + path)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert faults == []


def text_of(vector):
    return json.dumps([round(float(value), 6) for value in vector])


def fill(page, pair):
    for side, vector in zip(("left", "right"), pair, strict=True):
        page.locator(f"input[name={side}_kind][value=numbers]").check()
        page.locator(f"#{side}_numbers").fill(text_of(vector))


def focused(page):
    """What has the focus: its id, and its text."""
    return page.evaluate("[document.activeElement.id, document.activeElement.textContent.trim()]")


def tab_to(page, wanted):
    """Press Tab until the element of that id has the focus; what is passed has a visible one."""
    for _ in range(40):
        page.keyboard.press("Tab")
        found, outline = page.evaluate(
            """() => {
              const at = document.activeElement;
              const seen = at.type === "radio" ? at.nextElementSibling : at;
              return [at.id || at.name, getComputedStyle(seen).outlineStyle];
            }"""
        )
        assert outline != "none", found
        if found == wanted:
            return
    raise AssertionError(f"no way to {wanted} by keyboard")


def small_targets(page):
    """What is to be pressed and is smaller than 24 pixels; links within sentences are exempt."""
    return page.evaluate(
        """() => [...document.querySelectorAll("a, button, input, textarea")].filter((e) => {
          const box = e.getBoundingClientRect();
          if (!box.width || e.closest("li > a, .soft a, .skip") && e.closest(".errors, .soft")
              || e.classList.contains("skip")) return false;
          return box.width < 24 || box.height < 24;
        }).map((e) => e.outerHTML.slice(0, 120))"""
    )


# ----------------------------------------------------------------------------- by keyboard


def test_two_embeddings_by_keyboard_only(visit, plain, model):
    page = visit(plain)
    page.keyboard.press("Tab")
    assert focused(page)[1] == "Skip to the content"
    page.keyboard.press("Enter")
    assert focused(page)[0] == "main"
    pair = model[1]["same"]
    tab_to(page, "left_kind")
    tab_to(page, "left_numbers")
    page.keyboard.insert_text(text_of(pair[0]))
    tab_to(page, "right_numbers")
    page.keyboard.insert_text(text_of(pair[1]))
    tab_to(page, "prior")
    page.keyboard.type("1 in 10")
    page.keyboard.press("Enter")
    page.locator("#result").wait_for()
    assert focused(page) == ["decision", "Same person"]
    said = page.locator("#result").inner_text()
    assert "such pairs are of one person (or more)" in said
    assert "1 pair in 10 is genuine" in said
    picture = page.get_by_role("img", name="This pair among the calibration pairs")
    assert picture.is_visible()
    assert page.title().startswith("Same person")
    # Once more with a mistake: it is named, focused and linked; all else stays.
    tab_to(page, "right_numbers")
    page.keyboard.press("Control+a")
    page.keyboard.type("1, 2, three")
    tab_to(page, "prior")
    page.keyboard.press("Enter")
    page.locator(".errors").wait_for()
    assert focused(page)[0] == "errors-title"
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert focused(page)[0] == "right_numbers"
    assert "value 3 is not a number" in page.locator("#right_numbers-wrong").inner_text()
    assert page.locator("#left_numbers").input_value() == text_of(pair[0])
    assert page.locator("#prior").input_value() == "1 in 10"


def test_ways_are_chosen_by_arrow_keys(visit, plain, model):
    plain.service.enrol("Ada", model[1]["different"][0], replace=True)
    page = visit(plain)
    tab_to(page, "left_kind")
    assert page.locator("#left_numbers").is_visible()
    page.keyboard.press("ArrowRight")
    assert page.locator("#left_numbers").is_hidden()
    tab_to(page, "left_name")
    page.keyboard.type("Ada")
    tab_to(page, "right_numbers")
    page.keyboard.insert_text(text_of(model[1]["different"][1]))
    tab_to(page, "prior")
    page.keyboard.press("Enter")
    page.locator("#result.different").wait_for()
    assert focused(page) == ["decision", "Different people"]
    assert page.locator("#left_name").input_value() == "Ada"


# ------------------------------------------------------------------------------- everywhere


@pytest.mark.parametrize("width", [320, 390])
def test_fits_a_phone(visit, plain, model, width):
    page = visit(plain, **{**PHONE, "viewport": {"width": width, "height": 800}})
    assert overflow(page) is None
    assert small_targets(page) == []
    fill(page, model[1]["different"])
    page.locator("button.main").tap()
    page.locator("#result.different").wait_for()
    assert overflow(page) is None
    assert small_targets(page) == []
    page.locator("#prior").fill("never")
    page.locator("button.main").tap()
    page.locator(".errors").wait_for()
    assert overflow(page) is None


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_fault(visit, plain, model, scheme):
    page = visit(plain, color_scheme=scheme)
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(16, 21, 28)"
    assert dark == (scheme == "dark")
    found = serious(page)
    for name, place in (("same", "#result"), ("strange", ".warning >> text=unlike")):
        fill(page, model[1][name])
        page.locator("button.main").click()
        page.locator(place).wait_for()
        found += serious(page)
    page.locator("#left_numbers").fill("")
    page.locator("button.main").click()
    page.locator(".errors").wait_for()
    found += serious(page)
    assert not found, "\n".join(found)


def test_works_without_javascript(visit, plain, model):
    page = visit(plain, java_script_enabled=False)
    fill(page, model[1]["same"])
    page.locator("button.main").click()
    assert page.locator("h1:focus").inner_text() == "Same person"
    assert page.locator("[data-live=pairs]").inner_text() == f"{plain.service.counts.pairs:,}"
    page.locator("#left_numbers").fill("x")
    page.locator("button.main").click()
    assert page.locator("h2:focus").inner_text() == "One thing is not right yet"
    assert page.locator("#right_numbers").input_value() == text_of(model[1]["same"][1])
    page.locator("input[name=left_kind][value=name]").check()
    assert page.locator("#left_numbers").is_hidden()
    page.locator("#left_name").fill("nobody")
    page.locator("button.main").click()
    assert "no template of this name" in page.locator("#left_name-wrong").inner_text()


def test_counters_move_by_themselves(visit, plain, model):
    page = visit(plain)
    before = plain.service.counts.pairs
    place = page.locator("[data-live=pairs]")
    assert place.inner_text() == f"{before:,}"
    plain.service.verify(*model[1]["same"])
    page.wait_for_function(
        "text => document.querySelector('[data-live=pairs]').textContent === text",
        arg=f"{before + 1:,}",
    )
    page.route("**/live", lambda route: route.fulfill(status=429))
    page.get_by_text("The service does not answer; these are the last numbers.").wait_for()


def test_a_service_that_does_not_answer_loses_nothing(visit, plain, model):
    page = visit(plain)
    fill(page, model[1]["same"])
    page.route(plain.url, lambda route: route.fulfill(status=499, body=""))
    page.locator("button.main").click()
    page.get_by_role("alert").get_by_text("does not answer").wait_for()
    page.unroute(plain.url)
    said = "<main><p class=lead>Wait a moment.</p></main>"
    page.route(plain.url, lambda route: route.fulfill(status=429, body=said))
    page.locator("button.main").click()
    page.get_by_role("alert").get_by_text("Wait a moment.").wait_for()
    page.unroute(plain.url)
    page.locator("button.main").click()
    page.locator("#result").wait_for()


def test_the_card_opens(visit, plain):
    page = visit(plain)
    page.get_by_role("link", name="Read the model card").click()
    assert "trying the page" in page.locator("body").inner_text()
    assert page.evaluate("getComputedStyle(document.body).maxWidth") != "none"  # it has its style


def test_keys_in_the_browser(visit, serve, model, tmp_path):
    key = KeyRing.at(tmp_path / "keys.json").add("desk", ["verify"])
    served = serve(keys=tmp_path / "keys.json", database=None)
    page = visit(served)
    assert page.locator("[data-live]").count() == 0
    fill(page, model[1]["same"])
    page.locator("#key").fill("guess")
    page.locator("button.main").click()
    page.locator("#key-wrong").wait_for()
    assert page.locator("#key[aria-invalid=true]").input_value() == "guess"  # of the browser's own
    page.locator("#key").fill(key)
    page.locator("button.main").click()
    page.locator("#result").wait_for()
    assert page.locator("#key").input_value() == key
    assert page.locator("#key[aria-invalid]").count() == 0
    assert key not in page.content()
    page.get_by_text("looked at every two seconds").wait_for()
    page.get_by_role("button", name="Read the model card").click()
    page.get_by_text("trying the page").first.wait_for()


def test_two_photos(visit, serve, tmp_path):
    pytest.importorskip("dlib")
    image = pytest.importorskip("PIL.Image")
    data = pytest.importorskip("skimage.data")
    face = data.astronaut()[20:220, 120:320]
    files = {"face": face, "mirrored": face[:, ::-1], "cup": data.coffee()[:200, :300]}
    for name, pixels in files.items():
        image.fromarray(np.ascontiguousarray(pixels)).save(tmp_path / f"{name}.png")
    page = visit(serve(network="dlib", database=None))
    page.locator("#left_photo").set_input_files(tmp_path / "face.png")
    page.locator("#right_photo").set_input_files(tmp_path / "cup.png")
    assert page.locator("#left .drop img").evaluate("i => i.decode().then(() => i.naturalWidth)")
    page.locator("button.main").click()
    page.locator("#right_photo-wrong").wait_for()
    assert "no face was found" in page.locator("#right_photo-wrong").inner_text().lower()
    # The first one need not be chosen again.
    page.locator("#right_photo").set_input_files(tmp_path / "mirrored.png")
    page.locator("button.main").click()
    page.locator("#result").wait_for()
    assert page.locator("#decision").inner_text() == "Same person"
    assert page.locator("#result img").count() == 0
    page.locator("#left").get_by_role("button", name="Remove the file").click()
    assert page.locator("#left .drop img").count() == 0
    page.locator("button.main").click()
    page.locator("#left_photo-wrong").wait_for()
