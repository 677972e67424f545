<?php
// Verifies a webhook. PHP without extensions; place it where the web server runs PHP.

/** $body as it arrived. The event, or null when it is not genuine or more than five minutes old. */
function verified(string $body, array $server, string $secret): ?array
{
    $id = $server['HTTP_WEBHOOK_ID'] ?? '';
    $timestamp = $server['HTTP_WEBHOOK_TIMESTAMP'] ?? '';
    if (abs(time() - (int) $timestamp) > 300) {
        return null;
    }
    $key = base64_decode(preg_replace('/^whsec_/', '', $secret), true);
    // Anybody could sign with an empty secret. php-fpm passes no environment variables unless its pool names them.
    if ($key === false || strlen($key) < 16) {
        throw new RuntimeException('WEBHOOK_SECRET is missing, or is not a secret');
    }
    $wanted = 'v1,' . base64_encode(hash_hmac('sha256', "$id.$timestamp.$body", $key, true));
    foreach (explode(' ', $server['HTTP_WEBHOOK_SIGNATURE'] ?? '') as $signature) {
        if (hash_equals($wanted, $signature)) {
            return json_decode($body, true);
        }
    }
    return null;
}

$event = verified(file_get_contents('php://input'), $_SERVER, (string) getenv('WEBHOOK_SECRET'));
http_response_code($event === null ? 400 : 204);
