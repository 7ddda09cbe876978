"""Names: a hand-written list of common ones, and an endless supply of made-up ones, none held out."""

from __future__ import annotations

from .chat import Rng
from .held_out import is_held_name

COMMON = (
    "Ada Adam Aisha Akira Alan Alex Alice Amara Amir Amy Ana Andre Andrew Anna Anton Arjun Arthur Asha Astrid Ava "
    "Ben Bianca Boris Bruno Carla Carlos Carmen Cathy Charles Chen Chloe Chris Clara Claude Cleo Daisy Dan Daniel "
    "David Diana Diego Dimitri Dora Edith Edward Elena Eli Elias Ella Emil Emily Emma Erik Esther Eva Evan Farah "
    "Fatima Felix Finn Fiona Frank Frida Gabriel George Gina Grace Greta Gus Hana Hannah Harry Hassan Helen Henry "
    "Hiro Hugo Ian Ibrahim Ida Igor Ines Ingrid Irene Isabel Ivan Ivy Jack Jacob Jamal James Jan Jane Jasmin Jean "
    "Jenny Joan Joe Johan John Jon Jonas Jorge Jose Josef Julia Julian June Kai Karen Karim Karl Kate Kenji Kim "
    "Klaus Lara Lars Laura Leila Lena Leo Leon Li Lian Lily Linda Linus Lisa Liv Louis Lucas Lucia Lucy Luis Luka "
    "Luna Maja Malik Marco Maria Marie Mario Mark Marta Martin Mary Mateo Matt Maya Mei Mia Michael Miguel Mila "
    "Milan Mina Mira Mohamed Mona Nadia Naomi Nathan Nick Nico Nils Nina Noah Noor Nora Olga Oliver Olivia Omar "
    "Oscar Otto Pablo Paul Paula Pedro Peter Petra Phil Philip Pia Priya Quinn Rafael Ravi Rachel Rita Robert "
    "Robin Rosa Rose Ruth Ryan Sam Samir Sara Sarah Sasha Selma Simon Sofia Sonja Stella Sven Tara Tariq Theo "
    "Thomas Tim Tina Tom Uma Vera Victor Viktor Vivian Walter Wei Wendy Will Yara Yasmin Yuki Yusuf Zara Zoe"
).split()
_STARTS = (
    "b br bl c ch cl d dr f fl fr g gl gr h j k kr l m n p pr qu r s sh sk sl st t th tr v w y z zh".split()
    + [""] * 4
)
_VOWELS = "a a a e e e i i i o o o u u ai ee ei ia io ou oa y".split()
_MIDDLES = "b d f g l ll m mm n nn nd r rr rl s ss st t tt v z lk nk rd rt lm".split()
_ENDS = "n n r r l s th x k m t d nd rt lin ra na la to do ka va ta ro mi ne".split() + [""] * 14


def made_up(rng: Rng) -> str:
    """A name that sounds like one: one to three syllables."""
    parts = [rng.choice(_STARTS), rng.choice(_VOWELS)]
    for _ in range(rng.choice((0, 1, 1, 1, 2))):
        parts += [rng.choice(_MIDDLES), rng.choice(_VOWELS)]
    parts.append(rng.choice(_ENDS))
    name = "".join(parts)
    return name.capitalize() if len(name) > 2 else made_up(rng)


def draw_name(rng: Rng) -> str:
    """A first name for the training data, three in four made up."""
    while True:
        name = rng.choice(COMMON) if rng.random() < 0.25 else made_up(rng)
        if not is_held_name(name):
            return name


def draw_full_name(rng: Rng) -> str:
    """A first name, with a surname one time in four."""
    return f"{draw_name(rng)} {draw_name(rng)}" if rng.random() < 0.25 else draw_name(rng)
