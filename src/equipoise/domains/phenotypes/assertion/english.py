"""English assertion rules after ConText (Harkema et al., Journal of Biomedical Informatics 42, 2009)."""

from __future__ import annotations

from equipoise.domains.phenotypes.assertion.rules import (
    ITEM_END,
    ITEM_START,
    MEASUREMENT,
    MINUS_AFTER,
    PLUS_AFTER,
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
    "|documented|recorded|visible|confirmed|experienced|described|appreciated|heard|palpable|palpated|felt"
    "|visuali[sz]ed|diagnosed|endorsed|mentioned|encountered|shown|suspected|displayed)"
)
_WAS = "(?:is|are|was|were|has been|have been|had been|being|has|have|had)"
_PASSIVE = "(?:is|are|was|were|has been|have been|had been|being)"
_NORMAL = "(?:normal|unremarkable|within normal limits|intact)"
"""*Normal hearing* negates a hearing abnormality."""
_SIGN = "(?:evidence|signs?|symptoms?|indications?|history|findings?|features?|complaints?|episodes?)"
_RELATIVE = (
    "(?:(?:grand|half-?|step|great-?grand)?(?:mother|father|parents?|brothers?|sisters?|sons?|daughters?)"
    "|siblings?|aunts?|uncles?|cousins?|nieces?|nephews?|relatives?|mom|mum|dad|grandma|grandpa|wife|husband|twin"
    "|family members?)"
)
_OF_PATIENT = "(?:his|her|their|my|the|both|(?:the )?(?:patient|proband|child|boy|girl)['’]s)"
_WHICH = (
    "(?:(?:own|older|younger|elder|eldest|youngest|maternal|paternal|affected|unaffected|late|twin|two|three|several"
    "|other|distant|deceased|full|first|second|(?:first|second)-degree|biological|healthy|male|female|only|of) )*"
)
_REPORTS = (
    "(?:reports?|reported|notices?|noticed|notes?|noted|states?|stated|says|said|describes?|described"
    "|observed|saw|mentions?|mentioned|thinks?|thought|believes?|believed|complains? of|complained of|confirms?"
    "|(?:has|have|had) (?:noticed|noted|reported|observed|described|seen|mentioned)"
    "|worr(?:y|ies|ied)(?: (?:about|that))?|brought"
    r"|(?:is|are|was|were|became) (?:\w+ )?(?:worried|concerned|anxious|alarmed)(?: (?:about|by))?)"
)
_FAMILY = "(?:fam(?:ily|\\.)? (?:medical )?(?:history|hx)|family|FH|FHx)"
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
    r"(?<!\bor\x20)(?:has|had|have)",
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
    "endorse[sd]?",
    "complains?",
    "s?he (?:is|was)",
)
"""Words that start another statement about the patient."""

_NEW_ITEM = (
    "(?:some|scattered|mild|moderate|severe|marked|slight|occasional|intermittent|chronic|known|stable|residual"
    "|persistent|minimal|trace|diffuse|subtle|bilateral|longstanding|still|currently|only|frequent|rare|multiple"
    "|new|old|left|right)"
)
"""Words that start an affirmed item after a comma: *no nystagmus, mild ptosis*; not in a list with *or*."""

_PATIENT = (
    "(?:the|our|this|index) (?:patient|proband|case|child|boy|girl|infant|baby)(?!['’]s)",
    "patient(?!['’]s)",
    "propositus",
    "proposita",
)

