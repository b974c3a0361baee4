package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	client "github.com/pkg/sftp"
)

// auditClient sends mutating requests, each with an id of its own, and records the
// answers.
type auditClient struct {
	name, token string
	number      int // of the client
	next        int
	made        string              // the container that it has created
	port        int                 // that it has added
	answered    map[string]answered // by request id
}

// auditRequest is a request and what its entry must say. made is the field of the answer
// to a success that has the entry's object.
type auditRequest struct {
	method, path string
	body         any
	action       string
	object, made string
}

func (k *auditClient) run(r *auditRun) {
	for !r.done() {
		if k.send(r) {
			r.count.Add(1)
			continue
		}
		pause(5 * time.Millisecond)
	}
}

// send sends the next request, and reports whether it was answered.
func (k *auditClient) send(r *auditRun) bool {
	k.next++
	id := fmt.Sprintf("%s-%d", k.name, k.next)
	kinds := append(k.ofFiles(r, id), k.ofNode(r, id)...)
	q := kinds[k.next%len(kinds)]
	answer, err := r.Try(context.Background(), q.method, q.path, q.body, "Authorization", "Bearer "+k.token, "X-Request-Id", id)
	if err != nil {
		return false
	}
	want := answered{answer.Status, q.action, q.object}
	if q.made != "" && answer.Status/100 == 2 {
		fields := map[string]any{}
		if json.Unmarshal(answer.Body, &fields) == nil {
			want.object = fmt.Sprint(fields[q.made])
		}
	}
	if answer.Status == 403 && (q.path == "/containers" || q.path == "/network/ports") {
		want.object = "" // the body, which names it, was not read
	}
	if q.action == "port.delete" {
		k.port = 0
	}
	if q.action == "container.create" && answer.Status/100 == 2 {
		k.made = q.object
	}
	k.answered[id] = want
	return true
}

// ofFiles are requests about the volume.
func (k *auditClient) ofFiles(r *auditRun, id string) []auditRequest {
	v, last := "/volumes/"+r.volume, fmt.Sprintf("%s.txt", k.name)
	file := func(name string) string { return r.volume + "/" + name }
	type body = map[string]any
	return []auditRequest{
		{"PUT", v + "/files/content?path=" + last, "text " + id, "file.write", file(last), ""},
		{"POST", v + "/copy", body{"source": last, "destination": id + ".copy"}, "file.copy", file(last + " -> " + id + ".copy"), ""},
		{"POST", v + "/chmod", body{"path": last, "mode": "0600"}, "file.chmod", file(last), ""},
		{"POST", v + "/rename", body{"source": last, "destination": id + ".old"}, "file.rename", file(last + " -> " + id + ".old"), ""},
		{"POST", v + "/files", body{"path": last, "content": id}, "file.write", file(last), ""},
		{"POST", v + "/folders", body{"path": id + ".folder"}, "folder.create", file(id + ".folder"), ""},
		{"DELETE", v + "/files?path=" + last, nil, "file.delete", file(last), ""},
		{"PUT", v + "/backup-policy", body{"every": "24h", "keep": 1 + k.next%9}, "policy.update", r.volume, ""},
		{"DELETE", v + "/backup-policy", nil, "policy.delete", r.volume, ""},
		{"POST", v + "/pull", body{"url": r.mirror.URL + "/1", "path": k.name + ".pull"}, "pull.create", file(k.name + ".pull"), ""},
		{"PATCH", v, body{"name": id}, "volume.update", r.volume, ""},
	}
}

