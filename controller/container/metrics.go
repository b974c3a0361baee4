package container

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	v1 "berth/api/v1"
	"berth/controller"
	"berth/store"
)

// Register registers this controller's metrics: those of a Collector, the kinds of
// drift and the steps that can fail.
func Register(reg prometheus.Registerer, m *controller.Metrics, s *store.Store) {
	for _, kind := range []string{"removed", "started", "paused", "limits", "network", "orphan"} {
		m.Repaired.WithLabelValues(kind) // so that the series starts at 0
	}
	m.StepFailures.WithLabelValues(removeOrphan)
	for _, s := range Steps() {
		m.StepFailures.WithLabelValues(s.Name)
	}
	reg.MustRegister(newCollector(s, time.Now))
}

// collector collects the metrics of containers from their stored status at each
// scrape, so that they survive a restart of berth. The series of a deleted
// container go with it.
type collector struct {
	store *store.Store
	now   func() time.Time

	containers *prometheus.Desc
	state      *prometheus.Desc
	unready    *prometheus.Desc
	retry      *prometheus.Desc
	restarts   *prometheus.Desc
	crashes    *prometheus.Desc
	oomKills   *prometheus.Desc
}

func newCollector(s *store.Store, now func() time.Time) collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return collector{
		store: s, now: now,
		containers: desc("berth_containers", "Containers, by state.", "state"),
		state:      desc("berth_container_state_seconds", "Seconds since the container entered its state.", "container", "state"),
		unready: desc("berth_container_unready_seconds",
			"Seconds since the container should run or be installed, and is not; absent if nothing is missing.", "container", "reason"),
		retry: desc("berth_container_next_retry_timestamp_seconds", "Unix time of the next start; absent if none is pending.", "container"),
		restarts: desc("berth_container_restarts_total",
			"Runs that began without a request: by the restart policy, or after a stop of berth itself.", "container"),
		crashes: desc("berth_container_crashes_total",
			"Runs that exited by themselves with another code than 0, or did not become running in time.", "container"),
		oomKills: desc("berth_container_oom_kills_total", "Runs that ran out of memory.", "container"),
	}
}

// Describe implements prometheus.Collector.
func (c collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.containers, c.state, c.unready, c.retry, c.restarts, c.crashes, c.oomKills} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	count := map[v1.Phase]int{}
	for _, o := range store.Containers.List(c.store.Read()) {
		if o.Status.Phase == "" {
			o.Status.Phase = v1.Installing
		}
		count[o.Status.Phase]++
		c.collectOne(ch, o)
	}
	for _, phase := range v1.Phases() {
		ch <- prometheus.MustNewConstMetric(c.containers, prometheus.GaugeValue, float64(count[phase]), string(phase))
	}
}

func (c collector) collectOne(ch chan<- prometheus.Metric, o v1.Container) {
	id, st := o.Meta.ID, o.Status
	send := func(d *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, kind, value, append([]string{id}, labels...)...)
	}
	if !st.Since.IsZero() {
		send(c.state, prometheus.GaugeValue, c.secondsSince(st.Since), string(st.Phase))
	}
	if reason := v1.Unready(o.Spec, st); reason != "" && !o.Meta.Deleted {
		var seconds float64
		if st.UnreadySince != nil {
			seconds = c.secondsSince(*st.UnreadySince)
		}
		send(c.unready, prometheus.GaugeValue, seconds, reason)
	}
	if st.NextRetryAt != nil {
		send(c.retry, prometheus.GaugeValue, float64(st.NextRetryAt.UnixMilli())/1e3)
	}
	send(c.restarts, prometheus.CounterValue, float64(st.Totals.Restarts))
	send(c.crashes, prometheus.CounterValue, float64(st.Totals.Crashes))
	send(c.oomKills, prometheus.CounterValue, float64(st.Totals.OOMKills))
}

// secondsSince returns the seconds since t, or 0 if the clock was set back.
func (c collector) secondsSince(t time.Time) float64 { return max(0, c.now().Sub(t).Seconds()) }
