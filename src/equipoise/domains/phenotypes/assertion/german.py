"""German assertion rules after ConText; a verb at the end of a clause has a backward scope."""

from __future__ import annotations

from equipoise.domains.phenotypes.assertion.rules import (
    ITEM_END,
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
    "(?:nachweisbar|nachgewiesen|vorhanden|gesehen|beobachtet|bekannt|festgestellt|gefunden|erkennbar|sichtbar"
    "|berichtet|dokumentiert|aufgetreten|beschrieben|darstellbar|tastbar|auslösbar|bestätigt|angegeben|eruierbar"
    "|dargestellt|abgrenzbar|explorierbar|objektivierbar|diagnostiziert|erinnerlich|palpabel|hörbar|feststellbar"
    "|verifiziert|ersichtlich|geäußert|erwähnt)"
)
_NORMAL = "(?:normal|unauffällig|unauff\\.|regelrecht|altersentsprechend|o\\.\\s?B\\.)"
"""*Hören normal* negates a hearing abnormality."""
_WAS = "(?:ist|sind|war|waren|wird|werden|wurde|wurden|konnte|konnten|sei|seien|wäre|wären)"
_RELATIVE = (
    "(?:(?:Groß|Ur-?groß|Halb|Stief|Zwillings)?(?:mutter|vater|eltern|bruder|brüder|brüdern|schwestern?"
    "|geschwistern?)s?"
    "|Eltern|Mutter|Vaters?|Schwestern?|Bruders?|Brüdern?|Geschwistern?|Tanten?|Onkels?|Cousins?|Cousinen?"
    "|Vetters?|Nichten?|Neffen?|Omas?|Opas?|Söhnen?|Sohn(?:es)?|Töchtern?|Tochter|Verwandten?|Angehörigen?"
    "|Kindsmutter|Kindsvater|Ehemann|Ehefrau|Familienmitglieder)"
)
_OF_PATIENT = "(?:die|der|den|dem|das|des|seine?[rnms]?|ihre?[rnms]?|deren|dessen|beide[rn]?|eine?|einer|einem)"
_WHICH = "(?:(?:ältere|jüngere|väterliche|mütterliche|betroffene|verstorbene|zwei|drei|leibliche)[rnms]? )*"
_REPORTS = (
    "(?:berichtet|berichten|berichtete|gibt an|geben an|schildert|schildern|bemerkte|beschreibt|beobachtet|klagt"
    r"|(?:gibt|geben|gab|gaben)(?= [^.;]{1,80}\ban\b)|(?:hat|haben) (?=[^.;]{1,80}(?:bemerkt|beobachtet|festgestellt))"
    r"|(?:ist|sind|war|waren) (?:\w+ )?besorgt(?: (?:wegen|über|um))?"
    "|sorg(?:t|en|te|ten) sich(?: (?:wegen|um))?|mach(?:t|en|te|ten) sich Sorgen(?: (?:wegen|um))?)"
)
_FAMILY = "(?:Familienanamnese|Familiäre Anamnese|Familie|FA|FamA)"
_BARE = ("negativ", "unauffällig", "leer", "keine", "blande", "unbekannt", "o\\.\\s?B\\.", "normal")
_ENDED = r"(?=\s*[.,;)]|\s*\Z)"
_NEW_ITEM = (
    "(?:etwas|einzelne|vereinzelt|sonst|ansonsten|zuletzt|selten|gelegentlich|(?:diskret|leicht|mäßig|deutlich|gering"
    "|mild|stark|ausgeprägt|bekannt|schwer|zunehmend|chronisch|mittelgradig|hochgradig|geringgradig|klein|groß|neu|alt"
    "|rezidivierend|persistierend|residuell)(?:e[rnms]?)?"
    r"|Beginn|Zustand nach|Z\.\s?n\.|St\.\s?p\.)"
)
"""Words that start an affirmed item after a comma: *kein Nystagmus, leichte Ptosis*; not in a list with *oder*."""

