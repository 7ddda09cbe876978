"""The kinds of personal facts that are told and asked for: the wordings, and how their values are drawn."""

from __future__ import annotations

import calendar
from dataclasses import dataclass

from .chat import Rng, a, capital
from .facts import Facts
from .names import draw_full_name, draw_name
from .vocabulary import ANIMALS, FOODS, JOBS, THINGS


@dataclass(frozen=True)
class Kind:
    """One kind of personal fact: how it is said, asked and answered, and the answer when it was never said."""

    key: str
    says: str
    asks: str
    answers: str
    acks: str
    missing: str
    weight: int


KINDS = (
    Kind("name",
         "My name is {v}.|I'm {v}.|I am {v}.|Hi, I'm {v}!|Hello, my name is {v}.|You can call me {v}.|Call me {v}.|They call me {v}|Hello! {v} here.|My name's {v}|Please remember my name: {v}.|Hey, I am {v}, nice to meet you.|I am called {v}.|Good morning, my name is {v}|This is {v}.|name: {v}|People know me as {v}.|I go by {v}.|My parents named me {v}.|You are talking to {v}.|{v} is my name.|I should introduce myself: {v}.|Let me introduce myself. I am {v}.|The name is {v}|In case you wonder, I am {v}.|My full name is {v}.|Everybody calls me {v}.|Greetings from {v}!|It's me, {v}.|My friends say {v} to me.|Hello from {v}|You may call me {v}.|I'd like to be called {v}.|For the record, my name is {v}.|Just so you know, I am {v}.",
         "What is my name?|What's my name?|Do you remember my name?|Who am I?|Can you tell me my name?|what did I say my name was?|Do you know my name?|How am I called?|Tell me my name.|Say my name|My name, please?|Do you still know who I am?|What name did I tell you?|remember my name?|And what was my name again?|What did I call myself?|Which name is mine?|What is the name I gave you?|Do you recall my name?|Please tell me who I am.|Have you forgotten my name?|Can you repeat my name?|I told you my name. What is it?|Is my name still known to you?|name?|How do people call me?|Could you say my name again?|Who are you talking to?|What should you call me?",
         "Your name is {v}.|You are {v}.|Your name is {v}.|You told me that your name is {v}.|{v}.|It is {v}.",
         "Nice to meet you, {v}!|Hello, {v}! What can I do for you?|Hi {v}!|Good to meet you, {v}.|Pleased to meet you, {v}.|{v}, what a nice name!|Hello {v}, how can I help?|Welcome, {v}!",
         "You have not told me your name.|I do not know your name yet. What is it?|You did not tell me your name in this chat.", 20),
    Kind("city",
         "I live in {v}.|I am from {v}.|I come from {v}.|My home is {v}.|I moved to {v} last year.|I was born in {v}.|My city is {v}.|I am writing from {v}",
         "Where do I live?|Which city am I from?|What city did I mention?|Where am I from?|Do you remember where I live?|What is my home town?|Where did I say I live?|In which city do I live?",
         "You live in {v}.|You told me {v}.|{v}.|You are from {v}.", "I see, {v}!|{v}, good to know.|Nice! How is life in {v}?|I will remember that you are in {v}.",
         "You have not told me where you live.|I do not know where you live.", 6),
    Kind("pet",
         "I have a {x} called {v}.|My {x} is called {v}.|My {x}'s name is {v}.|We got a {x} and named it {v}.|The name of my {x} is {v}.|{v} is my {x}.",
         "What is the name of my {x}?|What is my {x} called?|How is my {x} called?|Do you remember the name of my {x}?|My {x}'s name?|What did I name my {x}?",
         "Your {x} is called {v}.|The name of your {x} is {v}.|{v}.", "{v} is a nice name for a {x}.|Say hello to {v}!|A {x}! How old is {v}?|I will remember {v}.",
         "You have not told me the name of your {x}.|I do not know what your {x} is called.", 6),
    Kind("friend",
         "My {y} is called {v}.|My {y}'s name is {v}.|{v} is my {y}.|The name of my {y} is {v}.|I have a {y} named {v}.",
         "What is the name of my {y}?|What is my {y} called?|Who is my {y}?|Do you remember my {y}'s name?|How is my {y} called?",
         "Your {y} is called {v}.|The name of your {y} is {v}.|{v}.", "I see. Say hello to {v}.|{v}, good to know.|Okay, your {y} is {v}.|Thank you for telling me about {v}.",
         "You have not told me about your {y}.|I do not know the name of your {y}.", 6),
    Kind("code",
         "Remember this code: {v}.|The code is {v}.|Please remember the code word {v}.|My password is {v}.|The secret word is {v}.|Keep in mind: {v}.|Remember {v} for me.|Save this code: {v}",
         "What is the code?|What was the code?|Which code did I give you?|What did I ask you to remember?|Tell me the code again.|the secret word?|What should you remember?|Do you still know the code?",
         "The code is {v}.|It is {v}.|{v}|You asked me to remember {v}.", "I will remember {v}.|Okay, {v}.|Noted: {v}.|I keep it in mind: {v}.",
         "You have not given me a code.|You did not ask me to remember anything.", 5),
    Kind("age", "I am {v} years old.|I'm {v}.|My age is {v}.|I turned {v} this year.|I am {v} years of age.",
         "How old am I?|What is my age?|Do you know how old I am?|my age?|What age did I tell you?", "You are {v} years old.|You are {v}.|{v}.",
         "{v}, I see.|Okay, you are {v}.|Good to know.", "You have not told me your age.|I do not know how old you are.", 3),
    Kind("colour", "My favourite colour is {v}.|My favorite color is {v}.|I like {v} best of all colours.|The colour I love most is {v}.",
         "What is my favourite colour?|What's my favorite color?|Which colour do I like best?|my favourite colour?", "Your favourite colour is {v}.|You like {v} best.|{v}.",
         "{C} is a nice colour.|Good choice!|I will remember {v}.", "You have not told me your favourite colour.|I do not know your favourite colour.", 3),
    Kind("food", "My favourite food is {v}.|I like {v} more than any other food.|The food I like most is {v}.|I could eat {v} every day.",
         "What is my favourite food?|What do I like to eat?|Which food do I like most?|What's my favorite food?", "Your favourite food is {v}.|You like {v}.|{v}.",
         "{C} sounds good.|I see, you like {v}.|Good taste!", "You have not told me your favourite food.|I do not know what you like to eat.", 3),
    Kind("job", "I work as {w}.|I am {w}.|My job is {w}.|I earn my money as {w}.",
         "What is my job?|What do I do for a living?|What do I work as?|Do you remember my job?|my profession?", "You are {w}.|You work as {w}.|You told me that you are {w}.",
         "{W}, how interesting!|I see, you are {w}.|Good to know.", "You have not told me your job.|I do not know what you do.", 3),
    Kind("birthday", "My birthday is on {v}.|I was born on {v}.|I have my birthday on {v}.|{v} is my birthday.",
         "When is my birthday?|When was I born?|What is my birthday?|Do you remember my birthday?", "Your birthday is on {v}.|It is on {v}.|{v}.",
         "I will remember {v}.|{v}, okay.|Good to know.", "You have not told me your birthday.|I do not know your birthday.", 2),
    Kind("number", "My lucky number is {v}.|My favourite number is {v}.|My room number is {v}.|The number of my house is {v}.",
         "What was my number?|Which number did I tell you?|Do you remember my number?|What number did I mention?", "Your number is {v}.|You told me {v}.|{v}.",
         "Okay, {v}.|I will remember {v}.|{v}, noted.", "You have not told me a number.|I do not know your number.", 2),
    Kind("thing", "I put the {x} into the {v}.|The {x} is in the {v}.|I left my {x} in the {v}.|You find my {x} in the {v}.",
         "Where is the {x}?|Where did I put the {x}?|Where is my {x}?|Where did I leave the {x}?", "The {x} is in the {v}.|In the {v}.|You said the {v}.",
         "I see, in the {v}.|Okay, the {x} is in the {v}.|Noted.", "You have not told me where the {x} is.|I do not know where the {x} is.", 3),
)  # fmt: skip
_COLOURS = (
    "red blue green white black gold grey silver yellow brown purple orange pink violet turquoise".split()
)
_PLACES = "kitchen drawer cupboard garage garden cellar attic office car bag box basket bathroom bedroom shed fridge desk shelf pocket suitcase".split()
_RELATIVES = "brother sister mother father friend teacher boss neighbour cousin uncle aunt son daughter wife husband grandmother doctor partner colleague".split()


