package transfer

import (
	"github.com/prometheus/client_golang/prometheus"

	v1 "berth/api/v1"
	"berth/store"
)

// Metrics counts transfers. A nil Metrics counts nothing.
type Metrics struct {
	ended *prometheus.CounterVec
	sent  prometheus.Counter
}

// Register registers the metrics of the transfers in s.
func Register(reg prometheus.Registerer, s *store.Store) *Metrics {
	m := &Metrics{
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "berth_transfers_total",
			Help: "Transfers to other nodes that have ended."}, []string{"result"}),
		sent: prometheus.NewCounter(prometheus.CounterOpts{Name: "berth_transfer_bytes_total",
			Help: "Bytes that transfers to other nodes have sent, compressed."}),
	}
	for _, state := range v1.TransferStates() {
		if state.Finished() {
			m.ended.WithLabelValues(string(state))
		}
	}
	reg.MustRegister(m.ended, m.sent, prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "berth_transfers_unanswered",
		Help: "Transfers whose destination has not answered for a minute whether it has the container: the container runs nowhere."},
		func() float64 { return float64(unanswered(s)) }))
	return m
}

// unansweredAfter is the number of attempts after which a hand-over waits for an operator: they take a minute.
const unansweredAfter = 6

func unanswered(s *store.Store) (n int) {
	for _, t := range store.Transfers.List(s.Read()) {
		if t.Status.State == v1.TransferHandingOver && t.Status.Failures >= unansweredAfter {
			n++
		}
	}
	return n
}

func (m *Metrics) entered(s v1.TransferState) {
	if m != nil && s.Finished() {
		m.ended.WithLabelValues(string(s)).Inc()
	}
}

func (m *Metrics) bytes(n int64) {
	if m != nil {
		m.sent.Add(float64(n))
	}
}
