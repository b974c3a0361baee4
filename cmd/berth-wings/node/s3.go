package node

import (
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"syscall"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/klauspost/compress/zstd"

	"berth/api/client"
	"berth/api/limit"
	v1 "berth/api/v1"
	"berth/cmd/berth-wings/config"
	"berth/cmd/berth-wings/panel"
)

// The times of S3: the panel's addresses are valid for an hour.
const (
	uploadTime = time.Hour
	answerTime = 30 * time.Second
	maxRetries = 8 // of one part: within a minute
)

// uploads bounds the backups that are sent to S3 at once: each takes a core.
func uploads() limit.Bounds { return limit.Bounds{All: 2, Wait: 1} } // of one tenant: the bridge has none

// uploadBackup sends a backup of berth to S3 as the tar.gz that nodes of all kinds restore, in the parts for
// which the panel has signed addresses. Its size must be known before, so it is compressed twice: the archive
// does not change.
func (n *Node) uploadBackup(ctx context.Context, id string) (report panel.Backup, err error) {
	leave, err := n.uploads.Enter(ctx, limit.Claim{})
	if err != nil {
		return report, err
	}
	defer leave()
	sum := sha256.New()
	var size int64
	err = retry(ctx, func() error {
		sum.Reset()
		size, err = n.copyCompressed(ctx, id, sum)
		return err
	})
	if err != nil {
		return report, err
	}
	to, err := n.o.Panel.Upload(ctx, id, size)
	if err == nil && (to.PartSize < 1 || int64(len(to.Parts)) != (size+to.PartSize-1)/to.PartSize) {
		err = fmt.Errorf("the panel has %d parts of %d bytes for an archive of %d", len(to.Parts), to.PartSize, size)
	}
	if err != nil {
		return report, err
	}
	ctx, cancel := context.WithTimeout(ctx, uploadTime)
	defer cancel()
	report = panel.Backup{Checksum: hex.EncodeToString(sum.Sum(nil)), ChecksumType: "sha256", Size: size, Successful: true}
	content := &rewindable{open: func() io.ReadCloser {
		from, to := io.Pipe()
		n.jobs.Go(func() {
			_, err := n.copyCompressed(ctx, id, to)
			to.CloseWithError(err)
		})
		return from
	}}
	defer content.Close()
	for i, address := range to.Parts {
		from, tag := int64(i)*to.PartSize, ""
		err := retry(ctx, func() error {
			tag, err = putPart(ctx, address, content, from, min(to.PartSize, size-from))
			return err
		})
		if err != nil {
			return panel.Backup{}, fmt.Errorf("part %d: %w", i+1, err)
		}
		report.Parts = append(report.Parts, panel.Part{ETag: tag, Number: i + 1})
	}
	return report, nil
}

// copyCompressed writes a backup of berth as a tar.gz, and returns its size. The same backup has always the
// same bytes.
func (n *Node) copyCompressed(ctx context.Context, id string, to io.Writer) (size int64, err error) {
	content, err := n.o.Berth.Backups().Download(ctx, id)
	if err != nil {
		return 0, err
	}
	defer content.Close()
	from, err := zstd.NewReader(content, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
	if err != nil {
		return 0, err
	}
	defer from.Close()
	counted := &counter{Writer: to}
	packed, err := gzip.NewWriterLevel(counted, gzip.BestSpeed)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(packed, from)
	return counted.size, cmp.Or(err, packed.Close())
}

// counter counts what is written.
type counter struct {
	io.Writer
	size int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	c.size += int64(n)
	return n, err
}

// rewindable reads a content that can only be read from its beginning.
type rewindable struct {
	open func() io.ReadCloser
	from io.ReadCloser // nil: not open
	at   int64
}

func (r *rewindable) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	r.at += int64(n)
	return n, err
}

// seek has the next Read begin at an offset.
func (r *rewindable) seek(offset int64) (err error) {
	if r.from == nil || r.at > offset {
		r.Close()
		r.from, r.at = r.open(), 0
	}
	if _, err = io.CopyN(io.Discard, r, offset-r.at); err != nil {
		r.Close()
	}
	return err
}

