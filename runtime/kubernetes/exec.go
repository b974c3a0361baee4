package kubernetes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	core1 "k8s.io/api/core/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"

	"berth/runtime"
	"berth/runtime/keeper"
)

// inputLimit is how long a program may take to read an input.
const inputLimit = 5 * time.Second

// Signal sends a signal to the command of a container. It does nothing if the container does
// not run.
func (e *Engine) Signal(ctx context.Context, n runtime.Name, signal string) error {
	return e.do(ctx, quick, "signal", n.String(), func(ctx context.Context) error {
		pod, r, err := e.observe(ctx, e.podName(n))
		if err != nil {
			return err
		}
		name := "SIG" + strings.TrimPrefix(signal, "SIG")
		if unix.SignalNum(name) == 0 {
			return fmt.Errorf("%w: no signal %q", runtime.ErrInvalid, signal)
		}
		if !running(pod) {
			return nil
		}
		if err := e.signal(ctx, pod, name, r.SignalGroup); err != nil {
			return err
		}
		e.confirm(ctx, pod)
		return nil
	})
}

// confirm has the hook of a pod that others have deleted wait for the exit of its command, which was asked to
// exit: otherwise the kubelet would send it the stop signal while it does.
func (e *Engine) confirm(ctx context.Context, pod *core1.Pod) {
	if !deletedByOthers(pod) || !hooked(serverOf(pod)) {
		return
	}
	options := &core1.PodExecOptions{Container: serverContainer, Command: keeper.Asked(), Stdout: true, Stderr: true}
	err := e.stream(ctx, pod, "exec", options, remotecommand.StreamOptions{Stdout: io.Discard, Stderr: io.Discard})
	if err != nil && !errors.Is(attachError(ctx, err), runtime.ErrNotRunning) {
		e.log.Info("a container that has to leave its node may get its stop signal early", "pod", pod.Name, "err", err)
	}
}

// exitLimit is how long the kubelet may take to report an exit.
const exitLimit = 5 * time.Second

// signal has the keeper in the container of a pod send a signal. If the container exits by it, that may
// kill this keeper too, before it could report that it has sent the signal. A busy kubelet reports an exit
// seconds after it refuses an exec because of it.
func (e *Engine) signal(ctx context.Context, pod *core1.Pod, name string, group bool) error {
	command := []string{keeper.Path, "signal"}
	if group { // of a pod that an older berth has created
		command = append(command, "-group")
	}
	var out bytes.Buffer
	options := &core1.PodExecOptions{Container: serverContainer, Command: append(command, name), Stdout: true, Stderr: true}
	err := e.stream(ctx, pod, "exec", options, remotecommand.StreamOptions{Stdout: &out, Stderr: &out})
	exit := new(exec.CodeExitError)
	if errors.As(err, exit) && exit.Code == killed || errors.Is(attachError(ctx, err), runtime.ErrNotRunning) {
		limited, cancel := context.WithTimeout(ctx, exitLimit)
		defer cancel()
		if e.await(limited, pod, func(now *core1.Pod) (bool, error) { return now == nil || !running(now), nil }) == nil {
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("%w: the keeper: %w: %s", runtime.ErrUnavailable, err, out.String())
	}
	return nil
}

// Input writes to the standard input of a container, and returns when the node has accepted
// all of it. It attaches only the input, which stays open afterwards.
func (e *Engine) Input(ctx context.Context, containerID string, data []byte) error {
	return e.do(ctx, quick, "input", "container "+containerID, func(ctx context.Context) error {
		pod, _, err := e.getByID(ctx, containerID)
		if err != nil {
			return err
		}
		if !running(pod) {
			return runtime.ErrNotRunning
		}
		limited, cancel := context.WithTimeout(ctx, inputLimit)
		defer cancel()
		tty := serverOf(pod).TTY
		options := &core1.PodAttachOptions{Container: serverContainer, Stdin: true, TTY: tty, Stdout: tty}
		streams := remotecommand.StreamOptions{Stdin: bytes.NewReader(data), Tty: tty}
		if tty { // a terminal has one stream for both directions
			streams.Stdout = io.Discard
		}
		err = e.stream(limited, pod, "attach", options, streams)
		if err != nil && ctx.Err() == nil && limited.Err() != nil {
			return runtime.ErrInputFull
		}
		if err == nil {
			e.confirm(ctx, pod)
		}
		return attachError(ctx, err)
	})
}

// attachError classifies the error of an attach. The kubelet has no codes.
func attachError(ctx context.Context, err error) error {
	switch {
	case err == nil || ctx.Err() != nil:
		return err
	case strings.Contains(err.Error(), "container not found") || strings.Contains(err.Error(), "not running"):
		return runtime.ErrNotRunning
	}
	return fmt.Errorf("%w: %w", runtime.ErrUnavailable, err)
}

// resizeTime is how long an attach stays open after it has sent a size: nobody confirms it.
const resizeTime = 200 * time.Millisecond

// Resize sets the size of the terminal of a container. It does nothing if the container has
// none.
func (e *Engine) Resize(ctx context.Context, containerID string, columns, rows uint) error {
	return e.do(ctx, quick, "resize", "container "+containerID, func(ctx context.Context) error {
		pod, _, err := e.getByID(ctx, containerID)
		switch {
		case err != nil:
			return err
		case !running(pod):
			return runtime.ErrNotRunning
		case !serverOf(pod).TTY:
			return nil
		}
		limited, cancel := context.WithCancel(ctx)
		defer cancel()
		size := &oneSize{size: &remotecommand.TerminalSize{Width: uint16(min(columns, math.MaxUint16)),
			Height: uint16(min(rows, math.MaxUint16))}, cancel: cancel, done: limited.Done()}
		options := &core1.PodAttachOptions{Container: serverContainer, TTY: true, Stdout: true}
		err = e.stream(limited, pod, "attach", options, remotecommand.StreamOptions{Stdout: io.Discard, Tty: true, TerminalSizeQueue: size})
		if ctx.Err() == nil && limited.Err() != nil {
			return nil // it was sent
		}
		return attachError(ctx, err)
	})
}

// oneSize is a queue of one size. It ends the stream some time after the size was sent.
type oneSize struct {
	size   *remotecommand.TerminalSize
	cancel func()
	done   <-chan struct{}
}

// Next returns the size, and then nothing until the stream ends. The stream has sent the size
// when it asks again.
func (q *oneSize) Next() *remotecommand.TerminalSize {
	size := q.size
	if q.size = nil; size == nil {
		time.AfterFunc(resizeTime, q.cancel)
		<-q.done
	}
	return size
}

// getByID returns the pod of the current run of a container, as observe does.
func (e *Engine) getByID(ctx context.Context, containerID string) (*core1.Pod, record, error) {
	pod, r, err := e.observe(ctx, podOfID(containerID))
	if pod != nil && r.ContainerID != containerID {
		err = runtime.ErrNotFound
	}
	return pod, r, err
}

// stream connects streams to the container of a pod, by exec or by attach.
func (e *Engine) stream(ctx context.Context, pod *core1.Pod, kind string, options apiruntime.Object,
	streams remotecommand.StreamOptions) error {
	of := e.api().Get().Namespace(e.cfg.Namespace).Resource("pods").Name(pod.Name).SubResource(kind)
	url := of.VersionedParams(options, e.parameters).URL()
	executor, err := remotecommand.NewWebSocketExecutor(e.connection.Load().rest, http.MethodGet, url.String())
	if err != nil {
		return err
	}
	return executor.StreamWithContext(ctx, streams)
}
