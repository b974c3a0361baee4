package transfer

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	v1 "berth/api/v1"
	"berth/controller"
)

// work is what a job does.
type work = func(ctx context.Context, to Destination, notify func(report)) error

// The times of a job.
const (
	readyPoll = time.Second
	readyWait = 10 * time.Minute // for the destination to have the image
)

// announce announces a container, until the destination can receive its volume.
func (r *reconciler) announce(t v1.Transfer) work {
	return func(ctx context.Context, to Destination, notify func(report)) error {
		request, a, err := r.announced(ctx, t, to)
		if err == nil {
			notify(report{state: a.State, ports: a.Ports,
				total: request.Bytes + v1.ArchiveBytes(request.Backups, v1.TargetLocal)})
		}
		return err
	}
}

// announced is announce; it returns what was announced, and the answer.
func (r *reconciler) announced(ctx context.Context, t v1.Transfer, to Destination) (
	request v1.ArrivalRequest, a v1.ArrivalView, err error) {
	use, err := r.Volumes.Scan(ctx, t.Spec.VolumeID) // the stored size may be that of hours ago, and more than announced is refused
	if err != nil {
		return request, a, sourceError{err}
	}
	ctx, cancel := context.WithTimeout(ctx, readyWait)
	defer cancel()
	for {
		if request, err = r.Intent.Announce(r.Store.Read(), t); err != nil {
			return request, a, sourceError{err}
		}
		request.Bytes = use.Bytes
		if a, err = to.Announce(ctx, request); err != nil {
			return request, a, tooLarge(request, err)
		}
		switch a.State {
		case v1.ArrivalReceiving, v1.ArrivalCommitted, v1.ArrivalCancelled:
			return request, a, nil
		case v1.ArrivalRefused:
			return request, a, refusedError{errors.New(a.Message)}
		}
		if !controller.Sleep(ctx, readyPoll) {
			return request, a, errors.New("the destination has not prepared the volume and the image in time")
		}
	}
}

// tooLarge returns the error of an announcement. One that is too large names the setting.
func tooLarge(request v1.ArrivalRequest, err error) error {
	var status statusError
	if !errors.As(err, &status) || status.HTTPStatus() != 413 {
		return err
	}
	text, _ := json.Marshal(request) // it was sent
	return refusedError{fmt.Errorf("the announcement has %d bytes: raise server.body_limit there, or the limit of the proxy before it",
		len(text))}
}

// copy sends backups, and what differs of the files, while the container runs.
func (r *reconciler) copy(t v1.Transfer) work {
	return func(ctx context.Context, to Destination, notify func(report)) error {
		var out report
		if t.Spec.Backups {
			if err := r.sendBackups(ctx, t, to, func(now report) { out = now; notify(now) }); err != nil || out.state != v1.ArrivalReceiving {
				return err
			}
		}
		return r.round(ctx, t, to, out, notify)
	}
}

// round sends what differs, in as many requests as it takes. out is what was sent before.
func (r *reconciler) round(ctx context.Context, t v1.Transfer, to Destination, out report, notify func(report)) error {
	before := out.arrived
	opt := v1.SendOptions{Since: t.Status.Since, Round: t.Status.Began, Most: connection}
	opt.Priority = v1.NormalPriority
	if v1.TransferStateOf(t) == v1.TransferCopying { // the next round sends what a tenant writes meanwhile, so that this one ends
		opt.Priority, opt.Until = v1.LowPriority, t.Status.Began
	}
	if err := r.Volumes.Flush(ctx, t.Spec.VolumeID); err != nil {
		return sourceError{err}
	}
	for {
		opt.Progress = func(read int64) {
			now := out
			now.read += read
			notify(now)
		}
		sent, err := r.send(ctx, t, to, opt)
		out.sent += sent.Bytes
		out.arrived = before + sent.Arrived
		out.left = sent.Left
		notify(out)
		if err != nil || !sent.Partial {
			return err
		}
	}
}

// send compares the volume with what has arrived, and sends what differs.
func (r *reconciler) send(ctx context.Context, t v1.Transfer, to Destination, opt v1.SendOptions) (sent v1.Sent, err error) {
	listing, err := r.listing(ctx, t, to)
	if err != nil {
		return sent, err
	}
	defer listing.Close()
	opt.Written = func(n int64) error { r.Metrics.bytes(n); return nil }
	err = r.stream(ctx, t, func(w io.Writer) (err error) {
		sent, err = r.Volumes.Send(ctx, t.Spec.VolumeID, listing, w, opt)
		return err
	}, func(content io.Reader) error { return to.Send(ctx, t.Meta.ID, content) })
	return sent, err
}

