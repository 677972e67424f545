/**
 * Phrases of programs and providers in many languages for failures, delays and auto-responses, as data. They are families of words, not
 * whole sentences, compared with text in lower case, with single spaces and plain quotes.
 */

const of = (text: string): readonly string[] =>
  text
    .split(/[|\n]/)
    .map((phrase) => phrase.trim())
    .filter((phrase) => phrase !== '')

/** Normal form for comparison: NFKC, lower case, single spaces. */
export const plainWords = (text: string): string =>
  ` ${text
    .normalize('NFKC')
    // One ligature becomes up to 18 characters.
    .slice(0, 2 * text.length)
    .toLowerCase()
    .replace(/[\u2018\u2019\u00b4`]/g, "'")
    .replace(/[\u201c\u201d\u201e\u00ab\u00bb]/g, '"')
    .replace(/\s+/g, ' ')
    .trim()} `

/** Subjects of failures. */
export const failureSubjects = of(`
  undeliver | undelivr | non-deliver | nondeliver | non deliver | not delivered | failure notice | delivery fail | delivery has failed
  delivery notification | mail delivery | returned mail | mail returned | message returned | returned to sender | return to sender
  could not be delivered | couldn't be delivered | wasn't delivered | can't be delivered | cannot be delivered | can not be delivered
  unable to deliver | not deliverable | delivery status | delivery error | delivery problem | delivery report | delivery unsuccessful
  unsuccessful delivery | mail system error | mail error | error sending | bounced | bounce notification | bounce message | mail failure | email failure
  rejected message | message rejected | email rejected | mail rejected | rejected: | blocked: | message blocked | message status | problem delivering
  address not found | user unknown | unknown user | no such user | mailbox full | failed mail | failed delivery | failed message | send failure | was not sent | ndn: | ndr:
  unzustell | nicht zugestellt | nicht zustellbar | zustellung fehl | zustellfehler | zustellungsfehler | zustellung nicht | konnte nicht
  zustellbericht | fehlgeschlagen | unzustellbarkeit | zurückgewiesen
  non remis | non distribu | non délivr | non livr | échec | echec de | n'a pas pu | n'a pas été | impossible de remettre | erreur de livraison
  retour à l'expéditeur | non acheminé | avis de non
  no entregad | no se puede entregar | no se pudo entregar | no se ha podido entregar | no entregable | error de entrega | fallo en la entrega | fallo de entrega
  entrega fallida | devuelto | no se pudo enviar | estado de entrega
  não entreg | nao entreg | não foi possível entregar | falha na entrega | falha de entrega | falha ao | erro na entrega | devolvid | não pôde ser | não pode ser
  mancato recapito | mancata consegna | non recapit | non consegnat | impossibile recapitare | impossibile consegnare | errore di consegna
  consegna non riuscita | stato della consegna | recapito non riuscito | stato del recapito | errore consegna
  onbestelbaar | niet bezorgd | niet afgeleverd | niet bestelbaar | bezorging mislukt | niet worden bezorgd | niet worden afgeleverd | niet leveren
  afleverfout | niet aangekomen
  niedostarcz | nie dostarczon | nie można dostarczyć | nie została dostarczona | nie udało się dostarczyć | błąd dostarcz | zwrot wiadomości | nie mogła zostać dostarczona
  недостав | не достав | не может быть достав | не удалось достав | ошибка достав | невозможно достав | не было доставлено | возврат письма | возвращено | не доставлено
  配信不能 | 配信できま | 送信できま | 配達不能 | 配達できま | 届けられ | 未配信 | 未達 | 不達 | 配信に失敗 | 配信エラー | 送信エラー | メールエラー | エラー通知 | エラーメール | 届きませんでした | 配信失敗
  退信 | 无法投递 | 未送达 | 投递失败 | 无法送达 | 发送失败 | 退回 | 發送失敗 | 無法投遞 | 無法傳遞 | 無法遞送 | 傳送失敗 | 退件 | 未傳遞 | 未传递 | 无法传递 | 投遞失敗
  반송 | 배달할 수 없 | 전송 실패 | 전달되지
  nedoruč | nelze doručit | nebyla doručena | chyba doruč | chyba při doruč | nepodařilo se doruč | vrácená zpráva
  inte levereras | ej levererat | olevere | inte leverera | leveransfel | inte levererats | kunde inte | ej levererbar | gick inte att
  ikke leveres | ikke leveret | uleveret | leveringsfejl | ikke levert | levering mislyktes | kunne ikke | leveringsfeil | uanbringelig
  toimittaminen epäonnistui | ei voitu toimittaa | ei voida toimittaa | ei toimitettu | toimittamat | ei voi toimittaa | perille toimittamaton | toimitusvirhe
  teslim edilem | iletilem | ulaştırılamadı | gönderilemedi | teslim edilemez | teslimat hatası
  kézbesíthet | nem kézbesít | δεν παραδόθηκε | αποτυχία παράδοσης | nedoručené
  misslyckad | mislykked | başarısız | nezdařil | nie powiodł | niepowodzen | non riuscit | mislukt | сбой доставки | не удается доставить | 失敗 | 失败 | epäonnistu`)

/** In the text: a program's words for a message that did not arrive. */
export const failureWords = of(`
  could not be delivered | couldn't be delivered | could not deliver | couldn't deliver | unable to deliver | not able to deliver | cannot be delivered | can't be delivered | can not be delivered
  cannot deliver | was not delivered | wasn't delivered | not been delivered | not delivered | undeliverable | undelivered | delivery failed | delivery to the following | delivery has failed
  delivery failure | failed to deliver | failed to reach | failed permanently | permanent fatal errors | permanent error | permanent failure | did not reach | could not be reached
  couldn't be reached | could not be sent | cannot be sent | failed addresses | failed recipient | delivery attempts failed | failure delivering | problem delivering | problems delivering
  error occurred while trying to deliver | returned to you | being returned | is returned | was returned | bounced | has been rejected | was rejected | been blocked | was blocked | i'm giving up | i've given up
  giving up | gave up | no such user | user unknown | unknown user | does not exist | doesn't exist | address not found | couldn't be found | wasn't found | not found at | mailbox is full | mailbox full | over quota | quota exceeded
  undeliverable to | unrouteable | unroutable | transcript of session | did not get through | not be completed | had the following errors | had delivery errors | mail system errors | error message from | invalid recipient | invalid address | no longer valid
  failure notice | error has occurred while attempting to deliver | envelope expired | non-delivery | nondelivery | delivery error | an error was detected | said: 5 | responded: 5 | no mailbox here | recipient rejected | not accept | message expired | has expired | timed out
  zugestellt werden | nicht zugestellt | nicht zustellbar | unzustellbar | zustellung fehl | zustellung an | nicht ausgeliefert | nicht übermittelt | nicht erreicht | nicht gesendet werden | fehler bei der zustellung | zurückgewiesen | abgelehnt | unbekannt | existiert nicht
  pas pu être | pas été remis | pas été distribué | pas été délivré | non remis | non distribué | échec de | impossible de | n'a pas pu | a échoué | n'existe pas | inconnu | été rejeté
  no se pudo entregar | no se ha podido | no pudo ser entregad | no ha podido ser | no se puede entregar | no fue posible | no se entregó | no existe | error al entregar | ha fallado | fue rechazad | no llegó | desconocid
  não foi possível | não pôde ser | não pode ser entregue | não foi entregue | não existe | falhou | falha na entrega | foi rejeitad | desconhecid
  non è stato possibile | non può essere | non recapitabile | non è stato recapitato | non consegnat | impossibile | non esiste | mancata consegna | mancato recapito | è stato respinto | sconosciut
  niet worden bezorgd | niet worden afgeleverd | niet bezorgd | niet afgeleverd | kon niet | bestaat niet | mislukt | onbestelbaar | geweigerd
  nie można dostarczyć | nie została dostarczona | nie mogła zostać | nie udało się | nie istnieje | niedostarcz | odrzucon | nieznan
  не может быть достав | не удалось достав | не было достав | не достав | не существует | невозможно достав | не найден | отклонен | ошибка | не смог
  配信できま | 送信できま | 配達できま | 届けられ | 届きませんでした | 配信不能 | 配信に失敗 | 送信に失敗 | 存在しま | 見つかりま | エラーが発生 | お届けでき | 配信されま
  无法投递 | 无法送达 | 未能送达 | 退信 | 退回 | 不存在 | 投递失败 | 发送失败 | 被拒 | 拒收 | 無法傳遞 | 無法投遞 | 無法送達 | 傳送失敗 | 找不到 | 无法传递 | 无法发送 | 未送达
  반송 | 배달할 수 없 | 전달되지 | 존재하지
  nelze doručit | nebyla doručena | nedoruč | nemohla být | nepodařilo | neexistuje | odmítnut | neznám
  inte levereras | inte leverera | inte levererats | kunde inte | finns inte | avvisades | gick inte att | okänd
  ikke leveres | ikke leveret | kunne ikke | findes ikke | finnes ikke | afvist | avvist | ikke levert | ukendt | ukjent
  ei voitu toimittaa | ei voida toimittaa | epäonnistui | ei toimitettu | ei ole olemassa | ei löydy | hylättiin | tuntematon
  teslim edilem | iletilem | ulaştırılam | gönderilem | bulunamadı | mevcut değil | reddedildi | bilinmeyen
  kézbesít | nem létezik | δεν παραδόθηκε | δεν υπάρχει
  fehlgeschlagen | misslyckad | mislykked | başarısız | nezdařil | nie powiodł | niepowodzen | non riuscit | error en la entrega | échec | сбой доставки | не удается | 失敗 | 失败 | epäonnistu`)

/** Subjects of delay notices. */
export const delaySubjects = of(`
  delayed | (delay) | delay notification | delay notice | delivery delay | message delay | warning: could not send | warning: message | still being retried | not yet delivered | not yet been delivered | delivery incomplete | delivery temporarily
  temporary failure | temporarily deferred | deferred | will be retried | still trying
  verzöger | verspät | retardé | retard | différé | retras | demorad | aplazad | atrasad | atraso | adiad | ritard | differit | vertraag | vertraging | uitgesteld | opóźni | задерж | отлож | 遅延 | 遅れ | 延迟 | 延遲 | 지연 | zpožd | odlož | försen | fördröj | forsink | viiväst | gecik | erteleni`)

/**
 * In the text: the message is still queued. The words concern the message, because failures may quote a remote server's `try again later`.
 */
export const delayWords = of(`
  will be retried | will retry | will be tried again | will try again | will continue to try | will continue trying | will keep trying | continue to attempt | continue to be attempted | continue attempting | keep trying | still trying
  still being retried | being retried | retried until | attempts will continue | attempts to deliver the message will | retry for | we'll keep trying | we'll try again | will be attempted | warning message only | do not need to resend
  don't need to resend | no need to resend | need not resend | not required to do anything | no action is required on your part | not yet been delivered | not been delivered yet | hasn't been delivered yet | has not yet been | has been delayed | is delayed | delivery is delayed | was delayed
  been delayed | you will be notified if | you'll be notified if | will be notified again | delivery is still | still in the queue | remains in the queue | message is still queued | will be returned to you if | the message has not been delivered for the last
  weitere zustellversuche | wird weiterhin versucht | erneut versucht | weiter versucht | weiterhin versuchen | verzögert | noch nicht zugestellt | weitere versuche | später erneut
  sera retard | retardée | est retardé | a été retard | nouvelles tentatives | nous continuerons | continuera à essayer | pas encore été | nouvelle tentative
  se retras | se ha retrasado | seguirá intentando | seguiremos intentando | se volverá a intentar | todavía no | aún no se ha | retrasad | nuevos intentos
  continuará tentando | continuaremos tentando | novas tentativas | ainda não foi entregue | está atrasad | foi adiad | tentará novamente | atrasada
  ulteriori tentativi | continuerà a tentare | non è ancora stat | in ritardo | ritardat | nuovi tentativi
  opnieuw proberen | opnieuw geprobeerd | nog niet bezorgd | vertraagd | nog niet afgeleverd | blijven proberen
  kolejne próby | ponowne próby | ponawiane | opóźnion | jeszcze nie został
  попытки доставки будут | будут продолжены | повторные попытки | задерж | попытки будут | ещё не достав | еще не достав
  再送を試み | 再送信を試み | 引き続き配信 | 配信が遅れ | 遅延して | 再試行 | まだ配信され
  继续尝试 | 将继续 | 稍后重试 | 将重试 | 延迟 | 繼續嘗試 | 延遲 | 尚未投递 | 尚未送达
  bude dále pokoušet | další pokusy | zpožděn | dosud nebyla doručena
  fortsätter att försöka | nya försök | försenat | försenad | fördröj | ännu inte levererats
  forsøge igen | forsinket | fortsat forsøge | endnu ikke leveret | prøve igjen
  yrittää uudelleen | viivästy | ei ole vielä toimitettu | yritetään uudelleen
  tekrar dene | yeniden dene | gecik | denemeye devam`)

/** A permanent failure in texts that mention delays too. */
export const gaveUpWords = of(`
  giving up | gave up | given up | give up on | failed permanently | permanent fatal errors | no further attempts | will not be retried | will not retry | not going to try again | won't be retried | won't try again | final notification | too long in the queue | in the queue too long
  has expired | message expired | retry timeout exceeded | retry time not reached for any host after | permanent error | no more attempts | do not retry | stopped trying | has been abandoned | cannot be delivered | keine weiteren versuche | endgültig | aufgegeben
  définitif | aucune nouvelle tentative | no se volverá | definitiv | não será | non verranno | больше не будет | 放弃 | 断念`)

/** The retry time expired. The words concern a message, a queue or a delivery, never an account. */
export const expiryWords = of(`
  message expired | message has expired | mail expired | message timeout | message timed out | delivery expired | delivery has expired | delivery time expired | queue.expired | envelope expired | expired in queue | expired in the queue | expired message
  retry timeout | retry time not reached | retry time exceeded | too long in the queue | in the queue too long | queue too long | in the queue for too long | queued too long | queue lifetime | queue period | maximum queue | time in queue | maximal queue
  failing for a long time | delivery time limit | delivery timed out | delivery timeout | delivery period | time limit exceeded | maximum-time-expired | maximum time for | maximum delivery time | exceeded max time | exceeded maximum time | lifetime exceeded | lifetime has expired | time-to-live | too old
  not delivered within | could not be delivered within | unable to deliver in | unable to deliver within | unable to deliver message within | unable to deliver message for | could not be delivered for | been trying to deliver | trying to deliver your message for | after trying for | no further attempts will be made to deliver
  could not send message for past | could not send for | cannot send message for | has been attempted for
  zustellzeit | zustellungsfrist | zu lange in der warteschlange | warteschlange abgelaufen | nachricht ist abgelaufen | nachricht abgelaufen | zeitüberschreitung bei der zustellung | seit mehreren tagen
  délai de remise | délai d'expiration | délai dépassé | message a expiré | message expiré | file d'attente trop longtemps | trop longtemps dans la file
  mensaje caducado | mensaje ha caducado | mensaje expirado | mensaje ha expirado | tiempo de entrega | demasiado tiempo en la cola | tiempo máximo | ha expirado el mensaje | el mensaje caducó
  mensagem expirou | mensagem expirada | tempo limite | tempo máximo | muito tempo na fila | prazo de entrega | messaggio scaduto | messaggio è scaduto | tempo massimo | troppo tempo in coda | termine di consegna
  bericht is verlopen | bericht verlopen | te lang in de wachtrij | wachttijd verstreken | wiadomość wygasła | czas oczekiwania | zbyt długo w kolejce | upłynął czas
  истек срок | срок доставки | время ожидания | слишком долго в очереди | истекло время | срок хранения сообщения
  有効期限 | 期限切れ | 配信期限 | 再送期間 | 時間内に | 一定期間 | 再送回数 | 送信待ち | 过期 | 过期邮件 | 队列中 | 超过最大投递时间 | 投递超时 | 多次尝试 | 多次投递 | 逾期 | 佇列 | 대기 시간 | 만료
  zpráva vypršela | vypršela platnost | vypršel čas | vypršela | příliš dlouho ve frontě | meddelandet har upphört | för länge i kön | tiden har gått ut | meddelelsen er udløbet | udløbet | utløpt | for lenge i køen | for længe i køen | vanhentunut | liian kauan jonossa | umpeutunut | süresi doldu | zaman aşımı | kuyrukta çok uzun | lejárt`)

/** The same, in words that a refusal may contain too. */
export const tiredWords = of(`
  expired | retry time | giving up on | timed out | time out | timeout | not responding | did not respond | no answer | unreachable | no response`)

/** Prefixes and subjects that only vacation programs and mail clients write. */
export const autoReplySubjects = of(`
  auto: | autoreply | auto-reply | auto reply | automatic reply | automated reply | automatic response | automated response | auto-response | auto response | autoresponse | autoresponder | auto-responder | auto answer | auto-answer
  out of office | out-of-office | is out of the office | out of the office | ooo: | [ooo] | (ooo) | vacation reply | vacation message | on vacation re: | away from my mail
  abwesenheitsnotiz | abwesenheitsnachricht | abwesenheitsassistent | automatische antwort | automatische rückmeldung | autom. antwort | automatische beantwortung | automatische empfangs | automatische abwesenheit
  réponse automatique | reponse automatique | absence du bureau | absent du bureau | message d'absence | respuesta automática | respuesta automatica | fuera de la oficina | fuera de oficina | autorrespuesta
  resposta automática | resposta automatica | fora do escritório | risposta automatica | fuori sede | fuori ufficio | risponditore | autorisposta | automatisch antwoord | automatische antwoord | automatische reactie
  autoodpowied | odpowiedź automatyczna | automatyczna odpowied | poza biurem | автоответ | автоматический ответ | вне офиса
  自動応答 | 自動返信 | 自動回答 | 自動送信 | 不在通知 | 自動回復 | 自动回复 | 自動回覆 | 自动答复 | 自動回复 | 自动应答 | 不在办公室 | 자동 회신 | 부재중 | 자동 응답
  automatická odpověď | automatická odpoveď | mimo kancelář | autosvar | automatiskt svar | inte på kontoret | ej på kontoret | automatisk svar | automatisk besvarelse | ikke på kontoret | ude af kontoret
  automaattinen vastaus | automaattivastaus | otomatik yanıt | otomatik cevap | ofis dışında | otomatik mesaj | automatikus válasz | házon kívül | αυτόματη απάντηση | εκτός γραφείου`)

/** Subjects that people write too: an auto-response only with other evidence. */
export const absenceSubjects = of(`
  on vacation | away from the office | i am away | on annual leave | on holiday | on leave | maternity leave | parental leave | currently unavailable | no longer with | no longer works | has left the company
  thank you for your email | thank you for your message | thank you for contacting | thanks for contacting | we have received your | we received your | your request has been received | your message has been received | confirmation of receipt | request received | ticket created | ticket received | case created | [ticket
  abwesen | nicht im büro | nicht im haus | im urlaub | eingangsbestätigung | außer haus | absence : | en congé | en vacances | hors du bureau | accusé de réception | ausencia | ausente | de vacaciones | acuse de recibo
  ausência | em férias | de férias | confirmação de recebimento | assenza | assente | in ferie | afwezig | niet aanwezig | met vakantie | op vakantie | ontvangstbevestiging | nieobecno | na urlopie | urlop
  в отпуске | отсутству | нет на месте | 不在 | 休暇 | 外出 | 休假 | 度假 | nepřítomn | dovolen | frånvar | på semester | semester | fravær | på ferie | ikke til stede | poissa | lomalla | poissaolo | izindeyim`)

/** In the text of mail without a header that declares it. */
export const autoReplyWords = of(`
  i am out of the office | i'm out of the office | i am currently out of | i'm currently out of | i will be out of the office | i am away from | i'm away | i am on vacation | i'm on vacation | i am on holiday | i am on annual leave | i am on leave | i am currently away | i'll be out of | currently on leave | limited access to email | limited access to my email
  this is an automated reply | this is an automatic reply | this is an automated response | this is an automatic response | this is an auto-generated response | this is an automated message to confirm | automatically generated reply | automatically generated response | this is an autoresponder | do not reply to this automated
  ich bin nicht im büro | ich bin derzeit nicht | ich bin im urlaub | ich bin bis | ich bin außer haus | bin ich nicht im | automatische antwort | automatisch generierte antwort
  je suis absent | je suis en congé | je suis actuellement absent | je suis en vacances | réponse automatique
  estoy fuera de la oficina | me encuentro fuera | estoy de vacaciones | estaré fuera | respuesta automática
  estou fora do | estou de férias | estarei ausente | encontro-me ausente | resposta automática
  sono fuori ufficio | sono in ferie | sarò assente | sono assente | risposta automatica
  ik ben afwezig | ik ben niet aanwezig | ik ben met vakantie | automatisch antwoord
  jestem nieobecn | jestem na urlopie | przebywam na urlopie | automatyczna odpowiedź
  я в отпуске | меня нет в офисе | нахожусь в отпуске | автоматический ответ
  不在にして | 休暇をいただ | 自動返信 | 自動送信 | 自动回复 | 我正在休假 | 自動回覆 | 我现在不在
  jsem mimo kancelář | nejsem v kanceláři | jsem na dovolené | jag är inte på kontoret | jag har semester | jag är på semester | jeg er ikke på kontoret | jeg er på ferie | jeg har ferie | olen lomalla | olen poissa | ofis dışındayım | izindeyim`)

/** Mail that asks the sender to prove to be a person. */
export const challengeWords = of(`
  please confirm your message | confirm your email to | confirm that you sent | confirm your identity | verify that you are a | prove that you are | prove you are human | click the link below to confirm | click on the link below to deliver | complete this verification | approved senders list | approved sender list | guest list
  to be delivered, you must | one-time verification | sender verification required | spamarrest | spam arrest | boxbe | challenge-response | challenge/response | tmda | requires confirmation | awaits moderator approval | is being held until the list moderator | needs your confirmation | confirmation required for your message | added to my allowed senders
  bitte bestätigen sie ihre nachricht | confirmez votre message | confirme su mensaje | 请确认您的邮件`)

/** Subjects of complaints that come without a report part. */
export const complaintSubjects = of(`
  complaint about message from | email feedback report | feedback report | abuse report | spam report | spam complaint | abuse complaint | complaint report | complaint: | [spam | reported as spam | marked as spam | junk mail report | feedback loop | feedback-loop | fbl report | scomp report | client tos notification | user complaint | message was reported as`)
