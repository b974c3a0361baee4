package snapshot

import (
	"bytes"
	"context"
	"crypto/sha256"
	"io"
	"time"
)

// The types of members.
const (
	File     = file
	HardLink = hardLink
	Symlink  = symlink
	Folder   = folder
)

// Member is a member of an archive that a test makes up.
type Member struct {
	Path, Target string
	Kind         kind
	Mode         uint32
	Content      string
	Parts        []int64 // offset and length of each extent, which make the file sparse
	Size         int64   // of a sparse file
	Lie          bool    // the manifest has another checksum
}

// Make returns an archive of members with a manifest that fits, and the bytes on disk
// that Write counts for them.
func Make(members ...Member) (archive []byte, size int64) {
	var out bytes.Buffer
	f, err := newFrames(&out)
	if err != nil {
		panic(err)
	}
	manifest, err := newSpool("")
	if err != nil {
		panic(err)
	}
	defer manifest.close()
	x := &writer{ctxErr: context.Background().Err, out: f, manifest: manifest, hash: sha256.New()}
	io.WriteString(manifest, manifestHead)
	for i, m := range members {
		x.makeMember(m, i > 0)
	}
	if err := x.end(time.Unix(1, 0)); err != nil {
		panic(err)
	}
	if err := f.Close(); err != nil {
		panic(err)
	}
	return out.Bytes(), x.result.Bytes
}

func (x *writer) makeMember(m Member, between bool) {
	if between {
		io.WriteString(x.manifest, manifestBetween)
	}
	e := &entry{path: m.Path, target: m.Target, kind: m.Kind, mode: m.Mode, time: time.Unix(1, 2)}
	if m.Kind != folder {
		x.result.Files++
	}
	var parts []extent
	content := []byte(m.Content)
	if m.Kind == file {
		e.size, e.stored, parts = int64(len(content)), int64(len(content)), []extent{{0, int64(len(content))}}
	}
	if m.Parts != nil {
		parts = nil
		for i := 0; i < len(m.Parts); i += 2 {
			parts = append(parts, extent{m.Parts[i], m.Parts[i+1]})
		}
		var text bytes.Buffer
		writeMap(&text, parts)
		content = append(text.Bytes(), content...)
		e.size, e.stored, e.sparse = m.Size, int64(len(content)), true
	}
	e.data = onDisk(parts)
	x.result.Bytes += e.onDisk()
	x.out.Write(appendHeader(nil, e))
	x.out.Write(content)
	x.pad(e.stored)
	if e.sum = sha256.Sum256(content); m.Lie {
		e.sum[0]++
	}
	x.manifest.Write(e.line())
}

// Matches reports whether patterns leave out the entry at path.
func Matches(patterns []string, path string, isFolder bool) bool {
	return NewIgnore(patterns).match(path, isFolder)
}
