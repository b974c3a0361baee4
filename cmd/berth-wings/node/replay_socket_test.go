package node_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"berth/hack/test/paneltest"
)

// page is the socket of a browser in a transcript.
type page struct {
	*paneltest.Socket
	early   []paneltest.Event // came before the event that was compared last
	flooded bool              // a flood goes on, whose lines the echo of a command would cut
}

// awaitFlood waits until a flood is over.
func (g *page) awaitFlood(t *testing.T, at string) {
	t.Helper()
	for g.flooded {
		e := g.Next()
		require.True(t, unordered(e.Event, e.Argument()), "%s: %v", at, e)
		g.flooded = e.Argument() != "flood over"
	}
}

// next returns the next event that is compared, in the place of one with a name. A server may be offline before its last
// lines: berth does not wait for them without end.
func (g *page) next(name string) paneltest.Event {
	if len(g.early) > 0 && name == "status" {
		e := g.early[0]
		g.early = g.early[1:]
		return e
	}
	for {
		e := g.Next()
		switch {
		case unordered(e.Event, e.Argument()):
		case name == "console output" && e.Event == "status" && e.Argument() == "offline":
			g.early = append(g.early, e)
		default:
			return e
		}
	}
}

// unordered reports whether an event has no fixed place in a transcript: statistics, the daemon's own lines, whose
// words are free, the files of a restore, which berth replaces at once, a part of the progress of a transfer, and the
// second name of a backup's end and the end of a token, which only the bridge sends.
func unordered(name, argument string) bool {
	switch name {
	case "stats", "daemon message", "token expired", "transfer logs":
		return true
	case "transfer status":
		return argument != "completed"
	case "console output":
		return strings.HasPrefix(argument, "\x1b[33m\x1b[1m[") || freeLine.MatchString(argument)
	}
	return strings.HasPrefix(name, "backup completed:")
}

// freeLine matches the lines of a flood, which the transcripts have in part, the variables of a shell and an image,
// and the answer to Ctrl-C, which the terminal shows and Pterodactyl's node does not send.
var freeLine = regexp.MustCompile(`^(flood (\d+|over)$|(HOME|OLDPWD|PATH|PWD|SHLVL)=|(\^C)?got INT)`)

// socket opens a socket as a transcript does.
func (p *player) socket(t *testing.T, at string, r record) {
	t.Helper()
	s, status := p.Dial(t, strings.TrimSuffix(strings.TrimPrefix(r.Path, "/api/servers/"), "/ws"), r.Origin)
	require.Equal(t, r.Status, status, at)
	p.pages[r.Socket] = &page{Socket: s}
}

// closed ends a socket as a browser does, or waits until the node has ended it.
func (p *player) closed(t *testing.T, at string, r record) {
	t.Helper()
	g := p.pages[r.Socket]
	switch {
	case g == nil: // of a transcript that is not played
	case r.Code == 1000:
		g.Close()
		delete(p.pages, r.Socket)
	default:
		code, reason := g.Closed()
		require.Equal(t, r.Code, code, at)
		if r.Reason != "" {
			require.Equal(t, r.Reason, reason, at)
		}
	}
}

var errorID = regexp.MustCompile(`Error Event \[[^]]*\]`)

// event sends an event of a browser, or requires one of the node.
func (p *player) event(t *testing.T, at string, r record) {
	t.Helper()
	g := p.pages[r.Socket]
	if g == nil { // its opening is absent
		return
	}
	if strings.HasPrefix(r.Dir, "browser") {
		args := append([]any{}, r.Args...)
		for i, a := range args {
			if m := signedText.FindStringSubmatch(fmt.Sprint(a)); m != nil {
				args[i] = p.sign(t, at, m[1])
			}
		}
		g.awaitFlood(t, at)
		g.Send(r.Event, args...)
		g.flooded = r.Event == "send command" && args[0] == "flood"
		return
	}
	want := paneltest.Event{Event: r.Event}
	for _, a := range r.Args {
		want.Args = append(want.Args, errorID.ReplaceAllString(a.(string), "Error Event [x]"))
	}
	if unordered(want.Event, want.Argument()) {
		return
	}
	if texts[at] != "" {
		want.Args = []string{texts[at]}
	}
	got := g.next(want.Event)
	for i, a := range got.Args {
		got.Args[i] = errorID.ReplaceAllString(a, "Error Event [x]")
	}
	var object map[string]any
	if json.Unmarshal([]byte(want.Argument()), &object) == nil && object != nil {
		var has map[string]any
		require.Equal(t, want.Event, got.Event, at)
		require.NoError(t, json.Unmarshal([]byte(got.Argument()), &has), at)
		p.shape(t, at, object, has)
		return
	}
	require.Equal(t, want, got, at)
}
