package kubernetes

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	core1 "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"berth/runtime"
)

// maxPart is the length of the parts of a long line, in bytes. Docker's are as long.
const maxPart = 16 << 10

// Logs calls each with the lines after since of the run of t. Unless t.Ended, it follows the
// output until the container exits. The node keeps the log of the current run alone, and of
// that only what was not rotated: whoever is away longer has a gap.
//
// A stream that ends without an error does not mean an exit: the kubelet may have been
// restarted. If the run continues, Logs returns ErrUnavailable. A log that is gone with its
// container is ErrNotFound.
func (e *Engine) Logs(ctx context.Context, t runtime.Target, since time.Time, each func(runtime.Line) error) error {
	pod, err := e.podOfRun(ctx, t)
	if err != nil || pod == nil {
		return err
	}
	stream, done := e.followers.add(ctx, pod.UID)
	defer done()
	last := since
	err = e.readLog(stream, pod, !t.Ended, since, func(l runtime.Line) error {
		last = l.Time
		return each(l)
	})
	if errors.Is(err, errNoLog) && ended(pod) && pod.DeletionTimestamp != nil {
		return fmt.Errorf("logs of pod %s: %w", pod.Name, runtime.ErrNotFound)
	}
	if stopped := stream.Err() != nil && ctx.Err() == nil; !stopped && (err != nil || t.Ended) {
		return err
	}
	now, err := e.podOfRun(ctx, t)
	if err == nil && now != nil && !ended(now) {
		err = e.exitOrOutput(ctx, t, now, last)
	}
	if notFound(err) {
		return nil
	}
	return err
}

// exitWait is how long the end of a stream may come before the kubelet reports the exit.
const exitWait = 10 * time.Second

// errGoesOn means that a run whose stream has ended prints on.
var errGoesOn = fmt.Errorf("%w: the stream of the log has ended, and the run goes on", runtime.ErrUnavailable)

// exitOrOutput returns nil once a run whose stream has ended was reported to have exited, and errGoesOn at once
// if it prints a line after last: its kubelet was restarted.
func (e *Engine) exitOrOutput(ctx context.Context, t runtime.Target, pod *core1.Pod, last time.Time) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var output sync.WaitGroup
	defer output.Wait()
	defer cancel(nil)
	output.Go(func() {
		for ctx.Err() == nil {
			if err := e.readLog(ctx, pod, true, last, func(runtime.Line) error { return errGoesOn }); errors.Is(err, errGoesOn) {
				cancel(errGoesOn)
			}
			_ = runtime.Sleep(ctx, exitWait/50) // a kubelet that is being restarted refuses it
		}
	})
	err := e.do(ctx, exitWait, "logs", "container "+t.ContainerID, func(ctx context.Context) error {
		return e.await(ctx, pod, func(now *core1.Pod) (bool, error) { return now == nil || ended(now), nil })
	})
	if err != nil && errors.Is(context.Cause(ctx), errGoesOn) {
		return errGoesOn
	}
	return err
}

// followers holds the streams of logs. A stream from a node that lost its power would not end
// before a time limit of TCP.
type followers struct {
	mu  sync.Mutex // guards all
	all map[*follower]bool
}

type follower struct {
	pod    types.UID
	cancel context.CancelFunc
}

// add returns a context for a stream of a pod, which stop ends. Call done after it.
func (f *followers) add(ctx context.Context, pod types.UID) (stream context.Context, done func()) {
	ctx, cancel := context.WithCancel(ctx)
	one := &follower{pod, cancel}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all == nil {
		f.all = map[*follower]bool{}
	}
	f.all[one] = true
	return ctx, func() {
		cancel()
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.all, one)
	}
}

// stop ends the streams of a pod.
func (f *followers) stop(pod types.UID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for one := range f.all {
		if one.pod == pod {
			one.cancel()
		}
	}
}

// podOfRun returns the pod of a run; nil if the run has no output: it was not started, or
// another run has followed it.
func (e *Engine) podOfRun(ctx context.Context, t runtime.Target) (pod *core1.Pod, err error) {
	err = e.do(ctx, listed, "logs", "container "+t.ContainerID, func(ctx context.Context) error {
		if pod, _, err = e.getByID(ctx, t.ContainerID); err != nil {
			return err
		}
		if gated(pod) || pod.Annotations[annotationEnd] != "" { // the log is lost with its node
			pod = nil
			return nil
		}
		// The kubelet refuses the log of a container that does not exist yet.
		err := e.await(ctx, pod, func(now *core1.Pod) (bool, error) {
			if now == nil {
				return false, runtime.ErrNotFound
			}
			pod = now
			return running(now) || ended(now), nil
		})
		if err == nil && !startedAt(pod).Equal(t.StartedAt) {
			pod = nil
		}
		return err
	})
	return pod, err
}

// readLog reads one stream to its end.
func (e *Engine) readLog(ctx context.Context, pod *core1.Pod, follow bool, since time.Time, each func(runtime.Line) error) error {
	options := &core1.PodLogOptions{Container: serverContainer, Follow: follow, Timestamps: true}
	if !since.IsZero() { // the parameter has whole seconds
		options.SinceTime = &meta.Time{Time: since.Truncate(time.Second)}
	}
	stream, err := e.api().Get().Namespace(e.cfg.Namespace).Resource("pods").Name(pod.Name).SubResource("log").
		VersionedParams(options, e.parameters).Stream(ctx)
	if err == nil {
		defer stream.Close()
		err = readLines(stream, serverOf(pod).TTY, func(l runtime.Line) error {
			if !l.Time.After(since) {
				return nil
			}
			return each(l)
		})
	} else {
		err = errBroken{err}
	}
	var broken errBroken
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &broken):
		return fmt.Errorf("logs of pod %s: %w: %w", pod.Name, runtime.ErrUnavailable, broken.error)
	}
	return err
}

// errBroken is an error of a stream, not of the function that takes its lines.
type errBroken struct{ error }

// errNoLog is the line that a kubelet sends in place of a log if the runtime does not find the container: its kubelet
// removes the container of a deleted pod as soon as it has ended.
var errNoLog = errors.New("unable to retrieve container logs for ")

// readLines calls each with the lines of a log, which begin with a time. The time of a long
// line is that of all its parts.
func readLines(stream io.Reader, tty bool, each func(runtime.Line) error) error {
	r := bufio.NewReaderSize(stream, maxPart)
	var at time.Time
	begins := true
	for {
		data, err := r.ReadSlice('\n')
		if errors.Is(err, io.EOF) && len(data) == 0 {
			return nil
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) && !errors.Is(err, io.EOF) {
			return errBroken{err}
		}
		if begins {
			text, rest, _ := bytes.Cut(data, []byte(" "))
			t, err := time.Parse(time.RFC3339Nano, string(text))
			switch {
			case err != nil && bytes.HasPrefix(data, []byte(errNoLog.Error())):
				return errBroken{errNoLog}
			case err != nil:
				return errBroken{fmt.Errorf("a line without a time: %q", data)}
			}
			at, data = t, rest
		}
		complete := bytes.HasSuffix(data, []byte("\n"))
		data = bytes.TrimSuffix(data, []byte("\n"))
		if tty && complete {
			data = bytes.TrimSuffix(data, []byte("\r"))
		}
		if err := each(runtime.Line{Time: at, Data: bytes.Clone(data), Partial: !complete}); err != nil {
			return err
		}
		begins = complete
	}
}
