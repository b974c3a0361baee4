package s3test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strconv"

	"github.com/minio/minio-go/v7/pkg/signer"
)

// Fault handles a request in the place of the server.
type Fault func(s *Server, w http.ResponseWriter, r *http.Request)

// Reset closes the connection without an answer, in the middle of the request.
func Reset(_ *Server, _ http.ResponseWriter, r *http.Request) {
	_, _ = io.CopyN(io.Discard, r.Body, r.ContentLength/2)
	panic(http.ErrAbortHandler)
}

// Lose forwards the request, and closes the connection instead of answering.
func Lose(s *Server, _ http.ResponseWriter, r *http.Request) {
	s.pass.ServeHTTP(httptest.NewRecorder(), r)
	panic(http.ErrAbortHandler)
}

// Hang gives no answer until the client disconnects or the fault ends.
func Hang(_ *Server, _ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // the server of net/http sees the end of a connection only then
	<-r.Context().Done()
	panic(http.ErrAbortHandler)
}

// LoseAndHang forwards the request, and gives no answer until the client disconnects.
func LoseAndHang(s *Server, w http.ResponseWriter, r *http.Request) {
	s.pass.ServeHTTP(httptest.NewRecorder(), r)
	Hang(s, w, r)
}

// Refuse returns a Fault that answers with an error of S3, without reading the request.
func Refuse(status int, code string) Fault {
	return func(_ *Server, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(status)
		fmt.Fprintf(w, `<?xml version="1.0" encoding="UTF-8"?><Error><Code>%s</Code><Message>injected</Message></Error>`, code)
	}
}

// ErrorIn200 answers with an error of S3 and the status 200, as a server does that began
// its answer before it failed.
func ErrorIn200(s *Server, w http.ResponseWriter, r *http.Request) {
	Refuse(http.StatusOK, "InternalError")(s, w, r)
}

// Change returns a Fault that forwards the request and changes the header of the answer.
func Change(change func(http.Header)) Fault {
	return func(s *Server, w http.ResponseWriter, r *http.Request) {
		answer := httptest.NewRecorder()
		s.pass.ServeHTTP(answer, r)
		for name, values := range answer.Header() {
			w.Header()[name] = values
		}
		change(w.Header())
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
	}
}

// WrongETag forwards the request and changes the ETag of the answer.
func WrongETag(s *Server, w http.ResponseWriter, r *http.Request) {
	Change(func(h http.Header) {
		if h.Get("Etag") != "" {
			h.Set("Etag", `"00000000000000000000000000000000"`)
		}
	})(s, w, r)
}

// Alter changes one byte of the request's body.
func Alter(s *Server, w http.ResponseWriter, r *http.Request) {
	alter(r)
	s.pass.ServeHTTP(w, r)
}

// AlterAndSign changes one byte of the request's body, and signs it without its MD5, so that the
// server accepts it: it returns the ETag of the altered bytes.
func AlterAndSign(s *Server, w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("X-Amz-Decoded-Content-Length") != "" {
		r.Body = io.NopCloser(httputil.NewChunkedReader(r.Body)) // it ignores the signatures of the chunks
		r.Header.Del("X-Amz-Decoded-Content-Length")
		r.Header.Del("Content-Encoding")
	}
	r.ContentLength = int64(len(alter(r)))
	r.Header.Set("Content-Length", strconv.FormatInt(r.ContentLength, 10))
	r.Header.Del("Content-Md5")
	r.Header.Set("X-Amz-Content-Sha256", "UNSIGNED-PAYLOAD")
	r.URL.Host = r.Host
	s.pass.ServeHTTP(w, signer.SignV4(*r, AccessKey, SecretKey, "", Region))
}

func alter(r *http.Request) []byte {
	body, _ := io.ReadAll(r.Body)
	if len(body) > 0 {
		body[len(body)/2] ^= 1
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return body
}

// Cut returns a Fault that forwards the request, and closes the connection after n bytes
// of the answer.
func Cut(n int) Fault {
	return func(s *Server, w http.ResponseWriter, r *http.Request) {
		answer := httptest.NewRecorder()
		s.pass.ServeHTTP(answer, r)
		for name, values := range answer.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes()[:min(n, answer.Body.Len())])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

// Stop returns a Fault like Cut, which hangs instead of closing the connection.
func Stop(n int) Fault {
	return func(s *Server, w http.ResponseWriter, r *http.Request) {
		defer func() {
			_ = recover()
			Hang(s, w, r)
		}()
		Cut(n)(s, w, r)
	}
}

// Inject makes the server handle the next n requests for which hits returns true with f;
// 0: all of them.
func (s *Server) Inject(f Fault, hits func(*http.Request) bool, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n == 0 {
		n = math.MaxInt
	}
	s.fault, s.hits, s.left = f, hits, n
	s.next()
	s.phase, s.next = context.WithCancel(context.Background())
}

// Clear ends the fault.
func (s *Server) Clear() { s.Inject(nil, nil, 0) }

// Served returns the requests since the last call, in the form "PUT object?partNumber".
// It names those that a fault handled with a "!" before them.
func (s *Server) Served() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	served := s.served
	s.served = nil
	return served
}

// ServeHTTP forwards a request, or handles it with the injected fault.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	fault, phase := s.of(r)
	if fault != nil {
		defer context.AfterFunc(phase, cancel)()
		fault(s, w, r.WithContext(ctx))
		return
	}
	s.pass.ServeHTTP(w, r)
}

func (s *Server) of(r *http.Request) (Fault, context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := requestName(r)
	if s.fault == nil || s.left == 0 || !s.hits(r) {
		s.served = append(s.served, name)
		return nil, nil
	}
	s.left--
	s.served = append(s.served, "!"+name)
	return s.fault, s.phase
}

// requestName names the operation of a request, with the number of a part.
func requestName(r *http.Request) string {
	query := r.URL.Query()
	switch {
	case query.Has("partNumber"):
		return "part " + query.Get("partNumber")
	case r.Method == http.MethodPost && query.Has("uploads"):
		return "create"
	case r.Method == http.MethodPost && query.Has("uploadId"):
		return "complete"
	case r.Method == http.MethodDelete && query.Has("uploadId"):
		return "abort"
	case query.Has("uploads"):
		return "list"
	case r.Method == http.MethodHead:
		return "stat"
	case r.Method == http.MethodGet:
		return "get"
	}
	return r.Method
}

// Is returns a condition that matches the requests with one of these names: create,
// "part 3", complete, abort, list, stat, get, DELETE.
func Is(names ...string) func(*http.Request) bool {
	return func(r *http.Request) bool {
		for _, name := range names {
			if requestName(r) == name {
				return true
			}
		}
		return false
	}
}

// Part returns a condition that matches the uploads of a part; 0: of all parts.
func Part(number int) func(*http.Request) bool {
	if number > 0 {
		return Is("part " + strconv.Itoa(number))
	}
	return func(r *http.Request) bool { return r.URL.Query().Has("partNumber") }
}
