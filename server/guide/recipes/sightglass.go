// Package sightglass sends events to Sightglass from a goroutine. Go 1.19 or newer, Linux, macOS or BSD.
package sightglass

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"syscall"
	"time"
)

type Client struct {
	url, key, site, spool string
	closing, closed       chan struct{}
}

// New starts the sender. Several processes may share a spool.
func New(url, key, site, spool string) *Client {
	c := &Client{url, key, site, spool, make(chan struct{}), make(chan struct{})}
	go c.run()
	return c
}

// Track appends the event to the spool, in microseconds.
func (c *Client) Track(kind, session, outcome string, fields map[string]any) {
	var id [16]byte
	rand.Read(id[:])
	event := map[string]any{"id": fmt.Sprintf("%x", id), "siteId": c.site, "sessionId": session, "type": kind,
		"outcome": outcome, "occurredAt": time.Now().UTC().Format(time.RFC3339Nano)}
	for name, value := range fields {
		event[name] = value
	}
	line, err := json.Marshal(event)
	if err == nil {
		err = locked(c.spool+".lock", func(*os.File) error { return c.write(line) })
	}
	if err != nil {
		log.Print("sightglass: event dropped: ", err)
	}
}

// Close sends what is left for at most 5 seconds. The next start sends the rest. Call it once.
func (c *Client) Close() {
	close(c.closing)
	select {
	case <-c.closed:
	case <-time.After(5 * time.Second):
	}
}

func locked(path string, work func(*os.File) error) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close() // releases the lock
	for err = syscall.EINTR; err == syscall.EINTR; {
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX)
	}
	if err != nil {
		return err
	}
	return work(file)
}

func (c *Client) write(line []byte) error {
	return locked(c.spool, func(file *os.File) error {
		if info, err := file.Stat(); err != nil || len(line) > 65_536 || info.Size() > 100_000_000 {
			return errors.New("it is larger than 64 KiB, or the spool is full")
		}
		_, err := file.Write([]byte("\n" + string(line) + "\n")) // the first \n ends a line that a full disk cut
		return err
	})
}

func (c *Client) run() {
	defer close(c.closed)
	for last := false; !last; {
		last = !c.sleep(time.Second) // collects a batch
		err := locked(c.spool+".sender", func(*os.File) error { return c.sendSpool(c.spool + ".sending") })
		if !os.IsNotExist(err) { // else everything is sent
			log.Print("sightglass: spool: ", err)
		}
	}
}

func (c *Client) sendSpool(sending string) error {
	for {
		if _, err := os.Stat(sending); os.IsNotExist(err) {
			err = locked(c.spool+".lock", func(*os.File) error { return os.Rename(c.spool, sending) })
			if err != nil {
				return err
			}
		}
		if err := c.sendFile(sending); err != nil {
			return err
		}
	}
}

func (c *Client) sendFile(sending string) error {
	file, err := os.Open(sending)
	if err != nil {
		return err
	}
	defer file.Close()
	for reader := bufio.NewReader(file); err == nil; { // after a kill it is sent again; known ids are not stored twice
		var body, line []byte
		for err == nil && len(body) < 100_000 {
			line, err = reader.ReadBytes('\n')
			body = append(body, line...)
		}
		for failures, isDone := 0, len(body) == 0; !isDone; failures++ {
			var wait time.Duration
			if wait, isDone = c.post(body, failures); !isDone && !c.sleep(wait) {
				return errors.New("closed, the next start sends the rest")
			}
		}
	}
	if err != io.EOF {
		return err
	}
	return os.Remove(sending)
}

// post returns how long to wait before the next attempt, or true when the batch is done.
func (c *Client) post(body []byte, failures int) (time.Duration, bool) {
	status, after, text := c.request(body)
	isDone := status == 400 || status == 413 || bytes.Contains(text, []byte(`"accepted":`)) // no retry helps
	if !bytes.Contains(text, []byte(`"ok":true`)) && (isDone || failures == 1) {
		log.Printf("sightglass: %d %.500s", status, text)
	}
	step := 64 * time.Second
	if failures < 6 {
		step = time.Second << failures
	}
	wait := step/2 + time.Duration(time.Now().UnixNano())%(step/2)
	if wait < after {
		wait = after
	}
	return wait, isDone
}

// request returns status, Retry-After and text of the answer, or status 0 and the text of an error.
func (c *Client) request(body []byte) (int, time.Duration, []byte) {
	request, err := http.NewRequest("POST", c.url+"/v1/sdk/events", bytes.NewReader(body))
	if err != nil {
		return 0, 0, []byte(err.Error())
	}
	request.Header = http.Header{"Authorization": {"Bearer " + c.key}, "Content-Type": {"application/x-ndjson"}}
	answer, err := (&http.Client{Timeout: 10 * time.Second}).Do(request)
	if err != nil {
		return 0, 0, []byte(err.Error())
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(answer.Body, 65_536))
	seconds, _ := strconv.ParseUint(answer.Header.Get("Retry-After"), 10, 12) // at most 4,095
	return answer.StatusCode, time.Duration(seconds) * time.Second, text
}

// sleep returns false when the client is closing.
func (c *Client) sleep(duration time.Duration) bool {
	select {
	case <-c.closing:
		return false
	case <-time.After(duration):
		return true
	}
}
