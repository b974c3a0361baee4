package docker

import (
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"berth/runtime"
)

func TestInfo(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	require.NoError(t, err)
	server := &http.Server{Handler: ping(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/version"):
			_, _ = w.Write([]byte(`{"Version":"20.10.24+dfsg1","ApiVersion":"1.41"}`))
		case strings.HasSuffix(r.URL.Path, "/info"):
			_, _ = w.Write([]byte(`{"Driver":"overlay2","CgroupVersion":"2","CgroupDriver":"systemd","LiveRestoreEnabled":true,
				"MemoryLimit":true,"SwapLimit":false,"CpuCfsQuota":true,"PidsLimit":true,"DockerRootDir":"/var/lib/docker",
				"Containers":7,"ContainersRunning":3,"KernelVersion":"6.1.0","OperatingSystem":"Debian","Architecture":"x86_64",
				"Warnings":["WARNING: No swap limit support"]}`))
		default:
			http.NotFound(w, r)
		}
	})}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })

	info, err := Info(t.Context(), "unix://"+socket)
	require.NoError(t, err)
	require.Equal(t, runtime.EngineInfo{Version: "20.10.24+dfsg1", API: "1.41", Kernel: "6.1.0", OS: "Debian",
		StorageDriver: "overlay2", CgroupVersion: "2", LiveRestore: true, Root: "/var/lib/docker", Firewall: "iptables",
		Limits: runtime.EngineLimits{Memory: true, CPU: true, Pids: true}}, info)
}

func TestInfoWithoutEngine(t *testing.T) {
	_, err := Info(t.Context(), "unix:///does/not/exist")
	require.ErrorIs(t, err, runtime.ErrUnavailable)
}
