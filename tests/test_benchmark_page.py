"""The page of the benchmarks states the machine of most sections once."""

from __future__ import annotations

from benchmarks.__main__ import HERE, PAGE, SHARED_MACHINE, replace_section

OLD, NEW = "October, one core.", "November, two cores."
EMPTY = "# Benchmarks\n\n<!-- table: written by python -m benchmarks -->\n\n<!-- end of table -->\n\nEnd.\n"


def section(name: str, machine: str) -> str:
    return f"### {name}: a title.\n\n{machine}\n\n| task |\n|------|\n| {name} |"


def page_of(**machines: str) -> str:
    page = EMPTY
    for name, machine in machines.items():
        page = replace_section(page, name, section(name, machine))
    return page


def test_a_shared_machine_is_stated_once() -> None:
    page = page_of(search=OLD, cache=OLD)
    assert page.count(OLD) == 1
    assert page.index(SHARED_MACHINE + OLD) < page.index("### cache") < page.index("### search") < page.index("End.")


def test_a_section_from_another_machine_states_its_own() -> None:
    page = page_of(search=OLD, cache=OLD, start=NEW)
    assert SHARED_MACHINE + OLD in page
    assert f"### start: a title.\n\n{NEW}\n\n| task |" in page


def test_the_shared_machine_is_that_of_most_sections() -> None:
    page = page_of(search=OLD, cache=OLD, start=OLD)
    for name in ("cache", "start"):
        page = replace_section(page, name, section(name, NEW))
    assert SHARED_MACHINE + NEW in page
    assert f"### search: a title.\n\n{OLD}\n\n| task |" in page
    assert page == page_of(search=OLD, cache=NEW, start=NEW)


def test_the_stored_page_is_as_it_is_written() -> None:
    page = PAGE.read_text(encoding="utf-8")
    names = [line[4:].partition(":")[0] for line in page.splitlines() if line.startswith("### ")]
    assert all((HERE / f"{name}.py").is_file() for name in names)
    machine = page.partition(SHARED_MACHINE)[2].partition("\n")[0]
    text = page[page.index("### start:") : page.index("### stores:")].strip()
    title, _, tables = text.partition("\n\n")
    assert replace_section(page, "start", f"{title}\n\n{machine}\n\n{tables}") == page
