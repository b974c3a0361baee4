package panel

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"berth/api/egg"
)

// maxPages bounds how many pages of servers a panel may have.
const maxPages = 1000

// Servers returns the servers of the node. One that cannot be read is reported in refused, and the
// others are returned.
func (c *Client) Servers(ctx context.Context) (list []egg.Server, refused []error, err error) {
	for page, last := 0, 1; page <= last && page <= maxPages; page++ {
		if page == 1 {
			continue // page 0 is the first one
		}
		var answer struct {
			Data []json.RawMessage `json:"data"`
			Meta struct {
				Last int `json:"last_page"`
			} `json:"meta"`
		}
		if err := c.call(ctx, http.MethodGet, fmt.Sprintf("/servers?page=%d&per_page=%d", page, c.o.PerPage), nil, &answer); err != nil {
			return nil, nil, err
		}
		for _, text := range answer.Data {
			var s egg.Server
			if err := json.Unmarshal(text, &s); err != nil {
				refused = append(refused, fmt.Errorf("a server of the panel: %w", err))
				continue
			}
			list = append(list, s)
		}
		last = answer.Meta.Last
	}
	return list, refused, nil
}

func serverPath(uuid string) string { return "/servers/" + url.PathEscape(uuid) }

// Server returns a server.
func (c *Client) Server(ctx context.Context, uuid string) (s egg.Server, err error) {
	err = c.call(ctx, http.MethodGet, serverPath(uuid), nil, &s)
	if err == nil && s.UUID != uuid {
		err = fmt.Errorf("the panel answered with server %s for %s", s.UUID, uuid)
	}
	return s, err
}

// Script returns what installs a server.
func (c *Client) Script(ctx context.Context, uuid string) (s egg.Script, err error) {
	err = c.call(ctx, http.MethodGet, serverPath(uuid)+"/install", nil, &s)
	return s, err
}

// Installed is the end of an installation.
type Installed struct {
	Successful bool `json:"successful"`
	Reinstall  bool `json:"reinstall"`
}

// ReportInstalled reports the end of an installation.
func (c *Client) ReportInstalled(ctx context.Context, uuid string, i Installed) error {
	return c.call(ctx, http.MethodPost, serverPath(uuid)+"/install", i, nil)
}

// Reset has the panel forget that servers of the node are being installed or restored.
func (c *Client) Reset(ctx context.Context) error {
	return c.call(ctx, http.MethodPost, "/servers/reset", nil, nil)
}

// ReportState reports a change of a server's state. Pterodactyl has no such call.
func (c *Client) ReportState(ctx context.Context, uuid, previous, next string) error {
	states := map[string]string{"previous_state": previous, "new_state": next}
	return c.call(ctx, http.MethodPost, serverPath(uuid)+"/container/status", map[string]any{"data": states}, nil)
}

// Transfer is the end of a server's transfer.
type Transfer string

// The ends: the server is the other node's, or it stays where it was.
const (
	Transferred    Transfer = "success"
	NotTransferred Transfer = "failure"
)

// ReportTransfer reports the end of a transfer. The panel takes one report, and refuses another.
func (c *Client) ReportTransfer(ctx context.Context, uuid string, end Transfer) error {
	return c.call(ctx, http.MethodPost, serverPath(uuid)+"/transfer/"+string(end), nil, nil)
}

// Activity is what a customer has done, for the panel's log.
type Activity struct {
	User      *string        `json:"user"` // nil: nobody
	Server    string         `json:"server"`
	Event     string         `json:"event"` // begins with server:
	Metadata  map[string]any `json:"metadata"`
	IP        netip.Addr     `json:"ip"`
	Timestamp time.Time      `json:"timestamp"` // UTC
}

// ReportActivity reports at most 100 entries.
func (c *Client) ReportActivity(ctx context.Context, list []Activity) error {
	return c.call(ctx, http.MethodPost, "/activity", map[string]any{"data": list}, nil)
}

// Backup is the end of a backup.
type Backup struct {
	Checksum     string `json:"checksum"`
	ChecksumType string `json:"checksum_type"`
	Size         int64  `json:"size"`
	Successful   bool   `json:"successful"`
	Parts        []Part `json:"parts"` // nil: not in S3
}

// Part is an uploaded part of a backup.
type Part struct {
	ETag   string `json:"etag"` // with its quotes
	Number int    `json:"part_number"`
}

func backupPath(uuid string) string { return "/backups/" + url.PathEscape(uuid) }

// ReportBackup reports the end of a backup. If the panel refuses one that succeeded, its archive has
// to be deleted.
func (c *Client) ReportBackup(ctx context.Context, uuid string, b Backup) error {
	return c.call(ctx, http.MethodPost, backupPath(uuid), b, nil)
}

// Upload is where the parts of a backup go.
type Upload struct {
	Parts    []string `json:"parts"` // a signed URL for each
	PartSize int64    `json:"part_size"`
}

// Upload returns where an archive of size bytes goes.
func (c *Client) Upload(ctx context.Context, backup string, size int64) (u Upload, err error) {
	err = c.call(ctx, http.MethodGet, fmt.Sprintf("%s?size=%d", backupPath(backup), size), nil, &u)
	return u, err
}

// ReportRestored reports the end of a restore, and what it failed with, or nil: the panel gets no cause.
func (c *Client) ReportRestored(ctx context.Context, backup string, failure error) error {
	return c.call(ctx, http.MethodPost, backupPath(backup)+"/restore", map[string]bool{"successful": failure == nil}, nil)
}

// Login is a login of SFTP, as a client presents it.
type Login struct {
	Type     string `json:"type"`     // password or public_key
	User     string `json:"username"` // of the panel, a dot and the beginning of a server's UUID
	Password string `json:"password"` // or the key as a line of authorized_keys
	IP       string `json:"ip"`       // with the port
	Session  string `json:"session_id"`
	Client   string `json:"client_version"`
}

// Grant is what a login allows.
type Grant struct {
	User        string   `json:"user"` // UUID
	Server      string   `json:"server"`
	Permissions []string `json:"permissions"` // * is all
}

// Login asks for a login.
func (c *Client) Login(ctx context.Context, l Login) (g Grant, err error) {
	err = c.call(ctx, http.MethodPost, "/sftp/auth", l, &g)
	return g, err
}