_CLAUSES = (
    "hat",
    "hatte",
    "hatten",
    "zeigte?",
    "es (?:besteht|bestehen|bestand|bestanden|fand(?:en)? sich)",
    "leidet",
    "litt",
    "präsentierte?",
    "(?:er|sie) (?:ist|war)",
    "(?:ist|sind|war|waren) (?:(?:somit|daher|damit) )?(?:eine?|der|die|das)(?= )",
)
"""Verbs that start another statement about the patient."""

_PATIENT = (
    "(?:(?:der|die|den|dem|unsere?|diese[rsnm]?) )?Patient(?:in|en)?",
    "(?:(?:der|die) )?Proband(?:in)?",
    "(?:das|dieses) Kind",
    "(?:der|dieser) Junge",
    "(?:das|dieses) Mädchen",
)

GERMAN_RULES = AssertionRules(
    cues=(
        CueGroup(Assertion.NEGATED, CueDirection.ITEM, SHORT_CUES),
        CueGroup(Assertion.UNCERTAIN, CueDirection.ITEM, SHORT_QUESTIONS),
        CueGroup(
            Assertion.UNCERTAIN,
            CueDirection.BACKWARD,
            (
                rf"(?<=\w\x20)(?:vermutet|angenommen|fraglich|möglich|denkbar|(?:un)?wahrscheinlich){ITEM_END}",
                r"(?<=\w)\?",
            ),
        ),
        CueGroup(
            Assertion.NEGATED,
            CueDirection.BACKWARD,
            (
                rf"(?<=\w\x20)(?:(?:ebenfalls|auch|aktuell|derzeit|hingegen|dagegen|jedoch|aber) )?"
                rf"(?:nein|nicht|nie|keine?[rns]?(?: (?:bekannt|vorhanden|angegeben))?|negativ|neg\.|verneint"
                rf"|fehlend|ausgeschlossen){ITEM_END}",
                *MINUS_AFTER,
                "(?:ergab|ergaben|fand|fanden|finden|fanden|zeigte|zeigten|zeigen|ergeben) sich (?:\\w+ ){0,2}"
                "(?:nicht|keine?[rns]?(?: (?:Anhalt|Hinweise?|Anhaltspunkte))?)" + _ENDED,
                "(?:lässt|lassen|ließ|ließen) sich (?:\\w+ ){0,3}nicht (?:\\w+ )?(?:nachweisen|abgrenzen"
                "|darstellen|tasten|bestätigen|erhärten|feststellen|finden|auslösen|objektivieren|erheben)",
                "bestätigten? sich (?:\\w+ )?nicht",
                "(?:hat|habe|hatte|haben) (?:er|sie|man|der Patient|die Patientin) (?:\\w+ )?nicht (?:bemerkt"
                "|beobachtet|gehabt|festgestellt|angegeben|verspürt)",
                f"(?:{_WAS}|hat sich|haben sich|habe sich) (?:\\w+ )?(?:verschwunden|abgeklungen|zurückgebildet"
                f"|abgeheilt"
                "|sistiert)",
                "(?:gab es|hatte (?:er|sie)|kam es|gab sie|gab er) (?:\\w+ ){0,2}(?:nie|nicht)" + _ENDED,
                r"(?<=\w\x20)o\.\s?B\.",
                f"verl(?:ief|iefen|äuft) (?:\\w+ )?{_NORMAL}",
                f"{_WAS} (?:\\w+ )?nicht zu (?:hören|sehen|tasten|finden|erkennen)",
            ),
        ),
        CueGroup(
            Assertion.NEGATED,
            CueDirection.FORWARD,
            (
                "keine?[rnms]?",
                "keinerlei",
                rf"{STATEMENT_START}o\.(?=\x20\w)",
                r"neg\. für",
                rf"{STATEMENT_START}neg\.?\s*:",
                "keine?[rnms]? (?:(?:sicheren?|eindeutigen?|weiteren?|klinischen?) )?"
                "(?:Hinweise?n?|Anhalt(?:spunkte)?|Zeichen|Anzeichen|Nachweis|Verdacht) (?:auf|für|von|einer?|eines)",
                rf"{STATEMENT_START}(?:(?:nicht|nie)(?: mehr)? {_SEEN}|fehlend|verneint|negativ)\s*:",
                "nie(?:mals)?",
                "weder",
                "frei von",
                "negativ (?:für|auf)",
                "vernein(?:t|en|te|ten)(?: (?:aber|jedoch))?",
                "(?:bestreite[nt]|bestritt(?:en)?|leugne(?:t|n|te))",
                "(?:der |ein )?(?:anfängliche |initiale |ursprüngliche )?Verdacht auf(?= [^.;]{1,60}(?:sich nicht"
                "|nicht bestätig|ausgeschlossen|entkräftet))",
                r"[kK]ein(?:e[rnms]?)? (?:Anh\.|Hinw\.|Nachw\.)(?: (?:f\.|auf|für|von))?",
                "Ausschluss (?:von|eines|einer)",
            ),
        ),
        CueGroup(
            Assertion.NEGATED,
            CueDirection.FORWARD,
            ("nicht(?: mehr)?",),
            ends_at_comma=True,
        ),
        CueGroup(
            Assertion.NEGATED,
            CueDirection.FORWARD,
            ("ohne(?: (?:Hinweise? auf|Anhalt für|Zeichen|Nachweis (?:von|eine[rs]?)))?",),
            ends_at_comma=True,
            starts_phrase=True,
        ),
        CueGroup(
            Assertion.NEGATED,
            CueDirection.FORWARD,
            ("Fehlen (?:von|des|der|eines|einer)",),
            part_of_term=True,
        ),
        CueGroup(Assertion.NEGATED, CueDirection.ITEM, ("bei fehlende[rnm]",)),
        CueGroup(
            Assertion.NEGATED,
            CueDirection.BACKWARD,
            (
                f"(?:{_WAS} )?(?:nicht|nie|niemals)(?: (?:mehr|sicher|eindeutig|wieder|erneut))? {_SEEN}"
                "(?: (?:werden|worden))?",
                f"(?:{_WAS} )?(?:sicher )?ausgeschlossen(?: (?:werden|worden))?",
                f"{_WAS} (?:(?:glaubhaft|explizit|ausdrücklich|auch|ebenfalls|jedoch) )?verneint",
                "vernein(?:t|en|te|ten) (?:er|sie|der Patient|die Patientin|die Eltern|die Mutter)",
                rf"(?<!\bund\x20){_WAS} (?!(?:sonst|ansonsten)\b)(?:\w+ )?{_NORMAL}",
                rf":\s*{_NORMAL}",
                "fehl(?:t|en|te|ten)",
                "l(?:ag|agen|iegt|iegen) (?:\\w+ ){0,3}nicht (?:mehr )?vor",
                "(?:trat|traten|tritt|treten) (?:\\w+ ){0,3}nicht (?:mehr )?auf",
                "(?:besteht|bestehen|bestand|bestanden|bestehe|bestünden|zeigte? sich|zeigten sich|hatte (?:er|sie))"
                f" (?:nicht|nie|keine?[rns]?)(?: mehr)?{_ENDED}",
                f"{_WAS} (?:nicht|nicht mehr|negativ|unauffällig und nicht){_ENDED}",
                rf":\s*(?:(?:wird|werden) )?(?:nein|keine?[rns]?|negativ|fehlend|verneint){ITEM_END}",
            ),
        ),
        CueGroup(
            Assertion.UNCERTAIN,
            CueDirection.FORWARD,
            (
                "(?:dringende[rn]? |hochgradige[rn]? )?Verdacht auf(?: eine?[nrs]?)?",
                r"V\.\s?a\.",
                r"V\.?\s?d\.?\s?(?:auf|a\.)",
                "nicht (?:sicher |ganz )?(?:auszuschließen|ausgeschlossen|ausschließbar) (?:ist|sind|bleibt"
                "|bleiben|war)",
                rf"{STATEMENT_START}gegen(?= [^.;]{{1,60}}(?:spricht|sprechen|sprach))",
                "suspekt(?:e[rnms]?)?",
                "weniger (?:wahrscheinlich|durch|an)",
                "möglich(?:e[rnms]?|erweise)",
                "vermutlich(?:e[rnms]?)?",
                "vermutete[rnms]?",
                "mutmaßlich(?:e[rnms]?)?",
                "(?:höchst)?wahrscheinlich(?:e[rnms]?)?",
                "wahrscheinlichste[rnms]?(?: Diagnose)?(?: ist)?",
                "unwahrscheinlich(?:e[rnms]?)?",
                "fraglich(?:e[rnms]?)?",
                "eventuell(?:e[rnms]?)?",
                r"evtl\.",
                "vielleicht",
                "am ehesten",
                "verdächtig auf",
                "(?:unklar|fraglich),? ob",
                "Differen[zt]ialdiagnos(?:en?|tisch(?:e[rnms]?)?)",
                r"DD\s*:?",
                "Hinweise? (?:auf|für)",
                "Anhalt(?:spunkte)? für",
                "vereinbar mit",
                "Möglichkeit (?:einer|eines|von)",
                "pass(?:en|t|end|te|ten) zu(?: eine[mr])?",
                "(?:glaube[nt]?|denke[nt]?|meine[nt]?) nicht,? dass",
                "an(?= [^.;]{1,40}(?:gedacht|zu denken))",
                "(?:möglich|denkbar|(?:un)?wahrscheinlich) (?:ist|wäre|sind|wären)(?: auch)?",
                "(?:spricht|sprechen|sprach|sprachen) (?:(?:\\w+ )?für|(?:\\w+ )?gegen)(?: eine?[nrs]?)?",
                "ob",
                "Eindruck (?:einer|eines|von)",
                "(?:könnten?|dürften?|scheint|scheinen)(?: sich)?(?: um)?",
                "Verdachtsdiagnosen?",
                "suspekt auf",
                "unter dem Verdacht (?:auf|einer|eines)",
                r"i\.\s?S\.",
                "im Sinne (?:einer|eines|von)",
                r"a\.\s?e\.",
                r"(?:mögl|wahrsch|ggf|vermutl)\.",
                "Frage nach",
                f"{STATEMENT_START}an(?= [^.;]{{0,40}} denken)",
            ),
        ),
        CueGroup(
            Assertion.UNCERTAIN,
            CueDirection.BACKWARD,
            (
                "(?:kann|können|konnte|konnten) (?:\\w+ )?nicht (?:sicher )?ausgeschlossen werden",
                f"(?:{_WAS} )?nicht (?:sicher |ganz )?(?:auszuschließen|ausgeschlossen|ausschließbar|gesichert)",
                f"(?:{_WAS}|erscheint|erscheinen|scheint|bleibt|bleiben|gilt als|wäre) (?:\\w+ )?(?:möglich|fraglich"
                "|wahrscheinlich|unwahrscheinlich|unsicher|unklar|denkbar)",
                f"{_WAS} (?:\\w+ )?(?:vermutet|angenommen|diskutiert|erwogen)",
                "(?:halten|hält|halte) (?:wir|ich|man) (?:\\w+ )?für (?:\\w+ )?(?:un)?(?:wahrscheinlich|möglich"
                "|denkbar)",
                "(?:kommt|kommen|käme|kämen) (?:\\w+ )?(?:in Betracht|infrage|in Frage)",
                f"{_WAS} (?:\\w+ )?zu (?:erwägen|diskutieren|bedenken)",
                r"\((?:möglich|fraglich|wahrscheinlich|vermutet|\?)\)",
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
                "Familienanamnese(?: (?:ist|war))?(?: (?:positiv|auffällig|negativ))?(?: (?:für|bezüglich))?",
                "familienanamnestisch",
                f"{_OF_PATIENT} {_WHICH}{_RELATIVE}(?: (?:der|des) Patient(?:in|en))?",
                "familiär(?:e[rnms]?)?(?: gehäuft(?:e[rnms]?)?)?",
                f"{STATEMENT_START}{_WHICH}{_RELATIVE}(?: und {_RELATIVE})?"
                "(?= (?:hat|hatte|hatten|haben|mit|ist|sind|war|waren|leidet|leiden|litt|starb)|:)",
                "(?:kein|ein|jeder) Elternteil",
                "keine (?:weiteren )?(?:Verwandten|Geschwister|Familienmitglieder|Angehörigen)(?= mit)",
                "Elternteil mit",
                rf"(?<=[,;:]\x20){_RELATIVE}(?=:? (?:hat|hatte|mit|(?-i:[A-ZÄÖÜ])))",
                rf"{STATEMENT_START}{_RELATIVE}(?= (?:(?-i:[A-ZÄÖÜ])|[a-z][A-Z]))",
            ),
        ),
        CueGroup(
            Assertion.FAMILY_HISTORY,
            CueDirection.BOTH,
            (
                f"(?:bei|von) (?:{_OF_PATIENT} )?{_WHICH}{_RELATIVE}",
                "in (?:der|seiner|ihrer) Familie",
                "(?:mütter|väter)licherseits",
            ),
        ),
        CueGroup(
            Assertion.HYPOTHETICAL,
            CueDirection.FORWARD,
            (
                "falls",
                "wenn",
                "sollten?",
                "im Falle?(?: (?:von|eines|einer))?",
                "bei (?:erneutem |Wieder)?Auftreten (?:von|eines|einer)",
                "bei(?:m nächsten| erneute[mnr]| wiederholte[mnr])",
                "(?:Wieder|erneute |sofortige |umgehende |notfallmäßige )vorstellung bei",
                r"ggf\. bei",
                f"{STATEMENT_START}bei(?= [^.;]{{0,60}}(?:vorstell|Notaufnahme|bitte|melden|Rücksprache|aufsuchen"
                f"|b\\.\\s?B\\.))",
                "über(?= [^.;]{1,60}aufgeklärt)",
                "(?:Diagnostik|Untersuchung|Testung|Suche) (?:auf|nach|bezüglich|hinsichtlich)",
                r"z\.\s?A\.",
                r"bei Bedarf|b\.\s?B\.",
                rf"{STATEMENT_START}bei(?= [^.;]{{1,40}}(?:\d\s?(?:mg|g|ml|Tbl)|Tropfen|Tabletten?|\bGabe|\bgeben"
                rf"|über \d))",
                "(?:Impfung|geimpft) gegen",
                "bei (?:Persistenz|Verschlechterung|Zunahme) (?:der|des|von)",
                "um(?= [^.;]{0,60}(?:auszuschließen|zu vermeiden|vorzubeugen))",
                "(?:Aufklärung|aufgeklärt) (?:über|bezüglich)",
                "Abklärung (?:auf|hinsichtlich|bezüglich|einer|eines)",
                "(?:erhöhtes? )?Risiko (?:für|von|einer|eines)",
                "Gefahr (?:von|einer|eines|der|des)",
                "(?:zum|zur) (?:Ausschluss|Vermeidung|Vorbeugung|Prophylaxe)(?: (?:von|eines|einer|der|des))?",
                "(?:Kontrollen?|Screening|Überwachung|achten)(?: \\w+){0,4} (?:auf|hinsichtlich|bezüglich)",
                "Prophylaxe (?:von|gegen|einer|eines)",
            ),
        ),
        CueGroup(
            Assertion.HYPOTHETICAL,
            CueDirection.BACKWARD,
            ("(?:sollten?|soll|muss|müssen|müsste) (?:\\w+ ){0,2}ausgeschlossen werden",),
        ),
    ),
    pseudo=(
        "nicht (?:nur|zuletzt|unbedingt|notwendigerweise|allein)",
        rf"(?:anders als|im Gegensatz zu|ebenso wie|wie) (?:bei )?{_OF_PATIENT} {_WHICH}{_RELATIVE}",
        "nicht (?:gut |ausreichend |optimal |weiter )?(?:eingestellt|behandelt|kontrolliert|geklärt|zugenommen"
        "|abgenommen|gebessert|verändert|insulinpflichtig|behandlungsbedürftig|progredient|rückläufig)",
        "keine?[rnms]? (?:wesentliche[rnms]? |weitere[rnms]? |relevante[rnms]? |signifikante[rnms]? )?"
        "(?:Änderung|Veränderung|Besserung|Verschlechterung|Zunahme|Abnahme|Progredienz|Progression)",
        "keine?[rnms]? (?:Ursache|Therapie|Behandlung|Zweifel)",
        "ohne (?:Ursache|Therapie|Behandlung|Zweifel|Schwierigkeiten)",
        "gramnegativ(?:e[rnms]?)?",
        "Ursache (?:\\w+ ){1,5}nicht bekannt",
        rf"(?:{_OF_PATIENT} )?{_RELATIVE}\s+(?=vernein(?:t|en|te))",
        f"(?:{_OF_PATIENT} )?{_RELATIVE} {_REPORTS}",
        rf"(?:{_OF_PATIENT} )?(?:Sohn|Tochter|Kind) (?:\w+ )?Eltern",
        f"(?:laut|nach Angaben?(?: der| des)?|gemäß) (?:{_OF_PATIENT} )?{_RELATIVE}",
    ),
    terminators=(
        "(?:aber|jedoch)(?! nicht)",
        "sondern",
        "obwohl",
        "obgleich",
        "außer",
        "abgesehen von",
        "allerdings",
        "(?:hingegen|dagegen)(?! nicht)",
        "während",
        "wobei",
        "dennoch",
        "trotz",
        "wegen",
        "aufgrund",
        "bedingt durch",
        "und (?:mit|ist|war|hat|hatte|zeigt|zeigte|wirkt|er|sie)",
        "zuvor",
        "früher",
        rf"(?<=,\x20){_NEW_ITEM}(?![^.;\n]*\b(?:oder|noch|bzw)\b)",
        r"(?<=,\x20)(?:d(?:ie|er|as|en|em)|eine?)(?=\s(?-i:[A-ZÄÖÜ]))(?![^.;\n]*\b(?:oder|noch|bzw)\b)",
        r"(?<=,\x20)(?:räumt|gibt|berichtet|klagt|zeigt|ist|war|besteht|bestehen|leidet|nimmt)",
        "sonst",
        "ansonsten",
        r"(?<=en\x20)wir",
        *PLUS_SIGNS,
    ),
    terminators_by_assertion=dict.fromkeys((Assertion.NEGATED, Assertion.UNCERTAIN), _CLAUSES)
    | {Assertion.FAMILY_HISTORY: (*_PATIENT, "(?:er|sie) selbst")},
    conjunctions=("und", "oder", "sowie", "bzw\\.", "noch", "und/oder"),
    affirmed_cues=(
        rf"{_WAS} (?:\w+ )?{_SEEN}",
        "vorhanden",
        MEASUREMENT,
        PLUS_AFTER,
        rf"positiv{ITEM_END}",
        r"(?:beidseits|bds\.|links|rechts)",
        f"(?:besteht|bestehen|bestand|bestanden){_ENDED}",
        f"(?:liegt|liegen|lag|lagen) vor{_ENDED}",
    ),
    patient=_PATIENT,
    bare_results=_BARE,
)
