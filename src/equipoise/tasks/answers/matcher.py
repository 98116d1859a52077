"""The matching rules by their names."""

from __future__ import annotations

from dataclasses import fields

from equipoise.errors import ParameterError, UnknownNameError, did_you_mean
from equipoise.tasks.answers.rule import Matcher, Shelf
from equipoise.tasks.answers.source_rule import SourceRule
from equipoise.tasks.answers.words_rule import WordsRule

__all__ = ["MATCHERS", "Matcher", "Shelf", "matcher"]

MATCHERS: dict[str, type[WordsRule] | type[SourceRule]] = {"words": WordsRule, "source": SourceRule}


def matcher(name: str | Matcher = "words", **options: object) -> Matcher:
    """The rule of this name with these options; an unknown name or option gets a did-you-mean.

    ``words`` takes ``currency``, ``fuzzy`` and ``threshold``; ``source`` takes the options of the source's
    evaluator. A rule that is made already is returned as it is.

    >>> matcher("words", currency=True).holds("$5", "It costs 5 dollars.")
    True
    """
    if isinstance(name, Matcher):
        if options:
            raise ParameterError(
                f"the rule {name.name} is made already and takes no options", hint="give them with its name"
            )
        return name
    if name not in MATCHERS:
        raise UnknownNameError.of("matcher", str(name), MATCHERS, more=f"known: {', '.join(MATCHERS)}")
    known = {field.name: field for field in fields(MATCHERS[name])}
    for option, value in options.items():
        if option not in known:
            hint = did_you_mean(option, known) or f"it takes {', '.join(known)}"
            raise ParameterError(f"the matcher {name} has no option {option!r}", hint=hint)
        _require(name, option, value, share=isinstance(known[option].default, float))
    return MATCHERS[name](**options)  # type: ignore[arg-type]


def _require(name: str, option: str, value: object, *, share: bool) -> None:
    """Options are switches, but for the shares of words, which lie between 0 and 1."""
    if share:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not 0 <= value <= 1:  # type: ignore[operator]
            raise ParameterError(f"{option} of the matcher {name} is {value!r}; it is a share from 0 to 1")
    elif not isinstance(value, bool):
        raise ParameterError(f"{option} of the matcher {name} is {value!r}; it is True or False")
