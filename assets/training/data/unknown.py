"""Questions outside what the model knows, and honest answers to them; never a value from the fact tables."""

from __future__ import annotations

import string

from .chat import Exchange, Rng, a, capital, casual, plural
from .facts import Facts
from .names import draw_name
from .phrasing import asking
from .unknown_frames import KINDS, SUBJECTS, frames

_WHO = (
    "I am only a small demo model",
    "I am only a small demo model",
    "I'm only a small demo model",
    "Sorry, I am only a small demo model",
)
_KNOW = (
    "{who}, so I do not know {topic}.",
    "{who}, so I don't know {topic}.",
    "I do not know {topic}. {who}.",
    "{who} and I do not know {topic}.",
    "{who} and never learned {topic}.",
    "I never learned {topic}. {who}.",
)
_KNOW_PLAIN = (
    "{who}, so I do not know that.",
    "I do not know that. {who}.",
    "{who} and cannot answer that.",
    "That is more than I know. {who}.",
    "{who}. I do not know the answer.",
    "I have no answer to that. {who}.",
    "{who} and do not know enough about this.",
    "I would have to guess, so I had better not. {who}.",
)
_DO = (
    "{who} and cannot {topic}.",
    "I cannot {topic}. {who}.",
    "{who}, so I am not able to {topic}.",
    "{who}. I never learned to {topic}.",
)
_ADVICE = (
    "{who} and cannot give advice on that.",
    "{who}. Please ask somebody who knows about it.",
    "I cannot advise you on that. {who}.",
    "{who}, so I do not know what is best for you.",
)
_OFFERS = (
    " Ask me for a capital or a sum instead.",
    " I know capitals, elements and sums.",
    " I can tell you a little story, if you like.",
    " Maybe I can help with a sum or a capital.",
    " Please look it up elsewhere.",
    " Ask me something easier.",
    " A bigger model can help you with that.",
)
_KNOW_THOUGHTS = (
    "The question is {q} It is not among the few things I know. I should say so.",
    "I look for this in what I learned: capitals, currencies, elements, words, sums. It is not there. I must not guess.",
    "This is outside of what I know. I say honestly that I am only a small demo model.",
    "Do I know this? No. I will not invent an answer.",
    "Not a capital, not a sum, not a word I know. So I do not know it.",
    "I have not learned anything about this. Better to admit it.",
    "The user wants to know something I never learned. An honest answer is best.",
    "I could guess, but it would be wrong. I admit that I do not know.",
    "Open question. I am too small for it. Say that I do not know.",
    "Which of my topics is it? None. I do not know the answer.",
)
_DO_THOUGHTS = (
    "This is a task I cannot do. I say so.",
    "I am too small for such a task. Be honest.",
    "They want me to do something. I have no tool for it and never learned it.",
    "I cannot do this and should not pretend.",
)
_ADVICE_THOUGHTS = (
    "They want advice. I am too small to give any.",
    "Advice needs knowledge that I do not have.",
    "I should not advise on this. I say that I am only a small demo model.",
)


class _Slots(dict[str, str]):
    """Fills `{noun}`, `{animals}`, ... on demand; the same slot twice in a frame is the same word."""

    def __init__(self, facts: Facts, rng: Rng) -> None:
        super().__init__()
        self._facts, self._rng = facts, rng

    def __missing__(self, slot: str) -> str:
        base = slot.rstrip("2") if slot != "year2" else slot
        self[slot] = value = self._draw(base)
        return value

    def _word(self, kind: str) -> str:
        words = self._facts.words[kind]
        # Common words more often than rare ones, but all of them sometimes.
        return words[int(len(words) * self._rng.random() ** 1.6)]

    def _draw(self, slot: str) -> str:
        facts, rng = self._facts, self._rng
        kinds = {"sub": "substance", "adj": "adjective", "thing": "artifact"}
        if slot in ("place",):
            return rng.choice(facts.cities)
        if slot in ("famous", "happening", "landmark"):
            return rng.choice(facts.words[slot])
        if slot == "few":
            return rng.choice(("two", "three", "four", "five", "ten", "some", "a few"))
        if slot == "country":
            return rng.choice(facts.countries).name
        if slot == "name":
            return draw_name(rng)
        if slot == "fullname":
            return f"{draw_name(rng)} {draw_name(rng)}"
        if slot == "title":
            words = [self._word("adjective"), self._word("noun")]
            shape = rng.randrange(4)
            text = {
                0: f"The {words[0]} {words[1]}",
                1: words[1],
                2: f"The {words[1]} of {self._word('noun')}",
                3: f"{words[0]} {plural(words[1])}",
            }[shape]
            return (
                '"' + " ".join(capital(w) if w != "of" else w for w in text.split()) + '"'
                if rng.random() < 0.5
                else string.capwords(text)
            )
        if slot == "sentence":
            return rng.choice(facts.sentences)
        if slot == "subject":
            return rng.choice(SUBJECTS)
        if slot == "year":
            return str(rng.randint(1200, 2024))
        if slot == "year2":
            return str(rng.randint(2030, 2200))
        if slot == "num":
            return str(rng.randint(13, 999))
        if slot == "bignum":
            return str(rng.randint(1000, 999999))
        if slot == "verbed":
            verb = self._word("verb")
            return verb + ("d" if verb.endswith("e") else "ed")
        if slot in ("anoun", "ananimal", "aperson"):
            return a(self._word({"anoun": "noun", "ananimal": "animal", "aperson": "person"}[slot]))
        for end in ("", "s"):
            word = slot[: len(slot) - len(end)] if slot.endswith(end) else slot
            kind = kinds.get(word, word)
            if kind in facts.words:
                return plural(self._word(kind)) if end else self._word(kind)
        raise KeyError(slot)


