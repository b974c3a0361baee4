package soak_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/api/client"
	v1 "berth/api/v1"
	"berth/hack/test/berthtest"
	"berth/hack/test/enginetest"
)

// hostileScript is what the tenant runs inside its container: open terminals, deep trees, hard links, links
// that change their target, many small files, unlinked open files, a file of
// 8 TiB without blocks, floods of output with control bytes, and a program that hides open files in sockets.
const hostileScript = `
rm -f sending; i=10; while [ $i -lt 200 ]; do eval "exec $i<>/dev/ptmx"; i=$((i+1)); done
d=deep; i=0; while [ $i -lt 250 ]; do d=$d/d; i=$((i+1)); done; mkdir -p $d
truncate -s 8T sparse
yes k= | head -c 250000 > many.txt; yes '- &a [1]' | head -c 500000 > many.yml; yes '<a>' | head -c 500000 > deep.xml
while :; do
  ln -sfn / swap; ln -sfn /etc swap; mkdir -p real; rm -f swap; mv real swap 2>/dev/null; rm -rf swap
  i=0; while [ $i -lt 500 ]; do : > small.$i; i=$((i+1)); done; rm -f small.*
  rm -rf links; cp -rl deep links; ln -f sparse links/a; ln -f many.txt links/b
  dd if=/dev/zero of=held bs=1M count=8 2>/dev/null; exec 3<held; rm -f held
  [ -e sending ] || ! [ -x sender ] || { touch sending; ./sender & }
  seq 1 20000; i=0; while [ $i -lt 200 ]; do printf '\001\002\033[2J\n'; i=$((i+1)); done
  usleep 300000
done`

// hostileClient attacks with a token that is limited to one container and has every scope that
// such a token may have.
type hostileClient struct {
	target
	http              *http.Client
	requests, refused atomic.Int64
}

func newHostileClient(to target) *hostileClient {
	return &hostileClient{target: to, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}, Timeout: 20 * time.Second}}
}

// startHostileTenant starts a container that runs hostileScript with root in its
// volume, and returns the target of its client.
func startHostileTenant(t *testing.T, b *berthtest.Berth, sftp string, engine *enginetest.Isolated) target {
	t.Helper()
	c := b.Started(t, "evil", berthtest.Spec{"image": engine.Busybox(t), "startup_command": hostileScript, "tty": false,
		"limits": map[string]any{"memory": 96 << 20, "cpu": 0.3}, "restart_policy": map[string]any{"mode": "always"},
		"env": map[string]string{"LONG": strings.Repeat("x", 60_000), senderKey: "1"}, "config_files": []v1.ConfigFile{ // the tenant writes the files
			{Path: "many.txt", Format: "text", Set: map[string]string{"k": "${LONG}"}},
			{Path: "many.yml", Format: "yaml", Set: map[string]string{"a.b": "${LONG}"}},
			{Path: "deep.xml", Format: "xml", Set: map[string]string{"/a/b": "${LONG}"}},
		}})
	program, err := os.ReadFile(os.Args[0])
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(b.Data, "volumes", c.VolumeID, "sender"), program, 0o755))
	var token struct{ Token string }
	b.Post(t, "/auth/tokens", map[string]any{"ttl": "24h", "containers": []string{"evil"},
		"scopes": []string{"read", "power", "console", "files"}}).Decode(t, &token)
	return target{b.Addr, sftp, token.Token, c.VolumeID}
}

// rest kills the hostile container, and waits for its exit.
func rest(t *testing.T, b *berthtest.Berth) {
	t.Helper()
	b.Verb(t, "evil", "kill")
	b.Await(t, "evil", "exit", func(c berthtest.Container) bool { return c.State == "exit" })
}

