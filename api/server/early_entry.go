package server

import (
	"errors"
	"io"

	"berth/store"
)

// earlyEntry stores the entry of a request in the audit log while the file that it
// writes is made durable, so that the client does not wait for one after the other. It
// is the content of the file: at its end it begins to store the entry, with the status
// of a success. The auditor corrects the status if the write failed, and stores the
// entry if that failed here.
//
// A request with an idempotency key gets no early entry: its outcome is stored with the
// entry, and must not be on the disk before the file is.
type earlyEntry struct {
	content io.Reader
	request *store.Request
	stored  chan struct{} // closed at the end of the update; nil before its begin
}

// Read reads the content.
func (e *earlyEntry) Read(p []byte) (int, error) {
	n, err := e.content.Read(p)
	if errors.Is(err, io.EOF) && e.stored == nil && e.request.Audit.Action != "" && e.request.Outcome == nil {
		e.stored = make(chan struct{})
		go func() {
			defer close(e.stored)
			_ = e.request.Update(func(*store.Tx) error { return nil }) // the auditor tries again, and returns the error
		}()
	}
	return n, err
}

// wait returns when the request may be used again.
func (e *earlyEntry) wait() {
	if e.stored != nil {
		<-e.stored
	}
}