// ofNode are requests about everything else. Tokens for one container are refused some.
func (k *auditClient) ofNode(r *auditRun, id string) []auditRequest {
	type body = map[string]any
	if k.port == 0 {
		k.port = 41_000 + k.number*1000 + k.next%1000
	}
	port := k.port
	object := fmt.Sprintf("127.0.0.1:%d/tcp", port)
	create := auditRequest{"POST", "/containers", body{"internal_id": "mc", "volume_id": r.volume, "image": r.image, "startup_command": "true"}, "container.create", "mc", ""}
	if k.next%200 < 30 && k.made == "" { // a few in earnest: the engine is slow
		create.body.(body)["internal_id"], create.object = id, id
	}
	drop := auditRequest{"DELETE", "/containers/none", nil, "container.delete", "none", ""}
	if k.made != "" {
		drop.path, drop.object, k.made = "/containers/"+k.made, k.made, ""
	}
	return []auditRequest{
		create, drop,
		{"PUT", "/containers/mc", body{"image": r.image, "volume_id": r.volume, "startup_command": "sleep " + fmt.Sprint(100_000+k.next)}, "container.apply", "mc", ""},
		{"POST", "/containers/mc/stop", nil, "container.stop", "mc", ""},
		{"POST", "/containers/mc/kill", nil, "container.kill", "mc", ""},
		{"POST", "/containers/none/start", nil, "container.start", "none", ""},
		{"POST", "/volumes", nil, "volume.create", "", "volume_id"},
		{"PATCH", "/volumes", nil, "request.patch", "/volumes", ""},
		{"POST", "/auth/tokens", body{"scopes": []string{"read"}, "ttl": "1h"}, "token.create", "", "id"},
		{"POST", "/network/ports", body{"ip": "127.0.0.1", "port": port, "protocol": "tcp"}, "port.create", object, ""},
		{"DELETE", fmt.Sprintf("/network/ports/127.0.0.1/%d?protocol=tcp", port), nil, "port.delete", object, ""},
		{"PUT", "/network/ports/127.0.0.1/4000/use?protocol=tcp", body{"in_use": k.next%2 == 0}, "port.use", "127.0.0.1:4000/tcp", ""},
	}
}

// auditChanger changes files by SFTP, and records what was acknowledged.
type auditChanger struct {
	name, token  string
	next         int
	acknowledged map[string]time.Time // when first, by action and path
}

func (k *auditChanger) run(r *auditRun) {
	for !r.done() {
		c, err := r.dial(r.volume, k.token)
		if err != nil {
			pause(10 * time.Millisecond)
			continue
		}
		for err == nil && !r.done() {
			k.next++
			err = k.change(r, c, fmt.Sprintf("sftp-%s-%d", k.name, k.next))
		}
		c.Close()
	}
}

// change makes changes of every kind, with names of their own, until one is not
// acknowledged.
func (k *auditChanger) change(r *auditRun, c *client.Client, name string) error {
	now := time.Now()
	for _, step := range []struct {
		entry string
		do    func() error
	}{
		{"file.write " + name, func() error { return k.write(r, c, name) }},
		{"file.chmod " + name, func() error { return c.Chmod(name, 0o600) }},
		{"file.touch " + name, func() error { return c.Chtimes(name, now, now) }},
		{"file.truncate " + name, func() error { return c.Truncate(name, 1) }},
		{"file.rename " + name + " -> " + name + ".new", func() error { return c.PosixRename(name, name+".new") }},
		{"file.rename " + name + ".new -> " + name + ".last", func() error { return c.Rename(name+".new", name+".last") }},
		{"link.create " + name + ".link", func() error { return c.Symlink(name+".last", name+".link") }},
		{"file.delete " + name + ".last", func() error { return c.Remove(name + ".last") }},
		{"folder.create " + name + ".folder", func() error { return c.Mkdir(name + ".folder") }},
		{"folder.delete " + name + ".folder", func() error { return c.RemoveDirectory(name + ".folder") }},
	} {
		if err := step.do(); err != nil {
			return err
		}
		if k.acknowledged[step.entry].IsZero() {
			k.acknowledged[step.entry] = time.Now()
			r.count.Add(1)
		}
	}
	return nil
}

// write uploads a file. Its creation is acknowledged already, and has the entry.
func (k *auditChanger) write(r *auditRun, c *client.Client, name string) error {
	f, err := c.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	k.acknowledged["file.write "+name] = time.Now()
	r.count.Add(1)
	if _, err := f.Write([]byte(name)); err != nil {
		return err
	}
	return f.Close()
}
