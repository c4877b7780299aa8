"""The same orders in other languages: drop your rules, be somebody else, tell nobody."""
# ruff: noqa: RUF001 - other alphabets are the point

from perdure.engine.validate.orders import Kind, orders

TONGUES = orders(
    Kind.BEGINS,
    # German
    r"(?:ignorier\w{0,3}|vergiss|vergesst|vergessen sie|missachte\w?)(?: (?:bitte|sie|alle"
    r"|allen?|die|deine|ihre|jegliche|sämtliche))* (?:vorherigen?|vorigen?|bisherigen?|früheren?"
    r"|obigen?|vorangegangenen|vorhergehenden|ursprünglichen?)(?: \w{1,20})? ?(?:anweisung"
    r"|instruktion|regel|befehl|vorgabe|richtlinie|prompt)\w{0,3}",
    r"du bist (?:ab )?(?:jetzt|nun|sofort) ein\w{0,2} (?:\w{1,20} ){0,2}(?:ki|assistent\w{0,2}"
    r"|agent|bot|modell|ai)\b",
    r"(?:sag|sage|verrate|erzähl|erzähle|sagen sie)(?: es)? dem (?:nutzer|benutzer|anwender"
    r"|user) (?:nichts|nicht|kein)",
    r"(?:gib|zeig|zeige|verrate|nenne)(?: mir)? (?:deinen?|ihren) (?:system-?prompt"
    r"|systemanweisung\w{0,3}|anweisungen)",
    # French
    r"(?:ignore[zr]?|oublie[zr]?|ne tiens pas compte de)(?: (?:toutes?|tous|les|tes|vos|des"
    r"|de))* (?:instructions?|consignes?|directives?|règles?|ordres?) (?:précédentes?"
    r"|antérieures?|ci-dessus|données)",
    r"(?:tu es|vous êtes) (?:maintenant|désormais) une? (?:\w{1,20} ){0,2}(?:ia|assistant|agent"
    r"|modèle|bot)\b",
    r"ne (?:dis|dites|révèle|révélez|parle|parlez)(?: \w{1,10}){0,3} à l['\u2019]utilisateur",
    # Spanish, Portuguese, Italian
    r"(?:ignor[ae]n?|olvid[ae]n?|descart[ae]n?) (?:todo )?lo (?:anterior|de arriba|dicho)",
    r"(?:ignor[ae]n?|olvid[ae]n?)(?: (?:todas?|las|tus|sus))* (?:instrucciones|indicaciones"
    r"|órdenes|reglas|directrices)",
    r"no (?:le |se lo )?(?:digas|cuentes|informes|reveles|diga)(?: \w{1,12}){0,2}? al usuario",
    r"(?:ignor[ae]m?|esque[çc][ae]m?|desconsidere)(?: (?:todas?|as|suas|tuas))* (?:instruções"
    r"|orientações|regras|ordens) (?:anteriores|acima|prévias)",
    r"não (?:diga|conte|informe|revele)(?: \w{1,12}){0,2}? ao usuário",
    r"(?:ignora|ignorate|dimentica|dimenticate|ignori)(?: (?:tutte|le|tue|ogni))* (?:istruzioni"
    r"|regole|indicazioni|direttive) (?:precedenti|sopra|anteriori)",
    r"non (?:dire|dirlo|rivelare|rivelarlo)(?: \w{1,12}){0,2}? all['\u2019]utente",
    # Dutch, Polish, Turkish
    r"(?:negeer|vergeet)(?: (?:alle|de|je|uw))* (?:vorige|eerdere|bovenstaande|voorgaande)"
    r" (?:instructies|regels|opdrachten|aanwijzingen)",
    r"(?:zignoruj|ignoruj|zapomnij)(?: (?:o|wszystkie|wszystkich))* (?:poprzednie|wcześniejsze"
    r"|powyższe|poprzednich) (?:instrukcj\w{1,3}|polece\w{1,4}|zasad\w?)",
    r"(?:önceki|yukarıdaki)(?: (?:tüm|bütün))? (?:talimat|komut|kural)\w{0,6} (?:yok say"
    r"|görmezden gel|unut)",
    # Russian
    r"(?:игнорируй(?:те)?|проигнорируй(?:те)?|забудь(?:те)?)(?: (?:все|всё|свои|твои|про|обо"
    r"|эти))* (?:предыдущие|прежние|прошлые|вышеуказанные|предыдущих) (?:инструкци\w{1,2}"
    r"|указани\w{1,2}|команд\w{0,2}|правил\w{0,2})",
    r"не (?:говори|сообщай|рассказывай)(?:те)?(?: \w{1,12}){0,2}? пользовател",
) + orders(
    Kind.ANYWHERE,
    # Chinese, Japanese, Korean
    r"(?:忽略|无视|忘记|忘掉|不要理会|忽視|無視)(?:掉|之前|以上|先前|前面|上述|此前|所有|全部|的"
    r"|你|一切|任何){1,8}(?:指令|指示|命令|规则|提示|提示词|要求|說明)",
    r"不要(?:告诉|通知|让)用户",
    r"(?:これまで|以前|上記|前)の(?:すべての|全ての)?(?:指示|命令|ルール|プロンプト)を?(?:すべて|全て|全部)?(?:無視|忘れ)",
    r"(?:이전|위|앞)의? ?(?:모든 )?(?:지시|명령|지침|규칙)(?:사항)?(?:를|을)?"
    r" ?(?:모두 )?(?:무시|잊)",
)
