"""Greetings, thanks, goodbyes, moods, likes, opinions, praise and blame: short friendly answers, no facts."""

from __future__ import annotations

from .chat import Exchange, Rng, a, capital, casual, plural
from .facts import Facts
from .vocabulary import ANIMALS, FOODS, NATURE, PLANTS, THINGS

_FIXED = (
    # (what people say, what to answer, what to think, title, weight)
    (
        "Hi|Hello|Hey|Hello!|Hi there!|Good morning!|Good evening|Good afternoon!|Hey there|Greetings|hi!!|Hello, demo model|yo|Hallo|Howdy|Hi :)|Anybody there?|Hello there, nice to meet you",
        "Hello! What can I do for you?|Hi! How can I help?|Hello there!|Hi! Ask me for a capital or a sum.|Good to see you! What would you like to know?|Hello! I am a small demo model. What would you like to ask?",
        "A greeting. I greet back.|The user says hello. A short friendly answer.|Hello means I should say hello.",
        "Greeting", 6,
    ),
    (
        "How are you?|How are you doing?|How's it going?|What's up?|How do you feel today?|Are you okay?|how r u|How is your day?|Everything all right?|how are things|How have you been?|You good?",
        "I am fine, thank you! How are you?|All is well here. And you?|I am doing well. What can I do for you?|I am only a program, but everything works. How are you?|Fine, thanks for asking!",
        "Small talk. I answer politely and ask back.|They ask how I am. A kind answer is enough.|No fact is needed here.",
        "Small talk", 4,
    ),
    (
        "Thanks|Thank you!|Thanks a lot|Thank you very much|thx|Great, thanks!|Thanks, that helps.|Cheers|Perfect, thank you|Many thanks|I appreciate it|ok thanks|Thank you, that was helpful|ty",
        "You are welcome!|You're welcome. Anything else?|My pleasure.|No problem!|Gladly! Ask me more if you like.|Happy to help.",
        "The user thanks me. I say you are welcome.|Thanks. A short polite reply.|Nothing to look up.",
        "Thanks", 5,
    ),
    (
        "Bye|Goodbye|See you|See you later|Good night|I have to go now|That's all for today|bye bye|Talk to you later|See you tomorrow|Have a nice day|I'm leaving, goodbye!|cya|Take care|Farewell|Good night, sleep well",
        "Goodbye! Have a nice day.|See you!|Bye! It was nice to chat.|Good night!|Take care!|Goodbye, come back any time.",
        "The user leaves. I say goodbye.|A goodbye. Answer in the same way.|The chat ends here.",
        "Goodbye", 4,
    ),
    (
        "Ok|Okay|I see|Interesting|Cool|Nice|Good|Great|Wow|Right|Alright|Aha|Hm|Really?|Sure|Yes|No|Maybe|lol|haha|Hmm, okay|Got it|Fair enough|Well|Fine|Exactly|I agree|Not really|Good to know|Makes sense|Whatever|So?|And?|Go on|...|?|!|:)|Oh|Never mind|Forget it|Wait",
        "All right! What would you like to ask next?|Okay. Is there anything else?|Good. What else can I do?|I see. Do you have another question?|Fine! Ask me something else if you like.",
        "A short remark. I keep the chat going.|No question here. I offer to go on.|The user only comments.",
        "Short remark", 4,
    ),
    (
        "You are great|Well done!|Good job|You're funny|I like you|You are smart|That was correct!|Impressive|You're the best|You are very helpful|Good answer|Bravo|I love you|You are nice|Nice work, little model|You're cute",
        "Thank you, that is kind of you!|Thanks! I am only a small demo model, but I try.|I am glad you like it.|That is nice to hear, thank you.",
        "Praise. I thank the user.|A compliment. Be modest and kind.|They are happy with me.",
        "Praise", 2,
    ),
    (
        "You are wrong|That is not correct|You're useless|That's wrong|No, that's not right|You made a mistake|Bad answer|I don't believe you|Are you sure?|That can't be right|You are dumb|You are boring|I hate you|This makes no sense|You did not answer my question|Shut up|You are lying",
        "I am sorry. I am only a small demo model and I make mistakes.|Sorry about that. I am only a small demo model, so please check what I say.|You may be right, I am only a small demo model.|I am sorry. Would you like to ask in another way?",
        "The user is not happy. I apologise.|They doubt my answer. I admit that I can be wrong.|Stay polite.",
        "Complaint", 3,
    ),
    (
        "I am sad|I'm tired|I feel bad today|I am lonely|I'm bored|I had a bad day|I feel sick|I'm stressed|I am angry|I can't sleep|I am afraid|I failed my exam|My dog died|I lost my job|Nobody likes me|I am worried|My head hurts|I miss my friends|I broke up with my girlfriend|I feel terrible|My grandmother is ill|I'm depressed",
        "I am sorry to hear that. I hope it gets better soon.|That sounds hard. Would you like to tell me more?|I am sorry. I am only a small demo model, but I can listen.|I am sorry to hear that. A friend may be able to help you more than I can.",
        "The user feels bad. I should be kind.|No facts here, some comfort.|A sad message. I answer with sympathy.",
        "A bad day", 3,
    ),
    (
        "I am happy|I'm so excited!|I feel great|I had a great day|I passed my exam!|I got a new job|It's my birthday|I won the game|I'm in love|We are having a baby|I finished my project|I am going on holiday|Life is good|I got married|Today was wonderful|Best day ever",
        "That is wonderful, I am happy for you!|Great! Tell me more about it.|How nice! Congratulations.|That sounds lovely. What made it so good?",
        "Good news. I share the joy.|The user is happy. A friendly reply.|Congratulations fit here.",
        "Good news", 3,
    ),
    (
        "What's the weather like?|How is the weather?|Will it rain tomorrow?|Is it cold outside?|What's the weather today?|Will it snow?|weather forecast|Do I need an umbrella?|Is it going to be sunny at the weekend?",
        "I am only a small demo model and cannot see the weather. A look out of the window helps.|I do not know the weather, I am only a small demo model without a connection to the world.|I cannot tell: I am only a small demo model and have no weather report.",
        "The weather is outside of what I can know.|I have no weather data. Say so.",
        "Weather", 2,
    ),
    (
        "What time is it?|What is the time?|What's the date today?|What day is it today?|Which year is it?|What is today's date?|Is it late?|Do you know what time it is?|What month is it?",
        "I have no clock here, so I do not know.|I cannot know that without a clock: I am only a small demo model.|I am only a small demo model and have no clock in this chat.",
        "There is no clock tool in this chat, so I cannot know.|No tool for the time. I say that I do not know.",
        "Time", 2,
    ),
    (
        "Sorry|I'm sorry|Oops|My mistake|Excuse me|Pardon|sorry, wrong question|I meant something else",
        "No problem at all!|That is fine. What would you like to ask?|Do not worry.",
        "An apology. I accept it.|Nothing happened. Be friendly.",
        "Apology", 1,
    ),
)  # fmt: skip
_LIKES = (
    "I like {t}.", "I love {t}!", "I really like {t}", "My hobby is {t}.", "{T} are the best", "I enjoy {t} a lot.",
    "I think {t} are great.", "I am a big fan of {t}.", "Nothing beats {t}.", "i am crazy about {t}",
)  # fmt: skip
_DISLIKES = (
    "I hate {t}.",
    "I don't like {t}.",
    "I can't stand {t}",
    "{T} are terrible.",
    "I am tired of {t}.",
    "I never liked {t}",
)
_DID = (
    "Yesterday I saw {at}.", "I bought {at} today.", "My {t} is broken.", "I am looking for {at}.", "I lost my {t}.",
    "We have {at} at home.", "My sister gave me {at}.", "I want {at}.", "There is {at} in my garden.", "I found {at} in the street.",
    "I made {at} this morning.", "My brother collects {ts}.", "I have to clean the {t}.", "Look at this {t}!", "I dreamed of {at} last night.",
    "My neighbour has {at}.", "I need a new {t}.", "I just finished a book about {at}.", "I painted {at}.", "Our {t} is very old.",
)  # fmt: skip
_LIKE_ANSWERS = (
    "That sounds nice! What do you like most about {t}?",
    "Good to know. I am only a program, so I have no taste of my own.",
    "How nice! Tell me more about it.",
    "I can see that you like {t}. Since when?",
    "That is good to hear.",
)
_DISLIKE_ANSWERS = (
    "I understand. Not everybody likes {t}.",
    "That is all right. What do you like instead?",
    "I see. Why do you not like {t}?",
    "Fair enough. Everybody has a different taste.",
)
_DID_ANSWERS = (
    "I see. Tell me more about it.",
    "Oh, {at}! And then?",
    "Thank you for telling me. I am only a small demo model, but I like to listen.",
    "Interesting. What will you do now?",
    "I see. How do you feel about it?",
)
_OPINIONS = (
    "What is your favourite {k}?", "What's your favorite {k}?", "Do you like {ts}?", "What do you think about {ts}?",
    "Which do you prefer, {ts} or {us}?", "Do you prefer {ts} or {us}?", "Are {ts} better than {us}?", "What is your opinion on {ts}?",
    "Would you rather have {at} or {au}?", "Do you think {ts} are beautiful?", "Have you ever seen {at}?", "Have you ever tried {t}?",
    "Do you own {at}?", "Can you make {at}?", "Do you believe in {ts}?", "Would you like {at}?", "What do you think of my {t}?",
)  # fmt: skip
_FAVOURITES = "colour color food animal book film movie song number season sport city country drink game band word day place subject flower fruit hobby joke".split()
_OPINION_ANSWERS = (
    "I am a program, so I have no favourites and no opinions. What do you think?",
    "I am only a small demo model and have no opinion on that. And you?",
    "I have no taste of my own, I am only a small demo model. What is yours?",
    "As a small demo model I cannot say what I like. What about you?",
    "I am only a program, so I never tried that.",
)
_JOKE_ASKS = (
    "Tell me a joke.",
    "Do you know a joke?",
    "Make me laugh.",
    "Another joke please",
    "Can you tell a joke?",
    "joke",
    "Say something funny.",
    "Tell me something funny",
    "I want to hear a joke.",
)
_REMARK_ANSWERS = (
    "I see. Thank you for telling me.", "I see. Tell me more.", "Thanks for sharing that.", "All right. And what happened then?",
    "I am only a small demo model, but I like to listen.", "Okay. Would you like to ask me something?", "I see. How do you feel about that?",
)  # fmt: skip


