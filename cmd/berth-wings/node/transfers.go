package node

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"berth/api/client"
	"berth/api/egg"
	v1 "berth/api/v1"
	"berth/cmd/berth-wings/panel"
)

// transferLabel is the label of the volume of a server that is on its way to another node or from one. The panel alone
// decides whose it is: a bridge that finds the label asks.
const (
	transferLabel = "wings.transfer"
	departing     = "out"
	arriving      = "in"
)

// The times of a transfer.
const (
	departTime    = 15 * time.Second // to stop: a server that needs longer is not moved
	progressEvery = 5 * time.Second
)

const maxSum = 128 // bytes of a checksum

var (
	errTransferring  = refuse(409, "A transfer is already in progress for this server.")
	errNoTransfer    = refuse(409, "Server is not currently being transferred.")
	errNoCredentials = refuse(401, "The required authorization headers were not present in the request.")
	errNoTransferFor = refuse(403, "Forbidden.")
)

// beginTransfer reserves a server for a transfer, during which no other power action begins. The context ends with parent
// or if the transfer is cancelled.
func (s *server) beginTransfer(parent context.Context) (ctx context.Context, end func(), err error) {
	if s.isInstalling() {
		return nil, nil, refuse(409, "%s", errInstalling)
	}
	turn, err := s.takePower(parent, 0)
	if err != nil && s.moves() {
		return nil, nil, errTransferring
	}
	if err != nil {
		return nil, nil, refuse(409, "%s", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx, s.cancel = context.WithCancel(parent)
	return ctx, func() {
		s.cancelTransfer()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.cancel = nil
		turn()
	}, nil
}

// moves reports whether a server is being transferred, or was.
func (s *server) moves() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cancel != nil
}

// cancelTransfer reports whether there is a transfer, which it cancels.
func (s *server) cancelTransfer() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cancel == nil {
		return false
	}
	s.cancel()
	return true
}

// transferStatus publishes where a transfer is.
func (s *server) transferStatus(word string) {
	s.publish(event{Name: "transfer status", Args: []string{word}})
}

// transferLine publishes a line about a transfer.
func (s *server) transferLine(side, text string) {
	line := fmt.Sprintf("\x1b[33m\x1b[1m%s [Transfer System] [%s Node]:\x1b[39m %s\x1b[0m", time.Now().Format(time.RFC1123), side, text)
	s.publish(event{Name: "transfer logs", Args: []string{line}, needs: "admin.websocket.transfer"})
}

// departure is the request of a transfer to another node.
type departure struct {
	URL, Token string
	Backups    []string
}

// postTransfer is POST /api/servers/:s/transfer. The server is stopped, and stays so.
func (n *Node) postTransfer(c *call) error {
	var r departure
	if err := c.decode(&r); err != nil {
		return err
	}
	s := c.server
	ctx, end, err := s.beginTransfer(n.ctx)
	if err != nil {
		return err
	}
	if err = n.accept(c.Context(), s, transferLabel, departing); err == nil {
		s.endSFTP("")
		err = n.halt(c.Context(), s, order{Action: client.Stop}, departTime)
	}
	if err != nil {
		n.retract(s, transferLabel)
		end()
		return err
	}
	n.background(func(context.Context) { n.depart(ctx, s, r, end) })
	return c.done(202, nil)
}

// depart sends a server to another node. It stays reserved afterwards, until the panel has it deleted, so that it never
// runs on both.
func (n *Node) depart(ctx context.Context, s *server, r departure, end func()) {
	s.transferLine("Source", "Preparing to stream server data to destination...")
	s.transferStatus("processing")
	err := n.push(ctx, s, r)
	if err == nil || n.ctx.Err() != nil {
		return
	}
	n.o.Log.Error("a server was not transferred", "server", s.uuid, "err", err)
	s.transferLine("Source", "The transfer has failed.")
	if ours, err := n.decideTransfer(n.ctx, s); ours && err == nil {
		end()
		s.transferStatus("failure")
	}
}

// push sends the files and backups of a server to another node, which answers when it has reported them to the panel.
func (n *Node) push(ctx context.Context, s *server, r departure) error {
	from, to := io.Pipe()
	defer from.Close()
	form := multipart.NewWriter(to)
	n.jobs.Go(func() { to.CloseWithError(n.pack(ctx, s, r.Backups, form)) })
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.URL, from)
	if err != nil {
		return errors.New("the address of the other node is not valid")
	}
	request.Header.Set("Authorization", r.Token)
	request.Header.Set("Content-Type", form.FormDataContentType())
	s.transferLine("Source", "Streaming archive to destination...")
	other := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // its page would answer as if it had the server
	}}
	response, err := other.Do(request)
	if err != nil {
		return withoutURL(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the other node answered %s", response.Status)
	}
	return nil
}

