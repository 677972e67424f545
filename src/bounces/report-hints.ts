/**
 * Classifies reports where the reply rules find no match: words of reports (expiry, connections, loops) and of other languages. The first
 * family with a word in the text decides.
 */
import type { ClassificationName, Fault } from './classifications.ts'

export interface Hint {
  classification: ClassificationName
  fault: Fault
  phrases: readonly string[]
  /** One of these words must be present too. */
  beside?: readonly string[]
}

const of = (text: string): readonly string[] =>
  text
    .split(/[|\n]/)
    .map((phrase) => phrase.trim())
    .filter((phrase) => phrase !== '')

/** Words for a recipient in the languages of the hints: `not found` alone may concern a file. */
const someone = of(`
  user | mailbox | mail box | recipient | address | account | alias | addressee | local part | subscriber | customer | inbox | mail drop | person | member | userid | name
  empfänger | benutzer | adress | postfach | konto | nutzer | teilnehmer | destinat | utilisateur | boîte | boite | compte | usager | abonné | correspondant | usuario | direcci | buzón | buzon | cuenta | casilla | endereç | caixa | conta
  indirizz | casella | utente | account | ontvanger | gebruiker | postvak | postbus | odbior | adresat | użytkownik | skrzynk | kont | адрес | получател | пользовател | ящик | абонент | аккаунт
  宛先 | アドレス | 受信者 | ユーザ | メールボックス | あて先 | 受取人 | 送信先 | メアド | 收件 | 邮箱 | 地址 | 用户 | 郵箱 | 信箱 | 使用者 | 帐号 | 账号 | 帳號 | 帳戶 | 账户 | 邮件地址 | 수신 | 주소 | 사용자 | 계정
  příjemc | uživatel | schránk | účet | mottagar | användar | bruger | bruker | modtager | mottaker | postkass | brevlåd | vastaanottaj | osoit | käyttäj | tili | alıcı | kullanıcı | posta kutu | hesab | címzett | felhasznál | postafiók | παραλήπτ | διεύθυνσ | χρήστ`)

/** Applied before the rules: words of reports that the reply rules would misclassify. */
export const corrections: readonly Hint[] = [
  {
    classification: 'policy_violation',
    fault: 'server',
    phrases: of(
      `groups.google.com/support | support.google.com/groups | not accepting mail from | permission to post messages | only accepts messages from | not allowed to post`,
    ),
  },
  { classification: 'spam_block', fault: 'content', phrases: of(`content rejected, ube | bulk email filter | spam firewall`) },
  {
    classification: 'dns_error',
    fault: 'server',
    phrases: of(`nxdomain | all relevant mx records point to | no mail servers appear | no valid mx | no mx found`),
  },
  {
    classification: 'mailbox_full',
    fault: 'recipient',
    phrases: of(
      `mailbox exceeds | exceeded their mailbox size | exceeded his mailbox | exceeded the maximum number of messages in | quotaexceeded`,
    ),
  },
]

