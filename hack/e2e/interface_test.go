package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"berth/hack/test/berthtest"
)

func TestHealth(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	for _, header := range [][]string{nil, {"Authorization", "", "Accept", ""}} {
		got := b.Do(t, "GET", "/api/v1/public/ping", nil, header...)
		require.Equal(t, 200, got.Status)
		require.JSONEq(t, `{"status":"ok","message":"berth is running"}`, string(got.Body))
		require.NotEmpty(t, got.Header.Get("X-Request-Id"))
	}
}

var uuid = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

func TestVolumes(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	var v struct {
		VolumeID string `json:"volume_id"`
		Path     string
	}
	answer := b.Do(t, "POST", "/volumes", nil)
	require.Equal(t, 201, answer.Status)
	answer.Decode(t, &v)
	require.Regexp(t, uuid, v.VolumeID)
	require.Equal(t, filepath.Join(b.Data, "volumes", v.VolumeID), v.Path)
	stat, err := os.Stat(v.Path)
	require.NoError(t, err, "the directory is there when the answer is")
	require.Equal(t, os.ModeDir|0o700, stat.Mode())
	walk(t, b, map[string]string{"v": v.VolumeID, "short": v.VolumeID[:8]}, []row{
		{"POST /volumes/{v}/files", `{"path":"a/b.txt","content":"hello"}`, 200, `{"message":"*","path":"a/b.txt"}`},
		{"GET /volumes/{short}/files?path=a", "", 200, `{"files":[{"name":"b.txt","type":"file","size":5}]}`},
		{"GET /volumes/{short}/files", "", 200, `{"files":[{"name":"a","type":"directory","size":0}]}`},
		{"POST /volumes/{v}/files", `{"path":"../x","content":""}`, 400, wrong("Invalid path: path traversal detected")},
		{"POST /volumes/{v}/files", `{"path":"/x","content":""}`, 400, wrong("Invalid path: path traversal detected")},
		{"POST /volumes/{v}/folders", `{"path":"C:x"}`, 400, wrong("Invalid path: path traversal detected")},
		{"POST /volumes/{v}/copy", `{"source":"a","destination":""}`, 400, wrong("Invalid path: path traversal detected")},
		{"GET /volumes/deadbeef/files", "", 404, wrong("Volume not found")},
		{"POST /volumes/deadbeef/folders", `{"path":"a"}`, 404, wrong("Volume not found")},
		{"GET /volumes/{v}", "", 200, `{"volume_id":"{v}","path":"*"}`},
		{"DELETE /volumes/{short}", "", 200, `{"message":"*"}`},
	})
	berthtest.Until(t, wait, "the directory is gone", func() bool {
		_, err := os.Stat(v.Path)
		return os.IsNotExist(err)
	})
}

func TestPorts(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	names := map[string]string{"p": strconv.Itoa(berthtest.FreePort(t)), "q": strconv.Itoa(berthtest.FreePort(t))}
	const port, notFound = `{"ip":"127.0.0.1","port":{p},"protocol":"tcp"`, "Port not found in pool"
	walk(t, b, names, []row{
		{"GET /network/ports", "", 200, `{"ports":[]}`},
		{"GET /network/ports/random", "", 404, wrong("No available ports in pool")},
		{"POST /network/ports", port + "}", 200, port + `,"message":"*"}`},
		{"POST /network/ports", port + "}", 400, wrong("Port already exists in pool")},
		{"GET /network/ports/127.0.0.1/{p}", "", 200, port + `,"in_use":false}`},
		{"GET /network/ports", "", 200, `{"ports":[` + port + `,"in_use":false}]}`},
		{"GET /network/ports/random", "", 200, port + `,"in_use":false}`},
		{"GET /network/ports/random", "", 200, port + `,"in_use":false}`}, // it was not marked
		{"PUT /network/ports/127.0.0.1/{p}/use", `{"in_use":true}`, 200, `{"message":"*","ip":"127.0.0.1","port":{p},"in_use":true}`},
		{"GET /network/ports/127.0.0.1/{p}", "", 200, port + `,"in_use":true}`},
		{"GET /network/ports/random", "", 404, wrong("No available ports in pool")},
		{"PUT /network/ports/127.0.0.1/{p}/use", `{"in_use":false}`, 200, `{"message":"*","ip":"127.0.0.1","port":{p},"in_use":false}`},
		{"GET /network/ports/random", "", 200, port + `,"in_use":false}`},
		{"GET /network/ports/127.0.0.1/{q}", "", 404, wrong(notFound)},
		{"GET /network/ports/127.0.0.2/{p}", "", 404, wrong(notFound)},
		{"PUT /network/ports/127.0.0.1/{q}/use", `{"in_use":true}`, 404, wrong(notFound)},
		{"DELETE /network/ports/127.0.0.1/{q}", "", 404, wrong(notFound)},
		{"POST /network/ports", `{"ip":"127.0.0.1","port":0,"protocol":"tcp"}`, 400, wrong("port: must be between 1 and 65535")},
		{"POST /network/ports", `{"ip":"127.0.0.1","port":65536,"protocol":"tcp"}`, 400, wrong("port: must be between 1 and 65535")},
		{"POST /network/ports", `{"ip":"127.0.0.1","port":{q},"protocol":"icmp"}`, 400, `{"error":"*"}`},
		{"POST /network/ports", `{"port":{q},"protocol":"tcp"}`, 400, `{"error":"*"}`},
		{"POST /network/ports", `{"ip":"127.0.0.1","port":"{q}","protocol":"tcp"}`, 400, `{"error":"*"}`},
		{"DELETE /network/ports/127.0.0.1/{p}", "", 200, `{"message":"*"}`},
		{"GET /network/ports/127.0.0.1/{p}", "", 404, wrong(notFound)},
		{"POST /network/ports", `{"ip":"0.0.0.0","port":{p},"protocol":"udp"}`, 200, `{"message":"*","ip":"0.0.0.0","port":{p},"protocol":"udp"}`},
		{"POST /network/ports", port + "}", 200, port + `,"message":"*"}`},
		{"POST /network/ports/bulk-delete", `{"ports":[{"ip":"0.0.0.0","port":{p}},{"ip":"127.0.0.1","port":{p}},{"ip":"127.0.0.1","port":{q}}]}`,
			200, `{"message":"*","deleted_count":2}`},
		{"GET /network/ports", "", 200, `{"ports":[]}`},
	})
}