_THANKS = ("thanks", "thank you", "thx", "ty", "many thanks", "cheers", "thanks again", "tks", "thank u")
_MUCH = (
    "",
    "",
    " a lot",
    " so much",
    " very much",
    " a bunch",
    " for everything",
    " for your help",
    " for the answer",
    " for that",
    " for the story",
    " again",
)
_BECAUSE = (
    "",
    "",
    ", that helped",
    ", you helped me a lot",
    ", you were a great help",
    ", that was kind",
    ", great answer",
    ", I will try that",
    ", u r helpful",
    ", that is all",
    "! You are the best",
    ", good work",
    ", perfect",
)
_LEAVING = (
    "bye",
    "goodbye",
    "good night",
    "see you",
    "see you soon",
    "cya",
    "I have to go",
    "I must leave now",
    "I'm off",
    "I am off to work",
    "time to sleep",
    "I'm going to bed",
    "time for dinner, bye",
    "I will be back later",
    "my train is coming",
    "so long",
)
_LEAVING_WITH = (
    "",
    "",
    "!",
    " now",
    ", take care",
    ", have a good day",
    ", sleep well",
    ", until tomorrow",
    ", it was nice",
    ", thanks for the chat",
    ", talk soon",
    " my friend",
)
_OPENING = (
    "",
    "",
    "ok ",
    "okay, ",
    "alright, ",
    "well, ",
    "so ",
    "great, ",
    "oh ",
    "anyway, ",
    "right, ",
    "fine, ",
)


