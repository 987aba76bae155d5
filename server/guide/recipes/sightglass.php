<?php
/** Sends events to Sightglass after the response, in a shutdown function. PHP 8.2 or newer. */
final class Sightglass {
    public function __construct(private string $url, private string $key, private string $site, private string $spool) {
        register_shutdown_function($this->flush(...));
    }

    /** Appends the event to the spool, in microseconds. */
    public function track(string $type, string $session, string $outcome = 'success', array $fields = []): void {
        $event = ['id' => bin2hex(random_bytes(16)), 'siteId' => $this->site, 'sessionId' => $session, 'type' => $type,
            'outcome' => $outcome, 'occurredAt' => gmdate('Y-m-d\TH:i:s\Z'), ...$fields];
        $line = "\n" . json_encode($event, JSON_INVALID_UTF8_SUBSTITUTE | JSON_PARTIAL_OUTPUT_ON_ERROR) . "\n";
        $written = $this->locked('.lock', LOCK_EX, function () use ($line) {
            clearstatcache(); // the first \n ends a line that a full disk cut
            $isFull = strlen($line) > 65_536 || (is_file($this->spool) && filesize($this->spool) > 100_000_000);
            return !$isFull && @file_put_contents($this->spool, $line, FILE_APPEND) === strlen($line);
        });
        if (!$written) error_log('sightglass: event dropped: it is larger than 64 KiB, or the spool is full');
    }

    /** Sends the spool. Returns at once while another process sends it, or before it is time for a retry. */
    public function flush(): void {
        if (function_exists('fastcgi_finish_request')) fastcgi_finish_request(); // the visitor has the response
        ignore_user_abort(true);
        $this->locked('.sender', LOCK_EX | LOCK_NB, function ($state) { // the lock file stores how far the sender is
            $numbers = explode(' ', stream_get_contents($state) . ' 0 0');
            [$offset, $failures, $notBefore] = array_map(intval(...), $numbers);
            $sending = $this->spool . '.sending';
            for ($endsAt = time() + 5; time() >= $notBefore && time() <= $endsAt; clearstatcache()) {
                if (!is_file($sending)) {
                    $offset = 0;
                    if (!$this->locked('.lock', LOCK_EX, fn() => @rename($this->spool, $sending))) return;
                }
                $file = fopen($sending, 'r');
                fseek($file, $offset);
                for ($body = ''; strlen($body) < 100_000 && ($line = fgets($file)) !== false;) $body .= $line;
                $wait = $body === '' ? 0 : $this->post($body, $failures);
                if ($wait === 0) [$offset, $failures, $notBefore] = [$body === '' ? 0 : ftell($file), 0, 0];
                else [$failures, $notBefore] = [$failures + 1, time() + 1 + $wait]; // time() is up to 1 s behind
                ftruncate($state, 0);
                rewind($state);
                fwrite($state, "$offset $failures $notBefore");
                if ($body === '') unlink($sending);
            }
        });
    }

    /** Returns 0 when the batch is done, else how many seconds to wait before the next attempt. */
    private function post(string $body, int $failures): int {
        $header = "Authorization: Bearer $this->key\r\nContent-Type: application/x-ndjson\r\n";
        $http = ['method' => 'POST', 'header' => $header, 'content' => $body, 'timeout' => 10, 'ignore_errors' => true];
        $context = stream_context_create(['http' => [...$http, 'follow_location' => 0]]);
        $text = (string) @file_get_contents("$this->url/v1/sdk/events", false, $context, 0, 65_536);
        $headers = $http_response_header ?? ['no response'];
        $isRefused = preg_match('/^HTTP\S+ (400|413)\b/', $headers[0]) === 1; // no retry helps
        $isDone = $isRefused || str_contains($text, '"accepted":');
        if (!str_contains($text, '"ok":true') && ($isDone || $failures === 1))
            error_log("sightglass: $headers[0] " . substr($text, 0, 500));
        $after = preg_match('/^retry-after: *(\d{1,5})/mi', implode("\n", $headers), $match) ? (int) $match[1] : 0;
        return $isDone ? 0 : max(random_int(1, 2 ** min($failures, 5)), min(3600, $after));
    }

    /** Several processes may share a spool. Closing the file releases the lock. */
    private function locked(string $suffix, int $lock, callable $work): mixed {
        $file = @fopen($this->spool . $suffix, 'c+');
        return $file !== false && flock($file, $lock) ? $work($file) : false;
    }
}
