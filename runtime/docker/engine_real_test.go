package docker

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	goruntime "runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"berth/hack/test/enginetest"
	"berth/runtime"
)

func TestInspectFindsRenamedContainer(t *testing.T) {
	r := newRig(t)
	s := r.spec("renamed", "sleep 1000")
	id := r.run(t, s)
	require.Equal(t, 204, r.client.Act(t, id, "rename?name="+r.cfg.StoreID+"-elsewhere"))
	fresh := r.twin(t)
	for _, e := range []*Engine{r.Engine, fresh.Engine} {
		got, err := e.Inspect(t.Context(), s.Name)
		require.NoError(t, err)
		require.Equal(t, id, got.ContainerID)
	}
	require.NoError(t, fresh.Kill(t.Context(), s.Name))
	require.NoError(t, fresh.Remove(t.Context(), s.Name))
	_, found := r.client.Inspect(t, id)
	require.False(t, found)
}

func TestStartFindsReplacedContainer(t *testing.T) {
	r := newRig(t)
	s := r.spec("replaced", "sleep 1000")
	old := r.run(t, s)
	r.client.Remove(t, old)
	fresh := r.twin(t)
	id, err := fresh.Create(t.Context(), s)
	require.NoError(t, err)
	require.NoError(t, r.Start(t.Context(), s.Name), "by an id that is out of date")
	got, err := r.Inspect(t.Context(), s.Name)
	require.NoError(t, err)
	require.Equal(t, id, got.ContainerID)
	require.True(t, got.Running)
}

func TestNetworkIsRecreated(t *testing.T) {
	c := enginetest.Shared(t)
	name := fmt.Sprintf("berth-test-%d", time.Now().UnixNano())
	r := newRig(t, func(c *Config) { c.Network, c.MTU = name, 1400 })
	t.Cleanup(func() {
		r.client.CleanStore(t, r.cfg.StoreID)
		c.Must(t, http.MethodDelete, "/networks/"+name, nil)
	})
	var made [4]error
	done := make(chan struct{})
	for i := range made {
		go func() {
			_, made[i] = r.Create(t.Context(), r.spec(fmt.Sprint("net", i), "sleep 1000"))
			done <- struct{}{}
		}()
	}
	for range made {
		<-done
	}
	for _, err := range made {
		require.NoError(t, err)
	}
	var networks []map[string]any
	list := func() int {
		networks = nil
		decodeInto(t, c.Must(t, http.MethodGet, `/networks?filters={"name":["`+name+`"]}`, nil), &networks)
		return len(networks)
	}
	require.Equal(t, 1, list())
	require.Equal(t, false, networks[0]["EnableIPv6"])
	require.Equal(t, map[string]any{optionICC: "false", optionName: interfaceName(name), optionMTU: "1400"}, networks[0]["Options"])
	s := r.spec("mtu", "cat /sys/class/net/eth0/mtu")
	require.Equal(t, []string{"1400"}, joinLines(r.read(t, r.run(t, s), time.Time{}, true)))

	c.Must(t, http.MethodDelete, "/networks/"+name, nil)
	require.NoError(t, r.Start(t.Context(), r.spec("net0", "").Name), "the network went missing under a container")
	require.Equal(t, 1, list())
	one, _ := c.Inspect(t, r.realName(r.spec("net0", "").Name))
	require.Equal(t, name, one.HostConfig.NetworkMode)
}

// Many daemons of one host that start at the same time share one network.
func TestDaemonsCreateOneNetwork(t *testing.T) {
	c := enginetest.Shared(t)
	name := fmt.Sprintf("berth-test-%d", time.Now().UnixNano())
	first := newRig(t, func(c *Config) { c.Network = name })
	t.Cleanup(func() {
		var networks []struct{ ID string }
		decodeInto(t, c.Must(t, http.MethodGet, `/networks?filters={"name":["`+name+`"]}`, nil), &networks)
		for _, n := range networks {
			c.Must(t, http.MethodDelete, "/networks/"+n.ID, nil)
		}
		require.Len(t, networks, 1)
	})
	var group errgroup.Group
	for range 16 {
		daemon := first.twin(t)
		group.Go(func() error {
			for {
				err := daemon.net.ensure(t.Context())
				if !errors.Is(err, errNetworkTaken) { // it is worth another attempt
					return err
				}
			}
		})
	}
	require.NoError(t, group.Wait())
}

