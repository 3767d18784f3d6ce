"""What people write in English: for every topic its nouns, adjectives, emoji and sentences.

A sentence has slots in braces: `{n}` a noun and `{a}` an adjective of the topic, `{district}` the part of town the post
comes from, `{place}` a word of the city (a street, a shop, a square), `{city}`, `{name}` a person, band or brand known
everywhere, `{num}` a number, `{time}` an hour; in events also `{event}`, the event's own tag, and `{star}`, its name.
Lists are in order of use: the first word is the most frequent.
"""

# Data, laid out to be read and added to.
# ruff: noqa: E501
# fmt: off

from dataclasses import dataclass


@dataclass(frozen=True)
class Topic:
    name: str
    share: float  # of all posts, relative; 0 for an event, which comes in bursts only
    price: float  # median of the price attribute, 0 where posts of the topic have none
    emoji: str
    nouns: str  # separated by commas
    adjectives: str
    sentences: str  # one a line


OPENERS = """ok so ;just saw this: ;right, ;honestly, ;good morning! ;heads up: ;lol ;update: ;so ;wow, ;anyone else? ;well ;\
not again... ;hey {city}, ;today in {city}: ;psa: ;{district} people, ;finally: ;I swear, ;reminder: ;question: ;hello {name}, ;\
breaking: ;no joke, ;true story: """

CLOSERS = """ again; right now; today; in {city};, thanks {name}; near {place}; this morning; tonight; and I love it;\
, what a day;. who is in?;. see you there; as always;, really;. never change, {city}; for the {num}th time;, so yes;\
. ask {name}; until {time}; since {time}; with {name} and {name}; between {place} and {place};, said nobody ever;\
 over in {district}; and that is that;. more at {time}; before the weekend;, come on {city};. help please"""

ADJECTIVES = """good, new, great, little, old, big, best, free, real, bad, nice, full, late, huge, crazy, cheap, quiet, strange, \
lovely, amazing, terrible, perfect, famous, local, beautiful, weird, busy, tiny, broken, lucky, proud, awful, honest, \
gorgeous, noisy, secret, fancy, random, massive, brilliant, boring, hidden, wild, tired, golden, ugly, rare, decent, epic, \
dreadful, charming, pointless, legendary, cosy, modest, shabby, splendid, grim, peculiar, mellow"""

