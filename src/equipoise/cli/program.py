"""The command ``eq``: its commands, and how it runs them."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from equipoise.cli import exits
from equipoise.cli.lazy import Entry, LazyGroup
from equipoise.cli.options import output_options
from equipoise.cli.output import Output

NAMES = ("eq", "equipoise")

COMMANDS = {
    "score": Entry("equipoise.cli.score:score", "Score runs or logits: each figure with how sure it is."),
    "compare": Entry("equipoise.cli.compare:compare", "Compare systems: who leads, and can the data tell?"),
    "fair": Entry("equipoise.cli.fair.group:fair", "Compare embedding models on a document of your own."),
    "places": Entry("equipoise.cli.places.group:places", "Score next-place models, beside their baselines."),
    "accounts": Entry(
        "equipoise.cli.accounts.group:accounts", "Embed a chart of accounts, or any tree, and judge it."
    ),
    "phenotypes": Entry(
        "equipoise.cli.phenotypes.group:phenotypes", "Find clinical terms, and compare what finds them."
    ),
    "concepts": Entry(
        "equipoise.cli.concepts.group:concepts", "See what a model knows of a field, in five scores."
    ),
    "report": Entry("equipoise.cli.report:report", "Make one page of results that opens from disk."),
    "audit": Entry("equipoise.cli.audit:audit", "Find figures in a published table that cannot be."),
    "gate": Entry("equipoise.cli.gate:gate", "Pass or fail a run in continuous integration."),
    "why": Entry("equipoise.cli.why:why", "Say why two libraries print different figures for one run."),
    "view": Entry("equipoise.cli.view:view", "Look at all results in a browser, live while one is running."),
    "export": Entry(
        "equipoise.cli.export:export", "Take results with you: LaTeX, Markdown, CSV, a model card."
    ),
    "demo": Entry("equipoise.cli.demo:demo", "Compare systems on data that comes with the program."),
    "embed": Entry("equipoise.cli.embed:embed", "Embed the texts of a file; nothing is embedded twice."),
    "index-quality": Entry(
        "equipoise.cli.index_quality:index_quality", "Measure what a vector index loses, and how fast it is."
    ),
    "cache": Entry("equipoise.cli.cache:cache", "Show or shrink the cache of vectors."),
    "ls": Entry("equipoise.cli.ls:ls", "List models, metrics, checks or tests."),
    "explain": Entry("equipoise.cli.explain:explain", "Explain a metric, a test or a code such as EQ301."),
    "doctor": Entry("equipoise.cli.doctor:doctor", "Show what is installed here and what is missing."),
    "completion": Entry("equipoise.cli.completion:completion", "Print the completion script of a shell."),
}

HELP = """Which embedding should I use for my data, and how sure can I be?

\b
  eq compare a.trec b.trec --qrels truth.qrels --primary nDCG@10
  eq score --run a.trec --qrels truth.qrels -m nDCG@10 -m MRR
"""

EPILOG = """\b
Exit codes: 0 done, 1 a gate or check failed, 2 usage or bad input, 3 finished
with failed units, 4 an extra, credential or device is missing, 130 interrupted.
"""


class Program(LazyGroup):
    """The whole command line; whatever goes wrong becomes a sentence and an exit code."""

    def main(self, *args: Any, **options: Any) -> Any:
        """Run, report, and leave with the exit code."""
        words = args[0] if args else options.get("args")
        words = list(sys.argv[1:] if words is None else words)
        name = options.get("prog_name") or _program_name()
        out = Output.of_words(words)
        _escape_what_cannot_be_printed()
        try:
            _answer_completion(self, name)
            code = self._run(words, name, out)
            sys.stdout.flush()
        except (Exception, KeyboardInterrupt) as error:
            code = exits.report(error, out)
        sys.exit(code)

    def _run(self, words: list[str], name: str, out: Output) -> int:
        # click's own main would end a broken pipe with 1, which here means that a gate failed.
        try:
            with self.make_context(name, words, obj=out) as context:
                code = self.invoke(context)
        except click.exceptions.Exit as end:
            code = end.exit_code
        return code if isinstance(code, int) else exits.DONE


def _answer_completion(program: click.Command, name: str) -> None:
    """Print what a shell could complete, and leave, if a shell is asking."""
    variable = f"_{name.upper()}_COMPLETE"
    asked = os.environ.get(variable)
    if asked:
        from click.shell_completion import shell_complete

        sys.exit(shell_complete(program, {}, name, variable, asked))


def _program_name() -> str:
    """The name that was typed, if it is one of ours: ``python -m equipoise`` is ``eq`` as well."""
    name = os.path.basename(sys.argv[0]).removesuffix(".exe")
    return name if name in NAMES else NAMES[0]


def _escape_what_cannot_be_printed() -> None:
    """A file name that the terminal cannot show is no reason to fail."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _print_version(ctx: click.Context, parameter: click.Parameter, asked: bool) -> None:
    if asked and not ctx.resilient_parsing:
        from equipoise.version import __version__

        sys.stdout.write(f"equipoise {__version__}\n")
        ctx.exit()


@click.group(
    cls=Program,
    entries=COMMANDS,
    help=HELP,
    epilog=EPILOG,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version.",
)
@output_options
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Show the help when no command is given."""
    if ctx.invoked_subcommand is None:
        sys.stdout.write(f"{ctx.get_help()}\n")
