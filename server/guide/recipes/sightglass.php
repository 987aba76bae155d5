<?php
/** Sends events to Sightglass after the response, in a shutdown function. PHP 8.2 or newer. */
final class Sightglass
{
    public function __construct(
        private string $url,
        private string $key,
        private string $site,
        private string $spool,
        private int $spoolMax = 100_000_000,
    ) {
        register_shutdown_function($this->flush(...));
    }

    /** Appends the event to the spool, in microseconds. */
    public function track(string $type, string $session, string $outcome = 'success', array $fields = []): void
    {
        $event = ['id' => bin2hex(random_bytes(16)), 'siteId' => $this->site, 'sessionId' => $session, 'type' => $type,
            'outcome' => $outcome, 'occurredAt' => gmdate('Y-m-d\TH:i:s\Z'), ...$fields];
        $json = json_encode($event, JSON_INVALID_UTF8_SUBSTITUTE | JSON_PARTIAL_OUTPUT_ON_ERROR);
        $line = "\n$json\n"; // the first \n ends a line that a full disk cut
        $written = $this->locked('.lock', LOCK_EX, function () use ($line) {
            clearstatcache();
            $isFull = strlen($line) > 65_536 || (is_file($this->spool) && filesize($this->spool) > $this->spoolMax);
            return !$isFull && @file_put_contents($this->spool, $line, FILE_APPEND) === strlen($line);
        });
        if (!$written) error_log('sightglass: event dropped: it is larger than 64 KiB, or the spool is full');
    }

    /** Sends the spool. Returns at once while another process sends it, or before it is time for a retry. */
    public function flush(): void
    {
        if (function_exists('fastcgi_finish_request')) fastcgi_finish_request(); // the visitor has the response
        ignore_user_abort(true);
        $this->locked('.sender', LOCK_EX | LOCK_NB, function ($state) { // the lock file stores how far the sender is
            $numbers = explode(' ', stream_get_contents($state) . ' 0 0');
            [$offset, $failures, $notBefore] = array_map(intval(...), $numbers);
            $sending = $this->spool . '.sending';
            $take = fn() => $this->locked('.lock', LOCK_EX, fn() => @rename($this->spool, $sending));
            for ($endsAt = time() + 5; time() >= $notBefore && time() <= $endsAt; clearstatcache()) {
                if (!is_file($sending)) {
                    if (!$take()) return;
                    $offset = 0;
                }
                $file = fopen($sending, 'r');
                fseek($file, $offset);
                for ($body = ''; strlen($body) < 100_000 && ($line = fgets($file)) !== false;) $body .= $line;
                if ($body !== '') {
                    $wait = $this->send($body, $failures);
                    $failures = $wait === 0 ? 0 : $failures + 1;
                    $notBefore = $wait === 0 ? 0 : time() + 1 + $wait; // time() is up to 1 s behind
                }
                if ($failures === 0) $offset = $body === '' ? 0 : ftell($file);
                ftruncate($state, 0);
                rewind($state);
                fwrite($state, "$offset $failures $notBefore");
                if ($body === '') unlink($sending);
            }
        });
    }

    /** Returns 0 when the batch is done, else how many seconds to wait before the next attempt. */
    private function send(string $body, int $failures): int
    {
        $header = "Authorization: Bearer $this->key\r\nContent-Type: application/x-ndjson\r\n";
        $options = ['method' => 'POST', 'header' => $header, 'content' => $body, 'timeout' => 10];
        $context = stream_context_create(['http' => [...$options, 'ignore_errors' => true, 'follow_location' => 0]]);
        $text = @file_get_contents("$this->url/v1/sdk/events", false, $context, 0, 65_536);
        $headers = $http_response_header ?? ['no response'];
        $status = (int) (explode(' ', $headers[0])[1] ?? 0);
        if ($status === 202 && str_contains((string) $text, '"ok":true')) return 0;
        $isDone = in_array($status, [202, 400, 413], true); // no retry helps
        if ($isDone || $failures === 1) error_log("sightglass: $headers[0] " . substr((string) $text, 0, 500));
        if ($isDone) return 0;
        $after = preg_match('/^retry-after: *(\d{1,5})/mi', implode("\n", $headers), $match) ? (int) $match[1] : 0;
        return max(random_int(1, 2 ** min($failures, 5)), min(3600, $after));
    }

    /** Several processes may share a spool. Closing the file releases the lock. */
    private function locked(string $suffix, int $lock, callable $work): mixed
    {
        $file = @fopen($this->spool . $suffix, 'c+');
        return $file !== false && flock($file, $lock) ? $work($file) : false;
    }
}