// pack writes the parts of a transfer in their order, each with its checksum behind it.
func (n *Node) pack(ctx context.Context, s *server, backups []string, form *multipart.Writer) error {
	part := func(name, file, checksum string, copyTo func(io.Writer) error) error {
		to, err := form.CreateFormFile(name, file)
		if err != nil {
			return err
		}
		sum := sha256.New()
		if err := copyTo(io.MultiWriter(to, sum)); err != nil {
			return err
		}
		return form.WriteField(checksum, hex.EncodeToString(sum.Sum(nil)))
	}
	volume, err := n.volumeOf(ctx, s)
	if err != nil {
		return err
	}
	checksum := "checksum"
	if s.pelican() {
		checksum = "checksum_archive"
	}
	err = part("archive", "archive.tar.gz", checksum, func(to io.Writer) error {
		content, err := n.o.Berth.Files().Archive(ctx, volume, "", client.ArchiveOptions{Format: "tar.gz"})
		if err != nil {
			return err
		}
		defer content.Close()
		_, err = io.Copy(&progress{Writer: to, s: s, last: time.Now()}, content)
		return err
	})
	for _, id := range backups {
		if err != nil {
			return err
		}
		name := "backup_" + id + ".tar.gz"
		err = part(name, name, "checksum_"+name, func(to io.Writer) error {
			if _, err := n.backupOf(ctx, s, id); !isNoBackup(err) {
				_, err = n.copyCompressed(ctx, id, to)
				return err
			}
			content, err := n.openOld(s, id)
			if err != nil {
				return err
			}
			defer content.Close()
			_, err = io.Copy(to, content)
			return err
		})
	}
	if err != nil {
		return err
	}
	return form.Close()
}

// progress publishes periodically how much was written.
type progress struct {
	io.Writer
	s    *server
	size int64
	last time.Time
}

func (p *progress) Write(b []byte) (int, error) {
	n, err := p.Writer.Write(b)
	if p.size += int64(n); time.Since(p.last) >= progressEvery {
		p.last = time.Now()
		p.s.transferLine("Source", fmt.Sprintf("Transferred %d MiB", p.size>>20))
	}
	return n, err
}

// cancelTransfer is DELETE /api/servers/:s/transfer, and DELETE /api/transfers/:s at the other node.
func (n *Node) cancelTransfer(c *call) error {
	if !c.server.cancelTransfer() {
		return errNoTransfer
	}
	c.server.transferStatus("cancelling")
	return c.done(202, nil)
}

// arrivalOf returns the server for which the panel has signed the token of a transfer.
func (n *Node) arrivalOf(c *call) (uuid string, err error) {
	text, is := strings.CutPrefix(c.Header.Get("Authorization"), "Bearer ")
	if !is || text == "" {
		c.w.Header().Set("WWW-Authenticate", "Bearer")
		return "", errNoCredentials
	}
	token, err := n.parse(text)
	if err != nil || token.ExpiresAt == nil || !time.Now().Before(token.ExpiresAt.Time) ||
		!n.tokens.fits(token, scopeTransfer) || !egg.IsServerUUID(token.Subject) {
		return "", errNoTransferFor
	}
	return token.Subject, nil
}

// receiveTransfer is POST /api/transfers: another node sends a server. The answer comes when the panel has given the server
// to this node; before, and after an error, nothing of it stays.
func (n *Node) receiveTransfer(c *call) error {
	uuid, err := n.arrivalOf(c)
	if err != nil {
		return err
	}
	if n.find(uuid) != nil {
		return errTransferring
	}
	object, err := n.o.Panel.Server(c.Context(), uuid)
	if err != nil {
		return err
	}
	s := newServer(object)
	n.mu.Lock()
	known := n.servers[uuid] != nil
	if !known {
		n.servers[uuid] = s
	}
	n.mu.Unlock()
	if known {
		return errTransferring
	}
	ctx, end, err := s.beginTransfer(n.ctx)
	if err != nil {
		return err
	}
	err = n.unpack(ctx, c, s)
	if err == nil {
		err = n.insist(n.ctx, s, func() error { return n.o.Panel.ReportTransfer(n.ctx, uuid, panel.Transferred) })
	}
	switch {
	case n.ctx.Err() != nil:
		return n.ctx.Err() // the next bridge asks the panel
	case err == nil:
		n.unmark(n.ctx, s, transferLabel)
	default:
		n.o.Log.Error("a server did not arrive", "server", uuid, "err", err)
		if ours, unknown := n.decideTransfer(n.ctx, s); !ours || unknown != nil {
			return err
		}
	}
	end()
	s.transferStatus("success")
	return c.done(200, nil)
}