// stream makes a request with what write writes as its content, and returns once both have ended.
func (r *reconciler) stream(ctx context.Context, t v1.Transfer, write func(io.Writer) error, request func(io.Reader) error) error {
	pr, pw := io.Pipe()
	made := make(chan error, 1)
	go func() {
		err := controller.Catch(r.Log, "sender of a transfer", func() error { return write(pw) })
		pw.CloseWithError(err)
		made <- err
	}()
	body := bufio.NewReader(pr)
	_, _ = body.Peek(1) // the request begins with the first entry that differs: no proxy waits while millions are compared
	failed := request(r.throttled(ctx, t, body))
	pr.CloseWithError(errStopped) // a write that waits ends
	switch err := <-made; {
	case err != nil && !errors.Is(err, errStopped):
		return sourceError{err}
	default:
		return failed
	}
}

// throttled returns content with the limits of the bytes a second.
func (r *reconciler) throttled(ctx context.Context, t v1.Transfer, content io.Reader) io.Reader {
	if t.Spec.Bandwidth > 0 {
		content = controller.NewThrottle(func() int64 { return t.Spec.Bandwidth }).Reader(ctx, content)
	}
	return r.Throttle.Reader(ctx, content)
}

// errStopped reports that the destination reads no more.
var errStopped = errors.New("the destination has ended the request")

// maxListing bounds a listing that is compared, in bytes.
const maxListing = 1 << 30

// listing returns the listing of what has arrived, as a file without a name.
func (r *reconciler) listing(ctx context.Context, t v1.Transfer, to Destination) (*os.File, error) {
	tree, err := to.Tree(ctx, t.Meta.ID)
	if err != nil {
		return nil, err
	}
	defer tree.Close()
	file, err := os.CreateTemp(r.Spool, "listing-")
	if err != nil {
		return nil, sourceError{err}
	}
	n, err := int64(0), os.Remove(file.Name())
	if err == nil {
		n, err = io.Copy(file, io.LimitReader(tree, maxListing+1))
	}
	if err == nil && n > maxListing {
		err = refusedError{errors.New("its listing is too large")}
	}
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// mostPasses bounds how often finish compares the trees.
const mostPasses = 4

// never is a time since which nothing has changed.
var never = time.Unix(1<<40, 0)

// finish sends the rest, while nothing runs, until the trees are equal.
func (r *reconciler) finish(t v1.Transfer) work {
	return func(ctx context.Context, to Destination, notify func(report)) error {
		if err := r.Volumes.AwaitChanges(ctx, t.Spec.VolumeID); err != nil {
			return sourceError{err}
		}
		var announced report
		if err := r.announce(t)(ctx, to, func(a report) { announced = a }); err != nil || announced.state != v1.ArrivalReceiving {
			notify(announced)
			return err
		}
		if err := r.round(ctx, t, to, report{}, notify); err != nil {
			return err
		}
		for range mostPasses {
			sent, err := r.send(ctx, t, to, v1.SendOptions{Since: never, Priority: v1.NormalPriority})
			if err != nil {
				return err
			}
			if sent.Entries == 0 {
				announced.digest = sent.Tree.Digest
				notify(announced)
				return nil
			}
		}
		return sourceError{errors.New("the files of the volume change although nothing runs with it")}
	}
}

// handOver asks the destination to commit, or to cancel if that is requested.
func (r *reconciler) handOver(t v1.Transfer) work {
	return func(ctx context.Context, to Destination, notify func(report)) error {
		if asked := (report{cancels: t.Spec.Cancels}); asked.cancels > 0 {
			notify(asked)
			a, err := to.Cancel(ctx, t.Meta.ID)
			asked.state = a.State
			notify(asked)
			return err
		}
		a, err := to.Commit(ctx, t.Meta.ID, v1.CommitRequest{Digest: t.Status.Digest, Start: r.starts(t)})
		if err == nil {
			notify(report{state: a.State})
			return nil
		}
		if !errors.Is(err, &v1.Error{Code: v1.Precondition}) {
			return err
		}
		a, failed := to.Cancel(ctx, t.Meta.ID) // it has other files: it must not have the container
		if failed == nil {
			notify(report{state: a.State})
		}
		return err
	}
}

// starts returns whether the destination starts the container.
func (r *reconciler) starts(t v1.Transfer) bool {
	if t.Spec.Start != nil {
		return *t.Spec.Start
	}
	return r.Intent.Runs(r.Store.Read(), t)
}

// sourceError is an error of the source.
type sourceError struct{ error }

func (e sourceError) Unwrap() error { return e.error }

// refusedError is a refusal of the destination for good.
type refusedError struct{ error }

// statusError is a refusal of the destination as a client returns it.
type statusError interface {
	error
	HTTPStatus() int
}

// explain returns an error as a text that names the side, and whether another attempt is useless.
func explain(err error) (text string, final bool) {
	var source sourceError
	var refused refusedError
	var status statusError
	var known *v1.Error
	switch {
	case err == nil:
		return "", false
	case errors.As(err, &source):
		return "The source: " + source.Error(), errors.As(err, &known)
	case errors.As(err, &refused):
		return "The destination refuses: " + refused.Error(), true
	case errors.As(err, &status):
		code := status.HTTPStatus()
		final = code >= 400 && code < 500 && code != 408 && code != 429 || code == 507
		return "The destination answers: " + status.Error(), final
	}
	return "The destination cannot be reached: " + err.Error(), false
}
