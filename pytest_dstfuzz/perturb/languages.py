"""Detects utterances and clauses in other languages than English.

The locks only know English words: in `no quiero` they would lock `no` as a value. Letters of
another script show another language. In Latin letters, frequent words of other languages and the
share of unknown words decide.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from typing import Final

from pytest_dstfuzz.perturb.words import Word, word_set

#: Frequent words of requests in other languages. No word is the name of a place or a dish.
#: `OtherLanguages` removes words that are also English.
_WORDS: Final = word_set(
    # German
    """ich mich mir wir uns du dich dir sie ihr ihnen ist sind bin war kein keine keinen keiner
    nicht nichts möchte möchten brauche brauchen suche suchen haben habe hätte gerne bitte
    danke und oder aber mit ohne für nach bei über heute morgen abend wie wann warum
    wieviel kann können könnte kannst gibt ein eine einen einem einer zwei drei vier fünf
    personen zimmer frühstück auch noch nur sehr etwas guten hallo mein meine meinen dem
    von zum zur auf wird werden soll muss müssen"""
    # French
    """ je nous vous tu il elle ils suis est sommes êtes sont ne pas plus rien veux voudrais
    voulons cherche cherchons besoin ai avons avez peux pouvez puis merci bonjour bonsoir
    avec sans pour dans chez une deux trois quatre personnes chambre oui mais aussi où
    quand comment pourquoi combien mon ma mes votre cette ce ça quel quelle aujourd'hui
    demain soir matin c'est j'ai j'aimerais qu'est s'il plaît s'il-vous-plaît
    petit-déjeuner déjeuner"""
    # Spanish
    """ yo usted ustedes nosotros quiero quiere queremos quisiera necesito necesita necesitamos
    busco buscamos tengo tiene puedo puede podría gustaría gracias hola buenos buenas por
    favor para con sin una dos tres cuatro personas habitación habitaciones desayuno pero
    también cuándo cómo cuánto qué mi mis su este esta hoy mañana noche hay está estoy soy
    sí nada algo muy dónde donde quisieramos reservar"""
    # Italian
    """ io lei noi voi vorrei voglio vogliamo vorremmo cerco cerchiamo bisogno ho abbiamo posso
    può potrei grazie ciao buongiorno buonasera con senza per una due tre quattro persone
    camera colazione ma anche quando come quanto dove perché oggi domani sera mattina sono
    siamo è c'è non niente questo questa prego prenotare"""
    # Portuguese
    """ eu você vocês nós quero queria queremos gostaria preciso precisamos procuro procuramos
    tenho temos posso pode poderia obrigado obrigada olá bom dia por favor para com sem
    uma dois três quatro pessoas quarto café manhã mas também quando quanto onde hoje
    amanhã noite não sim muito isso este esta estou"""
    # Dutch
    """ ik wij jij jullie zij wil willen zoek zoeken heb hebben nodig kan kunnen graag alstublieft
    alsjeblieft bedankt hallo met zonder voor naar een twee drie vier personen kamer
    ontbijt maar ook wanneer hoe waar waarom vandaag morgen avond geen niet niets wel mijn
    dit deze het is zijn"""
    # Swedish, Danish and Norwegian
    """ jag jeg vi vill vil behöver behøver trenger söker leter har inte ikke ingen inga tack takk
    tak snälla hej hei med utan uden uten för til två tre fyra fire personer rum værelse
    frukost morgenmad frokost men också også när når hur hvordan var hvor idag ikväll"""
    # Polish and Czech
    """ nie jest jestem chcę chciałbym chciałabym potrzebuję szukam mam mogę proszę dziękuję dzień
    dobry cześć bez dla dwa trzy cztery osób pokój śniadania śniadanie ale też kiedy jak
    gdzie dziś jutro chci potřebuji hledám děkuji prosím dobrý snídani pokoj není nechci"""
    # Turkish, Finnish, Hungarian, Romanian, Indonesian, Vietnamese
    """ ben bir istiyorum istemiyorum arıyorum ihtiyacım var yok lütfen teşekkürler merhaba için
    değil kişilik oda kahvaltı nerede minä haluan haluaisin en tarvitsen etsin kiitos hei
    ilman kanssa huone aamiaista kaksi missä nem kérem köszönöm szeretnék szeretnénk
    keresek szobát reggelit nélkül kell vreau doresc caut mulțumesc bună fără cameră micul
    dejun saya kami mau ingin tidak butuh mencari tolong terima kasih dengan tanpa untuk
    kamar sarapan tôi không muốn cần tìm phòng cảm ơn"""
)
_SENTENCE_END: Final = re.compile(r"[.!?;:,…]")
_LATIN: Final = "LATIN"
#: Minimum number of letters of another script in a word. A single one may be a symbol such as pi.
_LETTERS: Final = 2
#: Minimum number of words of other languages in a foreign clause.
_HITS: Final = 2
#: With one such word, a clause is foreign if at least this share of its words is unknown.
_UNKNOWN: Final = 0.5


@lru_cache(maxsize=4096)
def _script(letter: str) -> str:
    """Return the script of a letter: the first word of its Unicode name."""
    return unicodedata.name(letter, "").partition(" ")[0]


@lru_cache(maxsize=1 << 14)
def is_of_other_script(word: str) -> bool:
    """Return whether all letters of a word belong to another script than Latin.

    A word with letters of both scripts is an English word with look-alike characters.

    >>> is_of_other_script("早餐"), is_of_other_script("pаge"), is_of_other_script("π")
    (True, False, False)
    """
    letters = [letter for letter in word if letter.isalpha()]
    wide = any(ord(letter) >= 0x2E80 for letter in letters)
    return len(letters) >= (1 if wide else _LETTERS) and all(
        _script(letter) not in {_LATIN, "FULLWIDTH", "MATHEMATICAL", "FEMININE", "MASCULINE"}
        for letter in letters
    )


class OtherLanguages:
    """Detector of utterances in other languages than English."""

    def __init__(self, is_word: Callable[[str], bool], plain: Collection[str]) -> None:
        """Store a test for English words, and the English function words."""
        self._is_word = is_word
        self._plain = frozenset(plain)
        self._words = frozenset(word for word in _WORDS if not is_word(word)) - self._plain

    def has(self, words: Sequence[Word], gaps: Sequence[str]) -> bool:
        """Return whether an utterance, or one of its clauses, is in another language.

        Args:
            words: the words of the utterance.
            gaps: the text before each word, and the text after the last one.
        """
        lowers = [word.lower for word in words]
        if any(not lower.isascii() and is_of_other_script(lower) for lower in lowers):
            return True
        if self._words.isdisjoint(lowers) and all(map(str.isascii, lowers)):
            return False
        lowers = [unicodedata.normalize("NFC", lower.replace("’", "'")) for lower in lowers]
        first = 0
        for index in range(1, len(lowers) + 1):
            if index == len(lowers) or _SENTENCE_END.search(gaps[index]):
                if self._is_other(lowers[first:index]):
                    return True
                first = index
        return self._is_other(lowers)

    def _is_other(self, lowers: Sequence[str]) -> bool:
        """Return whether a clause is in another language."""
        spoken = [lower for lower in lowers if lower[:1].isalpha()]
        hits = len({lower for lower in spoken if lower in self._words})
        english = sum(lower in self._plain for lower in spoken)
        unknown = sum(not (lower in self._plain or self._is_word(lower)) for lower in spoken)
        if hits >= _HITS and hits >= english:
            return True
        return hits > 0 and len(spoken) > 1 and unknown >= max(2, _UNKNOWN * len(spoken)) > english
