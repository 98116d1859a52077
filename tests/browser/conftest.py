"""A real browser, tabs that fail a test when anything goes wrong in them, and pages to open."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urldefrag, urlsplit

import pytest

from marked import marked
from sample_pages import write_page
from serving import Served, Store, serving, store

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
AXE = Path(__file__).parents[2] / ".venv/axe/node_modules/axe-core/axe.min.js"  # of make browser

Opener = Callable[..., Any]


@pytest.fixture(scope="module")
@marked(pytest.mark.engines("playwright"), pytest.mark.browser("chromium"), pytest.mark.slow)
def browser() -> Iterator[Any]:
    """A browser without a window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        yield found
        found.close()


@pytest.fixture
def opened(browser: Any) -> Iterator[Opener]:
    """Opens an address in a tab of its own; options are those of a browser context.

    At the end nothing may have been complained about, asked for elsewhere, or popped up.
    """
    faults: list[str] = []
    with ExitStack() as stack:

        def opener(address: str, **options: Any) -> Any:
            context = stack.enter_context(browser.new_context(**{"reduced_motion": "reduce", **options}))
            context.route("**/*", lambda route: _let_through(route, address, faults))
            tab = context.new_page()
            tab.set_default_timeout(10_000)
            tab.on("pageerror", lambda error: faults.append(str(error)))
            tab.on("console", lambda said: _note(said, faults))
            tab.on("dialog", lambda dialog: (faults.append(dialog.message), dialog.dismiss()))
            tab.goto(address)
            return tab

        yield opener
        assert faults == []


def _let_through(route: Any, address: str, faults: list[str]) -> None:
    """Only the file itself, or what its own server has."""
    asked = route.request.url
    parts = urlsplit(address)
    own = f"{parts.scheme}://{parts.netloc}/" if parts.netloc else urldefrag(address).url
    if asked.startswith(own):
        route.continue_()
    else:
        faults.append(asked)
        route.abort()


def _note(said: Any, faults: list[str]) -> None:
    if said.type in ("error", "warning"):
        faults.append(said.text)


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """The address of a page of some kind, on the disk; each is made once."""
    folder = tmp_path_factory.mktemp("pages")
    made: dict[str, str] = {}

    def address(kind: str) -> str:
        if kind not in made:
            made[kind] = write_page(kind, folder).as_uri()
        return made[kind]

    return address


@pytest.fixture
@marked(pytest.mark.browser(str(AXE)))
def violations() -> Callable[..., list[tuple[str, str]]]:
    """What axe-core complains about: the rule and the first element; ``rules`` narrows it to these."""
    source = AXE.read_text(encoding="utf-8")

    def found(tab: Any, *rules: str) -> list[tuple[str, str]]:
        if not tab.evaluate("'axe' in window"):
            tab.evaluate(source)
        options: dict[str, Any] = {"resultTypes": ["violations"]}
        if rules:
            options["runOnly"] = list(rules)
        # A chart is one image with a description; what it is drawn of is not read out.
        whole = {"include": [["html"]], "exclude": [["svg[data-chart] > *"]]}
        seen = tab.evaluate("([whole, options]) => axe.run(whole, options)", [whole, options])
        return [(each["id"], each["nodes"][0]["html"][:200]) for each in seen["violations"]]

    return found


@pytest.fixture(scope="module")
def serve() -> Iterator[Callable[[Path], Served]]:
    """Starts viewers over folders; they end with the last test of a file."""
    with ExitStack() as stack:
        yield lambda root: stack.enter_context(serving(root))


@pytest.fixture(name="store", scope="session")
def store_fixture() -> Store:
    """Writes a run directory."""
    return store
