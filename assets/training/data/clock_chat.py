"""Exchanges that use the clock: here and elsewhere, time and date, two places at once, errors."""

from __future__ import annotations

import calendar

from .chat import Call, Exchange, Rng, Step, casual, pick
from .facts import Facts
from .held_out import is_held_phrasing
from .phrasing import asking, surrounded
from .tools import clock_text

_TIME_HERE = (
    "What time is it?",
    "What's the time?",
    "Tell me the time.",
    "time please",
    "How late is it?",
    "Do you know what time it is?",
    "Can you tell me the time?",
    "What is the current time?",
    "Check the clock",
    "What does the clock say?",
    "time?",
    "Is it already noon?",
    "Could you check the time for me?",
    "Look at the clock, please.",
    "I need the time.",
    "Please tell me how late it is.",
    "My watch is broken. What time is it?",
    "What time do we have?",
)
_DATE_HERE = (
    "What is the date today?",
    "What's today's date?",
    "Which day is it today?",
    "What day is today?",
    "today's date please",
    "What date is it?",
    "What day of the week is it?",
    "Which year is it?",
    "What month do we have?",
    "Tell me the date.",
)
_TIME_THERE = (
    "What time is it in {c}?", "What's the time in {c}?", "time in {c}", "Tell me the time in {c}.", "How late is it in {c}?", "What is the local time in {c}?", "What is the current time in {c}?",
    "Do you know what time it is in {c}?", "Can you check the time in {c}?", "And in {c}?", "My sister lives in {c}. What time does she have?", "Which time is it right now in {c}?", "I want to call {c}. Is it night there?", "Look up the time in {c}", "Local time {c}", "Please tell me how late it is in {c}.", "Find out the time in {c} for me.", "What does a clock in {c} show?", "Is it early or late in {c}? Give me the time.", "I have a call with {c}. What time is it there?", "Check the clock in {c}", "What time do they have in {c}?", "current time {c}",
)  # fmt: skip
_DATE_THERE = (
    "What is the date in {c}?",
    "Which day is it in {c}?",
    "What day is it now in {c}?",
    "Today's date in {c}?",
)
_CLOCK_THOUGHTS = (
    "I have a clock. I call it with {z}.",
    "The clock can tell. {c} is in the zone {z}.",
    "Time zone of {c}: {z}.",
    "I need the time zone: {z}.",
    "Use the clock tool with timezone {z}.",
)
_HERE_THOUGHTS = (
    "I have a clock, so I look.",
    "The clock tells the time here. No time zone is needed.",
    "Call the clock without arguments.",
    "Use the clock.",
)
_WELL_KNOWN = [
    *"Tokyo Paris London Berlin Rome Madrid Vienna Moscow Beijing Seoul Cairo Nairobi Lima Ottawa Oslo Stockholm Helsinki Athens Lisbon Dublin Bangkok Hanoi Jakarta Manila Havana Bogota "
    "Santiago Warsaw Prague Budapest Bern Brussels Amsterdam Copenhagen Sydney Mumbai Dubai Istanbul Shanghai Singapore Chicago Toronto Lagos Munich Zurich Auckland Delhi".split(),
    "New York",
    "Los Angeles",
    "Hong Kong",
    "Buenos Aires",
    "Mexico City",
    "San Francisco",
    "New Delhi",
    "Kuala Lumpur",
    "Cape Town",
]
_TIME_NOUNS = (
    "the time", "the current time", "the local time", "what time it is", "how late it is", "the exact time", "the hour", "the clock time", "what the clock says", "what the clocks show",
)  # fmt: skip
_IN = ("in", "in", "in", "over in", "right in", "there in", "down in")
_NOW = ("", "", "", " now", " right now", " currently", " at this time", " just now", " today")
_SOMEBODY = "mother father brother sister son daughter friend boss colleague customer aunt uncle cousin wife husband team bank office".split()
_THERE = (
    "What time is it there?", "What time is it for them?", "How late is it there now?", "Is it too late to call?", "What does the clock say there?", "Which time do they have?",
    "Are they still awake? Check the time.", "Please look at the clock for me.", "Can you check the local time?", "Can I call now? Tell me the time there.", "What do the clocks show there?",
    "Tell me the time over there.", "I need to know the time there.", "Give me the time there.", "Is it day or night there? I need the time.",
)  # fmt: skip
_CONTEXT = (
    "My {w} lives in {c}.", "My {w} is in {c}.", "My {w} works in {c}.", "I want to call my {w} in {c}.", "I have a meeting with somebody in {c}.", "I have to call {c}.", "I am flying to {c}.",
    "My {w} moved to {c}.", "My {w} is travelling in {c}.", "There is a match in {c} today.", "I am writing to {c}.", "We have an office in {c}.", "My {w} asked me to ring in {c}.", "I am thinking of {c}.",
)  # fmt: skip


def _about_somebody(city: str, rng: Rng) -> str:
    """Somebody is there, so what is the time?"""
    while True:
        text = pick(rng, _CONTEXT, w=rng.choice(_SOMEBODY), c=city) + " " + rng.choice(_THERE)
        if not is_held_phrasing(text):
            return text


_HOME_ZONES = (
    "Europe/Berlin",
    "Europe/London",
    "America/New_York",
    "America/Los_Angeles",
    "Asia/Tokyo",
    "Europe/Paris",
    "Asia/Kolkata",
    "UTC",
    "Australia/Sydney",
    "Europe/Madrid",
    "local time",
)


