package kubernetes

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	core1 "k8s.io/api/core/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// callLimit is how long one request may wait for the first byte of its answer. The limit of a call, which is some
// requests in a row, is longer, so that an API server that is slow makes calls slow and not impossible.
const callLimit = 10 * time.Second

// connection is how the engine reaches the cluster. A kubeconfig that has changed makes another one.
type connection struct {
	rest   *rest.Config
	client *rest.RESTClient
	file   [sha256.Size]byte // of the kubeconfig
}

// connect reads the credentials. The client knows the kinds of core/v1 alone: a typed client set of all kinds would
// add 45 MB to the program and 20 MiB to its memory.
func (e *Engine) connect() error {
	next := &connection{}
	var err error
	if path := e.cfg.Kubeconfig; path == "" {
		next.rest, err = rest.InClusterConfig()
	} else {
		next.rest, err = clientcmd.BuildConfigFromFlags("", path)
		next.file = sumOf(path)
	}
	if err != nil {
		return err
	}
	scheme := apiruntime.NewScheme()
	if err := core1.AddToScheme(scheme); err != nil {
		return err
	}
	if e.parameters == nil {
		e.parameters, e.lease.turn = apiruntime.NewParameterCodec(scheme), make(chan struct{}, 1)
	}
	config := next.rest
	config.GroupVersion, config.APIPath, config.QPS = &core1.SchemeGroupVersion, "/api", -1 // berth bounds its calls itself
	// JSON needs twice the processor time and memory.
	config.ContentType, config.AcceptContentTypes = apiruntime.ContentTypeProtobuf,
		apiruntime.ContentTypeProtobuf+","+apiruntime.ContentTypeJSON
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &impatient{next, callLimit, e.reconnect} })
	if next.client, err = rest.RESTClientFor(config); err != nil {
		return err
	}
	e.connection.Store(next)
	return nil
}

func sumOf(path string) [sha256.Size]byte {
	text, _ := os.ReadFile(path) // an error is reported by who reads it next
	return sha256.Sum256(text)
}

// api returns the client of the cluster.
func (e *Engine) api() *rest.RESTClient { return e.connection.Load().client }

// Reload reads the kubeconfig again if it has changed. Streams that are open stay so.
func (e *Engine) Reload() error {
	e.reloading.Lock()
	defer e.reloading.Unlock()
	if e.cfg.Kubeconfig == "" || sumOf(e.cfg.Kubeconfig) == e.connection.Load().file { // in a pod, the client reads its token again
		return nil
	}
	if err := e.connect(); err != nil {
		return fmt.Errorf("kubernetes.kubeconfig: %w", err)
	}
	return nil
}

// reconnect reads a kubeconfig that was changed, because the cluster has refused the credentials.
func (e *Engine) reconnect() {
	if err := e.Reload(); err != nil {
		e.log.Error("the cluster refuses the credentials, and the new ones cannot be read", "err", err)
	}
}

// impatient is a transport whose requests end if the answer does not begin in time. Watches, logs and terminals
// may then take as long as they like.
type impatient struct {
	http.RoundTripper
	limit   time.Duration
	refused func() // called after an answer that refuses the credentials
}

var errSilent = errors.New("the API server has not answered in time")

// RoundTrip sends a request.
func (i *impatient) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	timer := time.AfterFunc(i.limit, func() { cancel(errSilent) })
	answer, err := i.RoundTripper.RoundTrip(r.WithContext(ctx))
	timer.Stop()
	if err != nil {
		if errors.Is(context.Cause(ctx), errSilent) {
			err = errSilent // the cause in place of a cancellation
		}
		cancel(nil)
		return answer, err
	}
	if answer.StatusCode == http.StatusUnauthorized {
		i.refused()
	}
	if answer.StatusCode == http.StatusSwitchingProtocols || answer.Body == nil {
		context.AfterFunc(r.Context(), func() { cancel(nil) })
		return answer, nil
	}
	answer.Body = &endingBody{answer.Body, sync.OnceFunc(func() { cancel(nil) })}
	return answer, nil
}

// endingBody is a body that releases its request.
type endingBody struct {
	io.ReadCloser
	end func()
}

// Close closes the body.
func (b *endingBody) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}
