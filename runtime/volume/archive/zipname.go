package archive

import (
	"archive/zip"
	"encoding/binary"
	"hash/crc32"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/ianaindex"

	v1 "berth/api/v1"
)

// The systems that create zips, as their CreatorVersion has them.
const (
	createdByDOS    = 0
	createdByUnix   = 3
	createdByNTFS   = 10
	createdByNTFS2  = 11 // as Info-ZIP numbers it
	createdByVFAT   = 14
	createdByDarwin = 19
)

// decoder decodes names of a zip that are not marked as UTF-8: those of Windows, or all if the client requests it.
type decoder struct {
	*encoding.Decoder
	requested bool // by the client: names that happen to be UTF-8 are decoded as well
}

// newDecoder returns the decoder of an encoding.
func newDecoder(name string) (*decoder, error) {
	if name == "" {
		return &decoder{Decoder: charmap.CodePage437.NewDecoder()}, nil
	}
	e, err := ianaindex.IANA.Encoding(name)
	if err != nil || e == nil {
		return nil, v1.Errorf(v1.InvalidRequest,
			"encoding: %.40q is not known: use an IANA name such as IBM850, windows-1251, Shift_JIS or GBK", name)
	}
	return &decoder{e.NewDecoder(), true}, nil
}

// zipName returns the name of a file in a zip, in UTF-8 and with slashes.
func (x *extraction) zipName(h *zip.FileHeader) string {
	name, windows := h.Name, false
	switch h.CreatorVersion >> 8 {
	case createdByDOS, createdByNTFS, createdByNTFS2, createdByVFAT:
		windows = true
	}
	unicode, found := unicodePath(h)
	switch {
	case !h.NonUTF8: // or it is in ASCII
	case found:
		name = unicode
	case x.names.requested, windows && !utf8.ValidString(name):
		if decoded, err := x.names.String(name); err == nil {
			name = decoded
		}
	}
	if windows && !strings.Contains(name, "/") {
		name = strings.ReplaceAll(name, `\`, "/")
	}
	return name
}

// unicodePath returns the name in UTF-8 that WinRAR, WinZip and 7-Zip write beside the one of a code page. It
// has a checksum of that one: a program that renames an entry may not know the field.
func unicodePath(h *zip.FileHeader) (name string, found bool) {
	const field, version, checksumBytes = 0x7075, 1, 4
	for extra := h.Extra; len(extra) >= 4; {
		id, size := binary.LittleEndian.Uint16(extra), int(binary.LittleEndian.Uint16(extra[2:]))
		if extra = extra[4:]; size > len(extra) {
			break
		}
		data := extra[:size]
		extra = extra[size:]
		if id != field || len(data) <= 1+checksumBytes || data[0] != version {
			continue
		}
		text := data[1+checksumBytes:]
		return string(text), binary.LittleEndian.Uint32(data[1:]) == crc32.ChecksumIEEE([]byte(h.Name)) && utf8.Valid(text)
	}
	return "", false
}

// zipMethods names the compressions of zips that are not supported.
var zipMethods = map[uint16]string{1: "Shrink", 6: "Implode", 9: "Deflate64", 12: "bzip2", 14: "LZMA", 93: "Zstandard",
	95: "XZ", 98: "PPMd", 99: "AES"}

// unknownMethod returns the refusal of a compression.
func unknownMethod(method uint16) error {
	name, known := zipMethods[method]
	if !known {
		return invalid("Archive is compressed by the unknown method %d: use Deflate", method)
	}
	return invalid("Archive is compressed by the method %s (%d), which is not supported: use Deflate", name, method)
}
