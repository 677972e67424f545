<?php
// Sends an email; after a lost response it retries without sending twice. PHP without extensions: php send.php

function send_email(array $email): array
{
    $context = stream_context_create(['http' => [
        'method' => 'POST',
        'header' => [
            'Authorization: Bearer ' . getenv('POSTRIDER_KEY'),
            'Content-Type: application/json',
            'Idempotency-Key: ' . bin2hex(random_bytes(16)),
        ],
        'content' => json_encode($email, JSON_THROW_ON_ERROR),
        'timeout' => 60,
        'ignore_errors' => true,
    ]]);
    for ($left = 2; ; $left--) {
        $http_response_header = [];
        $text = @file_get_contents(getenv('POSTRIDER_URL') . '/v1/emails', false, $context);
        $status = (int) (explode(' ', $http_response_header[0] ?? '')[1] ?? 0);
        if ($status === 200) {
            return json_decode($text, true, 512, JSON_THROW_ON_ERROR)['data'];
        }
        // 0: no response came.
        if ($left === 0 || ($status !== 0 && $status !== 429 && $status < 500)) {
            throw new RuntimeException($text === false ? 'no answer' : $text);
        }
        $asked = preg_match('/^Retry-After: (\d+)$/mi', implode("\n", $http_response_header), $found) ? (int) $found[1] : 1;
        sleep(min(60, $asked));
    }
}

$sent = send_email([
    'from' => 'Shop <shop@simulator.test>',
    'to' => ['delivered@simulator.test'],
    'subject' => 'Your order',
    'html' => '<p>Thank you.</p>',
]);
echo $sent['id'], ' ', $sent['status'], "\n";
