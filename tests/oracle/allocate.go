package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/component-helpers/nodedeclaredfeatures/features/draoptionalnodeoperations"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
)

// filterTimeout is kube-scheduler's default for the search on one node.
const filterTimeout = 10 * time.Second

// allocationQuestion is a line of `dra-extender allocate`.
type allocationQuestion struct {
	Name         string
	Nodes        []*corev1.Node
	Node         *corev1.Node
	Classes      []*resourceapi.DeviceClass
	Slices       []*resourceapi.ResourceSlice
	Claims       []*resourceapi.ResourceClaim
	Allocated    []*resourceapi.ResourceClaim
	TaintRules   []*resourceapi.DeviceTaintRule
	UsedDevices  []usedDevice
	UsedShares   []usedShare
	UsedCapacity []usedCapacity
	Features     *[]string
	Allocator    string
}

type allocationAnswer struct {
	Name  string                `json:"name"`
	Nodes map[string]nodeAnswer `json:"nodes"`
}

// nodeAnswer has a nodeError where only this node is rejected, a fatalError where the pod is.
type nodeAnswer struct {
	Fits        bool                           `json:"fits"`
	Allocations []resourceapi.AllocationResult `json:"allocations"`
	NodeError   string                         `json:"nodeError"`
	FatalError  string                         `json:"fatalError"`
	Micros      float64                        `json:"micros"`
}

// allocated asks the real allocator, one node after the other. It is the experimental variant, which supports every gate,
// unless the question names another: the stable one takes pools in the order of a Go map, which cannot be compared.
func allocated(line []byte) (any, error) {
	var question allocationQuestion
	if err := json.Unmarshal(line, &question); err != nil {
		return nil, err
	}
	gates, err := gatesOf(question.Features)
	if err != nil {
		return nil, err
	}
	if question.Node != nil {
		question.Nodes = append(question.Nodes, question.Node)
	}
	structured.EnableAllocators(cmp.Or(question.Allocator, "experimental"))
	allocator, err := structured.NewAllocator(context.Background(), gates.allocator, question.usage(gates), lister(question.Classes),
		tainted(question.Slices, question.TaintRules, gates), expressions())
	if err != nil {
		return nil, err
	}
	answer := allocationAnswer{question.Name, make(map[string]nodeAnswer, len(question.Nodes))}
	for _, node := range question.Nodes {
		answer.Nodes[node.Name] = question.answered(allocator, node)
	}
	return answer, nil
}

// expressions is one cache for all questions, so that micros does not tell how long compilers take.
var expressions = sync.OnceValue(func() *dracel.Cache {
	return dracel.NewCache(10_000, dracel.Features{EnableConsumableCapacity: true, EnableListTypeAttributes: true})
})

// answered does for one node what the scheduler's Filter does: an allocated claim must be usable there, the others are
// allocated together. Without any of those there is nothing to search.
func (q *allocationQuestion) answered(allocator structured.Allocator, node *corev1.Node) nodeAnswer {
	pending, usable, err := q.pendingOn(node)
	if err != nil {
		return nodeAnswer{FatalError: err.Error()}
	}
	if !usable {
		return nodeAnswer{}
	}
	ctx, cancel := context.WithTimeout(context.Background(), filterTimeout)
	defer cancel()
	start := time.Now()
	var results []resourceapi.AllocationResult
	if len(pending) > 0 {
		results, err = allocator.Allocate(ctx, node, pending)
	}
	micros := float64(time.Since(start).Nanoseconds()) / 1000
	switch {
	case errors.Is(err, structured.ErrFailedAllocationOnNode):
		return nodeAnswer{NodeError: err.Error(), Micros: micros}
	case err != nil:
		return nodeAnswer{FatalError: err.Error(), Micros: micros}
	case len(results) != len(pending):
		return nodeAnswer{Micros: micros}
	}
	return nodeAnswer{Fits: true, Allocations: q.inClaimOrder(results), Micros: micros}
}

// pendingOn returns the claims to allocate, and whether those that are allocated can be used on the node.
func (q *allocationQuestion) pendingOn(node *corev1.Node) ([]*resourceapi.ResourceClaim, bool, error) {
	var pending []*resourceapi.ResourceClaim
	usable := true
	for _, claim := range q.Claims {
		allocation := claim.Status.Allocation
		if allocation == nil {
			pending = append(pending, claim)
			continue
		}
		usable = usable && (!skipsNodeOperations(allocation) ||
			slices.Contains(node.Status.DeclaredFeatures, draoptionalnodeoperations.DRAOptionalNodeOperationsFeatureGate))
		if allocation.NodeSelector != nil {
			selector, err := nodeaffinity.NewNodeSelector(allocation.NodeSelector)
			if err != nil {
				return nil, false, fmt.Errorf("claim %s: %w", claim.Name, err)
			}
			usable = usable && selector.Match(node)
		}
	}
	return pending, usable, nil
}

func skipsNodeOperations(allocation *resourceapi.AllocationResult) bool {
	return slices.ContainsFunc(allocation.Devices.Results, func(result resourceapi.DeviceRequestAllocationResult) bool {
		return len(result.SkipNodeOperations) > 0
	})
}

// inClaimOrder puts the allocations that claims have already between the new ones.
func (q *allocationQuestion) inClaimOrder(results []resourceapi.AllocationResult) []resourceapi.AllocationResult {
	all := make([]resourceapi.AllocationResult, 0, len(q.Claims))
	for _, claim := range q.Claims {
		if claim.Status.Allocation != nil {
			all = append(all, *claim.Status.Allocation)
			continue
		}
		all = append(all, results[0])
		results = results[1:]
	}
	return all
}
