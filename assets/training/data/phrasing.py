"""Many ways to ask for one thing: frames around a noun phrase, and talk around a whole question.

They are the same for what the model knows and for what it does not, so that only the thing asked for tells which.
"""

from __future__ import annotations

from .chat import Rng, capital
from .held_out import is_held_phrasing

_FRAMES = (
    "What is {n}?", "What's {n}?", "{n}?", "{n}", "{n} please", "Tell me {n}.", "Give me {n}.", "Can you tell me {n}?", "Do you know {n}?", "I need {n}.",
    "I would like to know {n}.", "I want to know {n}.", "Please tell me {n}.", "Please give me {n}", "Could you tell me {n}?", "Would you tell me {n}?", "Find {n}.",
    "Find out {n} for me.", "Look up {n}", "Could you look up {n}?", "Can you find {n} for me?", "I'm looking for {n}.", "We are looking for {n}.", "What would {n} be?",
    "What might {n} be?", "{n} is what?", "{n} would be?", "Any idea about {n}?", "I forgot {n}.", "I forgot {n}. Can you remind me?", "Remind me of {n}.", "Let me know {n}",
    "May I ask for {n}?", "I was asked for {n}.", "Somebody asked me for {n}. What do I say?", "Someone wants {n} from me. What is it?", "Help me with {n}.",
    "Help me to find {n}", "I am curious about {n}.", "I wonder about {n}.", "I have to write down {n}. What is it?", "For a form I need {n}.", "Is it possible to get {n}?",
    "Can I get {n} from you?", "I want to hear {n}.", "Say {n}", "Name {n}.", "Please name {n}", "You surely know {n}?", "Do you happen to remember {n}?", "What do you say is {n}?",
    "What exactly is {n}?", "Just {n}, nothing else.", "Quickly: {n}?", "All I want is {n}.", "It is about {n}. What is it?", "Now I need {n}", "Next: {n}", "Also {n}, please.",
    "I'd love to know {n}!", "Show me {n}", "Let me have {n}.", "Let's see if you know {n}.", "Try to tell me {n}.", "Does anybody know {n}?", "Can somebody tell me {n}?",
    "I should know {n}, but I don't.", "Would you mind telling me {n}?", "Are you able to give me {n}?", "I am not sure about {n}. What is it?", "Check {n} for me", "Get me {n}.",
)  # fmt: skip
_MORE_FRAMES = (
    "{n}: what is it?", "{n}: do you know it?", "Do you know what {n} is?", "Tell me what {n} is.", "Can you say what {n} is?", "I don't know {n}. Do you?", "I never know {n}.", "I can't remember {n}.",
    "I keep forgetting {n}.", "Who can tell me {n}?", "What do you know about {n}?", "Have you got {n} for me?", "Do you have {n}?", "Is there a way to find out {n}?", "How do I find {n}?",
    "What should I answer when somebody asks for {n}?", "If somebody asks for {n}, what is right?", "Suppose somebody asks you for {n}.", "In a test they ask for {n}.", "The question is about {n}.",
    "The task: give {n}.", "Fill in: {n} is ...", "Complete this: {n} is", "My answer for {n} is missing. What is it?", "Which is {n}?", "Which one is {n}?", "Then what is {n}?", "And what about {n}?",
    "What about {n}?", "How about {n}?", "Let us talk about {n}. What is it?", "Time for {n}: what is it?", "Here is my question: {n}?", "Could I have {n}, please?", "Can I ask you for {n}?",
    "Would you know {n}?", "Could you give me {n}?", "Could you remind me of {n}?", "Could you check {n}?", "Will you tell me {n}?", "Please check {n}", "Please find {n}.", "Please say {n}.",
    "Please remind me: {n}?", "Please help, I need {n}.", "Please let me know {n}.", "I'd like {n}.", "I'd like to hear {n}, please.", "I have been asked for {n}.", "I have to know {n}.", "I must know {n}.",
    "I can only guess {n}.", "I am trying to remember {n}.", "I am supposed to know {n}.", "I was looking for {n}.", "I was told to find {n}.", "I was going to look up {n}.", "It says here: {n}. What do I put?",
    "Nobody here knows {n}.", "We all forgot {n}.", "We need {n}.", "We want {n}.", "Everybody asks for {n}.", "They want to know {n}.", "She asked for {n}.", "He wants {n}.", "You know {n}, right?",
    "You should know {n}.", "You must know {n}.", "See if you can find {n}.", "Guess {n}!", "Answer this: {n}?", "Only {n}.", "First {n}, please.", "Simply {n}.", "Again: {n}?", "Once more: {n}?",
    "Actually, {n}?", "Look, I need {n}.", "Really, what is {n}?", "By chance, do you know {n}?", "For me, {n} please.", "From you I would like {n}.", "About {n}: what is right?", "As for {n}, what is it?",
)  # fmt: skip
_WHO = "son daughter mother father brother sister teacher boss neighbour friend colleague uncle aunt wife husband grandfather".split()
_BEFORE = (
    "One question: {q}", "A question: {q}", "Hey, {l}", "Hi, {l}", "Hello! {q}", "Please help me: {q}", "For school: {q}", "I was wondering, {l}", "My {w} wants to know: {q}",
    "My {w} asks: {q}", "Can you answer this? {q}", "Listen: {q}", "Okay, next question. {q}", "Something else: {q}", "Now tell me: {q}", "Well, {l}", "So, {l}", "And {l}", "Be honest: {q}",
    "I have a question for you. {q}", "I am writing a test. {q}", "This is for a game: {q}", "We are having a contest here. {q}", "I'm bored. {q}", "Sorry to bother you. {q}",
    "Question number {k}: {q}", "{k}. {q}", "My {w} and I have a bet. {q}", "I could not find this in my book. {q}", "It came up in class today: {q}", "Good morning. {q}",
    "You can surely tell me: {q}", "Think carefully. {q}", "Easy one: {q}", "Hard one: {q}", "In one sentence: {q}", "I bet you know this. {q}", "I read about this and forgot it. {q}",
    "Just for fun: {q}", "Let me ask you something. {q}", "My {w} sent me this: {q}", "Let's play. {q}", "Before I forget: {q}", "I got this from my {w}: {q}", "Riddle me this: {q}",
)  # fmt: skip
_AFTER = (
    "{q} Thanks!", "{q} Thank you.", "{q} I need it for school.", "{q} I forgot it.", "{q} My {w} asked me.", "{q} Please be quick.", "{q} Do you know?", "{q} I am curious.",
    "{q} Tell me please.", "{q} It is important.", "{q} I really have no idea.", "{q} Can you help?", "{q} What do you think?", "{q} That's all I need.", "{q} I have to fill it in here.",
    "{q} I always mix it up.", "{q} No long answer, please.", "{q} I should know that.", "{q} My {w} does not know it either.", "{q} Any idea?", "{q} What should I put down?", "{q} It is homework.", "{q} Which one was it again?", "{q} Can you look into your memory?",
    "{q} I have a test tomorrow.", "{q} I want to be sure.", "{q} My {w} says you know it.", "{q} I lost my notes.", "{q} Please help me out.", "{q} Let me see if you know it.", "{q} And be honest.",
)  # fmt: skip


