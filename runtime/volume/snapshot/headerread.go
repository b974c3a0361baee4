package snapshot

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"
)

// maxRecords is the largest PAX header that Write produces, in bytes: two names and
// some numbers.
const maxRecords = 2*maxPath + 1024

// headerReader reads the headers of members.
type headerReader struct {
	r    io.Reader
	raw  []byte // the bytes of the last headers
	made []byte // what appendHeader makes of their entry
}

// next returns the next member, or io.EOF at the end of the tar. It refuses every
// header that appendHeader does not produce.
func (h *headerReader) next() (entry, error) {
	h.raw = h.raw[:0]
	b, err := h.read(blockSize)
	if err != nil {
		return entry{}, err
	}
	if isZero(b) {
		return entry{}, h.end()
	}
	records := map[string]string{}
	if b[kindAt] == extended {
		n, ok := parseOctal(b[sizeAt : sizeAt+sizeSize])
		if !ok || n > maxRecords {
			return entry{}, damaged("it has a PAX header of %d bytes", n)
		}
		if b, err = h.read(int(n + padding(n))); err != nil {
			return entry{}, err
		}
		if records, err = parseRecords(b[:n]); err != nil {
			return entry{}, err
		}
		if b, err = h.read(blockSize); err != nil {
			return entry{}, err
		}
	}
	e, err := parseHeader(b, records)
	if err != nil {
		return e, err
	}
	h.made = appendHeader(h.made[:0], &e)
	if !bytes.Equal(h.made, h.raw) {
		return e, damaged("berth did not write the header of %q", shorten(e.path))
	}
	return e, nil
}

// read reads n more bytes of headers.
func (h *headerReader) read(n int) ([]byte, error) {
	at := len(h.raw)
	h.raw = append(h.raw, make([]byte, n)...)
	_, err := io.ReadFull(h.r, h.raw[at:])
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = damaged("it is truncated")
	}
	return h.raw[at:], err
}

// end reads the second of the two empty blocks that end a tar, and nothing after it.
func (h *headerReader) end() error {
	b, err := h.read(blockSize)
	if err != nil {
		return err
	}
	if !isZero(b) {
		return damaged("it does not end as a tar does")
	}
	if n, err := io.ReadFull(h.r, b[:1]); n > 0 || !errors.Is(err, io.EOF) {
		if n > 0 {
			err = damaged("it goes on after its end")
		}
		return err
	}
	return io.EOF
}

// parseHeader returns the entry of a ustar header and the records before it. It leaves
// most checks to the comparison with appendHeader.
func parseHeader(b []byte, records map[string]string) (entry, error) {
	e := entry{kind: kind(b[kindAt]), path: field(b[nameAt : nameAt+nameSize]), target: field(b[targetAt : targetAt+targetSize])}
	mode, ok1 := parseOctal(b[modeAt : modeAt+modeSize])
	uid, ok2 := number(b[uidAt:uidAt+uidSize], records[keyUID])
	gid, ok3 := number(b[gidAt:gidAt+gidSize], records[keyGID])
	stored, ok4 := number(b[sizeAt:sizeAt+sizeSize], records[keySize])
	sec, ok5 := parseOctal(b[timeAt : timeAt+timeSize])
	e.mode, e.uid, e.gid, e.stored, e.time = uint32(mode), uint32(uid), uint32(gid), stored, time.Unix(sec, 0)
	if !ok1 || !ok2 || !ok3 || !ok4 || !ok5 || mode > 0o7777 || uid > 1<<32-1 || gid > 1<<32-1 {
		return e, damaged("a header has a number that is not valid")
	}
	if t, is := records[keyTime]; is {
		if e.time, is = parseTime(t); !is {
			return e, damaged("a header has the time %q", shorten(t))
		}
	}
	if p, is := records[keyPath]; is {
		e.path = p
	}
	if p, is := records[keyTarget]; is {
		e.target = p
	}
	e.size = stored
	if p, is := records[keyName]; is {
		e.path, e.sparse = p, true
		if e.size, is = number(nil, records[keyRealSize]); !is {
			return e, damaged("a header has the size %q", shorten(records[keyRealSize]))
		}
	}
	if e.kind == folder {
		e.path = strings.TrimSuffix(e.path, "/")
	}
	return e, e.check()
}

// parseRecords returns the records of a PAX header.
func parseRecords(b []byte) (map[string]string, error) {
	records := map[string]string{}
	for len(b) > 0 {
		length, _, ok := bytes.Cut(b, []byte{' '})
		n, err := strconv.Atoi(string(length))
		if !ok || err != nil || n <= len(length)+1 || n > len(b) || b[n-1] != '\n' {
			return nil, damaged("it has a PAX header that is not valid")
		}
		key, value, ok := strings.Cut(string(b[len(length)+1:n-1]), "=")
		if _, twice := records[key]; !ok || twice {
			return nil, damaged("it has a PAX header that is not valid")
		}
		records[key] = value
		b = b[n:]
	}
	return records, nil
}

// field returns the text of a field, which a NUL ends if it is shorter.
func field(b []byte) string {
	b, _, _ = bytes.Cut(b, []byte{0})
	return string(b)
}

// number returns the number of a record, or of a field if there is no record.
func number(b []byte, record string) (n int64, ok bool) {
	if record == "" {
		return parseOctal(b)
	}
	n, err := strconv.ParseInt(record, 10, 64)
	return n, err == nil && n >= 0
}

func parseOctal(b []byte) (n int64, ok bool) {
	n, err := strconv.ParseInt(field(b), 8, 64)
	return n, err == nil && n >= 0
}

// parseTime parses what decimalTime returned.
func parseTime(s string) (t time.Time, ok bool) {
	whole, fraction, _ := strings.Cut(s, ".")
	sec, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || len(fraction) > 9 {
		return t, false
	}
	nsec, err := strconv.ParseInt(fraction+"000000000"[:9-len(fraction)], 10, 64)
	if err != nil || nsec < 0 {
		return t, false
	}
	if strings.HasPrefix(s, "-") {
		nsec = -nsec
	}
	return time.Unix(sec, nsec), true
}

func isZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}
