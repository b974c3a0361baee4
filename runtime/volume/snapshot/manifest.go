package snapshot

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// ManifestName is the name of the last member.
const ManifestName = ".berth-manifest.json"

// The text of the manifest around the lines of the members, which are JSON objects.
const (
	manifestHead    = "{\"version\":1,\"members\":[\n"
	manifestBetween = ",\n"
	manifestTail    = "\n],\"files\":%d,\"bytes\":%d}\n"
)

// line is an entry in the manifest. A name that is not UTF-8 is in base64.
type line struct {
	Path         string `json:"path,omitempty"`
	PathBase64   string `json:"path_base64,omitempty"`
	Type         string `json:"type"`
	Mode         string `json:"mode"`
	UID          uint32 `json:"uid"`
	GID          uint32 `json:"gid"`
	Time         string `json:"mtime"`
	Target       string `json:"target,omitempty"`
	TargetBase64 string `json:"target_base64,omitempty"`
	Size         *int64 `json:"size,omitempty"`
	Sparse       bool   `json:"sparse,omitempty"`
	Sum          string `json:"sha256,omitempty"`
}

// kindNames are the values of a line's type.
var kindNames = map[kind]string{file: "file", hardLink: "hardlink", symlink: "symlink", folder: "folder"}

// line returns the entry's line of the manifest.
func (e *entry) line() []byte {
	l := line{Type: kindNames[e.kind], Mode: fmt.Sprintf("%04o", e.mode), UID: e.uid, GID: e.gid,
		Time: decimalTime(e.time), Sparse: e.sparse}
	l.Path, l.PathBase64 = text(e.path)
	l.Target, l.TargetBase64 = text(e.target)
	if e.kind == file {
		l.Size, l.Sum = &e.size, hex.EncodeToString(e.sum[:])
	}
	b, _ := json.Marshal(l) // strings and numbers: it cannot fail
	return b
}

// text returns s as it is if it is UTF-8, and otherwise in base64.
func text(s string) (plain, encoded string) {
	if utf8.ValidString(s) {
		return s, ""
	}
	return "", base64.StdEncoding.EncodeToString([]byte(s))
}
