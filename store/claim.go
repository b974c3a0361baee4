package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"

	v1 "berth/api/v1"
)

const claimPrefix = "claim/"

// claimsOf is the prefix of the claims of one pool.
func claimsOf(pool string) string { return claimPrefix + pool + "/" }

// claimKey sorts the claims of a pool by their ports.
func claimKey(pool string, port int) string { return fmt.Sprintf("%s%05d", claimsOf(pool), port) }

// GetClaim returns the claim of one port of a pool: the zero Claim if no container
// holds the port.
func GetClaim(tx *Tx, pool string, port int) (c v1.Claim, err error) {
	err = tx.read(claimKey(pool, port), func(b []byte) error { return json.Unmarshal(b, &c) })
	if errors.Is(err, ErrNotFound) {
		return v1.Claim{}, nil
	}
	if err != nil {
		return v1.Claim{}, fmt.Errorf("%w: claim of port %d of %s: %w", ErrFailed, port, pool, err)
	}
	return c, nil
}

// SetClaim stores the claim of one port of a pool. The zero Claim releases it.
func SetClaim(tx *Tx, pool string, port int, c v1.Claim) error {
	tx.recordChange(Change{Kind: "claim", ID: pool, What: SpecChanged})
	if c == (v1.Claim{}) {
		return tx.remove(claimKey(pool, port))
	}
	b, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return tx.set(claimKey(pool, port), b)
}

// Claims yields the claims of a pool from a port on, lowest port first. Its cost is
// proportional to the number that the caller takes. A claim that cannot be read is logged and still holds its port: no
// other container may get it.
func Claims(tx *Tx, pool string, from int) iter.Seq2[int, v1.Claim] {
	return func(yield func(int, v1.Claim) bool) {
		prefix := claimsOf(pool)
		for e := range tx.scan(prefix, claimKey(pool, from)) {
			port, err := strconv.Atoi(e.key[len(prefix):])
			var c v1.Claim
			if err == nil {
				err = e.read(func(b []byte) error { return json.Unmarshal(b, &c) })
			}
			if err != nil {
				tx.store.log.Error("cannot read a claim", "key", e.key, "err", err)
			}
			if !yield(port, c) {
				return
			}
		}
	}
}

// Claimed returns the claimed ports of a pool. It reads keys only.
func Claimed(tx *Tx, pool string) (ports v1.PortSet) {
	prefix := claimsOf(pool)
	for e := range tx.scan(prefix, prefix) {
		if port, err := strconv.Atoi(e.key[len(prefix):]); err == nil {
			ports.Add(port)
		}
	}
	return ports
}
