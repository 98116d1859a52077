"""English assertion rules after ConText (Harkema et al., Journal of Biomedical Informatics 42, 2009)."""

from __future__ import annotations

from equipoise.domains.phenotypes.assertion.rules import (
    ITEM_END,
    MEASUREMENT,
    PLUS_SIGNS,
    SHORT_CUES,
    SHORT_QUESTIONS,
    STATEMENT_START,
    Assertion,
    AssertionRules,
    CueDirection,
    CueGroup,
)

_SEEN = (
    "(?:seen|present|observed|noted|found|detected|reported|evident|apparent|identified|elicited|demonstrated"
    "|documented|recorded|visible|confirmed|experienced|described|appreciated|heard|palpable|palpated|felt)"
)
_WAS = "(?:is|are|was|were|has been|have been|had been|being|has|have|had)"
_NORMAL = "(?:normal|unremarkable|within normal limits|intact)"
"""*Normal hearing* negates a hearing abnormality."""
_SIGN = "(?:evidence|signs?|symptoms?|indications?|history|findings?|features?|complaints?|episodes?)"
_RELATIVE = (
    "(?:(?:grand|half-?|step|great-?grand)?(?:mother|father|parents?|brothers?|sisters?|sons?|daughters?)"
    "|siblings?|aunts?|uncles?|cousins?|nieces?|nephews?|relatives?|mom|mum|dad|grandma|grandpa|wife|husband|twin"
    "|family members?)"
)
_OF_PATIENT = "(?:his|her|their|whose|my|the|both|(?:the )?(?:patient|proband|child|boy|girl)['’]s)"
_WHICH = "(?:(?:own|older|younger|elder|maternal|paternal|affected|late|twin|two|three|several|other) )*"
_REPORTS = (
    "(?:reports?|reported|notices?|noticed|notes?|noted|states?|stated|says|said|describes?|described"
    "|observed|saw|mentions?|mentioned|thinks?|thought|believes?|believed"
    "|worr(?:y|ies|ied)(?: (?:about|that))?|brought"
    r"|(?:is|are|was|were|became) (?:\w+ )?(?:worried|concerned|anxious|alarmed)(?: (?:about|by))?)"
)
_FAMILY = "(?:family (?:medical )?history|family|FH|FHx)"
_BARE = (
    "negative",
    "unremarkable",
    "non-?contributory",
    "not contributory",
    "not significant",
    "none",
    "nil",
    "unknown",
    "normal",
)

_CLAUSES = (
    "(?:who|which|that)",
    "has",
    "had",
    "have",
    "shows?",
    "showed",
    "presents?(?: with)?",
    "presented(?: with)?",
    "developed",
    "exhibits?",
    "exhibited",
    "reveals?",
    "revealed",
    "demonstrate[sd]",
    "reports?",
    "complains?",
    "s?he (?:is|was)",
)
"""Words that start another statement about the patient."""

_PATIENT = (
    "(?:the|our|this|index) (?:patient|proband|case|child|boy|girl|infant|baby)(?!['’]s)",
    "patient(?!['’]s)",
    "propositus",
    "proposita",
)

