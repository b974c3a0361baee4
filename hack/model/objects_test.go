package model_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"berth/hack/test/berthtest"
)

// newVolume creates a volume with a name of its own: there is exactly one of that name afterwards.
func (c *client) newVolume(name string) (id, dir string) {
	for {
		name := fmt.Sprintf("%s-%d", name, c.unique())
		a := c.change("volume", "POST", "/volumes", map[string]any{"name": name})
		list := slices.DeleteFunc(c.volumes(), func(v volume) bool { return v.Name != name })
		var made volume
		if a.outcome == done {
			a.Decode(c.t, &made)
		}
		switch {
		case a.outcome == refused:
			c.violated(c, "a volume was refused: %d %s", a.Status, a.Body)
			return "", ""
		case len(list) > 1, a.outcome == done && (len(list) == 0 || list[0].ID != made.ID):
			c.violated(c, "volume %+v is there as %+v", made, list)
			return "", ""
		case len(list) == 1:
			return list[0].ID, list[0].Path
		}
	}
}

// volume is a volume as berth reports it.
type volume struct {
	ID   string `json:"volume_id"`
	Path string
	Name string
}

func (c *client) volumes() []volume {
	var body struct{ Volumes []volume }
	c.get("/volumes", &body)
	return body.Volumes
}

// data is a volume without a container: its file and its label are registers, and its backups keep the file.
type data struct {
	id          string
	file, label register
	backups     map[string]int // by id: the value of the file
}

func (d *data) step(c *client) {
	if d.id == "" {
		d.id, _ = c.newVolume(fmt.Sprintf("data%d", c.n))
		d.file, d.label = register{"the file", []int{0}}, register{"the label", []int{0}}
		d.backups = map[string]int{}
		return
	}
	switch n := c.random.IntN(10); {
	case n < 3:
		value := c.unique()
		a := c.change("file", "PUT", "/volumes/"+d.id+"/files/content?path=folder/file",
			strings.Repeat(fmt.Sprintln(value), 1000), "Content-Type", "application/octet-stream")
		d.file.wrote(value, c.accepted(a))
	case n < 5:
		value := c.unique()
		a := c.change("label", "PATCH", "/volumes/"+d.id, map[string]any{"labels": map[string]string{"value": fmt.Sprint(value)}})
		d.label.wrote(value, c.accepted(a))
	case n < 7:
		d.backup(c)
	case n < 8:
		d.restore(c)
	case n < 9:
		d.deleteBackup(c)
	default:
		d.look(c)
	}
}

// accepted reports a violation unless a request that must not be refused was not.
func (c *client) accepted(a answer) outcome {
	if a.outcome == refused {
		c.violated(c, "refused: %d %s", a.Status, a.Body)
	}
	return a.outcome
}

// look compares the file and the label with the model.
func (d *data) look(c *client) {
	var v struct{ Labels map[string]string }
	if !c.get("/volumes/"+d.id, &v) {
		c.violated(c, "volume %s is missing", d.id)
		return
	}
	value := 0
	_, _ = fmt.Sscan(v.Labels["value"], &value)
	d.label.read(c, value)
	d.file.read(c, d.content(c))
}

// content returns the value of the file, which must be whole; 0 if there is none.
func (d *data) content(c *client) (value int) {
	for {
		a := c.call("GET", "/volumes/"+d.id+"/files/content?path=folder/file", nil)
		switch {
		case a.outcome == lost:
			continue
		case a.Status == 404:
			return 0
		}
		_, _ = fmt.Sscan(string(a.Body), &value)
		if string(a.Body) != strings.Repeat(fmt.Sprintln(value), 1000) {
			c.violated(c, "the file is not what was written: %d, %.100q", a.Status, a.Body)
		}
		return value
	}
}

// job is a backup, with its last restore.
type job struct {
	ID       string `json:"backup_id"`
	State    string
	Message  string
	Restores []struct {
		ID, State, Message string
	}
}

func (d *data) list(c *client) []job {
	var body struct{ Backups []job }
	c.get("/volumes/"+d.id+"/backups", &body)
	return body.Backups
}