TOPICS: tuple[Topic, ...] = (
    Topic("chat", 15, 0, "😂 ❤ 🙏 😭 ✨ 😅",
        "day, time, people, life, friend, night, thing, world, week, love, home, year, man, morning, house, mind, heart, "
        "birthday, family, weekend, story, mood, dream, baby, mother, idea, smile, photo, garden, neighbour, brother, sister, "
        "sunset, secret, laugh, joke, holiday, memory, window, letter, kitchen, grandma, balcony, gossip, nap, wedding, twin",
        "happy, sad, tired, funny, true, ready, wrong, alone, grateful, sleepy, awake, jealous, silly, homesick, nostalgic",
        """the {n} is {a} and so am I
I think {name} is the {a} one in this {n}
happy birthday {name}, you {a} {n}
can we talk about the {n} of {name}
my {n} is so {a} that I went for a walk in {district}
what a {a} {n} with {name} and {name}
is it just me or is {district} {a} these days
{name} told me about a {a} {n} at {place}
I miss the {n} we had in {place}
all I want is a {a} {n} and no more mondays
somebody tell {name} that the {n} is over
you know it is a {a} {n} when {name} calls at {time}"""),
    Topic("food", 9, 14, "🍜 🍕 🌮 😋",
        "lunch, dinner, pizza, food, burger, restaurant, kitchen, breakfast, chicken, salad, sushi, soup, ramen, tacos, menu, "
        "rice, cheese, noodles, steak, sandwich, bread, pasta, cake, chef, sauce, brunch, fries, dumplings, curry, bakery, "
        "dessert, spices, barbecue, pancakes, lobster, mango, avocado, croissant, buffet, kebab, leftovers, oysters, falafel",
        "hungry, delicious, spicy, fresh, crispy, tasty, sweet, vegan, greasy, sour, salty, burnt, homemade, juicy, smoky",
        """the {a} {n} at {place} is worth the queue
best {n} in {district}, ask for {name}
{n} for {num} at {place}, then {n} at home
we tried the {a} {n} from {name} and I have no regrets
discount on {n} at {place} until {time}
does {place} in {district} still have the {a} {n}
who wants {n} and {n} tonight
cooking {a} {n} with {name}, pray for the {n}
new place for {n} opened near {place}
I would walk to {city} for this {n}"""),
    Topic("coffee", 5, 4.2, "☕ 🥐 🫖",
        "coffee, espresso, cafe, latte, flat white, cappuccino, barista, tea, beans, oat milk, cup, croissant, matcha, mocha, "
        "cold brew, roaster, filter coffee, muffin, foam, cortado, americano, grinder, decaf, teapot, chai, scone, sugar",
        "open, strong, hot, fresh, bitter, iced, small, warm, smooth, overpriced, nutty, foamy",
        """the {a} {n} at {place} saved my morning
is any {n} place open in {district} at {time}
open coffee at {place}, come and say hi to {name}
{n} number {num} and it is only {time}
the barista at {place} knows my {n} by heart
{n} and {n} in {district}, what more do I need
two for one {n} at {place} with the word {name}
this {a} {n} tastes like {city} in spring"""),
    Topic("traffic", 7, 0, "🚗 🚦 😤",
        "traffic, road, bus, car, accident, bridge, jam, train, tunnel, lane, parking, highway, lights, crash, delay, truck, "
        "bike, detour, taxi, roadworks, roundabout, driver, exit, pothole, ferry, tram, police, scooter, toll, speed camera, "
        "van, crossing, motorbike, breakdown, convoy, shoulder, flyover, trailer, junction, speeding, flat tyre, tailback",
        "slow, stuck, closed, blocked, heavy, packed, wet, empty, dangerous, cancelled, diverted, jammed, impatient",
        """stuck in traffic at {place} for {num} minutes
road closed near {place}, take the {n} instead
{a} {n} on {place} towards {district}
two cars and a {n} in an accident at {place}, lane closed
no {n} moving between {place} and {district}
the {n} to {city} is {a}, leave before {time}
why is there always {a} traffic on {place}
{n} on the {n} again, thank you {name}
the bus from {district} is {num} minutes late"""),
    Topic("weather", 7, 0, "🌧 ☀ 🌪 ❄",
        "rain, sun, snow, wind, storm, sky, heat, weather, clouds, cold, summer, winter, thunder, umbrella, forecast, fog, "
        "lightning, degrees, hail, breeze, spring, ice, autumn, rainbow, drizzle, heatwave, humidity, frost, moon, gust, "
        "sunrise, blizzard, typhoon, puddle, mist, drought, monsoon, thermometer, icicle, sleet, downpour, barometer",
        "sunny, cold, hot, grey, windy, wet, warm, dark, freezing, cloudy, dry, mild, stormy, foggy, sticky, icy",
        """{a} {n} over {district} this morning
it is {num} degrees in {city} and I am not made for this
the {n} came back just when I left {place}
{n} and {n} all week, says {name}
look at that {n} over {place}
when does the {n} stop in {district}
weather in {city}: {a} with a bit of {n}
forgot my umbrella at {place}, of course {n}
the {a} {n} took half the roof of {place}"""),
    Topic("sports", 7, 35, "⚽ 🏀 🏆 🎾",
        "game, match, team, goal, season, football, player, coach, ball, league, final, fans, win, stadium, derby, referee, "
        "cup, training, basketball, penalty, tennis, score, striker, captain, marathon, tickets, defence, race, keeper, "
        "champion, rugby, cricket, boxing, swimming, medal, overtime, transfer, trophy, volleyball, hockey, hat trick, surf",
        "great, offside, unbeaten, injured, brave, lazy, fast, solid, unlucky, clinical, sloppy, historic, underrated",
        """what a {n} by {name}, {num} nil at half time
{name} is the best {n} of the {n}
the {n} lost again and the {n} is {a}
watching the {n} at {place} with {name}
selling two tickets for the {n} against {name}
{a} {n} from {name} in the last minute
running {num} km around {place} before the {n}
{city} deserves a {a} {n}
who else thinks the {n} was {a}"""),
    Topic("music", 6, 28, "🎶 🎸 🎤",
        "song, music, album, band, show, dance, party, voice, radio, concert, guitar, club, singer, stage, tour, festival, "
        "playlist, beat, piano, vinyl, jazz, tickets, lyrics, drums, choir, rap, video, remix, opera, bass, karaoke, punk, "
        "dj, chorus, violin, techno, encore, ballad, trumpet, busker, saxophone, orchestra, samba, headphones, acoustic",
        "live, loud, new, sold out, soft, catchy, raw, acoustic, tender, haunting, groovy, electric, hypnotic",
        """the new {n} of {name} is so {a}
{name} live at {place} tonight, doors at {time}
listening to {name} in {district} with the windows open
that {a} {n} at {place}, I cried twice
playing {n} at {place}, bring {name}
two tickets for {name} in {city}, face value
nobody sings like {name}, what a {n}
the {n} by {name} has been in my head since {time}
{n} and {n} in {place} all night"""),
    Topic("news", 5, 0, "📰 🗳 🤔",
        "news, city, mayor, police, government, vote, election, minister, court, protest, law, budget, party, president, tax, "
        "money, strike, school, council, report, war, border, union, hospital, campaign, price, trial, debate, bank, plan, "
        "scandal, petition, march, judge, parliament, speech, poll, reform, corruption, treaty, lawyer, inquiry, referendum",
        "public, political, official, angry, illegal, national, corrupt, secret, free, urgent, rigged, peaceful, unfair",
        """the mayor of {city} and {name} on the {a} {n}
{num} thousand at the {n} in {district} today
{name} says the {n} will be {a}, I have doubts
protest at {place} from {time}, bring water
why does nobody write about the {n} in {district}
the {n} against {name} starts at {time}
new {n} for {city}: less {n}, more {n}
police at {place}, something about a {n}"""),
    Topic("jobs", 4, 0, "💼 📈 🙌",
        "job, work, hiring, team, office, boss, interview, salary, career, manager, engineer, shift, nurse, driver, chef, "
        "developer, teacher, contract, internship, application, resume, startup, meeting, experience, waiter, warehouse, "
        "remote, assistant, training, electrician, accountant, deadline, cleaner, designer, promotion, plumber, carpenter",
        "hiring, full time, remote, part time, paid, urgent, junior, senior, temporary, skilled, friendly, qualified",
        """we are hiring a {a} {n} in {district}
{name} is looking for a {n}, start on monday
my {n} interview at {name} went well, fingers crossed
{a} {n} wanted at {place}, call before {time}
is {name} a good place to work in {city}
{num} applications and one {a} {n}
night shift at {place}, the {n} never ends
quit my {n} at {name} today and I feel {a}"""),
    Topic("shopping", 4, 24, "🛍 💸 👟",
        "sale, shop, deal, store, price, shoes, dress, market, phone, bag, offer, discount, bike, jacket, book, size, watch, "
        "coupon, sofa, laptop, table, jeans, delivery, toys, mall, jewellery, lamp, camera, sneakers, plants, hat, mattress, "
        "perfume, ring, bookshop, auction, receipt, vintage coat, bargain, sunglasses, bookshelf, blender, carpet, mirror",
        "cheap, half price, new, used, sold out, expensive, original, vintage, mint, leather, wooden, limited, fake",
        """sale at {place}: {a} {n} and {n}
selling my {a} {n}, pick up in {district}
{num} percent off every {n} with the code {name}
where in {city} can I find a {a} {n}
got this {n} at {place} and {name} is jealous
the {n} from {name} fell apart after {num} days
market at {place} until {time}, mostly {n}
looking for a {a} {n}, pay cash, {district} only"""),
    Topic("tech", 4, 60, "💻 🤖 📱",
        "phone, app, internet, update, code, wifi, battery, laptop, data, screen, server, website, game, robot, account, "
        "camera, password, cloud, software, keyboard, network, bug, charger, email, startup, printer, drone, chip, browser, "
        "router, algorithm, satellite, database, firmware, podcast, spam, scooter, sensor, headset, plugin, backup, hacker",
        "slow, smart, new, broken, wireless, offline, fast, online, hacked, useless, encrypted, outdated, shiny",
        """the new {n} from {name} is {a}
wifi at {place} is {a}, use the one of {name}
who broke the {n} of {name} today
my {n} died at {time}, any repair shop in {district}
talk about {n} and {n} at {place}, free entry
{name} {num} is just a {a} {n}
no signal in {district}, is the {n} down
built a {a} {n} for {city} in one night"""),
    Topic("transit", 3, 3, "🚇 🚌 🚲",
        "train, subway, bus, station, metro, platform, ticket, line, tram, delay, airport, seat, door, rush hour, ferry, "
        "escalator, timetable, inspector, carriage, stop, terminal, conductor, signal failure, depot, turnstile, night bus",
        "late, cancelled, packed, stopped, delayed, empty, stuck, crowded, replacement, overcrowded",
        """the {n} at {place} is {a}, {num} minutes
subway stopped between {place} and {place}
{a} {n} to {district}, everybody out
no {n} from {city} until {time}
lost my bag on the {n} to {place}
shout out to the driver of the {n} to {district}
{name} on platform {num}, I am not joking"""),
    Topic("health", 3, 0, "🏥 💪 😷",
        "doctor, hospital, health, sleep, gym, yoga, body, pain, flu, clinic, vaccine, dentist, stress, fever, diet, nurse, "
        "therapy, headache, run, allergy, surgery, blood, pollen, knee, ambulance, weight, cough, surgeon, vitamins, asthma",
        "sick, healthy, tired, fit, sore, painful, safe, mental, chronic, dizzy, sober, feverish",
        """the doctor at {place} says it is just {n}
{num} hours in the {n}, still {a}
yoga at {place} at {time}, all levels
does anyone know a good {n} in {district}
my {n} is {a}, thanks to {name}
blood donors needed at {place}, {city}
new {n} in {district}, first visit free"""),
    Topic("school", 3, 0, "📚 🎓 ✏",
        "school, class, exam, teacher, students, book, homework, university, library, lesson, study, math, kids, campus, essay, "
        "lecture, professor, degree, history, notes, science, thesis, test, college, teachers, pencil, physics, classroom",
        "hard, easy, final, boring, late, smart, free, strict, cheating, curious, gifted, sleepless",
        """{n} tomorrow and I am {a}, help
the library at {place} is full at {time}
professor {name} gave us {num} pages of {n}
first day of {n} in {city}
who takes {n} with {name} this year
{a} {n} class at {place}, places left
school in {district} closed because of {n}"""),
    Topic("housing", 3, 950, "🏠 🔑 📦",
        "room, flat, rent, apartment, house, landlord, kitchen, street, neighbours, garden, view, deposit, lease, balcony, "
        "floor, bathroom, roof, key, lift, mortgage, heating, flatmate, stairs, boiler, garage, estate agent, attic, mould",
        "quiet, bright, furnished, tiny, cheap, central, cosy, damp, spacious, noisy, renovated, overpriced",
        """{a} {n} for rent near {place}
looking for a {n} in {district}, I am {a} and clean
the {n} above us plays {name} at {time}
rent in {district} is up {num} percent
viewing a {a} {n} at {place}, with {num} others
moving from {district} to {place}, who has a van
no heating in {place} since {time}"""),
    Topic("travel", 3, 180, "✈ 🏖 🗺",
        "beach, trip, flight, hotel, airport, holiday, sea, island, mountain, view, passport, museum, suitcase, hostel, lake, "
        "tour, river, visa, sunset, temple, castle, harbour, map, forest, luggage, waterfall, village, volcano, souvenir, desert",
        "beautiful, lost, cheap, sunny, crowded, lonely, magic, remote, ancient, unforgettable, jetlagged, turquoise",
        """{a} {n} near {place}, go before {name} does
{num} days in {city} and not one {a} {n}
my flight to {city} leaves at {time}
the {n} in {district} is {a} at {time}
lost my {n} in {place}, reward
from {city} to {name} by train, what a {n}
which {n} should I see in {district}"""),
    Topic("pets", 2, 0, "🐶 🐱 🦜",
        "dog, cat, puppy, kitten, pet, bird, walk, vet, park, parrot, fish, tail, shelter, horse, rabbit, leash, hamster, paw, "
        "owner, collar, turtle, beagle, whiskers, pigeon, hedgehog, poodle, aquarium, goldfish, tabby, squirrel, ferret",
        "lost, cute, good, old, black, white, small, fluffy, rescued, ginger, spotted, grumpy, blind",
        """lost {n} near {place}, answers to {name}
this {a} {n} followed me from {place}
found a {a} {n} in {district}, please share
{name} the {n} is the {a} king of {place}
any vet open in {district} at {time}
adopt this {a} {n}, shelter at {place}"""),
    Topic("pharmacy", 1.5, 9, "💊 🏥",
        "pharmacy, medicine, pills, prescription, drugstore, masks, aspirin, queue, test, insulin, pharmacist, ointment, "
        "syrup, vitamins, bandage, antibiotics, inhaler, thermometer, sunscreen, eye drops",
        "open, closed, night, cheap, free, expired, generic, allergic",
        """which pharmacy is open in {district} at {time}
pharmacy at {place} has {n} again
no {n} in any {n} of {city}
night pharmacy near {place}, thanks {name}
{num} people in the queue for {n} at {place}
free {n} at the pharmacy in {place} today"""),
    Topic("power", 1.5, 0, "🔦 💡 ⚡",
        "power, electricity, lights, power outage, grid, candles, fridge, blackout, transformer, line, lift, cable, "
        "generator, crew, meter, voltage, substation, fuse, switchboard, flashlight",
        "dark, out, down, back, dead, flickering, planned, repaired",
        """power outage in {district} since {time}
no electricity at {place}, whole street {a}
lights {a} again around {place}, the {n} again
power is back in {district}, thank you crew
the transformer at {place} went bang at {time}
{num} hours without {n}, everything in the fridge is gone
planned outage at {place} until {time}"""),
    Topic("fire", 1.2, 0, "🔥 🚒 🧯",
        "fire, smoke, fire brigade, sirens, flames, building, roof, ambulance, alarm, warehouse, firefighters, helicopter, "
        "hydrant, ashes, wildfire, evacuation, garage, extinguisher, embers, arson",
        "burning, black, big, small, out, toxic, contained, smouldering",
        """fire at {place}, {a} smoke over {district}
{num} fire engines at {place}, avoid the area
smell of smoke in {district}, does anybody know more
fire drill at {place} at {time}, no reason to worry
building on fire near {place}, people on the roof
fire brigade says the {n} in {district} is {a}
sirens for {num} minutes, something with {n} at {place}"""),
    Topic("water", 1.2, 0, "🌊 ☔ 🚱",
        "flood, water, rain, river, basement, tunnel, subway, street, pipe, sandbags, pump, sewer, underpass, mud, boat, "
        "leak, dam, canal, drain, hydrant, tide, puddles",
        "flooded, wet, brown, burst, dirty, rising, muddy, knee deep",
        """flood warning for {place}, river is {a}
subway tunnel at {place} flooded, no trains to {district}
flood drill in {district} at {time}, just a test
water in the basement at {place}, {num} cm
burst pipe at {place}, street {a}
flash flood on the road to {district}, turn back
the {n} at {place} is {a} since {time}"""),
    Topic("art", 2, 16, "🎨 🎬 🎭",
        "film, museum, movie, art, book, gallery, theatre, picture, poem, photo, cinema, exhibition, painting, artist, novel, "
        "play, comic, mural, sculpture, author, poetry, sketch, premiere, trailer, ceramics, script, portrait, watercolour",
        "new, dark, modern, free, abstract, short, classic, boring, surreal, delicate, unfinished, minimal",
        """{a} {n} of {name} at {place}
opening at {place} at {time}, {name} will be there
the {n} by {name} is {a}, go and see it
{num} minutes into the {n} and I want to leave
reading {name} in a park in {district}
street {n} at {place}, does anyone know the artist
tickets for {name} at {place}, last row"""),
)