func TestContainersAreIsolated(t *testing.T) {
	r := newRig(t)
	r.run(t, r.spec("listens", "nc -ll -p 7777 -e echo hello"))
	one, _ := r.client.Inspect(t, r.realName(r.spec("listens", "").Name))
	networks := one.Raw["NetworkSettings"].(map[string]any)["Networks"].(map[string]any)
	ip := networks["berth-test"].(map[string]any)["IPAddress"].(string)
	require.NotEmpty(t, ip)
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", ip+":7777")
		return err == nil && conn.Close() == nil
	}, time.Minute, 10*time.Millisecond, "the host reaches it")
	id := r.run(t, r.spec("tries", "nc -w 1 "+ip+" 7777 </dev/null >/dev/null 2>&1 && echo reached || echo refused"))
	require.Equal(t, []string{"refused"}, joinLines(r.read(t, id, time.Time{}, true)))
}

// The privileges of a container's process, seen from inside.
func TestContainerPrivileges(t *testing.T) {
	r := newRig(t)
	script := `grep -E '^(CapEff|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status; mknod /tmp/d b 7 0 2>/dev/null || echo no mknod; cat /proc/1/comm; env | grep -c -i berth`
	id := r.run(t, r.spec("confined", script))
	text := strings.Join(joinLines(r.read(t, id, time.Time{}, true)), "\n")
	// CHOWN 0, DAC_OVERRIDE 1, FOWNER 3, KILL 5, SETGID 6, SETUID 7, NET_BIND_SERVICE 10
	require.Regexp(t, `CapEff:\s+00000000000004eb`, text)
	require.Regexp(t, `CapBnd:\s+00000000000004eb`, text)
	require.Regexp(t, `NoNewPrivs:\s+1`, text)
	require.Regexp(t, `Seccomp:\s+2`, text)
	require.Contains(t, text, "no mknod")
	require.Contains(t, text, "keeper")
	require.True(t, strings.HasSuffix(text, "\n0"), text)
}

func TestPull(t *testing.T) {
	r := newRig(t)
	registry := enginetest.StartRegistry(t)
	unique := r.cfg.StoreID + "/own:1"
	r.client.Import(t, unique, enginetest.BusyboxTar(t), "LABEL only="+r.cfg.StoreID)
	ref := registry.Push(t, r.client, unique, "own:1")
	r.client.RemoveImage(t, unique)
	t.Cleanup(func() { r.client.RemoveImage(t, ref) })
	id, err := r.ImageID(t.Context(), ref)
	require.NoError(t, err)
	require.Empty(t, id)
	require.NoError(t, r.Pull(t.Context(), ref, runtime.Auth{}, nil))
	id, err = r.ImageID(t.Context(), ref)
	require.NoError(t, err)
	require.NotEmpty(t, id)

	began := time.Now()
	require.ErrorIs(t, r.Pull(t.Context(), registry.Addr+"/none:1", runtime.Auth{}, nil), runtime.ErrImageNotFound)
	require.ErrorIs(t, r.Pull(t.Context(), ref+"9", runtime.Auth{}, nil), runtime.ErrImageNotFound)
	require.Less(t, time.Since(began), 30*time.Second, "a client waits for this error")
	require.ErrorIs(t, r.Pull(t.Context(), "NOT::valid", runtime.Auth{}, nil), runtime.ErrInvalid)

	err = r.Pull(t.Context(), "127.0.0.1:1/none:1", runtime.Auth{}, nil) // nothing listens there
	require.ErrorContains(t, err, "connection refused")
	for _, sentinel := range []error{runtime.ErrImageNotFound, runtime.ErrDenied, runtime.ErrUnavailable, runtime.ErrInvalid} {
		require.NotErrorIs(t, err, sentinel, "an unreachable registry says nothing about the image")
	}
}

