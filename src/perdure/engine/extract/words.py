"""Words that the rules know."""

import re


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def either(given: frozenset[str]) -> str:
    """Return a pattern for one of the words, the longest first; `_` stands for a space."""
    ordered = sorted(given, key=lambda word: (-len(word), word))
    return "|".join(re.escape(word).replace("_", r"\s") for word in ordered)


ADVERBS = words(
    "really also just still now currently actually originally always only both already "
    "basically mostly mainly usually definitely absolutely totally honestly personally kinda "
    "quite so very generally typically finally recently truly especially particularly simply "
    "even sometimes often officially secretly strongly much do too probably then soon ever "
    "rarely normally no_longer"
)
FAMILY = words(
    "mother mom mum mama father dad papa parents parent sister brother siblings sibling son "
    "daughter wife husband spouse partner fiance fiancé fiancée girlfriend boyfriend kid kids "
    "child children baby grandmother grandma nana grandfather grandpa grandson granddaughter "
    "grandchild grandkids grandchildren aunt aunty auntie uncle niece nephew cousin twins "
    "twin stepson stepdaughter stepmother stepfather stepdad stepmom mother-in-law "
    "father-in-law sister-in-law brother-in-law son-in-law daughter-in-law godmother "
    "godfather goddaughter godson family"
)
PEOPLE = words(
    "friend friends boss manager colleague coworker co-worker neighbour neighbor teacher "
    "doctor dentist therapist coach trainer mentor assistant landlord landlady roommate "
    "flatmate housemate supervisor advisor professor lawyer accountant client customer "
    "teammate classmate student babysitter nanny ex designer developer engineer lead "
    "team_lead tech_lead cofounder co-founder intern contact buddy best_friend dba"
)
PETS = words("dog cat puppy kitten rabbit hamster parrot bird horse pony tortoise turtle fish pet")
THINGS = words(
    "project app service repo repository library tool company startup team band boat car van "
    "bike house shop store cafe café restaurant workshop studio farm server cluster database "
    "product client portal website blog podcast newsletter book novel game robot school "
    "village town city neighbourhood club pub bar machine laptop bot pipeline platform"
)
TITLES = words(
    "head chief director cto ceo cfo coo founder cofounder co-founder lead manager owner "
    "president chair chairman chairwoman principal partner dean captain editor"
)
JOBS = words(
    "nurse doctor surgeon midwife teacher tutor professor lecturer student pupil apprentice "
    "intern chef cook baker butcher farmer gardener plumber electrician carpenter welder "
    "mason painter driver pilot sailor fisherman mechanic technician engineer developer "
    "programmer designer architect analyst accountant lawyer solicitor barrister judge "
    "paralegal journalist writer author editor translator interpreter librarian photographer "
    "musician actor actress artist dancer singer composer scientist researcher physicist "
    "chemist biologist mathematician statistician economist psychologist therapist "
    "psychiatrist dentist pharmacist vet veterinarian paramedic firefighter policeman "
    "policewoman soldier officer guard cleaner cashier waiter waitress bartender barista "
    "receptionist secretary assistant consultant contractor freelancer manager director "
    "salesman saleswoman realtor banker broker trader entrepreneur founder owner ceo cto cfo "
    "sysadmin devops tester dba hairdresser barber tailor seamstress builder roofer postman "
    "courier miner potter jeweller jeweler carer caregiver nanny housewife househusband "
    "homemaker retiree pensioner phd postdoc undergraduate undergrad sophomore freshman "
    "physio physiotherapist radiologist cardiologist dermatologist optician monk priest "
    "pastor imam rabbi coach trainer instructor referee athlete cyclist footballer locksmith "
    "lumberjack product_manager data_scientist coder maker biochemist geologist archaeologist "
    "historian"
)
JOB_ENDINGS = ("ologist", "ographer", "ician", "keeper", "maker", "smith", "wright", "worker")
TRAITS = words(
    "vegan vegetarian pescatarian celiac coeliac diabetic asthmatic dyslexic autistic "
    "left-handed colour-blind color-blind colourblind colorblind deaf blind pregnant married "
    "divorced widowed single engaged retired unemployed self-employed bilingual trilingual "
    "lactose_intolerant gluten_intolerant gluten-free muslim jewish catholic hindu buddhist "
    "halal kosher teetotal introverted extroverted nearsighted hard_of_hearing"
)
PEOPLES = words(
    "american british english scottish welsh irish french german italian spanish portuguese "
    "dutch belgian swiss austrian swedish norwegian danish finnish icelandic polish czech "
    "slovak hungarian romanian bulgarian greek turkish russian ukrainian georgian armenian "
    "iranian persian iraqi syrian lebanese israeli palestinian egyptian moroccan algerian "
    "tunisian nigerian ghanaian kenyan ethiopian somali african asian european indian "
    "pakistani bangladeshi nepali tibetan chinese taiwanese japanese korean vietnamese thai "
    "malaysian indonesian filipino australian canadian mexican cuban colombian peruvian "
    "chilean argentinian brazilian"
)
STYLE = words(
    "tabs tab spaces emoji emojis bullet bullets metric imperial celsius fahrenheit docstrings "
    "hints markdown jargon semicolons quotes tone formal informal casual formally politely short "
    "brief concise snake_case camelcase exclamation capitals uppercase lowercase sentences "
    "paragraphs answers replies responses summaries british american"
)
"""What only a wish about form speaks of."""
MANNERS = words(
    "tabs tab spaces emoji emojis bullet bullets table tables metric imperial celsius "
    "fahrenheit comment comments docstring docstrings hints markdown jargon semicolons quotes "
    "tone formal informal casual formally politely english german french spanish portuguese "
    "italian dutch polish japanese chinese korean swedish turkish russian arabic hindi "
    "british american answer answers reply replies response responses sentence sentences "
    "paragraph paragraphs intro intros summary summaries units dates date format pdf csv "
    "exclamation capitals uppercase lowercase snake_case camelcase headings lists list code "
    "examples example explanation explanations steps names name apologise apologize apologies "
    "disclaimers pronouns dark light words short brief concise call calls phone e-mail email "
    "emails mail text texts chat version versions mistakes mistake imports types tests "
    "commits commit messages prose introductions greeting greetings"
)
"""What a wish about manners speaks of; "please use the second file" is about a task."""
REQUESTS = words(
    "use write send answer reply respond run commit push deploy merge ask tell show give add "
    "include put keep make check test correct speak talk call text format start end explain "
    "cite quote link summarise summarize translate round convert store save delete update "
    "sign name book order buy cook avoid leave wrap sort list mention assume share post "
    "print mail email e-mail address remind confirm warn wait review lint squash rebase open "
    "close edit change rename remove touch skip bring schedule plan suggest recommend offer "
    "apologise apologize guess invent repeat number draft"
)
OCCASIONS = words(
    "meeting appointment exam interview call flight dentist doctor surgery operation "
    "presentation wedding party birthday holiday vacation trip conference deadline race "
    "concert test checkup check-up date dinner lunch reservation audition class lesson game "
    "match demo launch release workshop visit visitors guests rehearsal funeral hearing "
    "inspection delivery graduation session"
)
PAST = words(
    "went saw met had got bought sold ran won lost left came took gave made did told said "
    "flew drove broke found began became ate drank wrote read spent paid built caught chose "
    "fell felt grew held kept knew led lent let put quit rode sent set shot slept spoke stood "
    "swam taught thought threw understood woke wore cut hurt hit sang sank sat was were been "
    "gone seen taken given done flown driven broken begun become eaten written chosen fallen "
    "grown known ridden spoken thrown shut brought bound dug drew drawn fought forgot "
    "forgotten froze hung hid laid lay lit rang rose sewn shook shaken stole stolen stuck "
    "struck swore swept tore torn split spilt overslept rebuilt"
)
MODALS = words(
    "can can't cannot could couldn't will won't would wouldn't should shouldn't must mustn't "
    "might may used need_to didn't wasn't weren't isn't is are aren't hasn't hadn't had has "
    "doesn't does"
)
NO_NAMES = words(
    "i i'm i've i'd i'll it it's this that these those he she they we you my our your his her "
    "its their there here what which who whom whose when where why how the a an and but or so "
    "if then also yes no not ok okay oh ah well hi hello hey thanks thank please sorry great "
    "good nice cool sure maybe perhaps monday tuesday wednesday thursday friday saturday "
    "sunday january february march april may june july august september october november "
    "december today tomorrow yesterday do does did is are was were can could will would "
    "should have has had let's lets always never everything everyone nothing something "
    "someone nobody all some any every each most many few one two three both another other "
    "today's english as at by for from in of on to with after before because since while "
    "until though although actually anyway btw lol haha omg wow yeah yep nope dear best "
    "regards cheers bye god ai llm api pdf url ui tv uk us usa eu mr mrs ms dr prof"
)
STOP = words(
    "a an the my our your his her its their this that these those to of in on at by for from "
    "with and or as is am are was were be been i me we us you it they them so very really "
    "just also too do does don't not no much more most some any all now then there here about "
    "into than will would can"
)