// send sends a request, and returns at most 1 MiB of the body of its answer.
func (h *hostileClient) send(ctx context.Context, method, path string, body io.Reader, token string) (answer []byte) {
	request, err := http.NewRequestWithContext(ctx, method, "http://"+h.Addr+path, body)
	if err != nil {
		return nil
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	request.Header.Set("Accept", client.Vendor)
	h.requests.Add(1)
	response, err := h.http.Do(request)
	if err != nil {
		h.refused.Add(1)
		return nil
	}
	defer response.Body.Close()
	answer, _ = io.ReadAll(io.LimitReader(response.Body, 1<<20))
	_, _ = io.Copy(io.Discard, response.Body)
	if response.StatusCode >= 400 {
		h.refused.Add(1)
	}
	return answer
}

// parallel runs one request n times at once.
func parallel(n int, one func()) {
	var all sync.WaitGroup
	for range n {
		all.Go(one)
	}
	all.Wait()
}

func (h *hostileClient) files(path string) string { return "/volumes/" + h.Volume + path }

func (h *hostileClient) searchDeepTree(ctx context.Context) {
	parallel(45, func() { h.send(ctx, "GET", h.files("/files/search?query=zzz"), nil, h.Token) })
}

func (h *hostileClient) sendLargeBodies(ctx context.Context) {
	body := []byte(`{` + strings.Repeat(`"":0,`, 200_000) + `"x":0}`)
	parallel(20, func() {
		h.send(ctx, "POST", "/containers/evil/command", bytes.NewReader(body), h.Token)
		h.send(ctx, "POST", h.files("/files"), bytes.NewReader(body), h.Token)
	})
}

func (h *hostileClient) readLogs(ctx context.Context) {
	parallel(20, func() { h.send(ctx, "GET", "/containers/evil/logs?tail=10000", nil, h.Token) })
}

func (h *hostileClient) archiveSparseFile(ctx context.Context) {
	body := `{"format":"tar.gz","output_name":"loot","paths":["sparse"]}`
	parallel(4, func() { h.send(ctx, "POST", h.files("/compress"), strings.NewReader(body), h.Token) })
	h.send(ctx, "POST", h.files("/copy"), strings.NewReader(`{"source":"sparse","destination":"sparse2"}`), h.Token)
	h.send(ctx, "DELETE", h.files("/files?path=loot.tar.gz"), nil, h.Token)
	h.send(ctx, "DELETE", h.files("/files?path=sparse2"), nil, h.Token)
}

func (h *hostileClient) applySpecs(ctx context.Context) {
	spec := `{"image":"berth-test/busybox:1","volume_id":%q,"mounts":[{"source":"/","target":"/host"}]}`
	h.send(ctx, "PUT", "/containers/evil", strings.NewReader(fmt.Sprintf(spec, h.Volume)), h.Token)
	h.send(ctx, "POST", "/containers/evil/reinstall", strings.NewReader(`{"image":"127.0.0.1:1/none:1"}`), h.Token)
	h.send(ctx, "POST", "/containers/good/kill", nil, h.Token)
	h.send(ctx, "DELETE", "/containers/good?volume=true", nil, h.Token)
	h.send(ctx, "GET", "/remote/config", nil, h.Token)
}

func (h *hostileClient) changePower(ctx context.Context) {
	for _, verb := range []string{"start", "restart", "start"} {
		h.send(ctx, "POST", "/containers/evil/"+verb, nil, h.Token)
	}
	h.send(ctx, "POST", "/containers/evil/command", strings.NewReader(`{"command":"x"}`), h.Token)
	sleep(ctx, 5*time.Second) // so that it also runs
}

// spendTickets opens links and sockets with tickets: each has the rights of the token once.
func (h *hostileClient) spendTickets(ctx context.Context) {
	parallel(50, func() {
		ticket := func() string {
			var minted struct{ Token string }
			_ = json.Unmarshal(h.send(ctx, "POST", "/auth/tickets", nil, h.Token), &minted)
			return minted.Token
		}
		h.send(ctx, "GET", "/containers/evil/logs/content?token="+ticket(), nil, "")
		if conn := h.socket(ctx, "?tail=10000&token="+ticket(), ""); conn != nil {
			sleep(ctx, 2*time.Second)
			_ = conn.Close()
		}
	})
}

// restoreByTurns makes backups, restores them over the running container, and deletes them.
func (h *hostileClient) restoreByTurns(ctx context.Context) {
	var backups struct {
		Backups []struct {
			BackupID string `json:"backup_id"`
		}
	}
	h.send(ctx, "POST", h.files("/backups"), nil, h.Token)
	_ = json.Unmarshal(h.send(ctx, "GET", h.files("/backups"), nil, h.Token), &backups)
	for i, b := range backups.Backups {
		h.send(ctx, "POST", "/backups/"+b.BackupID+"/restore", strings.NewReader(`{"stop":true}`), h.Token)
		if i > 3 {
			h.send(ctx, "DELETE", "/backups/"+b.BackupID, nil, h.Token)
		}
	}
}

func (h *hostileClient) mintTokens(ctx context.Context) {
	parallel(5, func() { h.send(ctx, "POST", "/auth/tokens", strings.NewReader(`{"ttl":"1m"}`), h.Token) })
}

func (h *hostileClient) spendWrongTokens(ctx context.Context) {
	parallel(10, func() { h.send(ctx, "GET", "/containers", nil, berthtest.NewToken()) })
}

func (h *hostileClient) readEverything(ctx context.Context) {
	parallel(128, func() {
		h.send(ctx, "GET", "/network/ports", nil, h.Token)
		h.send(ctx, "GET", "/containers", nil, h.Token)
	})
}

// useNewKeys sends requests with new idempotency keys, whose responses are stored.
func (h *hostileClient) useNewKeys(ctx context.Context) {
	parallel(20, func() {
		request, err := http.NewRequestWithContext(ctx, "POST", "http://"+h.Addr+"/containers/evil/command", strings.NewReader(`{"command":"x"}`))
		if err != nil {
			return
		}
		request.Header = http.Header{"Authorization": {"Bearer " + h.Token}, "Accept": {client.Vendor}, "Idempotency-Key": {berthtest.NewToken()}}
		h.requests.Add(1)
		if response, err := h.http.Do(request); err == nil {
			_ = response.Body.Close()
		}
	})
}

// queueCommands types more than the container reads.
func (h *hostileClient) queueCommands(ctx context.Context) {
	body := `{"command":"` + strings.Repeat("x", 100_000) + `"}`
	parallel(40, func() { h.send(ctx, "POST", "/containers/evil/command", strings.NewReader(body), h.Token) })
}

// fillAudit sends requests that are refused, to fill the audit log with their entries.
func (h *hostileClient) fillAudit(ctx context.Context) {
	parallel(50, func() { h.send(ctx, "POST", "/containers/good/kill", nil, h.Token) })
}

// putPolicies sets a policy whose backups wait for a line that is never printed.
func (h *hostileClient) putPolicies(ctx context.Context) {
	policy := `{"every":"1m","keep":1,"quiesce":{"container":"evil","before":"x","wait_for":"never printed","timeout":"2m"}}`
	h.send(ctx, "PUT", h.files("/backup-policy"), strings.NewReader(policy), h.Token)
}
