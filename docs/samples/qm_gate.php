<?php
/**
 * A waiting room in front of one PHP page, without any framework. Put the call at the very top, before
 * any output. $site is the page's own origin as visitors see it; without it a visitor is led back to the
 * target URL of the room. PHP 7.4 or newer.
 */
function qm_gate(string $server, string $room, string $key, string $site = ''): void
{
    $server = rtrim($server, '/');
    $https  = strncmp($site === '' ? $server : $site, 'https:', 6) === 0;
    [$path, $query] = explode('?', $_SERVER['REQUEST_URI'] ?? '/', 2) + [1 => ''];
    $path   = preg_replace_callback('/[^\x21-\x7e]|["<>\\\\]/', fn($c) => rawurlencode($c[0]), $path);
    $rest   = array_filter(explode('&', $query), fn($p) => $p !== '' && urldecode(explode('=', $p)[0]) !== 'qm_token');
    $rest   = preg_replace_callback('/[^\x21-\x7e]|["<>\\\\]/', fn($c) => rawurlencode($c[0]), implode('&', $rest));
    $here   = $path . ($rest === '' ? '' : '?' . $rest);
    $url    = $site === '' ? '' : $site . $here;

    $usable = fn($t) => is_string($t) && strlen($t) <= 1024 && preg_match('/\A[\w-]+\.[\w-]+\z/', $t) ? $t : '';
    $brought = $usable($_GET['qm_token'] ?? '');
    $stored  = $usable($_COOKIE["qm_$room"] ?? '');
    $cookie  = fn(string $value, int $age) => setcookie("qm_$room", $value, [
        'expires' => $age ? time() + $age : 1, 'path' => '/', 'httponly' => true, 'samesite' => 'Lax', 'secure' => $https,
    ]);
    $go = function (string $to): void {
        header('Cache-Control: no-store');
        header('Location: ' . $to, true, 302);
        exit;
    };
    $wait = function (string $named = '') use ($server, $room, $url, $go): void {
        $own = "$server/w/" . rawurlencode($room);
        // Only the configured server is a place to send anybody to.
        $page = preg_match('~\A/[^/\\\\]~', $named) ? $server . $named : $named;
        $page = preg_match('~\A' . preg_quote($server, '~') . '/[\x21-\x7e]*\z~', $page) ? $page : $own;
        $back = strlen(rawurlencode($url)) > 3500 ? '' : $url;
        $go($page . ($back === '' ? '' : (strpos($page, '?') ? '&' : '?') . 'qm_return=' . rawurlencode($back)));
    };

    // A pass is spent by a visitor, not by a browser that looks ahead.
    $purpose = ($_SERVER['HTTP_SEC_PURPOSE'] ?? '') . ($_SERVER['HTTP_PURPOSE'] ?? '');
    $method  = $_SERVER['REQUEST_METHOD'] ?? 'GET';
    if ($brought !== '' && ($method === 'HEAD' || stripos($purpose, 'prefetch') !== false)) {
        header('Cache-Control: no-store');
        http_response_code(503);
        exit;
    }

    $until = microtime(true) + 2;
    foreach (array_unique(array_filter([$brought, $stored])) ?: [''] as $token) {
        $ask = ['roomId' => $room, 'token' => $token, 'ip' => $_SERVER['REMOTE_ADDR'] ?? '',
            'agent' => substr(trim($_SERVER['HTTP_USER_AGENT'] ?? ''), 0, 256),
            'url' => strlen(rawurlencode($url)) > 2000 ? '' : $url];
        [$status, $body] = qm_ask("$server/api/v1/check?" . http_build_query(array_filter($ask, 'strlen')), $key, $until);
        $answer = json_decode($body, true, 16);
        $answer = is_array($answer) ? $answer : [];
        if ($status === 429 || ($answer['code'] ?? '') === 'server_saturated') {
            $wait();
        }
        if (in_array($status, [400, 413, 414], true)) {
            $wait();
        }
        $action = $status === 200 ? ($answer['action'] ?? '') : '';
        if ($action === 'pass') {
            if ($token !== '' && $token === $brought) {
                $cookie($token, 86400);
            }
            if (isset($_GET['qm_token']) && $method === 'GET' && $site !== '') {
                $go($url);
            }
            header('Cache-Control: private, no-cache');
            return;
        }
        if ($action !== 'queue') {
            // The queue is down, not the visitor's fault: let them in, and say so.
            if ($status === 401 || $status === 403) {
                error_log("Queue Manager: $status, the key is wrong: room $room is UNPROTECTED");
            }
            header('X-QM-Failover: ' . ($status === 200 ? 'invalid-response' : ($status ? "http-$status" : $body)));
            header('Cache-Control: private, no-store');
            return;
        }
        if (($answer['clearToken'] ?? false) === true && $token !== '' && $token === $stored) {
            $cookie('', 0);
        }
    }
    $named = $answer['waitingRoomUrl'] ?? '';
    $wait(is_string($named) ? $named : '');
}

/** Status and body; status 0 and "timeout" or "unreachable" without an answer. */
function qm_ask(string $url, string $key, float $until): array
{
    $left = max(0.1, $until - microtime(true));
    $context = stream_context_create(['http' => [
        'timeout' => $left, 'protocol_version' => '1.0', 'ignore_errors' => true, 'follow_location' => 0,
        'header' => "Authorization: Bearer $key\r\nAccept: application/json\r\nConnection: close\r\n",
    ]]);
    $stream = @fopen($url, 'rb', false, $context);
    $body   = '';
    // Not one read for all of it: a server that sends a byte a second would hold the page for ever.
    while ($stream && strlen($body) <= 65536 && ($left = $until - microtime(true)) > 0) {
        stream_set_blocking($stream, false);
        $ready = [$stream];
        $none  = null;
        $part  = fread($stream, 8192);
        if ($part === '' && feof($stream)) {
            break;
        }
        $body .= (string) $part;
        if ($part === '' || $part === false) {
            stream_select($ready, $none, $none, (int) $left, (int) (1e6 * ($left - (int) $left)));
        }
    }
    if (microtime(true) > $until - 0.05) {
        return [0, 'timeout'];
    }
    $head = $stream ? implode("\n", stream_get_meta_data($stream)['wrapper_data'] ?? []) : '';
    return preg_match('~^HTTP/\S+ (\d{3})~', $head, $found) ? [(int) $found[1], $body] : [0, 'unreachable'];
}