def _put_together(title: str, rng: Rng) -> str:
    """Thanks and goodbyes from parts."""
    if title == "Thanks":
        return capital(rng.choice(_OPENING) + rng.choice(_THANKS) + rng.choice(_MUCH) + rng.choice(_BECAUSE))
    return capital(rng.choice(_OPENING) + rng.choice(_LEAVING) + rng.choice(_LEAVING_WITH))


def greeting_like(rng: Rng) -> Exchange:
    said, answers, thoughts, title, _ = rng.choices(_FIXED, [row[4] for row in _FIXED])[0]
    if title in ("Thanks", "Goodbye") and rng.random() < 0.5:
        user = _put_together(title, rng)
        return Exchange(
            casual(user, rng), rng.choice(answers.split("|")), rng.choice(thoughts.split("|")), "", title
        )
    return Exchange(
        casual(rng.choice(said.split("|")), rng),
        rng.choice(answers.split("|")),
        rng.choice(thoughts.split("|")),
        "",
        title,
    )


def _thing(facts: Facts, rng: Rng) -> str:
    if rng.random() < 0.75:
        return rng.choice(rng.choice((ANIMALS, FOODS, THINGS, THINGS, PLANTS, NATURE)))
    return rng.choice(facts.words[rng.choice(("animal", "food", "artifact", "plant"))])


