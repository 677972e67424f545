<?php
/* Sends with Symfony's mailers for other vendors: host, port, key. They always write https, which this client's last step changes to http. */
require '/usr/share/php/Symfony/Component/HttpClient/autoload.php';
foreach (['Mailgun', 'Postmark', 'Sendgrid'] as $vendor) require "/usr/share/php/Symfony/Component/Mailer/Bridge/$vendor/autoload.php";

use Symfony\Component\HttpClient\HttpClient;
use Symfony\Component\Mailer\Bridge\Mailgun\Transport\MailgunApiTransport;
use Symfony\Component\Mailer\Bridge\Mailgun\Transport\MailgunHttpTransport;
use Symfony\Component\Mailer\Bridge\Postmark\Transport\PostmarkApiTransport;
use Symfony\Component\Mailer\Bridge\Sendgrid\Transport\SendgridApiTransport;
use Symfony\Component\Mailer\Exception\HttpTransportException;
use Symfony\Component\Mailer\Header\MetadataHeader;
use Symfony\Component\Mailer\Header\TagHeader;
use Symfony\Component\Mime\Email;
use Symfony\Contracts\HttpClient\HttpClientInterface;
use Symfony\Contracts\HttpClient\ResponseInterface;
use Symfony\Contracts\HttpClient\ResponseStreamInterface;

[, $host, $port, $key] = $argv;

final class PlainClient implements HttpClientInterface
{
    private $client;

    public function __construct() { $this->client = HttpClient::create(); }

    public function request(string $method, string $url, array $options = []): ResponseInterface
    {
        return $this->client->request($method, preg_replace('/^https:/', 'http:', $url), $options);
    }

    public function stream($responses, ?float $timeout = null): ResponseStreamInterface { return $this->client->stream($responses, $timeout); }

    public function withOptions(array $options): self { return $this; }
}

function message(string $to): Email
{
    $email = (new Email())->from('Shop <shop@simulator.test>')->to($to)->replyTo('help@simulator.test')->subject('From Symfony: ü')
        ->text('Hi')->html('<p>Hi</p><img src="cid:logo.png">')->attach('a note', 'Rechnung ü.txt', 'text/plain')->embed('PNG', 'logo.png', 'image/png');
    $email->getHeaders()->add(new MetadataHeader('n', '1'))->add(new TagHeader('order'))->addTextHeader('X-Own', 'yes');
    return $email;
}

$client = new PlainClient();
$transports = [
    'mailgun' => fn (string $key) => new MailgunApiTransport($key, 'simulator.test', null, $client),
    'mailgun-mime' => fn (string $key) => new MailgunHttpTransport($key, 'simulator.test', null, $client),
    'postmark' => fn (string $key) => new PostmarkApiTransport($key, $client),
    'sendgrid' => fn (string $key) => new SendgridApiTransport($key, $client),
];
$results = ['calls' => []];
foreach ($transports as $name => $make) {
    foreach ([$name => $key, "$name-wrong" => 'svc_test_wrong'] as $case => $used) {
        $transport = $make($used);
        try {
            $sent = $transport->setHost($host)->setPort((int) $port)->send(message("delivered+$name@simulator.test"));
            $results[$case] = $sent->getMessageId();
            $end = 'answered';
        } catch (HttpTransportException $error) {
            $results[$case] = 'error '.$error->getCode().' '.$error->getMessage();
            $end = 'refused';
        }
        $results['calls'][] = [(new ReflectionClass($transport))->getShortName(), $end];
    }
}
echo json_encode($results);
