package hack_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestServiceStaysInTheHostsMounts: these options of systemd give a service
// mounts of its own. Docker would not see what berth mounts there for containers, and give them
// the empty folders beneath.
func TestServiceStaysInTheHostsMounts(t *testing.T) {
	text, err := os.ReadFile("berth.service")
	require.NoError(t, err)
	require.NotRegexp(t, regexp.MustCompile(`(?m)^(Protect(System|Home|KernelTunables|KernelModules|KernelLogs|ControlGroups|Proc)|Private(Tmp|Devices|Mounts)|`+
		`(ReadOnly|ReadWrite|Inaccessible|Exec|NoExec|Bind|BindReadOnly)Paths|TemporaryFileSystem|Root(Directory|Image)|ProcSubset|MountFlags|DynamicUser|MountAPIVFS)=`), string(text))
	require.Contains(t, string(text), "ExecReload=/bin/kill -HUP $MAINPID")
}

// TestServiceIsRestartedAndConfined: what systemd has to do for berth, and what
// it has to keep it from.
func TestServiceIsRestartedAndConfined(t *testing.T) {
	unit := unitOf(t, "berth.service")
	require.Equal(t, "0", unit["Unit"]["StartLimitIntervalSec"], "systemd ignores it in [Service]")
	for key, want := range map[string]string{
		"Type": "notify", "Restart": "always", "WatchdogSec": "60", "CPUWeight": "10", "OOMScoreAdjust": "-900", "LimitNOFILE": "65536",
		"NoNewPrivileges": "yes", "LockPersonality": "yes", "RestrictRealtime": "yes", "SystemCallArchitectures": "native",
		"RestrictAddressFamilies": "AF_UNIX AF_INET AF_INET6 AF_NETLINK",
	} {
		require.Equal(t, want, unit["Service"][key], key)
	}
	capabilities := strings.Fields(unit["Service"]["CapabilityBoundingSet"])
	require.Subset(t, capabilities, []string{"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_SYS_ADMIN", "CAP_NET_ADMIN"})
	for _, none := range []string{"CAP_SYS_MODULE", "CAP_SYS_RAWIO", "CAP_SYS_BOOT", "CAP_SYS_TIME", "CAP_BPF", "CAP_MKNOD", "CAP_SETUID", "CAP_KILL"} {
		require.NotContains(t, capabilities, none)
	}
}

// TestServiceOfTheBridge: it is restarted, sees all paths of mounts and folders of wings, and can do little else.
func TestServiceOfTheBridge(t *testing.T) {
	unit := unitOf(t, "berth-wings.service")
	require.Equal(t, "0", unit["Unit"]["StartLimitIntervalSec"])
	for key, want := range map[string]string{
		"Restart": "always", "Environment": "BERTH_TOKEN_FILE=/etc/berth/wings.token", "EnvironmentFile": "-/etc/default/berth-wings",
		"ExecStart": "/usr/local/bin/berth-wings $OPTIONS", "LimitNOFILE": "65536", "CPUWeight": "10", "UMask": "0077",
		"NoNewPrivileges": "yes", "ProtectSystem": "yes", "PrivateDevices": "yes", "ProtectKernelModules": "yes",
		"CapabilityBoundingSet": "CAP_DAC_OVERRIDE CAP_NET_BIND_SERVICE", "RestrictAddressFamilies": "AF_UNIX AF_INET AF_INET6 AF_NETLINK",
		"ProtectHome": "", "PrivateTmp": "", "Type": "",
	} {
		require.Equal(t, want, unit["Service"][key], key)
	}
	require.Equal(t, "multi-user.target", unit["Install"]["WantedBy"])
}

// unitOf returns the assignments of a unit by section and key.
func unitOf(t *testing.T, path string) map[string]map[string]string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	unit := map[string]map[string]string{}
	section := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		key, value, assigns := strings.Cut(line, "=")
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '[':
			section = strings.Trim(line, "[]")
			unit[section] = map[string]string{}
		case assigns:
			unit[section][key] = value
		}
	}
	return unit
}
