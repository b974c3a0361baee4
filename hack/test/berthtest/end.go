package berthtest

import (
	"strings"
	"syscall"
	"time"
)

// forbidden returns the texts that no log may contain, besides the secrets.
func forbidden() []string { return []string{"DATA RACE", "panic", "Authorization", "Bearer"} }

// end stops the daemon, removes its containers and searches its log and its other
// traces for secrets.
func (b *Berth) end() {
	defer b.removeContainers()
	if b.cmd != nil && !b.ended() {
		searchAndStop(b)
	}
	log := b.Log()
	b.secrets.search(b.t, "the log", log)
	b.secrets.searchRefusals(b.t)
	for _, text := range forbidden() {
		if strings.Contains(log, text) {
			b.t.Errorf("the log contains %q:\n%s", text, around(log, text))
		}
	}
	if b.t.Failed() {
		b.t.Logf("the end of berth's log:\n%s", tail(log))
	}
}

// logConsoles logs, after a failure, the processes and the last lines of each running server, those of the engine and
// those that berth has read: they show where a line was lost for which a test has waited.
func logConsoles(b *Berth) {
	if !b.t.Failed() || b.Engine == nil || b.Store() == "" {
		return
	}
	for _, one := range b.Containers(b.t, "") {
		if one.State != "running" {
			continue
		}
		_, lines := b.Engine.Do(b.t, "GET", "/containers/"+one.ID+"/logs?stdout=1&stderr=1&timestamps=1&tail=3", nil)
		_, processes := b.Engine.Do(b.t, "GET", "/containers/"+one.ID+"/top", nil)
		read, err := b.Try(b.background(), "GET", "/containers/"+one.Labels["io.berth.container"]+"/logs?tail=3", nil)
		b.t.Logf("%s: the engine has %q of processes %s; berth has read %s (%v)", one.Names, lines, processes, read.Body, err)
	}
}

// searchAndStop stops the daemon also if a search ends the test.
func searchAndStop(b *Berth) {
	defer b.stop()
	logConsoles(b)
	searchMetrics(b)
	searchProcess(b)
}

// stop lets the daemon finish its calls of the engine, so that no container is created
// after they are removed.
func (b *Berth) stop() {
	_ = b.cmd.Process.Signal(syscall.SIGCONT)
	_ = b.cmd.Process.Signal(syscall.SIGTERM)
	if !Within(time.Minute, b.ended) {
		b.t.Error("berth does not exit after SIGTERM")
		_ = b.cmd.Process.Kill()
		b.Exit(b.t, time.Now())
	}
}

func (b *Berth) removeContainers() {
	if b.Store() == "" || b.Engine == nil {
		return
	}
	for _, one := range b.Containers(b.t, "") {
		searchContainer(b, one.ID)
		b.Engine.Remove(b.t, one.ID)
	}
}

func tail(log string) string { return log[max(0, len(log)-6000):] }

func around(log, text string) string {
	at := strings.Index(log, text)
	return log[max(0, at-1000):min(len(log), at+2000)]
}
