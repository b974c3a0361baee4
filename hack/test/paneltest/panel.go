// Package paneltest is a panel of the Pterodactyl and Pelican family for tests of berth-wings: what a
// node asks it, and what its pages and its customers' browsers send to a node. It is written from the
// protocol, and checks what it is sent as a panel does.
package paneltest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The secrets of the node, and the key of an administrator.
const (
	TokenID = "abcdefghijklmnop"
	Token   = "0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqr"
	Key     = "papp_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG"
)

// Call is a request of the node.
type Call struct {
	Method, Path, Query string
	Header              http.Header
	Body                string
	Status              int
}

// Panel is a panel with one node.
type Panel struct {
	URL string // without a slash

	mu      sync.Mutex
	order   []string
	servers map[string]map[string]any
	scripts map[string]map[string]any
	node    map[string]any // what the page of the node shows
	calls   []Call
	change  chan struct{} // closed at the next call
	fail    func(Call) int
	logins  map[string]any    // of SFTP, by user and secret
	backups map[string]bool   // those that were reported
	objects map[string]string // the parts of archives in S3, by path
	moving  map[string]bool   // the servers that are being transferred
}

// PartSize is the size of a part of an archive, in bytes.
const PartSize = 200

// Object returns an archive in S3, as its parts were sent.
func (p *Panel) Object(backup string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.object(backup)
}

func (p *Panel) object(backup string) (content string) {
	for n := 1; ; n++ {
		part, is := p.objects[fmt.Sprint("/objects/", backup, "/", n)]
		if !is {
			return content
		}
		content += part
	}
}

// serveObject is the store: a part is sent, or an archive is read.
func (p *Panel) serveObject(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	backup, read := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, "/objects/"), "/all")
	c := Call{r.Method, r.URL.Path, r.URL.RawQuery, r.Header, string(body), 200}
	p.mu.Lock()
	if p.fail != nil {
		c.Status = max(c.Status, p.fail(c))
	}
	if c.Status == 200 && r.Method == http.MethodPut {
		p.objects[r.URL.Path] = string(body)
		w.Header().Set("ETag", fmt.Sprintf("%q", path.Base(r.URL.Path)))
	}
	content := ""
	if read {
		content = p.object(backup)
		w.Header().Set("Content-Type", "application/x-gzip")
		if content == "" {
			c.Status = 404
		}
	}
	p.record(c)
	p.mu.Unlock()
	w.WriteHeader(c.Status)
	_, _ = io.WriteString(w, content)
}

// record adds a call. The panel is locked.
func (p *Panel) record(c Call) {
	p.calls = append(p.calls, c)
	close(p.change)
	p.change = make(chan struct{})
}

// New returns a panel without servers, which does not listen. Its handler is ServeHTTP.
func New() *Panel {
	return &Panel{URL: "http://panel.test", servers: map[string]map[string]any{},
		scripts: map[string]map[string]any{}, change: make(chan struct{}), logins: map[string]any{}, backups: map[string]bool{},
		objects: map[string]string{}, moving: map[string]bool{},
		node: map[string]any{"debug": false, "uuid": "90909090-0909-4909-8909-909090909090", "token_id": TokenID, "token": Token,
			"api": map[string]any{"host": "0.0.0.0", "port": 8080, "upload_limit": 1, "ssl": map[string]any{"enabled": false,
				"cert": "/etc/letsencrypt/live/node.test/fullchain.pem", "key": "/etc/letsencrypt/live/node.test/privkey.pem"}},
			"system":         map[string]any{"data": "/var/lib/pelican/volumes", "sftp": map[string]any{"bind_port": 2022}},
			"allowed_mounts": []string{"/"}, "remote": "http://elsewhere.test"}}
}

// Start returns a panel that listens until the test ends.
func Start(t testing.TB) *Panel {
	p := New()
	s := httptest.NewServer(p)
	t.Cleanup(s.Close)
	p.URL = s.URL
	return p
}

