package volume_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/runtime/volume"
)

// envDurable names the operation of TestDurableProcess; empty: none.
const envDurable = "BERTH_TEST_DURABLE"

// durable are file operations with the calls that let them survive a power cut: the content of a new file first,
// then its name, then the folder that has the name. `temp` is a temporary entry.
var durable = map[string]struct {
	do    func(t *testing.T, b box) error
	calls string
}{
	"write": {func(t *testing.T, b box) error { return b.Write(t.Context(), id, "d/new", strings.NewReader("x")) },
		"fsync temp, rename temp d/new, fsync d"},
	"replace": {func(t *testing.T, b box) error { return b.Write(t.Context(), id, "d/old", strings.NewReader("x")) },
		"fsync temp, rename temp d/old, fsync d"},
	"copy": {func(t *testing.T, b box) error { return b.Copy(t.Context(), id, "d/old", "d/new") },
		"fsync temp, rename temp d/new, fsync d"},
	"rename": {func(t *testing.T, b box) error { return b.Rename(t.Context(), id, "d/old", "e/new") },
		"rename d/old e/new, fsync e, fsync d"},
	"delete": {func(t *testing.T, b box) error { return b.Delete(t.Context(), id, "d/old", nil) },
		"rename d/old temp, fsync d"},
	"folder": {func(t *testing.T, b box) error { return b.Mkdir(t.Context(), id, "d/new") },
		"fsync d"},
	"restore": {func(t *testing.T, b box) error {
		a, _ := takeBackup(t, b)
		b.put(t, "d/old", "of before the restore")
		return a.restore(t.Context(), b, v1.RestoreReplace)
	}, "syncfs, rename temp volume, fsync volumes, fsync temp"},
}

// traced runs an operation on the volume of b in a process of its own, and returns its calls.
func traced(t *testing.T, b box, name string, options ...string) (list string, out []byte, err error) {
	trace := filepath.Join(t.TempDir(), "trace")
	args := append(options, "-f", "-y", "-o", trace, "-e", "trace=fsync,syncfs,renameat,renameat2", os.Args[0], "-test.run", "^TestDurableProcess$")
	cmd := exec.Command("strace", args...)
	cmd.Env = append(os.Environ(), envDurable+"="+name+" "+filepath.Dir(b.dir))
	out, err = cmd.CombinedOutput()
	text, readErr := os.ReadFile(trace)
	require.NoError(t, readErr, "%s: run hack/docker.sh tools", out)
	return strings.Join(calls(string(text), b.dir), ", "), out, err
}

// TestDurable has the kernel report what each operation makes durable, and in which order.
func TestDurable(t *testing.T) {
	for name, operation := range durable {
		t.Run(name, func(t *testing.T) {
			b := newBox(t, options())
			b.put(t, "d/old", "old")
			b.put(t, "e/other", "other")
			list, out, err := traced(t, b, name)
			require.NoError(t, err, "%s", out)
			require.Equal(t, operation.calls, list)
		})
	}
}

// TestRestoreThatIsNotDurable: if the disk does not take the exchange of the trees, the volume is as it was.
func TestRestoreThatIsNotDurable(t *testing.T) {
	b := newBox(t, options())
	b.put(t, "d/old", "old")
	list, out, err := traced(t, b, "restore", "-e", "inject=fsync:error=EIO")
	require.Error(t, err)
	require.Contains(t, string(out), "input/output error")
	both := "rename temp volume, fsync volumes, fsync temp"
	require.Equal(t, "syncfs, "+both+", "+both, list)
	require.Equal(t, "of before the restore", b.get(t, "d/old"))
	noRemains(t, b)
}

// TestDurableProcess is the process of one operation. Alone it does nothing.
func TestDurableProcess(t *testing.T) {
	name, base, _ := strings.Cut(os.Getenv(envDurable), " ")
	operation, given := durable[name]
	if !given {
		return
	}
	m, err := volume.New(base, options())
	require.NoError(t, err)
	require.NoError(t, operation.do(t, box{Manager: m, dir: m.Path(id)}))
}

// The calls of a trace, as strace -y writes them: with the path of each handle.
var (
	fsyncCall  = regexp.MustCompile(`fsync\(\d+<(.*?)>`)
	syncfsCall = regexp.MustCompile(`syncfs\(\d+<.*?>`)
	renameCall = regexp.MustCompile(`renameat2?\(\d+<(.*?)>, "(.*?)", \d+<(.*?)>, "(.*?)"`)
)

// calls returns the calls of a trace, with paths in the volume whose directory is dir.
func calls(trace, dir string) (list []string) {
	short := func(p string) string {
		if in, is := strings.CutPrefix(p, dir+"/"); is {
			return in
		}
		switch p {
		case dir:
			return "volume"
		case filepath.Dir(dir):
			return "volumes"
		}
		return "temp"
	}
	for line := range strings.Lines(trace) {
		if m := fsyncCall.FindStringSubmatch(line); m != nil {
			list = append(list, "fsync "+short(m[1]))
		}
		if syncfsCall.MatchString(line) {
			list = append(list, "syncfs")
		}
		if m := renameCall.FindStringSubmatch(line); m != nil {
			list = append(list, "rename "+short(m[1]+"/"+m[2])+" "+short(m[3]+"/"+m[4]))
		}
	}
	return list
}
