package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	core1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"berth/runtime"
)

// Balancer is how Services ask for the addresses of a load balancer.
type Balancer struct {
	Class       string            // name of its class; empty: the cluster's default
	Annotations map[string]string // of each Service; {ip} in a value stands for the address
}

// requireOneAddress returns ErrInvalid for ports that one Service cannot publish.
func requireOneAddress(ports []runtime.Port) error {
	for _, p := range ports {
		ip, err := netip.ParseAddr(p.IP)
		switch {
		case err != nil:
			return fmt.Errorf("%w: %w", runtime.ErrInvalid, err)
		case ip.IsUnspecified() || ip.IsLoopback():
			return fmt.Errorf("%w: %s is no address of a load balancer", runtime.ErrInvalid, p.IP)
		case p.IP != ports[0].IP:
			return fmt.Errorf("%w: a load balancer gives a container one address, and the ports have %s and %s", runtime.ErrInvalid,
				ports[0].IP, p.IP)
		}
	}
	return nil
}

// service returns the Service that publishes the ports of a container. It has the name of the
// container's pods.
func (e *Engine) service(name string, ports []runtime.Port) *core1.Service {
	no, single, family := false, core1.IPFamilyPolicySingleStack, core1.IPv4Protocol
	if strings.Contains(ports[0].IP, ":") {
		family = core1.IPv6Protocol
	}
	s := &core1.Service{
		TypeMeta:   meta.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: meta.ObjectMeta{Name: name, Labels: map[string]string{labelStore: hash(e.cfg.StoreID)}, Annotations: map[string]string{}},
		Spec: core1.ServiceSpec{
			Type: core1.ServiceTypeLoadBalancer, Selector: map[string]string{labelContainer: name},
			AllocateLoadBalancerNodePorts: &no, // a cluster has 2768, and servers need none
			IPFamilyPolicy:                &single, IPFamilies: []core1.IPFamily{family},
		},
	}
	if class := e.cfg.Balancer.Class; class != "" {
		s.Spec.LoadBalancerClass = &class
	}
	for key, value := range e.cfg.Balancer.Annotations {
		s.Annotations[key] = strings.ReplaceAll(value, "{ip}", ports[0].IP)
	}
	for _, p := range ports {
		s.Spec.Ports = append(s.Spec.Ports, core1.ServicePort{
			Name: p.Protocol + "-" + strconv.Itoa(p.Port), Protocol: core1.Protocol(strings.ToUpper(p.Protocol)),
			Port: int32(p.Port), TargetPort: intstr.FromInt(p.ContainerPort),
		})
	}
	return s
}

// publish creates or changes the Service of a container, and waits until the load balancer has
// given it its address.
func (e *Engine) publish(ctx context.Context, name string, ports []runtime.Port) error {
	if len(ports) == 0 || e.cfg.Balancer == nil {
		return nil
	}
	body, err := json.Marshal(e.service(name, ports))
	if err != nil {
		return err
	}
	force := true
	options := &meta.PatchOptions{FieldManager: "berth", Force: &force}
	limited, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	for wait := 200 * time.Millisecond; ; wait *= 2 {
		var s core1.Service
		err := e.api().Patch(types.ApplyYAMLPatchType).Namespace(e.cfg.Namespace).Resource("services").Name(name).
			VersionedParams(options, e.parameters).Body(body).Do(ctx).Into(&s)
		if err != nil {
			return err
		}
		if published, err := publishedAt(&s, ports[0].IP); published || err != nil {
			return err
		}
		if runtime.Sleep(limited, wait) != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("%w: no load balancer has given %s to the Service %s", runtime.ErrNoAddress, ports[0].IP, name)
		}
	}
}

// publishedAt reports whether a Service has an address. A load balancer that has a name in place
// of addresses has the right one.
func publishedAt(s *core1.Service, ip string) (bool, error) {
	var others []string
	for _, at := range s.Status.LoadBalancer.Ingress {
		if at.IP != "" && at.IP != ip {
			others = append(others, at.IP)
			continue
		}
		for _, p := range at.Ports {
			if p.Error != nil {
				return false, fmt.Errorf("%w: the load balancer cannot publish %s/%d: %s", runtime.ErrPortTaken, p.Protocol, p.Port, *p.Error)
			}
		}
		return true, nil
	}
	if len(others) > 0 {
		return false, fmt.Errorf("%w: the load balancer has given %s to the Service %s, and not %s", runtime.ErrNoAddress,
			strings.Join(others, ", "), s.Name, ip)
	}
	return false, nil
}

// removeOwned removes what has the name of a container beside its pod: the Service of its ports,
// and the Secret of its image.
func (e *Engine) removeOwned(ctx context.Context, name string) error {
	e.credentials.Delete(name)
	e.exits.Delete(name)
	for _, resource := range []string{"services", "secrets"} {
		err := e.api().Delete().Namespace(e.cfg.Namespace).Resource(resource).Name(name).Do(ctx).Error()
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}
