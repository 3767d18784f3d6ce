"""What people write in other languages: fewer sentences than in English, shared by all topics, with nouns for each.

The slots are those of `english`. Topics that a language has no nouns for are posted in English.
"""

# Data, laid out to be read and added to.
# ruff: noqa: E501
# fmt: off

from dataclasses import dataclass


@dataclass(frozen=True)
class Language:
    code: str
    openers: str  # separated by semicolons
    closers: str
    adjectives: str  # separated by commas
    sentences: str  # one a line
    alarms: str  # sentences for events and emergencies
    nouns: str  # one topic a line, `topic: noun, noun`


LANGUAGES: tuple[Language, ...] = (
    Language("es",
        "bueno, ;oye {city}, ;buenos días! ;la verdad, ;última hora: ;jaja ;a ver, ;hoy en {city}: ",
        " otra vez; esta noche; en {city};, gracias {name}; cerca de {place};, qué día; hasta las {time}; ahora mismo",
        "bueno, nuevo, mejor, malo, grande, viejo, barato, rico, lindo, caro, lento, lleno, cerrado, abierto, loco, perdido",
        """qué {n} tan {a} en {place}
me encanta el {n} de {district}, siempre {a}
alguien sabe dónde hay {n} en {district}
hoy {n} y {n} con {name} en {place}
el {n} de {name} está muy {a}
no puedo creer lo del {n} en {place}
{num} minutos esperando {n} en {place}
quiero más {n} y menos {n}, gracias
{name} dice que el {n} es {a}
vamos al {n} de {place} a las {time}
busco {n} {a} cerca de {district}""",
        """{n} en {city}!! estamos en la calle
mucho {n} en {district}, tengan cuidado
ayuda en {place}, hay {n} y {n}
sintieron el {n} en {district}?
{num} personas en {place}, sigue el {n}""",
        """chat: día, vida, gente, casa, noche, amigo, amor, tiempo, cosa, mundo, familia, cumpleaños, foto, sueño
food: comida, cena, pizza, tacos, pan, arroz, pollo, asado, empanadas, queso, postre, paella, almuerzo
coffee: café, cafetería, leche, té, cortado, medialuna, azúcar
traffic: tráfico, calle, carro, accidente, puente, autobús, semáforo, carretera, choque, moto
weather: lluvia, sol, calor, frío, viento, tormenta, nieve, clima, paraguas
sports: partido, gol, equipo, fútbol, cancha, hincha, árbitro, campeón, entrenador
music: canción, música, concierto, banda, baile, disco, fiesta, guitarra
news: gobierno, alcalde, policía, elección, protesta, ley, huelga, presidente
jobs: trabajo, empleo, jefe, entrevista, sueldo, oficina
pharmacy: farmacia, medicina, receta, pastillas
power: luz, apagón, electricidad, cable
fire: incendio, humo, bomberos, sirenas
earthquake: terremoto, temblor, sismo, réplica, epicentro, escombros
flood: inundación, agua, río, rescate, barro
concert: concierto, escenario, entradas, multitud"""),
    Language("pt",
        "gente, ;olha só: ;bom dia! ;sério, ;urgente: ;kkk ;hoje em {city}: ",
        " de novo; hoje; em {city};, valeu {name}; perto de {place};, que dia; até as {time}; agora",
        "bom, novo, melhor, ruim, grande, velho, barato, gostoso, lindo, caro, lento, cheio, fechado, aberto, doido",
        """que {n} mais {a} em {place}
adoro o {n} de {district}, sempre {a}
alguém sabe onde tem {n} em {district}
hoje teve {n} e {n} com {name} em {place}
o {n} de {name} ficou muito {a}
não acredito nesse {n} em {place}
{num} minutos esperando {n} em {place}
só quero {n} e um pouco de {n}
bora pro {n} de {place} às {time}
procuro {n} {a} perto de {district}""",
        """{n} em {city}!! todo mundo na rua
muito {n} em {district}, cuidado
socorro em {place}, tem {n} e {n}
vocês sentiram o {n} em {district}?""",
        """chat: dia, vida, gente, casa, noite, amigo, amor, saudade, coisa, mundo, família, aniversário, foto
food: comida, jantar, pizza, feijoada, pão, arroz, frango, churrasco, queijo, açaí, almoço, bolo
coffee: café, padaria, leite, chá, cafezinho, açúcar
traffic: trânsito, rua, carro, acidente, ponte, ônibus, semáforo, estrada, batida
weather: chuva, sol, calor, frio, vento, tempestade, clima, praia
sports: jogo, gol, time, futebol, torcida, juiz, campeão, estádio
music: música, show, banda, samba, festa, violão, disco
news: governo, prefeito, polícia, eleição, protesto, lei, greve
jobs: trabalho, emprego, chefe, vaga, salário
pharmacy: farmácia, remédio, receita
power: luz, apagão, energia
fire: incêndio, fumaça, bombeiros
earthquake: terremoto, tremor, abalo, escombros
flood: enchente, água, rio, resgate, lama
concert: show, palco, ingressos, multidão"""),
    Language("fr",
        "bon, ;franchement, ;bonjour {city}! ;attention: ;mdr ;aujourd'hui à {city}: ",
        " encore; ce soir; à {city};, merci {name}; près de {place};, quelle journée; jusqu'à {time}; en ce moment",
        "bon, nouveau, meilleur, mauvais, grand, vieux, petit, délicieux, joli, cher, lent, plein, fermé, ouvert, calme",
        """quel {n} {a} à {place}
j'adore le {n} de {district}, toujours {a}
qui sait où trouver du {n} à {district}
{n} et {n} avec {name} à {place}
le {n} de {name} est vraiment {a}
encore un {n} du côté de {place}
{num} minutes à attendre le {n} à {place}
je veux juste un {n} et un peu de {n}
rendez-vous au {n} de {place} à {time}
cherche {n} {a} près de {district}""",
        """{n} à {city}!! tout le monde dehors
beaucoup de {n} à {district}, attention
au secours à {place}, {n} et {n}
vous avez senti le {n} à {district}?""",
        """chat: jour, vie, gens, maison, nuit, ami, amour, temps, chose, monde, famille, anniversaire, photo, rêve
food: repas, dîner, pizza, pain, fromage, restaurant, poulet, crêpes, gâteau, déjeuner, soupe, huîtres
coffee: café, terrasse, lait, thé, expresso, croissant
traffic: bouchon, route, voiture, accident, pont, bus, métro, périphérique, vélo
weather: pluie, soleil, chaleur, froid, vent, orage, neige, météo, parapluie
sports: match, but, équipe, foot, stade, arbitre, supporters
music: chanson, musique, concert, groupe, fête, guitare
news: gouvernement, maire, police, élection, manif, loi, grève
jobs: travail, emploi, patron, entretien, salaire
pharmacy: pharmacie, médicament, ordonnance
power: courant, panne, électricité
fire: incendie, fumée, pompiers
earthquake: séisme, tremblement, secousse, décombres
flood: inondation, eau, rivière, secours, boue
concert: concert, scène, billets, foule"""),
    Language("de",
        "also, ;ehrlich, ;guten morgen {city}! ;achtung: ;haha ;heute in {city}: ",
        " schon wieder; heute; in {city};, danke {name}; bei {place};, was für ein tag; bis {time}; gerade",
        "gut, neu, schön, schlecht, groß, alt, klein, lecker, billig, teuer, langsam, voll, zu, offen, ruhig",
        """so {a} war das {n} bei {place} noch nie
ich liebe {n} in {district}, immer {a}
wer weiß wo es in {district} {n} gibt
{n} und {n} mit {name} bei {place}
das mit {name} und dem {n} ist {a}
schon wieder {n} an der {place}
{num} minuten warten auf {n} bei {place}
ich will nur {n} und etwas {n}
treffen am {n} bei {place} um {time}
suche {n}, {a}, nahe {district}""",
        """{n} in {city}!! alle sind draußen
viel {n} in {district}, bitte vorsicht
hilfe an der {place}, {n} und {n}
habt ihr das {n} in {district} gespürt?""",
        """chat: tag, leben, leute, haus, nacht, freund, liebe, zeit, sache, welt, familie, geburtstag, foto, traum
food: essen, abendessen, pizza, brot, käse, döner, wurst, kuchen, mittagessen, suppe, schnitzel
coffee: kaffee, milch, tee, espresso, brötchen, bäckerei
traffic: stau, straße, auto, unfall, brücke, bus, ampel, baustelle, fahrrad
weather: regen, sonne, hitze, kälte, wind, gewitter, schnee, wetter, schirm
sports: spiel, tor, mannschaft, fußball, stadion, schiri, fans
music: lied, musik, konzert, band, party, gitarre
news: regierung, bürgermeister, polizei, wahl, demo, gesetz, streik
jobs: arbeit, stelle, chef, bewerbung, gehalt
pharmacy: apotheke, medikament, rezept
power: strom, stromausfall, kabel
fire: feuer, rauch, feuerwehr
earthquake: erdbeben, beben, nachbeben, trümmer
flood: hochwasser, wasser, fluss, rettung, schlamm
concert: konzert, bühne, karten, menge"""),
    Language("it",
        "allora, ;buongiorno {city}! ;davvero, ;attenzione: ;oggi a {city}: ",
        " di nuovo; stasera; a {city};, grazie {name}; vicino a {place};, che giornata; fino alle {time}",
        "bello, nuovo, buono, brutto, grande, vecchio, piccolo, squisito, caro, lento, pieno, chiuso, aperto",
        """che {n} così {a} a {place}
adoro {n} a {district}, sempre {a}
qualcuno sa dove trovo {n} a {district}
{n} e {n} con {name} a {place}
il {n} di {name} è davvero {a}
{num} minuti ad aspettare {n} a {place}
ci vediamo per il {n} a {place} alle {time}""",
        """{n} a {city}!! siamo tutti in strada
molto {n} a {district}, attenti
aiuto a {place}, {n} e {n}""",
        """chat: giorno, vita, gente, casa, notte, amico, amore, tempo, mondo, famiglia, compleanno, sogno
food: pranzo, cena, pizza, pasta, pane, gelato, risotto, formaggio, dolce, ristorante
coffee: caffè, bar, latte, cornetto, cappuccino
traffic: traffico, strada, macchina, incidente, ponte, autobus, semaforo
weather: pioggia, sole, caldo, freddo, vento, temporale, neve
sports: partita, gol, squadra, calcio, stadio, arbitro, tifosi
music: canzone, musica, concerto, festa, chitarra
jobs: lavoro, capo, colloquio, stipendio
pharmacy: farmacia, medicina, ricetta
fire: incendio, fumo, pompieri
earthquake: terremoto, scossa, macerie
flood: alluvione, acqua, fiume, fango
concert: concerto, palco, biglietti, folla"""),
    Language("tr",
        "ya ;günaydın {city}! ;valla ;dikkat: ;bugün {city}: ",
        " yine; bu akşam; {city};, sağol {name}; {place} yakınında; saat {time}; şu an",
        "güzel, yeni, iyi, kötü, büyük, eski, küçük, lezzetli, pahalı, yavaş, dolu, kapalı, açık, sakin",
        """{place} önünde {a} bir {n} var
{district} tarafında {n} hep {a}
{district} içinde {n} nerede bulunur bilen var mı
{name} ile {n} ve {n}, {place}
{name} için {n} çok {a}
{place} durağında {num} dakika {n} bekledim
saat {time} gibi {place} önünde {n}
sadece {n} ve biraz {n} istiyorum""",
        """{city} {n}!! herkes sokakta
{district} tarafında {n} çok {a}, dikkat edin
{place} için yardım, {n} ve {n}
{district} {n} hissettiniz mi?""",
        """chat: gün, hayat, insan, ev, gece, arkadaş, aşk, zaman, dünya, aile, fotoğraf, rüya
food: yemek, kebap, ekmek, pide, çorba, peynir, pilav, baklava, kahvaltı, lokanta
coffee: kahve, çay, simit, süt, kafe
traffic: trafik, yol, araba, kaza, köprü, otobüs, metrobüs, vapur
weather: yağmur, güneş, sıcak, soğuk, rüzgar, fırtına, kar
sports: maç, gol, takım, futbol, stat, hakem, taraftar
music: şarkı, müzik, konser, gitar, saz
news: hükümet, belediye, polis, seçim, yasa, grev
pharmacy: eczane, ilaç, reçete
power: elektrik, kesinti, ışık
fire: yangın, duman, itfaiye
earthquake: deprem, sarsıntı, artçı, enkaz
flood: sel, su, nehir, kurtarma
concert: konser, sahne, bilet, kalabalık"""),
    Language("id",
        "guys, ;selamat pagi {city}! ;serius, ;awas: ;wkwk ",
        " lagi; malam ini; di {city};, makasih {name}; dekat {place}; sampai {time}; sekarang",
        "enak, baru, bagus, jelek, besar, lama, kecil, murah, mahal, macet, penuh, tutup, buka, sepi",
        """{n} di {place} memang {a}
suka banget {n} di {district}, selalu {a}
ada yang tahu {n} {a} di {district}
{n} sama {n} bareng {name} di {place}
{n} dari {name} {a} sekali
{num} menit nunggu {n} di {place}
ketemu di {n} {place} jam {time}
cuma mau {n} dan sedikit {n}""",
        """{n} di {city}!! semua orang keluar
banyak {n} di {district}, hati hati
tolong di {place}, ada {n} dan {n}""",
        """chat: hari, hidup, orang, rumah, malam, teman, cinta, waktu, dunia, keluarga, foto, mimpi
food: makan, nasi goreng, sate, ayam, bakso, sambal, mie, soto, rendang, warung
coffee: kopi, kedai, susu, teh, gula
traffic: macet, jalan, mobil, kecelakaan, jembatan, motor, angkot
weather: hujan, panas, dingin, angin, badai, mendung, payung
sports: bola, gol, tim, pertandingan, stadion, wasit
music: lagu, musik, konser, gitar, dangdut
pharmacy: apotek, obat, resep
power: listrik, mati lampu, lampu
fire: kebakaran, asap, pemadam
earthquake: gempa, guncangan, susulan, reruntuhan
flood: banjir, air, sungai, perahu
concert: konser, panggung, tiket, penonton"""),
    Language("ru",
        "ну ;доброе утро {city}! ;честно, ;внимание: ;ахаха ",
        " опять; сегодня; {city};, спасибо {name}; рядом {place}; до {time}; сейчас",
        "хороший, новый, лучший, плохой, большой, старый, вкусный, дорогой, медленный, полный, закрытый",
        """какой {a} {n} около {place}
люблю {n} в районе {district}
кто знает где {n} в {district}
{n} и {n} вместе с {name}, {place}
у {name} самый {a} {n}
{num} минут ждали {n} на {place}
встреча на {place} в {time}, будет {n}""",
        """{n}!! {city}, все на улице
{n} в {district}, осторожно
помогите, {place}, {n} и {n}""",
        """chat: день, жизнь, люди, дом, ночь, друг, любовь, время, мир, семья
food: обед, ужин, хлеб, борщ, пельмени, сыр, пицца, суп
coffee: кофе, чай, кафе, молоко
traffic: пробка, дорога, машина, авария, мост, автобус
weather: дождь, солнце, снег, мороз, ветер, гроза
sports: матч, гол, команда, футбол, стадион
music: песня, музыка, концерт, гитара
pharmacy: аптека, лекарство
fire: пожар, дым, пожарные
earthquake: землетрясение, толчок, завалы
flood: наводнение, вода, река
concert: концерт, сцена, билеты"""),
    Language("ja",
        "おはよう {city} ;ちょっと ;速報 ;今日の {city} ;やっぱり ",
        " だった; なう; {city} にて; ありがとう {name}; 笑;  {time} まで; です",
        "すごい, 新しい, 美味しい, 大きい, 古い, 安い, 高い, 遅い, 楽しい, 寒い, 静かな, 最高の",
        """{place} の {n} が {a}
{district} で {n} を見た
{district} の {a} {n} を教えて
{name} と {n} と {n} なう {place}
{name} の {n} は {a} と思う
{n} を {num} 分待っている {place}
{time} に {place} で {n}""",
        """{n} {city} みんな外にいる
{district} で {n} 気をつけて
{place} 助けて {n} と {n}
今 {n} 揺れた {district}""",
        """chat: 今日, 人生, 友達, 家, 夜, 写真, 夢, 家族, 世界, 誕生日
food: ラーメン, 寿司, カレー, 弁当, 焼肉, うどん, 天ぷら, 昼ご飯
coffee: コーヒー, カフェ, お茶, 抹茶, ケーキ
traffic: 渋滞, 電車, バス, 事故, 橋, 自転車
weather: 雨, 晴れ, 台風, 雪, 風, 傘
sports: 野球, 試合, サッカー, 優勝, 監督
music: 音楽, 歌, ライブ, ギター
pharmacy: 薬局, 薬
power: 停電, 電気
fire: 火事, 煙, 消防車
earthquake: 地震, 余震, 震度, 揺れ
flood: 洪水, 大雨, 川, 避難
concert: コンサート, 舞台, アンコール"""),
    Language("zh",
        "大家 ;早安 {city} ;真的 ;注意 ",
        " 今天; 在 {city}; 谢谢 {name}; 到 {time}; 现在",
        "新的, 好吃的, 漂亮的, 大的, 旧的, 便宜的, 贵的, 安静的",
        """{place} 的 {n} 很 {a}
在 {district} 看到 {a} {n}
谁知道 {district} 哪里有 {n}
和 {name} 一起 {n} {place}
等 {n} 等了 {num} 分钟 {place}
{time} 在 {place} 见 {n}""",
        """{city} {n} 大家都在外面
{district} 有 {n} 小心
{place} 求救 {n} {n}""",
        """chat: 今天, 生活, 朋友, 家, 晚上, 世界, 照片
food: 火锅, 面条, 饺子, 午饭, 奶茶, 烧烤
coffee: 咖啡, 茶, 咖啡馆
traffic: 堵车, 地铁, 事故, 公交车
weather: 下雨, 太阳, 台风, 下雪
sports: 比赛, 足球, 篮球
music: 音乐, 歌, 演唱会
pharmacy: 药店, 药
fire: 火灾, 烟, 消防
earthquake: 地震, 余震
flood: 洪水, 暴雨, 河
concert: 演唱会, 舞台"""),
    Language("ar",
        "صباح الخير {city} ;بصراحة ;عاجل ;يا جماعة ",
        " اليوم; في {city}; شكرا {name}; قرب {place}; حتى {time}; الآن",
        "جديد, جميل, كبير, قديم, رخيص, غالي, بطيء, هادئ, لذيذ",
        """{n} {a} في {place}
أحب {n} في {district}
من يعرف أين {n} في {district}
{n} و {n} مع {name} في {place}
انتظرت {n} {num} دقيقة في {place}
نلتقي في {place} الساعة {time} بعد {n}""",
        """{n} في {city} الناس في الشارع
انتبهوا {n} في {district}
ساعدونا في {place} {n} و {n}""",
        """chat: يوم, حياة, بيت, صديق, ليل, حب, صورة, عائلة
food: غداء, عشاء, خبز, كباب, أرز, دجاج, فول
coffee: قهوة, شاي, حليب, سكر
traffic: زحمة, طريق, سيارة, حادث, جسر
weather: مطر, شمس, حر, غبار, ريح
sports: مباراة, هدف, فريق, ملعب
music: أغنية, موسيقى, حفلة
pharmacy: صيدلية, دواء
fire: حريق, دخان
earthquake: زلزال, هزة
flood: سيول, ماء, فيضان
concert: حفلة, مسرح, تذاكر"""),
)

TOPICS_OF: dict[str, frozenset[str]] = {
    language.code: frozenset(line.split(":")[0] for line in language.nouns.splitlines()) for language in LANGUAGES
}