def draw_words(kind: Kind, facts: Facts, rng: Rng) -> dict[str, str]:
    words = {"x": rng.choice(ANIMALS), "y": rng.choice(_RELATIVES)}
    value = ""
    if kind.key == "name":
        value = draw_full_name(rng)
    elif kind.key in ("pet", "friend"):
        value = draw_name(rng)
    elif kind.key == "city":
        value = rng.choice(facts.cities)
    elif kind.key == "code":
        style = rng.randrange(4)
        if style == 0:
            value = "".join(str(rng.randrange(10)) for _ in range(rng.randint(3, 7)))
        elif style == 1:
            value = rng.choice(facts.words["noun"])
        elif style == 2:
            value = draw_name(rng).lower()
        else:
            value = "".join(rng.choice("ABCDEFGHJKLMNPQRSTUVWXYZ23456789") for _ in range(rng.randint(4, 7)))
    elif kind.key == "age":
        value = str(rng.randint(6, 97))
    elif kind.key == "colour":
        value = rng.choice(_COLOURS)
    elif kind.key == "food":
        value = rng.choice(FOODS)
    elif kind.key == "job":
        value = rng.choice(JOBS)
    elif kind.key == "birthday":
        value = f"{rng.randint(1, 28)} {calendar.month_name[rng.randint(1, 12)]}"
    elif kind.key == "number":
        value = str(rng.randint(2, 9999))
    else:
        words["x"], value = rng.choice(THINGS), rng.choice(_PLACES)
    return words | {"v": value, "C": capital(value), "w": a(value), "W": capital(a(value))}
