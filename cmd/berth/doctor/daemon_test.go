package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/api/client"
	v1 "berth/api/v1"
	"berth/cmd/berth/config"
	"berth/store"
)

// configured returns a valid configuration with a change.
func configured(change func(*v1.Config)) config.Loaded {
	c := v1.Defaults()
	change(&c)
	c.Complete()
	return config.Loaded{Config: c, Path: "/etc/berth/berth.yaml"}
}

func TestCheckConfiguration(t *testing.T) {
	loaded := configured(func(*v1.Config) {})
	for _, c := range []struct {
		invalid error
		warning string
		want    Status
		remedy  string
	}{
		{nil, "", OK, ""},
		{nil, "remote.url is not https", Warn, "systemctl reload berth"},
		{fs.ErrNotExist, "", Fail, "berth config init"},
		{fs.ErrPermission, "", Fail, "as root"},
		{v1.FieldErrors{{Key: "server.port", Message: "must be"}}, "", Fail, "berth config check"},
	} {
		o := Options{Config: loaded, Invalid: c.invalid}
		if c.warning != "" {
			o.Config.Warnings = []string{c.warning}
		}
		r := checkConfiguration(t.Context(), &examination{Options: o})
		require.Equal(t, c.want, r.Status)
		require.Contains(t, r.Message, c.warning)
		require.Contains(t, r.Remedy, c.remedy)
	}
}

const healthy = "# TYPE berth_build_info gauge\nberth_build_info{version=\"1.2.3\",goversion=\"go1.26\"} 1\n# TYPE berth_store_writable gauge\nberth_store_writable %d\n"

func TestCheckDaemon(t *testing.T) {
	metrics := fmt.Sprintf(healthy, 1)
	ask := func(answers map[string]string) daemonState { return askDaemon(t.Context(), newFakeDaemon(t, answers)) }
	require.Equal(t, OK, judgeDaemon(ask(map[string]string{"/readyz": "{}", "/metrics": metrics}), "1.2.3").Status)
	other := judgeDaemon(ask(map[string]string{"/readyz": "{}", "/metrics": metrics}), "1.2.4")
	require.Equal(t, Warn, other.Status)
	require.Contains(t, other.Remedy, "systemctl restart berth")
	unready := judgeDaemon(ask(map[string]string{"/readyz": `!{"error":"engine: does not answer"}`, "/metrics": metrics}), "1.2.3")
	require.Equal(t, Fail, unready.Status)
	require.Contains(t, unready.Message, "engine: does not answer")
	hidden := judgeDaemon(ask(map[string]string{"/readyz": "{}"}), "1.2.3")
	require.Equal(t, Warn, hidden.Status)
	require.Contains(t, hidden.Message, "does not show its metrics")
	require.Equal(t, Warn, judgeDaemon(daemonState{}, "1.2.3").Status, "its address is unknown")

	away, err := client.New(client.Options{URL: "http://127.0.0.1:1"})
	require.NoError(t, err)
	r := judgeDaemon(askDaemon(t.Context(), away), "1.2.3")
	require.Equal(t, Warn, r.Status)
	require.Contains(t, r.Remedy, "systemctl start berth")
	require.Equal(t, Fail, judgeDaemon(daemonState{url: "http://h", err: context.DeadlineExceeded}, "1.2.3").Status, "it hangs")
	untrusted := fmt.Errorf("tls: %w", &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}})
	require.Contains(t, judgeDaemon(daemonState{url: "https://h", err: untrusted}, "1.2.3").Remedy, "certificate is trusted")
}

// TestStoreOfRunningDaemon: a daemon that answers is asked, and its store is not opened.
func TestStoreOfRunningDaemon(t *testing.T) {
	check := func(ready, metrics string) Result {
		e := newExamination(t.Context(), Options{Config: configured(func(c *v1.Config) { c.Storage.DataPath = "/dev/null" }),
			Daemon: newFakeDaemon(t, map[string]string{"/readyz": ready, "/metrics": metrics})})
		return checkStore(t.Context(), e)
	}
	require.Equal(t, ok("the daemon writes it"), check("{}", fmt.Sprintf(healthy, 1)))
	full := check(`!{"error":"store: the disk is full"}`, fmt.Sprintf(healthy, 0))
	require.Equal(t, Fail, full.Status)
	require.Contains(t, full.Message, "the disk is full")
	require.Equal(t, Warn, check("{}", "").Status)
}

