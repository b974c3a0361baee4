package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/fasthttp/websocket"

	"berth/api/client"
	v1 "berth/api/v1"
)

// daemon returns a server that answers as a daemon with these responses would. Their
// keys are "METHOD /path".
func daemon(responses map[string]string) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, known := responses[r.Method+" "+r.URL.Path]
		if !known {
			w.Header().Set("X-Error-Code", "container_not_found")
			w.WriteHeader(http.StatusNotFound)
			body = `{"error":"Container not found"}`
		}
		_, _ = w.Write([]byte(body))
	}))
}

// streaming returns a server that sends messages to each WebSocket and then closes it
// because the container is deleted.
func streaming(messages ...string) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var upgrader websocket.Upgrader
		ws, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer ws.Close()
		for _, m := range messages {
			_ = ws.WriteMessage(websocket.TextMessage, []byte(m))
		}
		_ = ws.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, "container is deleted"))
		_, _, _ = ws.ReadMessage()
	}))
}

// Create a volume and a container in it, and start the container.
func Example() {
	server := daemon(map[string]string{
		"POST /volumes":                   `{"volume_id":"3f2a91c0-0000-4000-8000-000000000000","path":"/var/lib/berth/volumes/3f2a91c0"}`,
		"PUT /containers/survival":        `{"internal_id":"survival","state":"installing","power":"stopped"}`,
		"POST /containers/survival/start": `{"message":"Container start initiated","internal_id":"survival"}`,
	})
	defer server.Close()
	ctx := context.Background()

	c, err := client.New(client.Options{URL: server.URL, Token: "berth_0123456789abcdef0123456789abcdef"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	volume, err := c.Volumes().Create(ctx, v1.VolumeSpec{Name: "survival", SizeLimit: 10 << 30})
	if err != nil {
		fmt.Println(err)
		return
	}
	spec := v1.ContainerSpec{InternalID: "survival", Image: "eclipse-temurin:21", VolumeID: volume.VolumeID,
		StartupCommand: "java -jar server.jar", StartPattern: `Done \(`}
	container, err := c.Containers().Apply(ctx, spec, client.ApplyOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(container.State)
	message, err := c.Containers().Do(ctx, "survival", client.Start)
	fmt.Println(message, err)
	// Output:
	// installing
	// Container start initiated <nil>
}

// An error has the status, the code and the message of the daemon.
func ExampleError() {
	server := daemon(nil)
	defer server.Close()
	c, err := client.New(client.Options{URL: server.URL})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = c.Containers().Get(context.Background(), "survival")
	fmt.Println(errors.Is(err, v1.ErrContainerNotFound), client.StatusOf(err), err)
	// Output: true 404 Container not found
}

// Keep a copy of the state of all containers. Store the cursor with it: after a
// restart, Watch continues from there.
func ExampleEvents_Watch() {
	server := streaming(
		`{"event":"event","container":"survival","data":"starting","seq":8,"epoch":"s-1","time":"2026-01-02T03:04:05Z"}`,
		`{"event":"event","container":"survival","data":"running","seq":9,"epoch":"s-1","time":"2026-01-02T03:04:09Z"}`)
	defer server.Close()
	c, err := client.New(client.Options{URL: server.URL})
	if err != nil {
		fmt.Println(err)
		return
	}
	cursor := client.Cursor{Seq: 7, Epoch: "s-1"}
	for m, err := range c.Events().Watch(context.Background(), cursor) {
		if err != nil {
			fmt.Println(err)
			break
		}
		switch m.Event {
		case client.EventGap:
			fmt.Println("read all containers again") // transitions are missing
		case v1.EventState:
			fmt.Println(m.Container, m.Data)
		}
		cursor = client.Cursor{Seq: m.Seq, Epoch: m.Epoch}
		if cursor.Seq == 9 {
			break
		}
	}
	// Output:
	// survival starting
	// survival running
}

// Print the console of a container until it is deleted.
func ExampleContainers_Follow() {
	server := streaming(
		`{"event":"logs","data":"Starting server\n","time":"2026-01-02T03:04:05Z"}`,
		`{"event":"console","data":"Done (3.2s)!\n","time":"2026-01-02T03:04:09Z"}`)
	defer server.Close()
	c, err := client.New(client.Options{URL: server.URL})
	if err != nil {
		fmt.Println(err)
		return
	}
	for m, err := range c.Containers().Follow(context.Background(), "survival", client.OpenOptions{Tail: 100}) {
		switch {
		case err != nil:
			fmt.Println(err)
		case m.Event == client.EventConsole, m.Event == client.EventLogs:
			fmt.Print(m.Data)
		}
	}
	// Output:
	// Starting server
	// Done (3.2s)!
	// the container is deleted
}
