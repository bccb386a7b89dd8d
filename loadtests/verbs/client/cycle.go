package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand"
	"net/http"
	"os"
	"sync"
	"time"
)

// What the extender says of a pod whose claim its watch has not brought yet.
const notThere = "a claim of the pod is not there yet"

// The same JSON as k8s.io/kube-scheduler/extender/v1, of which nothing else is used.
type extenderArgs struct {
	Pod       json.RawMessage
	Nodes     *struct{}
	NodeNames *[]string
}

type filterResult struct {
	Nodes                                   *struct{}
	NodeNames                               *[]string
	FailedNodes, FailedAndUnresolvableNodes map[string]string
	Error                                   string
}

type hostPriority struct {
	Host  string
	Score int64
}

type bindingArgs struct {
	PodName, PodNamespace string
	PodUID                string
	Node                  string
}

type bindingResult struct{ Error string }

type pod struct {
	Metadata struct{ Name, Namespace, Uid string }
	raw      json.RawMessage
}

// What a run tells: microseconds of each call from the first byte sent to the last one read, those of encoding and
// decoding, of each pod.
type told struct {
	Filter, Prioritize, Bind, Json []int64
	Bound, Rejected                int
	Failed                         map[string]int
	Seconds                        float64
	Began, Ended                   float64
}

type client struct {
	http          http.Client
	url, api      string
	names, shapes string
	window        int
	async         bool
	everything    []string
	mutex         sync.Mutex
	told          told
}

func cycle(arguments []string) error {
	c := &client{told: told{Failed: map[string]int{}}}
	flags := flag.NewFlagSet("cycle", flag.ExitOnError)
	flags.StringVar(&c.url, "extender", "", "address of the extender")
	flags.StringVar(&c.api, "api", "", "address of the API server, plain")
	flags.StringVar(&c.shapes, "shapes", "one", "shapes of claims, which take turns")
	flags.IntVar(&c.window, "names", 0, "how many nodes each pod is offered, taking turns; all without")
	flags.BoolVar(&c.async, "async", false, "bind while the next pod is asked about, as kube-scheduler does")
	pods := flags.Int("pods", 500, "pods to schedule")
	batch := flags.Int("batch", 500, "pods that wait at a time")
	warm := flags.Int("warm", 40, "pods before, which are not measured")
	flags.Parse(arguments)
	c.http.Transport = &http.Transport{MaxIdleConnsPerHost: 64, WriteBufferSize: 64 << 10, ReadBufferSize: 64 << 10}
	if err := c.ask(c.api+"/load/names", nil, &c.everything); err != nil {
		return err
	}
	if c.window == 0 || c.window > len(c.everything) {
		c.window = len(c.everything)
	}
	if _, err := c.round(*warm); err != nil {
		return err
	}
	c.told = told{Failed: map[string]int{}, Began: now()}
	for left := *pods; left > 0; left -= *batch {
		spent, err := c.round(min(left, *batch))
		if err != nil {
			return err
		}
		c.told.Seconds += spent
	}
	c.told.Ended = now()
	return json.NewEncoder(os.Stdout).Encode(c.told)
}

func now() float64 { return float64(time.Now().UnixNano()) / 1e9 }

// round schedules some pods, and ends them; it returns how long scheduling took.
func (c *client) round(count int) (float64, error) {
	pods, err := c.made(count+1, c.shapes)
	if err != nil {
		return 0, err
	}
	last := pods[count]
	if err := c.shown(last); err != nil {
		return 0, err
	}
	began := time.Now()
	var binding sync.WaitGroup
	for number, each := range pods[:count] {
		if err := c.scheduled(each, number, &binding); err != nil {
			return 0, err
		}
	}
	binding.Wait()
	spent := time.Since(began).Seconds()
	var names []string
	for _, each := range pods {
		names = append(names, each.Metadata.Name)
	}
	return spent, c.ask(c.api+"/load/end", names, &struct{}{})
}

func (c *client) made(count int, shapes string) ([]pod, error) {
	var raws []json.RawMessage
	if err := c.ask(fmt.Sprintf("%s/load/pods?count=%d&shapes=%s", c.api, count, shapes), nil, &raws); err != nil {
		return nil, err
	}
	pods := make([]pod, len(raws))
	for at, raw := range raws {
		if err := json.Unmarshal(raw, &pods[at]); err != nil {
			return nil, err
		}
		pods[at].raw = raw
	}
	return pods, nil
}

