package hack_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// documentedNumbers are the numbers of the documents that stand in the code. Each
// expression has one group, the number; in code it may be a product of numbers and
// shifts, of units such as time.Minute and KiB, or of both.
var documentedNumbers = []struct{ document, stated, code, defined string }{
	{"../README.md", `at once \| (\d+) creations, starts or removals`, "cmd/berth/loops.go", `heavyCalls\s*= (\d+)`},
	{"../README.md", `removals; (\d+) pulls`, "cmd/berth/loops.go", `pullWorkers\s*= (\d+)`},
	{"../README.md", `([\d,]+) lines in one answer`, "api/server/ws/history.go", `MaxTail\s*= ([\d_]+)`},
	{"../README.md", `([\d,]+) listeners of one container`, "api/stream/options.go", `o\.PerContainer = (\d+)`},
	{"../README.md", `([\d,]+) each of ports`, "api/intent/check_lists.go", `const maxList = (\d+)`},
	{"../README.md", `memory at least (\d+ MiB)`, "api/intent/check_container.go", `minMemory\s*= ([^/]+)//`},
	{"../README.md", `JSON (1 MiB)`, "api/v1/config_defaults.go", `BodyLimit: (\w+)`},
	{"../README.md", `graceful stop (\d+ s)`, "controller/container/spec.go", `defaultStopTimeout\s*= (.*)`},
	{"../README.md", `install (\d+ h)`, "controller/container/spec.go", `defaultInstallTimeout\s*= (.*)`},
	{"docs/sftp.md", `without a login \| (\d+),`, "api/sftp/unauthenticated.go", `maxPending\s*= (\d+)`},
	{"docs/sftp.md", `and (\d+) of one address`, "api/sftp/unauthenticated.go", `maxPendingAddress = (\d+)`},
	{"docs/sftp.md", `closed after (\d+ s)`, "api/sftp/server.go", `loginTime = (.*)`},
	{"docs/sftp.md", `folders \| (\d+) of a session`, "api/sftp/limits.go", `maxHandles\s*= (\d+)`},
	{"docs/sftp.md", `a session, ([\d,]+) in all`, "api/sftp/limits.go", `maxHandlesInAll = (\d+)`},
	{"docs/sftp.md", `a session \| (\d+ KiB) of requests`, "api/sftp/inflight.go", `maxInFlight = ([^/]+)//`},
	{"docs/operation.md", `headers (\d+ KiB)`, "api/server/edge/server.go", `headerLimit\s*= ([^/\n]+)`},
	{"docs/operation.md", `file handles, ([\d,]+) at most`, "api/server/edge/connections.go", `maxConns\s*= (\d+)`},
	{"docs/operation.md", `at most; (\d+) of one address`, "api/server/edge/connections.go", `maxConnsPerIP\s*= (\d+)`},
	{"docs/operation.md", `([\d,]+) bytes each`, "api/intent/check_container.go", `maxCommand\s*= ([\d_]+)`},
	{"docs/operation.md", `start pattern \| ([\d,]+) bytes`, "api/intent/check_container.go", `maxPattern\s*= (\d+)`},
	{"docs/operation.md", `bytes, ([\d,]+) steps`, "api/intent/check_container.go", `maxSteps\s*= ([\d_]+)`},
	{"docs/operation.md", `\(at most (\d+) d\)`, "api/intent/check_container.go", `maxInstall\s*= (\d+) \* 24 \* time\.Hour`},
	{"docs/operation.md", `at least (\d+ KiB) in 30 s`, "api/server/edge/pace.go", `leastRate\s*= ([^/]+)//`},
	{"docs/operation.md", `([\d,]+) minted with one`, "api/auth/mint.go", `maxMinted = (\d+)`},
	{"docs/operation.md", `(\d+) open sockets and transfers of one`, "api/auth/session_limits.go", `perToken\s*= (\d+)`},
	{"docs/operation.md", `limited to containers \| (\d+) at once`, "api/auth/start_limiter.go", `startBurst = (\d+)`},
	{"docs/operation.md", `at once, then one in (\d+ s); else .429 too_many_starts`, "api/auth/start_limiter.go", `startGap   = ([^/]+)//`},
	{"docs/operation.md", `a client's message (\d+ KiB)`, "api/server/ws/socket.go", `readLimit\s*= ([^/]+)//`},
	{"docs/operation.md", `listeners \| ([\d,]+)`, "api/stream/options.go", `o\.Listeners = (\d+)`},
	{"docs/operation.md", `under (256 MiB), 1 % of the inodes`, "cmd/berth/doctor/host.go", `diskFail = ([^/]+)//`},
	{"docs/operation.md", `404, ([\d,]+) waiting transitions`, "cmd/berth/doctor/panel.go", `maxLag = (\d+)`},
	{"docs/operation.md", `expires within (\d+) days`, "cmd/berth/doctor/daemon.go", `soon = (\d+) \* 24`},
	{"docs/operation.md", `at least (\d+), at most 256 MiB`, "store/kv/disk.go", `leastMinFree = (\d+) << 20`},
	{"docs/operation.md", `at most (256 MiB)\) changes`, "store/kv/disk.go", `mostMinFree\s*= (.*)`},
	{"docs/operation.md", `stopped after (\d+ min)`, "controller/container/spec.go", `pressureGrace\s*= ([^/]+)//`},
	{"docs/operation.md", `each counts (\d+ KiB) at least`, "runtime/volume/quota/quota.go", `const Block = (\d+)`},
}

func TestDocumentedNumbers(t *testing.T) {
	for _, n := range documentedNumbers {
		got := number(t, n.document, n.stated)
		want := number(t, filepath.Join("..", n.code), n.defined)
		require.Equal(t, want, got, "%s: %s\n%s: %s", n.document, n.stated, n.code, n.defined)
	}
}

// number returns the value of the only match of an expression in a file.
func number(t *testing.T, file, expression string) int64 {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	found := regexp.MustCompile(expression).FindAllSubmatch(text, -1)
	require.NotEmpty(t, found, "%s: nothing matches %s", file, expression)
	return product(t, string(found[0][1]))
}

// unit returns the value of a unit of documents or code; times are in seconds.
func unit(name string) int64 {
	return map[string]int64{"KiB": 1 << 10, "MiB": 1 << 20, "s": 1, "min": 60, "h": 3600,
		"time.Second": 1, "time.Minute": 60, "time.Hour": 3600}[name]
}

func product(t *testing.T, text string) int64 {
	t.Helper()
	value := int64(1)
	for factor := range strings.FieldsSeq(strings.NewReplacer(",", "", "_", "", "*", " ").Replace(text)) {
		n, err := strconv.ParseInt(factor, 10, 64)
		switch {
		case factor == "<<":
			before, after, _ := strings.Cut(text, "<<")
			shift, err := strconv.Atoi(strings.TrimSpace(after))
			require.NoError(t, err, text)
			return product(t, before) << shift
		case err == nil:
			value *= n
		default:
			require.NotZero(t, unit(factor), "%q in %q", factor, text)
			value *= unit(factor)
		}
	}
	return value
}
