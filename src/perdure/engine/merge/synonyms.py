"""Words that say the same, as far as two short statements are concerned.

A line is a group. A word may be in several groups; groups do not add up.
"""

from collections import defaultdict

_GROUPS = """
like enjoy love fond fan
hate detest loathe
prefer favor favour
prefer like
favorite favourite
color colour
want wish desire
short brief concise succinct terse
long lengthy verbose
answer reply response respond
question query
use utilize utilise employ
begin start commence
start join
end finish conclude
end expire
finish complete
done complete finished
stop quit cease halt
make create produce
make prepare
build compile
build create write develop implement
change modify alter edit adjust update
changes modifications edits
fix repair resolve solve correct
fix patch
bug defect
issue ticket
error failure fault
fail failing
crash fail
delete remove erase
delete purge
show display
send submit deliver
get receive obtain
fetch retrieve get
buy purchase
big large
huge enormous
small little tiny
little bit
fast quick rapid
slow sluggish
important crucial essential vital
simple easy
hard difficult tough
happy glad pleased
sad unhappy
angry mad
ill sick
smart clever intelligent
kid child
mother mom mum
father dad
parent parents
grandmother grandma
grandfather grandpa
movie film
car automobile
bike bicycle
bicycle cycle bike
flat apartment
home live
live reside dwell
live base
move relocate
holiday vacation
trip journey
occupation profession
work employ
company firm employer
boss manager
manage manager management lead head
lead leader
lead head
coworker colleague
friend pal buddy
doctor physician
lawyer attorney
teach teacher
study student studies
medicine medical
collect collector collection
play player
cello cellist
piano pianist
violin violinist
guitar guitarist
write writer author
paint painter
sing singer
run runner jog
swim swimmer
cook chef
bake baker
volunteer volunteering
own owner
allergic allergy
vegetarian vegetarianism
born birthday birth
bear born
raise grow
raise grew
grow grew
doctorate phd
degree diploma
name call
meeting meet
discuss discussion talk
talk presentation
decide decision
decide agree
choose pick select choice
choose decide
agree agreement
approve approval
accept acceptance
reject refuse decline rejection
postpone delay defer
cancel cancellation
plan intend
release ship launch publish
deploy deployment rollout
migrate migration
install installation
configure configuration config
setting option
test testing
document documentation docs doc
guide manual
instruction directions
repository repo
directory folder
temp temporary
database db
environment env
variable var
application app
program app
admin administrator
info information
dev development
dev developer
developer programmer
prod production
spec specification
auth authentication
param parameter argument
function func method
lib library
dependency dependencies dep
package library
message msg
picture image photo
photo photograph
phone telephone
mobile cellphone
laptop notebook
tv television
email mail
email e-mail
password passphrase
store save keep
keep retain
hold store
contain include
have own
have possess
have hold
stay remain keep
switch move change migrate
load read
host run
run execute invoke
run operate
log logging
monitor watch observe
back backup
restore recover
restart reboot
cache caching
clean cleanup tidy
format formatting formatter
check verify validate
review reviewer
merge merging
commit committing
push pushing
branch branching
split divide separate
combine merge
support supporting
require need necessary mandatory requirement
limit cap restrict maximum capped
limit quota
about around approximately roughly circa approx
reach access
access connect
connect connection
depend rely dependent
near close nearby
far distant
next following upcoming
last take
previous former earlier
new recent
current present
often frequently
usually normally typically generally mostly
sometimes occasionally
rarely seldom
all every each
many numerous
several multiple
whole entire
only solely exclusively
also too
together jointly
daily everyday
yearly annual annually
morning mornings
evening evenings
weekend weekends
start beginning
because since
because due
if when whenever
while when during
until till
although though
however but
repeat restate
explain explanation
example instance sample
summarize summary summarise
suggest recommend propose suggestion recommendation proposal
advice recommendation
help assist assistance support
ask request
tell inform
say mention state
speak talk
know understand
remember recall
forget forgot
think believe
hope wish
worry concerned
try attempt
visit been
travel trip
travel travelling
go attend
walk stroll
hike hiking trek
climb climbing
ski skiing
gym workout
exercise workout
book novel
dinner supper
beverage drink
alcohol booze
smoke smoking cigarette
sugar sweetener
street st
road rd
avenue ave
centre center
theatre theater
city town
country nation
office workplace
remote remotely
freelance freelancer
fulltime full-time
parttime part-time
engineer engineering
design designer
illustrate illustrator
team squad
client customer
colleague teammate
price cost
pay payment
invoice bill
cheap inexpensive
expensive costly pricey
free gratis
salary wage pay
available accessible
enable activate
disable deactivate
hidden invisible
visible shown
correct right
wrong incorrect
valid legal
safe secure
security secure
broken faulty
stuck blocked
empty blank
full complete
strict rigorous
style fashion
layout structure
monorepo mono-repo
readonly read-only
frontend front-end
backend back-end
timezone time-zone
keybinding key-binding keyboard-shortcut shortcut
meetup meet-up
website webpage
webpage page
web internet
online internet
computer pc
locate situated
locate found
hosted located
connect link
link url
address url
handle process
process procedure
convert transform
translate translation
improve improvement enhance
increase raise grow
decrease reduce lower
add append
insert add
attach attachment
close closing
close shut
lock locking
organize organise organizer organiser
analyze analyse analysis
optimize optimise optimization
normalize normalise
initialize initialise
serialize serialise
license licence
behavior behaviour
dialog dialogue
catalog catalogue
gray grey
program programme
practice practise
defense defence
math maths mathematics
aluminum aluminium
traveling travelling
canceled cancelled
emoji emoticon smiley
comment remark
note memo
notification alert
alert warning
remind reminder
task todo
todo to-do
deadline due
due deadline
schedule timetable
schedule plan
scheduled set
happen occur
place location
area region
part portion
kind type sort
way manner
thing item
problem issue
problem trouble
cause reason
result outcome
goal aim objective
idea concept
feature functionality
tool utility
service microservice
renovate renovation remodel
escalate escalation
rotate rotation
introduce introduction
interested interest
hobby pastime
fluent fluently
native mother-tongue
marry married marriage
marry wife
marry husband
divorce divorced
pregnant expecting
dead deceased
alive living
retire retired retirement
unemployed jobless
hire recruit
fire dismiss
promote promotion
graduate graduation
attend participate
participate take-part
win victory
lose loss
found establish
surname lastname
alone solo
skip omit
wait pause
total sum
annoy annoying irritate
maintain maintainer maintenance
sign signature
weekday workday
team crew
start kickoff
shared common
quiet silent
noisy loud
tired exhausted
correct accurate
precise exact
exactly precisely
almost nearly
enough sufficient
maybe perhaps possibly
probably likely
reliable dependable
polite courteous
rude impolite
informal casual
formal official
beginner novice
expert specialist
teacher instructor
supermarket grocery
pub bar
jog jogging
cycling cycle
sport sports
garden yard
basement cellar
autumn fall
lorry truck
petrol gasoline
trousers pants
rubbish garbage trash
surgery operation
flu influenza
illness disease sickness
pain ache
diet nutrition
diabetic diabetes
asthma asthmatic
vegan veganism
""".strip().splitlines()


def _by_word() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for number, line in enumerate(_GROUPS):
        for word in line.split():
            found[word].add(f"~{number}")
    return {word: frozenset(groups) for word, groups in found.items()}


SYNONYMS = _by_word()
"""The groups that a word is in."""
