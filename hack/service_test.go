package hack_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestServiceStaysInTheHostsMounts: these options of systemd give a service
// mounts of its own. Docker would not see the volumes that berth mounts there
// (storage.hard_limit), and give containers the empty folders beneath.
func TestServiceStaysInTheHostsMounts(t *testing.T) {
	text, err := os.ReadFile("berth.service")
	require.NoError(t, err)
	require.NotRegexp(t, regexp.MustCompile(`(?m)^(Protect(System|Home|KernelTunables|KernelModules|KernelLogs|ControlGroups|Proc)|Private(Tmp|Devices|Mounts)|`+
		`(ReadOnly|ReadWrite|Inaccessible|Exec|NoExec|Bind|BindReadOnly)Paths|TemporaryFileSystem|Root(Directory|Image)|ProcSubset|MountFlags|DynamicUser|MountAPIVFS)=`), string(text))
	require.Contains(t, string(text), "ExecReload=/bin/kill -HUP $MAINPID")
}
