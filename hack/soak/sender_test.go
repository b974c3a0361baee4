package soak_test

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// senderKey is the variable of the environment that makes this program, in a container, one that hides files.
const senderKey = "BERTH_SOAK_SENDER"

// sendHandles hides files without a name in sockets, where nobody can measure them: 64 files of 8 MiB
// without blocks and 1 MiB with them, each sent over a socket that nobody reads. After a while it begins again.
func sendHandles() {
	content := make([]byte, 1<<20)
	for {
		var sockets [][2]int
		for range 64 {
			pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
			if err != nil {
				break
			}
			sockets = append(sockets, pair)
			file, err := os.CreateTemp("/tmp", "held")
			if err != nil {
				break
			}
			_ = os.Remove(file.Name())
			_, _ = file.Write(content)
			_ = file.Truncate(8 << 20)
			_ = unix.Sendmsg(pair[0], []byte("x"), unix.UnixRights(int(file.Fd())), nil, 0)
			_ = file.Close()
		}
		_ = os.WriteFile("sent", nil, 0o600)
		time.Sleep(90 * time.Second) // longer than between two measurements
		for _, pair := range sockets {
			_, _ = unix.Close(pair[0]), unix.Close(pair[1])
		}
	}
}