EVENTS: tuple[Topic, ...] = (
    Topic("earthquake", 0, 0, "🙏 😱 🆘",
        "earthquake, tremor, aftershock, shaking, magnitude, walls, epicenter, building, cracks, quake, rubble, seconds, "
        "chandelier, evacuation, stairs, windows, rescue, dust, collapse, seismograph",
        "strong, scary, long, violent, safe, shaking, damaged, huge",
        """earthquake in {city}!! everything is shaking
did anyone feel that earthquake in {district}?
{a} earthquake, {num} seconds, we are in the street at {place}
aftershock right now in {district}, stay outside
{n} and {n} at {place}, is everybody ok
cracks in the walls at {place}, people {a} but out
they say magnitude {num}, epicenter near {city}
no phone signal after the earthquake, tell {name} I am safe"""),
    Topic("flood", 0, 0, "🌊 🆘 ☔",
        "flood, water, river, rescue, boats, bridge, evacuation, roofs, dam, subway, cars, basement, sandbags, tunnel, "
        "flash flood, torrent, shelter, helicopter, levee",
        "rising, trapped, flooded, brown, fast, dangerous, chest high, swept away",
        """flash flood in {district}, water is {a}
flood at {place}, cars swept away, stay upstairs
the river broke through at {place}, {n} under water
people {a} on roofs near {place}, send boats
flood in {city}: {n} closed, {n} flooded
evacuation of {district} since {time}, shelter at {place}
{num} cm of water at {place} and still rising"""),
    Topic("concert", 0, 45, "🎤 🎆 😭",
        "concert, stage, encore, setlist, crowd, band, tickets, front row, fans, stadium, confetti, chorus, fireworks, "
        "soundcheck, merch, queue, spotlight, guitar solo",
        "loud, live, unreal, sold out, sweaty, magic, emotional",
        """{star} live in {city}, the crowd is {a}
{star} just opened with the old one, I am crying
front row at {star}, {place} is shaking
that {n} by {star}, so {a}
{star} fans all over {district} tonight
{num} thousand people and one {star}
encore!! {star} please never leave {city}"""),
)