// unpack creates the volume and the container of a server that arrives, which stays stopped, and takes the parts of the
// transfer.
func (n *Node) unpack(ctx context.Context, c *call, s *server) error {
	left, err := n.o.Berth.Volumes().List(ctx, egg.ServerLabel+"="+s.uuid)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return errors.New("berth has a volume of the server already")
	}
	if err := n.notImported(s.uuid); err != nil {
		return err
	}
	labels := map[string]string{egg.ServerLabel: s.uuid, transferLabel: arriving}
	// A cancelled transfer waits for both: berth may carry out a request whose client has left, after all was removed.
	volume, err := n.o.Berth.Volumes().Create(n.ctx, v1.VolumeSpec{Labels: labels})
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.volume = volume.VolumeID
	s.mu.Unlock()
	if err := n.apply(n.ctx, s, nil, v1.PowerOff); err != nil {
		return err
	}
	c.Body = newUploadBody(c)
	parts, err := c.MultipartReader()
	if err != nil {
		return err
	}
	sums, want := map[string]hash.Hash{}, map[string]string{}
	for {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		name := part.FormName()
		sum := sha256.New()
		content := io.TeeReader(part, sum)
		checked, isSum := strings.CutPrefix(name, "checksum_")
		id, isBackup := strings.CutPrefix(strings.TrimSuffix(name, ".tar.gz"), "backup_")
		switch {
		case name == "archive":
			sums[name] = sum
			_, err = n.o.Berth.Files().Extract(ctx, volume.VolumeID, "", content, client.ExtractOptions{Format: "tar.gz"})
		case name == "checksum" || isSum:
			text, _ := io.ReadAll(io.LimitReader(content, maxSum))
			if !isSum {
				checked = "archive"
			}
			want[checked] = string(text)
		case isBackup && egg.IsServerUUID(id):
			sums[name] = sum
			err = n.keepBackup(s, id, content)
		}
		if err != nil {
			return err
		}
	}
	if sums["archive"] == nil {
		return errors.New("the transfer has no archive")
	}
	for name, sum := range sums {
		if hex.EncodeToString(sum.Sum(nil)) != want[name] {
			return fmt.Errorf("the checksum of %s is another one", name)
		}
	}
	if err := n.awaitInstalled(ctx, s); err != nil { // the container, which may be started when the panel has the report
		return err
	}
	return ctx.Err() // cancelled at the last moment
}

// keepBackup stores a backup of another node, which is one as wings makes them.
func (n *Node) keepBackup(s *server, id string, content io.Reader) error {
	path := n.oldBackups(s, id)[0]
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(onDisk{f}, content)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

// onDisk writes to a file as long as its disk has more free space than berth needs there.
type onDisk struct{ f *os.File }

func (o onDisk) Write(b []byte) (int, error) {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(o.f.Fd()), &st); err != nil {
		return 0, os.NewSyscallError("statfs", err)
	}
	block := int64(st.Bsize)
	if int64(len(b)) > int64(st.Bavail)*block-v1.DiskReserve(int64(st.Blocks)*block) { //nolint:gosec // sizes of a disk
		return 0, fmt.Errorf("%s: the disk has no space for the backups of the server: free some, or transfer it without them",
			filepath.Dir(o.f.Name()))
	}
	return o.f.Write(b)
}

// decideTransfer has the panel decide whose a server is after a transfer without a known end, and returns whether it is this
// node's. Otherwise it is removed here: another node has it. After an error nothing is known, and the next bridge asks again.
func (n *Node) decideTransfer(ctx context.Context, s *server) (ours bool, err error) {
	_ = n.insist(ctx, s, func() error { return n.o.Panel.ReportTransfer(ctx, s.uuid, panel.NotTransferred) }) // a refusal: it has ended
	var list []egg.Server
	var refused []error
	err = n.insist(ctx, s, func() (err error) {
		list, refused, err = n.o.Panel.Servers(ctx)
		return err
	})
	if err != nil {
		return false, err
	}
	i := slices.IndexFunc(list, func(object egg.Server) bool { return object.UUID == s.uuid })
	if i < 0 {
		if _, err := n.o.Panel.Server(ctx, s.uuid); !isUnknown(err) || len(refused) > 0 {
			return false, errors.New("the panel does not list a server that it knows")
		}
	}
	n.mu.Lock()
	if i < 0 {
		delete(n.servers, s.uuid)
	} else if n.servers[s.uuid] == nil {
		s.set(list[i])
		n.servers[s.uuid] = s
	}
	n.mu.Unlock()
	if i >= 0 {
		n.unmark(ctx, s, transferLabel)
		return true, nil
	}
	s.ended()
	var left []v1.VolumeView // a volume that is not the transfer's stays
	err = n.untilDone(ctx, s, func() (err error) {
		if left, err = n.o.Berth.Volumes().List(ctx, egg.ServerLabel+"="+s.uuid, transferLabel); err != nil || len(left) == 0 {
			return err
		}
		return n.mark(ctx, s, taskLabel, string(removal))
	})
	if err != nil || len(left) == 0 {
		return false, err
	}
	n.removeUntilGone(ctx, s.uuid)
	return false, nil
}

// resumeTransfer decides a transfer that a bridge before this one has left.
func (n *Node) resumeTransfer(s *server) {
	_, end, err := s.beginTransfer(n.ctx)
	if err != nil {
		return // it is decided already
	}
	n.background(func(ctx context.Context) {
		if ours, err := n.decideTransfer(ctx, s); ours && err == nil {
			end()
		}
	})
}
