package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	core1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"berth/runtime"
)

const (
	kubeletPort = 10250       // default; a node reports another one
	maxSummary  = 32 << 20    // bytes
	freshFor    = time.Second // a summary has all pods of a node, so their callers share it
)

// usageCache holds the last summary of each node.
type usageCache struct {
	calls singleflight.Group

	mu    sync.Mutex // guards nodes
	nodes map[string]summary
}

// summary is what the engine reads of a kubelet's /stats/summary.
type summary struct {
	at   time.Time
	Pods []podUsage `json:"pods"`
}

type podUsage struct {
	PodRef struct {
		UID string `json:"uid"`
	} `json:"podRef"`
	Network struct {
		RxBytes, TxBytes int64
	} `json:"network"`
	Containers []struct {
		Name string `json:"name"`
		CPU  struct {
			UsageCoreNanoSeconds int64 `json:"usageCoreNanoSeconds"`
		} `json:"cpu"`
		Memory struct {
			WorkingSetBytes int64 `json:"workingSetBytes"`
		} `json:"memory"`
	} `json:"containers"`
}

// Stats returns the current resource usage of a container, as its node's kubelet reports it.
// It has no number of processes and no block traffic.
func (e *Engine) Stats(ctx context.Context, containerID string) (s runtime.Stats, err error) {
	err = e.do(ctx, quick, "stats", "container "+containerID, func(ctx context.Context) error {
		pod, r, err := e.getByID(ctx, containerID)
		if err != nil {
			return err
		}
		for {
			if !running(pod) {
				return runtime.ErrNotRunning
			}
			all, err := e.summaryOf(ctx, pod.Spec.NodeName)
			if err != nil {
				return err
			}
			var known bool
			if s, known = all.usage(string(pod.UID)); known {
				s.MemoryLimit = r.Live.Memory
				return nil
			}
			if err := runtime.Sleep(ctx, freshFor); err != nil { // the kubelet has not measured a new container yet
				return err
			}
			if pod, r, err = e.getByID(ctx, containerID); err != nil {
				return err
			}
		}
	})
	return s, err
}

func (all summary) usage(uid string) (s runtime.Stats, known bool) {
	for _, pod := range all.Pods {
		if pod.PodRef.UID != uid {
			continue
		}
		for _, c := range pod.Containers {
			if c.Name == serverContainer && c.Memory.WorkingSetBytes > 0 {
				return runtime.Stats{
					Read: all.at, CPU: time.Duration(c.CPU.UsageCoreNanoSeconds), Memory: c.Memory.WorkingSetBytes,
					NetworkRx: pod.Network.RxBytes, NetworkTx: pod.Network.TxBytes,
				}, true
			}
		}
	}
	return s, false
}

// summaryOf returns a node's summary that is at most freshFor old.
func (e *Engine) summaryOf(ctx context.Context, node string) (summary, error) {
	e.usage.mu.Lock()
	last := e.usage.nodes[node]
	e.usage.mu.Unlock()
	if time.Since(last.at) < freshFor {
		return last, nil
	}
	done := e.usage.calls.DoChan(node, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), quick) // the callers share it
		defer cancel()
		one, err := e.askKubelet(ctx, node)
		if err == nil {
			e.usage.mu.Lock()
			defer e.usage.mu.Unlock()
			if e.usage.nodes == nil {
				e.usage.nodes = map[string]summary{}
			}
			e.usage.nodes[node] = one
		}
		return one, err
	})
	select {
	case answer := <-done:
		if answer.Err != nil {
			return summary{}, answer.Err
		}
		return answer.Val.(summary), nil
	case <-ctx.Done():
		return summary{}, ctx.Err()
	}
}

// statsError returns why a node's kubelet has no statistics; empty: it has, or there is no node.
func (e *Engine) statsError(ctx context.Context, node string) string {
	if node == "" {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, quick/2)
	defer cancel()
	if _, err := e.askKubelet(ctx, node); err != nil {
		return err.Error()
	}
	return ""
}

// askKubelet asks a node's kubelet itself: the way through the API server needs a permission
// that also allows an exec in every pod.
func (e *Engine) askKubelet(ctx context.Context, name string) (one summary, err error) {
	var node core1.Node
	if err := e.api().Get().Resource("nodes").Name(name).Do(ctx).Into(&node); err != nil {
		return one, err
	}
	port := kubeletPort
	if p := node.Status.DaemonEndpoints.KubeletEndpoint.Port; p != 0 {
		port = int(p)
	}
	address, hostname := "", name
	for _, a := range node.Status.Addresses {
		switch a.Type {
		case core1.NodeInternalIP:
			address = net.JoinHostPort(a.Address, strconv.Itoa(port))
		case core1.NodeHostName:
			hostname = a.Address
		}
	}
	config := e.connection.Load().rest
	if e.cfg.KubeletCA != "" { // a kubelet that signs its own certificate names no address in it
		config = rest.CopyConfig(e.connection.Load().rest)
		config.Insecure, config.CAFile, config.CAData, config.ServerName = false, e.cfg.KubeletCA, nil, hostname
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return one, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/stats/summary", http.NoBody)
	if err != nil {
		return one, err
	}
	answer, err := client.Do(request)
	if err != nil {
		return one, fmt.Errorf("%w: the kubelet of %s: %w", runtime.ErrUnavailable, name, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return one, fmt.Errorf("%w: the kubelet of %s answered %s", runtime.ErrUnavailable, name, answer.Status)
	}
	err = json.NewDecoder(io.LimitReader(answer.Body, maxSummary)).Decode(&one)
	one.at = time.Now()
	return one, err
}