// shown waits until the extender knows a pod's claim, and with it all that was made before: as long as it does not, its
// answer is that of a claim that is not there.
func (c *client) shown(last pod) error {
	names := c.everything[:1]
	for tries := 0; tries < 2000; tries++ {
		var result filterResult
		if err := c.ask(c.url+"/filter", extenderArgs{Pod: last.raw, NodeNames: &names}, &result); err != nil {
			return err
		}
		why := result.FailedAndUnresolvableNodes[names[0]] + result.FailedNodes[names[0]]
		if why != notThere && result.Error == "" {
			return nil
		}
		time.Sleep(5 * time.Millisecond)
	}
	return fmt.Errorf("the extender is not shown pod %s", last.Metadata.Name)
}

func (c *client) offered(number int) []string {
	names := make([]string, c.window)
	start := number * c.window
	for at := range names {
		names[at] = c.everything[(start+at)%len(c.everything)]
	}
	// kube-scheduler filters in parallel: no two calls have the same order.
	rand.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	return names
}

// scheduled takes one pod through filter, prioritize and bind.
func (c *client) scheduled(each pod, number int, binding *sync.WaitGroup) error {
	names := c.offered(number)
	var filtered filterResult
	wire, coded, err := c.call("/filter", extenderArgs{Pod: each.raw, NodeNames: &names}, &filtered)
	if err != nil {
		return err
	}
	c.told.Filter = append(c.told.Filter, wire)
	if filtered.Error != "" || filtered.NodeNames == nil || len(*filtered.NodeNames) == 0 {
		c.fail(filtered)
		c.told.Json = append(c.told.Json, coded)
		return nil
	}
	node := (*filtered.NodeNames)[0]
	if len(*filtered.NodeNames) > 1 {
		var scores []hostPriority
		wire, more, err := c.call("/prioritize", extenderArgs{Pod: each.raw, NodeNames: filtered.NodeNames}, &scores)
		if err != nil {
			return err
		}
		c.told.Prioritize = append(c.told.Prioritize, wire)
		coded += more
		best := int64(-1)
		for _, score := range scores {
			if score.Score > best {
				node, best = score.Host, score.Score
			}
		}
	}
	c.told.Json = append(c.told.Json, coded)
	if !c.async {
		return c.bound(each, node)
	}
	binding.Add(1)
	go func() {
		defer binding.Done()
		if err := c.bound(each, node); err != nil {
			panic(err)
		}
	}()
	return nil
}

func (c *client) fail(filtered filterResult) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if filtered.Error != "" {
		c.told.Failed[filtered.Error]++
	} else {
		c.told.Rejected++
	}
}

func (c *client) bound(each pod, node string) error {
	asked := bindingArgs{each.Metadata.Name, each.Metadata.Namespace, each.Metadata.Uid, node}
	var result bindingResult
	wire, _, err := c.call("/bind", asked, &result)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.told.Bind = append(c.told.Bind, wire)
	if result.Error != "" {
		c.told.Failed[result.Error]++
	} else {
		c.told.Bound++
	}
	return err
}

// call asks the extender; it returns the microseconds on the wire, and those of JSON.
func (c *client) call(verb string, asked, answer any) (int64, int64, error) {
	began := time.Now()
	body, err := json.Marshal(asked)
	if err != nil {
		return 0, 0, err
	}
	encoded := time.Now()
	replied, err := c.posted(c.url+verb, body)
	if err != nil {
		return 0, 0, err
	}
	received := time.Now()
	if err := json.Unmarshal(replied, answer); err != nil {
		return 0, 0, fmt.Errorf("%s: %w: %.100s", verb, err, replied)
	}
	coded := encoded.Sub(began) + time.Since(received)
	return received.Sub(encoded).Microseconds(), coded.Microseconds(), nil
}

func (c *client) posted(url string, body []byte) ([]byte, error) {
	response, err := c.http.Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	read, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != 200 {
		err = fmt.Errorf("%s: %d %.200s", url, response.StatusCode, read)
	}
	return read, err
}

func (c *client) ask(url string, asked, answer any) error {
	body, err := json.Marshal(asked)
	if err != nil {
		return err
	}
	read, err := c.posted(url, body)
	if err != nil {
		return err
	}
	return json.Unmarshal(read, answer)
}
