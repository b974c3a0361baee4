package store

// Badger's own compactors look for work twenty times a second each, which is
// most of what an idle berth would use. So there are none: what was written
// says when to look. One table is added per memTableSize written and per start;
// writes would wait at 15 of them.
const (
	compactAt = 3                // new tables
	lookEvery = memTableSize / 8 // bytes written
)

// compactor merges tables until the store is closed.
func (s *Store) compactor() {
	for {
		if err := s.compact(); err != nil {
			s.log.Warn("tables of the store are not merged; it is tried again after more writes", "err", err)
		}
		select {
		case <-s.grown:
		case <-s.closing:
			return
		}
	}
}

// compact merges all tables if there are enough new ones, and room: they are
// written anew before the old ones go.
func (s *Store) compact() error {
	var size int64
	levels := s.db.Levels()
	for _, l := range levels {
		size += l.Size
	}
	if levels[0].NumTables < compactAt {
		return nil
	}
	if err := s.disk.room(uint64(size) + reserveSize); err != nil {
		return err
	}
	return s.db.Flatten(1)
}

// grow counts what was written, and lets the compactor look from time to time.
// It is the writer's.
func (s *Store) grow(size int64) {
	if s.since += size; s.since < lookEvery {
		return
	}
	s.since = 0
	select {
	case s.grown <- struct{}{}:
	default:
	}
}
