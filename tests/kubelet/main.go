// Command dra-kubelet stands in for nodes: the kubelet's own DRA and plugin managers, and drivers over its own helper.
//
// It is told what to do by JSON lines, answers each, and tells what happens meanwhile; with its input it ends.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"sync"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/dynamic-resource-allocation/resourceslice"
	"k8s.io/klog/v2"
)

// order is one line of the input: what is to be done, on which node, by which driver.
type order struct {
	Do        string
	Node      string
	Driver    string
	Resources resourceslice.DriverResources
}

// event is one line of the output: the answer to an order ("done"), or what happened.
type event struct {
	What       string              `json:"what"`
	Node       string              `json:"node,omitempty"`
	Pod        string              `json:"pod,omitempty"`
	Claim      string              `json:"claim,omitempty"`
	Error      string              `json:"error,omitempty"`
	Containers map[string][]string `json:"containers,omitempty"`
	Devices    []handed            `json:"devices,omitempty"`
}

// teller writes events, one after the other.
type teller struct {
	mutex   sync.Mutex
	encoder *json.Encoder
}

func (t *teller) tell(what event) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if err := t.encoder.Encode(what); err != nil {
		os.Exit(1)
	}
}

func main() {
	kubeconfig := flag.String("kubeconfig", "", "how to reach the API server")
	klog.InitFlags(nil)
	flag.Parse()
	if err := serve(*kubeconfig); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS, config.Burst = 5000, 5000
	// Short: the paths of sockets have an end.
	folder, err := os.MkdirTemp("", "kubelet")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	nodes := &fleet{config: config, folder: folder, teller: &teller{encoder: json.NewEncoder(os.Stdout)}, nodes: map[string]*node{}}
	if err := obey(ctx, nodes); err != nil {
		return err
	}
	// Before its files go.
	for _, each := range nodes.nodes {
		if err := each.stop(); err != nil {
			return err
		}
	}
	return nil
}

// fleet is all nodes that this program stands in for.
type fleet struct {
	config *rest.Config
	folder string
	teller *teller
	nodes  map[string]*node
}

func obey(ctx context.Context, nodes *fleet) error {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<26)
	for lines.Scan() {
		var told order
		if err := json.Unmarshal(lines.Bytes(), &told); err != nil {
			return fmt.Errorf("%s: %w", lines.Bytes(), err)
		}
		answer := event{What: "done"}
		if err := nodes.obey(ctx, told); err != nil {
			answer.Error = err.Error()
		}
		nodes.teller.tell(answer)
	}
	return lines.Err()
}

func (f *fleet) obey(ctx context.Context, told order) error {
	at, known := f.nodes[told.Node]
	if !known {
		started, err := startNode(ctx, f, told.Node)
		if err != nil {
			return err
		}
		at, f.nodes[told.Node] = started, started
	}
	switch told.Do {
	case "publish":
		return at.driver(told.Driver).publish(ctx, told.Resources)
	case "unplug":
		return at.driver(told.Driver).unplug()
	case "stop":
		return at.driver(told.Driver).stop()
	case "restart":
		return at.restart(ctx)
	case "leave":
		delete(f.nodes, told.Node)
		return at.stop()
	}
	return fmt.Errorf("nobody knows how to %q", told.Do)
}
