package sftp

import (
	"github.com/prometheus/client_golang/prometheus"
)

// The values of the label result of berth_sftp_logins_total.
const (
	loginAccepted = "accepted"
	loginRefused  = "refused"  // wrong user, token or key
	loginDenied   = "denied"   // the token has not the scope
	loginLimited  = "limited"  // too many sessions
	loginUnstored = "unstored" // the store could not be read or written
)

type metrics struct {
	sessions       prometheus.Gauge
	received, sent prometheus.Counter // bytes
	logins         *prometheus.CounterVec
}

func newMetrics(r prometheus.Registerer) metrics {
	bytes := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "berth_sftp_bytes_total",
		Help: "Bytes of file content that SFTP clients have written (received) and read (sent)."}, []string{"direction"})
	m := metrics{
		sessions: prometheus.NewGauge(prometheus.GaugeOpts{Name: "berth_sftp_sessions", Help: "SFTP connections that are logged in."}),
		received: bytes.WithLabelValues("received"),
		sent:     bytes.WithLabelValues("sent"),
		logins: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "berth_sftp_logins_total",
			Help: "SFTP logins by result: accepted, refused (wrong user, token or key), denied (scope of the token), limited (too many " +
				"sessions), or unstored if the store failed."},
			[]string{"result"}),
	}
	for _, result := range []string{loginAccepted, loginRefused, loginDenied, loginLimited, loginUnstored} {
		m.logins.WithLabelValues(result)
	}
	r.MustRegister(m.sessions, bytes, m.logins)
	return m
}
