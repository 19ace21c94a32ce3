package recall

import (
	"slices"
	"strings"
	"sync"
)

// related returns the terms that are related to a term: who asks for a job
// may be answered with a career. They count little beside the word itself.
var related = sync.OnceValue(func() map[string][]string {
	m := map[string][]string{}
	add := func(a, b string) {
		a, b = term(a), term(b)
		if a != b && !slices.Contains(m[a], b) {
			m[a] = append(m[a], b)
		}
	}
	for line := range strings.Lines(relatedWords) {
		if word, kinds, ok := strings.Cut(line, ":"); ok {
			for _, k := range strings.Fields(kinds) {
				add(word, k)
			}
			continue
		}
		group := strings.Fields(line)
		for _, a := range group {
			for _, b := range group {
				add(a, b)
			}
		}
	}
	return m
})

// relatedWords are groups of words that are said for one another, one in each
// line, and words with a colon behind them and what is of their kind. They
// are everyday English.
const relatedWords = `job career work occupation profession employment position
boss manager supervisor employer
colleague coworker teammate
company firm business startup
salary wage income earnings pay
money cash funds finances
buy purchase order
sell sale
price cost expensive cheap afford
budget spending savings money
rent lease landlord
debt loan borrow
begin start launch open
finish complete conclude end
quit resign leave
layoff dismiss fired
hire recruit employ
try attempt
plan intend goal aim
goal target aim ambition
want wish desire hope
require need
help support assist aid
teach instruct train coach tutor mentor
learn study practice
student pupil
teacher instructor professor tutor
school college university
class course lesson workshop seminar training
degree diploma graduate graduation
exam test quiz
research study investigate
home house apartment flat condo
move relocate
live reside stay
room bedroom kitchen bathroom
garden yard gardening plant flower
furniture couch sofa table chair bed
car vehicle truck van
vehicle: car truck bus van motorcycle bike
bike cycling
road street highway
trip travel journey vacation holiday tour getaway
visit travel trip
flight plane airport
hotel resort
beach ocean sea coast surf
mountain hill climb summit peak
hike trail walk trek
camp tent campfire
forest wood nature outdoors
lake river water
city town
country nation abroad overseas
location place spot area
restaurant cafe diner eat
food meal dish cuisine
cook bake recipe
dinner supper meal
lunch meal
breakfast brunch meal
drink beverage
drink: coffee tea beer wine juice
dessert: cake cookie pie chocolate pastry tart brownie pudding sweet
fruit: apple banana berry orange strawberry
vegetable: carrot tomato potato salad
animal: dog cat bird horse fish rabbit turtle
pet: dog cat puppy kitten hamster rabbit turtle parrot
dog puppy
cat kitten
adopt rescue shelter
family: mother father brother sister son daughter parent wife husband
sibling: brother sister
parent: mother father
relative: aunt uncle cousin grandmother grandfather niece nephew
spouse: husband wife
partner: husband wife girlfriend boyfriend spouse
child son daughter baby toddler
baby newborn infant pregnant birth
friend buddy pal friendship
marry wedding engaged
wedding ceremony bride
divorce separate breakup
date dating romantic relationship
birthday party celebrate
party celebrate celebration
gift present
death loss funeral
illness sick disease ill unwell
symptom: pain fever cough headache
doctor hospital clinic
hospital surgery clinic
injury hurt pain sprain
accident crash collision
healthy fitness health
medicine medication drug pill
exercise workout gym fitness
diet weight nutrition
sport: basketball football soccer tennis baseball hockey golf volleyball swim ski
game match play
tournament competition contest championship
compete contest tournament
win victory champion prize
award prize trophy medal
team club squad
run marathon race jog
dance ballet dancer
music song band concert album tune
instrument: guitar piano violin drum flute cello saxophone trumpet
concert gig show festival
sing singer vocal
musician: singer guitarist pianist drummer band
art painting drawing sculpture artist
artist painter
draw sketch
photo image camera
write author
author writer
book novel story
story tale
poem poetry poet
movie cinema
show series episode
actor actress
script screenplay
hobby interest pastime passion
hobby: paint read cook garden hike collect knit dance fish
activity: hike swim paint dance yoga camp run game
favorite love prefer
love enjoy adore
like enjoy love
enjoy fun
hate dislike
happy glad excited joy thrilled
sad upset unhappy
angry mad furious
afraid scared fear
nervous anxious worried
stress pressure overwhelmed
relax calm unwind peaceful
tired exhausted
proud accomplishment
feeling: happy sad angry nervous excited proud
achievement accomplishment milestone success
fail failure setback
problem issue trouble difficulty
challenge obstacle difficulty hurdle struggle
difficult hard tough challenging
easy simple
important significant
idea thought
opinion think believe
decide choose
choose pick select
improve better enhance
create make build design
fix repair
break damage
find discover
join participate member
participate attend join
event: festival concert party conference fair show
meeting conference call
volunteer charity donate
charity nonprofit donate fundraiser
donate give charity
organize arrange host
community local neighborhood
religion church faith
politics election vote campaign
law legal lawyer court
police officer
military army veteran soldier
computer laptop
phone mobile
internet online web
website site blog
software program app
technology tech gadget device
bug error issue defect
crash error fail
deploy release ship
install setup
configuration setting option
password credential secret login
delete remove drop
update upgrade
file document
folder directory
database table schema
server host machine
test check verify
weather rain snow storm sunny
store shop
clothes clothing outfit shirt dress
jewelry necklace ring bracelet
color: red blue green yellow purple pink black white
season: spring summer autumn winter
advice tip suggestion recommend
suggest recommend
talk chat speak discuss conversation
mention say tell
remember recall memory
recent lately new
old age
young younger
symbol represent mean
inspire motivate inspiration
encourage support motivate
opportunity chance
skill talent ability
dream aspiration goal
nickname name call
collect collection
decorate decoration
argue fight
apologize sorry
recover heal
cope deal handle
language speak
address street live
nationality country origin`
