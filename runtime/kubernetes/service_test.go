package kubernetes

import (
	"testing"

	"github.com/stretchr/testify/require"
	core1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"berth/runtime"
)

// balanced returns an engine whose ports a load balancer publishes.
func balanced() *Engine {
	e := testEngine()
	e.cfg.Balancer = &Balancer{Class: "example.com/lb", Annotations: map[string]string{"example.com/address": "{ip}", "example.com/shared": "berth"}}
	return e
}

func TestServiceOfAContainer(t *testing.T) {
	e, s := balanced(), testSpec()
	s.Ports = append(s.Ports, runtime.Port{IP: "10.0.0.1", Port: 20002, ContainerPort: 25566, Protocol: "tcp"})
	pod, err := e.build(s, resolved{digest: "sha256:1", ref: "img@sha256:1"}, "keeper/1")
	require.NoError(t, err)
	require.Empty(t, pod.Spec.Containers[0].Ports, "no node publishes them")
	require.Nil(t, pod.Spec.Affinity)
	r, ours := e.recordOf(pod)
	require.True(t, ours)

	service := e.service(pod.Name, r.Ports)
	require.Equal(t, pod.Name, service.Name)
	require.Equal(t, pod.Labels[labelStore], service.Labels[labelStore])
	require.Equal(t, map[string]string{"example.com/address": "10.0.0.1", "example.com/shared": "berth"}, service.Annotations)
	require.Equal(t, core1.ServiceTypeLoadBalancer, service.Spec.Type)
	require.Equal(t, "example.com/lb", *service.Spec.LoadBalancerClass)
	require.False(t, *service.Spec.AllocateLoadBalancerNodePorts)
	require.Equal(t, []core1.IPFamily{core1.IPv4Protocol}, service.Spec.IPFamilies)
	require.Equal(t, []core1.ServicePort{
		{Name: "udp-20001", Protocol: core1.ProtocolUDP, Port: 20001, TargetPort: intstr.FromInt(25565)},
		{Name: "tcp-20002", Protocol: core1.ProtocolTCP, Port: 20002, TargetPort: intstr.FromInt(25566)},
	}, service.Spec.Ports)
	for key, value := range service.Spec.Selector {
		require.Equal(t, value, pod.Labels[key], "it selects the pod")
	}
	require.NotEmpty(t, service.Spec.Selector)

	e.cfg.Balancer.Class = ""
	service = e.service(pod.Name, []runtime.Port{{IP: "2001:db8::1", Port: 1, ContainerPort: 1, Protocol: "tcp"}})
	require.Nil(t, service.Spec.LoadBalancerClass)
	require.Equal(t, []core1.IPFamily{core1.IPv6Protocol}, service.Spec.IPFamilies)
}

func TestPortsHaveOneAddress(t *testing.T) {
	ports := func(ips ...string) (list []runtime.Port) {
		for _, ip := range ips {
			list = append(list, runtime.Port{IP: ip})
		}
		return list
	}
	require.NoError(t, requireOneAddress(nil))
	require.NoError(t, requireOneAddress(ports("10.0.0.1", "10.0.0.1")))
	for _, bad := range [][]runtime.Port{ports("10.0.0.1", "10.0.0.2"), ports("0.0.0.0"), ports("::"), ports("127.0.0.1"), ports("x")} {
		require.ErrorIs(t, requireOneAddress(bad), runtime.ErrInvalid)
	}
}

func TestAddressOfAService(t *testing.T) {
	taken := "in use by another Service"
	for what, test := range map[string]struct {
		ingress   []core1.LoadBalancerIngress
		published bool
		want      error
	}{
		"pending":          {nil, false, nil},
		"its own":          {[]core1.LoadBalancerIngress{{IP: "10.0.0.9"}, {IP: "10.0.0.1"}}, true, nil},
		"a name":           {[]core1.LoadBalancerIngress{{Hostname: "lb.example.com"}}, true, nil},
		"another":          {[]core1.LoadBalancerIngress{{IP: "10.0.0.9"}}, false, runtime.ErrNoAddress},
		"a port is taken":  {[]core1.LoadBalancerIngress{{IP: "10.0.0.1", Ports: []core1.PortStatus{{Port: 1, Error: &taken}}}}, false, runtime.ErrPortTaken},
		"no port is taken": {[]core1.LoadBalancerIngress{{IP: "10.0.0.1", Ports: []core1.PortStatus{{Port: 1}}}}, true, nil},
	} {
		s := &core1.Service{}
		s.Status.LoadBalancer.Ingress = test.ingress
		published, err := publishedAt(s, "10.0.0.1")
		require.Equal(t, test.published, published, what)
		require.ErrorIs(t, err, test.want, what)
	}
}
