package store

import (
	"context"
	"fmt"

	"berth/store/kv"
)

// Verify reads the store in dir and changes nothing in it. It returns its version, which
// is 0 if the store was not closed: then it is unknown until berth has started again. Its
// error is ErrLocked, ErrDamaged, ErrNewer or ErrFailed, or that of ctx.
func Verify(ctx context.Context, dir string) (version uint64, err error) {
	err = kv.Check(ctx, dir, func(t *kv.Txn) error {
		tx := &Tx{store: &Store{}, txn: t}
		version, _, err = schema(tx)
		if newest := newestVersion(); err == nil && version > newest {
			err = newer(version, newest)
		}
		return err
	})
	if err != nil {
		return version, fmt.Errorf("verify store: %w", err)
	}
	return version, nil
}
