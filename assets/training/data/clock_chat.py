"""Exchanges that use the clock: here and elsewhere, time and date, two places at once, errors."""

from __future__ import annotations

import calendar

from .chat import Call, Exchange, Rng, Step, casual, pick
from .facts import Facts
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
    if draw < 0.45:
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
