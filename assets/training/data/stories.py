"""Little stories from a grammar: no sentence pattern twice in a story, words drawn from WordNet."""

from __future__ import annotations

from .chat import Exchange, Rng, a, capital, casual, plural
from .facts import Facts
from .names import draw_name
from .vocabulary import ADJECTIVES, ANIMALS, FEELINGS, FOODS, JOBS, NATURE, STUFF, THINGS, VERBS

_ASKS = (
    "Tell me a story.", "Tell me a story about {w}.", "Write a short story.", "Write a story about {w}.", "Can you tell me a story?",
    "I want to hear a story about {w}.", "Please tell a little story.", "Tell me a long story.", "Tell me a long story about {w}.",
    "Write a long story, please.", "I want a really long story with {w}.", "story about {w} please", "Make up a story about {w}.", "Could you write a story with {w}?", "A bedtime story, please.",
    "Once upon a time...", "Tell my children a story about {w}",
)  # fmt: skip
_BEGIN = (
    "Once upon a time there was {a1} called {N} who lived near {P}.", "{N} was {aj1} {k}, and the home of {N} was {aplace}.",
    "Long ago, {aj1} {k} named {N} came to {P}.", "In {P} there lived {aj1} {k}. Its name was {N}.", "This is the story of {N}, {aj1} {k} from {P}.",
    "There was once {aplace} near {P}, and in it lived {N}, {aj1} {k}.", "Nobody in {P} knew much about {N}, the {j1} {k}.",
)  # fmt: skip
_WANT = (
    "More than anything {N} wanted {at1}.", "One thing was missing: {at1}.", "Every night {N} dreamed of {at1}.",
    "{N} had lost {at1} and could not forget it.", "Friends told {N} about {aj2} {t1} far away.", "\"I will find {at1},\" said {N} one morning.",
    "Then a letter came. It spoke of {aj2} {t1}.",
)  # fmt: skip
_MIDDLE = (
    "So {N} packed some {f1} and left.", "The way led past {aobj} and through {aj3} {place2}.", "It rained for {n} days.",
    "On the road {N} met {M}, {aj4} {k2}.", "\"Where are you going?\" asked {M}.", "\"I am looking for {at1},\" {N} answered.",
    "{M} laughed and gave {N} {at2}.", "Together they walked to {Q}.", "There they saw {n} {as1} beside {aobj2}.",
    "One of the {as1} was {j5} and spoke of {feel1}.", "{N} shared the {f1} with everybody.", "At night they slept under {aobj3}.",
    "{M} sang a song about {f2} and {feel2}.", "In the morning the {t2} was gone.", "\"Who took it?\" cried {M}.",
    "They asked {aper1}, but the answer was only \"{W}\".", "They asked {aper2} too, who pointed at the {place3}.",
    "{N} felt {feel1} and did not know what to do.", "A {c} light shone from the {place3}.", "Slowly {N} opened {at3}.",
    "Inside lay {at4}, {j6} and covered with {sub1}.", "\"This is not what I wanted,\" said {N}.", "\"But it may help us,\" said {M}.",
    "They carried it for {n2} miles.", "Near {Q} {aj7} {k3} stood in the way.", "Its name was {O}, and it was afraid of {as2}.",
    "{O} wanted {f3} and nothing else.", "{M} had a plan.", "They built {at5} out of {sub2} and {sub3}.", "It took them {n3} hours.",
    "{O} looked at it and began to smile.", "Now they were three.", "The {per1} of {Q} heard of it and sent them {f4}.",
    "Winter came, and the {obj4} turned {c2}.", "{N} learned to {v1} and to {v2}.", "{M} learned nothing, but was happy.",
    "One evening {aj8} {per2} knocked at the door.", "\"I have what you are looking for,\" said the {per2}.", "Nobody moved.",
    "The {per2} put {at6} on the table.", "It was {j9}, and it smelled of {f5}.", "{O} wanted to touch it, but {M} said no.",
    "Then they heard {asound} from the {place4}.", "{N} ran outside.", "There was only {aobj5} and a lot of {sub4}.",
    "Then {ak4} flew over the {place4} and dropped {at7}.", "\"Look!\" cried {O}.", "They counted the {ts8}: there were {n4} of them.",
    "Each was {c3} like {sub5}.", "{N} thought of home, of {P} and of the {j10} {t9} there.",
)  # fmt: skip
_END = (
    "At last {N} found {at1}, and it was smaller than expected.", "In the end {N} gave it all to {M} and went home.",
    "When they came back to {P}, everybody was waiting with {f6}.", "And the {t1}? It had been at home all the time.",
    "From that day on {N} and {M} were friends.", "{N} never went away again.", "And if you go to {P}, you can still see the {t1} there.",
    "That is how {N} learned about {feel3}.", "They all ate {f6} and were happy.", "The end.",
)  # fmt: skip
_COLOURS = "red blue green white black golden grey silver yellow brown purple orange".split()
_SOUNDS = ("a loud noise", "a soft voice", "a song", "a bell", "steps", "a whisper", "laughter")
_SAYINGS = (
    "No",
    "Not today",
    "Ask the wind",
    "Perhaps",
    "Who knows",
    "I am busy",
    "Go on",
    "It was not me",
    "Come back later",
)


