"""The command ``eq``: its commands, and how it runs them."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from equipoise.cli import options, output
from equipoise.cli.options import output_options
from equipoise.cli.output import Output, pass_output
from equipoise.errors import MissingExtraError, UnknownNameError, did_you_mean

# Groups of commands that load a command's module only when it is invoked.


@dataclass(frozen=True, slots=True)
class CommandEntry:
    """A command as ``module:name``, and its summary in the list of commands."""

    target: str
    summary: str


class SuggestingGroup(click.Group):
    """A group that suggests the nearest command for an unknown one, and shows its help without a command."""

    command_class = options.SectionedCommand
    context_class = options.HelpContext

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Show the help if there is no command. Newer versions of click raise an error instead."""
        if not args and self.no_args_is_help and not ctx.resilient_parsing:
            click.echo(ctx.get_help(), color=ctx.color)
            ctx.exit()
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command with the name of the first argument."""
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None and not ctx.resilient_parsing:
            raise UnknownNameError(f"{ctx.command_path} has no command {name!r}", hint=self._pointer(ctx, name))
        return super().resolve_command(ctx, args)

    def _pointer(self, ctx: click.Context, name: str) -> str:
        """The command that a user who types ``name`` in this group is looking for."""
        path = " ".join([*ctx.command_path.split()[1:], name])
        if path in output.pointers("commands"):
            return str(output.pointers("commands")[path])
        known = self.list_commands(ctx)
        if "run" in known and Path(name).exists():
            return f"did you mean {ctx.command_path} run {shlex.quote(name)}?"
        if name in RESULT_COMMANDS:
            return f"eq {name} works on the results of every command: see eq {name} --help"
        suggestion = did_you_mean(name, known, cutoff=output.LEAST_SIMILARITY)
        if name in COMMANDS and not suggestion:
            return f"eq {name} is a command of its own: see eq {name} --help"
        return suggestion or f"{ctx.command_path} has {', '.join(known)}"


class LazyGroup(SuggestingGroup):
    """A group whose commands are listed in a table. The help reads the table and imports no command.

    ``aliases`` are commands of other groups, which also work here but are not listed.
    """

    def __init__(
        self,
        *args: Any,
        entries: Mapping[str, CommandEntry],
        aliases: Mapping[str, CommandEntry] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(*args, **options)
        self.entries, self.aliases = entries, aliases or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in the order of the table."""
        return list(self.entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command, if it exists."""
        entry = self.entries.get(cmd_name) or self.aliases.get(cmd_name)
        if entry is None:
            return None
        module, _, attribute = entry.target.partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands in the help, from the table."""
        self.write_section(formatter, "Commands", self.entries)

    def write_section(self, formatter: click.HelpFormatter, title: str, names: Iterable[str]) -> None:
        """A heading and the commands below it, all headings with the same column width."""
        width = max(map(len, self.entries))
        with formatter.section(title):
            formatter.write_dl([(name.ljust(width), self.entries[name].summary) for name in names])


NAMES = ("eq", "equipoise")

COMMANDS = {
    "demo": CommandEntry("equipoise.domains.fair.cli:demo", "Compare models on sample data."),
    "score": CommandEntry("equipoise.cli.score:score", "Score runs or logits, with confidence intervals."),
    "compare": CommandEntry("equipoise.cli.compare:compare", "Compare systems with paired significance tests."),
    "gate": CommandEntry("equipoise.cli.gate:gate", "Pass or fail a run in continuous integration."),
    "bench": CommandEntry("equipoise.domains.bench.cli:bench", "Benchmark embedding models on your own data."),
    "leaderboard": CommandEntry("equipoise.domains.bench.cli:leaderboard", "Show the uncertainty of published ranks."),
    "fair": CommandEntry("equipoise.domains.fair.cli:fair", "Compare embedding models on your own document."),
    "places": CommandEntry("equipoise.domains.places.cli:places", "Score next-place models and their baselines."),
    "accounts": CommandEntry(
        "equipoise.domains.accounts.cli:accounts", "Embed a chart of accounts or another tree, and evaluate it."
    ),
    "phenotypes": CommandEntry(
        "equipoise.domains.phenotypes.cli:phenotypes", "Find phenotype terms in text, and compare models."
    ),
    "concepts": CommandEntry("equipoise.domains.concepts.cli:concepts", "Score sentence models on a concept set."),
    "report": CommandEntry("equipoise.cli.report:report", "Write an HTML report of results."),
    "view": CommandEntry("equipoise.view.cli:view", "Show all results in a browser."),
    "export": CommandEntry("equipoise.cli.report:export", "Export results as LaTeX, Markdown, CSV or a model card."),
    "why": CommandEntry("equipoise.reproduce.cli:why", "Explain why two libraries score the same run differently."),
    "audit": CommandEntry("equipoise.audit.cli:audit", "Find impossible values in a published table."),
    "embed": CommandEntry("equipoise.cli.embed:embed", "Embed the texts of a file, with a cache."),
    "index-quality": CommandEntry(
        "equipoise.cli.index_quality:index_quality", "Measure recall and speed of a vector index."
    ),
    "cache": CommandEntry("equipoise.cli.environment:cache", "Show or prune the vector cache."),
    "ls": CommandEntry("equipoise.cli.ls:ls", "List models, metrics, checks or tests."),
    "explain": CommandEntry("equipoise.cli.explain:explain", "Explain a metric, a test or a code such as EQ301."),
    "doctor": CommandEntry("equipoise.cli.environment:doctor", "Show installed and missing packages."),
    "completion": CommandEntry("equipoise.cli.main:completion", "Print a shell completion script."),
}

RESULT_COMMANDS = ("compare", "report", "view", "export")
"""Commands that read the results of the applications."""

SECTIONS = {
    "Evaluate and compare": ("demo", "bench", "score", "compare", "gate", "leaderboard"),
    "Applications": ("fair", "places", "accounts", "phenotypes", "concepts"),
    "Results": ("report", "view", "export", "why", "audit"),
    "Models and data": ("embed", "index-quality", "cache", "ls"),
    "Help": ("explain", "doctor", "completion"),
}
"""The headings of ``eq --help`` and their commands."""

HELP = """Which embedding should I use for my data, and how sure can I be?

\b
  eq demo
  eq score a.trec b.trec --qrels truth.qrels -m nDCG@10
  eq compare a.trec b.trec --qrels truth.qrels -m nDCG@10
"""

EPILOG = """\b
Exit codes: 0 success, 1 a gate or check failed, 2 usage error or bad input,
3 partially completed (some models or items failed, or the disk was full or a
connection was lost; repeat the command to resume), 4 an extra, credential or
device is missing, 70 a bug in equipoise, 130 interrupted.
"""


class App(LazyGroup):
    """The whole command line. Every exception becomes a message and an exit code."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands under their headings."""
        for title, names in SECTIONS.items():
            self.write_section(formatter, title, [name for name in names if name in self.entries])

    def main(self, *args: Any, **options: Any) -> Any:
        """Run the command, report errors, and exit with the exit code."""
        words = args[0] if args else options.get("args")
        words = list(sys.argv[1:] if words is None else words)
        name = options.get("prog_name") or _program_name()
        out = Output.of_words(words)
        _escape_unprintable()
        try:
            _answer_completion(self, name)
            code = self._run(words, name, out)
            out.finish()
            sys.stdout.flush()
        except (Exception, KeyboardInterrupt) as error:
            code = output.report(error, out)
        sys.exit(code)

    def _run(self, words: list[str], name: str, out: Output) -> int:
        # The main function of click exits with 1 on a broken pipe. Here 1 means that a gate failed.
        try:
            with self.make_context(name, words, obj=out) as context:
                code = self.invoke(context)
        except click.exceptions.Exit as end:
            code = end.exit_code
        return code if isinstance(code, int) else output.DONE


def _answer_completion(program: click.Command, name: str) -> None:
    """Print completions and exit, if a shell requests them."""
    variable = f"_{name.upper()}_COMPLETE"
    instruction = os.environ.get(variable)
    if instruction:
        from click.shell_completion import shell_complete

        sys.exit(shell_complete(program, {}, name, variable, instruction))


def _program_name() -> str:
    """``eq`` or ``equipoise``, as called; ``eq`` for ``python -m equipoise``."""
    name = os.path.basename(sys.argv[0]).removesuffix(".exe")
    return name if name in NAMES else NAMES[0]


def _escape_unprintable() -> None:
    """Escape characters that the encoding of the terminal does not contain, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _print_version(ctx: click.Context, parameter: click.Parameter, requested: bool) -> None:
    if requested and not ctx.resilient_parsing:
        from equipoise import __version__

        sys.stdout.write(f"equipoise {__version__}\n")
        ctx.exit()


@click.group(
    cls=App,
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


def main() -> None:
    """Run the command line with the arguments of the process."""
    cli.main()


# ``eq completion``: a shell script that completes commands, options and metrics.

COMPLETION_HELP = """
\b
  source <(eq completion bash)
  eq completion fish > ~/.config/fish/completions/eq.fish

Print the completion script for bash, zsh or fish. It completes commands, options, and the names of metrics after -m.
If the command is run as equipoise, the script completes that name instead of eq.
"""

SHELLS = ("bash", "zsh", "fish")


@options.command(help=COMPLETION_HELP, short_help="Print a completion script.")
@click.argument("shell", type=options.ChoiceWithHint("shell", lambda: SHELLS))
@options.output_options
@pass_output
@click.pass_context
def completion(ctx: click.Context, out: Output, shell: str) -> None:
    """See ``COMPLETION_HELP``."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    if kind is None:
        raise MissingExtraError(f"this version of click has no completion for {shell}", hint="pip install -U click")
    root = ctx.find_root()
    name = root.info_name or "eq"
    completer = kind(root.command, {}, name, f"_{name.upper()}_COMPLETE")
    # source() of click starts a shell to read its version. The script does not need it.
    script = completer.source_template % completer.source_vars()
    if out.json:
        out.data({"shell": shell, "script": script})
    else:
        out.text(script)
