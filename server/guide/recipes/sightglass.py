"""Sends events to Sightglass from a background thread. Python 3.8 or newer, Linux, macOS or BSD."""
import atexit, fcntl, json, logging, os, random, threading, urllib.error, urllib.request, uuid
from datetime import datetime, timezone
log = logging.getLogger("sightglass")

def locked(path):  # until the file is closed; several threads and processes may share a spool
    file = open(path, "ab")
    fcntl.flock(file, fcntl.LOCK_EX)
    return file

class Sightglass:
    def __init__(self, url, key, site, spool="sightglass.spool", spool_max=100_000_000):
        self.url, self.site, self.spool, self.spool_max = url, site, os.path.abspath(spool), spool_max
        self.headers = {"authorization": "Bearer " + key, "content-type": "application/x-ndjson"}
        self.closing, self.thread = threading.Event(), threading.Thread(target=self._run, daemon=True)
        self.thread.start()
        atexit.register(self.close)

    def track(self, type, session, outcome="success", **fields):
        """Appends the event to the spool, in microseconds. Never raises."""
        try:
            event = {"id": str(uuid.uuid4()), "siteId": self.site, "sessionId": session, "type": type,
                     "outcome": outcome, "occurredAt": datetime.now(timezone.utc).isoformat(), **fields}
            line = b"\n%s\n" % json.dumps(event, default=str).encode()  # the first \n ends a line that a full disk cut
            with locked(self.spool + ".lock"), open(self.spool, "ab") as file:
                if len(line) > 65_536 or file.tell() > self.spool_max: raise OverflowError("too large, or spool full")
                file.write(line)
        except Exception as error:
            log.warning("event dropped: %s", error)

    def close(self):
        """Sends what is left for at most 5 seconds. The next start sends the rest."""
        self.closing.set()
        self.thread.join(5)

    def _run(self):
        is_last = False
        while not is_last:
            is_last = self.closing.wait(1)  # collects a batch
            try:
                with locked(self.spool + ".sender"):  # one sender at a time
                    self._send_spool(self.spool + ".sending")
            except Exception as error:
                log.warning("spool: %s", error)

    def _send_spool(self, sending):
        while os.path.exists(sending) or os.path.exists(self.spool):
            with locked(self.spool + ".lock"):
                os.path.exists(sending) or os.rename(self.spool, sending)
            with open(sending, "rb") as file:  # after a kill it is sent again; known ids are not stored twice
                for body in iter(lambda: b"".join(file.readlines(100_000)), b""):
                    failures = 0
                    while wait := self._post(body, failures):
                        if self.closing.wait(wait): return
                        failures += 1
            os.remove(sending)

    def _post(self, body, failures):  # returns 0, or how many seconds to wait before the next attempt
        request, after = urllib.request.Request(self.url + "/v1/sdk/events", body, self.headers), ""
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                status, text = answer.status, answer.read(65_536).decode(errors="replace")
        except urllib.error.HTTPError as error:
            status, text, after = error.code, str(error.read(500)), error.headers.get("retry-after", "")[:5]
        except Exception as error: status, text = 0, str(error)
        is_done = status in (400, 413) or '"accepted":' in text  # no retry helps
        if '"ok":true' not in text and (is_done or failures == 1):
            log.warning("%d %.500s", status, text)
        wait = min(3600, int(after)) if after.isdecimal() else 0
        return 0 if is_done else max(wait, random.uniform(0.5, 1) * 2 ** min(failures, 6))