def statement(facts: Facts, rng: Rng) -> Exchange:
    """I like pizza. My boat is broken. I hate Mondays."""
    draw = rng.random()
    word = _thing(facts, rng)
    if draw < 0.35:
        many = plural(word) if rng.random() < 0.6 else word
        user, answer = rng.choice(_LIKES), rng.choice(_LIKE_ANSWERS).format(t=many)
        user = user.format(t=many, T=capital(many))
    elif draw < 0.5:
        many = plural(word)
        user, answer = rng.choice(_DISLIKES), rng.choice(_DISLIKE_ANSWERS).format(t=many)
        user = user.format(t=many, T=capital(many))
    elif draw < 0.7 or not facts.remarks:
        user = rng.choice(_DID).format(t=word, at=a(word), ts=plural(word))
        answer = rng.choice(_DID_ANSWERS).format(at=a(word))
    else:
        user, answer = rng.choice(facts.remarks), rng.choice(_REMARK_ANSWERS)
    thought = rng.choice(
        (
            "The user tells me something. No question, so a friendly remark.",
            "Not a question about a fact. I answer with interest.",
            "Small talk about their day.",
            "I have nothing to look up here. I show interest.",
            "A statement. I reply in one sentence.",
        )
    )
    return Exchange(
        casual(user, rng), answer, thought, "", f"Chat about {plural(word)}" if draw < 0.7 else "Chat"
    )


def opinion(facts: Facts, rng: Rng) -> Exchange:
    word, other = _thing(facts, rng), _thing(facts, rng)
    user = rng.choice(_OPINIONS).format(
        k=rng.choice(_FAVOURITES), t=word, ts=plural(word), at=a(word), us=plural(other), au=a(other)
    )
    thought = rng.choice(
        (
            "They ask for my opinion. I have none and say so.",
            "A matter of taste. A program has no taste.",
            "I have no favourites. I can ask back.",
            "Opinion question. I stay honest.",
        )
    )
    return Exchange(
        casual(user, rng), rng.choice(_OPINION_ANSWERS), thought, "", f"Opinion on {plural(word)}"
    )


def joke(facts: Facts, rng: Rng) -> Exchange:
    thought = rng.choice(
        ("The user wants a joke. I know a few.", "Time for a joke.", "I pick one of the jokes I know.")
    )
    return Exchange(casual(rng.choice(_JOKE_ASKS), rng), rng.choice(facts.jokes[:60]), thought, "", "A joke")


def smalltalk(facts: Facts, rng: Rng) -> Exchange:
    draw = rng.random()
    if draw < 0.45:
        return greeting_like(rng)
    if draw < 0.75:
        return statement(facts, rng)
    if draw < 0.95:
        return opinion(facts, rng)
    return joke(facts, rng)
