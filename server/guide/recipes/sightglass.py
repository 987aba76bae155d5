"""Sends events to Sightglass from a background thread. Python 3.8 or newer, Linux, macOS or BSD."""
import atexit, fcntl, http.client, json, logging, os, random, threading, urllib.error, urllib.request, uuid
from contextlib import contextmanager
from datetime import datetime, timezone

log = logging.getLogger("sightglass")

@contextmanager
def locked(path):  # several threads and processes may share a spool
    with open(path, "ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # released when the file is closed
        yield

class Sightglass:
    def __init__(self, url, key, site, spool="sightglass.spool", spool_max=100_000_000):
        self.url, self.site = url + "/v1/sdk/events", site
        self.spool, self.spool_max = os.path.abspath(spool), spool_max
        self.headers = {"authorization": "Bearer " + key, "content-type": "application/x-ndjson"}
        self._start()
        os.register_at_fork(after_in_child=self._start)  # a forked worker has no threads
        atexit.register(self.close)

    def _start(self):
        self.wake, self.closing = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def track(self, type, session, outcome="success", **fields):
        """Appends the event to the spool, in microseconds. Never raises."""
        try:
            event = {"id": str(uuid.uuid4()), "siteId": self.site, "sessionId": session, "type": type,
                     "outcome": outcome, "occurredAt": datetime.now(timezone.utc).isoformat(), **fields}
            line = json.dumps(event, default=str).encode() + b"\n"
            with locked(self.spool + ".lock"), open(self.spool, "ab") as file:
                if len(line) > 65_536 or file.tell() + len(line) > self.spool_max:
                    return log.warning("event dropped: it is larger than 64 KiB, or the spool is full")
                file.write(b"\n" + line)  # ends a line that a full disk cut
            self.wake.set()
        except Exception as error:
            log.warning("event dropped: %s", error)

    def close(self):
        """Sends what is left for at most 5 seconds. The next start sends the rest."""
        self.closing.set()
        self.wake.set()
        self.thread.join(5)

    def _run(self):
        while True:
            self.wake.clear()
            try:
                with locked(self.spool + ".sender"):  # one sender at a time
                    self._send_spool()
            except Exception as error:
                log.warning("spool: %s", error)
            if self.closing.is_set() and not self.wake.is_set():
                return
            self.wake.wait()
            self.closing.wait(1)  # collects a batch

    def _send_spool(self):
        sending = self.spool + ".sending"
        while True:
            if not os.path.exists(sending):
                with locked(self.spool + ".lock"):
                    if not os.path.exists(self.spool):
                        return
                    os.rename(self.spool, sending)
            with open(sending, "rb") as file:  # after a kill it is sent again; known ids are not stored twice
                while lines := file.readlines(100_000):
                    if not self._send(b"".join(lines)):
                        return
            os.remove(sending)

    def _send(self, body):
        failures = 0
        while True:
            wait = random.uniform(0.5, 1) * min(60, 2 ** min(failures, 6))
            try:
                request = urllib.request.Request(self.url, body, self.headers)
                with urllib.request.urlopen(request, timeout=10) as response:
                    answer = json.load(response)
                if answer.get("rejected"):
                    log.warning("rejected: %.500s", answer)
                if "accepted" in answer:
                    return True
                problem = "this is not Sightglass, check the url"
            except urllib.error.HTTPError as error:
                problem = "%d %.500s" % (error.code, error.read(500).decode(errors="replace"))
                if error.code in (400, 413):  # no retry helps
                    log.warning("%d events dropped: %s", body.count(b"\n"), problem)
                    return True
                if error.headers.get("retry-after", "").isdigit():
                    wait = max(wait, min(3600, int(error.headers["retry-after"])))
            except (OSError, ValueError, http.client.HTTPException) as error:
                problem = str(error)
            failures += 1
            if failures == 2:
                log.warning("retrying, events wait in %s: %s", self.spool, problem)
            if self.closing.wait(wait):
                return False
