package snapshot

import (
	"fmt"
	"path"
	"strconv"
)

// blockSize is the unit of a tar, in bytes.
const blockSize = 512

// The positions in a header of POSIX.1-1988 (ustar), and the sizes of its fields.
const (
	nameAt, nameSize     = 0, 100
	modeAt, modeSize     = 100, 8
	uidAt, uidSize       = 108, 8
	gidAt, gidSize       = 116, 8
	sizeAt, sizeSize     = 124, 12
	timeAt, timeSize     = 136, 12
	sumAt, sumSize       = 148, 8
	kindAt               = 156
	targetAt, targetSize = 157, 100
	magicAt              = 257
)

// magic is the format's name and version.
const magic = "ustar\x0000"

// extended is the type flag of a PAX header, which belongs to the header after it.
const extended = 'x'

// The keys of PAX records. Those of GNU are its sparse format 1.0.
const (
	keyPath     = "path"
	keyTarget   = "linkpath"
	keyUID      = "uid"
	keyGID      = "gid"
	keySize     = "size"
	keyTime     = "mtime"
	keyMajor    = "GNU.sparse.major"
	keyMinor    = "GNU.sparse.minor"
	keyName     = "GNU.sparse.name"
	keyRealSize = "GNU.sparse.realsize"
)

// appendHeader appends the headers of e to b. A value that does not fit into the field
// of the ustar header is in a PAX header before it.
func appendHeader(b []byte, e *entry) []byte {
	name := e.path
	if e.kind == folder {
		name += "/"
	}
	var records []byte
	if e.sparse {
		records = appendRecord(records, keyMajor, "1")
		records = appendRecord(records, keyMinor, "0")
		records = appendRecord(records, keyName, name)
		records = appendRecord(records, keyRealSize, strconv.FormatInt(e.size, 10))
		name = path.Join("GNUSparseFile.0", path.Base(e.path))
	}
	h := make([]byte, blockSize)
	text := func(at, size int, key, value string) {
		if copy(h[at:at+size], value) < len(value) && (!e.sparse || key != keyPath) {
			records = appendRecord(records, key, value)
		}
	}
	number := func(at, size int, key string, n int64) {
		if n < 0 || n >= 1<<(3*(size-1)) {
			records = appendRecord(records, key, strconv.FormatInt(n, 10))
			n = 0
		}
		octal(h[at:at+size], n)
	}
	text(nameAt, nameSize, keyPath, name)
	text(targetAt, targetSize, keyTarget, e.target)
	octal(h[modeAt:modeAt+modeSize], int64(e.mode))
	number(uidAt, uidSize, keyUID, int64(e.uid))
	number(gidAt, gidSize, keyGID, int64(e.gid))
	number(sizeAt, sizeSize, keySize, e.stored)
	if sec := e.time.Unix(); sec < 0 || sec >= 1<<33 || e.time.Nanosecond() != 0 {
		records = appendRecord(records, keyTime, decimalTime(e.time))
		octal(h[timeAt:timeAt+timeSize], max(0, min(sec, 1<<33-1)))
	} else {
		octal(h[timeAt:timeAt+timeSize], sec)
	}
	h[kindAt] = byte(e.kind)
	if len(records) > 0 {
		b = appendExtended(b, records)
	}
	return append(b, seal(h)...)
}

// appendExtended appends a PAX header with records.
func appendExtended(b, records []byte) []byte {
	h := make([]byte, blockSize)
	copy(h[nameAt:], "PaxHeaders.0/entry")
	octal(h[modeAt:modeAt+modeSize], 0o644)
	octal(h[uidAt:uidAt+uidSize], 0)
	octal(h[gidAt:gidAt+gidSize], 0)
	octal(h[sizeAt:sizeAt+sizeSize], int64(len(records)))
	octal(h[timeAt:timeAt+timeSize], 0)
	h[kindAt] = extended
	b = append(append(b, seal(h)...), records...)
	return append(b, make([]byte, padding(int64(len(records))))...)
}

// appendRecord appends a PAX record, which begins with its own length.
func appendRecord(b []byte, key, value string) []byte {
	length := len(key) + len(value) + len(" =\n")
	n := length + len(strconv.Itoa(length))
	n = length + len(strconv.Itoa(n))
	return fmt.Appendf(b, "%d %s=%s\n", n, key, value)
}

// octal writes n in octal digits and a NUL, which fill the field.
func octal(field []byte, n int64) {
	digits := len(field) - 1
	for i := digits - 1; i >= 0; i-- {
		field[i] = byte('0' + n&7)
		n >>= 3
	}
	field[digits] = 0
}

// seal completes a header with the magic and the checksum.
func seal(h []byte) []byte {
	copy(h[magicAt:], magic)
	octal(h[sumAt:sumAt+sumSize-1], checksum(h))
	h[sumAt+sumSize-1] = ' '
	return h
}

// checksum returns the sum of the header's bytes, its own field taken as spaces.
func checksum(h []byte) (sum int64) {
	for i, c := range h {
		if i >= sumAt && i < sumAt+sumSize {
			c = ' '
		}
		sum += int64(c)
	}
	return sum
}

// padding returns how many bytes fill n bytes up to whole blocks of a tar.
func padding(n int64) int64 { return -n & (blockSize - 1) }