// unknown returns the backups that the model does not know.
func (d *data) unknown(c *client) []job {
	return slices.DeleteFunc(d.list(c), func(j job) bool { _, known := d.backups[j.ID]; return known || j.State == "deleting" })
}

// backup makes a backup and waits for its end. Without an answer there is one, or none.
func (d *data) backup(c *client) {
	if len(d.backups) >= 4 {
		return
	}
	d.look(c)
	a := c.change("backup", "POST", "/volumes/"+d.id+"/backups", map[string]any{})
	c.accepted(a)
	var made job
	if a.outcome == done {
		a.Decode(c.t, &made)
	}
	list := d.unknown(c)
	switch {
	case len(list) > 1, a.outcome == done && (len(list) != 1 || list[0].ID != made.ID):
		c.violated(c, "backup %+v is there as %+v", made, list)
	case len(list) == 1:
		d.backups[list[0].ID] = d.file.possible[0]
		d.await(c, list[0].ID)
	}
}

// await waits until a backup is finished.
func (d *data) await(c *client, id string) (j job) {
	finished := func() bool {
		j = job{}
		if !c.get("/backups/"+id, &j) {
			c.violated(c, "backup %s is missing", id)
			return true
		}
		return j.State == "completed" || j.State == "failed"
	}
	if !berthtest.Within(wait, finished) {
		c.violated(c, "backup %s does not end: %+v", id, j)
	}
	return j
}

// restore restores a backup, and waits for its end: the file is that of the backup.
func (d *data) restore(c *client) {
	id := d.anyBackup(c)
	if id == "" || d.await(c, id).State != "completed" {
		return
	}
	before := len(d.await(c, id).Restores)
	d.look(c)
	a := c.change("restore", "POST", "/backups/"+id+"/restore", map[string]any{})
	c.accepted(a)
	var j job
	ended := func() bool {
		j = d.await(c, id)
		return !slices.ContainsFunc(j.Restores, func(r struct{ ID, State, Message string }) bool {
			return r.State != "completed" && r.State != "failed"
		})
	}
	if !berthtest.Within(wait, ended) {
		c.violated(c, "a restore of %s does not end: %+v", id, j)
	}
	if a.outcome == done && len(j.Restores) == before {
		c.violated(c, "backup %s has %d restores, as before", id, before)
	}
	d.file.wrote(d.backups[id], lost) // it may have failed
	if a.outcome == done && j.Restores[0].State == "completed" {
		d.file.wrote(d.backups[id], done)
	}
	d.look(c)
}

func (d *data) deleteBackup(c *client) {
	id := d.anyBackup(c)
	if id == "" {
		return
	}
	a := c.change("delete backup", "DELETE", "/backups/"+id, nil)
	c.accepted(a)
	var j job
	gone := func() bool { j = job{}; return !c.get("/backups/"+id, &j) }
	if a.outcome == lost && !gone() && j.State != "deleting" {
		return
	}
	if !berthtest.Within(wait, gone) {
		c.violated(c, "backup %s is not deleted: %+v", id, j)
	}
	delete(d.backups, id)
}

func (d *data) anyBackup(c *client) string {
	var ids []string
	for id := range d.backups {
		ids = append(ids, id)
	}
	if len(ids) == 0 {
		return ""
	}
	slices.Sort(ids)
	return ids[c.random.IntN(len(ids))]
}

// token is a minted token. Its secret is unknown if the answer was lost.
type token struct{ name, id, secret string }

// stepTokens mints or revokes a token, or uses all.
func (c *client) stepTokens() {
	if n := c.random.IntN(3); n == 0 && len(c.tokens) < 5 {
		c.mint()
	} else if n == 1 && len(c.tokens) > 0 {
		c.revoke(c.random.IntN(len(c.tokens)))
	}
	c.useTokens()
}

