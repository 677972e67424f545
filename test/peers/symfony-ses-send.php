<?php
/* Sends with Symfony's mailers for Amazon SES, with a right and a wrong secret: URL, access key id, secret. Prints the ids, errors and calls. */
foreach (['HttpClient', 'Mailer/Bridge/Amazon'] as $part) require "/usr/share/php/Symfony/Component/$part/autoload.php";
require '/usr/share/php/AsyncAws/Ses/autoload.php';

use AsyncAws\Ses\SesClient;
use Symfony\Component\Mailer\Bridge\Amazon\Transport\SesApiAsyncAwsTransport;
use Symfony\Component\Mailer\Bridge\Amazon\Transport\SesHttpAsyncAwsTransport;
use Symfony\Component\Mailer\Exception\HttpTransportException;
use Symfony\Component\Mime\Email;

[, $url, $accessKeyId, $secret] = $argv;
$results = ['calls' => []];
foreach ([SesApiAsyncAwsTransport::class, SesHttpAsyncAwsTransport::class] as $class) {
    $name = (new ReflectionClass($class))->getShortName();
    foreach ([$name => $secret, "$name-wrong" => 'wrong'] as $case => $used) {
        $client = new SesClient(['endpoint' => $url, 'region' => 'eu-west-1', 'accessKeyId' => $accessKeyId, 'accessKeySecret' => $used]);
        $email = (new Email())->from('Shop <shop@simulator.test>')->to("$name@simulator.test")->replyTo('help@simulator.test')
            ->subject('From Symfony: ü')->text('Hi')->html('<p>Hi</p>');
        try {
            $results[$case] = (new $class($client))->send($email)->getMessageId();
            $results['calls'][] = [$name, 'answered'];
        } catch (HttpTransportException $error) {
            $results[$case] = 'error '.$error->getCode().' '.$error->getMessage();
            $results['calls'][] = [$name, 'refused'];
        }
    }
}
echo json_encode($results);