export const hints: readonly Hint[] = [
  {
    classification: 'mailbox_full',
    fault: 'recipient',
    phrases: of(`
      mailbox full | mailbox is full | box is full | inbox is full | inbox full | over quota | over its quota | exceeded quota | quota exceed | exceeded storage | disk quota | out of space | storage is full | mailbox quota | exceed mailbox quota | account is full | exceeded the maximum mailbox
      can't accept messages now | no space left in | insufficient disk space in user
      postfach voll | postfach ist voll | postfach des empfängers ist voll | postfaches überschritten | postfachs überschritten | speicherplatz | speicherlimit | speicherkontingent | kontingent | mailbox voll | mailbox ist voll
      boîte pleine | boîte de réception est pleine | boîte aux lettres est pleine | boîte aux lettres pleine | boite aux lettres | est pleine | est saturée | quota dépassé | quota de la boîte | espace de stockage
      buzón lleno | buzón está lleno | bandeja de entrada está llena | está lleno | está llena | cuota | sin espacio | caixa cheia | caixa postal cheia | está cheia | caixa de correio cheia | caixa de entrada está cheia | cota excedida | cota da caixa
      casella piena | è piena | superato la quota | quota disponibile | casella di posta piena | spazio esaurito | quota superata | quota della casella | postvak vol | postvak is vol | postvak in is vol | zit vol | mailbox vol | is vol
      przepełnion | skrzynka pełna | jest pełna | przekroczon | brak miejsca | переполнен | ящик заполнен | квот | нет места | место закончилось
      容量 | いっぱい | 满了 | 已满 | 空间不足 | 超出配额 | 超过限额 | 已滿 | 爆满 | 용량 | schránka je plná | je plná | schránka plná | přeplněn | překročen | är full | inkorgen | brevlådan | er fuld | er full | kvote | kvota | täynnä | tila loppu | kutusu dolu | dolu | kota`),
  },
  {
    classification: 'message_too_large',
    fault: 'content',
    phrases: of(`
      message is too large | message too large | too large to | larger than the | exceeds the maximum | exceeds the size | message size | too big | exceeds limit
      zu groß | maximale größe | größenbeschränkung | trop volumineux | trop grand | taille maximale | demasiado grande | tamaño máximo | supera el tamaño | muito grande | tamanho máximo | excede o tamanho | troppo grande | dimensione massima | dimensioni massime
      te groot | maximale grootte | zbyt duż | rozmiar wiadomości | слишком больш | превышает | размер | 大きすぎ | サイズ | 太大 | 过大 | 過大 | 超过大小 | 超出大小 | příliš velk | för stor | maximal storlek | for stor | liian suuri | enimmäiskoko | çok büyük | boyut`),
  },
  {
    classification: 'spam_block',
    fault: 'content',
    phrases: of(`
      als spam | spamverdacht | spam-verdacht | unerwünschte | comme spam | indésirable | pourriel | como spam | correo no deseado | indesejad | come spam | indesiderat | ongewenst | jako spam | niechcian | спам | нежелательн | スパム | 迷惑メール | 垃圾 | 反垃圾 | nevyžádan | skräppost | uønsket | roskaposti | istenmeyen | スパムと`),
  },
  {
    classification: 'policy_violation',
    fault: 'content',
    phrases: of(
      `virus | viren | schadsoftware | logiciel malveillant | malicioso | вирус | ウイルス | 病毒 | szkodliw | haitta | blocked attachment | attachment was blocked | content filter | blocked by | bloqueado por | richtlinie | policy | stratégie | directiva | política | criteri | beleid | zasad | политик | ポリシー | 策略 | zásad | princip | käytäntö | ilke`,
    ),
  },
  {
    classification: 'policy_violation',
    fault: 'server',
    phrases: of(`
      has blocked your | has blocked you | blocked the sender | refused your | don't have permission | do not have permission | not allowed to send | isn't allowed | only accepts messages from | accepts email only from | restricted to | not authorized | nicht berechtigt | keine berechtigung | n'êtes pas autorisé | autorisation | no tiene permiso | não tem permissão | autorizzazione | geen toestemming | nie masz uprawnień | нет разрешения | 許可され | 没有权限 | 權限`),
  },
  {
    classification: 'no_mailbox',
    fault: 'recipient',
    beside: someone,
    phrases: of(`
      deaktiviert | stillgelegt | gesperrt | désactivé | suspendu | deshabilitad | desactivad | suspendid | desativad | inativ | disattivat | disabilitat | sospes | uitgeschakeld | geblokkeerd | niet meer in gebruik | zablokowan | nieaktywn | отключен | заблокирован | неактив | 無効 | 停止され | 停用 | 禁用 | 冻结 | 封禁 | deaktivován | zablokován | inaktiverad | avstängd | deaktiveret | lukket | deaktivert | poistettu käytöstä | suljettu | devre dışı | askıya
      ha expirado por falta | falta de uso | ha caducado por inactividad
      disabled | deactivated | inactive | suspended | no longer | has been closed | discontinued | not active | moved, no forward`),
  },
  {
    classification: 'invalid_recipient',
    fault: 'recipient',
    beside: someone,
    phrases: of(`
      user unknown | unknown user | no such | does not exist | doesn't exist | not found | couldn't be found | wasn't found | unknown recipient | recipient unknown | invalid recipient | invalid address | not known here | not exist | unknown address | bad address | no mailbox | not a valid | no user | unknown or illegal alias | not listed in | isn't valid | unknown mail address | address is unknown | no valid recipient | addresses were unknown | address was unknown | destination unknown | not registered | unrouteable | unroutable | unknown mailbox | unknown local | no account | not a known | mismatched recipient
      empfänger unbekannt | unbekannter empfänger | unbekannter benutzer | unbekannte adresse | benutzer unbekannt | existiert nicht | nicht bekannt | unbekannt | nicht gefunden | gefunden werden | verzeichnis gefunden | nicht vorhanden | kein postfach | gibt es nicht | ungültige
      inconnu | n'existe pas | introuvable | inexistant | n'a pas été trouvé | pas valide | invalide | no existe | desconocid | no se encontr | encontrar | no encontrad | inexistente | no es válid | não existe | desconhecid | não foi encontrad | não encontrad | inválid
      non esiste | sconosciut | non trovat | trovare | inesistente | non è stato trovato | non valid | bestaat niet | onbekend | niet gevonden | niet worden gevonden | ongeldig | nie istnieje | nieznan | nie znaleziono | odnaleźć | znaleźć | nieprawidłow | не существует | неизвестн | не найден | найти | нет такого | несуществующ | не зарегистрирован | недействит
      存在し | 使われて | 間違って | 見つか | 宛先不明 | あて先 | 宛先が | 無効な | ユーザーが | 不存在 | 找不到 | 查无 | 未找到 | 不正确 | 有误 | 无此 | 無此 | 존재하지 | 찾을 수
      neexistuje | neznám | nenalezen | najít | nebyla nalezena | finns inte | okänd | hittades inte | hitta den | hitta adressen | existerar inte | kunde inte hittas | findes ikke | ukendt | ikke fundet | blev ikke fundet | finnes ikke | ukjent | ble ikke funnet | ei löydy | ei löytynyt | ei ole olemassa | tuntematon | bulunamadı | mevcut değil | bilinmeyen | geçersiz | nem létezik | ismeretlen | δεν υπάρχει | δεν βρέθηκε`),
  },
  {
    classification: 'dns_error',
    fault: 'server',
    phrases: of(`
      host unknown | unknown host | host not found | domain not found | name service error | name or service not known | no mx | mx record | dns | couldn't find any host named | domain could not be found | unknown domain | all relevant mx records | nonexistent domain | name server | bad destination host | bad host name | cannot resolve | illegal host
      domäne wurde nicht gefunden | unbekannte domain | domaine introuvable | dominio desconocido | no se encontró el dominio | domínio não encontrado | dominio non trovato | 域名`),
  },
  {
    classification: 'connection_error',
    fault: 'server',
    phrases: of(`
      connection timed out | connection refused | connection reset | connection lost | connection was closed | connection dropped | no route to host | network error | network is unreachable | network unreachable | host is unreachable | connect to | could not connect | couldn't connect | unable to connect | not able to establish an smtp connection | wasn't able to establish | failed to connect | cannot connect | did not accept our requests to connect | not responding | no answer from host | no response | timed out | connect timeout | connection timeout | 'timeout' | lost connection | read error | socket error | remote host said nothing
      verbindung | connexion | conexión | conexão | connessione | verbinding | połączeni | соединен | 接続 | 连接 | 連線 | připojení | anslut | forbindelse | yhteyttä | bağlan`),
  },
  {
    classification: 'protocol_error',
    fault: 'server',
    phrases: of(
      `mail loop | loop detected | forwarding loop | routing loop | too many hops | hop count | too many received | loops back | schleife | boucle | bucle | петл | 循环 | ループ`,
    ),
  },
  {
    classification: 'temporarily_unavailable',
    fault: 'server',
    phrases: of(`
      too long in the queue | in the queue too long | multiple retries | multiple attempts | giving up | expired | retry timeout | retry time | timeout exceeded | time limit | try again | try later | temporar | temporär | vorübergehend | temporaire | temporal | временн | 一時的 | 临时 | 暂时 | tymczasow | dočasn | tillfällig | midlertidig | tilapäi | geçici | tijdelijk | too busy | resources | local error | system error`),
  },
]
