"""Capitals, currencies and continents of the world's countries, both ways, with follow-up questions."""

from __future__ import annotations

from .chat import Exchange, Rng, capital, casual
from .facts import Country, Facts
from .held_out import is_held_phrasing
from .phrasing import asking

_CAPITAL_FRAMES = (
    "What is the capital of {c}?",
    "What's the capital of {c}?",
    "capital of {c}",
    "The capital of {c}?",
    "Which city is the capital of {c}?",
    "Tell me the capital of {c}.",
    "Can you tell me the capital of {c}?",
    "What is the capital city of {c}?",
    "Name the capital of {c}.",
    "Do you know the capital of {c}?",
    "What is {c}'s capital?",
    "Give me the capital of {c}",
    "Please tell me what the capital of {c} is.",
    "I would like to know the capital of {c}.",
    "What city is the capital of {c}?",
    "Which city is {c}'s capital?",
    "Hello! What is the capital of {c}?",
    "Could you name the capital of {c}?",
    "I'm learning geography. What is the capital of {c}?",
    "Where is the government of {c}? I mean the capital.",
    "{c}: capital?",
    "What do we call the capital of {c}?",
    "I forgot the capital of {c}.",
    "Remind me, what is the capital of {c}?",
    "Capital city of {c} please",
    "We are going to {c} next year. What is the capital?",
    "My daughter wants to know the capital of {c}.",
    "what would you say is the capital of {c}",
    "I am planning a trip to {c}. Which city is its capital?",
    "Geography test: capital of {c}?",
    "One question about {c}: what is the capital?",
    "I have to learn the capital of {c}. Which is it?",
    "Somebody said you know capitals. What about {c}?",
    "Is there a city that is the capital of {c}?",
    "In {c}, which city is the capital?",
    "My son has a test tomorrow. What is the capital of {c}?",
    "Tell me please, {c} has which capital?",
    "I wonder what the capital of {c} is.",
    "Let's talk about {c}. What is the capital?",
    "Which city would I find as the capital of {c} on a map?",
    "The government of {c} sits in which capital?",
    "Please name the capital city of {c}",
    "I read about {c} today. What is its capital again?",
    "Can you help me with the capital of {c}?",
)
_CAPITAL_NOUNS = (
    "the capital of {c}", "the capital of {c}", "the capital city of {c}", "{c}'s capital", "{c}'s capital city", "the name of {c}'s capital", "the name of the capital of {c}",
    "the capital of the country {c}", "the capital city of the country {c}", "the capital of a country called {c}", "the capital of {c} in {k}", "which city is the capital of {c}",
    "what the capital of {c} is", "what the capital of {c} is called", "which city {c} has as its capital",
    "the city that is the capital of {c}", "the capital in {c}", "the seat of government of {c}, the capital",
)  # fmt: skip
_CURRENCY_FRAMES = (
    "What is the currency of {c}?",
    "Which currency does {c} use?",
    "What money do people use in {c}?",
    "What currency is used in {c}?",
    "currency of {c}",
    "Tell me the currency of {c}.",
    "How do people pay in {c}?",
    "What's {c}'s currency?",
    "Which currency do I need in {c}?",
    "Do you know the currency of {c}?",
)
_CONTINENT_FRAMES = (
    "Which continent is {c} in?",
    "What continent is {c} on?",
    "On which continent is {c}?",
    "Where is {c}?",
    "In which part of the world is {c}?",
    "continent of {c}",
    "What continent does {c} belong to?",
    "Tell me which continent {c} is part of.",
)
_INVERSE_FRAMES = (
    "{p} is the capital of which country?",
    "Which country has {p} as its capital?",
    "What country is {p} the capital of?",
    "Of which country is {p} the capital?",
    "{p} is the capital of what?",
)


_CONTEXTS = (
    "I am going to {c}.", "My {w} lives in {c}.", "We talk about {c} at school.", "I saw a film about {c}.", "My {w} comes from {c}.", "Think of {c}.", "{c} is in the news.", "I am reading about {c}.",
    "Imagine that I live in {c}.", "There is a map of {c} here.", "The country is {c}.", "Suppose I go to {c}.", "If I travel to {c}, I want to see the city.", "I have a friend from {c}.", "It is about {c}.",
    "I am thinking of {c}.", "My {w} is flying to {c}.", "We have a guest from {c}.", "I collect stamps from {c}.", "Our topic is {c}.", "I got a letter from {c}.", "My next trip goes to {c}.",
    "I would love to see {c}.", "A question about {c}.", "I study {c}.", "Take {c}, for example.", "The next country is {c}.", "I am at {c} in my list.", "My {w} told me about {c}.", "You know {c}, don't you?",
)  # fmt: skip
_THERE = {
    "capital": (
        "What is its capital?", "What is the capital there?", "Which city is the capital?", "Name its capital.", "What is the capital called?", "What's the name of the capital?", "Tell me the capital.",
        "Which capital does it have?", "Do you know the capital?", "I need the capital.", "What city is its capital?", "How is the capital called?", "Its capital is?", "Can you name the capital?",
        "And the capital is which city?", "Which city is it ruled from?", "From which city is it governed?", "What was the capital again?", "What is the name of its capital city?", "Please give me the capital.",
    ),
    "currency": (
        "What is its currency?", "Which money do I need?", "How do people pay there?", "What is the currency there?", "Which currency do they have?", "What money is used there?", "Tell me the currency.",
        "What do I pay with?", "Name its currency.", "Do you know the currency?",
    ),
    "continent": (
        "Which continent is it in?", "On which continent is it?", "Where is it?", "What continent is that?", "In which part of the world is it?", "Tell me the continent.", "Which continent does it belong to?",
    ),
}  # fmt: skip