def asking(noun: str, rng: Rng) -> str:
    """A request for `noun` ("the capital of Peru", "3 + 4"), never in a held-out phrasing."""
    while True:
        frame = rng.choice(_FRAMES if rng.random() < 0.5 else _MORE_FRAMES)
        text = frame.format(n=noun)
        text = capital(text) if rng.random() < 0.9 else text
        if not is_held_phrasing(text):
            return text


def surrounded(question: str, rng: Rng, chance: float = 0.18) -> str:
    """The question, now and then with talk before or after it."""
    if rng.random() > chance or len(question) > 160 or "\n" in question:
        return question
    while True:
        frame = rng.choice(_BEFORE if rng.random() < 0.65 else _AFTER)
        lower = question if question[:2].strip() in ("I", "I'") else question[:1].lower() + question[1:]
        full = question if question[-1:] in ".?!" or frame.endswith("{q}") else question + "."
        text = frame.format(q=full, l=lower, w=rng.choice(_WHO), k=rng.randint(1, 20))
        if not is_held_phrasing(text):
            return text


_ASIDES = (
    "By the way, {l}", "Just to say: {q}", "For your information: {q}", "First of all, {l}", "Oh, and {l}", "One more thing: {q}", "Let me tell you: {q}", "Hello. {q}", "Good day. {q}", "Hey, {l}",
    "Before I ask anything: {q}", "Before we begin, {l}", "You should know this: {q}", "I should say that {l}", "Note that {l}", "Well, {l}", "So, {l}", "Listen, {l}", "Okay, {l}", "Ah, {l}", "Good evening. {q}",
    "{q} Remember that.", "{q} Keep it in mind.", "{q} Don't forget it.", "{q} Nice to meet you!", "{q} How are you?", "{q} I am new here.", "{q} Just so that you know.", "{q} I will ask you later.",
    "{q} Please remember it.", "{q} That is important.", "{q} And who are you?", "{q} Let's talk.", "{q} Have a nice day!", "{q} I have a few questions.", "{q} Let us begin.",
)  # fmt: skip


def aside(statement: str, rng: Rng, chance: float = 0.3) -> str:
    """A statement about oneself, now and then with a few words before or after it."""
    if rng.random() > chance or len(statement) > 120:
        return statement
    while True:
        frame = rng.choice(_ASIDES)
        keep = statement[:2] in ("I ", "I'") or statement[:1] == statement[:1].lower()
        lower = statement if keep else statement[:1].lower() + statement[1:]
        full = statement if statement[-1:] in ".?!" or frame.endswith("{q}") else statement + "."
        text = frame.format(q=full, l=lower)
        if not is_held_phrasing(text):
            return text