// TestForeignImage: a program of another machine ends at once, and the engine
// does not report the cause.
func TestForeignImage(t *testing.T) {
	r := newRig(t)
	arch := map[string]string{"amd64": "arm64"}[goruntime.GOARCH]
	arch = cmp.Or(arch, "amd64")
	ref := "berth-test/" + strings.ToLower(rand.Text()[:10]) + ":1"
	garbage := append([]byte("\x7fELF\x02\x01\x01"), make([]byte, 64)...)
	r.client.Load(t, ref, arch, enginetest.BusyboxTar(t, map[string][]byte{"bin/game": garbage}))
	t.Cleanup(func() { r.client.RemoveImage(t, ref) })
	s := r.spec("foreign", "")
	s.Image, s.Command = ref, []string{"/bin/game"}
	t.Cleanup(func() { require.NoError(t, r.Remove(context.Background(), s.Name)) })
	r.run(t, s)
	var state runtime.State
	require.Eventually(t, func() bool {
		var err error
		state, err = r.Inspect(t.Context(), s.Name)
		require.NoError(t, err)
		return !state.FinishedAt.IsZero()
	}, time.Minute, 20*time.Millisecond)
	require.NotZero(t, state.ExitCode)
	text, err := r.Foreign(t.Context(), state.ImageID)
	require.NoError(t, err)
	require.Equal(t, "linux/"+arch+", and this machine is linux/"+goruntime.GOARCH, text)

	id, err := r.ImageID(t.Context(), r.image)
	require.NoError(t, err)
	text, err = r.Foreign(t.Context(), id)
	require.NoError(t, err)
	require.Empty(t, text)
}

func TestInspectAfterQuickExit(t *testing.T) {
	r := newRig(t)
	s := r.spec("quick", "exit 7")
	r.run(t, s)
	require.Eventually(t, func() bool {
		got, err := r.Inspect(t.Context(), s.Name)
		return err == nil && !got.Running && got.ExitCode == 7 && !got.FinishedAt.IsZero()
	}, time.Minute, 5*time.Millisecond)
}

func TestInputInOrder(t *testing.T) {
	r := newRig(t)
	for _, tty := range []bool{false, true} {
		s := r.spec(fmt.Sprint("input-", tty), "stty -echo 2>/dev/null; echo ready; while read -r x; do echo got $x; done")
		s.TTY = tty
		id := r.run(t, s)
		var got []string
		ctx, cancel := context.WithCancel(t.Context())
		lines, ended := make(chan string, 1000), make(chan error, 1)
		run := r.target(t, id, true)
		go func() {
			ended <- r.Logs(ctx, run, time.Time{}, func(l runtime.Line) error {
				lines <- string(l.Data)
				return nil
			})
		}()
		require.Equal(t, "ready", <-lines)
		open := descriptors(t)
		for i := range 50 {
			require.NoError(t, r.Input(t.Context(), id, fmt.Appendf(nil, "line %d\n", i)))
		}
		for i := range 50 {
			require.Equal(t, fmt.Sprintf("got line %d", i), <-lines, got)
		}
		require.Less(t, descriptors(t), open+10, "each attach is closed")
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
	}
}

// descriptors counts the open files of this process.
func descriptors(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(all)
}

// Otherwise each container would leave a volume that nothing can use.
func TestRemoveDeletesAnonymousVolumes(t *testing.T) {
	r := newRig(t)
	image := "berth-test/" + strings.ToLower(r.cfg.StoreID) + ":1"
	r.client.Import(t, image, enginetest.BusyboxTar(t), "VOLUME /data")
	t.Cleanup(func() { r.client.RemoveImage(t, image) })
	host := t.TempDir()
	s := r.spec("anonymous", "echo kept > /home/container/file; sleep 1000")
	s.Image, s.Mounts = image, []runtime.Mount{{Source: host, Target: "/home/container"}}
	id := r.run(t, s)
	one, _ := r.client.Inspect(t, id)
	var volume string
	for _, m := range one.Mounts {
		if m.Type == "volume" {
			volume = m.Name
		}
	}
	require.NotEmpty(t, volume)
	require.Eventually(t, func() bool { _, err := os.Stat(host + "/file"); return err == nil }, time.Minute, 10*time.Millisecond)
	require.NoError(t, r.Kill(t.Context(), s.Name))
	require.NoError(t, r.Remove(t.Context(), s.Name))
	status, _ := r.client.Do(t, http.MethodGet, "/volumes/"+volume, nil)
	require.Equal(t, 404, status)
	require.FileExists(t, host+"/file", "the file of the host stays")
}
