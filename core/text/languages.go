package text

import (
	"strings"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/danish"
	"github.com/blevesearch/snowballstem/dutch"
	"github.com/blevesearch/snowballstem/english"
	"github.com/blevesearch/snowballstem/finnish"
	"github.com/blevesearch/snowballstem/french"
	"github.com/blevesearch/snowballstem/german"
	"github.com/blevesearch/snowballstem/hungarian"
	"github.com/blevesearch/snowballstem/italian"
	"github.com/blevesearch/snowballstem/norwegian"
	"github.com/blevesearch/snowballstem/portuguese"
	"github.com/blevesearch/snowballstem/romanian"
	"github.com/blevesearch/snowballstem/russian"
	"github.com/blevesearch/snowballstem/spanish"
	"github.com/blevesearch/snowballstem/swedish"
	"github.com/blevesearch/snowballstem/turkish"
)

var languages = map[string]*Language{}

func init() {
	for _, l := range []struct {
		name, code, common string
		stem               func(*snowballstem.Env) bool
	}{
		{"danish", "da", danishCommon, danish.Stem},
		{"dutch", "nl", dutchCommon, dutch.Stem},
		{"english", "en", englishCommon, english.Stem},
		{"finnish", "fi", finnishCommon, finnish.Stem},
		{"french", "fr", frenchCommon, french.Stem},
		{"german", "de", germanCommon, german.Stem},
		{"hungarian", "hu", hungarianCommon, hungarian.Stem},
		{"italian", "it", italianCommon, italian.Stem},
		{"norwegian", "nb", norwegianCommon, norwegian.Stem},
		{"portuguese", "pt", portugueseCommon, portuguese.Stem},
		{"romanian", "ro", romanianCommon, romanian.Stem},
		{"russian", "ru", russianCommon, russian.Stem},
		{"spanish", "es", spanishCommon, spanish.Stem},
		{"swedish", "sv", swedishCommon, swedish.Stem},
		{"turkish", "tr", turkishCommon, turkish.Stem},
		{"none", "none", "", nil},
	} {
		x := &Language{name: l.name, stem: l.stem, common: map[string]bool{}}
		for _, w := range strings.Fields(l.common) {
			x.common[w] = true
		}
		languages[l.name], languages[l.code] = x, x
	}
}

