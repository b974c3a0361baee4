package console

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

func TestMatchIgnoresTerminalSequences(t *testing.T) {
	for _, tt := range []struct {
		pattern, line string
		want          bool
	}{
		{`Done \(`, `[12:00:01] [Server thread/INFO]: Done (3.2s)! For help, type "help"`, true},
		{`^Done$`, "Done", true},
		{`^Done$`, "Done\r", true},
		{`^Done$`, "\x1b[32mDone\x1b[0m", true},
		{`^Done$`, "\x1b]0;title\x07Done", true},
		{`^Done$`, "\x1b]0;title\x1b\\Done\x1b(B", true},
		{`^Done$`, "\x1b=\x1b[?25lDone\x1b[2K", true},
		{`^Done$`, "\x1bPq#0\x1b\\Done", true},
		{`^Done$`, "loading 10%\rloading 99%\rDone", true},
		{`^loading 10%$`, "loading 10%\rDone", true},
		{`^Done$`, "/ loading\x1b[1G\x1b[0K- loading\x1b[1G\x1b[0KDone", true},
		{`^Done$`, "loading\x1b[GDone", true},
		{`^Done$`, "loading\x1b[2K\x1b[32mDone\x1b[0m", true},
		{`^loading$`, "loading\x1b[2K\x1b[1GDone", true},
		{`^Done$`, "loading\x1b[1A\x1b[2KDone\x1b[K", true},
		{`^Done$`, "loading\x1b[2J\x1b[1;1HDone", true},
		{`^Done$`, "not \x1b[12GDone", false},
		{`^Done$`, "not \x1b[KDone", false},
		{`^not Done$`, "not \x1b[01;31m\x1b[KDone\x1b[m\x1b[K", true},
		{`Done`, "D\x1b[1mon\x1b[0me", true},
		{`^Done$`, "not Done", false},
		{`done`, "Done", false},
		{`(?i)done`, "Done", true},
		{`\[32m`, "\x1b[32mDone", false},
		{`\xff`, "a\xffb", false},
		{`a.b`, "a\xffb", true},
		{`Done`, "\x1b[12", false},
		{`Done`, "\x1b", false},
		{`^$`, "", true},
		{`grüß`, "grüß", true},
	} {
		require.Equal(t, tt.want, matches(regexp.MustCompile(tt.pattern), []byte(tt.line)), "%q in %q", tt.pattern, tt.line)
	}
}

func FuzzMatch(f *testing.F) {
	f.Add([]byte("\x1b[32mDone\x1b[0m\r\x1b]0;x"))
	f.Add([]byte("\x1b"))
	f.Add([]byte("\x1b(\x1bP\x1b\\"))
	done := regexp.MustCompile(`Done`)
	f.Fuzz(func(t *testing.T, line []byte) {
		was := bytes.Clone(line)
		plain := stripANSI(line, "")
		require.True(t, bytes.Equal(was, line), "the line was changed")
		require.LessOrEqual(t, len(plain), len(line))
		require.NotContains(t, string(plain), "\x1b")
		if bytes.IndexByte(line, escape) < 0 {
			require.True(t, bytes.Equal(line, plain))
			require.Equal(t, bytes.Contains(line, []byte("Done")), matches(done, line))
		}
	})
}

func TestMatcherJoinsPieces(t *testing.T) {
	tgt := Target{ContainerID: "c1", Pattern: "^ab+c$", From: time.Unix(100, 0)}
	at := func(s int64, data string, partial bool) v1.Line {
		return v1.Line{Time: time.Unix(s, 0), Data: []byte(data), Partial: partial}
	}
	m := newMatcher(tgt)
	require.True(t, m.isFor(tgt))
	require.False(t, m.add(at(99, "abc", false)), "a line of the previous run")
	require.False(t, m.add(at(100, "ab", true)))
	require.False(t, m.add(at(100, "bb", true)))
	require.True(t, m.add(at(101, "bc", false)))
	require.False(t, m.add(at(102, "abc", false)), "the pattern has matched already")

	m = newMatcher(tgt)
	require.False(t, m.add(v1.Line{Time: time.Unix(101, 0), Data: []byte("abc"), Message: true}), "a message of berth")
	for range 1000 {
		require.False(t, m.add(at(101, strings.Repeat("b", 1000), true)))
	}
	require.LessOrEqual(t, len(m.line), 2*maxMatch)
	require.False(t, m.add(at(101, "c", false)))
	require.True(t, m.add(at(101, "abc", false)))

	tgt.Pattern = "("
	require.False(t, newMatcher(tgt).add(at(101, "(", false)))
}

// TestLongLines requires that the end of a line of any length is matched, and each part that
// a carriage return ends, without the line's end.
func TestLongLines(t *testing.T) {
	for _, end := range []bool{true, false} {
		m := newMatcher(Target{Pattern: "^Done|up!$"})
		for range 100 {
			require.False(t, m.add(v1.Line{Data: bytes.Repeat([]byte{'x'}, 16<<10), Partial: true}))
		}
		if end {
			require.False(t, m.add(v1.Line{Data: []byte("xx u"), Partial: true}))
			require.True(t, m.add(v1.Line{Data: []byte("p!")}))
		} else {
			require.False(t, m.add(v1.Line{Data: []byte("99%\rDo"), Partial: true}))
			require.True(t, m.add(v1.Line{Data: []byte("ne\r100"), Partial: true}))
		}
	}
}

func TestFromFallsBackToStart(t *testing.T) {
	started := time.Unix(100, 0)
	require.Equal(t, time.Unix(99, 0), fromOf(Target{StartedAt: started}))
	require.Equal(t, time.Unix(50, 0), fromOf(Target{StartedAt: started, From: time.Unix(50, 0)}))
	require.True(t, fromOf(Target{}).IsZero())
}

func BenchmarkMatch(b *testing.B) {
	m := newMatcher(Target{Pattern: `Done \([0-9.]+s\)! For help`})
	l := v1.Line{Time: time.Unix(1, 0), Data: []byte("\x1b[33m[12:00:01] [Server thread/INFO]: Preparing spawn area: 83%, some more text here\x1b[0m")}
	for b.Loop() {
		if m.add(l) {
			b.Fatal("matched")
		}
	}
}
