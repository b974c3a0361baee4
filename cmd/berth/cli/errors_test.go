package cli

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fasthttp/websocket"
	"github.com/stretchr/testify/require"
)

// TestExitCodes runs commands that fail, each in another way.
func TestExitCodes(t *testing.T) {
	f := newFakeAPI(t, map[string]string{
		"GET /readyz": `503 {"error":"Not ready: engine"}`, "GET /containers": `200 {"containers":[]}`, "GET /volumes": "200 pong",
		"DELETE /volumes/used": `409 {"error":"Volume is in use"}`, "DELETE /volumes/sick": `500 {"error":"Internal server error"}`,
		"DELETE /volumes/denied": `403 {"error":"Token lacks the scope"}`, "DELETE /volumes/slow": `504 {"error":"too slow"}`,
		"DELETE /volumes/full": `503 {"error":"Database operation failed"}`, "DELETE /volumes/good": `200 {}`,
		"GET /containers/mc": "200 " + oneContainer, "POST /network/ports/bulk-delete": `200 {"deleted_count":0,"skipped":[]}`,
	})
	away := []string{"BERTH_URL=http://127.0.0.1:1", "BERTH_TOKEN=" + clientToken}
	deletedSocket, _ := newFakeSocket(t, websocket.CloseNormalClosure, "")
	refusedSocket, _ := newFakeSocket(t, websocket.ClosePolicyViolation, "token expired")
	fullSocket, _ := newFakeSocket(t, websocket.CloseTryAgainLater, "too slow")
	for name, c := range map[string]struct {
		env  []string
		args string
		want int
	}{
		"success":               {f.env(), "volumes delete good", 0},
		"unknown command":       {f.env(), "volmes", exitUsage},
		"unknown flag":          {f.env(), "volumes --all", exitUsage},
		"bad flag":              {f.env(), "events -n many", exitUsage},
		"missing flag":          {f.env(), "apply", exitUsage},
		"exclusive flags":       {f.env(), "events -n 1 --since 1", exitUsage},
		"missing argument":      {f.env(), "start", exitUsage},
		"not a URL":             {nil, "volumes --url foo", exitUsage},
		"invalid port":          {nil, "volumes --url http://127.0.0.1:22222222", exitUsage},
		"bad lifetime":          {nil, "token create --ttl 5x", exitUsage},
		"bad size":              {nil, "volumes create --size-limit x", exitUsage},
		"bad type of event":     {nil, "events --type foo", exitUsage},
		"negative number":       {f.env(), "events -n -1", exitUsage},
		"negative audit":        {f.env(), "audit -n -1", exitUsage},
		"not in the pool":       {f.env(), "ports delete :: 1", exitNotFound},
		"bad format":            {f.env(), "volumes -o xml", exitUsage},
		"bad state":             {f.env(), "wait mc starting", exitUsage},
		"no configuration":      {nil, "volumes --config /none", exitError},
		"internal error":        {f.env(), "volumes delete sick", exitError},
		"not berth":             {f.env(), "volumes", exitError},
		"not found":             {f.env(), "volumes delete nope", exitNotFound},
		"wrong token":           {append(f.env(), "BERTH_TOKEN=x"), "volumes", exitDenied},
		"lacks scope":           {f.env(), "volumes delete denied", exitDenied},
		"conflict":              {f.env(), "volumes delete used", exitConflict},
		"daemon's timeout":      {f.env(), "volumes delete slow", exitTimeout},
		"client's timeout":      {f.env(), "wait mc running --timeout 1ms", exitTimeout},
		"away":                  {away, "volumes", exitUnavailable},
		"unready":               {f.env(), "status", exitUnavailable},
		"unavailable":           {f.env(), "volumes delete full", exitUnavailable},
		"gravest of two":        {f.env(), "volumes delete nope used good", exitConflict},
		"gravest of all":        {f.env(), "volumes delete nope used sick slow denied", exitDenied},
		"deleted container":     {deletedSocket, "logs mc -f", exitNotFound},
		"token expired":         {refusedSocket, "logs mc -f", exitDenied},
		"no such container's":   {fullSocket, "logs none -f", exitNotFound},
		"invalid configuration": {[]string{"BERTH_CONFIG=/none"}, "config check", exitError},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := command(t, c.env, strings.Fields(c.args)...)
			require.Equal(t, c.want, ExitCode(err), "%v", err)
		})
	}
}

// TestEachStopsWithoutDaemon names the ids that it has not tried, because a hundred
// timeouts would take an hour.
func TestEachStopsWithoutDaemon(t *testing.T) {
	away := []string{"BERTH_URL=http://127.0.0.1:1", "BERTH_TOKEN=" + clientToken}
	_, _, err := command(t, away, "kill", "a", "b", "c")
	require.Regexp(t, `^no daemon answers at http://127.0.0.1:1 .*\nnot tried: b, c$`, err.Error())
	f := newFakeAPI(t, nil)
	_, _, err = command(t, append(f.env(), "BERTH_TOKEN=x"), "delete", "a", "b")
	require.Regexp(t, `^delete a: Missing or invalid authorization token .*\nnot tried: b$`, err.Error())
	require.Len(t, f.requests, 1)
}

func TestInterruptedCommand(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	}))
	defer server.Close()
	root := NewRoot(Options{Environ: []string{"BERTH_URL=" + server.URL, "BERTH_TOKEN=" + clientToken}})
	root.SetArgs([]string{"volumes"})
	err := root.ExecuteContext(ctx)
	require.ErrorIs(t, err, ErrInterrupted)
	require.Equal(t, exitInterrupted, ExitCode(err))
}
