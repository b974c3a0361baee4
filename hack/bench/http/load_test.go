package http_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/stretchr/testify/require"
)

// floorVariable names the file whose content the test binary serves in place of its
// tests: the floor of reads, a Fiber handler that sends the same bytes.
const floorVariable = "BERTH_BENCH_FLOOR"

func TestMain(m *testing.M) {
	if path := os.Getenv(floorVariable); path != "" {
		serveFloor(path)
	}
	os.Exit(m.Run())
}

// serveFloor prints its address and serves until the process is killed.
func serveFloor(path string) {
	body, err := os.ReadFile(path)
	if err == nil {
		app := fiber.New(fiber.Config{DisableStartupMessage: true})
		app.Get("/*", func(c *fiber.Ctx) error {
			c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
			return c.Send(body)
		})
		var ln net.Listener
		if ln, err = net.Listen("tcp", "127.0.0.1:0"); err == nil {
			fmt.Println(ln.Addr())
			err = app.Listener(ln)
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// target is a server in a process of its own.
type target struct {
	addr string
	pid  int
}

// newFloor starts a floor that serves a body.
func newFloor(t testing.TB, body []byte) target {
	t.Helper()
	path := t.TempDir() + "/body"
	require.NoError(t, os.WriteFile(path, body, 0o600))
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), floorVariable+"="+path), os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	addr, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	return target{strings.TrimSpace(addr), cmd.Process.Pid}
}

// result is the load that a target has borne.
type result struct {
	rate float64 // requests a second
	cpu  float64 // µs of the server's processor time for a request
}

// load sends a request over some connections for a while, each the next one after the
// answer, and checks the size of each body.
func (s target) load(t testing.TB, request string, size int, length time.Duration) result {
	t.Helper()
	const conns = 8
	var answered atomic.Int64
	var all sync.WaitGroup
	used := processorTime(t, s.pid)
	began := time.Now()
	for range conns {
		all.Go(func() {
			n, err := repeat(s.addr, request, size, began.Add(length))
			if answered.Add(n); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	took, n := time.Since(began), float64(answered.Load())
	return result{n / took.Seconds(), float64((processorTime(t, s.pid) - used).Microseconds()) / n}
}

// repeat sends a request over one connection until a time.
func repeat(addr, request string, size int, until time.Time) (n int64, err error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	r := bufio.NewReaderSize(c, 64<<10)
	for ; time.Now().Before(until); n++ {
		if _, err := io.WriteString(c, request); err != nil {
			return n, err
		}
		got, err := answer(r)
		if err != nil {
			return n, err
		}
		if got != size {
			return n, fmt.Errorf("an answer has %d bytes, not %d", got, size)
		}
	}
	return n, nil
}

// answer reads one answer with status 200, and returns the size of its body.
func answer(r *bufio.Reader) (size int, err error) {
	status, err := r.ReadSlice('\n')
	if err == nil && !bytes.Contains(status, []byte(" 200 ")) {
		err = fmt.Errorf("status %q", status)
	}
	for err == nil {
		var line []byte
		if line, err = r.ReadSlice('\n'); len(line) <= 2 {
			break
		}
		if name, value, ok := bytes.Cut(line, []byte(": ")); ok && bytes.EqualFold(name, []byte("Content-Length")) {
			size, err = strconv.Atoi(string(bytes.TrimSpace(value)))
		}
	}
	if err == nil {
		_, err = r.Discard(size)
	}
	return size, err
}

// processorTime returns the processor time that a process has used, in ticks of 10 ms.
func processorTime(t testing.TB, pid int) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(t, err)
	_, after, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(after)
	var ticks int
	for _, field := range fields[11:13] { // utime, stime
		n, err := strconv.Atoi(field)
		require.NoError(t, err)
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}
