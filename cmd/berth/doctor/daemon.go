package doctor

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"berth/api/client"
	v1 "berth/api/v1"
	"berth/store"
)

// daemonState is what a daemon answers. It is empty if none does.
type daemonState struct {
	url     string
	err     error // why it is not ready; nil: it is
	answers bool
	other   bool   // another program answers
	away    string // the store of this host, which the daemon does not use; empty: it does, or that is unknown
	metrics []byte // nil if it did not return them
	refusal error  // why it did not
	values  map[string]*dto.MetricFamily
}

// askDaemon asks a daemon for its readiness and its metrics.
func askDaemon(ctx context.Context, c *client.Client) (s daemonState) {
	if c == nil {
		return s
	}
	s.url = c.URL()
	s.err = c.Ready(ctx)
	s.answers = s.err == nil || client.StatusOf(s.err) != 0
	if !s.answers {
		return s
	}
	var ping struct{ Message string }
	if err := c.Call(ctx, http.MethodGet, "/api/v1/public/ping", nil, &ping); err != nil || ping.Message != "berth is running" {
		s.other, s.answers = true, false
		return s
	}
	if s.refusal = c.Call(ctx, http.MethodGet, "/metrics", nil, &s.metrics); s.refusal == nil {
		parser := expfmt.NewTextParser(model.UTF8Validation)
		s.values, s.refusal = parser.TextToMetricFamilies(bytes.NewReader(s.metrics))
	}
	return s
}

// value returns the value of a metric without labels.
func (s daemonState) value(name string) (float64, bool) {
	family := s.values[name]
	if len(family.GetMetric()) == 0 {
		return 0, false
	}
	m := family.GetMetric()[0]
	return m.GetGauge().GetValue() + m.GetCounter().GetValue() + m.GetUntyped().GetValue(), true
}

// label returns the value of a label of a metric that has one series.
func (s daemonState) label(metric, name string) string {
	for _, m := range s.values[metric].GetMetric() {
		i := slices.IndexFunc(m.GetLabel(), func(l *dto.LabelPair) bool { return l.GetName() == name })
		if i >= 0 {
			return m.GetLabel()[i].GetValue()
		}
	}
	return ""
}

func checkConfiguration(_ context.Context, e *examination) Result {
	path := e.Config.Path
	switch {
	case errors.Is(e.Invalid, fs.ErrNotExist):
		return failed(e.Invalid.Error(), "write one with berth config init, or name another with --config or BERTH_CONFIG")
	case errors.Is(e.Invalid, fs.ErrPermission):
		return failed(e.Invalid.Error(), "run berth doctor as root, or as the user of the daemon")
	case e.Invalid != nil:
		return failed(e.Invalid.Error(), "correct "+path+"; berth config check lists every error")
	case len(e.Config.Warnings) > 0:
		return warning(path+": "+strings.Join(e.Config.Warnings, "; "), "correct "+path+", then systemctl reload berth")
	}
	return ok(path + " is valid")
}

func checkDaemon(_ context.Context, e *examination) Result { return judgeDaemon(e.daemon(), e.Version) }

func judgeDaemon(s daemonState, version string) Result {
	running := s.label("berth_build_info", "version")
	var untrusted x509.UnknownAuthorityError
	var dial *net.OpError
	switch {
	case s.url == "":
		return warning("its address or its token is unknown", "see the check configuration, or set BERTH_URL and BERTH_TOKEN")
	case s.other:
		return failed("another program than berth answers at "+s.url,
			"correct server.port, or the address in BERTH_URL; ss -ltnp names the program")
	case !s.answers && errors.As(s.err, &untrusted):
		return failed(s.url+": "+s.err.Error(), "name the daemon's own configuration with --config, so that its certificate is trusted")
	case !s.answers && errors.As(s.err, &dial) && dial.Op == "dial":
		return warning("no daemon answers at "+s.url,
			"start it with systemctl start berth, and read its log with journalctl -u berth; or name another with --url")
	case !s.answers:
		return failed(fmt.Sprintf("%s does not answer: %v", s.url, s.err),
			"look for a berth that hangs, or another program on its port (ss -ltnp)")
	case s.away != "":
		return warning("the daemon at "+s.url+" is another than that of this configuration: it does not use "+s.away,
			"run berth doctor on its host, or name its configuration with --config; without BERTH_URL, that of this configuration is asked")
	case s.err != nil:
		return failed("is not ready: "+s.err.Error(),
			"see the other checks, and read its log with journalctl -u berth, or that of its pod with kubectl logs")
	case s.refusal != nil:
		return warning("is ready, but does not show its metrics: "+s.refusal.Error(),
			"name its configuration with --config, or its token with BERTH_TOKEN")
	case running != version:
		return warning("runs version "+running+"; this program has version "+version, "restart it: systemctl restart berth (containers run on)")
	}
	return ok("version " + running + " is ready at " + s.url)
}

