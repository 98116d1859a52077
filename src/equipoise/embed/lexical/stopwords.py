"""Words that say little of what a text is about, for a few languages: articles, pronouns, prepositions."""

from __future__ import annotations

_ENGLISH = """
a about above after again all am an and any are as at be because been before being below between both but
by can could did do does doing down during each few for from further had has have having he her here hers
herself him himself his how i if in into is it its itself me more most my myself no nor not of off on
once only or other our ours ourselves out over own same she should so some such than that the their
theirs them themselves then there these they this those through to too under until up very was we were
what when where which while who whom why will with would you your yours yourself yourselves
"""

_GERMAN = """
ab aber alle allem allen aller alles als also am an ander andere anderen anderer anderes auch auf aus bei
beim bin bis bist da damit dann das dass dein deine dem den denn der deren des dessen dich die dies diese
diesem diesen dieser dieses dir doch dort du durch ein eine einem einen einer eines er es etwas euch euer
eure für gegen hab habe haben hat hatte hatten hier hin hinter ich ihm ihn ihnen ihr ihre ihrem ihren
ihrer im in indem ins ist jede jedem jeden jeder jedes jene jenem jenen jener jenes jetzt kann kein keine
keinem keinen keiner man manche mein meine mich mir mit muss nach nicht noch nun nur ob oder ohne sehr
sein seine seinem seinen seiner seit selbst sich sie sind so solche soll sondern sonst über um und uns
unser unter vom von vor war waren warst was weil welche welcher wenn werde werden wie wieder will wir
wird wo wurde wurden zu zum zur zwar zwischen
"""

_FRENCH = """
à ai ainsi alors as au aucun aussi autre aux avec avait avant avez avons c car ce ceci cela ces cet cette
ceux chaque ci comme d dans de des donc dont du elle elles en entre est et étaient était être eu fait il
ils j je l la le les leur leurs lui m ma mais me même mes moi mon n ne ni nos notre nous on ont ou où par
pas peu plus pour qu quand que quel quelle qui s sa sans se sera ses si son sont sous sur t ta te tes toi
ton tous tout toute très tu un une vers vos votre vous y
"""

_SPANISH = """
a al algo ante antes aquel aquella así aun aunque cada como con contra cual cuando de del desde donde dos
e el él ella ellas ellos en entre era eran es esa ese eso esta está están estas este esto estos fue
fueron ha había han hasta hay la las le les lo los más me mi mientras mis mucho muy nada ni no nos
nosotros nuestra nuestro o os otra otro para pero poco por porque pues que qué quien se sea ser si sí sin
sobre son su sus también tan tanto te tiene todo todos tu tus un una unas uno unos y ya yo
"""

STOPWORDS: dict[str, frozenset[str]] = {
    "english": frozenset(_ENGLISH.split()),
    "german": frozenset(_GERMAN.split()),
    "french": frozenset(_FRENCH.split()),
    "spanish": frozenset(_SPANISH.split()),
}