// SetServer adds or replaces a server, as the panel describes it to its node.
func (p *Panel) SetServer(t testing.TB, object string) (uuid string) {
	t.Helper()
	var s map[string]any
	require.NoError(t, json.Unmarshal([]byte(object), &s))
	uuid = s["settings"].(map[string]any)["uuid"].(string)
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Contains(p.order, uuid) {
		p.order = append(p.order, uuid)
	}
	p.servers[uuid] = s
	return uuid
}

// TransferAway begins the transfer of a server of the node to another one.
func (p *Panel) TransferAway(uuid string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.moving[uuid] = true
}

// TransferHere begins the transfer of a server that was set to the node, which may ask for it without having it meanwhile.
func (p *Panel) TransferHere(uuid string) {
	p.TransferAway(uuid)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.order = slices.DeleteFunc(p.order, func(other string) bool { return other == uuid })
}

// SetScript sets what installs a server.
func (p *Panel) SetScript(uuid, image, entrypoint, script string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.scripts[uuid] = map[string]any{"container_image": image, "entrypoint": entrypoint, "script": script}
}

// SetLogin lets a user log in at a server with SFTP, by a password or a line of authorized_keys.
func (p *Panel) SetLogin(user, secret, uuid, server string, permissions ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.logins[user+" "+secret] = map[string]any{"user": uuid, "server": server, "permissions": permissions}
}

// RemoveServer removes a server.
func (p *Panel) RemoveServer(uuid string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.servers, uuid)
	delete(p.moving, uuid)
	p.order = slices.DeleteFunc(p.order, func(other string) bool { return other == uuid })
}

// Fail has calls fail for which a function returns a status that is not 0.
func (p *Panel) Fail(status func(Call) int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fail = status
}

// Calls returns the calls so far whose method and path begin so, such as "POST /servers/".
func (p *Panel) Calls(prefix string) (list []Call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.calls {
		if strings.HasPrefix(c.Method+" "+c.Path, prefix) {
			list = append(list, c)
		}
	}
	return list
}

// Await waits for the call number n, from 1, that Calls returns.
func (p *Panel) Await(t testing.TB, prefix string, n int) Call {
	t.Helper()
	late := time.NewTimer(3 * time.Minute)
	defer late.Stop()
	for {
		p.mu.Lock()
		change := p.change
		p.mu.Unlock()
		if list := p.Calls(prefix); len(list) >= n {
			return list[n-1]
		}
		select {
		case <-change:
		case <-late.C:
			var all strings.Builder
			for _, c := range p.Calls("") {
				fmt.Fprintln(&all, c.Method, c.Path, c.Query, c.Body, c.Status)
			}
			t.Fatalf("the panel was not called %d times: %s; it was called:\n%s", n, prefix, &all)
		}
	}
}

// ServeHTTP answers one request.
func (p *Panel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/objects/") {
		p.serveObject(w, r)
		return
	}
	body, _ := io.ReadAll(r.Body)
	path, remote := strings.CutPrefix(r.URL.Path, "/api/remote")
	c := Call{r.Method, path, r.URL.RawQuery, r.Header, string(body), 0}
	answer := any(nil)
	p.mu.Lock()
	switch {
	case !remote && r.Header.Get("Authorization") != "Bearer "+Key:
		c.Status = 403
	case !remote && r.URL.Path == "/api/application/nodes/1/configuration":
		c.Status, answer = 200, p.node
	case !remote:
		c.Status = 404
	case r.Header.Get("Authorization") != "Bearer "+TokenID+"."+Token:
		c.Status = 403
	default:
		if p.fail != nil {
			c.Status = p.fail(c)
		}
		if c.Status == 0 {
			c.Status, answer = p.answer(c)
		}
	}
	p.record(c)
	p.mu.Unlock()
	if c.Status/100 != 2 {
		answer = map[string]any{"errors": []map[string]string{{
			"code": "HttpException", "status": strconv.Itoa(c.Status), "detail": "made to fail",
		}}}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(c.Status)
	if c.Status != 204 {
		_ = json.NewEncoder(w).Encode(answer)
	}
}