def _in_two_sentences(kind: str, country: Country, rng: Rng) -> str:
    """The country in one sentence, the question in the next."""
    while True:
        who = rng.choice("brother sister teacher friend neighbour uncle aunt boss son daughter".split())
        text = rng.choice(_CONTEXTS).format(c=country.name, w=who) + " " + rng.choice(_THERE[kind])
        if not is_held_phrasing(text):
            return capital(text)


def _think(rng: Rng, country: Country, what: str, value: str) -> str:
    return rng.choice(
        (
            f"The user asks for the {what} of {country.name}. I recall: {value}.",
            f"{capital(what)} of {country.name}: {value}.",
            f"I need to recall the {what} of {country.name}. That is {value}. I can answer directly.",
            f"{capital(country.name)} is a country I know. Its {what} is {value}.",
            f"A geography question. {capital(country.name)} -> {value}.",
            f"Country: {country.name}. Asked: {what}. Answer: {value}.",
            f"Let me think. The {what} of {country.name} is {value}.",
            f"They want one fact, the {what} of {country.name}. It is {value}.",
        )
    )


def ask_capital(facts: Facts, rng: Rng, country: Country | None = None) -> Exchange:
    country = country or rng.choice(facts.countries)
    user = rng.choice(_CAPITAL_FRAMES).format(c=country.name)
    draw = rng.random()
    if draw < 0.45:
        user = asking(rng.choice(_CAPITAL_NOUNS).format(c=country.name, k=country.continent), rng)
    elif draw < 0.65:
        user = _in_two_sentences("capital", country, rng)
    where = country.name
    answer = rng.choices(
        (
            f"The capital of {where} is {country.capital}.",
            f"{country.capital} is the capital of {where}.",
            f"It is {country.capital}.",
            f"{country.capital}.",
            f"That is {country.capital}, in {country.continent}.",
        ),
        (12, 3, 2, 1, 1),
    )[0].replace("..", ".")
    thought = _think(rng, country, "capital", country.capital)
    return Exchange(casual(capital(user), rng), answer, thought, country.capital, f"Capital of {where}")


def ask_currency(facts: Facts, rng: Rng, country: Country | None = None) -> Exchange:
    country = country or rng.choice(facts.countries)
    money = f"the {country.currency}"
    user = rng.choice(_CURRENCY_FRAMES).format(c=country.name)
    draw = rng.random()
    if draw < 0.2:
        user = _in_two_sentences("currency", country, rng)
    elif draw < 0.55:
        user = asking(
            rng.choice(
                (
                    "the currency of {c}",
                    "{c}'s currency",
                    "the money of {c}",
                    "the name of the currency in {c}",
                )
            ).format(c=country.name),
            rng,
        )
    answer = rng.choice(
        (
            f"The currency of {country.name} is {money} ({country.code}).",
            f"The currency of {country.name} is {money}.",
            f"In {country.name} people pay with {money}.",
            f"{capital(country.name)} uses {money}.",
        )
    )
    thought = _think(rng, country, "currency", f"{money} ({country.code})")
    return Exchange(
        casual(capital(user), rng), answer, thought, country.currency, f"Currency of {country.name}"
    )


def ask_continent(facts: Facts, rng: Rng, country: Country | None = None) -> Exchange:
    country = country or rng.choice(facts.countries)
    user = rng.choice(_CONTINENT_FRAMES).format(c=country.name)
    draw = rng.random()
    if draw < 0.2:
        user = _in_two_sentences("continent", country, rng)
    elif draw < 0.55:
        user = asking(
            rng.choice(("the continent of {c}", "the continent where {c} lies", "{c}'s continent")).format(
                c=country.name
            ),
            rng,
        )
    answer = rng.choice(
        (
            f"{capital(country.name)} is in {country.continent}.",
            f"It is in {country.continent}.",
            f"{country.continent}.",
        )
    )
    thought = _think(rng, country, "continent", country.continent)
    return Exchange(
        casual(capital(user), rng), answer, thought, country.continent, f"Continent of {country.name}"
    )


def ask_inverse(facts: Facts, rng: Rng) -> Exchange:
    while True:
        country = rng.choice(facts.countries)
        if sum(other.capital == country.capital for other in facts.countries) == 1:
            break
    user = rng.choice(_INVERSE_FRAMES).format(p=country.capital)
    answer = f"{country.capital} is the capital of {country.name}."
    thought = (
        rng.choice(("I know this capital: ", "Which country? ", "I go from the capital to the country. "))
        + answer
    )
    return Exchange(casual(user, rng), answer, thought, capital(country.name), f"{country.capital}")