// TestStoreWithoutDaemon: a store that is there must not be open.
func TestStoreWithoutDaemon(t *testing.T) {
	data := t.TempDir()
	check := func() Result {
		return checkStore(t.Context(), newExamination(t.Context(), Options{Config: configured(func(c *v1.Config) { c.Storage.DataPath = data })}))
	}
	require.Contains(t, check().Message, "does not exist yet")
	s, err := store.Open(filepath.Join(data, "store"), store.Options{})
	require.NoError(t, err)
	require.Equal(t, Fail, check().Status, "another process has it open, and answers nowhere")
	require.NoError(t, s.Close())
	require.Contains(t, check().Message, "the next start verifies it")
}

func TestJudgeStore(t *testing.T) {
	for _, c := range []struct {
		err    error
		want   Status
		remedy string
	}{
		{fs.ErrNotExist, OK, ""},
		{fs.ErrPermission, Warn, "as root"},
		{store.ErrLocked, Fail, "pgrep"},
		{errors.New("other"), Fail, "the disk of /d/store"},
	} {
		r := judgeStore("/d/store", c.err)
		require.Equal(t, c.want, r.Status, "%v", c.err)
		require.Contains(t, r.Remedy, c.remedy)
	}
}

func TestCheckTLS(t *testing.T) {
	on := func(host string) Result {
		return checkTLS(t.Context(), &examination{Options: Options{Config: configured(func(c *v1.Config) { c.Server.Host = host })}})
	}
	require.Equal(t, OK, on("127.0.0.1").Status)
	require.Equal(t, OK, on("::1").Status)
	require.Equal(t, Warn, on("0.0.0.0").Status)
	unread := configured(func(c *v1.Config) { c.Server.TLS = v1.TLSConfig{Cert: "/c", Key: "/k"} })
	require.Equal(t, Fail, checkTLS(t.Context(), &examination{Options: Options{Config: unread}}).Status)
}

func TestJudgeCertificate(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	leaf := &x509.Certificate{NotBefore: now.Add(-time.Hour)}
	for left, want := range map[time.Duration]Status{-time.Second: Fail, time.Hour: Warn, soon - time.Second: Warn, soon: OK, 90 * 24 * time.Hour: OK} {
		leaf.NotAfter = now.Add(left)
		r := judgeCertificate(leaf, now)
		require.Equal(t, want, r.Status, "%s: %s", left, r.Message)
		require.Contains(t, r.Message, leaf.NotAfter.Format(time.DateOnly))
	}
	require.Equal(t, Fail, judgeCertificate(&x509.Certificate{NotBefore: now.Add(time.Hour), NotAfter: now.Add(soon * 2)}, now).Status)
}

func TestVolumes(t *testing.T) {
	check := func(answers map[string]string) Result {
		return checkVolumes(t.Context(), newExamination(t.Context(), Options{Daemon: newFakeDaemon(t, answers)}))
	}
	list := func(second string) map[string]string {
		return map[string]string{"/readyz": "{}", "/volumes": `{"volumes":[{"path":"/v/1","ready":true},{"path":"/v/2","used_by":["mc","lobby"],"ready":` + second + `}]}`}
	}
	require.Equal(t, ok("the directories of all 2 volumes exist"), check(list("true")))
	r := check(list("false"))
	require.Equal(t, Fail, r.Status)
	require.Equal(t, "missing or unusable: /v/2 of mc, lobby", r.Message)
	require.Contains(t, r.Remedy, "restore a backup")
	require.Equal(t, Warn, check(map[string]string{"/readyz": "{}"}).Status, "the daemon does not list them")
	require.Equal(t, warning("unknown: no daemon answers", "see the check daemon"), checkVolumes(t.Context(), newExamination(t.Context(), Options{})))
	require.Contains(t, judgeVolumes(make([]v1.VolumeView, maxNamed+2)).Message, " and 2 more")
}