func (c *client) mint() {
	k := &token{name: fmt.Sprintf("token-%d-%d", c.n, c.unique())}
	a := c.change("token", "POST", "/auth/tokens", map[string]any{"name": k.name, "ttl": "12h", "scopes": []string{"read"}})
	c.accepted(a)
	if a.outcome == done {
		var made struct{ ID, Token string }
		a.Decode(c.t, &made)
		k.id, k.secret = made.ID, made.Token
	}
	list := slices.DeleteFunc(c.listTokens(), func(o listed) bool { return o.Name != k.name })
	switch {
	case len(list) > 1, a.outcome == done && (len(list) != 1 || list[0].ID != k.id):
		c.violated(c, "token %s is there as %+v", k.name, list)
	case len(list) == 1:
		k.id = list[0].ID
		c.tokens = append(c.tokens, k)
	}
}

type listed struct{ ID, Name string }

func (c *client) listTokens() []listed {
	var body struct{ Tokens []listed }
	c.get("/auth/tokens", &body)
	return body.Tokens
}

func (c *client) revoke(i int) {
	k := c.tokens[i]
	a := c.change("revoke", "DELETE", "/auth/tokens/"+k.id, nil)
	c.accepted(a)
	there := slices.Contains(c.listTokens(), listed{k.id, k.name})
	if a.outcome == done && there {
		c.violated(c, "token %s was revoked, and is there", k.name)
	}
	if there {
		return
	}
	c.tokens = slices.Delete(c.tokens, i, i+1)
	if k.secret != "" && c.self(k) != 401 {
		c.violated(c, "token %s was revoked, and is valid", k.name)
	}
}

// self returns the status with which a token is answered.
func (c *client) self(k *token) int {
	for {
		if a := c.call("GET", "/auth/self", nil, "Authorization", "Bearer "+k.secret); a.outcome != lost {
			return a.Status
		}
	}
}

func (c *client) useTokens() {
	for _, k := range c.tokens {
		if k.secret != "" && c.self(k) != 200 {
			c.violated(c, "token %s was minted, and is not valid", k.name)
		}
	}
}

// stepPort adds this client's own port to the pool, or removes it.
func (c *client) stepPort() {
	c.lookPort()
	ref := fmt.Sprintf("/network/ports/127.0.0.1/%d", c.portNumber)
	if c.port.possible[0] == 1 {
		c.port.wrote(0, c.accepted(c.change("delete port", "DELETE", ref, nil)))
		return
	}
	a := c.change("port", "POST", "/network/ports", map[string]any{"ip": "127.0.0.1", "port": c.portNumber, "protocol": "tcp"})
	c.port.wrote(1, c.accepted(a))
}

func (c *client) lookPort() {
	there := 0
	if c.get(fmt.Sprintf("/network/ports/127.0.0.1/%d?protocol=%s", c.portNumber, url.QueryEscape("tcp")), nil) {
		there = 1
	}
	c.port.read(c, there)
}

// checkObjects compares all objects of the client but its games with the model.
func (c *client) checkObjects() {
	c.lookPort()
	c.useTokens()
	if c.data.id == "" {
		return
	}
	c.data.look(c)
	if list := c.data.unknown(c); len(list) > 0 || len(c.data.list(c)) != len(c.data.backups) {
		c.violated(c, "the backups are %+v, and must be %v", c.data.list(c), c.data.backups)
	}
}

// removeAll deletes every object of the client.
func (c *client) removeAll() {
	for _, g := range c.games {
		if g.look() {
			c.repeat("DELETE", "/containers/"+g.id, nil)
			g.leaving, g.whole = true, false
		}
		if g.leaving {
			g.awaitGone()
		}
		if g.volume != "" {
			c.accepted(c.repeat("DELETE", "/volumes/"+g.volume, nil))
			g.forgetVolume()
		}
	}
	for len(c.tokens) > 0 {
		c.revoke(0)
	}
	for len(c.data.backups) > 0 {
		c.data.deleteBackup(c)
	}
	if c.data.id != "" {
		c.accepted(c.repeat("DELETE", "/volumes/"+c.data.id, nil))
		c.data.id = ""
	}
}