_EVERYDAY = {
    "animal": ANIMALS, "adjective": ADJECTIVES, "artifact": THINGS, "food": FOODS, "feeling": FEELINGS, "object": NATURE,
    "person": JOBS, "substance": STUFF, "verb": VERBS,
}  # fmt: skip


class _Words(dict[str, str]):
    """The words of one story; a slot keeps its word through the whole story."""

    def __init__(self, facts: Facts, rng: Rng, topic: str) -> None:
        super().__init__(k=topic)
        self._facts, self._rng = facts, rng

    def _pick(self, kind: str) -> str:
        if self._rng.random() < 0.85:
            return self._rng.choice(_EVERYDAY[kind])
        words = self._facts.words[kind]
        return words[int(len(words) * self._rng.random() ** 2)]

    def __missing__(self, slot: str) -> str:
        self[slot] = value = self._draw(slot)
        return value

    def _draw(self, slot: str) -> str:
        rng = self._rng
        base = slot.rstrip("0123456789")
        number = slot[len(base) :]
        if base in ("N", "M", "O"):
            return draw_name(rng)
        if base in ("P", "Q"):
            return rng.choice(self._facts.cities)
        if base == "W":
            return rng.choice(_SAYINGS)
        if base == "n":
            return (
                str(rng.randint(2, 90))
                if rng.random() < 0.5
                else rng.choice("two three four five seven nine ten twelve".split())
            )
        if base == "c":
            return rng.choice(_COLOURS)
        if base == "asound":
            return rng.choice(_SOUNDS)
        if base == "a":
            return a(f"{self['j' + number]} {self['k']}")
        if base == "aj":
            return a(self["j" + number])
        if base == "ak":
            return a(self["k" + number])
        if base in ("at", "aobj", "aper", "aplace"):
            return a(self[base[1:] + number])
        if base == "as":
            return plural(self._pick("animal"))
        if base == "ts":
            return plural(self._pick("artifact"))
        kinds = {
            "k": "animal",
            "j": "adjective",
            "t": "artifact",
            "f": "food",
            "feel": "feeling",
            "obj": "object",
            "place": "object",
            "per": "person",
            "sub": "substance",
            "v": "verb",
        }
        if base == "place":
            return rng.choice(
                "forest valley house garden castle village river mountain island tower cave mill bridge harbour meadow lake field cellar market inn".split()
            )
        return self._pick(kinds[base])


def story_text(facts: Facts, rng: Rng, topic: str, length: int) -> str:
    """A story of about `length` sentences about `topic` (an animal or a person)."""
    words = _Words(facts, rng, topic)
    middle = sorted(rng.sample(range(len(_MIDDLE)), min(len(_MIDDLE), max(2, length - 4))))
    chosen = [rng.choice(_BEGIN), rng.choice(_WANT), *(_MIDDLE[i] for i in middle)]
    ends = rng.sample(range(len(_END) - 1), 2)
    chosen += [_END[i] for i in sorted(ends)]
    if rng.random() < 0.4:
        chosen.append(_END[-1])
    sentences = [capital(sentence.format_map(words)) for sentence in chosen]
    out, paragraph = [], []
    for sentence in sentences:
        paragraph.append(sentence)
        if len(paragraph) >= rng.randint(3, 9):
            out.append(" ".join(paragraph))
            paragraph = []
    if paragraph:
        out.append(" ".join(paragraph))
    return "\n\n".join(out)


def story(facts: Facts, rng: Rng, length: int = 0) -> Exchange:
    """A request for a story and the story; `length` in sentences, drawn when 0."""
    topic = (
        rng.choice(rng.choice((ANIMALS, ANIMALS, JOBS)))
        if rng.random() < 0.85
        else rng.choice(facts.words["animal"])
    )
    user = rng.choice(_ASKS)
    if not length:
        length = rng.choice((25, 35, 45, 60)) if "long" in user else rng.choice((5, 6, 8, 10, 14, 20, 30))
    thought = rng.choice(
        (
            "A story. I need somebody who wants something, a way and an end.",
            "Beginning, middle, end. I start with a name and a place.",
            f"The user wants a story. I will tell of {a(topic)}.",
            "I make something up, one sentence after the other.",
        )
    )
    return Exchange(
        casual(user.format(w=a(topic)), rng),
        story_text(facts, rng, topic, length),
        thought,
        "",
        f"Story about {a(topic)}",
    )