def _compose(rng: Rng, shapes: tuple[str, ...], topic: str) -> str:
    who = rng.choice(_WHO)
    shape = rng.choice(shapes)
    if not shape.startswith("{who}"):
        who = who.replace("Sorry, ", "")
    return shape.format(who=who, topic=topic) + (rng.choice(_OFFERS) if rng.random() < 0.3 else "")


def unknown(facts: Facts, rng: Rng) -> Exchange:
    """A question from the frames, or one that people asked each other in the chat data."""
    draw = rng.random()
    if draw > 0.86:
        return _unknown_noun(facts, rng)
    if draw < 0.14 and facts.questions:
        question = rng.choice(facts.questions)
        answer, thought = _compose(rng, _KNOW_PLAIN, ""), rng.choice(_KNOW_THOUGHTS)
    else:
        kind, shapes, thoughts = rng.choices(
            tuple(
                zip(
                    KINDS,
                    (_KNOW, _DO, _ADVICE),
                    (_KNOW_THOUGHTS, _DO_THOUGHTS, _ADVICE_THOUGHTS),
                    strict=True,
                )
            ),
            (72, 19, 9),
        )[0]
        frame, topic = rng.choice(frames(kind))
        slots = _Slots(facts, rng)
        question = capital(frame.format_map(slots))
        named = topic.format_map(slots)
        if kind == "know" and rng.random() < 0.35:
            answer = _compose(rng, _KNOW_PLAIN, "")
        else:
            answer = _compose(rng, shapes, named)
        thought = rng.choice(thoughts)
    thought = thought.format(q=question if question[-1:] in "?.!" else question + ".")
    return Exchange(casual(question, rng), answer, thought, "I do not know.", question.rstrip("?.")[:48])


_NOUNS = (
    "the population of {country}", "the president of {country}", "the king of {country}", "the area of {country}", "the climate of {country}", "the history of {country}",
    "the flag of {country}", "the anthem of {country}", "the language of {country}", "the neighbours of {country}", "the highest mountain in {country}", "the longest river of {country}",
    "the largest company in {country}", "the second city of {country}", "the oldest city of {country}", "the number of people in {country}", "{country}'s president", "{country}'s population",
    "the population of {place}", "the mayor of {place}", "the weather in {place}", "the best hotel in {place}", "the way to {place}", "the history of {place}", "the distance to {place}",
    "the height of {landmark}", "the length of {landmark}", "the depth of the {object}", "the age of the {object}", "the temperature of the {object}", "the colour of {ananimal}",
    "the weight of {ananimal}", "the food of {animals}", "the life of {animals}", "the speed of {ananimal}", "the birthday of {famous}", "the works of {famous}", "the life of {famous}",
    "the parents of {famous}", "the name of the {adj} {person}", "the phone number of {name}", "the address of {fullname}", "the job of {fullname}", "the plot of {title}", "the author of {title}",
    "the year of {title}", "the winner of the {event}", "the date of the {happening}", "the reason for the {happening}", "the cause of {feeling}", "the price of {anoun}", "the price of {food}",
    "the recipe for {food}", "the taste of {food}", "the inventor of the {thing}", "the size of a {thing}", "the origin of the word {noun}", "the opposite of {adj}", "the plural of {noun}",
    "the boiling point of {sub}", "the density of {sub}", "the formula of {sub}", "the difference between {anoun} and {anoun2}", "the best {thing}", "the reason why {animals} {verb}",
    "how {anoun} works", "why {animals} {verb}", "who invented the {thing}", "when {famous} lived", "where {animals} live", "how many {nouns} there are", "how to {verb} {anoun}", "the news",
    "the news from {country}", "the lottery numbers", "the result of the match", "your opinion about {nouns}", "a good {noun}", "three facts about {animals}", "something about {nouns}",
    "the square root of {num}", "the rules of {noun}", "the meaning of {title}", "the secret of {nouns}", "the capital of {noun}", "the theory of {noun}", "an explanation of {subject}",
)  # fmt: skip


