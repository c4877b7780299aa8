"""Turns of phrase, each with the words that stand for it.

Words with a tilde are said by nobody: `~not`, `~never` and `~ceased` negate what follows, `~than`,
`~atleast`, `~atmost`, `~was` and `~will` are terms of their own.
"""

from collections import defaultdict
from collections.abc import Sequence

from perdure.engine.merge.tokens import Kind, Token

_TURNS = """
no longer = ~ceased
not any more = ~ceased
any more = ~anymore
anymore = ~anymore
any longer = ~anymore
not yet = ~notyet
not ever = ~never
do not ever = ~never
gave up = ~ceased
given up = ~ceased
gives up = ~ceased
can not stand = hate
can not bear = hate
not a fan of = ~not like
a big fan of = love
big fan of = love
a fan of = love
fan of = love
keen on = like
fond of = like
have a preference for = prefer
has a preference for = prefer
has a passion for = passionate about
have a passion for = passionate about
want you to = ~bid
wants you to = ~bid
would like you to = ~bid
suffers from = has
suffer from = have
consists of = has
consist of = have
is made up of = has
comprises = has
is into = like
would rather = prefer
'd rather = prefer
would like = want
would love = want
would prefer = prefer
likes better = prefer
like better = prefer
likes more = prefer
like more = prefer
is interested in = interested in
has an interest in = interested in
have an interest in = interested in
rather than = ~than
instead of = ~than
in place of = ~than
over = ~than
than = ~than
better than = better ~than
more than = more ~than
in order to = to
so as to = to
in case = if
as soon as = when
as long as = if
as well as = and
and also = and
along with = and
together with = with
due to = because
because of = because
owing to = because
thanks to = because
prior to = before
ahead of = before
subsequent to = after
at least = ~atleast
a minimum of = ~atleast
no less than = ~atleast
no fewer than = ~atleast
or more = ~atleast
at most = ~atmost
up to = ~atmost
a maximum of = ~atmost
no more than = ~atmost
not more than = ~atmost
capped at = limited ~cap
limited to = limited ~cap
used to = ~was
formerly = ~was
previously = ~was
in the past = ~was
going to = ~will
will = ~will
shall = ~will
about to = ~will
has to = must
have to = must
had to = must
need to = must
needs to = must
is required to = must
are required to = must
ought to = should
is supposed to = should
are supposed to = should
able to = can
is allowed to = can
are allowed to = can
every day = daily
each day = daily
everyday = daily
per day = daily
a day = daily
day to day = daily
every week = weekly
each week = weekly
per week = weekly
a week = weekly
every month = monthly
each month = monthly
per month = monthly
a month = monthly
every year = yearly
each year = yearly
per year = yearly
a year = yearly
every hour = hourly
each hour = hourly
per hour = hourly
an hour = hourly
every night = nightly
each night = nightly
per night = nightly
every minute = minutely
each minute = minutely
per minute = minutely
a minute = minutely
every second = secondly
per second = secondly
a second = secondly
every time = always
at all times = always
all the time = always
most of the time = usually
from time to time = sometimes
now and then = sometimes
once in a while = sometimes
hardly ever = rarely
almost never = rarely
a lot of = many
lots of = many
plenty of = many
a number of = several
a couple of = several
a few = several
a bit of = little
a little = little
in favor of = for
on top of = on
next to = beside
close to = near
in front of = before
out of date = outdated
out of = from
pushed back = postponed
push back = postpone
put off = postpone
takes place = ~be
take place = ~be
taking place = ~be
is held = ~be
settled on = chose
settle on = choose
decided on = chose
decided for = chose
opted for = chose
opts for = chooses
opt for = choose
going with = chose
go with = choose
went with = chose
made a decision = decided
made the decision = decided
last name = surname
family name = surname
first name = givenname
given name = givenname
on their own = alone
on his own = alone
on her own = alone
on my own = alone
by themselves = alone
by himself = alone
by herself = alone
trying again = retry
tried again = retry
a night = nightly
an evening = evening
works on = work on
takes care of = lead
take care of = lead
looks after = lead
is able to = can
are able to = can
as of = from
as from = from
each and every = every
up to date = current
by hand = manually
in addition = also
with the help of = with
by means of = with
by using = with
on a daily basis = daily
on a weekly basis = weekly
on a monthly basis = monthly
at the moment = now
right now = now
at present = now
these days = now
for now = now
at night = nightly
in total = total
is unable to = can not
are unable to = can not
is afraid of = fear
is in love with = love
allergic reaction to = allergic to
passed away = died
been to = visited
get rid of = remove
gets rid of = remove
throw away = discard
turn on = enable
turned on = enabled
turns on = enables
switch on = enable
switched on = enabled
turn off = disable
turned off = disabled
turns off = disables
switch off = disable
switched off = disabled
take part in = attend
takes part in = attends
talk about = discuss
talks about = discusses
talked about = discussed
come from = ~be from
comes from = ~be from
originally from = from
stay away from = avoid
kept up = maintained
in charge of = lead
responsible for = lead
is located in = ~at in
is situated in = ~at in
are located in = ~at in
is located at = ~at at
is based in = live in
are based in = live in
's home is in = live in
home is in = live in
's name is = name
's called = name
is called = is name
are called = is name
is named = is name
goes by = name
being called = name
be called = name
gets called = name
works as = ~be
work as = ~be
working as = ~be
works for = works at
work for = work at
employed by = work at
employed at = work at
grew up = raised
brought up = raised
was born = birthday
is due = deadline
carry out = do
set up = setup
back up = backup
backing up = backup
make a backup of = backup
makes a backup of = backup
take a backup of = backup
try again = retry
tries again = retry
clean up = cleanup
look for = search
find out = discover
figure out = discover
make sure = ensure
time zone = timezone
data base = database
key binding = keybinding
key bindings = keybinding
e mail = email
e mails = email
meet up = meetup
meet ups = meetup
read only = readonly
only be read = readonly
front end = frontend
back end = backend
web site = website
log in = login
sign in = login
to do list = todo
set up = setup
per cent = percent
high school = highschool
"""


def _by_first() -> dict[str, list[tuple[tuple[str, ...], tuple[str, ...]]]]:
    found: dict[str, dict[tuple[str, ...], tuple[str, ...]]] = defaultdict(dict)
    for line in _TURNS.strip().splitlines():
        said, stands = (tuple(half.split()) for half in line.split(" = "))
        found[said[0]][said] = stands
    return {
        first: sorted(turns.items(), key=lambda turn: -len(turn[0]))
        for first, turns in found.items()
    }


_BY_FIRST = _by_first()


def rephrased(tokens: Sequence[Token]) -> list[Token]:
    """Return the tokens with each turn of phrase in its plain words, the longest first."""
    found: list[Token] = []
    at = 0
    while at < len(tokens):
        stands, length = _turn(tokens, at)
        if length:
            found += [Token(word, Kind.WORD, is_first=True) for word in stands]
        else:
            found.append(tokens[at])
        at += length or 1
    return found


def _turn(tokens: Sequence[Token], at: int) -> tuple[tuple[str, ...], int]:
    for said, stands in _BY_FIRST.get(tokens[at].word, ()):
        after = tokens[at : at + len(said)]
        if not any(token.is_name for token in after) and said == tuple(t.word for t in after):
            return stands, len(said)
    return (), 0
