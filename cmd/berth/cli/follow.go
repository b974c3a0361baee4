package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/fasthttp/websocket"
)

// silence is how long a daemon may send nothing: it pings more often.
const silence = 90 * time.Second

// message is one message of a WebSocket.
type message struct {
	Event     string    `json:"event"`
	Container string    `json:"container"`
	Data      string    `json:"data"`
	Time      time.Time `json:"time"`
	Seq       uint64    `json:"seq"`
	Epoch     string    `json:"epoch"`
}

// follow hands every message of a WebSocket to each, until the daemon closes it
// or ctx ends. Its error says why it ended; the end of ctx is none.
func (c *client) follow(ctx context.Context, path string, each func(m message, raw []byte) error) error {
	ws, err := c.dial(ctx, path)
	if err != nil {
		return err
	}
	defer func() { _ = ws.Close() }()
	defer context.AfterFunc(ctx, func() { _ = ws.Close() })()
	err = read(ws, each)
	var closed *websocket.CloseError
	switch {
	case ctx.Err() != nil:
		return nil
	case errors.As(err, &closed) && closed.Code == websocket.CloseNormalClosure:
		return errors.New("the container is deleted")
	case errors.As(err, &closed) && closed.Text != "":
		return fmt.Errorf("the daemon closed the stream: %s", closed.Text)
	}
	return err
}

func (c *client) dial(ctx context.Context, path string) (*websocket.Conn, error) {
	address := *c.base
	address.Scheme = map[string]string{"http": "ws", "https": "wss"}[c.base.Scheme]
	dialer := websocket.Dialer{TLSClientConfig: c.tls, HandshakeTimeout: clientTimeout, Proxy: http.ProxyFromEnvironment}
	ws, response, err := dialer.DialContext(ctx, address.String()+path, c.headers())
	if err == nil {
		return ws, nil
	}
	if response != nil {
		defer response.Body.Close()
		var body struct{ Error string }
		if json.NewDecoder(response.Body).Decode(&body) == nil && body.Error != "" {
			err = &refused{response.StatusCode, body.Error, response.Header.Get("X-Error-Code")}
		}
	}
	return nil, c.explain(err)
}

func read(ws *websocket.Conn, each func(m message, raw []byte) error) error {
	alive := func() error { return ws.SetReadDeadline(time.Now().Add(silence)) }
	pong := ws.PingHandler()
	ws.SetPingHandler(func(data string) error {
		_ = alive() // a broken connection is seen by the next read
		return pong(data)
	})
	for {
		if err := alive(); err != nil {
			return err
		}
		_, raw, err := ws.ReadMessage()
		if err != nil {
			return fmt.Errorf("the stream broke off: %w", err)
		}
		var m message
		if err := json.Unmarshal(raw, &m); err != nil {
			return fmt.Errorf("the daemon sent what is no message: %w", err)
		}
		if err := each(m, raw); err != nil {
			return err
		}
	}
}
