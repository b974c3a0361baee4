package node

import (
	"context"
	"fmt"
	"net/netip"

	"berth/api/client"
	v1 "berth/api/v1"
	"berth/cmd/berth-wings/panel"
)

const (
	crashLines = 2    // of the console, in the activity of a crash
	crashPage  = 1000 // events that are read at once
)

// isCrash reports whether a server has exited and is restarted.
func isCrash(e v1.Event) bool {
	return e.Event == v1.EventState && e.NextRetryAt != nil && e.ExitCode != nil
}

// wakeCrashes has watchCrashes read berth's events.
func (n *Node) wakeCrashes() {
	select {
	case n.crashes <- struct{}{}:
	default:
	}
}

// watchCrashes reports crashes until ctx ends.
func (n *Node) watchCrashes(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.crashes:
		}
		if err := n.reportCrashes(ctx); err != nil && pause(ctx, retryPause) {
			n.o.Log.Warn("crashes are not reported yet", "err", err)
			n.wakeCrashes()
		}
	}
}

// reportCrashes reports the crashes in berth's events behind those that are read, also of the time when no bridge ran. With
// another store of berth's, and at the first time, it begins at the newest event.
func (n *Node) reportCrashes(ctx context.Context) error {
	for {
		at := n.activity.lastRead()
		list, err := n.o.Berth.Events().List(ctx, at, crashPage, client.EventFilter{Type: v1.EventState})
		if err != nil {
			return err
		}
		newest := client.Cursor{Seq: list.Newest, Epoch: list.Epoch}
		if list.Epoch != at.Epoch {
			return n.activity.setRead(newest)
		}
		for _, e := range list.Events {
			if s := n.find(e.Container); s != nil && isCrash(e) {
				n.crashed(ctx, s, e)
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
		if len(list.Events) < crashPage {
			return n.activity.setRead(newest)
		}
		if err := n.activity.setRead(client.Cursor{Seq: list.Events[crashPage-1].Seq, Epoch: list.Epoch}); err != nil {
			return err
		}
	}
}

// crashed publishes a crash: in the console in the words that users of wings know, and for Pelican as an activity.
func (n *Node) crashed(ctx context.Context, s *server, e v1.Event) {
	killed := e.Reason == v1.ReasonOutOfMemory
	for _, text := range []string{"---------- Detected server process in a crashed state! ----------",
		fmt.Sprint("Exit code: ", *e.ExitCode), fmt.Sprint("Out of memory: ", killed)} {
		line := fmt.Sprintf("\x1b[33m\x1b[1m[%s Daemon]:\x1b[39m %s\x1b[0m", n.config().AppName, text)
		s.publish(event{Name: "console output", Args: []string{line}})
	}
	if !s.pelican() {
		return
	}
	logs, err := n.o.Berth.Containers().Logs(ctx, s.uuid, client.LogOptions{Tail: crashLines, Before: *e.NextRetryAt})
	if ctx.Err() != nil {
		return // the next bridge reports it
	}
	if err != nil {
		n.o.Log.Warn("a crash is recorded without its last lines", "server", s.uuid, "err", err)
	}
	lines := []string{}
	for _, line := range logs.Lines {
		lines = append(lines, lineOf(line.Data))
	}
	n.keep(panel.Activity{Server: s.uuid, IP: netip.AddrFrom4([4]byte{127, 0, 0, 1}), Timestamp: e.Time.UTC(), Event: "server:crashed",
		Metadata: map[string]any{"exit_code": *e.ExitCode, "oomkilled": killed, "logs": lines}},
		&client.Cursor{Seq: e.Seq, Epoch: e.Epoch})
}