ENGLISH_RULES = AssertionRules(
    cues=(
        CueGroup(Assertion.NEGATED, CueDirection.ITEM, (*SHORT_CUES, rf"{ITEM_START}negative(?=\s(?!for\b)[a-z])")),
        CueGroup(Assertion.UNCERTAIN, CueDirection.ITEM, SHORT_QUESTIONS),
        CueGroup(
            Assertion.NEGATED,
            CueDirection.BACKWARD,
            (
                rf"(?<=\w\x20)(?:no|none|never|absent|denied|excluded|negative|ruled out|not {_SEEN}){ITEM_END}",
                *MINUS_AFTER,
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
                "(?:resolution|disappearance) of(?: (?:the|his|her))?",
                r"no (?:e/o|h/o|c/o|s/s(?: of)?)",
                rf"{ITEM_START}neg\.?(?=\s[a-z])",
                "rul(?:ing|es) out",
                "not (?:appear|look|seem)(?: to (?:be|have))?",
                f"no (?:(?:clear|definite|further|other|obvious|clinical|prior|past) )?{_SIGN} (?:of|for)",
                "no (?:suspicion|suggestion) of",
                "no longer(?: (?:ha(?:s|ve|d|ving)|shows?|experiences?|suffers? from|presents? with))?",
                rf"{STATEMENT_START}(?:not {_SEEN}|absent|denied|negative|neg\.?)\s*:",
                "nor (?:has|have|had|is|was|did|does|do) (?:s?he|they|it|the \\w+)"
                "(?: (?:shown?|had|been|have|developed?|experienced?|report(?:ed)?))?",
                "nothing (?:\\w+ ){0,6}to (?:suggest|support|indicate)(?: (?:a |the )?diagnosis of)?",
                "not known to have",
                "(?:has|have|had) (?:not|never)(?: (?:yet|previously|ever|really))* (?:experienced|reported|noted"
                "|described"
                "|mentioned|endorsed|observed|shown|seen|noticed|developed|complained of|suffered from)(?: any)?",
                r"(?:has|have|had) (?:ruled out|excluded)(?=\s(?!(?:by|on|at|in|with|via|clinically|using"
                r"|through)\b)[a-z])",
                "at no (?:time|point|stage)(?: (?:did|has|have|was|had) (?:s?he|they|the \\w+)(?: (?:have|had"
                "|develop|been))?)?",
                "not (?:have|had|having|shown?|develop|developed|exhibit|present with|reveal|report|endorse"
                "|describe|experience|demonstrate|suffer from|complain(?:ing)? of|consistent with)",
                "no complaints? of",
                "[-−]ve for",
                "unable to (?:elicit|detect|find|identify)",
                "devoid of",
                "cannot",
                "n[’']t (?:have|show|develop)",
                "(?:do|does|did|has|have|had|is|was|were)n[’']t"
                "(?: (?:have|had|show|develop|report|endorse|experience|complain of|describe|appear|seem|look|feel))?",
                "den(?:y|ies|ied|ying)",
                "negative for",
                "not (?:associated with|accompanied by)",
                "free (?:of|from)",
                "never(?: (?:had|has|developed|showed|experienced))?",
                "neither",
                "nor",
                "none of",
                "none (?:had|has|have|showed|developed|reported)",
                "no personal or family history of",
                "(?:(?:pertinent|significant|relevant) )?negatives(?: include)?\\s*:?",
                "fail(?:s|ed) to (?:show|reveal|demonstrate|develop|detect|identify|find)",
                "rul(?:es|ed) out(?: for)?",
                "exclud(?:es|ed|ing)",
            ),
        ),
        CueGroup(
            Assertion.NEGATED,
            CueDirection.FORWARD,
            ("not", "(?:having|after) (?:excluded|excluding|ruled out|ruling out)"),
            ends_at_comma=True,
        ),
        CueGroup(
            Assertion.NEGATED,
            CueDirection.FORWARD,
            ("without(?: (?:any|evidence of|signs? of))?", "w/o", "with no(?: (?:evidence|signs?) of)?"),
            ends_at_comma=True,
            starts_phrase=True,
        ),
        CueGroup(Assertion.NEGATED, CueDirection.FORWARD, ("rather than", "instead of"), starts_phrase=True),
        CueGroup(
            Assertion.UNCERTAIN,
            CueDirection.FORWARD,
            ("(?:argues?|argued|arguing|speaks?|spoke) against",),
            starts_phrase=True,
        ),
        CueGroup(
            Assertion.NEGATED,
            CueDirection.FORWARD,
            ("(?:the )?absence of", "lack(?:s|ed|ing)?(?: of)?"),
            part_of_term=True,
            ends_at_comma=True,
        ),
        CueGroup(
            Assertion.NEGATED,
            CueDirection.BACKWARD,
            (
                f"(?:has|have|had) (?:not|never)(?: (?:yet|clearly|previously))* been(?: clearly)? {_SEEN}",
                f"(?:{_PASSIVE} )?(?:not|never)(?: (?:been|yet|clearly|previously))* {_SEEN}",
                f"(?:{_WAS} )?no longer (?:{_SEEN}|occur(?:s|red|ring)?|an issue)",
                f"(?:{_WAS} )?(?:(?:been|clearly) )?ruled out",
                f"{_WAS} (?:also )?(?:absent|negative(?! for)|denied|excluded|lacking|missing)",
                rf"(?<!\band\x20){_WAS} (?!otherwise\b)(?:\w+ )?{_NORMAL}",
                rf":\s*{_NORMAL}",
                f"(?:could|can) ?not be {_SEEN}",
                rf"did not (?:occur|recur|appear|develop){ITEM_END}",
                "(?:did|do(?:es)?) not (?:occur|recur|exist)",
                rf"[:–-]\s*(?:no|none|nil|never|absent|denied|negative)(?: {_SEEN})?{ITEM_END}",
                "[-−]ve",
                "never (?:occurred|happened|developed|recurred|appeared)",
                "(?:has|have|had|is|are) (?:(?:now|since|completely|fully|entirely|all|long) )*"
                "(?:resolved|disappeared|subsided|cleared|gone|stopped|settled|abated|vanished|ceased|remitted)",
                r"(?:-|(?<=\w\x20))free(?!\s+(?:of|from|air|fluid)\b)",
            ),
        ),
        CueGroup(
            Assertion.UNCERTAIN,
            CueDirection.BACKWARD,
            (
                rf"(?<=\w\x20)(?:(?:very|highly|less|more|most) )?(?:un)?(?:likely|possible|probable|suspected"
                rf"|questionable|doubtful|equivocal){ITEM_END}",
            ),
        ),
        CueGroup(
            Assertion.UNCERTAIN,
            CueDirection.FORWARD,
            (
                "(?:(?:un|not )sure|unclear|uncertain|wonders?|wondered|question(?:s|ed)?|asks?|asked|know)?"
                "(?: as to)? ?(?:about )?whether"
                "(?: (?:s?he|there|it|they|this|the (?:patient|child|boy|girl|infant|baby))"
                " (?:has|have|had|is|was|may|might)(?: (?:have|had|been))?)?",
                "(?:concerning|worrisome|worrying) for",
                "(?:raises?|raised|raising) (?:the |a )?(?:possibility|concern|suspicion|question) (?:of|for|about)",
                "(?:low|high|clinical|strong) (?:index of )?suspicion (?:of|for)",
                "conceivabl[ey](?: that)?",
                "(?:could|can)(?: ?not|n[’']t) confirm",
                "(?:the )?differential(?: diagnosis)? (?:(?:would|could|may|also|then) )*includes?",
                "wonder(?:s|ed|ing)? if(?: (?:this|it|s?he|there))?(?: (?:could|might|may))?(?: (?:be|is|was|has"
                "|have))?",
                "unusual for",
                "suggestion of",
                "(?:cannot|can not|could not|unable to) (?:differentiate|distinguish)(?: between)?",
                "(?:treated|treatment|covered) empirically for",
                "empirical?(?:ly)? (?:treatment|treated|therapy|coverage) (?:of|for)",
                "favou?r(?:s|ed|ing)?",
                "(?:looks?|seems?|sounds?) like",
                "not (?:entirely |fully )?convinced (?:that|of)(?: (?:s?he|this|it|there) (?:has|is|was))?",
                "possibl[ey]",
                "probabl[ey]",
                "presum(?:ed|ably|ptive)",
                "perhaps",
                "suspected(?: to have| of having)?",
                "not (?:think|believe|feel)(?: that)?(?: (?:this|it|s?he|there|these))?(?: (?:is|are|has|have|was))?",
                "suspicious (?:for|of)",
                "suspicion (?:of|for)",
                "concern(?:s|ed)? (?:for|about|of|regarding)",
                "suspect",
                "consider(?:ing|ation of)?",
                "doubt(?:ful)?(?: (?:that|whether|if))?(?: (?:s?he|it|this|there) (?:has|have|is|was))?",
                "(?:thought|felt|believed|presumed) to (?:be|have|represent)",
                "potential",
                "(?:working|tentative|provisional) diagnosis(?: of)?",
                "possibility of",
                "suggest(?:s|ing|ed)?(?: that)?",
                "neither confirm\\w* nor (?:refut|exclud|rul)\\w*(?: out)?",
                "compatible with",
                "(?:un|not )sure if(?: (?:s?he|there|it) (?:has|have|had|is|was))?",
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
                r"not (?:ruled out|excluded)(?=\s(?!(?:by|on|at|in|yet|with|clinically)\b)[a-z])",
                "not certain",
                "question of",
                "(?:(?:most )?likely|probably|possibly|presumably|perhaps|potentially|may be|might be|could be)"
                " (?:due|secondary|related|attributable) to",
                "(?:vs\\.?|versus)",
                "unclear if(?: (?:s?he|there|it|the \\w+) (?:has|have|had|is|was))?",
                "with or without",
                "differential diagnos[ie]s(?: includes?)?",
            ),
        ),
        CueGroup(
            Assertion.UNCERTAIN,
            CueDirection.BACKWARD,
            (
                "(?:cannot|can not|could not|can[’']t) be (?:\\w+ )?(?:ruled out|excluded)",
                f"(?:{_WAS} )?not (?:been )?(?:ruled out|excluded)",
                f"(?:{_WAS}|remains?|seems?|appears?|(?:felt|thought|deemed|considered) (?:to be)?) ?"
                "(?:(?:also|very|highly|less|more|most|rather) )*(?:possible|probable|likely|unlikely|suspected"
                "|questionable|uncertain|unclear|unconfirmed|equivocal|doubtful|(?:in|a) question(?: mark)?)",
                "(?:may|might|could) be (?:present|possible)",
                "(?:is|remains?) (?:still )?(?:a|in the) (?:possibility|consideration|differential)",
                "(?:must|should|has to|needs to) be (?:considered|suspected|entertained)",
                f"{_WAS} (?:the )?(?:most )?(?:likely|probable|suspected) (?:explanation|diagnosis|cause)",
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
                "fam(?:ily|\\.)? (?:history|hx)(?: (?:is|was))?(?: (?:positive|significant|notable|remarkable"
                "|negative))?(?: (?:of|for))?",
                f"{_OF_PATIENT} {_WHICH}{_RELATIVE}",
                f"(?:maternal|paternal) {_RELATIVE}",
                "(?:sibling|maternal|paternal) history(?: (?:is|was))?(?: (?:positive|significant|notable))?"
                "(?: (?:of|for))?",
                f"(?:an?|one|two|another|some|many|multiple|several|no other) {_WHICH}{_RELATIVE}"
                "(?= (?:has|had|have|is|was|were|also|with|who|died|reportedly|suffer(?:s|ed)|developed|diagnosed))",
                # Without an article only at the start of a sentence: a mother and her son may be the patients.
                f"{STATEMENT_START}{_WHICH}{_RELATIVE}(?= (?:has|had|have|with|is|was|were|also|died|reportedly"
                f"|suffer(?:s|ed)|developed|diagnosed)|:)",
                "(?:neither|no|one|either|each) (?:parent|sibling)",
                "no (?:other )?(?:relatives?|family members?|siblings?|one else in the family)(?= (?:with|has"
                "|have|had))",
                f"{STATEMENT_START}{_RELATIVE}(?= (?-i:[A-Z]{{2,}}))",
                rf"(?<=[,;]\x20){_WHICH}{_RELATIVE}(?= (?:has|had|have|with|is|was|died|also))",
            ),
        ),
        CueGroup(
            Assertion.FAMILY_HISTORY,
            CueDirection.FORWARD,
            (f"whose {_WHICH}{_RELATIVE}",),
            ends_at_comma=True,
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
                "(?:keep|keeping) an eye out for",
                "(?:look(?:ing)? out|(?:stay|be|remain) alert) (?:for|to)",
                rf"{STATEMENT_START}(?:give|administer|use)(?: [\w.]+){{1,4}} for",
                "to (?:exclude|rule out|prevent|look for|avoid)",
                "discuss(?:ed)? (?:the )?(?:symptoms|signs|warning signs|possibility) of",
                "(?:eval|evaluate|assess|look|examine|workup|work-up|testing|evaluation) for",
                "(?:advice|education|instructions|precautions)(?: (?:was|were) given)? (?:about|of|regarding|on|for)",
                "(?:please )?rule[- ]out",
                "please exclude",
                "r/o",
                "prevent(?:s|ing|ion of)",
                "prophyla(?:xis|ctic)(?: (?:for|against|of))?",
                "return (?:for|with)",
                "(?:call|contact|notify|return|come back|seek (?:care|help|attention|medical (?:care|attention|help)))"
                "(?: \\w+){0,5}? (?:for|with|if|should)(?: any)?",
                "(?:prn|as needed|if needed) for",
                "for(?= (?:\\w+ ){1,3}(?:prevention|prophylaxis|screening|surveillance|precautions|work-?up))",
                "should(?= (?:\\w+ ){1,5}(?:return|occur|recur|arise|develop|worsen|persist|appear))",
                "w/u for",
                "(?:return )?precautions\\s*:",
                "vaccinat(?:ed|ion) (?:against|for)",
                "(?:warned|counsell?ed|educated|advised|informed) (?:about|of|regarding|on)",
            ),
        ),
        CueGroup(
            Assertion.HYPOTHETICAL,
            CueDirection.BACKWARD,
            (
                "(?:should|were to) (?:occur|develop|recur|arise)",
                "(?:(?:needs?|has|have|remains?) to|should|must) be (?:excluded|ruled out)",
            ),
        ),
    ),
    pseudo=(
        r"no\.?\x20?\d+",
        "no (?:(?:significant|interval|further|real|clear|appreciable|substantial|major|relevant|other) ){0,3}"
        "(?:change|increase|decrease|improvement|progression|worsening)s?",
        "not (?:take|takes|use|uses|need|needs|require|requires|receive|received|remember|recall|know|help"
        "|improve[ds]?|resolved?|worsen(?:ed)?|chang(?:e|ed|ing)|explain(?:ed)?)(?: (?:\\w+ ){0,2}for)?",
        f"(?:both )?(?:s?he|the patient) and {_OF_PATIENT} {_WHICH}{_RELATIVE}",
        f"(?:un)?like {_OF_PATIENT} {_WHICH}{_RELATIVE}",
        f"(?:in contrast|compared|contrary|similar) (?:to|with) {_OF_PATIENT} {_WHICH}{_RELATIVE}",
        r"no (?:\w+ ){0,3}doubt(?: (?:that|about))?(?: (?:s?he|it|this) (?:has|have|is))?",
        r"no (?:\w+ ){0,3}(?:cause|reason|treatment|therapy)",
        "without (?:a )?(?:doubt|difficulty|cause|treatment|therapy)",
        "not (?:only|necessarily|just|merely|solely|surprisingly)",
        "not (?:been )?(?:\\w+ )?(?:treated|relieved|controlled|investigated|operated|known|noticed(?! any)|tolerated?"
        "|respond\\w*)(?: (?:for|by|until|to|on|with|milk))?",
        rf"(?:{_OF_PATIENT} )?{_RELATIVE}\s+(?=den(?:y|ies|ied))",
        "gram[- ]negative",
        "no (?:contraindications?|need|plans?|role|indications?) (?:to|for)",
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
        "despite",
        "as (?:a|the) (?:cause|reason|explanation) (?:of|for)",
        "given(?! (?:the )?risk)",
        "due to",
        "because(?: of)?",
        "secondary to",
        "caused by",
        "positive for",
        "pos\\.? for",
        "c/o",
        "complain(?:ing|s|ed) of",
        "admit(?:s|ted|ting)(?: to)?",
        "and (?:with|is|was|has|had|shows?|showed|feels?|felt|seems?|appears?|looks|remains|reports?|complains)",
        "and (?:s?he|they|his|her|their)",
        "and there (?:is|was|are|were)",
        "and the(?= \\w+ (?:is|was|are|were|has|had))",
        "otherwise",
        "previously",
        "formerly",
        rf"(?<=,\x20){_NEW_ITEM}(?![^.;\n]*\b(?:or|nor)\b)",
        *PLUS_SIGNS,
    ),
    terminators_by_assertion=dict.fromkeys(
        (Assertion.NEGATED, Assertion.UNCERTAIN),
        (*_CLAUSES, "with", r"(?<=,\x20)(?:his|her|their|there|it|this|we|I|they)"),
    )
    | {Assertion.FAMILY_HISTORY: (*_PATIENT, "s?he")},
    conjunctions=("and", "or", "nor", "and/or", "as well as"),
    affirmed_cues=(
        f"{_WAS} (?:(?:also|clearly|still|now|again) )*{_SEEN}",
        "present",
        PLUS_AFTER,
        rf"positive{ITEM_END}",
        "(?:improved|worsened|persists?|persisted|remains?|remained|occurred|continues?|continued|increased"
        "|started|began)",
        MEASUREMENT,
        "(?:OD|OS|OU|bilaterally|on the (?:left|right))",
    ),
    patient=_PATIENT,
    bare_results=_BARE,
)
