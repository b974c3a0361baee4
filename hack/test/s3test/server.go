package s3test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// The names that every server has.
const (
	Bucket    = "backups"
	Region    = "eu-test-1"
	AccessKey = "test-access"
	SecretKey = "test-secret-key-0123"
)

// Server is an S3 server with one empty bucket, and the proxy before it.
type Server struct {
	URL string // of the proxy

	pass  *httputil.ReverseProxy
	admin *minio.Core // does not pass the faults

	mu     sync.Mutex
	phase  context.Context // ends with each change of the fault
	next   context.CancelFunc
	fault  Fault // nil: all requests are forwarded
	hits   func(*http.Request) bool
	left   int // how many requests the fault still handles
	served []string
}

// Start starts a server. It ends with the test.
func Start(t testing.TB) *Server {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "s3") // short, because the path of a socket has at most 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	run(t, dir, socket)
	transport := &http.Transport{DisableCompression: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}
	s := &Server{pass: &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "http", "s3", r.In.Host },
		Transport: transport, FlushInterval: -1,
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}}
	s.phase, s.next = context.WithCancel(context.Background())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	proxy := &http.Server{Handler: s}
	var serving sync.WaitGroup
	serving.Go(func() { _ = proxy.Serve(l) })
	t.Cleanup(func() {
		s.Clear()
		_ = proxy.Close()
		serving.Wait()
		transport.CloseIdleConnections()
	})
	s.URL = "http://" + l.Addr().String()
	s.admin, err = minio.NewCore("s3.test", &minio.Options{Creds: credentials.NewStaticV4(AccessKey, SecretKey, ""),
		Region: Region, BucketLookup: minio.BucketLookupPath, Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	s.makeBucket(t)
	return s
}

// run runs the program until the test ends.
func run(t testing.TB, dir, socket string) {
	t.Helper()
	program := path(t)
	for _, name := range []string{"data", "meta"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	var log bytes.Buffer
	cmd := exec.Command(program, "--port", socket, "--region", Region, "posix", "--sidecar", filepath.Join(dir, "meta"),
		filepath.Join(dir, "data"))
	cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+AccessKey, "ROOT_SECRET_KEY="+SecretKey)
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("the end of the server's log:\n%s", log.String()[max(0, log.Len()-4000):])
		}
	})
}

// path returns the path of the program.
func path(t testing.TB) string {
	t.Helper()
	module, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		t.Fatalf("go env: %v", err)
	}
	get := exec.Command(filepath.Join(filepath.Dir(string(module)), "hack", "versitygw.sh"))
	get.Stderr = t.Output()
	path, err := get.Output()
	if err != nil {
		t.Fatalf("versitygw.sh: %v", err)
	}
	return strings.TrimSpace(string(path))
}

// makeBucket creates the bucket as soon as the server answers.
func (s *Server) makeBucket(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for {
		err := s.admin.MakeBucket(ctx, Bucket, minio.MakeBucketOptions{Region: Region})
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("versitygw does not answer: %v", err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Objects returns the names of all objects.
func (s *Server) Objects(t testing.TB) (names []string) {
	t.Helper()
	for o := range s.admin.Client.ListObjects(context.Background(), Bucket, minio.ListObjectsOptions{Recursive: true}) {
		if o.Err != nil {
			t.Fatal(o.Err)
		}
		names = append(names, o.Key)
	}
	return names
}

// Uploads returns the names of all objects of unfinished uploads, one for each upload.
func (s *Server) Uploads(t testing.TB) (names []string) {
	t.Helper()
	page, err := s.admin.ListMultipartUploads(context.Background(), Bucket, "", "", "", "", 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range page.Uploads {
		names = append(names, u.Key)
	}
	return names
}

// Content returns the content of an object.
func (s *Server) Content(t testing.TB, name string) []byte {
	t.Helper()
	body, _, _, err := s.admin.GetObject(context.Background(), Bucket, name, minio.GetObjectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	content, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// NewUpload begins an upload of an object, as a process does that is then killed.
func (s *Server) NewUpload(t testing.TB, name string) {
	t.Helper()
	id, err := s.admin.NewMultipartUpload(context.Background(), Bucket, name, minio.PutObjectOptions{})
	if err == nil {
		_, err = s.admin.PutObjectPart(context.Background(), Bucket, name, id, 1, strings.NewReader("part"), 4, minio.PutObjectPartOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}
