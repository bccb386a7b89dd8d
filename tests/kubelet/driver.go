package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	resource "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/dynamic-resource-allocation/resourceslice"
)

// driver is a DRA driver on one node; what it knows outlives its processes, as a checkpoint does.
type driver struct {
	node   *node
	name   string
	helper *kubeletplugin.Helper
	// mutex guards what is below.
	mutex     sync.Mutex
	published resourceslice.DriverResources
	plugged   map[key]resource.Device
	prepared  map[types.UID][]handed
}

// key names a device among those of a driver.
type key struct{ pool, device string }

// handed is a device as it was prepared for a claim, and everything that the claim says of it.
type handed struct {
	Claim      string   `json:"claim"`
	Request    string   `json:"request"`
	Pool       string   `json:"pool"`
	Device     string   `json:"device"`
	ID         string   `json:"id"`
	Parameters []string `json:"parameters,omitempty"`
	result     resource.DeviceRequestAllocationResult
}

func newDriver(at *node, name string) *driver {
	return &driver{node: at, name: name, plugged: map[key]resource.Device{}, prepared: map[types.UID][]handed{}}
}

// publish says what there is; the first time, or after a stop, the driver starts.
func (d *driver) publish(ctx context.Context, resources resourceslice.DriverResources) error {
	if d.helper == nil {
		if err := d.start(ctx); err != nil {
			return err
		}
	}
	d.mutex.Lock()
	d.published = resources
	for each, device := range devices(resources) {
		d.plugged[each] = device
	}
	d.mutex.Unlock()
	return d.helper.PublishResources(ctx, resources)
}

// unplug takes away what is not published: it is refused from now on.
func (d *driver) unplug() error {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.plugged = devices(d.published)
	return nil
}

func (d *driver) start(ctx context.Context) error {
	data := filepath.Join(d.node.folder, "plugins", d.name)
	if err := os.MkdirAll(data, 0o750); err != nil {
		return err
	}
	helper, err := kubeletplugin.Start(ctx, d,
		kubeletplugin.DriverName(d.name), kubeletplugin.KubeClient(d.node.client), kubeletplugin.NodeName(d.node.name),
		kubeletplugin.RegistrarDirectoryPath(filepath.Join(d.node.folder, "registry")), kubeletplugin.PluginDataDirectoryPath(data))
	d.helper = helper
	return err
}

func (d *driver) stop() error {
	d.helper.Stop()
	d.helper = nil
	return nil
}

// PrepareResourceClaims gives what the claims say, or says why it cannot be given.
func (d *driver) PrepareResourceClaims(_ context.Context, claims []*resource.ResourceClaim) (map[types.UID]kubeletplugin.PrepareResult, error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	results := map[types.UID]kubeletplugin.PrepareResult{}
	for _, claim := range claims {
		given, known := d.prepared[claim.UID]
		if !known {
			made, err := d.prepare(claim)
			if err != nil {
				results[claim.UID] = kubeletplugin.PrepareResult{Err: err}
				continue
			}
			given = made
			d.prepared[claim.UID] = made
			d.tell(event{What: "prepared", Claim: claim.Namespace + "/" + claim.Name, Devices: made})
		}
		results[claim.UID] = kubeletplugin.PrepareResult{Devices: answered(given)}
	}
	return results, nil
}

func answered(given []handed) []kubeletplugin.Device {
	var found []kubeletplugin.Device
	for _, each := range given {
		found = append(found, kubeletplugin.Device{
			Requests: []string{each.Request}, PoolName: each.Pool, DeviceName: each.Device,
			CDIDeviceIDs: []string{each.ID}, ShareID: each.result.ShareID,
		})
	}
	return found
}

// UnprepareResourceClaims takes back what was given.
func (d *driver) UnprepareResourceClaims(_ context.Context, claims []kubeletplugin.NamespacedObject) (map[types.UID]error, error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	results := map[types.UID]error{}
	for _, claim := range claims {
		results[claim.UID] = nil
		if _, known := d.prepared[claim.UID]; known {
			delete(d.prepared, claim.UID)
			d.tell(event{What: "unprepared", Claim: claim.String()})
		}
	}
	return results, nil
}

// HandleError tells what could not be published as it is. A slice that is gone when it is to change is no trouble: the
// library had not heard of its end, and publishes it anew once it has.
func (d *driver) HandleError(ctx context.Context, err error, message string) {
	if ctx.Err() == nil && !apierrors.IsNotFound(err) {
		d.tell(event{What: "trouble", Error: message + ": " + err.Error()})
	}
}

// WatchHealthStatus knows nothing of health.
func (d *driver) WatchHealthStatus(context.Context, chan<- kubeletplugin.DeviceHealthReport) error {
	return kubeletplugin.ErrHealthNotSupported
}

func (d *driver) tell(what event) {
	what.Node = d.node.name
	d.node.fleet.teller.tell(what)
}

func (d *driver) prepare(claim *resource.ResourceClaim) ([]handed, error) {
	if len(claim.Status.ReservedFor) == 0 {
		return nil, errors.New("reserved for nobody")
	}
	var made []handed
	for _, result := range claim.Status.Allocation.Devices.Results {
		if result.Driver != d.name {
			continue
		}
		if err := d.check(claim, result); err != nil {
			return nil, fmt.Errorf("%s/%s for %s: %w", result.Pool, result.Device, result.Request, err)
		}
		made = append(made, d.hand(claim, result))
	}
	return made, d.fits(made)
}

func (d *driver) hand(claim *resource.ResourceClaim, result resource.DeviceRequestAllocationResult) handed {
	id := fmt.Sprintf("%s/device=%s-%s", d.name, result.Pool, result.Device)
	if result.ShareID != nil {
		id += "-" + string(*result.ShareID)
	}
	made := handed{
		Claim: claim.Namespace + "/" + claim.Name, Request: result.Request, Pool: result.Pool, Device: result.Device, ID: id, result: result,
	}
	for _, each := range resourceclaim.ConfigForResult(claim.Status.Allocation.Devices.Config, result) {
		made.Parameters = append(made.Parameters, string(each.Source)+" "+string(each.Opaque.Parameters.Raw))
	}
	return made
}

func devices(resources resourceslice.DriverResources) map[key]resource.Device {
	found := map[key]resource.Device{}
	for pool, each := range resources.Pools {
		for _, slice := range each.Slices {
			for _, device := range slice.Devices {
				found[key{pool, device.Name}] = device
			}
		}
	}
	return found
}
