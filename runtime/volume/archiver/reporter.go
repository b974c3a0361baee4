package archiver

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"

	v1 "berth/api/v1"
)

// reportEvery is how long the process waits between two reports of its progress.
const reportEvery = 100 * time.Millisecond

// reporter sends messages to the daemon and receives its answers.
type reporter struct {
	pace    *pace
	in      *json.Decoder // the answers, for written
	allowed int64         // bytes of the archive, as the last answer had it

	mu   sync.Mutex // of the others
	out  *json.Encoder
	last message
	sent time.Time
}

// progress reports the bytes of files that were read so far, not more often than is useful,
// and keeps the pace: no other part of the archive gets far ahead of the reading.
func (r *reporter) progress(bytes int64) {
	r.pace.keep()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last.Read = bytes
	if now := time.Now(); now.Sub(r.sent) >= reportEvery {
		_ = r.send(now) // written fails as well when the daemon has ended
	}
}

// written reports n more bytes of the archive. It waits while they are too many more than the
// daemon has allowed.
func (r *reporter) written(n int64) error {
	r.mu.Lock()
	r.last.Written += n
	total, err := r.last.Written, r.send(time.Now())
	r.mu.Unlock()
	for err == nil && total-r.allowed > windowBytes {
		err = r.in.Decode(&r.allowed)
	}
	if err != nil {
		return fmt.Errorf("the daemon does not answer: %w", err)
	}
	return nil
}

// end sends the last message.
func (r *reporter) end(result v1.Snapshot, err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.last.Error = newFailure(err)
	} else {
		r.last.Result = &result
	}
	return r.send(time.Now())
}

// send sends the last message as it is. mu must be held.
func (r *reporter) send(now time.Time) error {
	r.sent = now
	return r.out.Encode(r.last)
}
