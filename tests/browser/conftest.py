"""A real browser, tabs whose errors fail the test, and pages to open."""

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
    """A headless browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture
def opened(browser: Any) -> Iterator[Opener]:
    """Open an address in a new tab; options are those of a browser context.

    The test fails on an error, a warning, a dialog or a request to another origin.
    """
    faults: list[str] = []
    with ExitStack() as stack:

        def opener(address: str, **options: Any) -> Any:
            context = stack.enter_context(browser.new_context(**{"reduced_motion": "reduce", **options}))
            context.route("**/*", lambda route: _route_request(route, address, faults))
            tab = context.new_page()
            tab.set_default_timeout(10_000)
            tab.on("pageerror", lambda error: faults.append(str(error)))
            tab.on("console", lambda message: _record_console_message(message, faults))
            tab.on("dialog", lambda dialog: (faults.append(dialog.message), dialog.dismiss()))
            tab.goto(address)
            return tab

        yield opener
        assert faults == []


def _route_request(route: Any, address: str, faults: list[str]) -> None:
    """Allow only the file or its own server; record other requests as faults."""
    requested = route.request.url
    parts = urlsplit(address)
    allowed_prefix = f"{parts.scheme}://{parts.netloc}/" if parts.netloc else urldefrag(address).url
    if requested.startswith(allowed_prefix):
        route.continue_()
    else:
        faults.append(requested)
        route.abort()


def _record_console_message(message: Any, faults: list[str]) -> None:
    if message.type in ("error", "warning"):
        faults.append(message.text)


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """Return a function from the kind of a page to the address of its file; each page is written once."""
    folder = tmp_path_factory.mktemp("pages")
    addresses: dict[str, str] = {}

    def address(kind: str) -> str:
        if kind not in addresses:
            addresses[kind] = write_page(kind, folder).as_uri()
        return addresses[kind]

    return address


@pytest.fixture
@marked(pytest.mark.browser(str(AXE)))
def violations() -> Callable[..., list[tuple[str, str]]]:
    """Violations that axe-core finds: the rule and the first element; ``rules`` selects the rules."""
    source = AXE.read_text(encoding="utf-8")

    def run_axe(tab: Any, *rules: str) -> list[tuple[str, str]]:
        if not tab.evaluate("'axe' in window"):
            tab.evaluate(source)
        options: dict[str, Any] = {"resultTypes": ["violations"]}
        if rules:
            options["runOnly"] = list(rules)
        # A chart is one image with a description; screen readers skip its elements.
        context = {"include": [["html"]], "exclude": [["svg[data-chart] > *"]]}
        results = tab.evaluate("([context, options]) => axe.run(context, options)", [context, options])
        return [(violation["id"], violation["nodes"][0]["html"][:200]) for violation in results["violations"]]

    return run_axe


@pytest.fixture(scope="module")
def serve() -> Iterator[Callable[[Path], Served]]:
    """Start viewers for folders; they stop after the last test of a module."""
    with ExitStack() as stack:
        yield lambda root: stack.enter_context(serving(root))


@pytest.fixture(name="store", scope="session")
def store_fixture() -> Store:
    """Writes a run directory."""
    return store