// The common words of the languages: articles, pronouns, prepositions, conjunctions, auxiliary verbs. They are never
// searched for, and the terms of stored documents are made without them. A change of a list needs a new build of the
// indexes over words.
const (
	englishCommon = `a about above after again against all am an and any are aren't as at be because been before
		being below between both but by can't cannot could couldn't did didn't do does doesn't doing don't down
		during each few for from further had hadn't has hasn't have haven't having he he'd he'll he's her here
		here's hers herself him himself his how how's i i'd i'll i'm i've if in into is isn't it it's its itself
		let's me more most mustn't my myself no nor not of off on once only or other ought our ours ourselves out
		over own same shan't she she'd she'll she's should shouldn't so some such than that that's the their theirs
		them themselves then there there's these they they'd they'll they're they've this those through to too under
		until up very was wasn't we we'd we'll we're we've were weren't what what's when when's where where's which
		while who who's whom why why's with won't would wouldn't you you'd you'll you're you've your yours yourself
		yourselves`
	danishCommon = `af alle alt anden at blev blive bliver da de dem den denne der deres det dette dig din disse dog
		du efter eller en end er et for fra ham han hans har havde have hende hendes her hos hun hvad hvis hvor i
		ikke ind jeg jer jo kunne man mange med meget men mig min mine mit mod ned noget nogle nu når og også om op
		os over på selv sig sin sine sit skal skulle som sådan thi til ud under var vi vil ville vor være været`
	dutchCommon = `aan al alles als altijd andere ben bij daar dan dat de der deze die dit doch doen door dus een
		eens en er ge geen geweest haar had heb hebben heeft hem het hier hij hoe hun iemand iets ik in is ja je kan
		kon kunnen maar me meer men met mij mijn moet na naar niet niets nog nu of om omdat onder ons ook op over
		reeds te tegen toch toen tot u uit uw van veel voor want waren was wat werd wezen wie wil worden wordt zal
		ze zelf zich zij zijn zo zonder zou`
	finnishCommon = `ei eivät emme en et ette että he hän häneen hänen hänet ja jos joka jonka joita jotka koska
		kuin kuka me meidän mikä minkä minä minun minut mitä mukaan mutta ne niiden niin nämä näiden nyt olen olemme
		olet olette oli olivat olla on ovat poikki se sen siinä sinä sinun sitä te teidän tai tuo tämä tämän vaan
		vai vaikka`
	frenchCommon = `à ai aie aient aies ait as au aura aurai auraient aurais aurait auras aurez auriez aurions
		aurons auront aux avaient avais avait avec avez aviez avions avons ayant ayez ayons c ce ceci cela ces cet
		cette d dans de des du elle en es est et étaient étais était étant été êtes étiez étions eu eue eues eurent
		eus eut eux fus furent fut il ils j je l la le les leur leurs lui m ma mais me même mes moi mon n ne nos
		notre nous on ont ou où par pas pour qu que quel quelle quelles quels qui s sa sans se sera serai seraient
		serais serait seras serez seriez serions serons seront ses si soi soient sois soit sommes son sont soyez
		soyons suis sur t ta te tes toi ton tu un une vos votre vous y`
	germanCommon = `aber alle allem allen aller alles als also am an ander andere anderem anderen anderer anderes
		auch auf aus bei bin bis bist da damit dann das dass daß dein deine deinem deinen deiner dem den denn der
		derer des dessen dich die dies diese diesem diesen dieser dieses dir doch dort du durch ein eine einem einen
		einer eines einig einige er es etwas euch euer eure für gegen gewesen hab habe haben hat hatte hatten hier
		hin hinter ich ihm ihn ihnen ihr ihre ihrem ihren ihrer im in indem ins ist ja jede jedem jeden jeder jedes
		jene jener jetzt kann kein keine keinem keinen keiner können könnte machen man manche mein meine meinem
		meinen meiner mich mir mit muss musste nach nicht nichts noch nun nur ob oder ohne sehr sein seine seinem
		seinen seiner selbst sich sie sind so solche soll sollte sondern sonst über um und uns unser unsere unter
		viel vom von vor während war waren was weg weil weiter welche welchem welchen welcher wenn werde werden wie
		wieder will wir wird wirst wo wollen wollte würde würden zu zum zur zwar zwischen`
	hungarianCommon = `a abban ahhoz ahogy ahol aki akik akkor által általában amely amelyek amelyet ami amit amíg
		az azért azok azon azonban azt aztán azután azzal be belül benne bár cikk csak de e ebben egy egyes egyetlen
		egyik egyre ehhez el elég ellen elő először előtt én éppen ez ezek ezen ezért ezt ezzel fel felé ha hanem
		hiszen hogy hogyan igen így illetve ill ismét ison jobban jó jól kell kellett keressünk keresztül ki kívül
		között közül le legalább lehet lehetett legyen lenne lenni lesz lett maga magát majd már más másik még
		mellett mert mely melyek mi mikor milyen minden mindenki mindent mindig mint mintha mit mivel most nagy
		nagyobb nagyon ne néha nekem neki nem néhány nélkül nincs olyan ott össze ő ők őket pedig persze rá s saját
		sem semmi sok sokat szemben szerint szinte számára talán tehát teljes tovább továbbá több úgy ugyanis új
		újabb újra után utána utolsó vagy vagyis valaki valami valamint való van vannak vele vissza viszont volna
		volt voltak voltam`
	italianCommon = `a abbia abbiamo abbiano abbiate ad agl agli ai al all alla alle allo anche avere aveva avevano
		avete ha hai hanno ho c che chi ci coi col come con contro cui da dagl dagli dai dal dall dalla dalle dallo
		degl degli dei del dell della delle dello di dov dove e è ebbe ed era erano essendo faccio gli i il in io l
		la le lei li lo loro lui ma mi mia mie miei mio ne negl negli nei nel nell nella nelle nello noi non nostra
		nostre nostri nostro o per perché più quale quanta quante quanti quanto quella quelle quelli quello questa
		queste questi questo sarà se sei si sia siamo siano siete sono sta stanno sto su sua sue sugl sugli sui sul
		sull sulla sulle sullo suo suoi ti tra tu tua tue tuo tuoi tutti tutto un una uno vi voi vostra vostre
		vostri vostro`
	norwegianCommon = `alle andre at av begge ble blei bli blir da de deg dei deim deira deires dem den denne der
		dere deres det dette di din disse ditt du dykk dykkar då eg ein eit eller elles en enn er et ett etter for
		fordi fra før ha hadde han hans har hennar henne hennes her hjå ho hoe honom hun hva hver hvilke hvilken
		hvis hvor hvordan hvorfor i ikke ikkje inkje inn ja jeg kan kom korleis korso kun kunne kva kvar kvarhelst
		kven kvi kvifor man mange me med medan meg men mi min mine mitt mot mykje nå når noe noen noka noko nokon
		nokor nokre og også om opp oss over på samme seg selv si sia sidan siden sin sine sitt sjøl skal skulle slik
		so som somme somt så sånn til um upp ut uten var vart varte ved vere verte vi vil ville vore vors vort vår
		være vært å`
	portugueseCommon = `a à ao aos aquela aquelas aquele aqueles aquilo as às até com como da das de dela delas dele
		deles depois do dos e é ela elas ele eles em entre era eram essa essas esse esses esta está estamos estão
		estas estava estavam este esteja estes estou eu foi fomos for foram fosse fui há haja isso isto já lhe lhes
		mais mas me mesmo meu meus minha minhas muito na não nas nem no nos nós nossa nossas nosso nossos num numa o
		os ou para pela pelas pelo pelos por quando que quem se seja sem ser será seu seus só somos são sua suas
		também te tem temos tenho teu teus teve tinha tive tu tua tuas tém um uma você vocês vos`
	romanianCommon = `a acea aceasta această aceea acel acela acele acelea acest acesta aceste acestea acestei
		acestia acestui aceşti aceştia ai aia ale alt alta altă am ar are as asta astea atunci au avea avem aveţi aş
		aţi ba când că căci care cărei căror cărui ce cei cel cele celor ci cine cu cum da dacă dar de deci deja
		deşi din după ea ei el ele era este eu fără fi fie fiecare fiind i iar ii il imi in îi îl în la le li lor
		lui mai mea mei mele meu mi mie mine mult mă ne nici nişte noastră noi nostru nu o ori pe pentru peste prin
		s sa sale sau se si spre sub sunt suntem să săi său ta tale te toate tot toţi totuşi tu un una unde unei
		unele unor unui va vi voastră voi vom vor vostru vă şi ţi ţie`
	russianCommon = `а без более бы был была были было быть в вам вас весь во вот все всего всех вы где да даже для
		до его ее если есть еще же за здесь и из или им их к как ко когда кто ли либо мне может мы на надо наш не
		него нее нет ни них но ну о об однако он она они оно от очень по под при с со так также такой там те тем то
		того тоже той только том ты у уже хотя чего чей чем что чтобы чье чья эта эти это я`
	spanishCommon = `a al algo algunas algunos ante antes como con contra cual cuando de del desde donde durante e
		el él ella ellas ellos en entre era eran eres es esa esas ese eso esos esta está están estaba estado estar
		estas este esto estos estoy fue fueron fui ha había habían han has hasta hay he la las le les lo los más me
		mi mí mis mucho muchos muy nada ni no nos nosotros nuestra nuestras nuestro nuestros o os otra otras otro
		otros para pero poco por porque que qué quien quienes se sea ser será si sí siendo sin sobre sois somos son
		soy su sus suya suyo también tanto te tenemos tener tengo ti tiene tienen todo todos tu tú tus tuya tuyo un
		una uno unos vosotros vuestra vuestro y ya yo`
	swedishCommon = `alla allt att av blev bli blir blivit de dem den denna deras dess dessa det detta dig din dina
		ditt du där då efter ej eller en er era ert ett från för ha hade han hans har henne hennes hon honom hur här
		i icke ingen inom inte jag ju kan kunde man med mellan men mig min mina mitt mot mycket ni nu när någon
		något några och om oss på samma sedan sig sin sina sitta själv skulle som så sådan sådana sådant till under
		upp ut utan vad var vara varför varit varje vars vart vem vi vid vilka vilkas vilken vilket vår våra vårt än
		är åt över`
	turkishCommon = `acaba altı ama ancak artık asla aslında az bana bazen bazı bazıları belki ben beni benim beş
		biz bir birçok biri birkaç birşey bizim böyle bu buna bunda bundan bunu bunun burada çoğu çok çünkü da daha
		de değil diye dolayı dört eğer en fakat gibi hangi hani hatta hem henüz hep hepsi her herkes hiç için ile
		ise işte iki kadar kendi ki kim mı mi mu mü nasıl ne neden nerede niçin niye o olan olarak oldu on ona ondan
		onlar onu onun orada oysa öyle pek rağmen sadece sana sanki sen seni senin siz sonra şey şimdi şu tüm üç
		üzere var ve veya ya yani yok zaten`
)
