package node

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"berth/api/egg"
	v1 "berth/api/v1"
)

// Adopt creates the container of a server whose volume has its files already: nothing is installed. It may be called
// again.
func (n *Node) Adopt(ctx context.Context, object egg.Server, power v1.Power) error {
	if err := n.readHost(ctx); err != nil {
		return err
	}
	return n.apply(ctx, newServer(object), nil, power)
}

// notImported returns an error while wings has the files of a server: berth would give it an empty volume.
func (n *Node) notImported(uuid string) error {
	folder := filepath.Join(n.config().System.Data, uuid)
	if _, err := os.Lstat(folder); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return refuse(500, "%s has the files of the server: run `berth-wings import`", folder)
}
