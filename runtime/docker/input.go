package docker

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"berth/runtime"
)

// Input writes to the standard input of a container and returns when the engine
// has accepted all of it. It attaches only the input: an attach to the output
// could block the container. The container's input stays open afterwards.
func (e *Engine) Input(ctx context.Context, containerID string, data []byte) error {
	c, err := e.inspectOwned(ctx, containerID)
	if err != nil {
		return err
	}
	if !c.State.Running || c.State.Paused {
		return fmt.Errorf("input of container %s: %w", containerID, runtime.ErrNotRunning)
	}
	return e.calls.do(ctx, opInput, "container "+containerID, func(ctx context.Context) error {
		return e.write(ctx, containerID, data)
	})
}

// write replaces the attach of Docker's client, which waits for the engine's
// answer without a deadline.
func (e *Engine) write(ctx context.Context, id string, data []byte) error {
	conn, err := e.conn.client().Dialer()(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", runtime.ErrUnavailable, err)
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	r, err := upgrade(conn, "/v"+e.conn.client().ClientVersion()+"/containers/"+id+"/attach?stream=1&stdin=1&detachKeys="+noDetachKeys)
	if err != nil {
		return err
	}
	_, err = conn.Write(data)
	if half, ok := conn.(interface{ CloseWrite() error }); ok && err == nil {
		if err := half.CloseWrite(); err != nil {
			return asUnavailable(err)
		}
		// The engine closes its side when it has written everything to the container.
		_, err = io.Copy(io.Discard, r)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(ctx.Err(), context.Canceled) {
		return runtime.ErrInputFull // the engine has answered, and cannot write to the container
	}
	return asUnavailable(err)
}

// noDetachKeys are keys that end an attach. The engine's own, Ctrl-P and Ctrl-Q, would end
// it in the middle of an input; no key sequence cannot be asked for. No input has a NUL.
const noDetachKeys = "ctrl-@,ctrl-@"

func upgrade(conn net.Conn, path string) (io.Reader, error) {
	request, err := http.NewRequest(http.MethodPost, "http://docker"+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Connection", "Upgrade")
	request.Header.Set("Upgrade", "tcp")
	if err := request.Write(conn); err != nil {
		return nil, asUnavailable(err)
	}
	r := bufio.NewReader(conn)
	answer, err := http.ReadResponse(r, request)
	if err != nil {
		return nil, asUnavailable(err)
	}
	if answer.StatusCode == http.StatusSwitchingProtocols || answer.StatusCode == http.StatusOK {
		return r, nil
	}
	text, _ := io.ReadAll(io.LimitReader(answer.Body, 4<<10))
	return nil, fmt.Errorf("the engine answered an attach with HTTP %d: %s", answer.StatusCode, text)
}

// asUnavailable wraps an error of a broken or timed-out connection in ErrUnavailable.
func asUnavailable(err error) error {
	var broken net.Error
	if errors.As(err, &broken) {
		return fmt.Errorf("%w: %w", runtime.ErrUnavailable, err)
	}
	return err
}