ENGLISH_RULES = AssertionRules(
    cues=(
        CueGroup(Assertion.NEGATED, CueDirection.ITEM, SHORT_CUES),
        CueGroup(Assertion.UNCERTAIN, CueDirection.ITEM, SHORT_QUESTIONS),
        CueGroup(
            Assertion.NEGATED,
            CueDirection.BACKWARD,
            (
                rf"(?<=\w\x20)(?:no|absent|denied|excluded|negative|ruled out|not present){ITEM_END}",
                rf"{_WAS} not{ITEM_END}",
                f"{_WAS} not (?:an?|among the) (?:feature|problem|issue|concern|finding|complaint)s?",
                "within normal limits",
                "wnl",
            ),
        ),
        CueGroup(
            Assertion.NEGATED,
            CueDirection.FORWARD,
            (
                "no",
                "nil",
                r"neg\.? for",
                "exclusion of",
                f"no (?:(?:clear|definite|further|other|obvious|clinical|prior|past) )?{_SIGN} (?:of|for)",
                "no (?:suspicion|suggestion) of",
                "no longer(?: (?:ha(?:s|ve|d|ving)|shows?|experiences?|suffers? from|presents? with))?",
                rf"{STATEMENT_START}(?:not {_SEEN}|absent|denied|negative|neg\.?)\s*:",
                "not",
                "not (?:have|had|having|shown?|develop|developed|exhibit|present with|reveal|report|endorse"
                "|describe|experience|demonstrate|suffer from|complain(?:ing)? of|consistent with)",
                "no complaints? of",
                "unable to (?:elicit|detect|find|identify)",
                "in the absence of",
                "rather than",
                "instead of",
                "devoid of",
                "cannot",
                "n[’']t (?:have|show|develop)",
                "(?:do|does|did|has|have|had|is|was|were)n[’']t(?: (?:have|had|show|develop))?",
                "den(?:y|ies|ied|ying)",
                "negative for",
                "not (?:associated with|accompanied by)",
                "free (?:of|from)",
                "never(?: (?:had|has|developed|showed|experienced))?",
                "neither",
                "nor",
                "none of",
                "fail(?:s|ed) to (?:show|reveal|demonstrate|develop|detect|identify|find)",
                "rul(?:es|ed) out(?: for)?",
                "exclud(?:es|ed|ing)",
            ),
        ),
        CueGroup(
            Assertion.NEGATED,
            CueDirection.FORWARD,
            ("without(?: (?:any|evidence of|signs? of))?", "w/o"),
            ends_at_comma=True,
        ),
        CueGroup(
            Assertion.NEGATED,
            CueDirection.FORWARD,
            ("(?:the )?absence of", "lack(?:s|ed|ing)?(?: of)?"),
            part_of_term=True,
        ),
        CueGroup(
            Assertion.NEGATED,
            CueDirection.BACKWARD,
            (
                f"(?:{_WAS} )?(?:not|never)(?: (?:been|yet|clearly|previously))* {_SEEN}",
                f"(?:{_WAS} )?no longer (?:{_SEEN}|occur(?:s|red|ring)?|an issue)",
                f"(?:{_WAS} )?(?:(?:been|clearly) )?ruled out",
                f"{_WAS} (?:also )?(?:absent|negative(?! for)|denied|excluded|lacking|missing)",
                rf"{_WAS} (?:\w+ )?{_NORMAL}",
                rf":\s*{_NORMAL}",
                f"(?:could|can) ?not be {_SEEN}",
                "did not (?:occur|develop|appear|recur)",
                "do(?:es)? not (?:occur|exist)",
                rf"\s?[:–-]\s*(?:no|none|nil|absent|denied|negative)(?: {_SEEN})?{ITEM_END}",
                "[-−]ve",
                r"\([-−–]\)",
            ),
        ),
        CueGroup(
            Assertion.UNCERTAIN,
            CueDirection.FORWARD,
            (
                "possibl[ey]",
                "probabl[ey]",
                "presum(?:ed|ably|ptive)",
                "perhaps",
                "suspected",
                "suspicious (?:for|of)",
                "suspicion (?:of|for)",
                "concern(?:s|ed)? (?:for|about|of|regarding)",
                "suspect",
                "consider(?:ing|ation of)?",
                "doubt(?:ful)?",
                "(?:thought|felt|believed|presumed) to (?:be|have|represent)",
                "potential",
                "(?:working|tentative|provisional) diagnosis(?: of)?",
                "possibility of",
                "suggest(?:s|ing|ed)?",
                "compatible with",
                "(?:un|not )sure (?:if|whether)(?: (?:s?he|there|it) (?:has|have|had|is|was))?",
                "(?:poss|prob|susp)\\.",
                "questionable",
                "equivocal",
                "suggestive of",
                "(?:may|might|could) (?:have|be|represent|indicate|reflect|develop|show|present with)",
                "(?:appears?|seems?) to (?:have|be|show)",
                "likely",
                "unlikely(?: to be)?",
                "query",
                r"DDx?\s*:?",
                "D/D",
                "cannot (?:exclude|rule out)",
                "not (?:ruled out|excluded|certain)",
                "unclear (?:if|whether)(?: (?:s?he|there|it|the \\w+) (?:has|have|had|is|was))?",
                "with or without",
                "differential diagnos[ie]s(?: includes?)?",
            ),
        ),
        CueGroup(
            Assertion.UNCERTAIN,
            CueDirection.BACKWARD,
            (
                "(?:cannot|can not|could not) be (?:ruled out|excluded)",
                f"(?:{_WAS} )?not (?:been )?(?:ruled out|excluded)",
                f"(?:{_WAS}|remains?) (?:also )?(?:possible|probable|likely|unlikely|suspected|questionable"
                "|uncertain|unclear|unconfirmed|equivocal|doubtful)",
                "(?:may|might|could) be (?:present|possible)",
                f"{_WAS} (?:also )?considered(?=\\s*(?:[.,;]|\\Z))",
                r"\((?:likely|possible|probable|suspected|questionable|\?)\)",
                r"(?<=\w)\?",
            ),
        ),
        CueGroup(
            Assertion.FAMILY_HISTORY,
            CueDirection.SECTION,
            (rf"{_FAMILY}\s*:",),
        ),
        # A heading with a bare result has no scope after it.
        CueGroup(
            Assertion.FAMILY_HISTORY,
            CueDirection.FORWARD,
            (rf"{_FAMILY}\s*:\s*(?:{'|'.join(_BARE)})(?=\s*(?:[.;\n]|\Z))",),
        ),
        CueGroup(
            Assertion.FAMILY_HISTORY,
            CueDirection.FORWARD,
            (
                "family history(?: (?:is|was))?(?: (?:positive|significant|notable|remarkable|negative))?"
                "(?: (?:of|for))?",
                f"{_OF_PATIENT} {_WHICH}{_RELATIVE}",
                f"(?:maternal|paternal) {_RELATIVE}",
                "(?:sibling|maternal|paternal) history(?: (?:is|was))?(?: (?:positive|significant|notable))?"
                "(?: (?:of|for))?",
                f"(?:an?|one|two|another) {_WHICH}{_RELATIVE}(?= (?:has|had|have|is|was|were))",
                # Without an article only at the start of a sentence: a mother and her son may be the patients.
                f"{STATEMENT_START}{_WHICH}{_RELATIVE}(?= (?:has|had|have|with|is|was|were|also)|:)",
                "(?:neither|no|one|either|each) (?:parent|sibling)",
                rf"(?<=[,;]\x20){_RELATIVE}(?= (?:has|had|with))",
            ),
        ),
        CueGroup(
            Assertion.FAMILY_HISTORY,
            CueDirection.BOTH,
            (
                f"in (?:{_OF_PATIENT}|an?|one|two|three|several) {_WHICH}{_RELATIVE}",
                "(?:runs? |in|on) (?:in )?(?:the|his|her|their) (?:family|(?:maternal|paternal) side)",
            ),
        ),
        CueGroup(
            Assertion.HYPOTHETICAL,
            CueDirection.FORWARD,
            (
                "if",
                "unless",
                "in case of",
                "in the event of",
                f"{STATEMENT_START}should",
                "should (?:he|she|they|the (?:patient|child)|there be)(?: (?:develop|have|experience))?",
                "(?:at )?(?:(?:increased|high|higher|elevated) )?risk(?: factors?)? (?:of|for)",
                "(?:monitor|screen|watch|check|test)(?:ed|ing)?(?: (?:closely|regularly))? for",
                "surveillance for",
                "to (?:exclude|rule out|prevent|look for|avoid)",
                "(?:evaluate|assess|look|examine|workup|work-up|testing|evaluation) for",
                "(?:advice|education|instructions|precautions)(?: (?:was|were) given)? (?:about|of|regarding|on|for)",
                "(?:please )?rule[- ]out",
                "please exclude",
                "r/o",
                "prevent(?:s|ing|ion of)",
                "prophyla(?:xis|ctic)(?: (?:for|against|of))?",
                "return (?:for|with)",
                "(?:warned|counsell?ed|educated|advised|informed) (?:about|of|regarding|on)",
            ),
        ),
        CueGroup(
            Assertion.HYPOTHETICAL,
            CueDirection.BACKWARD,
            ("(?:should|were to) (?:occur|develop|recur|arise)",),
        ),
    ),
    pseudo=(
        r"no\.?\x20?\d+",
        "no (?:significant |interval |further )?(?:change|increase|decrease|improvement|progression)s?",
        r"no (?:\w+ ){0,3}(?:doubt|cause|reason|treatment|therapy)",
        "without (?:a )?(?:doubt|difficulty|cause|treatment|therapy)",
        "not (?:only|necessarily|just|merely|solely|surprisingly)",
        "not (?:been )?(?:\\w+ )?(?:treated|relieved|controlled|investigated|operated|known|noticed|tolerated?"
        "|respond\\w*)(?: (?:for|by|until|to|on|with|milk))?",
        rf"(?:{_OF_PATIENT} )?{_RELATIVE}\s+(?=den(?:y|ies|ied))",
        "gram[- ]negative",
        "as likely as not",
        f"(?:{_OF_PATIENT} )?{_RELATIVE} (?:also )?{_REPORTS}(?: that)?",
        f"(?:according to|reported by|noticed by|noted by) {_OF_PATIENT} {_RELATIVE}",
        "risk of bias",
    ),
    terminators=(
        "but",
        "however",
        "although",
        "though",
        "except(?: for)?",
        "apart from",
        "aside from",
        "other than",
        "yet",
        "whereas",
        "while",
        "nevertheless",
        "nonetheless",
        "besides",
        "due to",
        "because(?: of)?",
        "secondary to",
        "caused by",
        "and (?:with|is|was|has|had|shows?|showed|feels?|felt|seems?|appears?|looks|remains|reports?|complains)",
        "and (?:s?he|they)",
        "previously",
        "formerly",
        r"(?<=,\x20)(?:some|scattered)",
        *PLUS_SIGNS,
    ),
    terminators_by_assertion=dict.fromkeys((Assertion.NEGATED, Assertion.UNCERTAIN), (*_CLAUSES, "with"))
    | {Assertion.FAMILY_HISTORY: (*_PATIENT, "s?he")},
    conjunctions=("and", "or", "nor", "and/or", "as well as"),
    affirmed_cues=(f"{_WAS} (?:(?:also|clearly|still|now) )*{_SEEN}", "present", MEASUREMENT),
    patient=_PATIENT,
    bare_results=_BARE,
)