func TestContainers(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	p, q := b.Port(t), b.Port(t)
	volume := b.Volume(t)
	names := map[string]string{"v": volume, "ip": p.IP, "image": berthtest.Busybox(t), "p": strconv.Itoa(p.Port), "q": strconv.Itoa(q.Port),
		"free": strconv.Itoa(berthtest.FreePort(t)), "path": filepath.Join(b.Data, "volumes", volume)}
	const (
		binding   = `{"ip":"{ip}","port":{p},"protocol":"tcp"}`
		notInPool = "Invalid port binding: port not in network pool"
		accepted  = `{"message":"*","internal_id":"mc"}`
		create    = `{"internal_id":"mc","image":"{image}","volume_id":"{v}","startup_command":"echo up; sleep 1000","start_pattern":"^up$",
			"ports":[` + binding + `],"limits":{"memory":67108864,"cpu":0.5},"install_script":"while [ ! -e go ]; do usleep 20000; done"}`
	)
	walk(t, b, names, []row{
		{"GET /containers", "", 200, `{"containers":[]}`},
		{"POST /containers", strings.Replace(create, "{p}", "{free}", 1), 400, wrong(notInPool)},
		{"POST /containers", strings.Replace(create, "{v}", "00000000-0000-4000-8000-000000000000", 1), 404, wrong("Volume not found")},
		{"POST /containers", `{"internal_id":"mc"}`, 400, `{"error":"*"}`},
		{"GET /network/ports/{ip}/{p}", "", 200, `{"in_use":false}`},
		{"POST /containers", create, 200, `{"message":"*","internal_id":"mc","state":"installing"}`},
		{"GET /network/ports/{ip}/{p}", "", 200, `{"in_use":true,"container":"mc"}`},
		{"POST /containers", create, 409, wrong("Container already exists")},
		{"POST /containers/mc/rebind-network", `{"ports":[` + binding + `]}`, 400, wrong("Cannot rebind network while container is installing")},
		{"GET /containers/mc", "", 200, `{"internal_id":"mc","volume_id":"{v}","image":"{image}","startup_command":"echo up; sleep 1000","start_pattern":"^up$",
			"install_state":"installing","ports":[` + binding + `],"limits":{"memory":67108864,"cpu":0.5},
			"mount":{"source":"{path}","target":"/home/container"},"created_at":"*","updated_at":"*"}`},
		{"POST /volumes/{v}/files", `{"path":"go","content":""}`, 200, `{"message":"*","path":"go"}`},
	})
	b.Await(t, "mc", "ready", func(c berthtest.Container) bool { return c.State == "ready" && c.ContainerID != "" })
	require.NotContains(t, string(b.Do(t, "GET", "/containers/mc", nil).Body), "install_script")
	walk(t, b, names, []row{
		{"GET /containers", "", 200, `{"containers":[{"internal_id":"mc","container_id":"*","install_state":"ready","image":"{image}"}]}`},
		{"POST /containers/mc/start", "", 200, accepted},
		{"POST /containers/mc/start", "", 200, accepted},
	})
	b.State(t, "mc", "running")
	walk(t, b, names, []row{
		{"POST /containers/mc/rebind-network", `{"ports":[{"ip":"{ip}","port":{free},"protocol":"tcp"}]}`, 400, wrong(notInPool)},
		{"POST /containers/mc/rebind-network", `{"ports":[{"ip":"{ip}","port":{q},"protocol":"tcp"}]}`, 200, accepted},
		{"GET /network/ports/{ip}/{p}", "", 200, `{"in_use":false,"container":null}`},
		{"GET /network/ports/{ip}/{q}", "", 200, `{"in_use":true,"container":"mc"}`},
		{"DELETE /network/ports/{ip}/{q}", "", 409, wrong("Port is already bound by container mc")},
		{"POST /containers/mc/restart", "", 200, accepted},
		{"POST /containers/mc/kill", "", 200, accepted},
		{"POST /containers/mc/reinstall", `{"image":"{image}","install_script":"true"}`, 200, accepted},
		{"POST /containers/mc/reinstall", "{}", 200, accepted},
		{"DELETE /containers/mc", "", 200, `{"message":"*"}`},
	})
	b.Gone(t, "mc")
	require.Empty(t, b.Containers(t, ""), "nothing is left on the engine")
	walk(t, b, names, append(unknown("mc"), row{"GET /network/ports/{ip}/{q}", "", 200, `{"in_use":false,"container":null}`}))
}

// unknown returns the rows for a container that does not exist.
func unknown(id string) (rows []row) {
	for _, r := range []string{"GET ", "DELETE ", "POST /start", "POST /kill", "POST /restart", "POST /stop"} {
		method, verb, _ := strings.Cut(r, " ")
		rows = append(rows, row{fmt.Sprintf("%s /containers/%s%s", method, id, verb), "", 404, wrong("Container not found")})
	}
	return append(rows,
		row{"POST /containers/" + id + "/reinstall", "{}", 404, wrong("Container not found")},
		row{"POST /containers/" + id + "/rebind-network", `{"ports":[]}`, 404, wrong("Container not found")})
}
