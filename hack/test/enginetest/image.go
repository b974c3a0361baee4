package enginetest

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

const busyboxTag = "berth-test/busybox:1"

// Busybox returns the reference of an image on the shared engine with every
// applet of busybox (sh, sleep, seq, cat…), an empty /home/container and the
// command sh. It creates the image if it is missing.
func Busybox(t testing.TB) string {
	t.Helper()
	return Shared(t).Busybox(t)
}

// Busybox is like the function Busybox, for this engine.
func (c *Client) Busybox(t testing.TB) string {
	t.Helper()
	defer lock(t, "berth-busybox.lock")()
	if status, _ := c.Do(t, http.MethodGet, "/images/"+busyboxTag+"/json", nil); status != http.StatusOK {
		c.Import(t, busyboxTag, BusyboxTar(t), `CMD ["sh"]`)
	}
	return busyboxTag
}

// Import creates an image from a tar of its root and lines of a Dockerfile.
func (c *Client) Import(t testing.TB, ref string, root []byte, changes ...string) {
	t.Helper()
	colon := strings.LastIndex(ref, ":")
	repository, tag := ref[:colon], ref[colon+1:]
	query := url.Values{"fromSrc": {"-"}, "repo": {repository}, "tag": {tag}, "changes": changes}
	noError(t, c.Must(t, http.MethodPost, "/images/create?"+query.Encode(), bytes.NewReader(root)))
}

// Load creates an image from a tar of its root, as one for an architecture.
func (c *Client) Load(t testing.TB, ref, architecture string, root []byte) {
	t.Helper()
	config, err := json.Marshal(map[string]any{"architecture": architecture, "os": "linux", "config": map[string]any{"Cmd": []string{"sh"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(root))}}})
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("%x", sha256.Sum256(config))
	manifest, err := json.Marshal([]map[string]any{{"Config": name + ".json", "RepoTags": []string{ref}, "Layers": []string{"layer.tar"}}})
	if err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, file := range []struct {
		name    string
		content []byte
	}{{name + ".json", config}, {"layer.tar", root}, {"manifest.json", manifest}} {
		err = errors.Join(err, w.WriteHeader(&tar.Header{Name: file.name, Mode: 0o644, Size: int64(len(file.content))}))
		_, writeErr := w.Write(file.content)
		err = errors.Join(err, writeErr)
	}
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	noError(t, c.Must(t, http.MethodPost, "/images/load?quiet=1", &archive))
}

// Push tags an image of this engine as "<registry>/<name>", pushes it there and
// removes the tag. It returns that reference. An empty user means no credentials.
func (c *Client) Push(t testing.TB, image, registry, name, user, password string) (ref string) {
	t.Helper()
	ref = registry + "/" + name
	repository, tag := ref[:strings.LastIndex(ref, ":")], name[strings.LastIndex(name, ":")+1:]
	c.Must(t, http.MethodPost, "/images/"+image+"/tag?repo="+url.QueryEscape(repository)+"&tag="+tag, nil)
	defer c.RemoveImage(t, ref)
	auth, err := json.Marshal(map[string]string{"username": user, "password": password})
	if err != nil {
		t.Fatal(err)
	}
	noError(t, c.Must(t, http.MethodPost, "/images/"+repository+"/push?tag="+tag, nil,
		"X-Registry-Auth", base64.URLEncoding.EncodeToString(auth)))
	return ref
}

// RemoveImage removes one reference of an image. A missing one is no error.
func (c *Client) RemoveImage(t testing.TB, ref string) {
	t.Helper()
	if status, answer := c.Do(t, http.MethodDelete, "/images/"+ref, nil); status >= 500 {
		t.Errorf("engine: remove image %s: %d %s", ref, status, answer)
	}
}

// noError fails the test if a stream of messages contains an error.
func noError(t testing.TB, stream []byte) {
	t.Helper()
	if bytes.Contains(stream, []byte(`"error"`)) {
		t.Fatalf("engine: %s", stream)
	}
}

// BusyboxTar returns a tar of an image's root with the host's static busybox, and with
// further programs: files by their path in the image.
func BusyboxTar(t testing.TB, more ...map[string][]byte) []byte {
	t.Helper()
	program, err := os.ReadFile("/bin/busybox")
	if err != nil {
		t.Fatalf("%v: run hack/docker.sh tools", err)
	}
	list, err := exec.Command("/bin/busybox", "--list").Output()
	if err != nil {
		t.Fatal(err)
	}
	var root bytes.Buffer
	w := tar.NewWriter(&root)
	put := func(h tar.Header, data []byte) {
		h.Size = int64(len(data))
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{"bin/", "etc/", "home/", "home/container/", "proc/", "sys/", "dev/"} {
		put(tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: 0o755}, nil)
	}
	put(tar.Header{Typeflag: tar.TypeDir, Name: "tmp/", Mode: 0o1777}, nil)
	put(tar.Header{Typeflag: tar.TypeReg, Name: "etc/passwd", Mode: 0o644},
		[]byte("root:x:0:0:root:/root:/bin/sh\nplayer:x:1000:1000::/home/container:/bin/sh\n"))
	put(tar.Header{Typeflag: tar.TypeReg, Name: "bin/busybox", Mode: 0o755}, program)
	for applet := range strings.FieldsSeq(string(list)) {
		if applet != "busybox" && !slices.ContainsFunc(more, func(m map[string][]byte) bool { return m["bin/"+applet] != nil }) {
			put(tar.Header{Typeflag: tar.TypeSymlink, Name: "bin/" + applet, Linkname: "busybox"}, nil)
		}
	}
	for _, programs := range more {
		for path, content := range programs {
			put(tar.Header{Typeflag: tar.TypeReg, Name: path, Mode: 0o755}, content)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return root.Bytes()
}

// lock takes a lock that all test processes on this machine share.
func lock(t testing.TB, lock string) (release func()) {
	t.Helper()
	f, err := os.OpenFile("/tmp/"+lock, os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	return func() { _ = f.Close() }
}
