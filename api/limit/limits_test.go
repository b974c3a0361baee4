package limit

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTable: the table of hack/docs/operator.md is that of this package.
func TestTable(t *testing.T) {
	raw, err := os.ReadFile("../../hack/docs/operator.md")
	require.NoError(t, err)
	_, text, found := strings.Cut(string(raw), "### At once, and how often\n")
	require.True(t, found)
	text = text[strings.Index(text, "|"):]
	text = text[:strings.LastIndex(text[:strings.Index(text, "\n## ")], "|")+2]
	require.Equal(t, table(), text)
}

// table returns the table of all limits in hack/docs/operator.md.
func table() string {
	var b strings.Builder
	b.WriteString("| what | of one tenant | of one container or volume | in all | beyond it |\n|---|---|---|---|---|\n")
	row := func(cells ...string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	bounds := func(what string, l Bounds, beyond string) {
		row(what, number(l.Tenant), number(l.Object), number(l.All), beyond)
	}
	pace := func(p Pace) string { return number(p.Burst) + " at once, then one in " + p.Every.String() }
	const oldest, refused = "the oldest of those who have most is closed", "`429`"
	row("connections", number(maxConnections), "", "a third of the file handles, at most "+number(allConnections), oldest)
	row("connections without a valid token", number(Anonymous().Tenant)+" of an address", "", "a fourth of these", oldest)
	row("JSON bodies above 8 KiB", fmt.Sprint(bodies/4, " MiB"), "", fmt.Sprint(bodies, " MiB"), "wait "+BodyWait.String()+", then `503`")
	row("answers above 256 KiB until they are sent, and history on sockets", fmt.Sprint(Answers().Tenant, " MiB"), "", fmt.Sprint(Answers().All, " MiB"), refused+" or 1013")
	bounds("sockets and transfers; sockets of a container", Sessions(), refused+" or 1013")
	bounds("tickets that are valid", Tickets(), "the oldest ends")
	row("operations on files", "a half", "a fourth", "a thirtieth of the file handles, at least 16", waits(FileOperations()))
	bounds("searches and copies", Walks(), waits(Walks()))
	bounds("archives made or extracted", Archives(), waits(Archives()))
	bounds("archives sent or received", ArchiveStreams(), waits(ArchiveStreams()))
	bounds("lists of files while they are read", Lists(), waits(Lists()))
	bounds("console history while it is read", Histories(), waits(Histories()))
	row("commands that a container has not read", "", number(Commands().Tenant), number(Commands().All), waits(Commands()))
	bounds("requests that read, while their answers are made", Reads(), waits(Reads()))
	row("requests for events by type or with a limited token", number(Scans().Tenant), "", number(Scans().All), waits(Scans()))
	row("requests that may change something", pace(Changes()), "", "", fmt.Sprint("wait; a refused one counts ", RefusedChange))
	row("changes of the size of a terminal", "", pace(Resizes()), "", "wait")
	row("starts and restarts with tokens limited to containers", "", pace(Starts()), "", "`429 too_many_starts`")
	row("backups, restores and downloads begun or removed with such tokens", pace(Jobs()), "", "", "`429 too_many_jobs`")
	row("responses kept for an `Idempotency-Key`, of the configured token", "", "", pace(PanelKeys()), "`429 too_many_idempotency_keys`")
	row("the same, of minted tokens", pace(Keys()), "", "", "`429 too_many_idempotency_keys`")
	row("wrong tokens", pace(WrongTokens())+", of an address", "", "", "the answer waits 1s")
	row("entries of the audit log about refused requests with one action", pace(RefusedEntries()), "", "", "the next one counts them")
	row("lines of the log about requests", pace(RequestLines()), "", "", "the next one counts them")
	row("lines of the log about wrong tokens", pace(FailureLines())+", of an address", "", "", "none")
	row("SFTP: connections without a login", number(SFTPAnonymous().Tenant)+" of an address", "", number(SFTPAnonymous().All), oldest)
	row("SFTP: connections that end without a login", pace(SFTPFailures())+", of an address", "", "", "the next one waits 1s")
	row("SFTP: sessions", "`sftp.max_sessions_per_token`", "", "`sftp.max_sessions`", "the login is refused")
	row("SFTP: open files and folders", "a fourth", number(SFTPFiles().Object)+" of a session", "1,024, or an eighth of the file handles", "an error")
	row("SFTP: changes", pace(FileChanges()), "", "", "wait")
	row("SFTP: failed logins", fmt.Sprint(WrongTokens().Burst/WrongLogin, " as wrong tokens, of an address"), "", "", "the answer waits 1s")
	return b.String()
}

func waits(b Bounds) string { return fmt.Sprint(b.Wait, " wait, then `429`") }

// number returns n as text with a comma for thousands; 0 is none.
func number(n int) string {
	switch {
	case n == 0:
		return ""
	case n < 1000:
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}