// answer returns the answer to a call of the node.
func (p *Panel) answer(c Call) (int, any) {
	parts := strings.Split(strings.Trim(c.Path, "/"), "/")
	verb := c.Method + " " + parts[0] +
		strings.Repeat("/x", min(1, len(parts)-1)) + strings.Join(append([]string{""}, parts[min(2, len(parts)):]...), "/")
	switch {
	case verb == "GET servers":
		return p.page(c)
	case c.Path == "/servers/reset":
		return 204, nil
	case parts[0] == "servers" && p.servers[parts[1]] == nil:
		return 404, nil
	}
	switch verb {
	case "GET servers/x":
		return 200, p.servers[parts[1]]
	case "GET servers/x/install":
		return 200, p.scripts[parts[1]]
	case "POST servers/x/install":
		return need(c.Body, "successful", "reinstall")
	case "POST servers/x/container/status":
		return 200, []any{}
	case "POST servers/x/transfer/success", "POST servers/x/transfer/failure":
		if !p.moving[parts[1]] {
			return 409, nil
		}
		delete(p.moving, parts[1])
		switch here := slices.Contains(p.order, parts[1]); {
		case here:
		case strings.HasSuffix(c.Path, "success"):
			p.order = append(p.order, parts[1])
		default:
			delete(p.servers, parts[1])
		}
		return 204, nil
	case "POST sftp/x":
		var sent struct{ Username, Password string }
		if status, _ := need(c.Body, "type", "ip", "session_id", "client_version"); status != 204 ||
			json.Unmarshal([]byte(c.Body), &sent) != nil {
			return 422, nil
		}
		if grant := p.logins[sent.Username+" "+sent.Password]; grant != nil {
			return 200, grant
		}
		return 403, nil
	case "POST activity":
		return 200, nil
	case "GET backups/x":
		var size int
		_, _ = fmt.Sscanf(c.Query, "size=%d", &size)
		urls := []string{}
		for n := range (size + PartSize - 1) / PartSize {
			urls = append(urls, fmt.Sprint(p.URL, "/objects/", parts[1], "/", n+1, "?signed=yes"))
		}
		return 200, map[string]any{"parts": urls, "part_size": PartSize, "max_concurrent_uploads": 10}
	case "POST backups/x":
		status, answer := need(c.Body, "checksum", "checksum_type", "size", "successful")
		if p.backups[parts[1]] {
			return 400, nil
		}
		p.backups[parts[1]] = status == 204
		return status, answer
	case "POST backups/x/restore":
		return need(c.Body, "successful")
	}
	return 404, nil
}

// need returns 204 for a body that has these fields, else 422.
func need(body string, fields ...string) (int, any) {
	var sent map[string]any
	if json.Unmarshal([]byte(body), &sent) != nil {
		return 422, nil
	}
	for _, field := range fields {
		if sent[field] == nil {
			return 422, nil
		}
	}
	return 204, nil
}

// page returns a part of the servers.
func (p *Panel) page(c Call) (int, any) {
	var page, per int
	_, _ = fmt.Sscanf(c.Query, "page=%d&per_page=%d", &page, &per)
	page, per = max(1, page), max(1, per)
	last := max(1, (len(p.order)+per-1)/per)
	data := []any{}
	for _, uuid := range p.order[min(len(p.order), (page-1)*per):min(len(p.order), page*per)] {
		s := map[string]any{"uuid": uuid}
		for key, value := range p.servers[uuid] {
			s[key] = value
		}
		data = append(data, s)
	}
	return 200, map[string]any{"data": data, "meta": map[string]any{
		"current_page": page, "last_page": last, "per_page": per, "total": len(p.order),
	}}
}
