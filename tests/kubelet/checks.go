package main

import (
	"errors"
	"fmt"
	"slices"

	resource "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
)

// check tells what is wrong with one result of a claim by itself.
func (d *driver) check(claim *resource.ResourceClaim, result resource.DeviceRequestAllocationResult) error {
	device, plugged := d.plugged[key{result.Pool, result.Device}]
	if !plugged {
		return errors.New("there is no such device")
	}
	asked, err := requestOf(claim, result.Request)
	if err != nil {
		return err
	}
	if deref(asked.AdminAccess) != deref(result.AdminAccess) {
		return fmt.Errorf("administration is %v, and was to be %v", deref(result.AdminAccess), deref(asked.AdminAccess))
	}
	if !equality.Semantic.DeepEqual(asked.Tolerations, result.Tolerations) {
		return fmt.Errorf("tolerates %v, and was to tolerate %v", result.Tolerations, asked.Tolerations)
	}
	if deref(device.AllowMultipleAllocations) != (result.ShareID != nil) {
		return fmt.Errorf("the share is %v of a device that is shared: %v", result.ShareID, deref(device.AllowMultipleAllocations))
	}
	return conditions(claim, device, result)
}

// requestOf returns the request or subrequest that a result names.
func requestOf(claim *resource.ResourceClaim, name string) (*resource.ExactDeviceRequest, error) {
	for _, each := range claim.Spec.Devices.Requests {
		if each.Exactly != nil && each.Name == name {
			return each.Exactly, nil
		}
		for _, sub := range each.FirstAvailable {
			if resourceclaim.CreateSubRequestRef(each.Name, sub.Name) == name {
				return &resource.ExactDeviceRequest{Tolerations: sub.Tolerations}, nil
			}
		}
	}
	return nil, errors.New("the claim has no such request")
}

// conditions tells what a device still waits for, or lacks in the claim of what it would wait for.
func conditions(claim *resource.ResourceClaim, device resource.Device, result resource.DeviceRequestAllocationResult) error {
	if !slices.Equal(device.BindingConditions, result.BindingConditions) || !slices.Equal(device.BindingFailureConditions, result.BindingFailureConditions) {
		return fmt.Errorf("waits for %v and fails with %v, other than the device", result.BindingConditions, result.BindingFailureConditions)
	}
	met := map[string]bool{}
	for _, each := range claim.Status.Devices {
		if each.Driver == result.Driver && each.Pool == result.Pool && each.Device == result.Device {
			for _, condition := range each.Conditions {
				met[condition.Type] = condition.Status == "True"
			}
		}
	}
	for _, each := range result.BindingConditions {
		if !met[each] {
			return fmt.Errorf("%s is not met", each)
		}
	}
	return nil
}

// fits tells whether what would be prepared can be had beside what is prepared.
func (d *driver) fits(made []handed) error {
	given := slices.Clone(made)
	for _, each := range d.prepared {
		given = append(given, each...)
	}
	given = slices.DeleteFunc(given, func(each handed) bool { return deref(each.result.AdminAccess) })
	users := map[key]string{}
	consumed := map[key]map[string]quantity.Quantity{}
	for _, each := range given {
		at := key{each.Pool, each.Device}
		if each.result.ShareID == nil && users[at] != "" {
			return fmt.Errorf("%s/%s is given twice: to %s and %s", each.Pool, each.Device, each.Claim, users[at])
		}
		users[at] = each.Claim
		for name, amount := range each.result.ConsumedCapacity {
			add(consumed, at, string(name), amount)
		}
	}
	for at, amounts := range consumed {
		for name, amount := range amounts {
			if there := d.plugged[at].Capacity[resource.QualifiedName(name)]; amount.Cmp(there.Value) > 0 {
				return fmt.Errorf("of %s of %s/%s %s are given, and there are %s", name, at.pool, at.device, amount.String(), there.Value.String())
			}
		}
	}
	return d.counts(users)
}

// counts tells whether the counters of the pools suffice for all devices in use.
func (d *driver) counts(users map[key]string) error {
	drawn := map[key]map[string]quantity.Quantity{}
	for at := range users {
		for _, each := range d.plugged[at].ConsumesCounters {
			for name, amount := range each.Counters {
				add(drawn, key{at.pool, each.CounterSet}, name, amount.Value)
			}
		}
	}
	for pool, each := range d.published.Pools {
		for _, slice := range each.Slices {
			for _, set := range slice.SharedCounters {
				for name, amount := range drawn[key{pool, set.Name}] {
					if there := set.Counters[name]; amount.Cmp(there.Value) > 0 {
						return fmt.Errorf("of %s of %s/%s %s are given, and there are %s", name, pool, set.Name, amount.String(), there.Value.String())
					}
				}
			}
		}
	}
	return nil
}

func add(sums map[key]map[string]quantity.Quantity, at key, name string, amount quantity.Quantity) {
	if sums[at] == nil {
		sums[at] = map[string]quantity.Quantity{}
	}
	sum := sums[at][name]
	sum.Add(amount)
	sums[at][name] = sum
}

func deref(flag *bool) bool { return flag != nil && *flag }
