package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/kubernetes/pkg/kubelet/cm/dra"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
	schedulerframework "k8s.io/kubernetes/pkg/scheduler/framework"
)

// What pods are annotated with: a pod that ends does so well, and one that lingers takes its time to go once it is deleted.
const ends, lingers = "kubelet.tests/ends", "kubelet.tests/lingers"

// A kubelet tries again after much longer, and says the same then.
const retry = 200 * time.Millisecond

// pods is what a kubelet does with the pods of its node, as far as devices are concerned.
type pods struct {
	node     *node
	manager  *dra.Manager
	admit    lifecycle.PodAdmitHandler
	informer cache.SharedIndexInformer
	queue    workqueue.TypedDelayingInterface[string]
	// seen is what only run reads and writes.
	seen map[string]*seen
}

// seen is one pod, under the key by which it is in the informer.
type seen struct {
	pod     *v1.Pod
	running bool
	refused string
}

func newPods(at *node, manager *dra.Manager) *pods {
	selected := func(options *metav1.ListOptions) {
		options.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", at.name).String()
	}
	factory := informers.NewSharedInformerFactoryWithOptions(at.client, 0, informers.WithTweakListOptions(selected))
	made := &pods{node: at, manager: manager, informer: factory.Core().V1().Pods().Informer(), seen: map[string]*seen{}}
	made.queue = workqueue.NewTypedDelayingQueue[string]()
	made.admit = lifecycle.NewPredicateAdmitHandler(made.anyNode, unrecovered{}, noPlugins)
	return made
}

func (p *pods) run(ctx context.Context) {
	add := func(found any) {
		if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(found); err == nil {
			p.queue.Add(key)
		}
	}
	handlers := cache.ResourceEventHandlerFuncs{AddFunc: add, UpdateFunc: func(_, new any) { add(new) }, DeleteFunc: add}
	if _, err := p.informer.AddEventHandler(handlers); err != nil {
		panic(err)
	}
	go func() { <-ctx.Done(); p.queue.ShutDown() }()
	go p.informer.RunWithContext(ctx)
	for {
		key, stopped := p.queue.Get()
		if stopped {
			return
		}
		if again := p.sync(ctx, key); again > 0 {
			p.queue.AddAfter(key, again)
		}
		p.queue.Done(key)
	}
}

func (p *pods) synced() bool { return p.informer.HasSynced() }

// active returns the pods that the manager may not take devices from.
func (p *pods) active() []*v1.Pod {
	var found []*v1.Pod
	for _, each := range p.informer.GetStore().List() {
		if pod := each.(*v1.Pod); !ended(pod) {
			found = append(found, pod)
		}
	}
	return found
}

// sync does what is to be done about a pod now, and returns after which time to look again.
func (p *pods) sync(ctx context.Context, key string) time.Duration {
	found, exists, _ := p.informer.GetStore().GetByKey(key)
	before := p.seen[key]
	if before != nil && (!exists || found.(*v1.Pod).UID != before.pod.UID) {
		// Deleted by force: what it had is taken back all the same.
		if err := p.manager.UnprepareResources(ctx, before.pod); err != nil {
			return p.troubled(ctx, before.pod, err)
		}
		delete(p.seen, key)
		return time.Nanosecond
	}
	if !exists {
		return 0
	}
	pod := found.(*v1.Pod)
	if before == nil {
		before = &seen{}
		p.seen[key] = before
	}
	before.pod = pod
	switch {
	case pod.DeletionTimestamp != nil && pod.Annotations[lingers] != "":
		return 0
	case pod.DeletionTimestamp != nil:
		return p.finish(ctx, before, func() error { return p.remove(ctx, pod) })
	case ended(pod):
		return 0
	case !before.running:
		return p.begin(ctx, before)
	case pod.Annotations[ends] != "":
		return p.finish(ctx, before, func() error { return p.patch(ctx, pod, map[string]any{"phase": v1.PodSucceeded}) })
	}
	return 0
}

