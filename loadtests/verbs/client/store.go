package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"sort"
	"strconv"
	"sync"
)

// Events that a watch can still ask for.
const kept = 200_000

var version = []byte(`"resourceVersion":"`)

// A resource is a set of encoded objects, and what happened to them.
type resource struct {
	mutex   sync.Mutex
	clock   *clock
	objects map[string][]byte
	sorted  []string // keys as the last list had them, nil after a change of the set
	first   int      // how many events have been forgotten
	events  []event
	news    chan struct{}
}

type event struct {
	version int64
	line    []byte
}

// A clock gives versions, one for all resources together as etcd does.
type clock struct {
	mutex sync.Mutex
	at    int64
}

func (c *clock) now() int64 {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.at
}

func (c *clock) next() int64 {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.at++
	return c.at
}

func newResource(c *clock) *resource {
	return &resource{clock: c, objects: map[string][]byte{}, news: make(chan struct{})}
}

func (r *resource) load(path string) error {
	file, err := os.Open(path)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		raw := bytes.Clone(lines.Bytes())
		r.objects[keyOf(raw)] = raw
	}
	return lines.Err()
}

func keyOf(raw []byte) string {
	var named struct {
		Metadata struct{ Namespace, Name string }
	}
	if err := json.Unmarshal(raw, &named); err != nil {
		panic(err)
	}
	return named.Metadata.Namespace + "/" + named.Metadata.Name
}

func (r *resource) get(key string) []byte {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.objects[key]
}

// put sets an object to what change makes of it, and tells the watches; change returns nil to leave it.
func (r *resource) put(key string, change func([]byte) ([]byte, string)) ([]byte, string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	old, had := r.objects[key]
	raw, problem := change(old)
	if raw == nil {
		return nil, problem
	}
	at := r.clock.next()
	raw = versioned(raw, at)
	kind := "MODIFIED"
	if !had {
		kind, r.sorted = "ADDED", nil
	}
	r.objects[key] = raw
	r.tell(kind, raw, at)
	return raw, ""
}

func (r *resource) remove(key string) []byte {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	raw, had := r.objects[key]
	if !had {
		return nil
	}
	delete(r.objects, key)
	r.sorted = nil
	at := r.clock.next()
	r.tell("DELETED", versioned(raw, at), at)
	return raw
}

func (r *resource) tell(kind string, raw []byte, at int64) {
	line := make([]byte, 0, len(raw)+40)
	line = append(line, `{"type":"`+kind+`","object":`...)
	line = append(append(line, raw...), "}\n"...)
	r.events = append(r.events, event{at, line})
	if len(r.events) > 2*kept {
		r.first += kept
		r.events = append([]event(nil), r.events[kept:]...)
	}
	close(r.news)
	r.news = make(chan struct{})
}

// since returns the position after version, from which a watch goes on.
func (r *resource) since(at int64) int {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.first + sort.Search(len(r.events), func(i int) bool { return r.events[i].version > at })
}

// after returns what happened after position, the next position, and what is closed when more happens.
func (r *resource) after(position int) ([]event, int, chan struct{}) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if position < r.first {
		panic("a watch is too far behind")
	}
	return r.events[position-r.first:], r.first + len(r.events), r.news
}

// page returns encoded objects from offset on, and how many there are in all.
func (r *resource) page(offset, limit int) ([][]byte, int) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.sorted == nil {
		for key := range r.objects {
			r.sorted = append(r.sorted, key)
		}
		sort.Strings(r.sorted)
	}
	end := min(offset+limit, len(r.sorted))
	var found [][]byte
	for _, key := range r.sorted[min(offset, end):end] {
		found = append(found, r.objects[key])
	}
	return found, len(r.sorted)
}

// versioned returns raw with another resourceVersion; every object has one in its metadata, before any other.
func versioned(raw []byte, at int64) []byte {
	start := bytes.Index(raw, version)
	if start < 0 {
		panic("no resourceVersion: " + string(raw[:min(len(raw), 200)]))
	}
	start += len(version)
	end := start + bytes.IndexByte(raw[start:], '"')
	made := make([]byte, 0, len(raw)+8)
	made = append(made, raw[:start]...)
	made = strconv.AppendInt(made, at, 10)
	return append(made, raw[end:]...)
}
