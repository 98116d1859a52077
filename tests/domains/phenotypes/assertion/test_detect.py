"""The assertion of a finding in English and German sentences; the finding is in square brackets."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.domains.phenotypes.assertion.detect import (
    CueTable,
    detect_assertions,
    detect_assertions_with_cues,
)
from equipoise.domains.phenotypes.assertion.rules import ASSERTIONS, Assertion, rules_for
from equipoise.errors import InputError, UnknownNameError

ENGLISH = {
    "affirmed": """
        The patient has [seizures].
        There is no [[fever]], but [cough] is present.
        Not only [seizures] but also ataxia were seen.
        No change in the [rash] since last week.
        He denies fever but has a [rash].
        No fever; [cough] since Monday.
        [Seizures] began at age two. No fever was seen.
        The girl has [absence of the thumb].
        His mother reports [seizures] since birth.
        According to the parents the boy has [hypotonia].
        Her mother had migraine, and she has [epilepsy].
        No hearing loss although [deafness] runs with the syndrome.
        Severe [intellectual disability] without regression.
        No obvious cause of [growth retardation] was identified.
        Apart from [myopia] there is no eye disease.
        She has no fever and is treated for [asthma].
        A mother and son with [branchial sinuses] were seen.
        Gram-negative [sepsis] was treated.
        Family history: negative. She presented with [seizures] and ataxia.
        Family history: unremarkable.\\n[Seizures] since March.
        Family history: mother has migraine. [Seizures] began at age three.
        Family history:\\nThe mother has migraine.\\nThe patient has [ataxia].
        FH: none. Exam: [ataxia].
        No ataxia, [tremor] is present.
        No seizures, [hypotonia] was noted.
        The mother was worried about his [seizures].
        Her parents are very concerned about [hypotonia].
        Ataxia (-), [tremor] (+)
    """,
    "negated": """
        There is no [nystagmus].
        No fever, [cough] or rash.
        No fever, cough or [rash].
        [There is no nystagmus].
        She denies [chest pain] and dizziness.
        There was no evidence of [hearing loss].
        The exam was negative for [hepatomegaly].
        [Seizures] were not observed.
        [Fever], cough and rash were absent.
        [Hernia] was ruled out.
        He never had [seizures].
        He does not have [ataxia].
        Without [fever] or chills.
        Seizures since birth, but no [ataxia].
        Neither [fever] nor cough.
        Neither fever nor [cough].
        [Seizures]: no
        No signs of suspected [hernia].
        Retinopathy (no [glaucoma]) was found.
        [Hearing] is normal.
        [EEG]: normal. Short stature.
        No longer has [seizures].
        [Seizures] are no longer present.
        Not present: [ataxia], tremor.
        Not present: ataxia, [tremor].
        Absent: [ataxia].
        No ataxia, [tremor] or dystonia is present.
        No ataxia, [tremor] and dystonia were seen.
        No [retinopathy], despite long diabetes, was seen.
        [Ataxia] (-), tremor (+)
    """,
    "uncertain": """
        Possible [optic atrophy].
        Suspected [epilepsy] since spring.
        [Glaucoma] cannot be excluded.
        [Hernia] is possible.
        No fever, possible [pneumonia].
        Possibly no [fever].
        The murmur may represent a [septal defect].
        [Tuberculosis] has not been ruled out.
        Findings are suspicious for [lymphoma].
        Ataxia, [sleep disturbance] (likely)
        A diagnosis of [Marfan syndrome] was considered.
    """,
    "family_history": """
        His mother has [migraine].
        Family history of [breast cancer].
        [Diabetes] in her father.
        Family history: [epilepsy], short stature.\\nThe uncle died early.
        Family history: epilepsy.\\nHis aunt was well. [Gout] at an old age.
        The maternal aunt had [deafness].
        Family history: negative for [epilepsy]. She has ataxia.
        Family history:\\n- [epilepsy] in the uncle\\n- short stature
        Family history:\\n- epilepsy in the uncle\\n- [short stature]
        No family history of [seizures].
        A brother has [autism].
        Mother: [asthma]
        [Cataracts] run in the family.
    """,
    "hypothetical": """
        Return if [fever] develops.
        She is at increased risk of [stroke].
        Monitor for [scoliosis].
        MRI to rule out [tumor].
        Rule out [epilepsy].
        EEG was ordered. Rule out [epilepsy].
        Should [fever] occur, call us.
        Prophylaxis against [malaria].
    """,
}

GERMAN = {
    "affirmed": """
        Der Patient hat [Krampfanfälle].
        Kein Fieber, aber [Husten].
        Nicht nur [Fieber], sondern auch Husten.
        Die Mutter berichtet [Krampfanfälle] seit der Geburt.
        Laut Mutter bestehen [Schlafstörungen].
        Keine Besserung der [Ataxie].
        Ohne Fieber, es besteht [Husten].
        Die Mutter hat Migräne, die Patientin [Epilepsie].
        Familienanamnese: unauffällig. Vorstellung wegen [Krampfanfällen].
        Familienanamnese: Mutter mit Migräne. Das Kind hat [Ataxie].
        Familienanamnese:\\nMutter mit Migräne.\\nDas Kind hat [Ataxie].
        Keine Ataxie, [Tremor] vorhanden.
        Kein Fieber, [Husten] besteht.
        Die Mutter war besorgt wegen [Krampfanfällen].
        Der Sohn gesunder Eltern zeigte eine [Ataxie].
    """,
    "negated": """
        Kein [Fieber].
        Keine Krampfanfälle, kein [Fieber].
        Kein Hinweis auf [Schwerhörigkeit].
        [Kein Hinweis auf Schwerhörigkeit].
        Ohne [Fieber] oder Husten.
        Ohne Fieber oder [Husten].
        Weder [Fieber] noch Husten.
        Weder Fieber noch [Husten].
        [Krampfanfälle] wurden nicht beobachtet.
        Eine [Herzinsuffizienz] wurde ausgeschlossen.
        Ein [Nystagmus] lag nicht vor.
        [Reflexe] fehlen.
        [Fieber]: nein
        [Schmerzen] werden verneint.
        Das [Gehör] ist unauffällig.
        Die [Skoliose] besteht nicht mehr.
        [Krampfanfälle] traten nicht mehr auf.
        Nicht vorhanden: [Ataxie], Tremor.
        Nicht vorhanden: Ataxie, [Tremor].
        Keine Ataxie, [Tremor] oder Dystonie vorhanden.
    """,
    "uncertain": """
        Verdacht auf [Optikusatrophie].
        V.a. [Epilepsie].
        Mögliche [Skoliose].
        Ein [Glaukom] ist nicht auszuschließen.
        Eine [Tuberkulose] kann nicht ausgeschlossen werden.
        Kein Fieber, fraglicher [Husten].
        Wahrscheinlich kein [Fieber].
        Ataxie, [Skoliose] (fraglich)
    """,
    "family_history": """
        Die Mutter leidet an [Migräne].
        Familienanamnese: [Epilepsie], Kleinwuchs.
        Familienanamnese:\\nEpilepsie bei der Tante.\\n[Kleinwuchs] mehrfach.
        [Diabetes] bei der Großmutter.
        In der Familie gibt es [Taubheit].
        Der jüngere Bruder hat [Autismus].
    """,
    "hypothetical": """
        Falls [Fieber] auftritt, bitte melden.
        Erhöhtes Risiko für [Schlaganfall].
        MRT zum Ausschluss eines [Tumors].
        Bei Auftreten von [Krampfanfällen] bitte melden.
    """,
}


def cases(table: dict[str, str], language: str) -> list[tuple[str, str, str]]:
    return [
        (language, expected, line.strip().replace("\\n", "\n").replace("[[", "").replace("]]", ""))
        for expected, lines in table.items()
        for line in lines.strip().splitlines()
    ]


CASES = [*cases(ENGLISH, "en"), *cases(GERMAN, "de")]


@pytest.mark.parametrize(("language", "expected", "marked_text"), CASES, ids=[case[2] for case in CASES])
def test_every_sentence_has_the_expected_assertion(language: str, expected: str, marked_text: str) -> None:
    before, finding, after = re.fullmatch(r"(.*?)\[(.*?)\](.*)", marked_text, re.DOTALL).groups()  # type: ignore[union-attr]
    text = before + finding + after
    assert detect_assertions(text, [(len(before), len(before) + len(finding))], language) == [expected]


@pytest.mark.parametrize(("language", "cue"), [("en", "no"), ("de", "kein")])
def test_every_occurrence_of_a_cue_is_used(language: str, cue: str) -> None:
    text = "Ataxia. " + "".join(f"{cue} fever. rash. " for _ in range(50))
    spans = [match.span() for match in re.finditer("fever|rash", text)]
    assert detect_assertions(text, spans, language) == [Assertion.NEGATED, Assertion.AFFIRMED] * 50


@pytest.mark.parametrize("language", ["en", "de"])
def test_long_lists_of_cues_give_the_assertions_of_short_ones(language: str) -> None:
    text = "fever no, cough no, rash no, seizures yes. " * 200
    spans = [match.span() for match in re.finditer("fever|cough|rash|seizures", text)]
    assertions = detect_assertions(text, spans, language)
    assert assertions == assertions[:4] * 200


def test_a_heading_covers_its_section_only() -> None:
    text = "Family history:\n" + "".join(f"- gout in uncle {number}\n" for number in range(300))
    table = CueTable(text + "\n\nNo fever.", rules_for("en"))
    assert len(table.covering((len(text) - 10, len(text)))) < 150
    assert {cue.assertion for cue in table.covering((20, 24))} == {Assertion.FAMILY_HISTORY}


def test_an_assertion_has_the_cues_that_determined_it() -> None:
    text = "There is no evidence of fever. Cough."
    first, second = detect_assertions_with_cues(text, [(24, 29), (31, 36)])
    assert [text[start:end] for start, end in first.cues] == ["no evidence of"]
    assert second.cues == ()


def test_a_span_outside_the_text_is_an_error() -> None:
    with pytest.raises(InputError, match=r"5 to 9.*6"):
        detect_assertions("Fever.", [(5, 9)])


def test_a_language_without_rules_is_an_error() -> None:
    with pytest.raises(UnknownNameError, match="'fr'"):
        detect_assertions("Fièvre.", [(0, 6)], "fr")


WORDS = [
    "no",
    "fever",
    "cough",
    "but",
    "mother",
    "his",
    "possible",
    ",",
    ";",
    ".",
    "\n",
    "\n\n",
    "(",
    ")",
    "if",
]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=25), st.lists(st.sampled_from(WORDS), max_size=25))
def test_another_paragraph_does_not_change_an_assertion(words: list[str], other_words: list[str]) -> None:
    text = " ".join(words)
    spans = [match.span() for match in re.finditer("fever|cough", text)]
    assert detect_assertions(text, spans) == detect_assertions(text + "\n\nX. " + " ".join(other_words), spans)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=80), st.sampled_from(["en", "de"]))
def test_any_text_is_accepted_and_spans_are_independent(text: str, language: str) -> None:
    spans = list(pairwise(range(0, len(text) + 1, 7)))
    assertions = detect_assertions(text, spans, language)
    assert assertions == [detect_assertions(text, [span], language)[0] for span in spans]
    assert set(assertions) <= set(ASSERTIONS)