// begin prepares a pod's devices, tells what each container has of them, and lets it run.
func (p *pods) begin(ctx context.Context, at *seen) time.Duration {
	pod := at.pod
	if result := p.admit.Admit(ctx, &lifecycle.PodAdmitAttributes{Pod: pod, OtherPods: p.others(pod)}); !result.Admit {
		p.tell(event{What: "refused", Pod: name(pod), Error: fmt.Sprintf("%s: %s", result.Reason, result.Message)})
		return p.then(ctx, pod, p.patch(ctx, pod, map[string]any{"phase": v1.PodFailed, "reason": result.Reason}))
	}
	if err := p.manager.PrepareResources(ctx, pod); err != nil {
		if at.refused != err.Error() {
			at.refused = err.Error()
			p.tell(event{What: "refused", Pod: name(pod), Error: err.Error()})
		}
		return retry
	}
	containers, err := p.containers(pod)
	if err != nil {
		return p.troubled(ctx, pod, err)
	}
	if err := p.patch(ctx, pod, running(pod)); err != nil {
		return p.then(ctx, pod, err)
	}
	at.running = true
	p.tell(event{What: "running", Pod: name(pod), Containers: containers})
	return 0
}

// containers returns the CDI ids that the kubelet hands to the runtime for each container.
func (p *pods) containers(pod *v1.Pod) (map[string][]string, error) {
	found := map[string][]string{}
	for _, each := range append(append([]v1.Container{}, pod.Spec.InitContainers...), pod.Spec.Containers...) {
		info, err := p.manager.GetResources(pod, &each)
		if err != nil {
			return nil, err
		}
		// What the kubelet answers to those who ask for the resources of pods.
		if _, err := p.manager.GetContainerClaimInfos(pod, &each); err != nil {
			return nil, err
		}
		found[each.Name] = []string{}
		for _, device := range info.CDIDevices {
			found[each.Name] = append(found[each.Name], device.Name)
		}
	}
	return found, nil
}

// finish takes a pod's devices back, and tells the API server only then.
func (p *pods) finish(ctx context.Context, at *seen, report func() error) time.Duration {
	if err := p.manager.UnprepareResources(ctx, at.pod); err != nil {
		return p.troubled(ctx, at.pod, err)
	}
	return p.then(ctx, at.pod, report())
}

func (p *pods) remove(ctx context.Context, pod *v1.Pod) error {
	options := metav1.NewDeleteOptions(0)
	options.Preconditions = metav1.NewUIDPreconditions(string(pod.UID))
	return p.node.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, *options)
}

func (p *pods) patch(ctx context.Context, pod *v1.Pod, status map[string]any) error {
	change, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": status})
	if err != nil {
		return err
	}
	_, err = p.node.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, change, metav1.PatchOptions{}, "status")
	return err
}

// then returns after which time to look again after a call of the API server.
func (p *pods) then(ctx context.Context, pod *v1.Pod, err error) time.Duration {
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return 0
	}
	return p.troubled(ctx, pod, err)
}

func (p *pods) troubled(ctx context.Context, pod *v1.Pod, err error) time.Duration {
	if ctx.Err() == nil {
		p.tell(event{What: "trouble", Pod: name(pod), Error: err.Error()})
	}
	return retry
}

func (p *pods) tell(what event) {
	what.Node = p.node.name
	p.node.fleet.teller.tell(what)
}

func (p *pods) others(pod *v1.Pod) []*v1.Pod {
	var found []*v1.Pod
	for _, each := range p.active() {
		if each.UID != pod.UID {
			found = append(found, each)
		}
	}
	return found
}

func (p *pods) anyNode(ctx context.Context, _ bool) (*v1.Node, error) { return p.node.get(ctx) }

// unrecovered evicts nobody for a pod that does not fit.
type unrecovered struct{}

func (unrecovered) HandleAdmissionFailure(_ context.Context, _ *v1.Pod, reasons []lifecycle.PredicateFailureReason, _ lifecycle.Operation) ([]lifecycle.PredicateFailureReason, error) {
	return reasons, nil
}

func noPlugins(*schedulerframework.NodeInfo, *lifecycle.PodAdmitAttributes) error { return nil }

func ended(pod *v1.Pod) bool {
	return pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed
}

func running(pod *v1.Pod) map[string]any {
	ready := map[string]any{"type": v1.PodReady, "status": "True", "lastTransitionTime": metav1.Now()}
	return map[string]any{"phase": v1.PodRunning, "startTime": metav1.Now(), "conditions": []any{ready}}
}

func name(pod *v1.Pod) string { return pod.Namespace + "/" + pod.Name }
