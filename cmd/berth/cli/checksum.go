package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"

	"berth/api/client"
)

// checksum reads a stream and computes its SHA-256.
type checksum struct {
	io.Reader
	hash hash.Hash
}

func newChecksum(r io.Reader) checksum {
	h := sha256.New()
	return checksum{io.TeeReader(r, h), h}
}

// check returns an error if what was read is not the archive of a backup.
func (c checksum) check(b client.Backup) error {
	if got := "sha256:" + hex.EncodeToString(c.hash.Sum(nil)); got != b.Checksum {
		return fmt.Errorf("the archive has the checksum %s instead of %s: it was damaged in its target or on the way", got, b.Checksum)
	}
	return nil
}