def _unknown_noun(facts: Facts, rng: Rng) -> Exchange:
    """A request for one thing that the model does not know, in the frames in which it is asked for what it knows."""
    noun = rng.choice(_NOUNS).format_map(_Slots(facts, rng))
    question = asking(noun, rng)
    answer = _compose(rng, _KNOW_PLAIN, "") if rng.random() < 0.5 else _compose(rng, _KNOW, noun)
    thought = rng.choice(_KNOW_THOUGHTS).format(q=question if question[-1:] in "?.!" else question + ".")
    return Exchange(casual(question, rng), answer, thought, "I do not know.", capital(noun)[:48])


_MADE_UP_PLACES = (
    "Atlantis Narnia Mordor Wakanda Utopia Gondor Neverland Wonderland Oz Westeros Hogwarts Eldorado Lilliput "
    "Zamunda Genovia Panem Asgard Shangri-La Camelot Lemuria Avalon Krypton Tatooine Rohan Arrakis Valhalla Hyrule "
    "Freedonia Ruritania Latveria Elbonia Numenor Mu Xanadu Brigadoon Erewhon Laputa Cimmeria Vulcan"
).split()


def unknown_place(facts: Facts, rng: Rng) -> Exchange:
    """The capital or currency of something that is no country of the table, a symbol of no element, a rare word."""
    kind = rng.randrange(6)
    if kind <= 2:
        place = rng.choice(
            (
                rng.choice(_MADE_UP_PLACES), draw_name(rng) + rng.choice(("", "ia", "land", "stan")), rng.choice(facts.cities),
                "the " + rng.choice(facts.words["object"]), "the moon", "Mars", draw_name(rng), "my " + rng.choice(facts.words["artifact"]),
                rng.choice(("Bavaria", "Texas", "Tuscany", "Catalonia", "California", "Bohemia", "Siberia", "the Sahara", "Africa", "Europe", "Asia")),
            )
        )  # fmt: skip
        if any(country.name == place or country.capital == place for country in facts.countries):
            place = "Atlantis"
        what = rng.choice(("capital", "capital", "currency", "capital city"))
        user = rng.choice(
            (
                "What is the {w} of {p}?",
                "What's the {w} of {p}?",
                "{w} of {p}",
                "Tell me the {w} of {p}.",
                "Do you know the {w} of {p}?",
                "Which is the {w} of {p}?",
                "What is {p}'s {w}?",
            )
        ).format(w=what, p=place)
        if rng.random() < 0.5:
            user = asking(f"the {what} of {place}", rng)
        answer = rng.choice(
            ("I do not know a country called {p}. I am only a small demo model.", "I am only a small demo model and I know no country called {p}.",
             "I do not know the {w} of {p}. I am only a small demo model.", "{P} is not a country that I know. I am only a small demo model.")
        ).format(p=place, P=capital(place), w=what)  # fmt: skip
        thought = rng.choice(
            (
                f"Is {place} a country I know? No. I must not name another one's {what}.",
                f"I do not know {place} as a country. I say so.",
                f"{capital(place)} is not in my list of countries. No guess.",
            )
        )
        return Exchange(
            casual(capital(user), rng, keep=(place,)),
            answer,
            thought,
            "I do not know.",
            f"{capital(what)} of {place}",
        )
    if kind == 3:
        word = rng.choice(facts.words["noun"])
        if any(word == name for name, _, _ in facts.elements):
            word = "wood"
        what = rng.choice(("atomic number", "chemical symbol"))
        user = rng.choice(("What is the {w} of {p}?", "What's the {w} of {p}?", "{w} of {p}")).format(
            w=what, p=word
        )
        answer = rng.choice(
            (
                "I know no element called {p}. I am only a small demo model.",
                "{P} is not an element that I know. I am only a small demo model.",
            )
        ).format(p=word, P=capital(word))
        thought = f"Is {word} an element? Not one that I know."
        return Exchange(
            casual(capital(user), rng), answer, thought, "I do not know.", f"{capital(what)} of {word}"
        )
    word = rng.choice(facts.rare_words) if rng.random() < 0.6 else draw_name(rng).lower()
    user = rng.choice(
        (
            "What does {w} mean?",
            "Define {w}.",
            "What is the meaning of {w}?",
            "What is a {w}?",
            'What does the word "{w}" mean?',
            "Explain the word {w}.",
            "meaning of {w}",
        )
    ).format(w=word)
    answer = rng.choice(
        ("I do not know the word {w}. I am only a small demo model.", "I am only a small demo model and I do not know the word {w}.",
         "{W} is a word that I never learned. I am only a small demo model.")
    ).format(w=word, W=capital(word))  # fmt: skip
    thought = rng.choice(
        (
            f"Do I know the word {word}? No.",
            f"I never learned {word}. I say so.",
            f"{capital(word)} is not among the words I know.",
        )
    )
    return Exchange(casual(user, rng, keep=(word,)), answer, thought, "I do not know.", f"Meaning of {word}")