// Close also ends the writer.
func (r *rewindable) Close() {
	if r.from != nil {
		_ = r.from.Close() // of a pipe: it cannot fail
		r.from = nil
	}
}

// retry calls a function again that has failed, unless the error is permanent.
func retry(ctx context.Context, do func() error) error {
	return backoff.Retry(do, backoff.WithContext(backoff.WithMaxRetries(backoff.NewExponentialBackOff(), maxRetries), ctx))
}

// partBody is the body of a request. It is closed when nothing reads it any more.
type partBody struct {
	io.Reader
	done func()
}

func (b *partBody) Close() error {
	b.done()
	return nil
}

// putPart sends a part of an archive, and returns its tag.
func putPart(ctx context.Context, address string, content *rewindable, from, size int64) (tag string, err error) {
	if err := content.seek(from); err != nil {
		return "", err
	}
	read, done := context.WithCancel(context.Background())
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, address, &partBody{io.LimitReader(content, size), done})
	if err != nil {
		done()
		return "", backoff.Permanent(err)
	}
	request.ContentLength = size
	request.Header.Set("Content-Type", "application/x-gzip")
	response, err := http.DefaultClient.Do(request)
	<-read.Done() // it may be read a little longer
	if err != nil {
		content.Close() // its error may be the reason
		return "", withoutURL(err)
	}
	defer response.Body.Close()
	switch response.StatusCode / 100 {
	case 2:
		return response.Header.Get("ETag"), nil
	case 4:
		return "", backoff.Permanent(fmt.Errorf("the store answered %s", response.Status))
	}
	return "", fmt.Errorf("the store answered %s", response.Status)
}

// openArchive opens an archive in S3 for which the panel has a signed address.
func (n *Node) openArchive(address string) (io.ReadCloser, error) {
	if address == "" {
		return nil, refuse(400, "The download_url field is required when the backup adapter is set to S3.")
	}
	ctx, end := context.WithCancel(n.ctx) // it is read behind the answer
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		end()
		return nil, refuse(400, "The provided backup link is no address.")
	}
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		host, _, _ := net.SplitHostPort(address) // of the link, or of a redirect
		dialer := &net.Dialer{Timeout: answerTime, Control: func(_, to string, _ syscall.RawConn) error { return n.mayReach(host, to) }}
		return dialer.DialContext(ctx, network, address)
	}
	store := &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true,
		TLSHandshakeTimeout: answerTime, ResponseHeaderTimeout: answerTime}}
	response, err := store.Do(request)
	if err != nil {
		end()
		n.o.Log.Warn("the address of a backup cannot be opened", "err", withoutURL(err))
		return nil, refuse(400, "The provided backup link cannot be reached: %s", withoutURL(err))
	}
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	switch {
	case response.StatusCode != http.StatusOK:
		err = refuse(400, "The provided backup link returned an invalid response status: %s", response.Status)
	case kind != "application/x-gzip" && kind != "application/gzip":
		err = refuse(400, "The provided backup link is not a supported content type. %q is not application/x-gzip.", kind)
	default:
		return &steadyBody{response.Body, end}, nil
	}
	end()
	_ = response.Body.Close() // the refusal is the error
	return nil, err
}

// steadyBody is the body of an answer whose sender must send something within a time.
type steadyBody struct {
	io.ReadCloser
	end func() // of the request
}

func (b *steadyBody) Read(p []byte) (int, error) {
	late := time.AfterFunc(silence, b.end)
	defer late.Stop()
	return b.ReadCloser.Read(p)
}

func (b *steadyBody) Close() error {
	b.end()
	return b.ReadCloser.Close()
}

// withoutURL returns an error of a request without its address, which is signed.
func withoutURL(err error) error {
	if e := new(url.Error); errors.As(err, &e) {
		return e.Err
	}
	return err
}