def _moment(rng: Rng, zone: str) -> tuple[str, dict[str, str]]:
    """(what the clock tool answers, the pieces an answer needs)."""
    year, month, day = rng.randint(2024, 2032), rng.randint(1, 12), rng.randint(1, 28)
    hour, minute, second = rng.randrange(24), rng.randrange(60), rng.randrange(60)
    weekday = calendar.day_name[calendar.weekday(year, month, day)]
    pieces = {
        "time": f"{hour:02}:{minute:02}",
        "weekday": weekday,
        "date": f"{day} {calendar.month_name[month]} {year}",
        "iso": f"{year}-{month:02}-{day:02}",
        "zone": zone,
    }
    draw = rng.random()
    if draw < 0.6:
        return clock_text(year, month, day, weekday, hour, minute, second, zone), pieces
    if draw < 0.8:
        return f"{weekday}, {pieces['iso']}, {pieces['time']} ({zone})", pieces
    return (
        f'{{"date": "{pieces["iso"]}", "time": "{pieces["time"]}:{second:02}", "weekday": "{weekday}", "timezone": "{zone}"}}',
        pieces,
    )


def _clock_answer(rng: Rng, wants_date: bool, pieces: dict[str, str], where: str) -> tuple[str, str]:
    if wants_date:
        answer = rng.choice(
            ("Today is {weekday}, {iso}.", "It is {weekday}, {date}.", "Today is {weekday}, {date}.")
        )
    else:
        answer = rng.choice(("It is {time}{w}.", "The time{w} is {time}.", "{time}.", "It is now {time}{w}."))
    thought = rng.choice(
        (
            "The clock says {time} on {weekday}.",
            "{iso}, {time}.",
            "I read the result: {time}, {weekday}.",
            "Now I can answer.",
        )
    )
    return answer.format(w=where, **pieces), thought.format(**pieces)


def clock(facts: Facts, rng: Rng) -> Exchange:
    """One or two calls of the clock."""
    draw = rng.random()
    wants_date = rng.random() < 0.25
    if draw < 0.35:
        user = rng.choice(_DATE_HERE if wants_date else _TIME_HERE)
        if rng.random() < 0.4:
            nouns = (
                ("the date", "today's date", "the day of the week", "what day it is")
                if wants_date
                else _TIME_NOUNS
            )
            user = asking(rng.choice(nouns) + rng.choice(_NOW), rng)
        user = surrounded(user, rng)
        result, pieces = _moment(rng, rng.choice(_HOME_ZONES))
        answer, thought = _clock_answer(rng, wants_date, pieces, "")
        return Exchange(
            casual(user, rng),
            answer,
            thought,
            "",
            "Date" if wants_date else "Time",
            (Step(rng.choice(_HERE_THOUGHTS), (Call("clock", {}, result),)),),
        )
    city, zone = rng.choice(facts.zones)
    if rng.random() < 0.5:
        known = dict(facts.zones)
        city = rng.choice([name for name in _WELL_KNOWN if name in known] or [city])
        zone = known[city]
    if draw < 0.42:
        city = zone
    if draw > 0.93:
        city2, zone2 = rng.choice(facts.zones)
        (result, pieces), (result2, pieces2) = _moment(rng, zone), _moment(rng, zone2)
        user = pick(
            rng,
            (
                "What time is it in {a} and in {b}?",
                "Tell me the time in {a} and {b}.",
                "Compare the time in {a} with {b}.",
            ),
            a=city,
            b=city2,
        )
        calls = (Call("clock", {"timezone": zone}, result), Call("clock", {"timezone": zone2}, result2))
        answer = f"It is {pieces['time']} in {city} and {pieces2['time']} in {city2}."
        return Exchange(
            user,
            answer,
            f"{city}: {pieces['time']}, {city2}: {pieces2['time']}.",
            "",
            "Time in two cities",
            (Step(f"Two places, two calls: {zone} and {zone2}.", calls),),
        )
    user = pick(rng, _DATE_THERE if wants_date else _TIME_THERE, c=city)
    if rng.random() < 0.5:
        nouns = (
            ("the date", "today's date", "the day of the week", "what day it is")
            if wants_date
            else _TIME_NOUNS
        )
        user = asking(f"{rng.choice(nouns)} {rng.choice(_IN)} {city}{rng.choice(_NOW)}", rng)
    elif rng.random() < 0.35 and not wants_date:
        user = _about_somebody(city, rng)
    user = surrounded(user, rng)
    thought = pick(rng, _CLOCK_THOUGHTS, z=zone, c=city)
    if draw > 0.9:
        result = rng.choice((f"Error: unknown time zone {zone}", "Error: the clock does not answer"))
        answer = rng.choice(
            (
                "The clock reports an error, so I do not know the time.",
                "I am sorry, the clock does not work right now.",
            )
        )
        final = "The tool failed. I must not invent a time."
    else:
        result, pieces = _moment(rng, zone)
        answer, final = _clock_answer(rng, wants_date, pieces, f" in {city}")
    return Exchange(
        casual(user, rng, keep=tuple(city.split())),
        answer,
        final,
        "",
        f"Time in {city}",
        (Step(thought, (Call("clock", {"timezone": zone}, result),)),),
    )
