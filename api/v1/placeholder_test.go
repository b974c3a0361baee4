package v1_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

func TestExpandedEnv(t *testing.T) {
	ports := []v1.Port{{IP: "192.0.2.1", Port: 25565, Protocol: "tcp"}, {IP: "192.0.2.1", Port: 25565, Protocol: "udp"},
		{IP: "192.0.2.1", Port: 30000, ContainerPort: 80, Protocol: "tcp"}}
	s := v1.ContainerSpec{Ports: ports, Limits: v1.Limits{Memory: 1178 << 20}}
	for value, want := range map[string]string{
		"":                               "",
		"-p ${BERTH_PORT} ${BERTH_IP}":   "-p 25565 192.0.2.1",
		"${BERTH_PORT_2}${BERTH_PORT_3}": "80",
		"${BERTH_MEMORY}M":               "1024M",
		"${BERTH_GATEWAY}":               "172.18.0.1",
		"$${BERTH_PORT}":                 "${BERTH_PORT}",
		"${A} $${A} $$ ${BERTH_X} ${BERTH_PORT_1} {{BERTH_PORT}} ${BERTH_PORT": "${A} $${A} $$ ${BERTH_X} ${BERTH_PORT_1} {{BERTH_PORT}} ${BERTH_PORT",
	} {
		s.Env = map[string]string{"A": value}
		require.Equal(t, want, s.ExpandedEnv("172.18.0.1")["A"], value)
	}
	s.Env = map[string]string{"SERVER_PORT": "${BERTH_PORT}", "BERTH_IP": "own", "TEXT": "$${BERTH_PORT}"}
	text, ok := v1.Expand("${SERVER_PORT} ${BERTH_PORT_2} ${BERTH_IP} ${TEXT}", s.Variables(""))
	require.True(t, ok)
	require.Equal(t, "25565 80 own ${BERTH_PORT}", text)
	require.Equal(t, map[string]string{"A": "0  "}, v1.ContainerSpec{Env: map[string]string{"A": "${BERTH_MEMORY} ${BERTH_IP} ${BERTH_PORT}"}}.ExpandedEnv(""))
}

// TestPlannedMemory: what eggs add to a limit is taken off again.
func TestPlannedMemory(t *testing.T) {
	for planned, factor := range map[int64]float64{512: 1.15, 1024: 1.15, 2048: 1.15, 2560: 1.10, 3072: 1.10, 4096: 1.10, 6144: 1.05, 16384: 1.05} {
		s := v1.ContainerSpec{Limits: v1.Limits{Memory: int64(float64(planned<<20) * factor)}, Env: map[string]string{"A": "${BERTH_MEMORY}"}}
		require.Equal(t, map[string]string{"A": strconv.FormatInt(planned, 10)}, s.ExpandedEnv(""))
	}
}