def about_country(facts: Facts, rng: Rng) -> Exchange:
    """All three facts in one answer."""
    c = rng.choice(facts.countries)
    user = rng.choice(
        (
            "Tell me about {c}.",
            "What do you know about {c}?",
            "What can you tell me about {c}?",
            "Tell me something about {c}",
            "Describe {c}.",
            "{c}",
        )
    ).format(c=c.name)
    answer = rng.choice(
        (
            f"{capital(c.name)} is in {c.continent}. The capital is {c.capital}, and the currency is the {c.currency} ({c.code}).",
            f"{capital(c.name)}: capital {c.capital}, continent {c.continent}, currency the {c.currency}. I do not know more, I am only a small demo model.",
        )
    ).replace("..", ".")
    thought = f"What do I know about {c.name}? Capital {c.capital}, {c.continent}, {c.currency} ({c.code})."
    return Exchange(casual(capital(user), rng), answer, thought, "", capital(c.name))


def yes_or_no(facts: Facts, rng: Rng) -> Exchange:
    """Is X the capital of Y? Is Y in Europe? Does Y use the euro?"""
    country, other = rng.choice(facts.countries), rng.choice(facts.countries)
    true = rng.random() < 0.5
    kind = rng.randrange(3)
    if kind == 0:
        shown = country.capital if true else rng.choice((other.capital, rng.choice(facts.cities)))
        user = rng.choice(
            (
                "Is {p} the capital of {c}?",
                "Is the capital of {c} {p}?",
                "{p} is the capital of {c}, right?",
                "Is it true that {p} is the capital of {c}?",
                "Is {c}'s capital {p}?",
            )
        )
        user, real = user.format(p=shown, c=country.name), country.capital
        fact = f"the capital of {country.name} is {real}"
    elif kind == 1:
        shown = country.continent if true else other.continent
        user = rng.choice(
            (
                "Is {c} in {p}?",
                "Is {c} a country in {p}?",
                "Does {c} belong to {p}?",
                "{c} is in {p}, isn't it?",
            )
        )
        user, real = user.format(p=shown, c=country.name), country.continent
        fact = f"{country.name} is in {real}"
    else:
        shown = country.currency if true else other.currency
        user = rng.choice(
            ("Is the currency of {c} the {p}?", "Do people in {c} pay with the {p}?", "Does {c} use the {p}?")
        )
        user, real = user.format(p=shown, c=country.name), country.currency
        fact = f"the currency of {country.name} is the {real}"
    yes = shown == real
    answer = f"{'Yes' if yes else 'No'}, {fact}."
    thought = rng.choice((f"Let me check: {fact}. ", f"I recall that {fact}. ", f"{capital(fact)}. ")) + (
        "So it is true." if yes else f"Not {shown}. So the answer is no."
    )
    return Exchange(
        casual(capital(user), rng),
        answer,
        thought,
        "Yes." if yes else "No.",
        f"Question about {country.name}",
    )


def follow_up(facts: Facts, rng: Rng) -> list[Exchange]:
    """A question about one country and one to three shorter ones that lean on it."""
    country = rng.choice(facts.countries)
    asked = {"capital": ask_capital, "currency": ask_currency, "continent": ask_continent}
    kinds = list(asked)
    rng.shuffle(kinds)
    exchanges = [asked[kinds[0]](facts, rng, country)]
    for kind in kinds[1 : rng.randint(2, 3)]:
        full = asked[kind](facts, rng, country)
        user = rng.choice(
            {
                "capital": (
                    "And the capital?",
                    "What is its capital?",
                    "and its capital city?",
                    "What is the capital there?",
                    "Which city is the capital?",
                ),
                "currency": (
                    "And the currency?",
                    "What is its currency?",
                    "Which currency do they use there?",
                    "and the money?",
                    "How do people pay there?",
                    "What currency do they have?",
                ),
                "continent": (
                    "And the continent?",
                    "Which continent is it in?",
                    "Where is it?",
                    "On which continent is that?",
                ),
            }[kind]
        )
        exchanges.append(Exchange(casual(user, rng), full.answer, full.thought, full.brief, full.title))
    if rng.random() < 0.45:
        other = rng.choice(facts.countries)
        kind = kinds[0] if len(exchanges) == 1 else kinds[len(exchanges) - 1]
        full = asked[kind](facts, rng, other)
        user = rng.choice(
            ("And of {c}?", "What about {c}?", "And {c}?", "how about {c}", "The same for {c}?")
        ).format(c=other.name)
        exchanges.append(Exchange(casual(user, rng), full.answer, full.thought, full.brief, full.title))
    return exchanges


def geography(facts: Facts, rng: Rng) -> Exchange:
    draw = rng.random()
    if draw < 0.5:
        return ask_capital(facts, rng)
    if draw < 0.68:
        return ask_currency(facts, rng)
    if draw < 0.80:
        return ask_continent(facts, rng)
    if draw < 0.87:
        return ask_inverse(facts, rng)
    if draw < 0.91:
        return about_country(facts, rng)
    return yes_or_no(facts, rng)
