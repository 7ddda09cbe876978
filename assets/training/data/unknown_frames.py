"""Hand-written frames of questions the model cannot answer; slots are filled from WordNet, cities and names.

One frame a line: `question | how the answer names it` (nothing after the bar: the answer does not name it).
"""

KNOW = """
Why is the {noun} {adj}? | why the {noun} is {adj}
Why are {animals} {adj}? | why {animals} are {adj}
Why do {animals} {verb}? | why {animals} {verb}
Why do people {verb}? | why people {verb}
Why do we {verb} when we {verb2}? | that
Why does {sub} {verb}? | why {sub} behaves like that
Why does the {object} {verb}? | why the {object} does that
Why does my {thing} {verb}? | what is wrong with your {thing}
Why is {sub} {adj}? | why {sub} is {adj}
Why is {food} so {adj}? | why {food} is {adj}
Why can't {animals} {verb}? | why that is so
Why did the {person} {verb} the {noun}? | why the {person} did that
Why did {name} leave {place}? | anything about {name}
Why don't {persons} {verb} {nouns}? | that
Why was the {noun} {adj} in {year}? | that
Why should I {verb} my {thing}? | that
Why is there {sub} in {food}? | that
Why are there so many {nouns} in {country}? | that
Why does it {verb} in winter? | that
How does {anoun} work? | how {anoun} works
How does a {thing} work? | how that works
How do {animals} {verb}? | how {animals} {verb}
How do I {verb} {anoun}? | how to {verb} {anoun}
How do you {verb} a {thing}? | how to {verb} it
How can I {verb} faster? | that
How can I make {food}? | how to make {food}
How do I cook {food}? | how to cook {food}
How do I get to {place}? | the way to {place}
How far is it from {place} to {place2}? | how far that is
How far away is the {object}? | that distance
How old is {name}? | how old {name} is
How old is the {object}? | how old the {object} is
How tall is the {noun}? | how tall that is
How high is {anoun}? | how high that is
How heavy is {ananimal}? | how heavy {ananimal} is
How fast can {ananimal} run? | how fast that is
How long do {animals} live? | how long {animals} live
How long does it take to {verb} {anoun}? | how long that takes
How many {nouns} are there in {country}? | that number
How many people live in {place}? | how many people live there
How many people live in {country}? | the population
How many legs does {ananimal} have? | that
How many {things} does a {person} need? | that
How much does a {thing} cost? | prices
How much is a kilo of {food}? | prices
How much {sub} is in {food}? | that
How deep is the {object}? | that
How big is {country}? | how big that is
How is {sub} made? | how {sub} is made
How was the {thing} invented? | that
How did {name} become a {person}? | anything about {name}
How did the war in {year} end? | about wars
How do magnets {verb}? | that
How do I fix my {thing}? | how to fix your {thing}
How do I learn {subject}? | how to teach that
How do I say {noun} in French? | other languages
How do you spell it in Spanish? | other languages
How would {persons} {verb} without {nouns}? | that
How come {animals} never {verb}? | that
Who invented the {thing}? | who invented the {thing}
Who discovered {sub}? | who discovered {sub}
Who wrote {title}? | who wrote that
Who painted {title}? | who painted that
Who directed {title}? | who directed that
Who sang {title}? | who sang that
Who plays in {title}? | that film
Who was {name}? | who {name} was
Who is {fullname}? | who {fullname} is
Who is the president of {country}? | who governs there
Who is the king of {country}? | who governs there
Who is the prime minister of {country}? | who governs there
Who is the mayor of {place}? | who that is
Who won the {event} in {year}? | who won
Who won the match last night? | who won
Who was the first {person} to {verb}? | who that was
Who is the best {person} in the world? | that
Who is the richest {person}? | that
Who founded {place}? | who founded {place}
Who built the {thing} in {place}? | who built it
Who lives in the {object}? | that
Who owns the {thing}? | that
Who is stronger, a {animal} or a {animal2}? | that
When was {fullname} born? | when that was
When did {fullname} die? | when that was
When was the {thing} invented? | when the {thing} was invented
When did the {event} begin? | when that was
When did {country} become independent? | when that was
When was {place} founded? | when that was
When is the next {event}? | when that is
When do {animals} {verb}? | when {animals} {verb}
When does the {thing} shop open? | opening times
When does the next train to {place} leave? | timetables
When should I plant {plants}? | that
When was {title} published? | that
When did people start to {verb}? | that
When will {persons} {verb} {nouns}? | the future
What is the {adj} {noun} in the world? | that
What is the best way to {verb} {anoun}? | the best way
What is the best {thing}? | which {thing} is best
What is the best {food} in {place}? | that
What is the difference between {anoun} and {anoun2}? | the difference
What is the population of {country}? | the population
What is the population of {place}? | the population
What is the official language of {country}? | the language
What language do they speak in {country}? | the language
What is the highest mountain in {country}? | that
What is the longest river of {country}? | that
What is the national {animal} of {country}? | that
What does the flag of {country} look like? | that
What is the history of {place}? | the history of {place}
What happened in {year}? | what happened in {year}
What happened in {place} in {year}? | what happened there
What happens when {sub} meets {sub2}? | what happens then
What happens if I {verb} my {thing}? | what happens then
What causes {feeling}? | what causes {feeling}
What causes {anoun}? | what causes that
What do {animals} eat? | what {animals} eat
What do {persons} do all day? | what {persons} do
What does {ananimal} look like? | what {ananimal} looks like
What does {food} taste like? | how {food} tastes
What colour is {ananimal}? | that
What is {sub} used for? | what {sub} is used for
What is inside the {object}? | what is inside the {object}
What is behind the {object}? | that
What is the meaning of life? | the meaning of life
What is the theory of {noun}? | that theory
What is {subject}? | what {subject} is
What is the law of {noun}? | that law
What is the formula for {noun}? | that formula
What is the boiling point of {sub}? | that
What is the speed of {sub}? | that
What is the square root of {num}? | roots
What is {num} to the power of {num}? | such large powers
What is {bignum} times {bignum2}? | such large products without a calculator
What is the price of {sub}? | prices
What should I {verb} today? | what you should do
What should I wear to the {event}? | that
What should I eat for dinner? | that
What should I do about my {feeling}? | that
What should I do with my {thing}? | that
What film should I watch tonight? | films
What book should I read? | books
What is the plot of {title}? | that story
What is {title} about? | what {title} is about
What are the symptoms of {anoun}? | illnesses
What are the rules of {noun}? | those rules
What are {nouns} made of? | what {nouns} are made of
What kind of {animal} is the {adj} one? | that
What time does the {event} start? | when that is
What did {fullname} say about {nouns}? | that
What did {fullname} invent? | anything about {fullname}
What is {fullname} famous for? | anything about {fullname}
What is my {thing} made of? | what your {thing} is made of
What is in my {thing}? | what is in your {thing}
What am I thinking about? | what you are thinking
What is my favourite {noun}? | that, you have not told me
What will the {noun} be like in {year2}? | the future
What will happen tomorrow? | the future
What would happen if all {animals} could {verb}? | that
What were the causes of the {event}? | those causes
What type of {thing} do I need to {verb}? | that
What is the news today? | the news
What's new in {place}? | the news
What's wrong with my {thing}? | what is wrong with your {thing}
What's the secret of {adj} {food}? | that secret
What's on television tonight? | the television programme
What makes a {person} {adj}? | that
What's the {adj2} {animal}? | that
Where do {animals} live? | where {animals} live
Where does {sub} come from? | where {sub} comes from
Where can I buy {anoun}? | where to buy that
Where can I find {adj} {nouns}? | where to find that
Where is my {thing}? | where your {thing} is
Where is the nearest {thing}? | where that is
Where was {fullname} born? | where that was
Where should I go on holiday? | where you should go
Where did the {person} hide the {thing}? | that
Where do {plants} grow? | where {plants} grow
Where is the {body} located? | that
Which {animal} is the {adj} one? | which it is
Which {thing} is the best for {nouns}? | which is best
Which is healthier, {food} or {food2}? | which is healthier
Which team won the {event}? | who won
Which {person} wrote {title}? | who wrote that
Which planet is the {adj} one? | planets
Which came first, the {noun} or the {noun2}? | which came first
Which language should I learn? | which language is best for you
Is {food} good for the {body}? | that
Is {sub} heavier than {sub2}? | which is heavier
Is it dangerous to {verb} {anoun}? | whether that is dangerous
Is it true that {animals} can {verb}? | whether that is true
Is there life on other planets? | that
Is the {object} bigger than the {object2}? | which is bigger
Is {fullname} still alive? | anything about {fullname}
Is a {animal} a {noun}? | that
Is {place} a nice city? | what {place} is like
Is {title} a good film? | that film
Are {animals} {adj}? | whether {animals} are {adj}
Are there {nouns} on the {object}? | that
Are {persons} happier than {persons2}? | that
Can {animals} {verb}? | whether {animals} can {verb}
Can {ananimal} beat {ananimal2}? | that
Can {sub} {verb}? | that
Can I mix {sub} and {sub2}? | whether that is safe
Can you eat {plants}? | whether that is safe
Do {animals} {verb} at night? | that
Do {persons} earn a lot? | that
Do {plants} need {sub}? | that
Does {food} contain {sub}? | what is in {food}
Does a {animal} have a {body}? | that
Did {fullname} really {verb} the {noun}? | that
Did people {verb} in {year}? | how people lived then
Was {fullname} a {person}? | anything about {fullname}
Was the {event} really so {adj}? | that
Will there be a {event} in {year2}? | the future
Will {animals} ever {verb}? | the future
Has anyone ever {verbed} the {object}? | that
Have scientists found the {noun}? | that
Explain {subject}. | {subject}
Explain {subject} to me like I am five | {subject}
Explain how {anoun} works. | how that works
Explain why {animals} {verb} | why {animals} {verb}
Tell me about {fullname}. | anything about {fullname}
Tell me about the history of {country}. | the history of {country}
Tell me about the {event} of {year} | that
Tell me something about {animals}. | anything about {animals}
Tell me everything about {nouns} | much about {nouns}
Tell me a fact about {animals} | facts about {animals}
Tell me the news | the news
Describe the {object}. | how to describe that
Describe how to {verb} {anoun} | that
Compare {nouns} and {nouns2}. | how they compare
List the best {things}. | which are best
Name three {adj} {persons}. | that
Name a famous {person}. | famous people
Give me five facts about {animals} | facts about {animals}
I wonder why {animals} {verb}. | why {animals} {verb}
I wonder who invented the {thing}. | who invented it
I want to know how {things} work. | how {things} work
Do you know why {sub} is {adj}? | why {sub} is {adj}
Do you know who wrote {title}? | who wrote that
Do you know how to {verb} {anoun}? | how to {verb} {anoun}
Do you know anything about {nouns}? | anything about {nouns}
Can you tell me how {animals} {verb}? | how {animals} {verb}
Can you explain {subject}? | {subject}
Could you tell me when {fullname} was born? | when that was
Any idea why my {thing} is {adj}? | what is wrong with your {thing}
Is God real? | such things
What do you know about {subject}? | anything about {subject}
What do you know about {nouns}? | much about {nouns}
And why is that? | why that is so
Why? | why that is so
Why is that so? | why that is so
How so? | the reason
How do you know? | how I know what I know
Who was {famous}? | who {famous} was
Who is {famous}? | who {famous} is
Tell me about {famous}. | anything about {famous}
What did {famous} do? | what {famous} did
When was {famous} born? | when that was
When did {famous} live? | when that was
Where was {famous} born? | where that was
Why is {famous} famous? | anything about {famous}
What is {famous} known for? | anything about {famous}
Which books did {famous} write? | that
How did {famous} die? | that
Was {famous} a good {person}? | that
Do you know {famous}? | {famous}
What was the {happening}? | what the {happening} was
When was the {happening}? | when that was
When did the {happening} take place? | when that was
Who won the {happening}? | who won
Why did the {happening} happen? | why that happened
What happened in the {happening}? | what happened there
Tell me about the {happening} | anything about that
Where is the {landmark}? | where that is
How long is the {landmark}? | how long that is
How high is {landmark}? | how high that is
How deep is the {landmark}? | that
What is {landmark}? | what {landmark} is
Tell me about {landmark}. | anything about {landmark}
Is {landmark} in {country}? | that
Who discovered {landmark}? | that
Is a {food} a {noun} or a {noun2}? | which it is
Is {anoun} a {noun2} or something else? | which it is
Is it better to {verb} or to {verb2}? | which is better
Is it better to have {anoun} or {anoun2}? | which is better
What's better, {food} or {food2}? | which is better
{noun} or {noun2}? | which is better
{nouns} vs {nouns2} | which is better
What are the pros and cons of {nouns}? | that
What are the advantages of {anoun}? | that
What are the main parts of {anoun}? | that
What are three uses of {sub}? | that
What is the origin of the word {noun}? | where that word comes from
What is the opposite of {adj}? | that
What rhymes with {noun}? | rhymes
What is the plural of {noun}? | that
What is the chemical formula of {sub}? | that formula
What is the temperature of the {object}? | that
What is the distance between the {object} and the {object2}? | that distance
What is the weight of {anoun}? | that
What is the oldest {noun}? | that
What is the most {adj} {noun}? | that
What is the smallest {animal}? | that
What is the name of the {adj} {person}? | that name
What sound does {ananimal} make? | that
What do you call a group of {animals}? | that
What does {fullname} do? | anything about {fullname}
What does a {person} need to know? | that
What does the letter from {name} say? | that
What year did {famous} die? | when that was
What country has the most {nouns}? | that
What is going on in {country}? | the news
What do people eat in {country}? | that
What are the neighbours of {country}? | the neighbours
Which countries border {country}? | the neighbours
What is {country} famous for? | much about {country}
Is {country} bigger than {country2}? | which is bigger
Is {country} a rich country? | that
Is {country} safe for tourists? | that
Who discovered {country}? | that
Who rules {country}? | who governs there
How many provinces does {country} have? | that
How large is the army of {country}? | that
What is the climate like in {country}? | the climate
What is the telephone code of {country}? | that
Do I need a visa for {country}? | that
When is the best time to visit {country}? | that
What are the biggest cities of {country}? | the other cities
Which rivers flow through {country}? | that
What happened in {country} in {year}? | what happened there
What is {place} famous for? | anything about {place}
How do I get from {place} to {country}? | the way
How many inhabitants does {place} have? | how many people live there
Which {nouns} are in {place}? | that
history of {place} | the history of {place}
history of {nouns} | that history
{animals} facts | facts about {animals}
how to {verb} {anoun} | how to {verb} {anoun}
how to become {aperson} | that
how {animals} {verb} | how {animals} {verb}
why {nouns} {verb} | why that is so
best {thing} for {nouns} | which is best
meaning of the {noun} in {title} | that
{title} author | who wrote that
{famous} biography | anything about {famous}
symptoms of {feeling} | such things
cheap {things} in {place} | prices
I need information about {nouns}. | much about {nouns}
I want to learn about {subject}. | anything about {subject}
I have a question about {subject}. Why is it {adj}? | that
I don't understand why {nouns} {verb}. Can you explain it? | that
I read that {animals} can {verb}. Is that true? | whether that is true
I heard that {famous} was {aperson}. Is that right? | that
My teacher asked why {sub} is {adj}. What is the answer? | that
My friend says that {nouns} are {adj}. Is he right? | whether that is right
In which year did {famous} {verb}? | that
In which film does {fullname} play? | films
At what temperature does {sub} melt? | that temperature
By whom was {title} written? | who wrote that
For how long can {ananimal} {verb}? | that
From which country does {food} come? | where that comes from
To what extent do {nouns} {verb} {nouns2}? | that
With which {thing} can I {verb} {sub}? | that
Under which conditions does {sub} {verb}? | that
Of what is {anoun} made? | that
Since when do people {verb}? | that
Until when is the {noun} open? | opening times
Please tell me who {famous} was. | who {famous} was
Please explain the difference between {anoun} and {anoun2}. | the difference
Can you recommend {anoun}? | a good one
Can you compare {famous} with {fullname}? | that
Could you tell me how {anoun} is made? | how that is made
Would {ananimal} survive in {country}? | that
Would you say that {nouns} are {adj}? | that
Should {persons} be allowed to {verb}? | that
Are you able to say why {sub} is {adj}? | why that is so
Aren't {animals} {adj}? | whether {animals} are {adj}
Isn't the {noun} too {adj}? | that
Doesn't {sub} {verb} in {food}? | that
Don't {animals} eat {plants}? | what they eat
Has {country} ever won the {event}? | that
Have {animals} always been {adj}? | that
Had {famous} any children? | that
How about {nouns}? | much about {nouns}
How important is {anoun} for {anoun2}? | that
How common is {anoun} in {country}? | that
How dangerous is {ananimal}? | that
How did {persons} {verb} in {year}? | how that was done
How is {feeling} different from {feeling2}? | that
How is {anoun} different from {anoun2}? | the difference
How should {anoun} look? | that
How often should I {verb} my {thing}? | that
How was {place} in {year}? | that
"""
DO = """
Write a poem about {nouns}. | write poems
Write me a poem about the {object} | write poems
Write a song about {feeling}. | write songs
Write an essay about {subject}. | write essays
Write an essay on the {event} of {year} | write essays
Write a letter to my {person}. | write letters
Write an email to {name} about the {noun} | write emails
Write a Python program that can {verb} {nouns}. | write programs
Write code to sort {nouns} | write programs
Write a function in JavaScript for {nouns} | write programs
Write a haiku about {plants} | write poems
Write a speech for my {event} | write speeches
Translate "{noun}" into German. | translate
Translate this into Spanish: {sentence} | translate
How do you say "{sentence}" in Italian? | translate
Summarise {title}. | summarise books
Summarize the history of {place} in three sentences | do that
Give me a recipe for {food}. | give recipes
Recipe for {food} with {food2}? | give recipes
Plan a trip to {place} for me. | plan trips
Make a plan to {verb} {anoun} | make such plans
Draw {ananimal}. | draw
Draw me a picture of a {thing} | draw pictures
Show me a picture of {country} | show pictures
Play some music | play music
Play the song {title} | play music
Sing a song | sing
Open the {thing}. | open anything
Turn on the {thing} | switch anything on
Call {name}. | call anyone
Send a message to {name} | send messages
Order a {food} for me | order anything
Book a flight to {place} | book anything
Search the web for {nouns} | search the web
Google {nouns} for me | search the web
Remind me to {verb} tomorrow | remind you
Set an alarm for seven | set alarms
Fix my {thing}, please | fix things
Help me with my {subject} homework | help with {subject}
Help me write a {noun} about {nouns} | write that
Correct this sentence: {sentence} | correct texts
Rewrite this: {sentence} | rewrite texts
Is this sentence correct: {sentence} | judge grammar
Find a rhyme for {noun} | find rhymes
Solve the equation x + {num} = {adj} {noun} | solve that
Prove that {nouns} are {adj} | prove that
Integrate x squared | do calculus
Debug my program | debug programs
Invent a new {thing} | invent things
Predict who will win the {event} | predict the future
Tell me the future | see the future
Read my mind | read minds
Give me some money | give you money
Buy me {anoun} | buy things
Play chess with me | play chess
Let's play a game | play games
Pretend to be {aperson} | play roles
Act like {fullname} | play roles
Speak French | speak other languages
Give me {few} tips for {anoun}. | give tips
Give me ideas for {anoun} | give ideas
Give me a list of {adj} {nouns} | make that list
Give me a summary of {subject} | give summaries
Suggest a name for my {thing}. | suggest names
Recommend a good {noun} | recommend anything
Create a table of {nouns} and {nouns2} | make tables
Make a list of {nouns} for the {event} | make that list
Design a {thing} for {persons}. | design things
Describe {famous} in one sentence. | describe people
Write a sentence with the words {noun} and {noun2}. | do that
Write a dialogue between {aperson} and {ananimal} | write dialogues
Write a report about {landmark} | write reports
Write a short text about {famous}. | write about people
Write my homework about {subject} | write your homework
Write an SQL query that finds {nouns} | write programs
Write a regular expression for {nouns} | write programs
Fix this code: for {noun} in {nouns}: print({noun}) | fix programs
What does this code do: if {noun} > {num}: return {noun2} | read programs
def {noun}({noun2}): return {num} | read programs
Convert {num} miles to kilometres | convert units
How many kilometres are {num} miles? | convert units
Convert {num} degrees to Fahrenheit. | convert units
Sort these words: {noun}, {noun2}, {adj} | sort words
Turn this into a question: {sentence} | rewrite texts
Continue this text: {sentence} | continue texts
Make this shorter: {sentence} | rewrite texts
Classify this review as good or bad: {sentence} | classify texts
Which emotion does this show: {sentence} | read emotions
Look up {famous} for me | look things up
Find the nearest {thing} | find places
Find me a cheap flight to {place} | book anything
Teach me how to {verb}. | teach that
Teach me {subject} | teach that
Help me {verb} my {thing} | help with that
Help me decide between {anoun} and {anoun2} | decide that
Download {title} | download anything
Show me the news from {country} | show the news
Tell me what {name} is doing now | see other people
Take a photo of {anoun} | take photos
Answer in French: what is {anoun}? | speak other languages
Let's talk about {subject} | talk about that
Let's write a {noun} together | write that
Simulate {anoun} | simulate things
Imagine you are {aperson}. What would you {verb}? | play roles
Be my {person} | play roles
"""
ADVICE = """
Should I {verb} my {thing}? | 
Should I buy {anoun} or {anoun2}? | 
Should I marry {name}? | 
Should I become a {person}? | 
Should I learn {subject}? | 
Should I invest in {nouns}? | 
Is it healthy to {verb} every day? | 
Is it legal to {verb} {anoun}? | 
Can I sue my {person}? | 
My {body} hurts, what should I do? | 
I have a pain in my {body}. What is it? | 
Which medicine helps against {feeling}? | 
How can I lose weight? | 
How can I become rich? | 
How can I find a friend? | 
How can I sleep better? | 
How do I get rid of {animals}? | 
How should I tell {name} about the {noun}? | 
What should I give my {person} for a birthday? | 
How do I become a {adj} {person}? | 
Do I need a lawyer for {anoun}? | 
What is a good job for me? | 
My {thing} makes a {adj} noise, what can I do? | 
How much {food} should a child eat? | 
Is it safe to {verb} with {anoun}? | 
I want to {verb} more. Any advice? | 
I cannot decide between {anoun} and {anoun2}. | 
My {person} does not listen to me. What should I do? | 
My {animal} does not eat. What can I do? | 
My {thing} does not work any more. What is the reason? | 
What do I say to {aperson} who is {adj}? | 
How do I stop to {verb}? | 
What can I do against {feeling}? | 
How do I choose {anoun}? | 
Is {num} euros too much for {anoun}? | 
How do I prepare for the {event}? | 
When should I see a doctor about my {body}? | 
Can I take {sub} against {feeling}? | 
Where should I put my money? | 
"""
SUBJECTS = (
    "physics chemistry biology history economics philosophy astronomy geometry algebra music theory politics law "
    "medicine psychology geology religion grammar poetry photography cooking gardening chess football tennis "
    "democracy gravity evolution electricity magnetism photosynthesis inflation quantum-mechanics relativity "
    "mythology architecture sociology statistics genetics engineering"
).split()
