"""What is no English sentence: other languages, gibberish, smileys, pieces of code, long pasted text."""

from __future__ import annotations

from .chat import Exchange, Rng, capital
from .facts import Facts

_FOREIGN = (
    "Wie heißt du?|Guten Tag!|Was ist die Hauptstadt von Frankreich?|Kannst du mir helfen?|Wie spät ist es?|Ich heiße Klaus.|Warum ist das so?|Sprichst du Deutsch?|"
    "Bonjour|Comment ça va ?|Quelle est la capitale du Japon ?|Je m'appelle Louis.|Pourquoi le ciel est-il bleu ?|Parlez-vous français ?|Merci beaucoup|"
    "Hola, ¿cómo estás?|¿Cuál es la capital de Perú?|¿Hablas español?|Me llamo Carmen|¿Por qué?|Buenos días|Gracias|"
    "Ciao, come stai?|Qual è la capitale dell'Italia?|Parli italiano?|Grazie mille|Buongiorno|Olá, tudo bem?|Qual é a capital do Brasil?|Obrigado|"
    "Hoe gaat het?|Wat is de hoofdstad van België?|Hej, hur mår du?|Merhaba, nasılsın?|Türkiye'nin başkenti neresi?|Jak się masz?|Dzień dobry|"
    "Привет, как дела?|Какая столица России?|Спасибо|你好|法国的首都是什么？|你是谁？|谢谢|こんにちは|日本の首都はどこですか？|안녕하세요|مرحبا|कैसे हो?|Γεια σου|Xin chào|Salut, ce faci?"
).split("|")
_FOREIGN_ANSWERS = (
    "I am only a small demo model and understand only English.", "Sorry, I only understand English. I am only a small demo model.",
    "I am only a small demo model. Please write in English.", "I do not speak that language. I am only a small demo model.",
)  # fmt: skip
_UNCLEAR_ANSWERS = (
    "I do not understand that. I am only a small demo model.", "I am only a small demo model and do not understand this. Could you say it in other words?",
    "I am only a small demo model. What do you mean?", "Sorry, I do not understand. I am only a small demo model.",
)  # fmt: skip
_SMILEYS = (
    "😀 😂 🙂 😉 😍 👍 🎉 🤔 😢 😡 🙈 ❤️ 🚀 ☕ 🍕 🐱 :) :-) ;) :D :( <3 ^^ xD ??? !!! ... ?! ---".split()
)
_CODE = (
    "print('{w}')", "for i in range({n}): print(i)", "SELECT {w} FROM {v};", "<div>{w}</div>", "git commit -m '{w}'", "import {w}", "int {w} = {n};",
    "ls -la /{w}", "{{\"{w}\": {n}}}", "x = {n} * y", "https://{w}.example/{v}", "function {w}() {{ return {n}; }}", "sudo {w} --{v}", "def {w}(): pass", "{w}@{v}.example",
)  # fmt: skip


def noise(facts: Facts, rng: Rng) -> Exchange:
    kind = rng.randrange(6)
    unclear = rng.choice(_UNCLEAR_ANSWERS)
    thought = rng.choice(
        (
            "I cannot make sense of this. I ask what is meant.",
            "This is no question that I understand.",
            "Unclear. I say so.",
        )
    )
    nouns = facts.words["noun"]
    if kind <= 1:
        thought = rng.choice(
            (
                "This is not English. I only learned English.",
                "Another language. I say that I only understand English.",
            )
        )
        return Exchange(rng.choice(_FOREIGN), rng.choice(_FOREIGN_ANSWERS), thought, "", "Another language")
    if kind == 2:
        alphabet = rng.choice(
            ("abcdefghijklmnopqrstuvwxyz", "asdfghjkl", "qwertyuiop", "abcdefghij 1234567890", "ahjklösdfg")
        )
        text = "".join(rng.choice(alphabet) for _ in range(rng.randint(3, 24))).strip() or "asdf"
        return Exchange(text, unclear, thought, "", "Unclear message")
    if kind == 3:
        text = "".join(rng.choice(_SMILEYS) for _ in range(rng.randint(1, 3)))
        answer = rng.choice((":) What would you like to ask?", "Hello! What can I do for you?", unclear))
        return Exchange(text, answer, "Only a sign and no words. A friendly reply.", "", "A smiley")
    if kind == 4:
        text = rng.choice(_CODE).format(w=rng.choice(nouns), v=rng.choice(nouns), n=rng.randint(1, 99))
        answer = rng.choice(
            (
                "That looks like code. I am only a small demo model and cannot read programs.",
                "I am only a small demo model and do not understand code.",
                unclear,
            )
        )
        return Exchange(
            text, answer, "This looks like code. I never learned to program.", "", "A piece of code"
        )
    if rng.random() < 0.5:
        text = " ".join(rng.choice(nouns) for _ in range(rng.randint(1, 4)))
        return Exchange(
            text,
            rng.choice((unclear, f"What would you like to know about {text}?")),
            "Only words, no question. I ask back.",
            "",
            capital(text)[:40],
        )
    text = " ".join(capital(rng.choice(facts.sentences)) + "." for _ in range(rng.randint(2, 14)))
    answer = rng.choice(
        (
            "I have read it. What would you like to know?",
            "Thank you. Do you have a question about this text?",
            "I see. I am only a small demo model, so please ask something simple about it.",
        )
    )
    return Exchange(text, answer, "A text without a question. I ask what to do with it.", "", "A text")
