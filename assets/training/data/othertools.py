"""Made-up tools with random names and parameters, so that the model reads the schema instead of knowing it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from .chat import Call, Exchange, Rng, Step, casual
from .facts import Facts
from .names import draw_name
from .vocabulary import FOODS, THINGS


@dataclass(frozen=True)
class Family:
    """Tools of one kind: possible names, what they do, parameters (slot: type and possible names), what people say,
    what the tool returns and how the result is told."""

    names: str
    does: str
    parameters: dict[str, tuple[str, str]]
    asks: str
    returns: str
    tells: str


FAMILIES = (
    Family("get_weather weather weather_report current_weather forecast", "Get the weather of a city.", {"city": ("string", "city location place town")},
           "What is the weather in {city}?|Weather in {city}?|How is the weather in {city}|Is it raining in {city}?|Check the weather in {city}.",
           "{deg} degrees, {sky}|{{\"temperature\": {deg}, \"sky\": \"{sky}\"}}", "In {city} it is {sky} with {deg} degrees.|{city}: {deg} degrees and {sky}."),
    Family("set_timer start_timer timer countdown", "Start a timer.", {"num": ("integer", "minutes duration length")},
           "Set a timer for {num} minutes.|Timer {num} minutes|Start a timer of {num} minutes|Wake me in {num} minutes.", "ok|started|Timer started.", "The timer is set to {num} minutes.|Done, {num} minutes."),
    Family("send_message send_text message text_person", "Send a short message to a person.", {"name": ("string", "to recipient person name"), "sentence": ("string", "text body content message")},
           "Tell {name}: {sentence}|Send {name} the message: {sentence}|Write to {name}: {sentence}|Message {name}: {sentence}", "sent|ok|Message delivered.", "I sent the message to {name}.|Done, {name} has the message."),
    Family("add_note make_note save_note remember_note", "Save a note.", {"sentence": ("string", "text note content")},
           "Note: {sentence}|Make a note: {sentence}|Save this as a note: {sentence}|Write down: {sentence}", "saved|ok|Note number {num}", "I saved the note.|The note is saved."),
    Family("search_files find_documents search lookup find", "Search the documents of the user.", {"noun": ("string", "query term words keyword")},
           "Find documents about {noun}.|Search my files for {noun}|Do I have anything on {noun}?|Look for {noun} in my documents.", "{noun}.txt, {noun2}.pdf|[\"{noun}.txt\", \"{noun2}.pdf\"]", "I found {noun}.txt and {noun2}.pdf.|There are two files: {noun}.txt and {noun2}.pdf."),
    Family("roll_dice roll dice throw_dice", "Throw dice and return what they show.", {"few": ("integer", "count number dice"), "num": ("integer", "sides faces")},
           "Roll {few} dice with {num} sides.|Throw {few} {num}-sided dice|roll {few} dice, {num} sides", "{roll}|rolled {roll}", "The result is {roll}.|I rolled {roll}."),
    Family("get_price price price_of lookup_price", "Get the price of a product in euros.", {"noun": ("string", "product item article name")},
           "What does the {noun} cost?|Price of {noun}?|How much is the {noun}?|Look up the price of {noun}.", "{num}.{cents}|{{\"price\": {num}.{cents}}}", "The price of {noun} is {num}.{cents} euros.|{num}.{cents} euros."),
    Family("switch_light set_light light lamp", "Switch the light of a room on or off.", {"room": ("string", "room where place"), "on": ("boolean", "on state enabled")},
           "Turn {onoff} the light in the {room}.|Light {onoff} in the {room}|Switch the {room} light {onoff}.", "ok|done", "The light in the {room} is {onoff}.|Done: {room}, {onoff}."),
    Family("play_song play music_player play_music", "Play a song by its title.", {"name": ("string", "title song track")},
           "Play {name}.|Play the song {name}|I want to hear {name}.|Put on {name}", "playing|ok", "Now playing {name}.|Here is {name}."),
    Family("phone_number lookup_number phonebook find_number", "Look up the telephone number of a person.", {"name": ("string", "name person who")},
           "What is the number of {name}?|Find {name}'s phone number.|telephone number of {name}|How can I call {name}?", "{phone}|{{\"number\": \"{phone}\"}}", "The number of {name} is {phone}.|{name}: {phone}."),
    Family("read_file open_file cat show_file", "Return the text of a file.", {"path": ("string", "path file filename")},
           "Read {path}.|What is in {path}?|Show me the file {path}|Open {path}", "{sentence}", "The file says: {sentence}|{path} contains: {sentence}"),
    Family("create_reminder remind reminder set_reminder", "Remind the user of something at a time.", {"sentence": ("string", "text what about"), "hour": ("string", "time at when")},
           "Remind me at {hour}: {sentence}|At {hour} remind me of this: {sentence}|Reminder for {hour}: {sentence}", "ok|created", "I will remind you at {hour}.|The reminder for {hour} is set."),
    Family("random_number draw_number random_int pick_number", "Draw a random whole number between two bounds.", {"few": ("integer", "low minimum from start"), "num": ("integer", "high maximum to end")},
           "Give me a random number between {few} and {num}.|Pick a number from {few} to {num}|random number {few} to {num}", "{drawn}", "The number is {drawn}.|I drew {drawn}."),
    Family("distance get_distance route how_far", "Distance between two cities in kilometres.", {"city": ("string", "from start origin"), "city2": ("string", "to end destination")},
           "How far is it from {city} to {city2}?|Distance from {city} to {city2}?|How many kilometres from {city} to {city2}?", "{big} km|{big}", "It is {big} kilometres from {city} to {city2}.|{big} kilometres."),
    Family("population get_population people_in count_people", "Number of people who live in a country.", {"country": ("string", "country name state")},
           "How many people live in {country}?|Population of {country}?|What is the population of {country}", "{big}000", "{big}000 people live there.|The population is {big}000."),
    Family("next_train trains timetable train_time", "The next train between two stations.", {"city": ("string", "from origin start"), "city2": ("string", "to destination end")},
           "When does the next train from {city} to {city2} leave?|Next train {city} to {city2}?|train from {city} to {city2}", "{hour}|{{\"departure\": \"{hour}\"}}", "The next train leaves at {hour}.|It leaves {city} at {hour}."),
    Family("add_event calendar_add new_event schedule", "Put an event into the calendar.", {"noun": ("string", "title event name"), "date": ("string", "date day when")},
           "Put {noun} into my calendar on {date}.|Add the event {noun} on {date}|Schedule {noun} for {date}.", "ok|added", "I added {noun} on {date}.|{noun} is in the calendar for {date}."),
    Family("set_heating heating thermostat set_temperature", "Set the heating of a room.", {"room": ("string", "room where"), "num": ("number", "degrees temperature value")},
           "Set the heating in the {room} to {num} degrees.|{room} to {num} degrees please|Make it {num} degrees in the {room}.", "ok|set", "The {room} is set to {num} degrees.|Done: {num} degrees in the {room}."),
    Family("get_user find_user user_info lookup_user", "Look up a user by number.", {"num": ("integer", "id number user_id")},
           "Who is user {num}?|Look up user {num}.|Name of user number {num}?", "{name}|{{\"name\": \"{name}\", \"city\": \"{city}\"}}", "User {num} is {name}."),
    Family("translate translator translate_text to_language", "Translate a word into another language.", {"noun": ("string", "text word phrase"), "language": ("string", "language target into")},
           "Translate {noun} into {language}.|What is {noun} in {language}?|{noun} in {language}?", "{coined}", "{noun} in {language} is {coined}.|{coined}."),
    Family("order_food order buy order_item", "Order something to eat.", {"food": ("string", "dish item what"), "few": ("integer", "count amount quantity")},
           "Order {few} portions of {food}.|I want {few} portions of {food}, please|Order {food}, {few} times.", "ordered|order {num}", "I ordered {few} portions of {food}.|Done: {few} portions of {food}."),
    Family("stock_level in_stock check_stock inventory", "How many pieces of an article are in stock.", {"noun": ("string", "article item product")},
           "How many of {noun} do we have in stock?|Stock of {noun}?|Is {noun} in stock?", "{num}|{{\"count\": {num}}}", "There are {num} in stock.|We have {num}."),
)  # fmt: skip
_ROOMS = "kitchen bathroom bedroom hall office garage cellar garden library attic".split()
_SKIES = ("sunny", "cloudy", "rainy", "snowy", "windy", "clear", "foggy")
_LANGUAGES = "German French Spanish Italian Dutch Polish Turkish Finnish Greek Danish".split()
_CALL = (
    "The tool {t} can do that.", "I have a tool for this: {t}. Arguments: {a}.", "I call {t}.", "Which tool? {t}, it fits.", "This needs {t} with {a}.",
    "The user wants something that {t} does.",
)  # fmt: skip
_AFTER = (
    "The tool has answered. I tell the user.",
    "Done. I report the result.",
    "I have what I need.",
    "The result is here: {r}",
)


def _values(facts: Facts, rng: Rng) -> dict[str, Any]:
    on = rng.random() < 0.5
    few = rng.randint(1, 9)
    num = rng.randint(10, 99) if rng.random() < 0.8 else rng.randint(100, 999)
    noun = rng.choice(THINGS) if rng.random() < 0.6 else rng.choice(facts.words["artifact"])
    noun2 = rng.choice(facts.words["noun"])
    return {
        "city": rng.choice(facts.cities), "city2": rng.choice(facts.cities), "country": rng.choice(facts.countries).name,
        "num": num, "few": few, "drawn": rng.randint(few, num), "big": rng.randint(12, 9800), "cents": f"{rng.randrange(100):02}",
        "name": draw_name(rng) if rng.random() < 0.6 else f"{draw_name(rng)} {draw_name(rng)}", "noun": noun, "noun2": noun2,
        "sentence": rng.choice(facts.sentences), "deg": rng.randint(-15, 38), "sky": rng.choice(_SKIES), "room": rng.choice(_ROOMS),
        "on": on, "onoff": "on" if on else "off", "phone": "".join(str(rng.randrange(10)) for _ in range(rng.randint(5, 9))),
        "path": rng.choice(("", "/tmp/", "docs/", "/home/", "notes/")) + noun + rng.choice((".txt", ".md", ".csv", ".log")),
        "hour": f"{rng.randrange(24):02}:{rng.randrange(60):02}", "date": f"20{rng.randint(25, 32)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}",
        "language": rng.choice(_LANGUAGES), "coined": draw_name(rng).lower(), "food": rng.choice(FOODS),
        "roll": ", ".join(str(rng.randint(1, num)) for _ in range(few)),
    }  # fmt: skip


def _schema(family: Family, rng: Rng) -> tuple[dict[str, Any], dict[str, str]]:
    """A tool of the family with drawn names: (tool, slot -> parameter name)."""
    chosen: dict[str, str] = {}
    for slot, (_, names) in family.parameters.items():
        free = [name for name in names.split() if name not in chosen.values()]
        chosen[slot] = rng.choice(free)
    slots = list(family.parameters)
    rng.shuffle(slots)
    properties = {}
    for slot in slots:
        properties[chosen[slot]] = {"type": family.parameters[slot][0]}
        if rng.random() < 0.3:
            properties[chosen[slot]]["description"] = "The " + chosen[slot].replace("_", " ")
    tool = {
        "name": rng.choice(family.names.split()), "description": family.does if rng.random() < 0.9 else "",
        "parameters": {"type": "object", "properties": properties, "required": sorted(properties)},
    }  # fmt: skip
    return tool, chosen


def _coined(facts: Facts, rng: Rng) -> tuple[dict[str, Any], Exchange]:
    """A tool whose name is a made-up verb: only its schema says how to call it."""
    verb, key, result = draw_name(rng).lower(), draw_name(rng).lower(), draw_name(rng)
    number = rng.random() < 0.5
    value: Any = rng.randint(1, 9999) if number else rng.choice(facts.words["noun"])
    tool = {
        "name": verb, "description": f"{verb.capitalize()} a {'number' if number else 'word'}.",
        "parameters": {"type": "object", "properties": {key: {"type": "integer" if number else "string"}}, "required": [key]},
    }  # fmt: skip
    user = rng.choice(
        (
            "{v} {x}.",
            "Please {v} {x}.",
            "Can you {v} {x}?",
            "Use {v} on {x}",
            "What do you get when you {v} {x}?",
        )
    ).format(v=verb, x=value)
    step = Step(rng.choice(_CALL).format(t=verb, a=f"{key} = {value}"), (Call(verb, {key: value}, result),))
    return tool, Exchange(
        user,
        f"The result is {result}.",
        rng.choice(_AFTER).format(r=result),
        "",
        f"{verb.capitalize()} {value}",
        (step,),
    )


def other_tool(facts: Facts, rng: Rng) -> tuple[dict[str, Any], Exchange]:
    """(the tool, an exchange that calls it)."""
    if rng.random() < 0.12:
        return _coined(facts, rng)
    family = rng.choice(FAMILIES)
    tool, chosen = _schema(family, rng)
    values = _values(facts, rng)
    user = rng.choice(family.asks.split("|")).format(**values)
    result = rng.choice(family.returns.split("|")).format(**values)
    names = list(tool["parameters"]["properties"])
    by_name = {chosen[slot]: values[slot] for slot in family.parameters}
    arguments = {name: by_name[name] for name in names}
    answer = rng.choice(family.tells.split("|")).format(**values)
    if rng.random() < 0.06:
        result, answer = (
            "Error: not available",
            rng.choice(
                (
                    "The tool reports an error: not available.",
                    "I am sorry, that did not work: the tool is not available.",
                )
            ),
        )
    shown = ", ".join(f"{name} = {json.dumps(value)}" for name, value in arguments.items())
    step = Step(rng.choice(_CALL).format(t=tool["name"], a=shown), (Call(tool["name"], arguments, result),))
    return tool, Exchange(
        casual(user, rng, keep=user.split()),
        answer,
        rng.choice(_AFTER).format(r=result[:60]),
        "",
        user[:40].rstrip("?.! "),
        (step,),
    )


def distractor(rng: Rng) -> dict[str, Any]:
    """A tool that stands in the list without being needed."""
    return _schema(rng.choice(FAMILIES), rng)[0]
