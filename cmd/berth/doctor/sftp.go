package doctor

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	v1 "berth/api/v1"
)

// checkSFTP checks the host key and whether the SFTP server answers. It logs in nowhere.
func checkSFTP(ctx context.Context, e *examination) Result {
	c := e.Config.Config.SFTP
	if !c.Enabled {
		return ok("is not enabled")
	}
	if key := checkHostKey(e.path(c.HostKey)); key.Status != OK {
		return key
	}
	return checkSFTPPort(ctx, c)
}

func checkHostKey(file string) Result {
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return warning(file+" does not exist: the next start of the daemon makes a new key, and every client warns",
			"restore the file from a backup, unless this is the first start")
	case err != nil:
		return warning(err.Error(), "run berth doctor as root, or as the user of the daemon")
	case info.Mode().Perm()&0o077 != 0:
		return failed(fmt.Sprintf("%s is open to other users (mode %04o)", file, info.Mode().Perm()), "run chmod 600 on it")
	}
	return ok(file + " is private")
}

// checkSFTPPort reads the greeting of the server.
func checkSFTPPort(ctx context.Context, c v1.SFTPConfig) Result {
	const remedy = "start the daemon, or look for its error in the log"
	host := c.Host
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	address := net.JoinHostPort(host, strconv.Itoa(c.Port))
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return warning("does not answer at "+address, remedy)
	}
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
	greeting, err := bufio.NewReaderSize(conn, 256).ReadString('\n')
	if err != nil || !strings.HasPrefix(greeting, "SSH-2.0-berth") {
		return failed("another program answers at "+address, "set sftp.port to a free port")
	}
	return ok(fmt.Sprintf("answers at %s, for at most %d sessions", address, c.MaxSessions))
}
