// Package sightglass sends events to Sightglass from a goroutine. Go 1.19 or newer, Linux, macOS or BSD.
package sightglass

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"log"
	mathrand "math/rand"
	"net/http"
	"os"
	"strconv"
	"syscall"
	"time"
)

const spoolMax = 100_000_000

type Client struct {
	url, key, site, spool string
	wake                  chan struct{}
	closing, closed       chan struct{}
}

// New starts the sender. Several processes may share a spool.
func New(url, key, site, spool string) *Client {
	c := &Client{url, key, site, spool, make(chan struct{}, 1), make(chan struct{}), make(chan struct{})}
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
	if err == nil && len(line) > 65_536 {
		err = fmt.Errorf("it is larger than 64 KiB")
	}
	if err == nil {
		err = c.locked(".lock", func() error { return c.appendLine(append(line, '\n')) })
	}
	if err != nil {
		log.Print("sightglass: event dropped: ", err)
		return
	}
	select {
	case c.wake <- struct{}{}:
	default:
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

func (c *Client) locked(suffix string, work func() error) error {
	file, err := os.OpenFile(c.spool+suffix, os.O_CREATE|os.O_RDWR, 0o600)
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
	return work()
}

func (c *Client) appendLine(line []byte) error {
	file, err := os.OpenFile(c.spool, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.Size() > spoolMax {
		return fmt.Errorf("the spool is full")
	}
	_, err = file.Write(append([]byte{'\n'}, line...)) // ends a line that a full disk cut
	return err
}

func (c *Client) run() {
	defer close(c.closed)
	for last := false; ; {
		if err := c.locked(".sender", c.sendSpool); err != nil { // one sender at a time
			log.Print("sightglass: spool: ", err)
		}
		if last {
			return
		}
		select {
		case <-c.wake:
		case <-c.closing:
		}
		last = !c.sleep(time.Second) // collects a batch
	}
}

func (c *Client) sendSpool() error {
	sending := c.spool + ".sending"
	for {
		if _, err := os.Stat(sending); os.IsNotExist(err) {
			err = c.locked(".lock", func() error { return os.Rename(c.spool, sending) })
			if os.IsNotExist(err) {
				return nil
			} else if err != nil {
				return err
			}
		}
		file, err := os.Open(sending)
		if err != nil {
			return err
		}
		reader := bufio.NewReader(file)
		for err == nil { // after a kill it is sent again; known ids are not stored twice
			var body, line []byte
			for err == nil && len(body) < 100_000 {
				line, err = reader.ReadBytes('\n')
				body = append(body, line...)
			}
			if len(body) > 0 && !c.send(body) {
				file.Close()
				return nil
			}
		}
		file.Close()
		if err != io.EOF {
			return err
		}
		if err = os.Remove(sending); err != nil {
			return err
		}
	}
}

func (c *Client) send(body []byte) bool {
	for failures := 0; ; failures++ {
		again, wait, problem := c.post(body)
		if problem != "" && (!again || failures == 1) {
			log.Print("sightglass: ", problem)
		}
		if !again {
			return true
		}
		step := time.Second << min(failures, 6)
		step = step/2 + time.Duration(mathrand.Int63n(int64(step/2)))
		if wait > step {
			step = wait
		}
		if !c.sleep(step) {
			return false
		}
	}
}

// post returns whether to send the batch again, and how long to wait at least.
func (c *Client) post(body []byte) (again bool, wait time.Duration, problem string) {
	request, err := http.NewRequest("POST", c.url+"/v1/sdk/events", bytes.NewReader(body))
	if err != nil {
		return true, 0, err.Error()
	}
	request.Header.Set("authorization", "Bearer "+c.key)
	request.Header.Set("content-type", "application/x-ndjson")
	response, err := (&http.Client{Timeout: 10 * time.Second}).Do(request)
	if err != nil {
		return true, 0, "retrying: " + err.Error()
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(response.Body, 65_536))
	problem = fmt.Sprintf("%d %.500s", response.StatusCode, text)
	switch response.StatusCode {
	case 202:
		if bytes.Contains(text, []byte(`"ok":true`)) {
			problem = ""
		}
		return false, 0, problem
	case 400, 413: // no retry helps
		return false, 0, "events dropped: " + problem
	}
	seconds, _ := strconv.Atoi(response.Header.Get("retry-after"))
	return true, time.Duration(min(seconds, 3600)) * time.Second, "retrying: " + problem
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

func min(a, b int) int {
	if a < b {
		return a
	}
	return b
}
