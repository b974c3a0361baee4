package docker

import (
	"archive/tar"
	"bufio"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	cerrdefs "github.com/containerd/errdefs"

	"berth/runtime"
)

// maxAccounts bounds /etc/passwd and /etc/group of an image, in bytes.
const maxAccounts = 1 << 20

// Account returns the user and the group of a container's processes: those of its spec, or
// of its image. Names are those of the image's /etc/passwd and /etc/group.
func (e *Engine) Account(ctx context.Context, n runtime.Name) (a runtime.Account, err error) {
	c, err := e.find(ctx, n)
	if err != nil {
		return a, err
	}
	user, group, grouped := strings.Cut(c.Config.User, ":")
	if user == "" {
		user = "0"
	}
	var known bool
	if a.UID, known = number(user); !known || !grouped && a.UID != 0 {
		fields, err := e.entry(ctx, c.ID, "/etc/passwd", user, known)
		if err != nil {
			return a, err
		}
		if fields != nil { // an id without an entry has the group 0
			a.UID, _ = number(fields[2])
			a.GID, _ = number(fields[3])
		}
	}
	if !grouped {
		return a, nil
	}
	if a.GID, known = number(group); known {
		return a, nil
	}
	fields, err := e.entry(ctx, c.ID, "/etc/group", group, false)
	if fields != nil {
		a.GID, _ = number(fields[2])
	}
	return a, err
}

func number(text string) (id int, is bool) {
	id, err := strconv.Atoi(text)
	return id, err == nil
}

// entry returns the fields of the first line of a file of accounts with a name, or with an id;
// nil if there is none.
func (e *Engine) entry(ctx context.Context, id, path, key string, byID bool) (fields []string, err error) {
	err = e.calls.do(ctx, opInspect, "container "+id, func(ctx context.Context) error {
		content, _, err := e.conn.client().CopyFromContainer(ctx, id, path)
		if cerrdefs.IsNotFound(err) {
			return nil // an image may have no accounts
		}
		if err != nil {
			return err
		}
		defer content.Close()
		archive := tar.NewReader(content)
		if _, err := archive.Next(); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		lines := bufio.NewScanner(io.LimitReader(archive, maxAccounts))
		for lines.Scan() {
			line := strings.Split(lines.Text(), ":")
			if len(line) >= 4 && (byID && line[2] == key || !byID && line[0] == key) {
				fields = line
				return nil
			}
		}
		return nil // a line that is too long ends the search
	})
	return fields, err
}
