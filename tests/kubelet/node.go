package main

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
	"k8s.io/kubernetes/pkg/kubelet/cm/dra"
	"k8s.io/kubernetes/pkg/kubelet/config"
	"k8s.io/kubernetes/pkg/kubelet/pluginmanager"
)

// node is one node's kubelet, and the drivers that run there.
type node struct {
	fleet   *fleet
	name    string
	folder  string
	drivers map[string]*driver
	client  kubernetes.Interface
	kubelet *kubelet
}

// kubelet is one process's life of a kubelet: the one after it has the same files.
type kubelet struct {
	manager *dra.Manager
	pods    *pods
	cancel  context.CancelFunc
	ended   sync.WaitGroup
}

func startNode(ctx context.Context, nodes *fleet, name string) (*node, error) {
	folder, err := os.MkdirTemp(nodes.folder, "n")
	if err != nil {
		return nil, err
	}
	for _, each := range []string{"state", "registry", "plugins"} {
		if err := os.Mkdir(filepath.Join(folder, each), 0o750); err != nil {
			return nil, err
		}
	}
	client, err := kubernetes.NewForConfig(nodes.config)
	if err != nil {
		return nil, err
	}
	made := &node{fleet: nodes, name: name, folder: folder, drivers: map[string]*driver{}, client: client}
	return made, made.start(ctx)
}

// start has the kubelet run, and waits until it has removed what was published while it was away.
func (n *node) start(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	wiped := &wipe{done: make(chan struct{})}
	observed := rest.CopyConfig(n.fleet.config)
	observed.Wrap(func(next http.RoundTripper) http.RoundTripper { wiped.next = next; return wiped })
	client, err := kubernetes.NewForConfig(observed)
	if err != nil {
		cancel()
		return err
	}
	manager, err := dra.NewManager(klog.Background(), client, filepath.Join(n.folder, "state"))
	if err != nil {
		cancel()
		return err
	}
	n.kubelet = &kubelet{manager: manager, pods: newPods(n, manager), cancel: cancel}
	ready := config.NewSourcesReady(func(sets.Set[string]) bool { return n.kubelet.pods.synced() })
	if err := manager.Start(ctx, n.kubelet.pods.active, n.get, ready); err != nil {
		cancel()
		return err
	}
	<-wiped.done
	plugins := pluginmanager.NewPluginManager(filepath.Join(n.folder, "registry"), &record.FakeRecorder{})
	plugins.AddHandler(registration.DRAPlugin, manager.GetWatcherHandler())
	n.kubelet.ended.Go(func() { plugins.Run(ctx, ready, ctx.Done()) })
	n.kubelet.ended.Go(func() { n.kubelet.pods.run(ctx) })
	return nil
}

// restart ends the kubelet and starts another; drivers run on.
func (n *node) restart(ctx context.Context) error {
	n.end()
	return n.start(ctx)
}

func (n *node) stop() error {
	for _, each := range n.drivers {
		if err := each.stop(); err != nil {
			return err
		}
	}
	n.end()
	return nil
}

func (n *node) end() {
	n.kubelet.cancel()
	n.kubelet.ended.Wait()
	n.kubelet.manager.Stop()
}

func (n *node) driver(name string) *driver {
	if n.drivers[name] == nil {
		n.drivers[name] = newDriver(n, name)
	}
	return n.drivers[name]
}

func (n *node) get(ctx context.Context) (*v1.Node, error) {
	return n.client.CoreV1().Nodes().Get(ctx, n.name, metav1.GetOptions{})
}

// wipe sees when a kubelet has removed the ResourceSlices of its node, as it does first of all.
type wipe struct {
	next http.RoundTripper
	once sync.Once
	done chan struct{}
}

func (w *wipe) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := w.next.RoundTrip(request)
	if request.Method == http.MethodDelete && strings.HasSuffix(request.URL.Path, "/resourceslices") && err == nil && response.StatusCode < 300 {
		w.once.Do(func() { close(w.done) })
	}
	return response, err
}