func checkStore(_ context.Context, e *examination) Result {
	s := e.daemon()
	if s.answers && s.away == "" {
		return judgeWritable(s)
	}
	dir := filepath.Join(e.Config.Config.Storage.DataPath, "store")
	return judgeStore(dir, store.CheckLock(e.path(dir)))
}

// judgeWritable judges the store of a daemon that answers.
func judgeWritable(s daemonState) Result {
	writable, known := s.value("berth_store_writable")
	reasons := ""
	if s.err != nil {
		reasons = s.err.Error()
	}
	switch {
	case known && writable == 0, strings.Contains(reasons, "store:"):
		return failed("the daemon cannot write it: "+reasons, "free space on the disk of storage.data_path, or read the daemon's log")
	case !known:
		return warning("unknown: the daemon does not show its metrics", "see the check daemon")
	}
	return ok("the daemon writes it")
}

// judgeStore judges a store that no daemon uses. Whether it is readable, the next start finds out.
func judgeStore(dir string, err error) Result {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ok(dir + " does not exist yet: the first start creates it")
	case errors.Is(err, fs.ErrPermission):
		return warning(err.Error(), "run berth doctor as root, or as the user of the daemon")
	case errors.Is(err, store.ErrLocked):
		return failed("a process has "+dir+" open, and no daemon answers at the configured address",
			"look for that berth (pgrep -a berth), or name its address with --url")
	case err != nil:
		return failed(err.Error(), "look at the disk of "+dir)
	}
	return ok(dir + " is there; the next start verifies it")
}

// soon is the time before the end of a certificate at which its check warns.
const soon = 14 * 24 * time.Hour

func checkTLS(_ context.Context, e *examination) Result {
	c := e.Config.Config.Server
	if !c.TLS.Enabled() {
		host := c.Host
		if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
			return ok("off; berth listens on loopback only")
		}
		return warning("off, and berth listens on "+host+": tokens and files can be read on the way",
			"set server.tls.cert and server.tls.key, or server.host to 127.0.0.1 behind a proxy with TLS")
	}
	if e.Config.Certificate == nil || e.Config.Certificate.Leaf == nil {
		return failed("the certificate cannot be read", "see the check configuration")
	}
	return judgeCertificate(e.Config.Certificate.Leaf, time.Now())
}

func judgeCertificate(leaf *x509.Certificate, now time.Time) Result {
	const remedy = "renew it, then systemctl reload berth"
	left := leaf.NotAfter.Sub(now)
	switch {
	case left < 0:
		return failed("the certificate expired on "+leaf.NotAfter.Format(time.DateOnly), remedy)
	case now.Before(leaf.NotBefore):
		return failed("the certificate is valid from "+leaf.NotBefore.Format(time.RFC3339), "correct the clock, or "+remedy)
	case left < soon:
		return warning(fmt.Sprintf("the certificate expires in %d days, on %s", int(left.Hours())/24,
			leaf.NotAfter.Format(time.DateOnly)), remedy)
	}
	return ok("the certificate is valid until " + leaf.NotAfter.Format(time.DateOnly))
}

// maxNamed bounds how many volumes a message names.
const maxNamed = 5

// checkVolumes checks whether the daemon has found the directories of all volumes.
func checkVolumes(ctx context.Context, e *examination) Result {
	if s := e.daemon(); !s.answers {
		return warning("unknown: no daemon answers", "see the check daemon")
	}
	list, err := e.Daemon.Volumes().List(ctx)
	if err != nil {
		return warning("unknown: the daemon does not list its volumes: "+err.Error(), "see the check daemon")
	}
	return judgeVolumes(list)
}

func judgeVolumes(list []v1.VolumeView) Result {
	var missing []string
	for _, v := range list {
		if v.Ready {
			continue
		}
		text := v.Path
		if len(v.UsedBy) > 0 {
			text += " of " + strings.Join(v.UsedBy, ", ")
		}
		missing = append(missing, text)
	}
	if len(missing) == 0 {
		return ok(fmt.Sprintf("the directories of all %d volumes exist", len(list)))
	}
	named, more := missing, ""
	if len(missing) > maxNamed {
		named, more = missing[:maxNamed], fmt.Sprintf(" and %d more", len(missing)-maxNamed)
	}
	return failed("missing or unusable: "+strings.Join(named, "; ")+more,
		"stop the containers, whose writes may be lost; then mount the directory, move it back, or restore a backup (berth backup restore)")
}