// mayReach returns why a backup must not be read from an address of a host: what is private is for the
// operator to allow.
func (n *Node) mayReach(host, to string) error {
	at, err := netip.ParseAddrPort(to)
	if err != nil {
		return err
	}
	ip := at.Addr().Unmap()
	allowed := slices.ContainsFunc(n.config().System.Backups.AllowedHosts, func(text string) bool {
		network, err := config.PrefixOf(text)
		return text == host || err == nil && network.Contains(ip)
	})
	if !allowed && !v1.IsPublic(ip) {
		return fmt.Errorf("%s is not a public address, and not in system.backups.restore_host_allowlist", ip)
	}
	return nil
}

// The folders of a restore that replaces the files of a server. Each has the id of the backup in its name.
const (
	partial = ".restore-part-" // is being extracted
	whole   = ".restore-all-"  // is complete: all else is to be deleted
	alone   = ".restore-only-" // what it has comes up
)

// forgetRestore deletes the folders of an earlier restore of a backup, or those that a customer has made as such.
func (n *Node) forgetRestore(ctx context.Context, s *server, id string) error {
	volume, err := n.volumeOf(ctx, s)
	for _, folder := range []string{partial, whole, alone} {
		if err == nil {
			err = n.untilDone(ctx, s, func() error { return ignoreMissing(n.o.Berth.Files().Delete(ctx, volume, folder+id)) })
		}
	}
	return err
}

// restoreArchive adds the files of an archive to those of a server, or replaces them. A server keeps its files until
// the new ones are complete, so both need room for a while. It may be called again.
func (n *Node) restoreArchive(ctx context.Context, s *server, id string, content io.Reader, replace bool) error {
	volume, err := n.volumeOf(ctx, s)
	if err != nil {
		return err
	}
	files, format := n.o.Berth.Files(), client.ExtractOptions{Format: "tar.gz"}
	if !replace {
		_, err = files.Extract(ctx, volume, "", content, format)
		return err
	}
	if done, err := n.exchange(ctx, volume, id); done || err != nil {
		return err
	}
	if err := ignoreMissing(files.Delete(ctx, volume, partial+id)); err != nil {
		return err
	}
	if err := files.Mkdir(ctx, volume, partial+id); err != nil {
		return err
	}
	if _, err := files.Extract(ctx, volume, partial+id, content, format); err != nil {
		return errors.Join(err, files.Delete(ctx, volume, partial+id))
	}
	if err := files.Rename(ctx, volume, partial+id, whole+id); err != nil {
		return err
	}
	_, err = n.exchange(ctx, volume, id)
	return err
}

// exchange replaces the files of a volume with those that a restore has extracted. It continues where an earlier call
// has ended, and reports whether there is such a restore.
func (n *Node) exchange(ctx context.Context, volume, id string) (is bool, err error) {
	files := n.o.Berth.Files()
	list, err := files.List(ctx, volume, "")
	if err != nil {
		return false, err
	}
	has := func(name string) bool {
		return slices.ContainsFunc(list, func(f v1.FileEntry) bool { return f.Name == name })
	}
	if !has(whole+id) && !has(alone+id) {
		return false, nil
	}
	if has(whole + id) {
		for _, f := range list {
			if f.Name == whole+id {
				continue
			}
			if err := files.Delete(ctx, volume, f.Name); err != nil {
				return true, err
			}
		}
		if err := files.Rename(ctx, volume, whole+id, alone+id); err != nil {
			return true, err
		}
	}
	if list, err = files.List(ctx, volume, alone+id); err != nil {
		return true, err
	}
	for _, f := range list {
		if err := files.Rename(ctx, volume, alone+id+"/"+f.Name, f.Name); err != nil {
			return true, err
		}
	}
	return true, files.Delete(ctx, volume, alone+id)
}

// ignoreMissing returns err, or nil if it is that of something that does not exist.
func ignoreMissing(err error) error {
	if client.StatusOf(err) == http.StatusNotFound {
		return nil
	}
	return err
}
