package main

import (
	"encoding/json"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"
)

// footprint counts what a bound pod takes as kube-scheduler does, with the features that are on by default.
func footprint(line []byte) (any, error) {
	var pod v1.Pod
	if err := json.Unmarshal(line, &pod); err != nil {
		return nil, err
	}
	answer := map[v1.ResourceName]int64{}
	for name, quantity := range resource.PodRequests(&pod, resource.PodResourcesOptions{
		UseStatusResources: true,
		InPlacePodLevelResourcesVerticalScalingEnabled: true,
	}) {
		if name == v1.ResourceCPU {
			answer[name] = quantity.MilliValue()
		} else {
			answer[name] = quantity.Value()
		}
	}
	return answer, nil
}
