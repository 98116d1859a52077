"""``eq completion``: the script that teaches a shell to complete our commands, options and metrics."""

from __future__ import annotations

import click

from equipoise.cli import options
from equipoise.cli.output import Output, pass_output
from equipoise.errors import MissingExtraError

HELP = """
\b
  source <(eq completion bash)
  eq completion fish > ~/.config/fish/completions/eq.fish

Print the completion script for SHELL: bash, zsh or fish. It completes commands, options,
and the names of metrics after -m. Run as equipoise, it completes that name instead of eq.
"""

SHELLS = ("bash", "zsh", "fish")


@click.command(help=HELP, short_help="Print a completion script.")
@click.argument("shell", type=options.OneOf("shell", lambda: SHELLS))
@options.output_options
@pass_output
@click.pass_context
def completion(ctx: click.Context, out: Output, shell: str) -> None:
    """See ``HELP``."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    if kind is None:
        raise MissingExtraError(
            f"this version of click completes nothing in {shell}", hint="pip install -U click"
        )
    root = ctx.find_root()
    name = root.info_name or "eq"
    made = kind(root.command, {}, name, f"_{name.upper()}_COMPLETE")
    # click's own source() starts a shell to learn its version; the script itself needs no such thing.
    script = made.source_template % made.source_vars()
    if out.json:
        out.data({"shell": shell, "script": script})
    else:
        out.text(script)
